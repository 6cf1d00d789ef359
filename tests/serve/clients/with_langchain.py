"""langchain-openai: chats, streams, tools, embeddings of texts; ids of tiktoken are refused."""

import json
import urllib.request

from common import ARGUMENTS, PROMPTS, SAID, URL
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

how = {"base_url": URL + "/v1", "api_key": "none", "max_retries": 0}
model = ChatOpenAI(model="scripted", temperature=0, **how)
whole = model.invoke(PROMPTS["plain"])
assert whole.content == SAID["plain"] and whole.usage_metadata["output_tokens"] > 0
assert "".join(piece.text for piece in model.stream(PROMPTS["emoji"])) == SAID["emoji"]


@tool
def look(at: str, n: list[int]) -> str:
    """Looks."""
    return at


with_tools = model.bind_tools([look])
assert [c["args"] for c in with_tools.invoke(PROMPTS["call"]).tool_calls] == [ARGUMENTS]
folded = None
for piece in with_tools.stream(PROMPTS["call"], stream_usage=True):
    folded = piece if folded is None else folded + piece
assert [c["args"] for c in folded.tool_calls] == [ARGUMENTS] and folded.usage_metadata
responses = ChatOpenAI(model="scripted", temperature=0, use_responses_api=True, **how)
assert responses.invoke(PROMPTS["plain"]).text == SAID["plain"]
texts = OpenAIEmbeddings(model="bert", check_embedding_ctx_length=False, **how)
assert len(texts.embed_documents(["hello", "world"])[0]) == 32
# Without that setting it sends the ids of tiktoken, whose table it would download here.
request = urllib.request.Request(
    URL + "/v1/embeddings",
    json.dumps({"model": "bert", "input": [[15339, 1917]], "encoding_format": "base64"}).encode(),
    {"Content-Type": "application/json"},
)
try:
    urllib.request.urlopen(request)
    raise SystemExit("ids of another vocabulary were embedded")
except urllib.error.HTTPError as refusal:
    assert refusal.code == 400 and b"check_embedding_ctx_length" in refusal.read()
