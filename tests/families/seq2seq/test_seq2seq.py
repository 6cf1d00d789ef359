"""Encoder-decoders against transformers, by the vectors that tools/families/make_seq2seq_vectors.py
wrote: logits in float64 and greedy tokens. The same answer whatever computes it, and receipts."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import MODEL, invar, refused

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_decoders import (  # noqa: E402
    ALLOWED,
    check_bits,
    check_exact16,
    compiled,
    ids,
    largest_error,
    write_shipped,
)

LINES = (Path(__file__).parent / "vectors.jsonl").read_text().splitlines()
VECTORS = {v["name"]: v for v in map(json.loads, LINES)}


@pytest.fixture(scope="module", params=VECTORS)
def model(request, tmp_path_factory):
    """-> (what transformers computes, the compiled plan)."""
    vector = VECTORS[request.param]
    return vector, compiled(tmp_path_factory.mktemp(request.param), vector)


def logits(plan, text, *options):
    out = plan.parent / "logits.bin"
    invar("infer", plan, "--source-tokens", ids(text["source"]), "--tokens",
          ids(text["tokens"][:-1]), "--logits-output", out, *options)  # fmt: skip
    return np.fromfile(out, "<f4").reshape(len(text["tokens"]) - 1, -1)


def test_logits_against_float64(model):
    vector, plan = model
    for text in vector["texts"]:
        error = largest_error(logits(plan, text), text)
        print(f"{len(text['source'])} tokens: {error:.2g} of the largest")
        assert error <= ALLOWED


def test_greedy_tokens_equal_transformers(model):
    """Of sources of several lengths, alone and in one step."""
    vector, plan = model
    texts = vector["texts"]
    given = [x for t in texts for x in ("--source-tokens", ids(t["source"]))]
    starts = [x for t in texts for x in ("--tokens", t["tokens"][0])]
    run = ["--no-do-sample", "--max-new-tokens", len(texts[0]["tokens"]) - 1]
    together = [
        json.loads(line) for line in invar("infer", plan, *given, *starts, *run).out.splitlines()
    ]
    for i, text in enumerate(texts):
        alone = invar("infer", plan, *given[2 * i :][:2], *starts[2 * i :][:2], *run).json()
        assert alone["tokens"] == text["tokens"][1:]
        assert together[i]["tokens"] == alone["tokens"]
        assert together[i]["logits"] == alone["logits"]


def test_bits_do_not_depend_on_what_computes_them(model):
    vector, plan = model
    check_bits(logits, plan, vector["texts"][1])


def test_the_profile_exact16(model):
    vector, plan = model
    check_exact16(logits, plan, vector["texts"][0])


def folder_of(path, name, **settings):
    """A checkpoint with the shipped model's tokenizer, and so with its vocabulary."""
    write_shipped(path, VECTORS[name])
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": 7, **settings}))
    return path


@pytest.mark.parametrize("name", ["bart", "t5-gated", "umt5", "blenderbot"])
def test_receipts_are_verified(tmp_path, name):
    """Greedy and sampled; the receipt binds what the decoder began with, and one of several prompts
    together is that of the prompt alone."""
    path = folder_of(tmp_path / "model", name, decoder_start_token_id=2, forced_bos_token_id=5)
    prompts = ["ROMEO:\nBut soft", "O Romeo, Romeo, wherefore art thou Romeo? Deny thy father"]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(p) + "\n" for p in prompts))
    run = ("run", "--model-name", path, "--max-new-tokens", 20)
    sampled = ("--do-sample", "--temperature", 1.5, "--seed", 3, "--repetition-penalty", 1.2)
    invar(*run, *sampled, "--prompt-file", tmp_path / "p.jsonl", "--batch-size", 2,
          "--receipt-path", tmp_path / "r.json")  # fmt: skip
    for i, prompt in enumerate(prompts, start=1):
        alone = tmp_path / "alone.json"
        invar(*run, *sampled, "--prompt-text", prompt, "--receipt-path", alone, "--threads", 1)
        receipt = json.loads(alone.read_text())
        assert (
            receipt["receipt_hash"]
            == json.loads((tmp_path / f"r.{i}.json").read_text())["receipt_hash"]
        )
        assert receipt["input"]["decoder_tokens"] == [2] and receipt["output"]["tokens"][0] == 5
        assert receipt["program"]["recipe"] == "seq2seq-1"
        for options in ((), ("--steps", "3:9"), ("--isa", "scalar")):
            told = invar("verify", alone, "--model-name", path, *options)
            assert told.out.startswith((b"VERIFIED", b"SPOT CHECKED"))
    greedy = tmp_path / "g.json"
    invar(*run, "--prompt-text", prompts[0], "--receipt-path", greedy, "--forced-bos-token-id", 9)
    assert json.loads(greedy.read_text())["output"]["tokens"][0] == 9
    assert invar("verify", greedy, "--model-name", path).out.startswith(b"VERIFIED")
    (path / "generation_config.json").write_text(
        json.dumps({"eos_token_id": 7, "decoder_start_token_id": 3})
    )
    told = invar("verify", greedy, "--model-name", path, code=1)
    assert b"input.decoder_tokens: the receipt says [2], this machine computes [3]" in told.out


def test_a_judge_computes_what_the_decoder_made(tmp_path):
    """Traces leave the encoder out. A changed element of a result is found, of each operation and
    of all attention, which reads what the encoder gives."""
    path = folder_of(tmp_path / "model", "bart")
    receipt, here = tmp_path / "r.json", ("--model-name", path)
    invar("run", *here, "--prompt-text", "ROMEO:\nBut soft", "--max-new-tokens", 6,
          "--receipt-path", receipt)  # fmt: skip
    for name, how in (("t", ()), ("u", ("--isa", "scalar", "--prefill-chunk", 2))):
        invar("trace", receipt, *here, *how, "-o", tmp_path / f"{name}.json")
    trace = json.loads((tmp_path / "t.json").read_text())
    assert invar("diff", tmp_path / "t.json", tmp_path / "u.json").out == b"EQUAL\n"
    assert trace["computation"]["positions"] == 6
    origins = " ".join(v["origin"] for v in trace["values"])
    assert "model.decoder.layers.1" in origins and "model.encoder.layers" not in origins
    seen = {}
    for v in trace["values"]:
        crosses = "encoder_attn" in v["origin"] or "cross" in v["origin"]
        seen.setdefault((v["operation"], crosses), v["value"])
    assert sum(operation.startswith("attention") for operation, _ in seen) >= 2
    for value in seen.values():
        true, lie = tmp_path / "v.json", tmp_path / "w.json"
        invar("trace", receipt, *here, "--values", f"{value}:3", "-o", true)
        values = json.loads(true.read_text())
        values["result"] = values["result"][:-8] + "0000c03f"
        lie.write_text(json.dumps(values))
        done = invar("diff", true, lie, "--receipt", receipt, *here, code=1)
        assert f"cause     {lie}: its element" in done.text, value
    assert invar("diff", receipt, *here).out == b"EQUAL\n"
    t5 = folder_of(tmp_path / "t5", "t5")
    invar("run", "--model-name", t5, "--prompt-text", "x", "--max-new-tokens", 3, "--receipt-path",
          tmp_path / "t5.json")  # fmt: skip
    refused("trace", tmp_path / "t5.json", "--model-name", t5, "-o", tmp_path / "t5t.json", code=3,
            names=["no row for each position"])  # fmt: skip


def test_refusals(tmp_path):
    path = folder_of(tmp_path / "model", "bart")
    run = ("run", "--model-name", path, "--receipt-path", tmp_path / "r.json")
    refused(*run, "--prompt-text", "word " * 400, names=["takes at most 160"])
    refused(*run, "--prompt-text", "x", "--n-partitions", 2, code=3, names=["one partition"])
    invar(*run, "--prompt-text", "x", "--max-new-tokens", 4)
    refused("run", "--model-name", MODEL, "--prompt-text", "x", "--forced-bos-token-id", 9,
            names=["for models with an encoder"])  # fmt: skip
    (path / "tokenizer.json").rename(path / "source.spm")
    refused(*run, "--prompt-text", "x", code=3, names=["source.spm", "a tokenizer.json"])
    (path / "source.spm").rename(path / "tokenizer.json")
    config = json.loads((path / "config.json").read_text())
    for key, value in {"normalize_before": True, "activation_function": "tanh",
                       "is_encoder_decoder": False, "tie_encoder_decoder": True}.items():  # fmt: skip
        (path / "config.json").write_text(json.dumps(config | {key: value}))
        refused(*run, "--prompt-text", "x", code=3, names=[key])
    del config["decoder_start_token_id"], config["bos_token_id"]
    (path / "config.json").write_text(json.dumps(config))
    refused(*run, "--prompt-text", "x", names=["no decoder_start_token_id"])
