"""litellm, as a client of vLLM, of OpenAI and of Anthropic."""

import litellm
from common import PROMPTS, SAID, TOOLS, URL, user

how = {"api_base": URL + "/v1", "api_key": "none", "max_retries": 0, "num_retries": 0}
for provider in ("hosted_vllm/", "openai/"):
    chat = {"model": provider + "scripted", "temperature": 0, **how}
    whole = litellm.completion(**chat, messages=user("thought"))
    assert whole.choices[0].message.content == "Yes."
    assert whole.choices[0].message.reasoning_content == "hm 🤔"
    asked = {"messages": user("calls"), "tools": TOOLS, "stream_options": {"include_usage": True}}
    pieces = list(litellm.completion(**chat, **asked, stream=True))
    folded = litellm.stream_chunk_builder(pieces)
    assert [c.function.name for c in folded.choices[0].message.tool_calls] == ["look", "go"]
    assert folded.choices[0].finish_reason == "tool_calls"
    counted = litellm.completion(**chat, messages=user("calls"), tools=TOOLS).usage.total_tokens
    assert folded.usage.total_tokens == counted
vectors = litellm.embedding(model="hosted_vllm/bert", input=["hello"], **how)
assert len(vectors.data[0]["embedding"]) == 32
ranked = litellm.rerank(
    model="hosted_vllm/bert-reranker",
    query="how many people",
    documents=["berlin", "a dog"],
    top_n=1,
    api_base=URL,
    api_key="none",
)
assert len(ranked.results) == 1 and ranked.results[0]["index"] in (0, 1)
answer = litellm.responses(
    model="hosted_vllm/scripted",
    input=PROMPTS["plain"],
    temperature=0,
    api_base=URL + "/v1",
    api_key="none",
)
assert answer.output[0].content[0].text == SAID["plain"]
message = litellm.completion(
    model="anthropic/scripted",
    messages=user("plain"),
    temperature=0,
    max_tokens=100,
    api_base=URL,
    api_key="none",
)
assert message.choices[0].message.content == SAID["plain"]
