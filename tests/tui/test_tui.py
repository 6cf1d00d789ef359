"""The terminal interface in a real terminal (tmux), with the real program and the shipped model;
and with a program that prints what `invar` prints only when something is odd."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import BIN, MODEL

sys.path.insert(0, str(Path(__file__).parent))
from terminal import PATIENCE, PROGRAM, Terminal, missing  # noqa: E402

FAKE = Path(__file__).parent / "fake_invar.py"


@pytest.fixture
def open_terminal(tmp_path):
    if missing():
        pytest.skip("tmux or build/bin/invar-tui is not here")
    opened = []

    def start(*arguments, **options):
        opened.append(Terminal(tmp_path, *arguments, **options))
        opened[-1].wait("F2 Form", "F1 help")
        return opened[-1]

    yield start
    for t in opened:
        t.close()


def start_odd(t, name):
    """Runs the fake program with a prompt that says what it does."""
    t.keys("F2", "C-u")
    t.type(name)
    t.keys("F5")


@pytest.fixture
def odd(open_terminal):
    t = open_terminal("--invar", FAKE, "--model-name", "acme/tiny")
    t.keys("Tab", "Tab", "Tab")  # from the command to the prompt
    t.wait("--prompt-text ────")
    return t


def processes_of(folder):
    """Programs that were started in the folder, but for the shell of the terminal."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                found.append((entry / "cmdline").read_bytes().split(b"\0")[0].decode())
        except OSError:
            continue
    return sorted(p for p in found if not re.search(r"(bash|dash|sh|sleep|tmux)$", p))


# --- the real program -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 50)], ids="60x15 80x24 200x50".split())
def test_run_and_verify(open_terminal, tmp_path, size):
    t = open_terminal("--invar", BIN, "--model-name", MODEL, size=size)
    t.keys("Tab", "Tab", "Tab")
    t.type("ROMEO:")
    t.keys("Tab")
    t.type("24")
    t.wait("--max-new-tokens ───")
    t.keys("F5")
    t.wait("run: done", "not verified yet")
    receipt = json.loads((tmp_path / "receipts/run-1.json").read_text())
    screen = t.wait(receipt["receipt_hash"][-16:])
    assert receipt["input"]["max_new_tokens"] == 24
    for line in receipt["output"]["text"].split("\n"):
        assert line[:40].strip() in screen
    t.keys("v")
    t.wait("VERIFIED")
    # The browser of receipts knows the verdict, and finds a receipt that was changed.
    receipt["output"]["text"] += "!"
    (tmp_path / "receipts/changed.json").write_text(json.dumps(receipt))
    os.utime(tmp_path / "receipts/changed.json", (1, 1))  # the older of the two
    t.keys("F4")
    t.wait("2 receipts", "VERIFIED", receipt["receipt_hash"][:8])
    t.keys("Down", "v")
    t.wait("FAILED")
    t.keys("F10")
    assert t.ended() == (0, True)
    # The next session begins with this form.
    saved = tmp_path / "config/invar/tui.json"
    assert json.loads(saved.read_text())["prompt"] == "ROMEO:"
    assert saved.stat().st_mode & 0o077 == 0


def test_what_invar_refuses(open_terminal):
    t = open_terminal("--invar", BIN, "--model-name", "/nowhere/model")
    t.keys("F5")
    t.wait("exit code 2", "/nowhere/model")
    t.keys("F10")
    assert t.ended() == (0, True)


def test_nothing_is_saved_before_a_run(open_terminal, tmp_path):
    t = open_terminal("--invar", BIN)
    t.type("/some/model")
    t.keys("F10")
    assert t.ended() == (0, True)
    assert not (tmp_path / "config").exists()


def test_invar_starts_it(tmp_path):
    done = subprocess.run([BIN, "tui"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("invar-tui: standard input and output are not both a terminal")


# --- a program with odd events --------------------------------------------------------------------


def test_odd_events(odd):
    start_odd(odd, "odd")
    screen = odd.wait("the last line", "日本語")
    assert "\\x1b[31mred\\x1b[0m \\u{202e}turned 日本語 e\u0301 \U0001f600" in screen
    assert "a line that is no event: \\x1b[2J\\x1b]0;title\\x07" in screen
    assert "run: done" in odd.wait("run: done")


def test_stop(odd, tmp_path):
    start_odd(odd, "forever")
    odd.wait("t9 ", "tokens/s")
    odd.keys("C-c")
    odd.wait("run: stopped: no receipt")
    # One that does not obey is ended.
    start_odd(odd, "deaf")
    odd.wait("decode 1 of 2")
    odd.keys("F6")
    odd.wait("F6 once more")
    odd.keys("F6")
    odd.wait("run: stopped: no receipt")
    assert processes_of(tmp_path) == [str(PROGRAM)]
    # Leaving stops what runs.
    start_odd(odd, "forever")
    odd.wait("t9 ")
    odd.keys("F10")
    odd.wait("stop it and leave?")
    odd.keys("y")
    assert odd.ended() == (0, True)
    assert processes_of(tmp_path) == []


def test_crash_and_refusal(odd):
    start_odd(odd, "crash")
    odd.wait("ended by signal 11", "load")
    start_odd(odd, "refused")
    odd.wait("exit code 3: rope: this scaling is not covered", "see models")
    start_odd(odd, "flood")
    odd.wait("run: done", "line 2999 of the flood", "log 2999")
    odd.keys("Home")
    odd.wait("line 0 of the flood")


@pytest.mark.parametrize(
    "number",
    [
        *(signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
        *(signal.SIGALRM, signal.SIGRTMIN, signal.SIGSEGV, signal.SIGSYS, signal.SIGKILL),
    ],
)
def test_signals(odd, tmp_path, number):
    start_odd(odd, "forever")
    odd.wait("t3 ")
    os.kill(odd.pid(), number)
    code, as_before = odd.ended()
    assert code == 128 + number
    if number != signal.SIGKILL:  # which no program sees
        assert as_before
        assert "F1 help" not in odd.screen()  # the screen that was there before is back
    end = time.monotonic() + PATIENCE
    while processes_of(tmp_path) and time.monotonic() < end:
        time.sleep(0.05)
    assert processes_of(tmp_path) == []


def test_resize_and_mouse(open_terminal):
    t = open_terminal("--invar", FAKE, "--model-name", "acme/tiny")
    t.resize(60, 15)
    t.wait("▼")
    t.resize(200, 50)
    t.wait("─ command ──", gone=["▼"])
    t.resize(20, 5)
    t.wait("The terminal is")
    t.resize(80, 24)
    screen = t.wait("F4 Receipts", gone=["The terminal is"])
    t.press(screen.split("\n")[0].index("F4 Receipts"), 0)
    t.wait("0 receipts")
    t.press(9, 0)
    row = next(
        i for i, line in enumerate(t.wait("operation set").split("\n")) if "operation set" in line
    )
    t.press(20, row)
    t.wait("--operation-set ──")
    t.press(20, row)
    t.wait("deterministic")
    t.keys("d", "Enter")
    t.wait("‹ deterministic ›")


def test_paste_and_editing(odd):
    odd.tmux("set-buffer", "two\nlines\x07 日本")
    odd.tmux("paste-buffer", "-p", "-t", "t")
    screen = odd.wait("1 control characters were left out", "lines 日本")
    assert "--prompt-text 'two\\x0alines 日本'" in screen.replace("\n   ", " ")


@pytest.mark.parametrize("set_to, coloured", [("1", False), ("", True)])
def test_no_color(open_terminal, set_to, coloured):
    t = open_terminal("--invar", FAKE, NO_COLOR=set_to)
    escapes = set(re.findall(r"\x1b\[([0-9;]*)m", t.screen(colours=True)))
    codes = {int(c) for e in escapes for c in e.split(";") if c}
    assert any(30 <= c <= 48 and c != 39 for c in codes) == coloured
    assert 7 in codes or coloured  # without colours the focus is still seen


@pytest.mark.parametrize(
    "term, why",
    [("dumb", "cannot move a cursor"), ("no-such", "no terminal that"), ("", "TERM is not set")],
)
def test_terminals_that_cannot(tmp_path, term, why):
    t = Terminal(tmp_path, "--invar", FAKE, TERM=term)
    try:
        assert t.ended() == (2, True)
        assert why in t.screen().replace("\n", "")
    finally:
        t.close()


def test_bad_arguments(tmp_path):
    for words, why in [(["--modle", "x"], "--modle"), (["x"], "x")]:
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith("invar-tui: ") and why in done.stderr
        assert done.stderr.count("\n") == 1
