"""Each family against transformers, by the vectors that tools/families/make_vectors.py wrote:
logits in float64 and greedy tokens. The same answer whatever computes it."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import invar

sys.path.insert(0, str(Path(__file__).parent))
from random_checkpoint import write  # noqa: E402

LINES = (Path(__file__).parent / "vectors.jsonl").read_text().splitlines()
VECTORS = {v["name"]: v for v in map(json.loads, LINES)}
# Of the largest logit. Sums in float32 err by about 1e-7 of it.
ALLOWED = 1e-6


def ids(tokens):
    return ",".join(map(str, tokens))


@pytest.fixture(scope="module", params=VECTORS)
def model(request, tmp_path_factory):
    """-> (what transformers computes, the compiled plan)."""
    vector = VECTORS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    write(folder / "model", vector["config"], vector["shapes"], vector["seed"])
    invar("export", "--model-name", folder / "model", "-o", folder)
    invar("compile", folder / "model.onnx", "-o", folder / "plan.invar")
    return vector, folder / "plan.invar"


def logits(plan, vector, *options):
    out = plan.parent / "logits.bin"
    invar("infer", plan, "--tokens", ids(vector["tokens"]), "--logits-output", out, *options)
    return np.fromfile(out, "<f4").reshape(len(vector["tokens"]), -1)


def test_logits_against_float64(model):
    vector, plan = model
    ours = logits(plan, vector)
    for row, exact in vector["rows"].items():
        error = np.abs(ours[int(row)] - np.array(exact)).max() / vector["largest"]
        print(f"row {row}: {error:.2g} of the largest")
        assert error <= ALLOWED


def test_greedy_tokens_equal_transformers(model):
    vector, plan = model
    n = len(vector["greedy"])
    run = ["--tokens", ids(vector["tokens"]), "--no-do-sample", "--max-new-tokens", n]
    done = invar("infer", plan, *run).json()
    assert json.dumps(vector["greedy"])[1:-1] in json.dumps(done)


def test_bits_do_not_depend_on_what_computes_them(model):
    vector, plan = model
    ours = logits(plan, vector).tobytes()
    for options in (
        ["--isa", "scalar", "--threads", 1],
        ["--threads", 3, "--prefill-chunk", 5],
        ["--prefill-chunk", 1],
        ["--no-kv-cache"],
    ):
        assert logits(plan, vector, *options).tobytes() == ours, options
