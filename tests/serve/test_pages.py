"""Keys and values of a server: prompts that begin alike share them, requests give way where they
are too few, and whoever's turn it is has its turn; no receipt shows any of it."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import MODEL, invar
from server import Server

LINES = "".join(f"Line {i * i} of the play. " for i in range(200))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def one_sequence(tasks, pages):
    """The bytes that keys and values of one sequence of 512 positions take."""
    said = invar(
        "serve", "--model-name", MODEL, "--tasks-root", tasks, "--context", 512,
        "--receipts", pages / "r", "--kv-cache-memory-bytes", 1000, code=2,
    ).text  # fmt: skip
    return int(
        re.search(r"holds 0 positions, and one sequence has 512, which take (\d+) bytes", said)[1]
    )


@pytest.fixture(scope="module")
def server(tasks, pages, one_sequence):
    """Eight sequences, and the pages of one of them."""
    (pages / "keys").write_text("one\ntwo\n")
    made = Server(
        MODEL, tasks, pages / "r", "--context", 512, "--batch-size", 8,
        "--kv-cache-memory-bytes", one_sequence, "--api-key-file", pages / "keys",
    )  # fmt: skip
    yield made
    assert made.stop() == 0


def complete(server, prompt, tokens=16, key="one", **more):
    body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, **more}
    return server.ask("/v1/completions", body, headers={"Authorization": f"Bearer {key}"})


def metric(server, name):
    text = server.open("/metrics", headers={"Authorization": "Bearer one"}).read().decode()
    return float(re.search(rf"^invar_{name} (\S+)$", text, re.M)[1])


@pytest.fixture(scope="module")
def alone(tasks, pages):
    """The receipt of a request that `invar run` computes alone."""
    known = {}

    def f(prompt, tokens):
        if (prompt, tokens) not in known:
            invar(
                "run", "--model-name", MODEL, "--tasks-root", tasks, "--prompt-text", prompt,
                "--max-new-tokens", tokens, "--no-do-sample", "--receipt-path", pages / "a.json",
            )  # fmt: skip
            known[prompt, tokens] = (pages / "a.json").read_bytes()
        return known[prompt, tokens]

    return f


def receipt_of(server, answer):
    (name,) = answer["invar"]["receipts"]
    headers = {"Authorization": "Bearer one"}
    return server.open(f"/v1/receipts/{name}", headers=headers).read()


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_a_prompt_is_cached_by_whole_pages(server, alone):
    queries, hits = (metric(server, f"prefix_cache_{of}_total") for of in ("queries", "hits"))
    prompt = LINES[:700]
    cold = complete(server, prompt)
    tokens = cold["usage"]["prompt_tokens"]
    assert cached(cold) == 0 and 128 < tokens < 400
    warm, half = complete(server, prompt), complete(server, prompt[:400])
    assert cached(warm) == (tokens - 1) // 128 * 128
    assert cached(half) == (half["usage"]["prompt_tokens"] - 1) // 128 * 128 > 0
    for answer, asked in (cold, prompt), (warm, prompt), (half, prompt[:400]):
        assert receipt_of(server, answer) == alone(asked, 16)
    assert metric(server, "prefix_cache_hits_total") - hits == cached(warm) + cached(half)
    assert (
        metric(server, "prefix_cache_queries_total") - queries
        == 2 * tokens + half["usage"]["prompt_tokens"]
    )


def test_a_receipt_is_computed_again_without_pages(server):
    prompt = LINES[:600]
    complete(server, prompt)
    warm = complete(server, prompt)
    assert cached(warm) > 0
    queries = metric(server, "prefix_cache_queries_total")
    verdict = server.ask(
        "/v1/receipts/verify",
        receipt_of(server, warm),
        headers={"Authorization": "Bearer one"},
    )
    assert verdict["verdict"] == "VERIFIED"
    assert metric(server, "prefix_cache_queries_total") == queries


def test_requests_give_way_where_pages_are_few(server, alone):
    asked = [("ROMEO:" + " O" * i, 400) for i in range(6)]
    before = metric(server, "num_preemptions_total")
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda a: complete(server, *a), asked))
    for answer, (prompt, tokens) in zip(answers, asked, strict=True):
        assert receipt_of(server, answer) == alone(prompt, tokens)
        assert answer["usage"]["completion_tokens"] <= tokens
    assert metric(server, "num_preemptions_total") > before
    assert metric(server, "kv_cache_usage_perc") == 0


def test_a_priority_is_an_integer(server):
    headers = {"Authorization": "Bearer two"}
    for priority in ("high", 1.5, 2**31):
        body = {"prompt": "A", "max_tokens": 1, "priority": priority}
        error = server.ask("/v1/completions", body, 400, headers)["error"]
        assert error["param"] == "priority"
    assert complete(server, "A", 1, "two", priority=-3)["usage"]["completion_tokens"] == 1


def test_one_client_does_not_wait_for_all_of_another(server):
    """Client two comes behind forty prompts of client one, and does not wait for all of them."""
    prompts = [LINES[n * 10 : n * 10 + 700] for n in range(40)]
    body = {"prompt": prompts, "max_tokens": 8, "temperature": 0, "stream": True}
    stream = server.open("/v1/completions", body, {"Authorization": "Bearer one"})
    assert stream.status == 200
    assert stream.readline()
    complete(server, "A", 1, "two")
    assert metric(server, "num_requests_waiting") > 0
    assert stream.read().rstrip().endswith(b"data: [DONE]")


def test_parts_share_pages(tasks, pages, one_sequence, alone):
    """Each part has its part of a page; the bound is that of all."""
    parts = ("--context", 512, "--batch-size", 8, "--n-partitions", 2)
    made = Server(
        MODEL, tasks, pages / "r", *parts, "--kv-cache-memory-bytes", one_sequence,
        "--api-key-file", pages / "keys",
    )  # fmt: skip
    prompt = LINES[:700]
    for turn in range(2):
        answer = complete(made, prompt)
        assert (cached(answer) > 0) == (turn > 0)
        assert receipt_of(made, answer) == alone(prompt, 16)
    asked = [("ROMEO:" + " O" * i, 400) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for answer, one in zip(pool.map(lambda a: complete(made, *a), asked), asked, strict=True):
            assert receipt_of(made, answer) == alone(*one)
    assert metric(made, "num_preemptions_total") > 0
    assert made.stop() == 0
