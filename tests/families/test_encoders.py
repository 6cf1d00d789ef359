"""Encoders against transformers and sentence-transformers, by the vectors that
tools/families/make_encoder_vectors.py wrote: vectors and scores in float64. The same bits whatever
computes them, and whatever texts share a step."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import invar

sys.path.insert(0, str(Path(__file__).parent))
from encoder_folder import write_files  # noqa: E402
from random_checkpoint import write  # noqa: E402

LINES = (Path(__file__).parent / "encoder_vectors.jsonl").read_text().splitlines()
VECTORS = {v["name"]: v for v in map(json.loads, LINES)}
ALLOWED = 1e-6  # of the largest number of the output


@pytest.fixture(scope="module", params=VECTORS)
def model(request, tmp_path_factory):
    """-> (what transformers computes, the compiled plan)."""
    vector = VECTORS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    write(folder / "model", vector["config"], vector["shapes"], vector["seed"])
    write_files(folder / "model", vector["files"])
    invar("export", "--model-name", folder / "model", "-o", folder)
    invar("compile", folder / "model.onnx", "--output", folder / "plan.invar")
    return vector, folder / "plan.invar"


def outputs(plan, rows, *options):
    """-> {name: array} of texts of one length."""
    inputs = []
    for key, name in (("ids", "input_ids"), ("types", "token_type_ids")):
        if key in rows[0]:
            path = plan.parent / f"{name}.npy"
            np.save(path, np.array([row[key] for row in rows], np.int64))
            inputs += ["--input", f"{name}={path}"]
    invar("infer", plan, *inputs, "--tensors-output", plan.parent, *options)
    names = [
        name for name in ("embedding", "logits", "scores") if (plan.parent / f"{name}.npy").exists()
    ]
    return {name: np.load(plan.parent / f"{name}.npy") for name in names}


def test_outputs_against_float64(model):
    vector, plan = model
    largest = max(abs(x) for text in vector["texts"] for x in text["output"])
    for text in vector["texts"]:
        out = outputs(plan, [text])
        exact = np.array(text["output"])
        ours = out.get("embedding", out.get("logits"))[0]
        error = np.abs(ours - exact).max() / largest
        print(f"{len(text['ids'])} tokens: {error:.2g} of the largest")
        assert error <= ALLOWED
        if "scores" in out:
            assert np.abs(out["scores"][0] - 1 / (1 + np.exp(-exact))).max() <= ALLOWED


def test_scores_are_there_where_the_config_activates_them(model):
    vector, plan = model
    out = outputs(plan, vector["texts"][:1])
    one = len(vector["config"].get("id2label", "no")) == 1
    assert ("scores" in out) == (one and "sentence_transformers" not in vector["config"])


def test_bits_do_not_depend_on_what_computes_them(model):
    vector, plan = model
    text = vector["texts"][2]
    ours = {name: value.tobytes() for name, value in outputs(plan, [text]).items()}
    for options in (["--isa", "scalar", "--threads", 1], ["--isa", "avx2"], ["--threads", 3]):
        for name, value in outputs(plan, [text], *options).items():
            assert value.tobytes() == ours[name], options
    other = {**text, "ids": text["ids"][::-1]}
    for name, value in outputs(plan, [other, text, other]).items():
        assert value[1].tobytes() == ours[name]
