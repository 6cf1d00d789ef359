"""What a terminal shows: colours where they are wanted, lines that fit, bars that go away."""

import os
import re

import pseudo_terminal
import pytest
from conftest import MODEL, execute, invar

WIDTH = 60


def on_terminal(*args, width=WIDTH, **env):
    """-> (exit code, text) of the program on a terminal of this width."""
    env = {"TERM": "xterm", "HOME": "/nonexistent", "PATH": os.environ["PATH"],
           "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"], **env}  # fmt: skip
    code, out = pseudo_terminal.on_terminal(*args, env=env, width=width)
    return code, out.decode()


def shown(text):
    """The lines as a reader sees them in the end: bars are overwritten, colours are none."""
    lines = [line.rstrip("\r").split("\r\x1b[K")[-1] for line in text.split("\n")]
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]


@pytest.mark.parametrize(
    "env,options,coloured",
    [
        ({}, [], True),
        ({"NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": ""}, [], True),
        ({"TERM": "dumb"}, [], False),
        ({}, ["--color", "never"], False),
        ({"NO_COLOR": "1"}, ["--color=always"], True),
    ],
)
def test_colours(answer, env, options, coloured):
    code, text = on_terminal("validate", answer["receipt"], *options, **env)
    assert code == 0 and "VALID" in text
    assert ("\x1b[1;32mVALID\x1b[0m" in text) == coloured
    code, text = on_terminal("run", "--modle", *options, **env)
    assert code == 2 and ("\x1b[1;31minvar:\x1b[0m" in text) == coloured
    piped = execute(["validate", answer["receipt"], *options])
    assert (b"\x1b[" in piped.out) == ("--color=always" in options)


def test_lines_fit(answer, tmp_path):
    code, text = on_terminal("verify", answer["receipt"], "--model-name", MODEL)
    lines = shown(text)
    assert code == 0 and any(line.startswith("VERIFIED") for line in lines)
    digests = [line for line in lines if re.search(r"[0-9a-f]{16}…", line)]
    assert digests and all(len(line) <= WIDTH for line in digests)
    # Nothing is cut where there is room, in a pipe, or where everything is asked for.
    whole = re.search(
        rb"[0-9a-f]{64}", invar("verify", answer["receipt"], "--model-name", MODEL).out
    )
    assert whole
    for more in (["--verbose"], []):
        _, text = on_terminal(
            "verify", answer["receipt"], "--model-name", MODEL, *more, width=60 if more else 200
        )
        assert whole[0].decode() in text


def test_home_is_short(answer, tmp_path):
    home = answer["receipt"].parent
    _, text = on_terminal("validate", answer["receipt"], HOME=str(home))
    assert f"VALID  ~/{answer['receipt'].name}" in shown(text)[0]


def test_bars_go_away(tmp_path):
    args = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", 4]
    args += ["--receipt-path", tmp_path / "r.json"]
    code, text = on_terminal(*args)
    assert code == 0 and "\r\x1b[K" in text
    lines = shown(text)
    assert not any("…" in line and "load" in line for line in lines)
    assert any("ROMEO:" in line for line in lines), lines
    code, text = on_terminal(*args, "--progress", "none")
    assert code == 0 and "\x1b[K" not in text
    code, text = on_terminal(*args, "--progress", "lines")
    assert code == 0 and "\x1b[K" not in text and "  load " in text


def test_quiet_and_verbose(tmp_path):
    args = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", 4]
    args += ["--receipt-path", tmp_path / "r.json"]
    plain, quiet, verbose = (invar(*args, *o) for o in ([], ["--quiet"], ["-v"]))
    assert plain.out == quiet.out == verbose.out and not quiet.err
    assert b"  seal " in verbose.err and b"  decode " in verbose.err
    assert b"  seal " not in plain.err and b"  load " in plain.err
    bars = invar(*args, "--progress", "bar")
    assert b"\r\x1b[K" in bars.err
    nothing = invar(*args, "--progress=none")
    assert b"  load " not in nothing.err and b"  hash " in nothing.err


def test_help_has_the_width_of_the_terminal():
    for width in (50, 100, 200):
        _, text = on_terminal("run", "--help", width=width)
        lines = [line.rstrip("\r") for line in text.split("\nExamples")[0].split("\n")]
        assert max(map(len, lines)) <= min(width, 100)
        if width > 50:
            assert max(map(len, lines)) > 80
