"""The documents: their counts, links, style and generated pages agree with the sources and the
program (tools/docs)."""

import re
import shlex
import subprocess
import sys

import pytest
from conftest import BIN, ROOT, execute

sys.path.insert(0, str(ROOT / "tools/docs"))
import check_anchors  # noqa: E402
import check_counts  # noqa: E402
import check_operations  # noqa: E402
import check_style  # noqa: E402

import generate  # noqa: E402


@pytest.mark.parametrize("check", [check_anchors, check_counts, check_operations, check_style])
def test_a_check_can_fail(check):
    for title, files, expected in check.SELF_TEST:
        assert len(check.check(files)) == expected, title


def test_no_count_is_stale():
    assert not check_counts.check(check_counts.sources())


def test_every_operation_has_a_formula():
    assert not check_operations.check(check_operations.sources())


def test_linked_headings_exist():
    assert not check_anchors.check(check_anchors.pages())


def test_style():
    assert not check_style.check(check_style.pages())


def test_the_generated_pages_are_new():
    assert generate.BIN == BIN
    assert not sorted(generate.stale()), "run tools/docs/generate.py"


def test_a_stale_page_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "REFERENCE", tmp_path)
    assert set(generate.stale()) == set(generate.PAGES)
    for name, text in generate.stale().items():
        (tmp_path / name).write_text(text)
    assert not generate.stale()
    (tmp_path / "errors.md").write_text("old\n")
    assert set(generate.stale()) == {"errors.md"}


def commands(page):
    """The invocations of the program that a page of the guide shows."""
    blocks = re.findall(r"^```\n(.*?)^```", (ROOT / "docs/guide" / page).read_text(), re.M | re.S)
    return re.findall(r"^build/bin/invar (.*)$", "\n".join(blocks), re.M)


def test_the_commands_of_the_guide(tmp_path):
    """In the order of the guide, one after the other in one folder."""
    (tmp_path / "models").symlink_to(ROOT / "models")
    for party in ("a", "b"):  # the guide's mkdir
        (tmp_path / "case" / party).mkdir(parents=True)
    shown = {page: commands(page) for page in ("first-receipt.md", "verify.md", "python.md")}
    assert [len(c) for c in shown.values()] == [3, 23, 1]
    for command in sum(shown.values(), []):
        args = shlex.split(command, comments=True)
        if args != ["doctor"]:  # test_doctor.py runs it
            done = execute(args, cwd=tmp_path)
            assert done.code == 0, f"{command}\n{done.text}"
    digest = re.findall(
        r"^`([0-9a-f]{64})`", (ROOT / "docs/guide/first-receipt.md").read_text(), re.M
    )
    for receipt, same in {"r.json": True, "s.json": True, "r7.json": False}.items():
        assert (digest[0] in (tmp_path / receipt).read_text()) == same
    assert (tmp_path / "exported/model.onnx").is_file()


@pytest.mark.parametrize("tool", ["anchors", "counts", "operations", "style"])
def test_the_tools_run_alone(tool):
    run = [sys.executable, "-B", ROOT / f"tools/docs/check_{tool}.py"]
    assert subprocess.run([*run, "--self-test"]).returncode == 0
    assert subprocess.run(run).returncode == 0
