#!/usr/bin/env python3
"""Many requests of all kinds at once, among clients that leave: each has the receipt and the text
that it has alone.

company.py [--requests 1000] [--batch-size 64] [--model FOLDER] [--alone OPTIONS]
           [--together OPTIONS]

INVAR_BIN: the program. OPTIONS are of `invar serve`, such as `--alone='--device cpu'
--together='--device cuda'`: then a GPU's answers in company are compared with a processor's alone.
Prints what it compared, and exits with 1 where something differs."""

import argparse
import asyncio
import json
import random
import resource
import shlex
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[1:1] = [str(Path(__file__).resolve().parents[i]) for i in (1, 2)]
from conftest import ROOT  # noqa: E402
from server import Server, events_of  # noqa: E402

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
WORDS = "the king of a small town had three daughters and a horse that could not be caught".split()
COMMON = " ".join(WORDS * 16)  # more than a page of keys and values
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PLACE = {"type": "object", "properties": {"to": {"enum": ["Rome", "Verona"]}}, "required": ["to"]}
PLACE["additionalProperties"] = False
TOOLS = [{"type": "function", "function": {"name": n, "parameters": PLACE}} for n in ("go", "look")]


def asks(count):
    """(kind, path, body), each another one."""
    chance = random.Random(1)
    for i in range(count):
        words = " ".join(chance.choices(WORDS, k=chance.randint(2, 9)))
        drawn = {"seed": i, "temperature": chance.choice([0.7, 1, 1.3]), "top_p": 0.9}
        drawn["max_tokens"] = chance.randint(6, 48)
        chat = {"messages": [{"role": "user", "content": words}], **drawn}
        text = {"prompt": f"{words} {i}", **drawn}
        yield [
            ("completion", COMPLETION, {**text, "temperature": 0}),
            ("stop", COMPLETION, {**text, "stop": [".", "\n"]}),
            ("chat", CHAT, chat),
            (
                "schema",
                CHAT,
                {
                    **chat,
                    "response_format": {
                        "type": "json_schema",
                        "json_schema": {"name": "person", "schema": SCHEMA},
                    },
                },
            ),
            (
                "tools",
                CHAT,
                {
                    **chat,
                    "tools": TOOLS,
                    "tool_choice": "required",
                    "parallel_tool_calls": i % 16 == 4,
                },
            ),
            ("n", COMPLETION, {**text, "n": 3, "logprobs": 2}),
            ("echo", COMPLETION, {**text, "echo": True, "logprobs": 1, "max_tokens": 8}),
            ("prefix", COMPLETION, {**text, "prompt": f"{COMMON} {words} {i}"}),
        ][i % 8]


def of_whole(answer):
    """Receipts, and what each choice says."""
    said = []
    for choice in answer["choices"]:
        message = choice.get("message", {})
        calls = [c["function"] for c in message.get("tool_calls", [])]
        said.append((choice.get("text", message.get("content")) or "", calls))
    return answer["invar"]["receipts"], said


def of_stream(text):
    *events, last = events_of(text)
    assert last == "[DONE]", last
    said, receipts = {}, None
    for event in map(json.loads, events):
        assert "error" not in event, event
        receipts = event.get("invar", {}).get("receipts", receipts)
        for choice in event["choices"]:
            text, calls = said.setdefault(choice["index"], ["", []])
            delta = choice.get("delta", {})
            said[choice["index"]][0] += choice.get("text", delta.get("content")) or ""
            calls += [c["function"] for c in delta.get("tool_calls", [])]
    return receipts, [tuple(said[i]) for i in sorted(said)]


def raw(path, body):
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


def body_of(response):
    head, _, body = response.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), response[:2000]
    if b"chunked" in head.lower():
        whole = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            whole, body = whole + body[: int(size, 16)], body[int(size, 16) + 2 :]
        body = whole
    return body.decode()


class Company:
    def __init__(self, port, requests):
        self.port, self.requests = port, requests
        self.begin = asyncio.Event()
        self.chance = random.Random(2)

    async def ask(self, path, body, stream):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        await self.begin.wait()
        writer.write(raw(path, {**body, "stream": True} if stream else body))
        response = await reader.read()
        writer.close()
        text = body_of(response)
        return of_stream(text) if stream else of_whole(json.loads(text))

    async def leave(self, body):
        """A neighbour that asks for much and goes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        await self.begin.wait()
        writer.write(raw(COMPLETION, {**body, "max_tokens": 300, "n": 2, "stream": True}))
        if self.chance.random() < 0.7:
            await reader.read(300)
        await asyncio.sleep(self.chance.random())
        writer.close()

    async def all(self):
        clients = [
            asyncio.create_task(self.ask(path, body, i % 3 == 0 and kind != "echo"))
            for i, (kind, path, body) in enumerate(self.requests)
        ]
        leaving = [b for kind, _, b in self.requests if kind in ("prefix", "stop")][::2]
        neighbours = [asyncio.create_task(self.leave(b)) for b in leaving]
        await asyncio.sleep(0.2)
        self.begin.set()
        got = await asyncio.gather(*clients)
        await asyncio.gather(*neighbours, return_exceptions=True)
        return got, len(neighbours)


def compare(model, tasks, count, batch_size, alone=(), together=(), log=print):
    """What differs, as lines."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    common = ["--context", 1024, "--log", "none"]
    requests = list(asks(count))
    begin = time.monotonic()
    server = Server(model, tasks, Path(tasks) / "alone", *common, "--batch-size", 1, *alone)
    try:
        expected = [of_whole(server.ask(path, body)) for _, path, body in requests]
    finally:
        server.stop()
    log(f"alone: {count} requests one after another, {time.monotonic() - begin:.1f} s")
    server = Server(
        *(model, tasks, Path(tasks) / "together", *common, "--batch-size", batch_size),
        *("--queue", 8 * count, "--max-connections", 4 * count, *together),
    )
    try:
        begin = time.monotonic()
        got, left = asyncio.run(Company(server.port, requests).all())
        seconds = time.monotonic() - begin
        cancelled = server.metric("requests_cancelled_total")
        receipts = {p.stem for p in server.receipts.glob("*.json")}
    finally:
        server.stop(patience=120)
    differ = []
    for (kind, _, body), (names, said), mine in zip(requests, expected, got):
        if mine != (names, said):
            differ.append(f"{kind} with seed {body['seed']}: {mine} and alone {(names, said)}")
        if not set(names) <= receipts:
            differ.append(f"{kind} with seed {body['seed']}: a receipt is not kept")
    kinds = Counter(kind for kind, _, _ in requests)
    log(
        f"together: {count} requests at once, batches of {batch_size}, among {left} that left "
        f"({cancelled:.0f} noticed before their end), {seconds:.1f} s: "
        f"{sum(len(names) for names, _ in expected)} receipts, {len(differ)} differ"
    )
    log(", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    if cancelled == 0:
        differ.append("no client was seen to leave")
    return differ


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--model", type=Path, default=ROOT / "models/tale-7m")
    parser.add_argument("--alone", default="")
    parser.add_argument("--together", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="invar-company-") as folder:
        differ = compare(
            *(given.model, folder, given.requests, given.batch_size),
            *(shlex.split(given.alone), shlex.split(given.together)),
        )
    for line in differ[:20]:
        print("WRONG:", line)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
