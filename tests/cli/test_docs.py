"""The documents: their counts, links, style and generated pages agree with the sources and the
program (tools/docs)."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import BIN, BUILD, MODEL, ROOT, SHARDS, execute, safetensors_header

sys.path[:0] = [str(ROOT / "tools/docs"), str(ROOT / "tests/families")]
import check_anchors  # noqa: E402
import check_counts  # noqa: E402
import check_operations  # noqa: E402
import check_style  # noqa: E402
from encoder_folder import write_encoder  # noqa: E402

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
    page = "docs/reference/errors.md"
    made = {page: generate.PAGES[page]}
    monkeypatch.setattr(generate, "PAGES", made)
    new = made[page]()
    monkeypatch.setitem(made, page, lambda: new + "more\n")
    assert generate.stale() == {page: new + "more\n"}
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    assert set(generate.stale()) == {page}


# Commands of the documents that are not run here, and what runs them.
ELSEWHERE = {
    r"\./setup\.sh ": "installs packages and builds: CI itself is `./setup.sh test`",
    r"apt-get |pip install |cmake |ninja |ctest ": "installs or builds",
    r"tools/release/|docker ": "tests/release",
    r"tools/(docs/site|evidence)\.sh": "tests/release/test_site.py, tests/release/test_evidence.py",
    r"build/bin/invar_(conformance|prove) ": "tests/conformance, tools/prove",
    r"python3 tests/conformance/oracle\.py": "tests/conformance",
    r"invar (infer|verify) .*--table ": "tests/tables",
    r"python3 tools/docs/generate\.py": "test_the_generated_pages_are_new",
    r"python (-m invar\.training|examples/)": "tests/package/training",
    r'python -c "from transformers': "needs transformers and a model of the hub",
    r"node .* outline ": "./setup.sh web runs it",
    r"invar run --model-name \S+\.gguf": "tests/weights",
    r"invar tui": "tests/tui",
    r"invar doctor": "test_doctor.py",
    r"invar bench ": "test_bench.py",
    r"invar download ": "tests/hub",
    r"invar .*--table ": "tests/tables",
    r"invar .*--workers ": "tests/partitions: it needs hosts",
}
TOOLS = r"(\./setup\.sh|apt-get|cmake|cp|ctest|docker|mkdir|ninja|node|pip|python3?|tools/\S+|\S*\binvar\w*)"


def blocks(page):
    """(language, text) of the fenced and indented blocks of a page; "" is what a shell shows."""
    found, language = [], None
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("```"):
            language = line[3:].strip() if language is None else None
            found.append([language or "", ""])
        elif language is not None:
            found[-1][1] += line + "\n"
        elif line.startswith("    "):
            found.append(["", line[4:] + "\n"])
    return found


def commands(page):
    """The commands that a page shows, in their order. In a block that shows output, too, those
    after a `$`."""
    found = []
    for language, text in blocks(page):
        if language in ("", "sh"):
            lines = text.replace("\\\n", " ").splitlines()
            typed = [line[2:] for line in lines if line.startswith("$ ")] or lines
            found += [line for line in typed if re.match(TOOLS + " ", line)]
    return found


GUIDE = sorted(
    p.relative_to(ROOT).as_posix()
    for folder in ("guide", "concepts", "site")
    for p in (ROOT / "docs" / folder).glob("*.md")
)
# Pages whose commands go on from files that those of the pages before have made.
JOURNEY = ["docs/guide/first-receipt.md", "docs/guide/verify.md", "docs/guide/audit.md"]


def test_commands_are_found():
    shown = {page: commands(page) for page in ("README.md", *GUIDE)}
    assert [len(shown[page]) for page in JOURNEY] == [5, 24, 4]
    assert len(shown["README.md"]) == 9 and sum(map(len, shown.values())) > 80


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """The folder of a reader who has the source, and models of the hub in the cache."""
    for name in ("models", "docs", "apps"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "build").symlink_to(BUILD)
    chat = tmp_path / "MODEL"
    shutil.copytree(MODEL, chat)
    shutil.copy(ROOT / "tests/chat/templates/chatml.jinja", chat / "chat_template.jinja")
    shutil.copytree(MODEL, tmp_path / "FOLDER")
    (tmp_path / "org").mkdir()
    (tmp_path / "org/name").symlink_to(MODEL)
    messages = dict(blocks("docs/guide/chat.md"))["json"]
    (tmp_path / "messages.json").write_text(messages)
    (tmp_path / "person.json").write_text(dict(blocks("docs/guide/structured.md"))["json"])
    (tmp_path / "prompts.txt").write_text("Who art thou?\nFarewell.\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def type_in(command, folder):
    """Runs a command of the documents as a reader types it, with devices that are here."""
    args = shlex.split(re.sub(r"cuda:\d", "cpu", command), comments=True)
    if args[0] in ("cp", "mkdir"):
        return subprocess.run(args, cwd=folder, check=True)
    if args[0] == "python3":
        return subprocess.run([sys.executable, "-B", *args[1:]], cwd=folder, check=True)
    if args[0] == "node":
        if shutil.which("node") and (BUILD / "web/bin/invar_verifier.wasm").exists():
            done = subprocess.run(args, cwd=folder, capture_output=True, text=True)
            assert '"verdict":"VERIFIED' in done.stdout, done.stdout + done.stderr
        return None
    assert args[0] in ("invar", "build/bin/invar"), command
    done = execute(args[1:], cwd=folder)
    assert done.code == 0, f"{command}\n{done.text}"
    return done


def runs_here(command):
    return not any(re.match(f"(build/bin/)?{other}", command) for other in ELSEWHERE)


def test_the_commands_of_the_journey(reader):
    """In the order of the guide, one after the other in one folder. They name no instruction set:
    the build of the README has the processor's own alone."""
    for page in JOURNEY:
        for command in filter(runs_here, commands(page)):
            assert "--isa" not in command
            type_in(command, reader)
    digest = re.findall(
        r"^`([0-9a-f]{64})`", (ROOT / "docs/guide/first-receipt.md").read_text(), re.M
    )
    for receipt, same in {"r": True, "s": True, "c": True, "r7": False}.items():
        assert (digest[0] in (reader / f"{receipt}.json").read_text()) == same


# Options that make the commands of a page quick, and what a page needs beside a checkpoint.
@pytest.mark.parametrize(
    "page",
    [page for page in GUIDE if page not in JOURNEY and any(map(runs_here, commands(page)))],
)
def test_the_commands_of_a_page(page, reader):
    if page.endswith("embed.md"):
        encoders(reader)
    if page.endswith("browser.md"):
        type_in(
            "invar run --model-name FOLDER --prompt-text x --max-new-tokens 9 --receipt-path r.json",
            reader,
        )
    if page.endswith("exact16.md"):
        type_in("invar export --model-name MODEL -o exported", reader)
        for file in (reader / "exported").iterdir():
            (reader / file.name).symlink_to(file.resolve())
    for command in filter(runs_here, commands(page)):
        if command.startswith("invar chat"):  # it reads messages
            done = subprocess.run(
                [BIN, *shlex.split(command)[1:]], input=b"/quit\n", cwd=reader, capture_output=True
            )
            assert done.returncode == 0, done.stderr
        else:
            type_in(command, reader)


def encoders(folder):
    """The encoder and the reranker of docs/guide/embed.md, and its files."""
    vectors = map(
        json.loads, (ROOT / "tests/families/encoder_vectors.jsonl").read_text().splitlines()
    )
    vectors = {v["name"]: v for v in vectors}
    (folder / "org/name").unlink()
    write_encoder(folder / "org/name", vectors["bert"])
    write_encoder(folder / "org/reranker", vectors["bert-reranker"])
    for name in ("texts.txt", "docs.txt"):
        (folder / name).write_text("Hello world\nBerlin is a large city!\n")
    tokens = execute(["encode", "--model-name", "org/name", "--prompt-text", "hello"], cwd=folder)
    np.save(folder / "ids.npy", np.array([json.loads(tokens.out)]))


def test_the_lie_of_the_readme_is_caught(reader):
    """README shows what a changed receipt and a changed weight give, with digests cut short."""
    truth, lies = (text for _, text in blocks("README.md") if text.startswith("$ "))
    for command in re.findall(r"^\$ invar (.*)$", truth, re.M):
        type_in("invar " + command, reader)
    receipt = (reader / "r.json").read_text()
    (reader / "r.json").write_text(receipt.replace('"ROMEO:"', '"ROMEA:"'))
    answers = [execute(["validate", "r.json"], cwd=reader)]
    (reader / "r.json").write_text(receipt)
    shard = reader / "MODEL" / SHARDS[1]
    data = bytearray(shard.read_bytes())
    header, begin = safetensors_header(shard)
    data[begin + header["model.layers.2.mlp.up_proj.weight"]["data_offsets"][0]] ^= 1
    shard.write_bytes(data)
    (reader / "MODEL/chat_template.jinja").unlink()
    answers.append(execute(["verify", "r.json", "--model-name", "MODEL"], cwd=reader))
    for text, done in zip(re.split(r"^\$ .*\n", lies, flags=re.M)[1:], answers):
        assert done.code == 1
        for line in filter(None, text.splitlines()):
            pattern = re.escape(line.strip()).replace("…", "[0-9a-f]*")
            assert re.search(pattern, done.text), f"{line}\n{done.text}"


@pytest.mark.parametrize("tool", ["anchors", "counts", "operations", "style"])
def test_the_tools_run_alone(tool):
    run = [sys.executable, "-B", ROOT / f"tools/docs/check_{tool}.py"]
    assert subprocess.run([*run, "--self-test"]).returncode == 0
    assert subprocess.run(run).returncode == 0
