"""A whole conversation in the terminal interface: lines, answers as they come, a second turn, what
is no command, a fresh start, and the receipts of the turns."""

import json
import sys
from pathlib import Path

import pytest
from conftest import BIN, invar

sys.path.insert(0, str(Path(__file__).parent))
from terminal import Terminal, missing  # noqa: E402

TEMPLATE = """{% for m in messages %}{{ m['role'] | upper }}:
{{ m['content'] }}

{% endfor %}{% if add_generation_prompt %}ROMEO:
{% endif %}"""


@pytest.mark.parametrize("size", [(60, 15), (100, 28)], ids="60x15 100x28".split())
def test_a_conversation(tmp_path, model, size):
    if missing():
        pytest.skip("tmux or build/bin/invar-tui is not here")
    (model / "chat_template.jinja").write_text(TEMPLATE)
    t = Terminal(tmp_path, "--invar", BIN, "--model-name", model, size=size)

    def say(text, *shown):
        t.type(text)
        t.wait("say ▸ " + text)
        t.keys("Enter")
        return t.wait(*shown, gone=["say ▸ " + text])

    def turn(n):
        return json.loads((tmp_path / f"receipts/turn-{n}.json").read_text())

    try:
        t.wait("F5 run")
        t.keys("Right", "Tab", "Tab", "Tab")
        t.type("16")
        t.wait("--max-new-tokens ──")
        t.keys("F5")
        waiting = t.wait("type below; /help lists more", "Enter say")
        assert "v verify" not in waiting and "e edit" not in waiting  # letters are text
        say("Who art thou?", "> Who art thou?", "after /quit v computes it", "type below")
        first = turn(1)
        assert "v verify" not in say("And why?", "> And why?", "type below")
        second = turn(2)
        t.wait(second["receipt_hash"][-16:])
        chat = json.loads(second["input"]["chat"])["messages"]
        assert [m["role"] for m in chat] == ["user", "assistant", "user"]
        assert chat[1]["content"] == first["output"]["text"]
        say("/reset", "> /reset", "forgotten: the conversation starts over")
        say("/nope", "! /nope: no command of a conversation")
        say("Who art thou?", first["receipt_hash"][-16:], "type below")
        assert turn(3)["receipt_hash"] == first["receipt_hash"]
        say("/quit", "chat: done; what was refused", "not verified yet: v computes it")
        t.keys("v")
        t.wait("VERIFIED", gone=["verifying"])
        t.keys("F4")
        t.wait("3 receipts", "And why?", gone=["\\x0a"])
        t.keys("F10")
        assert t.ended() == (0, True)
    finally:
        t.close()
    assert (
        "VERIFIED" in invar("verify", tmp_path / "receipts/turn-2.json", "--model-name", model).text
    )
