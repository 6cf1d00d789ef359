"""The client of OpenAI: sync, async, streams, tools, parse, embeddings, responses, errors."""

import asyncio
import json
from typing import Literal

import openai
from common import ARGUMENTS, FACTS, PARAMETERS, PROMPTS, SAID, TOOLS, URL, user
from pydantic import BaseModel

how = {"base_url": URL + "/v1", "api_key": "none", "max_retries": 0}
client = openai.OpenAI(**how)
assert [m.id for m in client.models.list()] == [
    "scripted",
    "shakespeare-4m",
    "hears",
    "bert",
    "bert-reranker",
]
chat = {"model": "scripted", "temperature": 0}
whole = client.chat.completions.create(**chat, messages=user("plain"))
assert whole.choices[0].message.content == SAID["plain"]
pieces = client.chat.completions.create(**chat, messages=user("emoji"), stream=True)
assert "".join(p.choices[0].delta.content or "" for p in pieces) == SAID["emoji"]
called = client.chat.completions.create(**chat, messages=user("calls"), tools=TOOLS)
assert [c.function.name for c in called.choices[0].message.tool_calls] == ["look", "go"]
asked = {"messages": user("calls"), "tools": TOOLS, "stream_options": {"include_usage": True}}
with client.chat.completions.stream(**chat, **asked) as stream:
    for _ in stream:
        pass
    final = stream.get_final_completion()
assert final.usage.total_tokens == called.usage.total_tokens
assert json.loads(final.choices[0].message.tool_calls[1].function.arguments) == ARGUMENTS
# Base64 is what the client asks for where nothing is said.
vectors = client.embeddings.create(model="bert", input=["hello", "world"])
floats = client.embeddings.create(model="bert", input=["hello", "world"], encoding_format="float")
for a, b in zip(vectors.data, floats.data, strict=True):
    assert max(abs(x - y) for x, y in zip(a.embedding, b.embedding, strict=True)) < 1e-7
response = client.responses.create(**chat, input=PROMPTS["plain"], store=False)
assert response.output_text == SAID["plain"] and response.status == "completed"
tools = [{"type": "function", "name": "look", "parameters": PARAMETERS}]
with client.responses.stream(**chat, input=PROMPTS["call"], tools=tools) as stream:
    events = [event.type for event in stream]
    final = stream.get_final_response()
assert events[0] == "response.created" and events[-1] == "response.completed"
assert [o.type for o in final.output] == ["message", "function_call"]

with open(FACTS["recording"], "rb") as recording:

    def hear(**more):
        recording.seek(0)
        heard = {"model": "hears", "file": recording, "language": "de", "temperature": 0}
        return client.audio.transcriptions.create(**heard, **more)

    said, text = hear(), hear(response_format="text")
    verbose = hear(response_format="verbose_json", timestamp_granularities=["segment"])
    subtitles = hear(response_format="srt")
    recording.seek(0)
    english = client.audio.translations.create(model="hears", file=recording)
assert said.text == text.rstrip("\n") and said.text and english.text
assert verbose.language == "de" and verbose.segments[0].start < verbose.segments[-1].end < 4
assert subtitles.startswith("1\n00:00:0") and " --> " in subtitles and verbose.text


class Choice(BaseModel):
    good: bool
    kind: Literal["one", "other"]


parsed = client.chat.completions.parse(**chat, messages=user("plain"), response_format=Choice)
assert isinstance(parsed.choices[0].message.parsed, Choice)
parsed = client.responses.parse(**chat, input=PROMPTS["plain"], text_format=Choice)
assert isinstance(parsed.output_parsed, Choice)
logprobs = client.completions.create(
    model="shakespeare-4m", prompt="ROMEO:", max_tokens=4, temperature=0, logprobs=2
)
assert len(logprobs.choices[0].logprobs.token_logprobs) == 4
for wrong, error in (
    ({"model": "gpt-4"}, openai.NotFoundError),
    ({"max_tokens": 100000}, openai.BadRequestError),
):
    try:
        client.chat.completions.create(**{**chat, "messages": user("plain"), **wrong})
        raise SystemExit(f"no error of {wrong}")
    except error as e:
        assert e.code in ("model_not_found", "context_length_exceeded"), e


async def many():
    client = openai.AsyncOpenAI(**how)
    asked = [client.chat.completions.create(**chat, messages=user("plain")) for _ in range(20)]
    answers = await asyncio.gather(*asked)
    assert {a.invar["receipts"][0] for a in answers} == {whole.invar["receipts"][0]}
    stream = await client.chat.completions.create(**chat, messages=user("plain"), stream=True)
    assert "".join([p.choices[0].delta.content or "" async for p in stream]) == SAID["plain"]


asyncio.run(many())
