"""invar serve with several models: one that chats, one of embeddings and a reranker."""

import json
import sys

import pytest
from conftest import ROOT, invar

sys.path[1:1] = [str(ROOT / "tests/serve"), str(ROOT / "tests/families")]
from server import Server  # noqa: E402
from test_forms import SCRIPTS, body, receipts_of, server  # noqa: E402, F401


@pytest.fixture(scope="module")
def several(server, tmp_path_factory):  # noqa: F811
    """A chat model, one of embeddings and a reranker -> the server and their folders."""
    from encoder_folder import write_encoder

    folder = tmp_path_factory.mktemp("several")
    lines = (ROOT / "tests/families/encoder_vectors.jsonl").read_text().splitlines()
    vectors = {v["name"]: v for v in map(json.loads, lines)}
    names = ["bert", "bert-reranker"]
    for name in names:
        write_encoder(folder / name, vectors[name])
    config = folder / "bert/config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "matryoshka_dimensions": [8]}))
    options = [o for name in names for o in ("--model-name", folder / name)]
    made = Server(server.model, folder / "tasks", folder / "receipts", *options)
    made.folder = folder
    yield made
    assert made.stop() == 0


def alone(several, command, name, *options):
    """The rows of the command, and its receipts."""
    paths = several.folder / f"{command}.json"
    options = ["--tasks-root", several.folder / "tasks", "--receipt-path", paths, *options]
    done = invar(command, "--model-name", several.folder / name, "--json", *options)
    rows = [json.loads(line, parse_float=str) for line in done.out.decode().splitlines()]
    return rows, [row["receipt_hash"] for row in rows]


def without_execution(text):
    receipt = json.loads(text)
    del receipt["execution"]
    return receipt


def test_embeddings_are_those_of_embed(several):
    import base64

    import numpy as np

    texts = ["Hello world", "How many people live in Berlin?", "A dog [SEP] a CAT"]
    rows, receipts = alone(several, "embed", "bert", *texts)
    response = several.open("/v1/embeddings", {"input": texts, "model": "bert"})
    header = response.getheader("x-invar-receipt")
    answer = json.loads(response.read(), parse_float=str)
    assert [d["embedding"] for d in answer["data"]] == [row["embedding"] for row in rows]
    assert receipts_of(answer) == receipts and header == ", ".join(receipts)
    assert answer["usage"]["prompt_tokens"] == sum(row["tokens"] for row in rows)
    kept = several.open(f"/v1/receipts/{receipts[0]}").read()
    mine = (several.folder / "embed.1.json").read_bytes()
    assert without_execution(kept) == without_execution(mine)
    asked = {
        "input": texts[0],
        "encoding_format": "base64",
        "dimensions": len(rows[0]["embedding"]),
    }
    (one,) = several.ask("/v1/embeddings", asked)["data"]
    values = np.frombuffer(base64.b64decode(one["embedding"]), "<f4")
    assert values.tobytes() == np.array(rows[0]["embedding"], np.float32).tobytes()
    # A shorter vector that the model declares: of length 1 again, with the receipt of the whole
    # one.
    short, same = alone(several, "embed", "bert", *texts, "--dimensions", 8)
    response = several.open("/v1/embeddings", {"input": texts, "dimensions": 8})
    answer = json.loads(response.read(), parse_float=str)
    assert [d["embedding"] for d in answer["data"]] == [row["embedding"] for row in short]
    assert receipts_of(answer) == same == receipts
    for whole_row, row in zip(rows, short):
        vector, got = (np.array(r["embedding"], np.float64) for r in (whole_row, row))
        is_normal = abs(np.linalg.norm(vector) - 1) < 1e-5
        want = vector[:8] / (np.linalg.norm(vector[:8]) if is_normal else 1)
        assert is_normal and np.abs(got - want).max() < 1e-6
    long = "the cats sat on the mat. " * 9
    error = several.ask("/v1/embeddings", {"input": ["a", long]}, 400)["error"]
    assert error["code"] == "context_length_exceeded" and "40" in error["message"]
    cut = several.ask("/v1/embeddings", {"input": long, "truncate_prompt_tokens": -1})
    assert receipts_of(cut) == alone(several, "embed", "bert", long)[1]


def test_rerank_is_that_of_rerank(several):
    query, documents = "how many people", ["Berlin is a large city!", "a dog", "Hello world"]
    rows, receipts = alone(several, "rerank", "bert-reranker", "--query", query, *documents)
    for path in ("/v1/rerank", "/rerank", "/v2/rerank"):
        response = several.open(path, {"query": query, "documents": documents})
        answer = json.loads(response.read(), parse_float=str)
        shown = [(r["index"], r["relevance_score"]) for r in answer["results"]]
        assert shown == [(row["index"], row["score"]) for row in rows]
        assert sorted(receipts_of(answer)) == sorted(receipts)
    objects = [{"text": d} for d in documents]
    asked = {"query": query, "documents": objects, "top_n": 1, "return_documents": True}
    (best,) = several.ask("/v1/rerank", asked | {"model": "bert-reranker"})["results"]
    assert best["document"] == {"text": documents[rows[0]["index"]]}
    for path in ("/v1/score", "/score"):
        scored = several.open(path, {"text_1": query, "text_2": documents}).read()
        scored = json.loads(scored, parse_float=str)
        scores = {d["index"]: d["score"] for d in scored["data"]}
        assert scores == {row["index"]: row["score"] for row in rows}
        assert sorted(receipts_of(scored)) == sorted(receipts)


def test_lines_of_a_batch_ask_a_reranker(several, tmp_path):
    """By each name that the server has for the request."""
    query, documents = "how many people", ["Berlin is a large city!", "a dog", "Hello world"]
    _, receipts = alone(several, "rerank", "bert-reranker", "--query", query, *documents)
    asked = dict.fromkeys(
        ("/v1/rerank", "/rerank", "/v2/rerank"), {"query": query, "documents": documents}
    )
    asked |= dict.fromkeys(("/v1/score", "/score"), {"text_1": query, "text_2": documents})
    lines = [{"custom_id": p, "method": "POST", "url": p, "body": b} for p, b in asked.items()]
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = [
        "--model-name",
        several.folder / "bert-reranker",
        "--tasks-root",
        several.folder / "tasks",
    ]
    invar("batch", file, *options)
    answers = (tmp_path / "in.jsonl.results/output.jsonl").read_text().splitlines()
    for answer, path in zip(map(json.loads, answers), asked, strict=True):
        assert answer["custom_id"] == path and answer["error"] is None
        assert sorted(receipts_of(answer["response"]["body"])) == sorted(receipts)


def test_figures_of_texts(several):
    """Each text is an answer, as vLLM counts."""
    names = ["request_prompt_tokens", "e2e_request_latency_seconds"]
    names += [f"request_{of}_time_seconds" for of in ("queue", "prefill", "inference")]
    before = [several.metric(f"{name}_count") for name in names]
    tokens = several.metric("prompt_tokens_total")
    answers = [several.ask("/v1/embeddings", {"input": ["a", "a dog", "Hello world"]})]
    answers += [several.ask("/v2/rerank", {"query": "a", "documents": ["b", "c"]})]
    assert [several.metric(f"{name}_count") for name in names] == [n + 5 for n in before]
    used = sum(answer["usage"]["prompt_tokens"] for answer in answers)
    assert several.metric("prompt_tokens_total") == tokens + used


def test_several_models(several):
    models = several.ask("/v1/models")["data"]
    assert [m["id"] for m in models] == ["scripted", "bert", "bert-reranker"]
    assert [m["kind"] for m in models] == ["language", "vectors", "scores"]
    assert all(m["max_model_len"] > 0 and len(m["weights"]) == 64 for m in models)
    assert several.ask("/v1/models/bert") == models[1]
    for asked, status, words in (
        (body("plain", model="gpt-4"), 404, "scripted, bert, bert-reranker"),
        (body("plain", model="bert"), 400, "writes no text"),
    ):
        assert words in several.ask("/v1/completions", asked, status)["error"]["message"]
    for asked, status, words in (
        ({"input": "a", "model": "bert-reranker"}, 400, "embeddings"),
        ({"input": "a", "model": "scripted"}, 400, "embeddings"),
        ({"input": "a", "model": "ada"}, 404, "scripted, bert, bert-reranker"),
        ({"input": [[1, 2]]}, 400, "check_embedding_ctx_length"),
        ({"input": [15339, 1917]}, 400, "check_embedding_ctx_length"),
        ({"input": []}, 400, "input"),
        ({"input": ""}, 400, "empty"),
        ({"input": "a", "dimensions": 7}, 400, "dimensions"),
        ({"input": "a", "encoding_format": "int8"}, 400, "base64"),
        ({"input": "a", "frobnicate": 7}, 400, "frobnicate"),
        ({"model": "bert"}, 400, "input"),
    ):
        assert words in several.ask("/v1/embeddings", asked, status)["error"]["message"]
    for asked, words in (
        ({"query": "a", "documents": []}, "documents"),
        ({"query": "a", "documents": [3]}, "documents"),
        ({"query": "", "documents": ["a"]}, "query"),
        ({"documents": ["a"]}, "query"),
        ({"query": "a", "documents": ["a"], "max_tokens_per_doc": 9}, "max_tokens_per_doc"),
        ({"query": "a", "documents": ["a"], "model": "bert"}, "bert is not a reranker"),
    ):
        for path in ("/v1/rerank", "/v2/rerank"):
            assert words in several.ask(path, asked, 400)["error"]["message"]
    pair = {"text_1": "a", "text_2": "b", "model": "scripted"}
    assert "scripted is not a reranker" in several.ask("/score", pair, 400)["error"]["message"]
    receipt = several.receipt(receipts_of(several.complete(body("plain", model="scripted")))[0])
    assert several.ask("/v1/receipts/verify", receipt)["ok"]


def test_other_models_are_no_company(several):
    """All models compute at once, and no bit shows it."""
    from concurrent.futures import ThreadPoolExecutor

    texts = ["hello", "a dog", "Berlin is a large city!"]
    asked = [("/v1/completions", body(s, model="scripted")) for s in SCRIPTS]
    asked += [("/v1/embeddings", {"input": texts[: i % 3 + 1]}) for i in range(8)]
    asked += [("/v1/rerank", {"query": "people", "documents": texts[i % 3 :]}) for i in range(8)]
    alone = [receipts_of(several.ask(*a)) for a in asked]
    with ThreadPoolExecutor(len(asked)) as pool:
        together = list(pool.map(lambda a: receipts_of(several.ask(*a)), asked))
    assert together == alone


def test_options_of_one_model(server, tmp_path):  # noqa: F811
    for options, words in (
        (["--model-name", server.model, "--revision", "main"], "--revision"),
        (["--model-name", server.model], "two models are called scripted"),
    ):
        start = ["serve", "--model-name", server.model, *options, "--port", 0]
        start += ["--tasks-root", server.model.parent / "tasks", "--receipts", tmp_path]
        assert words in invar(*start, code=2).text
