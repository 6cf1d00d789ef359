"""invar serve in the protocols of Anthropic's messages and OpenAI's responses, and what streams may
cut: characters, stop texts, tool calls. The chat model says known texts."""

import json

import pytest
from scripted import place, write_scripted
from server import Server, events_of

CALL = '<tool_call>\n{"name": "look", "arguments": {"at": "é", "n": [1, 2]}}\n</tool_call>'
SCRIPTS = {
    "plain": "Hello, world.",
    "emoji": "a🏳️‍🌈b🇩🇪c👩‍👩‍👧d é €",
    "cut": b"cut \xf0\x9f\x8f",
    "call": "I look.\n" + CALL,
    "thought": "<think>\nhm 🤔\n</think>\n\nYes.",
    "stops": "one ab two abc three",
    "calls": CALL + "\n" + CALL.replace("look", "go"),
}
TOOLS = [{"name": n, "input_schema": {"type": "object", "properties": {}}} for n in ("look", "go")]
FUNCTIONS = [
    {"type": "function", "function": {"name": t["name"], "parameters": t["input_schema"]}}
    for t in TOOLS
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    model = write_scripted(folder / "scripted", list(SCRIPTS.values()))
    made = Server(model, folder / "tasks", folder / "receipts", "--batch-size", 4)
    made.model = model
    yield made
    assert made.stop() == 0


def prompt(script):
    return "x" * place(list(SCRIPTS).index(script))


def said(script):
    text = SCRIPTS[script]
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def user(script):
    return {"messages": [{"role": "user", "content": prompt(script)}]}


def body(script, **more):
    return {"prompt": prompt(script), "max_tokens": 180, "temperature": 0, **more}


def chat(script, **more):
    return {**user(script), "max_tokens": 180, "temperature": 0, **more}


def named_events(server, path, asked):
    response = server.open(path, {**asked, "stream": True})
    text = response.read().decode()
    assert response.status == 200, text
    events = []
    for part in filter(None, text.split("\n\n")):
        if part.startswith(":"):
            continue
        name, data = part.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == "event: " + events[-1]["type"]
    return events


def uncached(answer):
    """Without what depends on the requests before."""
    answer["usage"].get("input_tokens_details", {}).pop("cached_tokens", None)
    return answer


def receipts_of(answer):
    return answer["invar"]["receipts"]


# --- streams ---


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_stream_has_whole_characters(server, script):
    """Each piece is UTF-8 of its own, and joined they are the whole answer."""
    whole = server.complete(body(script))
    assert whole["choices"][0]["text"] == said(script)
    response = server.open("/v1/completions", body(script, stream=True))
    events = [json.loads(e) for e in events_of(response.read().decode())[:-1]]
    pieces = [e["choices"][0]["text"] for e in events]
    assert "".join(pieces) == said(script)
    if script != "cut":
        assert not any("\ufffd" in p for p in pieces)
    else:
        assert "".join(pieces).count("\ufffd") == 1
    assert receipts_of(events[-1]) == receipts_of(whole)


def test_a_limit_within_a_character(server):
    text = said("emoji").encode()
    for n in range(1, len(text)):
        whole = server.complete(body("emoji") | {"max_tokens": n})["choices"][0]
        events = server.stream(body("emoji") | {"max_tokens": n})
        assert "".join(e["choices"][0]["text"] for e in events) == whole["text"]
        assert whole["text"] == text[:n].decode("utf-8", "replace")
        assert whole["finish_reason"] == "length"


def test_stop_texts_over_tokens(server):
    """Tokens are single bytes, so that every stop text is split at each of them."""
    text = said("stops")
    for stops in (["ab"], ["abc"], ["abc", "ab"], [" two", "ab "], ["three"], ["e"], ["zzz", "ee"]):
        ends = [text.index(s) + len(s) for s in stops if s in text]
        end = min(ends)
        found = max((s for s in stops if text[:end].endswith(s)), key=len)
        want = text[: end - len(found)]
        whole = server.complete(body("stops", stop=stops))["choices"][0]
        assert (whole["text"], whole["finish_reason"]) == (want, "stop")
        assert whole["stop_reason"] == found
        events = server.stream(body("stops", stop=stops))
        assert "".join(e["choices"][0]["text"] for e in events) == want
        assert events[-1]["choices"][0]["stop_reason"] == found
    emoji = server.complete(body("emoji", stop="🇩🇪"))["choices"][0]
    assert emoji["text"] == "a🏳️‍🌈b"
    # A stop text that begins in the prompt is none of the answer's.
    kept = server.complete(body("stops", stop="xone"))["choices"][0]
    assert kept["text"] == text and "stop_reason" not in kept


def folded(events):
    """A chat's stream as the message of the whole answer."""
    out = {"content": "", "reasoning": "", "calls": [], "reason": None}
    for choice in (e["choices"][0] for e in events if e["choices"]):
        delta = choice["delta"]
        out["content"] += delta.get("content") or ""
        out["reasoning"] += delta.get("reasoning_content") or ""
        for call in delta.get("tool_calls", []):
            assert call.pop("index") == len(out["calls"])
            out["calls"].append(call)
        out["reason"] = choice["finish_reason"] or out["reason"]
    return out


def unfolded(whole):
    message = whole["choices"][0]["message"]
    return {
        "content": message["content"] or "",
        "reasoning": message.get("reasoning_content", ""),
        "calls": message.get("tool_calls", []),
        "reason": whole["choices"][0]["finish_reason"],
    }


@pytest.mark.parametrize("script", ["call", "calls"])
def test_a_tool_call_that_is_cut(server, script):
    """At each token: stream and whole answer agree, and no call that is cut is shown as one."""
    size = len(said(script).encode())
    for n in [*range(1, size, 5 if script == "call" else 17), size - 12, size, size + 1]:
        asked = chat(script, tools=FUNCTIONS) | {"max_tokens": n}
        whole = unfolded(server.complete(asked, chat=True))
        assert folded(server.stream(asked, chat=True)) == whole
        assert whole["reason"] == ("tool_calls" if n > size else "length")
        for call in whole["calls"]:
            assert json.loads(call["function"]["arguments"]) == {"at": "é", "n": [1, 2]}
        assert len(whole["calls"]) <= said(script).encode()[:n].count(b"]}}")
    assert [c["function"]["name"] for c in whole["calls"]] == ["look", "go"][: len(whole["calls"])]
    assert len(whole["calls"]) == {"call": 1, "calls": 2}[script]
    hidden = unfolded(server.complete(chat(script, tools=FUNCTIONS, tool_choice="none"), chat=True))
    assert hidden["content"] == said(script) and not hidden["calls"]


def test_one_call_is_shown(server):
    """A view: the receipt is that of the answer with all of its calls."""
    asked = chat("calls", tools=FUNCTIONS)
    one = asked | {"parallel_tool_calls": False}
    whole = server.complete(one, chat=True)
    assert receipts_of(whole) == receipts_of(server.complete(asked, chat=True))
    assert [c["function"]["name"] for c in unfolded(whole)["calls"]] == ["look"]
    assert folded(server.stream(one, chat=True)) == unfolded(whole)
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    message = ask_messages(server, "calls", tools=TOOLS, tool_choice=choice, **GREEDY)
    assert [b["name"] for b in message["content"]] == ["look"]
    tools = [{"type": "function", **f["function"]} for f in FUNCTIONS]
    asked = {"input": prompt("calls"), "tools": tools, "parallel_tool_calls": False, **GREEDY}
    asked["max_output_tokens"] = 180
    response = server.ask("/v1/responses", asked)
    assert [o["name"] for o in response["output"]] == ["look"]
    assert receipts_of(response) == receipts_of(whole)


def test_the_order_of_chunks(server):
    asked = chat("call", tools=FUNCTIONS, stream_options={"include_usage": True}, n=2)
    events = server.stream(asked, chat=True)
    assert events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"] > 0
    for i in (0, 1):
        mine = [e["choices"][0] for e in events[:-1] if e["choices"][0]["index"] == i]
        assert mine[0]["delta"] == {"role": "assistant", "content": ""}
        assert [c["finish_reason"] for c in mine[:-1]] == [None] * (len(mine) - 1)
        assert mine[-1] | {"delta": {}, "finish_reason": "tool_calls"} == mine[-1]
    assert [e for e in events if "invar" in e] == [events[-2]]
    assert len({json.dumps([e["id"], e["created"], e["model"]]) for e in events}) == 1


def test_a_hundred_requests_with_one_seed(server):
    asked = {"prompt": "abc", "max_tokens": 3, "temperature": 1.5, "seed": 11}
    many = server.complete(asked | {"prompt": ["abc"] * 100})
    assert set(receipts_of(many)) == set(receipts_of(server.complete(asked)))
    other = server.complete(asked | {"seed": 12})
    assert receipts_of(other) != receipts_of(server.complete(asked))


# --- messages ---


def ask_messages(server, script, **more):
    return server.ask("/v1/messages?beta=true", {**user(script), "max_tokens": 180, **more})


GREEDY = {"temperature": 0}


def test_messages(server):
    answer = ask_messages(server, "plain", **GREEDY)
    assert answer["content"] == [{"type": "text", "text": said("plain")}]
    assert (answer["type"], answer["role"], answer["model"]) == ("message", "assistant", "scripted")
    assert answer["stop_reason"] == "end_turn" and answer["stop_sequence"] is None
    whole = server.complete(chat("plain"), chat=True)
    assert receipts_of(answer) == receipts_of(whole)
    assert answer["usage"]["input_tokens"] == whole["usage"]["prompt_tokens"]
    assert answer["usage"]["output_tokens"] == whole["usage"]["completion_tokens"]
    counted = server.ask("/v1/messages/count_tokens", user("plain"))
    assert counted == {"input_tokens": answer["usage"]["input_tokens"]}
    cut = ask_messages(server, "plain", max_tokens=5, **GREEDY)
    assert cut["stop_reason"] == "max_tokens" and cut["content"][0]["text"] == "Hello"
    stopped = ask_messages(server, "plain", stop_sequences=["zz", ", "], **GREEDY)
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", ", ")
    assert stopped["content"][0]["text"] == "Hello"
    called = ask_messages(server, "calls", tools=TOOLS, **GREEDY)
    assert called["stop_reason"] == "tool_use"
    assert [b["name"] for b in called["content"]] == ["look", "go"]
    assert all(b["input"] == {"at": "é", "n": [1, 2]} for b in called["content"])
    thought = ask_messages(server, "thought", **GREEDY)["content"]
    assert [b["type"] for b in thought] == ["thinking", "text"]
    assert (thought[0]["thinking"], thought[1]["text"]) == ("hm 🤔", "Yes.")
    usage = server.complete(chat("thought"), chat=True)["usage"]  # tokens are bytes
    reasoning = said("thought").encode().index(b"</think>") + len(b"</think>") - 1
    assert usage["completion_tokens_details"] == {"reasoning_tokens": reasoning}


def folded_blocks(events):
    assert [e["type"] for e in events[:1] + events[-2:]] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    message, blocks, open_block = dict(events[0]["message"]), [], None
    for event in events[1:-2]:
        assert event["index"] == len(blocks) - (event["type"] != "content_block_start")
        if event["type"] == "content_block_start":
            assert open_block is None
            open_block = dict(event["content_block"])
            blocks.append(open_block)
            arguments = ""
        elif event["type"] == "content_block_stop":
            if open_block["type"] == "tool_use":
                open_block["input"] = json.loads(arguments)
            open_block = None
        else:
            delta = event["delta"]
            if delta["type"] == "input_json_delta":
                arguments += delta["partial_json"]
            else:
                key = delta["type"].removesuffix("_delta")
                open_block[key] += delta[key]
    assert open_block is None
    message |= {"content": blocks, **events[-2]["delta"], "usage": events[-2]["usage"]}
    return message | {"invar": events[-2]["invar"]}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_stream_of_messages(server, script):
    for more in ({}, {"tools": TOOLS}, {"stop_sequences": ["o"]}):
        asked = {**user(script), "max_tokens": 180, **GREEDY, **more}
        whole = server.ask("/v1/messages", asked)
        events = named_events(server, "/v1/messages", asked)
        assert folded_blocks(events) | {"id": whole["id"]} == whole


def test_a_conversation_of_messages(server):
    """System, blocks, calls and their results make the prompt that the same chat makes."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "x"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "u" * 8}]},
        {"role": "assistant", "content": [{"type": "text", "text": "aa"}, use]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "r" * 4}],
                },
                {"type": "text", "text": "u" * 6},
            ],
        },
    ]
    system = [{"type": "text", "text": "s" * 4, "cache_control": {"type": "ephemeral"}}]
    asked = {"system": system, "messages": messages, "max_tokens": 180, **GREEDY, "tools": TOOLS}
    answer = server.ask("/v1/messages", asked)
    assert answer["content"] == [{"type": "text", "text": said("plain")}]
    receipt = json.loads(server.receipt(receipts_of(answer)[0]))
    assert receipt["input"]["prompt"] == "ssss" + "u" * 8 + "aa" + "rrrr" + "u" * 6
    asked["messages"] = [
        {"role": "user", "content": "u" * 20},
        {"role": "assistant", "content": "Th"},
    ]
    prefilled = server.ask("/v1/messages", asked | {"system": "ab"})  # goes on with "Th"
    assert prefilled["content"][0]["text"] == said("plain")


def test_errors_of_messages(server):
    for change, words in (
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": [{"role": "system", "content": "a"}]}, "system"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "image"),
        ({"messages": [{"role": "user", "content": []}]}, "content"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "bash_20250124"),
        ({"tool_choice": {"type": "every"}}, "tool_choice"),
        ({"thinking": {"type": "enabled", "budget_tokens": 0.5}}, "budget_tokens"),
        (
            {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
            "context_management",
        ),
        ({"frobnicate": 1}, "frobnicate"),
        ({"n": 2}, "n:"),
    ):
        asked = {**user("plain"), "max_tokens": 8, **change}
        error = server.ask("/v1/messages", asked, 400)
        assert error["type"] == "error" and error["error"]["type"] == "invalid_request_error"
        assert words in error["error"]["message"], error
    missing = server.ask("/v1/messages", {**user("plain"), "max_tokens": 8, "model": "claude"}, 404)
    assert (
        missing["error"]["type"] == "not_found_error" and "scripted" in missing["error"]["message"]
    )


# --- responses ---


def text_of(response):
    return "".join(
        part["text"]
        for item in response["output"]
        if item["type"] == "message"
        for part in item["content"]
    )


def test_responses(server):
    answer = server.ask("/v1/responses", {"input": prompt("plain"), **GREEDY})
    assert text_of(answer) == said("plain")
    assert (answer["object"], answer["status"], answer["store"]) == ("response", "completed", False)
    whole = server.complete({**user("plain"), **GREEDY}, chat=True)
    assert receipts_of(answer) == receipts_of(whole)
    assert answer["usage"]["total_tokens"] == whole["usage"]["total_tokens"]
    cut = server.ask("/v1/responses", {"input": prompt("plain"), **GREEDY, "max_output_tokens": 5})
    assert (cut["status"], text_of(cut)) == ("incomplete", "Hello")
    assert cut["incomplete_details"] == {"reason": "max_output_tokens"}
    items = [
        {"role": "developer", "content": "dd"},
        {"role": "user", "content": [{"type": "input_text", "text": "u" * 10}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "x"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "r" * 8},
    ]
    tools = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    asked = {"input": items, "instructions": "iiii", "tools": tools, "store": False, **GREEDY}
    answer = server.ask("/v1/responses", asked)
    receipt = json.loads(server.receipt(receipts_of(answer)[0]))
    assert receipt["input"]["prompt"] == "iiiidd" + "u" * 10 + "r" * 8
    assert text_of(answer) == said("plain")
    for change, words in (
        ({"store": True}, "store"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"input": 3}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "item_reference"),
        ({"tools": [{"type": "web_search"}]}, "web_search"),
        ({"messages": []}, "messages"),
    ):
        error = server.ask("/v1/responses", {"input": "a", **change}, 400)["error"]
        assert words in error["message"], error


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_stream_of_responses(server, script):
    for more in ({}, {"tools": [{"type": "function", **f["function"]} for f in FUNCTIONS]}):
        for limit in (180, 9):
            asked = {"input": prompt(script), "max_output_tokens": limit, **GREEDY, **more}
            whole = server.ask("/v1/responses", asked)
            events = named_events(server, "/v1/responses", asked)
            assert [e["sequence_number"] for e in events] == list(range(len(events)))
            assert [e["type"] for e in events[:2]] == ["response.created", "response.in_progress"]
            last = events[-1]["response"]
            assert events[-1]["type"] == "response." + whole["status"]
            done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
            assert done == last["output"]
            text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
            assert text == text_of(whole)
            for response in (whole, last):  # ids and times are of each request
                mine = response["id"].removeprefix("resp_")
                response["id"], response["created_at"] = "", 0
                for item in response["output"]:
                    assert mine in item.pop("id")
            assert uncached(last) == uncached(whole)


def test_a_form_of_the_answer(server):
    """The model is made to say what fits, in each protocol with the same receipt."""
    closed = {"type": "object", "additionalProperties": False}
    schema = closed | {"properties": {"a": {"enum": [True, None]}}, "required": ["a"]}
    form = {"type": "json_schema", "schema": schema}
    whole = server.complete(
        chat("plain", response_format={"type": "json_schema", "json_schema": {"schema": schema}}),
        chat=True,
    )
    text = whole["choices"][0]["message"]["content"]
    assert json.loads(text)["a"] in (True, None)
    message = ask_messages(server, "plain", output_config={"format": form}, **GREEDY)
    assert message["content"][0]["text"] == text and receipts_of(message) == receipts_of(whole)
    asked = {"input": prompt("plain"), "max_output_tokens": 180, **GREEDY}
    response = server.ask("/v1/responses", asked | {"text": {"format": form | {"name": "one"}}})
    assert text_of(response) == text and receipts_of(response) == receipts_of(whole)
    assert response["text"]["format"]["name"] == "one"
    any_tool = {"tools": [t | {"input_schema": closed} for t in TOOLS]}
    any_tool["tool_choice"] = {"type": "any"}
    called = ask_messages(server, "plain", **any_tool, **GREEDY)
    assert called["content"][0]["type"] == "tool_use" and called["content"][0]["name"] in (
        "look",
        "go",
    )
    for asked in (
        {"output_config": {"effort": 3}},
        {"output_config": {"format": {"type": "x"}}},
    ):
        error = server.ask("/v1/messages", {**user("plain"), "max_tokens": 8, **asked}, 400)
        assert "output_config" in error["error"]["message"]
