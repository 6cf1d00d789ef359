"""The client of Anthropic: whole answers, streams, tools, thinking, count_tokens, errors."""

import anthropic
from common import ARGUMENTS, PARAMETERS, SAID, URL, user

client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
how = {"model": "scripted", "max_tokens": 200, "extra_body": {"temperature": 0}}
tools = [{"name": name, "input_schema": PARAMETERS} for name in ("look", "go")]
whole = client.messages.create(**how, messages=user("plain"))
assert whole.content[0].text == SAID["plain"] and whole.stop_reason == "end_turn"
called = client.messages.create(**how, messages=user("calls"), tools=tools)
assert [(b.name, b.input) for b in called.content] == [("look", ARGUMENTS), ("go", ARGUMENTS)]
thought = client.messages.create(**how, messages=user("thought")).content
assert (thought[0].thinking, thought[1].text) == ("hm 🤔", "Yes.")
with client.messages.stream(**how, messages=user("calls"), tools=tools) as stream:
    for _ in stream:
        pass
    final = stream.get_final_message()
assert [(b.name, b.input) for b in final.content] == [("look", ARGUMENTS), ("go", ARGUMENTS)]
assert final.usage.output_tokens == called.usage.output_tokens
with client.messages.stream(**how, messages=user("emoji")) as stream:
    assert "".join(stream.text_stream) == SAID["emoji"]
counted = client.messages.count_tokens(model="scripted", messages=user("plain"))
assert counted.input_tokens == whole.usage.input_tokens
beta = client.beta.messages.create(**how, messages=user("plain"), betas=["some-1"])
assert beta.content[0].text == SAID["plain"]
for wrong, error in (
    ({"model": "claude"}, anthropic.NotFoundError),
    ({"max_tokens": 5000}, anthropic.BadRequestError),
):
    try:
        client.messages.create(**{**how, "messages": user("plain"), **wrong})
        raise SystemExit(f"no error of {wrong}")
    except error as e:
        assert e.body["type"] == "error", e
