"""Chats on the command line: messages become a prompt by the model's template, the receipt binds
them, and verify renders them again (spec/chat.md, receipt.35)."""

import hashlib
import json
import os

import pytest
from conftest import ROOT, execute, invar, refused
from receipt_oracle import reseal

TEMPLATES = ROOT / "tests/chat/templates"
MESSAGES = [{"role": "user", "content": "Who art thou?"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.fixture
def chat_model(model):
    """A copy of the shipped model with a template that shows tools and the switch of thinking."""
    (model / "chat_template.jinja").write_bytes((TEMPLATES / "thinking_tools.jinja").read_bytes())
    return model


@pytest.fixture
def run(chat_model, tasks, tmp_path):
    def f(*args, code=0):
        options = ("--max-new-tokens", 4, "--receipt-path", tmp_path / "r.json")
        done = execute(("run", "--model-name", chat_model, "--tasks-root", tasks, *options, *args))
        assert done.code == code, done.text
        return done

    return f


def file(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_chat_has_a_receipt_that_verifies(run, chat_model, tmp_path):
    messages = file(tmp_path / "m.json", MESSAGES)
    tools = file(tmp_path / "t.json", [TOOL])
    options = (
        "--messages",
        messages,
        "--tools",
        tools,
        "--no-enable-thinking",
        "--system",
        "Be brief.",
    )
    answer = run(*options, "--json").json()
    assert answer["tool_calls"] == [] and answer["content"] == answer["text"]
    receipt = json.loads((tmp_path / "r.json").read_text())
    rendered = invar("render", "--model-name", chat_model, *options).out.decode()
    assert receipt["input"]["prompt"] == rendered
    assert (
        rendered.startswith("<|begin|>system\nBe brief.\n\n# Tools") and '"name": "f"' in rendered
    )
    assert rendered.endswith("<|begin|>assistant\n<think>\n\n</think>\n\n")
    assert json.loads(receipt["input"]["chat"]) == {
        "messages": [{"role": "system", "content": "Be brief."}, *MESSAGES],
        "tools": [TOOL],
        "variables": {"enable_thinking": False},
    }
    assert receipt["input"]["tokens"][0] != 0  # no token of begin: the template writes none
    assert "VERIFIED" in invar("verify", tmp_path / "r.json").text
    # What is bound is all that a run needs.
    again = file(tmp_path / "again.json", receipt["input"]["chat"])
    assert run("--messages", again, "--json").json()["receipt_hash"] == answer["receipt_hash"]


def test_a_forged_chat_is_found(run, tmp_path):
    run("--messages", file(tmp_path / "m.json", MESSAGES))
    receipt = json.loads((tmp_path / "r.json").read_text())
    for chat, finding in [
        ({"messages": [{"role": "user", "content": "Who art he?"}]}, "input.prompt"),
        ({"messages": MESSAGES, "tools": None}, "input.chat"),
        ({"messages": []}, "input.chat"),
    ]:
        receipt["input"]["chat"] = json.dumps(chat, separators=(",", ":"))
        file(tmp_path / "forged.json", reseal(receipt))
        assert finding in invar("verify", tmp_path / "forged.json", code=1).text
    del receipt["input"]["chat"]
    file(tmp_path / "forged.json", reseal(receipt))
    assert "input.tokens" in invar("verify", tmp_path / "forged.json", code=1).text


def test_lines_of_a_prompt_file(run, tmp_path):
    lines = [
        json.dumps("ROMEO:"),
        json.dumps({"messages": MESSAGES, "variables": {"enable_thinking": True}}),
        "{",
        json.dumps({"messages": [{"role": "user"}, 7]}),
        json.dumps({"prompt": "JULIET:"}),
    ]
    args = ("--prompt-file", file(tmp_path / "p.jsonl", "\n".join(lines)))
    done = run(*args, code=2)
    assert [e.split(": ")[1] for e in done.errors] == [
        f"{tmp_path}/p.jsonl:3:1:2",
        f"{tmp_path}/p.jsonl:4",
    ]
    assert "the model has a chat template" in done.text
    for n in (1, 2, 5):
        assert "VERIFIED" in invar("verify", tmp_path / f"r.{n}.json").text
    assert not (tmp_path / "r.3.json").exists()


def test_the_date_is_bound_where_it_shows(run, chat_model, tmp_path):
    messages = file(tmp_path / "m.json", MESSAGES)
    run("--messages", messages)
    assert "date" not in json.loads((tmp_path / "r.json").read_text())["input"]["chat"]
    (chat_model / "chat_template.jinja").write_text(
        "{{ strftime_now('%d %b %Y') }} {{ messages[0].content }}"
    )
    run("--messages", messages)
    assert '"date":"2' in json.loads((tmp_path / "r.json").read_text())["input"]["chat"]
    assert "VERIFIED" in invar("verify", tmp_path / "r.json").text
    dated = ("render", "--model-name", chat_model, "--messages", messages, "--date")
    assert invar(*dated, "2026-03-07T15:04:05").out == b"07 Mar 2026 Who art thou?"
    refused(*dated, "2026-02-30T00:00:00", names=["date"])


@pytest.mark.parametrize(
    "template,messages,code,names",
    [
        ("{% for m in messages %}", MESSAGES, 2, ["default", "line 1", "endfor"]),
        ("a\n{{ x.y }}", MESSAGES, 2, ["line 2", "'x' is undefined"]),
        ("{{ raise_exception('no \\x1b tools') }}", MESSAGES, 2, ["line 1", "no \\x1b tools"]),
        ("{% include 'x' %}", MESSAGES, 3, ["include"]),
        (
            "{% for a in range(99999) %}{% for b in range(999) %}{% endfor %}{% endfor %}",
            MESSAGES,
            3,
            ["steps"],
        ),
        ("", "[", 2, ["m.json:1:2"]),
        ("", "7", 2, ["m.json"]),
        ("", {"messages": MESSAGES, "tool": []}, 2, ["m.json", "tool"]),
        ("", [MESSAGES], 2, ["messages[0]"]),
        ("x", MESSAGES + [{"role": "user", "content": 10**30}], 3, ["messages[1]", "content"]),
        ("{{ (5).real }}", MESSAGES, 3, ["line 1", "'real'", "int"]),
        (
            "{{ raise_exception('ran') }}",
            [{"role": "user", "content": [{"type": "image", "url": "a.png"}]}],
            3,
            ["messages[0]", "content[0]", "image"],
        ),
    ],
)
def test_bad_chats(chat_model, tmp_path, template, messages, code, names):
    (chat_model / "chat_template.jinja").write_text(template)
    path = file(tmp_path / "m.json", messages)
    for command in ("run", "render"):
        refused(command, "--model-name", chat_model, "--messages", path, code=code, names=names)


def test_text_that_is_left_out_is_remarked_upon(run, chat_model, tmp_path):
    (chat_model / "chat_template.jinja").write_text("{{ messages[-1].content }}")
    messages = file(tmp_path / "m.json", [{"role": "system", "content": "Be brief."}, *MESSAGES])
    remark = (
        f"{messages}: the chat template leaves text of the messages out of the prompt: messages[0]"
    )
    for done in (
        invar("render", "--model-name", chat_model, "--messages", messages),
        run("--messages", messages),
    ):
        assert done.text.count(remark) == 1 and "template" in done.text
    lines = tmp_path / "p.jsonl"
    lines.write_text(2 * (json.dumps({"messages": json.loads(messages.read_text())}) + "\n"))
    done = run("--prompt-file", lines)
    assert done.text.count("leaves text of the messages out") == 1
    assert "the same of 1 more prompts" in done.text
    shown = file(tmp_path / "m.json", MESSAGES)
    assert (
        "leaves text" not in invar("render", "--model-name", chat_model, "--messages", shown).text
    )


def test_the_folder_that_a_sender_chose(chat_model, tmp_path):
    """verify says that it opens it, and its template stays within the meter."""
    doubled = (
        "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
        "{{ n.x == n.x|list }}"
    )
    (chat_model / "chat_template.jinja").write_text("{{ messages[0].content }}")
    messages = file(tmp_path / "m.json", MESSAGES)
    receipt = tmp_path / "r.json"
    options = ("--max-new-tokens", 2, "--receipt-path", receipt, "--record-model-path")
    done = execute(("run", "--model-name", chat_model, "--messages", messages, *options))
    assert done.code == 0, done.text
    fresh = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    said = f"the receipt's sender chose the folder {chat_model}"
    done = execute(("verify", receipt), env=fresh)
    assert done.code == 0 and said in done.text, done.text
    (chat_model / "chat_template.jinja").write_text(doubled)
    bound = json.loads(receipt.read_text())
    bound["model"]["chat_template"] = hashlib.sha256(doubled.encode()).hexdigest()
    file(receipt, reseal(bound))
    done = execute(("verify", receipt), env=fresh)
    assert done.code == 3 and said in done.text and "20000000 steps" in done.text, done.text


def test_bad_options(chat_model, model, tmp_path):
    messages = file(tmp_path / "m.json", MESSAGES)
    chat = ("render", "--model-name", chat_model, "--messages", messages)
    refused(*chat, "--tools", file(tmp_path / "t.json", {}), names=["t.json", "list"])
    refused(*chat, "--tools", tmp_path / "none.json", names=["none.json"])
    refused(*chat, "--enable-thinking", "--no-enable-thinking", names=["enable-thinking"])
    text = ("run", "--model-name", chat_model, "--prompt-text", "A")
    refused(*text, "--tools", tmp_path / "t.json", names=["--tools"])
    refused(*text, "--messages", messages, names=["--messages"])
    (model / "chat_template.jinja").unlink()
    refused(*chat, names=["no chat template"])
