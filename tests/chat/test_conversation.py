"""invar chat: a conversation has the answers and receipts that `invar run --messages` gives for the
same history, although what the memory holds already is not computed again."""

import json
import subprocess

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
