"""Answers that fit a form (spec/grammar.md), from the server, the command line and Python: one
receipt each, which is verified; what is outside is refused by name."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import jsonschema
import pytest
from conftest import MODEL, invar
from receipt_oracle import reseal
from server import Server
from test_serve import GREEDY, HELLO, model, only_receipt, run, server  # noqa: F401

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["good", "bad"]}, "maxItems": 2},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    },
    "required": ["name", "age", "next"],
    "additionalProperties": False,
}
SHORT = {"type": "array", "items": {"type": "string", "pattern": "^[a-z]{1,6}$"}, "minItems": 2}


def form(schema, **more):
    schema = {"name": "x", "schema": schema, **more}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def drawn(seed, **more):
    return {"prompt": "ROMEO:", "max_tokens": 200, "temperature": 0.9, "seed": seed, **more}


def test_answers_fit_their_schemas_whoever_else_asks(server, run, tmp_path):  # noqa: F811
    schemas = [PERSON, {**SHORT, "maxItems": 3}, {"enum": ["a", 1]}, {"type": "number"}]
    bodies = [drawn(i, **form(schemas[i % 4], strict=i % 2 == 0)) for i in range(12)]
    with ThreadPoolExecutor(12) as clients:
        answers = list(clients.map(server.complete, bodies))
    ended = 0
    for i, answer in enumerate(answers):
        choice = answer["choices"][0]
        if choice["finish_reason"] == "stop":
            jsonschema.validate(json.loads(choice["text"]), schemas[i % 4])
            ended += 1
    assert ended >= 8
    (tmp_path / "s.json").write_text(json.dumps(PERSON, indent=1))
    common = ["--temperature", 0.9, "--seed", 4, "--prompt-text", "ROMEO:"]
    text = run(*common, "--max-new-tokens", 200, "--json-schema", tmp_path / "s.json")
    assert server.receipt(only_receipt(answers[4])) == text
    checked = server.ask("/v1/receipts/verify", text)
    assert checked["verdict"] == "VERIFIED", checked


def test_a_receipt_with_a_form_is_computed_again(server, model, tasks, tmp_path):  # noqa: F811
    answer = server.complete(drawn(3, structured_outputs={"regex": "(thee|thou){2}!"}))
    assert answer["choices"][0]["text"] in {
        a + b + "!" for a in ("thee", "thou") for b in ("thee", "thou")
    }
    receipt = json.loads(server.receipt(only_receipt(answer)))
    assert receipt["input"]["structured_outputs"] == '{"grammar":1,"regex":"(thee|thou){2}!"}'
    path = tmp_path / "r.json"
    verify = ["verify", "--model-name", model, "--tasks-root", tasks, path]
    path.write_bytes(server.receipt(only_receipt(answer)))
    assert "VERIFIED" in invar(*verify).text
    for other, word in (
        ("(thee|Thou){2}!", "output.tokens"),
        (None, "output.tokens"),
        ("(", "structured"),
    ):
        forged = json.loads(json.dumps(receipt))
        forged["input"].pop("structured_outputs")
        if other:
            text = json.dumps({"grammar": 1, "regex": other}, separators=(",", ":"))
            forged["input"]["structured_outputs"] = text
        path.write_text(json.dumps(reseal(forged)))
        assert word in invar(*verify, code=1).text, other


def test_choice_objects_and_the_end(server):  # noqa: F811
    answer = server.complete(
        drawn(1, structured_outputs={"choice": ["yes", "no"]}, n=3, logprobs=0)
    )
    assert {c["text"] for c in answer["choices"]} <= {"yes", "no"}
    assert all(c["finish_reason"] == "stop" for c in answer["choices"])
    answer = server.complete(drawn(1, **form({"type": "string", "minLength": 30}), max_tokens=3))
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["text"].startswith('"')
    answer = server.complete(drawn(1, response_format={"type": "json_object"}, max_tokens=300))
    assert answer["choices"][0]["text"].startswith("{")
    whole = drawn(2, **form({"const": {"a": [1, "x"]}}))
    as_llama = whole | {
        "response_format": {"type": "json_object", "schema": {"const": {"a": [1, "x"]}}}
    }
    assert server.complete(as_llama)["invar"] == server.complete(whole)["invar"]
    pieces = [e["choices"][0]["text"] for e in server.stream(whole) if e["choices"]]
    assert "".join(pieces) == '{"a":[1,"x"]}' == server.complete(whole)["choices"][0]["text"]


def test_a_call_that_is_asked_for(server):  # noqa: F811
    def tool(name, parameters):
        return {"type": "function", "function": {"name": name, "parameters": parameters}}

    city = {
        "type": "object",
        "properties": {"city": {"enum": ["Rome", "Verona"]}},
        "required": ["city"],
    }
    tools = [
        tool("weather", {**city, "additionalProperties": False}),
        tool("leave", {"type": "null"}),
    ]
    body = {"messages": HELLO, "tools": tools, "max_tokens": 100, "temperature": 1}
    named = {"type": "function", "function": {"name": "weather"}}
    for choice, names in (("required", {"weather", "leave"}), (named, {"weather"})):
        for seed in range(3):
            answer = server.complete({**body, "seed": seed, "tool_choice": choice}, chat=True)
            (call,) = answer["choices"][0]["message"]["tool_calls"]
            assert call["function"]["name"] in names
            arguments = json.loads(call["function"]["arguments"])
            assert arguments is None or arguments["city"] in ("Rome", "Verona")
            assert answer["choices"][0]["finish_reason"] == "tool_calls"
    counts = set()
    bias = {str(server.ask("/tokenize", {"prompt": "]"})["tokens"][-1]): 10}  # it likes commas more
    for seed in range(5):
        several = {**body, "seed": seed, "tool_choice": "required", "parallel_tool_calls": True}
        several["logit_bias"] = bias
        answer = server.complete({**several, "max_tokens": 200}, chat=True)
        if answer["choices"][0]["finish_reason"] == "length":
            continue  # a list that was cut
        calls = answer["choices"][0]["message"]["tool_calls"]
        counts.add(len(calls))
        assert all(c["function"]["name"] in {"weather", "leave"} for c in calls)
        assert len({c["id"] for c in calls}) == len(calls)
        receipt = server.receipt(only_receipt(answer))
        assert '"several":true' in json.loads(receipt)["input"]["structured_outputs"]
        assert server.ask("/v1/receipts/verify", receipt)["verdict"] == "VERIFIED"
    assert max(counts) > 1
    one = server.complete(
        {**body, "tool_choice": "required", "parallel_tool_calls": False}, chat=True
    )
    assert len(one["choices"][0]["message"]["tool_calls"]) == 1
    for choice, words in (
        ("any", "auto, none, required"),
        ({"type": "function", "function": {"name": "x"}}, '"x"'),
    ):
        error = server.ask("/v1/chat/completions", {**body, "tool_choice": choice}, 400)["error"]
        assert words in error["message"] and error["param"] == "tool_choice"


def test_parse_of_the_client_of_openai(server):  # noqa: F811
    try:
        import openai
        import pydantic
    except ImportError:
        pytest.skip("the client openai is not installed")

    class Step(pydantic.BaseModel):
        to: Literal["Rome", "Verona"]
        days: int = pydantic.Field(ge=1, le=9)

    class Plan(pydantic.BaseModel):
        steps: list[Step] = pydantic.Field(max_length=2)
        last: Step | None

    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none")
    for seed in range(3):
        asked = {"messages": HELLO, "seed": seed, "max_completion_tokens": 200, "temperature": 1}
        done = client.chat.completions.parse(model="shakespeare-4m", response_format=Plan, **asked)
        plan = done.choices[0].message.parsed
        assert len(plan.steps) <= 2 and all(1 <= s.days <= 9 for s in plan.steps)


REFUSED = [
    (form({"type": "string", "format": "date"}), '"format"'),
    (form({"oneOf": [{}]}), '"oneOf"'),
    (form({"$ref": "#"}), "circle"),
    (form(False), "no answer fits"),
    ({"response_format": {"type": "xml"}}, "json_schema is needed"),
    ({"response_format": {"type": "json_schema"}}, "schema"),
    ({"response_format": {"type": "json_object", "x": 1}}, "response_format.x"),
    ({"structured_outputs": {"grammar": "root ::= 'a'"}}, "structured_outputs.grammar"),
    ({"structured_outputs": {"regex": "(?<=a)"}}, "a group"),
    ({"structured_outputs": {"choice": ["a"]}, **form({})}, "leave one of them out"),
    ({"stop_token_ids": [-1]}, "stop_token_ids"),
    ({"stop_token_ids": [999999]}, "999999"),
    ({"allowed_token_ids": [999999]}, "999999"),
    ({"bad_words": [" "]}, "empty"),
]


def test_refusals(server):  # noqa: F811
    for more, words in REFUSED:
        error = server.ask("/v1/completions", {**GREEDY, **more}, 400)["error"]
        assert words in error["message"] and "\n" not in error["message"], (more, error)
    # Hostile ones (ggml-org/llama.cpp#26600 and others) are refused as well.
    deep = b'{"type":"array","items":' * 60000
    for body in (
        {"structured_outputs": {"regex": "(" * 60000 + "a" + ")" * 60000}},
        {"structured_outputs": {"regex": "((a{1,4000}){1,4000}){1,4000}"}},
        form({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#"}}}),
        form({"type": "array", "items": {"enum": [str(i) for i in range(150000)]}}),
    ):
        server.ask("/v1/completions", {**GREEDY, **body}, 400)
    text = (
        json.dumps({**GREEDY, **form("DEEP")})
        .encode()
        .replace(b'"DEEP"', deep + b"{}" + b"}" * 60000)
    )
    server.ask("/v1/completions", text, 400)
    # Other settings leave nothing: an error of the request, and of nobody else.
    server.ask(
        "/v1/completions", {**GREEDY, "min_tokens": 9, "structured_outputs": {"choice": ["a"]}}, 400
    )
    assert server.complete(GREEDY)["choices"][0]["text"]


def test_tokens_that_end_and_tokens_that_come(server, run, model, tasks, tmp_path):  # noqa: F811
    free = server.complete({**GREEDY, "return_token_ids": True})["choices"][0]["token_ids"]
    stop = free[5]
    body = {**GREEDY, "stop_token_ids": [stop, 1], "ignore_eos": True}
    answer = server.complete({**body, "return_token_ids": True})
    assert answer["choices"][0]["token_ids"] == free[: free.index(stop) + 1]
    options = ["--prompt-text", "ROMEO:", "--max-new-tokens", 24, "--no-do-sample"]
    receipt = run(*options, "--stop-token-ids", f"1,{stop}", "--ignore-eos")
    assert server.receipt(only_receipt(answer)) == receipt
    stated = json.loads(receipt)
    assert stated["input"]["stop_tokens"] == stated["input"]["stop_token_ids"] == sorted({1, stop})
    allowed = sorted(free[:4])
    answer = server.complete({**GREEDY, "allowed_token_ids": allowed, "return_token_ids": True})
    assert set(answer["choices"][0]["token_ids"]) <= set(allowed)
    assert "bad_words" not in json.loads(receipt)["input"]
    word = server.complete(GREEDY)["choices"][0]["text"].split()[0]
    worded = server.complete({**GREEDY, "bad_words": [word]})
    assert word not in worded["choices"][0]["text"].split()
    for made in (
        receipt,
        server.receipt(only_receipt(answer)),
        server.receipt(only_receipt(worded)),
    ):
        assert server.ask("/v1/receipts/verify", made)["verdict"] == "VERIFIED"
    path = tmp_path / "r.json"
    for change in ({"ignore_eos": None}, {"stop_token_ids": [stop]}):
        forged = json.loads(receipt)
        forged["input"] |= change
        forged["input"] = {k: v for k, v in forged["input"].items() if v is not None}
        path.write_text(json.dumps(reseal(forged)))
        verify = ["verify", "--model-name", model, "--tasks-root", tasks, path]
        assert "input.stop_tok" in invar(*verify, code=1).text


THINKING = """{%- for m in messages %}{{ m.content + "\n" }}{% endfor %}
{%- if open %}<think>\n{% endif %}{# </think> <tool_call> #}"""


@pytest.fixture(scope="module")
def thinking(tmp_path_factory):
    """A model with the tokens <think> and </think>, in the places of the last two merges."""
    folder = tmp_path_factory.mktemp("thinking") / "model"
    shutil.copytree(MODEL, folder)
    read = json.loads((folder / "tokenizer.json").read_text())
    vocabulary, merges, added = (
        read["model"]["vocab"],
        read["model"]["merges"],
        read["added_tokens"],
    )
    for content in ("<think>", "</think>"):
        token = vocabulary.pop("".join(merges.pop()))
        vocabulary[content] = token
        added.append({**added[0], "id": token, "content": content, "special": False})
    added.sort(key=lambda t: t["id"])
    (folder / "tokenizer.json").write_text(json.dumps(read))
    (folder / "chat_template.jinja").write_text(THINKING)
    return folder, vocabulary["<think>"], vocabulary["</think>"]


def test_a_form_begins_after_the_reasoning(thinking, tasks, tmp_path):
    folder, start, end = thinking
    path, messages = tmp_path / "r.json", tmp_path / "m.json"
    where = ["--model-name", folder, "--tasks-root", tasks]
    asked = ["run", *where, "--messages", messages, "--receipt-path", path]
    asked += ["--structured-outputs", '{"choice": ["yes", "no"]}']
    ending = ["--short-circuit-length", 4, "--short-circuit-token", end]
    # The template opens the reasoning; the model opens it; the model answers at once.
    for variables, options, bound, tokens in (
        ({"open": True}, ending, [end], 5),
        ({}, [*ending, "--logit-bias", f"{start}:100"], [start, end], 5),
        ({}, ["--logit-bias", f"{start}:-100"], [start, end], 0),
    ):
        chat = {"messages": [{"role": "user", "content": "Who art thou?"}], "variables": variables}
        messages.write_text(json.dumps(chat))
        invar(*asked, *options)
        receipt = json.loads(path.read_text())
        form = json.loads(receipt["input"]["structured_outputs"])
        assert [form[k] for k in ("think_start", "think_end") if k in form] == bound
        answer, text = receipt["output"]["tokens"], receipt["output"]["text"]
        assert answer[:tokens].count(end) == (tokens > 0)
        assert text.split("</think>")[-1] in ("yes", "no") and answer[-1] == 1
        assert "VERIFIED" in invar("verify", *where, path).text
        # Without the reasoning the whole answer has to fit.
        form = {k: v for k, v in form.items() if not k.startswith("think")}
        receipt["input"]["structured_outputs"] = json.dumps(form, separators=(",", ":"))
        path.write_text(json.dumps(reseal(receipt)))
        code = 1 if tokens else 0
        assert ("output.tokens" in invar("verify", *where, path, code=code).text) == (code == 1)


def test_a_call_in_the_words_of_the_template(thinking, tasks, tmp_path):
    server = Server(thinking[0], tasks, tmp_path / "receipts", "--batch-size", 1)
    tools = [{"type": "function", "function": {"name": "leave", "parameters": {"type": "object"}}}]
    body = {
        "messages": HELLO,
        "tools": tools,
        "tool_choice": "required",
        "max_tokens": 60,
        "seed": 2,
    }
    answer = server.complete({**body, "logit_bias": {str(thinking[1]): -100}}, chat=True)
    receipt = json.loads(server.receipt(only_receipt(answer)))
    assert receipt["output"]["text"].startswith('<tool_call>\n{"name":"leave","arguments":{')
    assert server.stop() == 0


def test_a_budget_of_reasoning(thinking, run, tasks, tmp_path):
    """The receipt is that of a run which ends the reasoning behind so many tokens."""
    folder, _, end = thinking
    server = Server(folder, tasks, tmp_path / "receipts", "--batch-size", 2)
    asked = {"messages": HELLO, "max_tokens": 24, "seed": 3, "temperature": 1}
    opened = {**asked, "chat_template_kwargs": {"open": True}}
    bounded = {**opened, "thinking_token_budget": 5}
    answer = server.complete({**bounded, "return_token_ids": True}, chat=True)
    assert answer["choices"][0]["token_ids"].index(end) == 5
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 5
    chat = {"messages": HELLO, "variables": {"open": True}}
    (tmp_path / "m.json").write_text(json.dumps(chat))
    options = ["--messages", tmp_path / "m.json", "--max-new-tokens", 24, "--temperature", 1]
    options += ["--seed", 3, "--short-circuit-length", 5, "--short-circuit-token", end]
    receipt = tmp_path / "r.json"
    where = ["--model-name", folder, "--tasks-root", tasks]
    invar("run", *where, *options, "--receipt-path", receipt)
    assert server.receipt(only_receipt(answer)) == receipt.read_bytes()
    assert server.ask("/v1/receipts/verify", receipt.read_bytes())["verdict"] == "VERIFIED"
    messages = {**opened, "thinking": {"type": "enabled", "budget_tokens": 5}}
    messages |= {"system": HELLO[0]["content"], "messages": HELLO[1:]}
    messages["context_management"] = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    assert server.ask("/v1/messages", messages)["content"][0]["type"] == "thinking"
    effort = {**messages, "thinking": None, "output_config": {"effort": "low"}}
    shown = json.loads(server.receipt(only_receipt(server.ask("/v1/messages", effort))))
    assert '"reasoning_effort":"low"' in shown["input"]["chat"]
    # A budget that the answer cannot exceed binds nothing; where the model may not reason, none is
    # kept.
    free = server.complete({**opened, "thinking_token_budget": 24}, chat=True)
    assert only_receipt(free) == only_receipt(server.complete(opened, chat=True))
    error = server.ask("/v1/chat/completions", {**asked, "thinking_token_budget": 5}, 400)["error"]
    assert "<think>" in error["message"]
    assert server.stop() == 0


def test_a_budget_of_reasoning_that_has_begun(thinking, tmp_path):
    """Wherever the prompt ends inside a think block, the tokens of the answer alone count."""
    folder, _, end = thinking
    silent, tasks = tmp_path / "silent", tmp_path / "tasks"
    shutil.copytree(folder, silent)  # its template opens <think>, and says nothing of </think>
    (silent / "chat_template.jinja").write_text("{{ messages[-1].content }}\n<think>\n")
    begun = [*HELLO, {"role": "assistant", "content": "<think>\nI am <b>"}]
    going_on = {"messages": begun, "continue_final_message": True}
    mention = {"messages": [{"role": "user", "content": "What does <think> mean?"}]}
    asked = {"max_tokens": 24, "seed": 3, "temperature": 1}
    bounded = {**asked, "thinking_token_budget": 5}
    path, messages = tmp_path / "r.json", tmp_path / "m.json"
    options = ["--messages", messages, "--max-new-tokens", 24, "--temperature", 1, "--seed", 3]
    budget = ["--thinking-token-budget", 5]
    by_hand = ["--short-circuit-length", 5, "--short-circuit-token", end]
    for used, chat in (
        (folder, {"messages": HELLO, "variables": {"open": True}}),
        (folder, going_on),
        (silent, {"messages": HELLO}),
    ):
        where = ["--model-name", used, "--tasks-root", tasks]
        server = Server(used, tasks, tmp_path / "receipts")
        body = {k: v for k, v in chat.items() if k != "variables"}
        body["chat_template_kwargs"] = chat.get("variables")
        answer = server.complete({**body, **bounded, "return_token_ids": True}, chat=True)
        assert answer["choices"][0]["token_ids"].index(end) == 5
        assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 5
        thought = answer["choices"][0]["message"]["reasoning_content"]
        assert thought and "</think>" not in thought + answer["choices"][0]["message"]["content"]
        streamed = server.stream({**body, **bounded}, chat=True)
        deltas = [c["delta"] for event in streamed for c in event["choices"]]
        assert "".join(d.get("reasoning_content", "") for d in deltas) == thought
        receipt = server.receipt(only_receipt(answer))
        assert server.ask("/v1/receipts/verify", receipt)["verdict"] == "VERIFIED"
        messages.write_text(json.dumps(chat))
        for how in (budget, by_hand):
            said = invar("run", *where, *options, *how, "--receipt-path", path, "--json").out
            assert path.read_bytes() == receipt and json.loads(said)["reasoning"] == thought
        assert "VERIFIED" in invar("verify", *where, path).text
        form = {**body, **asked, "structured_outputs": {"choice": ["yes", "no"]}}
        if used == silent:  # the form holds from the first token on, so there is no reasoning
            free = only_receipt(server.complete(form, chat=True))
            form["thinking_token_budget"] = 1
            assert only_receipt(server.complete(form, chat=True)) == free
        if chat == going_on:
            for wrong in ({**bounded, **mention}, {**form, **bounded}):
                error = server.ask("/v1/chat/completions", wrong, 400)["error"]
                assert "leaves it to the model to open <think>" in error["message"]
            text = {**bounded, "prompt": "Who art thou?\n<think>\n", "return_token_ids": True}
            assert server.complete(text)["choices"][0]["token_ids"].index(end) == 5
        assert server.stop() == 0
    messages.write_text(json.dumps(mention))
    run = ["run", "--model-name", folder, "--tasks-root", tasks, *options]
    assert "leaves it to the model to open <think>" in invar(*run, *budget, code=3).text
    assert "--short-circuit-length" in invar(*run, *budget, *by_hand, code=2).text
