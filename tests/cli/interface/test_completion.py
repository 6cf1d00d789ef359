"""Completion scripts of the shells. bash's is run; of zsh and fish the syntax is checked where they
are installed."""

import shutil
import subprocess

import pytest
from conftest import invar

SCRIPTS = {shell: invar("completion", shell).out.decode() for shell in ("bash", "zsh", "fish")}


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    path = folder / "invar.bash"
    path.write_text(SCRIPTS["bash"])
    (folder / "prompts.jsonl").write_text("")
    (folder / "model").mkdir()
    return path


def complete(script, *words):
    """What bash would offer for the last word, with readline's word breaks at '='."""
    shown = " ".join(f"'{w}'" for w in words)
    code = (
        f"source '{script}'; COMP_WORDS=({shown}); COMP_CWORD={len(words) - 1}; "
        'COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}; _invar; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", code],
        cwd=script.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr, done.stderr
    return set(done.stdout.split())


def test_bash(script):
    assert {"run", "run-all", "verify", "cache"} <= complete(script, "invar", "")
    assert complete(script, "invar", "ver") == {"verify"}
    assert complete(script, "invar", "run", "--max") == {"--max-new-tokens"}
    assert {"--progress", "--model-name"} <= complete(script, "invar", "run", "--")
    assert "--spot" not in complete(script, "invar", "run", "--")
    sets = {"default", "deterministic", "reproducible"}
    assert complete(script, "invar", "run", "--operation-set", "") == sets
    assert complete(script, "invar", "run", "--operation-set", "de") == sets - {"reproducible"}
    assert complete(script, "invar", "run", "--operation-set", "=", "rep") == {"reproducible"}
    assert complete(script, "invar", "--progress", "l") == {"lines"}
    assert complete(script, "invar", "run", "--color", "ne") == {"never"}
    assert complete(script, "invar", "cache", "") == {"list", "prune"}
    assert complete(script, "invar", "cache", "prune", "--max") == {"--max-size"}
    assert complete(script, "invar", "run", "--prompt-file", "p") == {"prompts.jsonl"}
    assert complete(script, "invar", "run", "--model-name", "") == {"model"}
    assert complete(script, "invar", "run", "--prompt-text", "p") == set()
    assert "prompts.jsonl" in complete(script, "invar", "verify", "")
    assert complete(script, "invar", "bench", "ge") == {"gemm"}
    assert complete(script, "invar", "completion", "f") == {"fish"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_syntax(shell, tmp_path):
    text = SCRIPTS[shell]
    assert "max-new-tokens" in text and "progress" in text and "prune" in text
    if not shutil.which(shell):
        return  # the script is read by a shell that is not here
    path = tmp_path / "script"
    path.write_text(text)
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
