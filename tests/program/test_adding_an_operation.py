"""The commands of docs/guide/adding-an-operation.md, on a copy of the room without what they made
of the guide's example."""

import re
import shlex
import shutil
import subprocess
import sys

from conftest import BUILD, ROOT

PAGE = (ROOT / "docs/guide/adding-an-operation.md").read_text()
OP = re.search(r"The commit `elementwise: (\w+)`", PAGE)[1]
MADE = ("vectors.txt", "golden.txt")


def command_run(words, folder):
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


def test_the_commands_make_the_lines_of_the_example(tmp_path):
    room = tmp_path / "src/ops/elementwise"
    shutil.copytree(ROOT / "src/ops/elementwise", room)
    shutil.copytree(ROOT / "tests/conformance", tmp_path / "tests/conformance")
    (tmp_path / "build").symlink_to(BUILD)
    made = {}
    for name in MADE:
        lines = (room / "tests" / name).read_text().splitlines(keepends=True)
        made[name] = [line for line in lines if line.startswith(OP + ": ")]
        assert made[name]
        (room / "tests" / name).write_text("".join(x for x in lines if x not in made[name]))
    commands = re.search(r"^```\n(python3 .*?)^```", PAGE, re.M | re.S)[1].splitlines()
    run = [c for c in commands if "oracle.py" in c or "invar_conformance" in c]
    assert len(run) == 3
    for command in run:
        words = shlex.split(command.replace("NAME", OP))
        if words[0] == "python3":
            words[0] = sys.executable
        else:
            words += ["--rooms", str(tmp_path / "src/ops")]
        done = command_run(words, tmp_path)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    for name in MADE:
        lines = (room / "tests" / name).read_text().splitlines(keepends=True)
        assert [line for line in lines if line.startswith(OP + ": ")] == made[name]


def test_digests_are_refused_where_an_answer_is_another(tmp_path):
    tests = tmp_path / "elementwise/tests"
    shutil.copytree(ROOT / "src/ops/elementwise/tests", tests)
    vectors = (tests / "vectors.txt").read_text()
    changed = re.sub(rf"(\n{OP}: .* -> f32\[34\]=)00000000", r"\g<1>3f800000", vectors)
    assert changed != vectors
    (tests / "vectors.txt").write_text(changed)
    digests = (tests / "golden.txt").read_bytes()
    words = [BUILD / "bin/invar_conformance", "--op", OP, "--write-golden", "--rooms", tmp_path]
    done = command_run(words, tmp_path)
    assert (done.returncode, done.stdout.count("\n")) == (1, 1), done.stdout
    assert "3f800000" in done.stdout and (tests / "golden.txt").read_bytes() == digests


def test_every_kind_of_floats_and_every_header_is_listed():
    table = (ROOT / "src/ops/elementwise/ops.toml").read_text()
    kinds = re.findall(r'\[kind\.(\w+)\]\noperands = \[\s*"\w: f', table)
    headers = [path.name for path in (ROOT / "src/ops/elementwise/graphs").glob("*.h")]
    assert len(kinds) > 10 and len(headers) > 4
    assert [name for name in kinds + headers if f"`{name}`" not in PAGE] == []
