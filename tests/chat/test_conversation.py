"""invar chat: a conversation has the answers and receipts that `invar run --messages` gives for the
same history, although what the memory holds already is not computed again."""

import ctypes
import fcntl
import json
import os
import pty
import select
import stat
import subprocess
import termios
import time

import pytest
from conftest import BIN, ROOT, Done, execute, invar, refused

TEMPLATES = ROOT / "tests/chat/templates"


@pytest.fixture
def chat(model, tasks, tmp_path):
    (model / "chat_template.jinja").write_bytes((TEMPLATES / "chatml.jinja").read_bytes())

    def f(text, *args, code=0):
        command = [BIN, "chat", "--model-name", model, "--tasks-root", tasks]
        command += ["--max-new-tokens", 12, "--receipts", tmp_path / "receipts", *args]
        done = Done(
            subprocess.run(
                [str(c) for c in command], input=text.encode(), capture_output=True, timeout=300
            )
        )
        assert done.code == code, done.text
        return done

    return f


class Typist:
    """A person at a terminal. `args`: further options of `invar chat`."""

    def __init__(self, model, tasks, folder, *args, term="xterm"):
        self.state, self.edits = folder / "state/invar/chat-history", term != "dumb"
        env = {**os.environ, "TERM": term, "XDG_STATE_HOME": str(folder / "state")}
        command = [BIN, "chat", "--model-name", model, "--tasks-root", tasks, "--receipts"]
        command += [folder / "receipts", "--max-new-tokens", 2, *args]
        self.terminal, slave = pty.openpty()
        self.process = subprocess.Popen(
            [str(c) for c in command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C is of this terminal
        )
        os.close(slave)
        self.seen = b""

    def wait(self, text, patience=120):
        """Reads until the terminal shows the text, and forgets what came before its end."""
        end = time.monotonic() + patience
        while text not in self.seen:
            assert select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0], (
                self.seen
            )
            try:
                part = os.read(self.terminal, 1 << 16)
            except OSError:
                part = b""
            assert part, self.seen
            self.seen += part
        self.seen = self.seen.split(text, 1)[1]

    def prompted(self):
        """Waits for the prompt, and until its editor gets keys as they come: libedit shows the prompt
        first."""
        self.wait(b"> ")
        end = time.monotonic() + 120
        while self.edits and termios.tcgetattr(self.terminal)[3] & termios.ICANON:
            assert time.monotonic() < end, "the terminal still edits lines itself"
            time.sleep(0.001)

    def type(self, keys):
        os.write(self.terminal, keys)

    def leave(self):
        self.prompted()
        self.type(b"/quit\r")
        code = self.process.wait(timeout=60)
        os.close(self.terminal)
        return code

    def history(self):
        return self.state.read_text().splitlines() if self.state.exists() else []


@pytest.fixture
def typist(model, tasks, tmp_path):
    (model / "chat_template.jinja").write_bytes((TEMPLATES / "chatml.jinja").read_bytes())
    return lambda *args, **how: Typist(model, tasks, tmp_path, *args, **how)


def receipt(tmp_path, n):
    return json.loads((tmp_path / f"receipts/turn-{n}.json").read_text())


def test_turns_are_those_of_run(chat, model, tasks, tmp_path):
    lines = "Who art thou?\n/save {0}/one.json\nAnd\\\nwhy?\n\nFarewell.\n/save {0}/three.json\n/quit\nno\n"
    done = chat(
        lines.format(tmp_path), "--system", "Be brief.", "--temperature", "0.9", "--seed", 5
    )
    answers = [receipt(tmp_path, n)["output"]["text"] for n in (1, 2, 3)]
    assert done.out.decode() == "".join(a + "\n" for a in answers)
    assert not (tmp_path / "receipts/turn-4.json").exists()
    messages = json.loads((tmp_path / "three.json").read_text())
    assert [m["role"] for m in messages] == ["system"] + ["user", "assistant"] * 3
    assert messages[3]["content"] == "And\nwhy?"
    assert [m["content"] for m in messages[2::2]] == answers
    assert json.loads((tmp_path / "one.json").read_text()) == messages[:3]
    for n in (1, 2, 3):
        (tmp_path / "m.json").write_text(json.dumps(messages[: 2 * n], ensure_ascii=False))
        execute(
            ("run", "--model-name", model, "--tasks-root", tasks, "--max-new-tokens", 12)
            + ("--messages", tmp_path / "m.json", "--temperature", "0.9", "--seed", 5)
            + ("--receipt-path", tmp_path / "r.json")
        )
        alone = json.loads((tmp_path / "r.json").read_text())
        assert alone["receipt_hash"] == receipt(tmp_path, n)["receipt_hash"]
    assert "VERIFIED" in invar("verify", tmp_path / "receipts/turn-3.json").text


def test_reset_and_system(chat, tmp_path):
    chat("A\nB\n/reset\nA\n/system S\nA\n/reset\nA\n")
    one, two, three, four, five = (receipt(tmp_path, n) for n in range(1, 6))
    assert one["receipt_hash"] == three["receipt_hash"] != two["receipt_hash"]
    assert four["receipt_hash"] == five["receipt_hash"]
    assert json.loads(four["input"]["chat"])["messages"][0] == {"role": "system", "content": "S"}
    chat("A\n")  # receipts that are there stay
    assert receipt(tmp_path, 6)["receipt_hash"] == one["receipt_hash"]


def test_what_goes_wrong_in_a_turn(chat, model, tmp_path):
    done = chat("/nope\n\x1b\xff\nA\n".encode("latin-1").decode("latin-1") + "/help\n", code=2)
    assert "/help lists them" in done.errors[0] and "/reset" in done.text
    done = chat("word " * 300 + "\nA\n", "--context", 64, code=2)
    assert "--context" in done.errors[0]
    (model / "chat_template.jinja").write_text("{% if messages|length > 2 %}{{ x.y }}{% endif %}A")
    done = chat("A\nB\n", code=2)
    assert "'x' is undefined" in done.errors[0]
    (model / "chat_template.jinja").unlink()
    refused("chat", "--model-name", model, names=["no chat template"])


def test_lines_are_edited_and_come_back(typist, tmp_path):
    ctypes.CDLL("libedit.so.2")  # ./setup.sh installs it
    t = typist()
    t.prompted()
    t.type("ope\u00e4".encode() + b"\x7f" + b"\x01/n\r")  # a letter goes, two come in front
    t.wait(b"/nope: no command of a conversation")
    t.prompted()
    t.type(b" a secret\r")
    t.wait(b"receipt")
    assert t.leave() == 2  # that of /nope
    assert t.history() == ["/nope", "/quit"]
    assert stat.S_IMODE(t.state.stat().st_mode) == 0o600
    said = json.loads(receipt(tmp_path, 1)["input"]["chat"])["messages"]
    assert said == [{"role": "user", "content": " a secret"}]

    t = typist()
    t.prompted()
    t.type(b"\x1b[A\x1b[A!\r")  # two lines up
    t.wait(b"/nope!: no command of a conversation")
    t.prompted()
    t.type(b"\x12ope!\r\r")  # searched for
    t.wait(b"/nope!: no command of a conversation")
    assert t.leave() == 2
    assert t.history() == ["/nope", "/quit", "/nope!", "/quit"]

    t = typist("--no-history")
    t.prompted()
    t.type(b"\x1b[A/mine\r")
    t.wait(b"/mine: no command of a conversation")
    assert t.leave() == 2 and len(t.history()) == 4


def test_a_terminal_that_cannot_edit(typist):
    t = typist(term="dumb")
    t.prompted()
    t.type(b"/nope\r")
    t.wait(b"/nope: no command of a conversation")
    assert t.leave() == 2 and t.history() == []


def test_ctrl_c_leaves_the_terminal_as_it_was(typist):
    t = typist()
    before = termios.tcgetattr(t.terminal)
    t.prompted()
    t.type(b"half a line")
    t.wait(b"half a line")
    t.type(b"\x03")
    t.process.wait(timeout=60)
    assert termios.tcgetattr(t.terminal) == before


def test_an_answer_that_is_cut(chat, model, tmp_path):
    """Without --max-new-tokens an answer may take the rest of the context; a remark says why one
    ends before the model has ended it."""
    assert "cut" in chat("A\n").text and "--max-new-tokens" in chat("A\n").text
    command = [BIN, "chat", "--model-name", model, "--receipts", tmp_path / "receipts"]
    command += ["--context", "64", "--no-generation-config"]
    done = subprocess.run([str(c) for c in command], input=b"A\n", capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    one = receipt(tmp_path, 3)
    tokens = len(one["input"]["tokens"]) + one["input"]["max_new_tokens"]
    assert tokens == 64
    if one["output"]["finish_reason"] == "length":
        assert b"cut" in done.stderr and b"--context" in done.stderr
