"""Invar and the independent implementation agree on receipts, and take each other's."""

import json
import random
from pathlib import Path

import made_hybrids
import make_checkpoint
import make_vectors
import model_examples
import mutations
import pytest
from arithmetic.library import f32
from conftest import BIN, MODEL, execute
from pages.model import Model
from pages.processors import bad_words_ids
from pages.receipt import OPTIONAL, float_text
from pages.sampling import Parameters

import examples

PROMPTS = [
    "ROMEO:", "", "  \r\n\t ", "I'LL go 1999, \n\nto don'T", "é́ 日本 ½² Äpfel", "HAMLET: To be",
]  # fmt: skip
EDGES = {
    "--prompt-text": "The other seas in the end", "--max-new-tokens": 300, "--temperature": 1.3,
    "--top-k": 100, "--top-p": 0.95, "--seed": 12345678901234567890,
}  # fmt: skip


EXACT16 = {"--numerics": "exact16"}

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


@pytest.fixture(scope="module")
def shipped():
    return Model(MODEL)


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "edges"
    make_checkpoint.make(folder)
    return folder


def invar_run(model, path, options):
    """The receipt of `invar run`."""
    words = [word for pair in options.items() for word in pair]
    done = execute(["run", "--model-name", model, "--receipt-path", path, *words])
    assert done.code == 0, done.text
    return json.loads(path.read_bytes())


def own_run(model, options, execution):
    """The receipt of the independent implementation."""
    parameters = Parameters(
        True, f32(options["--temperature"]), options["--top-k"], f32(options["--top-p"]),
        options["--seed"],
    )  # fmt: skip
    return model.run(options["--prompt-text"], options["--max-new-tokens"], parameters, execution)


def test_examples_of_the_pages():
    assert list(examples.differences()) == []
    assert list(model_examples.differences()) == []


def test_vectors_are_those_of_this_build():
    assert make_vectors.vectors(BIN) == examples.published()


def test_the_demo(shipped, tmp_path):
    golden = json.loads(mutations.RECEIPTS["romeo"].read_bytes())
    own = shipped.run("ROMEO:", 64, Parameters(True, f32(0.8), 50), {"program": "independent"})
    assert own["receipt_hash"] == golden["receipt_hash"]
    path = tmp_path / "own.json"
    path.write_text(json.dumps(own), encoding="utf-8")
    done = execute(["verify", path, "--model-name", MODEL])
    assert done.code == 0 and b"VERIFIED" in done.out, done.text


def test_the_profile_exact16(edges, tmp_path):
    """exact16.7, exact16.8: the model that ships, and one with every kind of number."""
    golden = json.loads(mutations.RECEIPTS["exact16"].read_bytes())
    own = Model(MODEL, "exact16").run("ROMEO:", 64, Parameters(True, f32(0.8), 50), {})
    assert own["receipt_hash"] == golden["receipt_hash"]
    made = invar_run(
        MODEL, tmp_path / "r.json", {"--prompt-text": "ROMEO:", "--max-new-tokens": 64} | EXACT16
    )
    assert made["receipt_hash"] == golden["receipt_hash"]
    options = EDGES | {"--max-new-tokens": 40}
    receipt = invar_run(edges, tmp_path / "r.json", options | EXACT16)
    assert own_run(Model(edges, "exact16"), options, receipt["execution"]) == receipt


def test_a_false_receipt_is_found(shipped):
    receipt = json.loads(mutations.RECEIPTS["romeo"].read_bytes())
    receipt["output"]["tokens"][0] += 1
    assert "output.tokens[0]: other" in shipped.findings(receipt)


@pytest.mark.parametrize("name", ["signed", "salted", "turn-2"])
def test_fields_that_few_receipts_have(shipped, name):
    """receipt.24 to receipt.27"""
    receipt = json.loads((GOLDEN / f"receipts/romeo.{name}.json").read_bytes())
    assert list(shipped.findings(receipt)) == []


@pytest.mark.parametrize("number", range(20))
def test_sampled_runs(shipped, tmp_path, number):
    pick = random.Random(number)
    options = {
        "--prompt-text": PROMPTS[number % len(PROMPTS)],
        "--max-new-tokens": 8,
        "--temperature": float_text(f32(pick.choice([1e-5, 0.3, 0.8, 1, 1.7, 33.5, 123456789]))),
        "--top-k": pick.choice([0, 1, 2, 50, 2048, 100000]),
        "--top-p": pick.choice([0.05, 0.5, 0.9, 0.999, 1]),
        "--seed": pick.choice([0, 2**32, 2**64 - 1, pick.getrandbits(64)]),
    }
    receipt = invar_run(MODEL, tmp_path / "r.json", options)
    options["--temperature"] = float(options["--temperature"])
    assert own_run(shipped, options, receipt["execution"]) == receipt


@pytest.mark.parametrize("option", ["--no-do-sample", "--no-generation-config"])
def test_greedy_runs(shipped, tmp_path, option):
    path = tmp_path / "r.json"
    options = ["--prompt-text", "JULIET", "--max-new-tokens", 8, option, "--seed", 5]
    done = execute(["run", "--model-name", MODEL, "--receipt-path", path, *options])
    assert done.code == 0, done.text
    receipt = json.loads(path.read_bytes())
    own = shipped.run("JULIET", 8, Parameters(), receipt["execution"])
    assert own == receipt


@pytest.mark.parametrize("name", ["greedy", "drawn", "stop", "further"])
def test_settings(shipped, name):
    receipt = json.loads(mutations.RECEIPTS[name].read_bytes())
    given = receipt["input"]
    parameters = Parameters(
        given["do_sample"], f32(float(given["temperature"])), given["top_k"],
        f32(float(given["top_p"])), int(given["seed"]), f32(float(given.get("min_p", 0))),
        f32(float(given.get("epsilon_cutoff", 0))),
    )  # fmt: skip
    settings = {key: given[key] for key in given if f"input.{key}" in OPTIONAL}
    own = shipped.run(
        given["prompt"], given["max_new_tokens"], parameters, receipt["execution"], settings
    )
    assert own == receipt


def test_further_settings(shipped, tmp_path):
    """sampling.21, sampling.28, sampling.30 and sampling.31 in a run of this build."""
    golden = json.loads(mutations.RECEIPTS["further"].read_bytes())
    given, words = golden["input"], ["the", "love"]
    options = {
        "--prompt-text": given["prompt"], "--max-new-tokens": given["max_new_tokens"],
        "--temperature": given["temperature"], "--seed": given["seed"],
        "--short-circuit-length": given["short_circuit_length"],
        "--short-circuit-token": given["short_circuit_token"],
        "--allowed-token-ids": ",".join(map(str, given["allowed_token_ids"])),
        "--stop-token-ids": ",".join(map(str, given["stop_token_ids"])),
    }  # fmt: skip
    call = [*(word for pair in options.items() for word in pair), "--ignore-eos"]
    call += [word for text in words for word in ("--bad-words", text)]
    path = tmp_path / "r.json"
    done = execute(["run", "--model-name", MODEL, "--receipt-path", path, *call])
    assert done.code == 0, done.text
    assert json.loads(path.read_bytes())["receipt_hash"] == golden["receipt_hash"]
    assert bad_words_ids(shipped.tokenizer, words) == given["bad_words_ids"]


def test_the_made_checkpoint(edges, tmp_path):
    receipt = invar_run(edges, tmp_path / "r.json", EDGES)
    golden = json.loads(mutations.RECEIPTS["edges"].read_bytes())
    assert receipt["receipt_hash"] == golden["receipt_hash"]
    assert own_run(Model(edges), EDGES, receipt["execution"]) == receipt
    earlier = GOLDEN / "receipts/edges.format-1.json"
    done = execute(["verify", earlier, "--model-name", edges])
    assert done.code == 0 and b"VERIFIED" in done.out, done.text


@pytest.mark.parametrize("profile", ["fp32", "exact16"])
@pytest.mark.parametrize("family", made_hybrids.CONFIGS)
def test_hybrids(tmp_path, family, profile):
    """linear_attention.1, causal_conv.1: layers of the gated delta rule and state spaces, beside
    attention and experts, into a second chunk of positions."""
    make_checkpoint.make(tmp_path / family, family)
    options = EDGES | {"--max-new-tokens": 60, "--numerics": profile}
    receipt = invar_run(tmp_path / family, tmp_path / "r.json", options)
    assert len(receipt["input"]["tokens"]) + len(receipt["output"]["tokens"]) > 64
    assert own_run(Model(tmp_path / family, profile), options, receipt["execution"]) == receipt


def test_the_page_of_made_models(tmp_path):
    """spec/made-models.md has the digests and hashes of what its rules make."""
    page = (Path(__file__).resolve().parents[2] / "spec/made-models.md").read_text("utf-8")
    for name in ("edges", "tied"):
        make_checkpoint.make(tmp_path / name, name)
        receipt = json.loads(mutations.RECEIPTS[name].read_bytes())
        own = Model(tmp_path / name)
        assert list(own.findings(receipt)) == []
        logits = receipt["output"]["logits"]
        for value in [
            *(receipt["model"][key] for key in ("config", "tokenizer", "weights")),
            receipt["program"]["digest"], receipt["receipt_hash"], logits[0], logits[299],
        ]:  # fmt: skip
            assert f"`{value}`" in page, (name, value)


ROTARY = [
    {"rope_type": "default", "rope_theta": 500000.0},
    {"rope_type": "linear", "factor": 3.3},
    {
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
    },
    {"rope_type": "yarn", "factor": 3.3, "truncate": False, "mscale": 1.1, "mscale_all_dim": 0.7},
    {"rope_type": "yarn", "rope_theta": 12345.0, "factor": 40.0, "attention_factor": 1.3},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ROTARY)))
def test_rotary_types(edges, tmp_path, number):
    folder = tmp_path / "turned"
    folder.mkdir()
    for path in edges.iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "config.json").unlink()
    config = make_checkpoint.CONFIG | {"rope_parameters": ROTARY[number]}
    (folder / "config.json").write_text(json.dumps(config))
    options = EDGES | {"--max-new-tokens": 3}
    receipt = invar_run(folder, tmp_path / "r.json", options)
    assert own_run(Model(folder), options, receipt["execution"]) == receipt
