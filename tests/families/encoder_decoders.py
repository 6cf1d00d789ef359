"""What the tests of models with an encoder share: sources are texts or recordings. `logits(plan,
given, *options)` is their own."""

import shutil

import numpy as np
from conftest import MODEL, invar
from random_checkpoint import write

ALLOWED, ALLOWED_EXACT16 = 1e-6, 5e-4  # of the largest logit


def ids(tokens):
    return ",".join(map(str, tokens))


def largest_error(ours, given):
    """Of rows that transformers computed in float64, as a part of the largest logit."""
    return max(
        np.abs(ours[int(row)] - np.array(exact)).max() / given["largest"]
        for row, exact in given["rows"].items()
    )


def compiled(folder, vector):
    """The plan of a vector's model in folder / "model"."""
    write(folder / "model", vector["config"], vector["shapes"], vector["seed"])
    invar("export", "--model-name", folder / "model", "-o", folder)
    invar("compile", folder / "model.onnx", "-o", folder / "plan.invar")
    return folder / "plan.invar"


def check_bits(logits, plan, given):
    """The logits have the same bits whatever computes them."""
    ours = logits(plan, given).tobytes()
    for options in (
        ["--isa", "scalar", "--threads", 1],
        ["--isa", "avx2", "--threads", 3, "--prefill-chunk", 5],
        ["--prefill-chunk", 1],
        ["--no-kv-cache"],
    ):
        assert logits(plan, given, *options).tobytes() == ours, options


def check_exact16(logits, fp32, given):
    """The profile exact16 is near, and has the same bits whatever computes it."""
    plan = fp32.parent / "exact16.invar"
    invar("compile", plan.parent / "model.onnx", "--numerics", "exact16", "-o", plan)
    ours = logits(plan, given)
    assert largest_error(ours, given) <= ALLOWED_EXACT16
    for options in (["--isa", "scalar", "--threads", 1], ["--prefill-chunk", 3]):
        assert logits(plan, given, *options).tobytes() == ours.tobytes(), options


def write_shipped(path, vector):
    """A checkpoint of the vector's kind with the shipped model's tokenizer, and so with its
    vocabulary."""
    shapes = {
        tensor: [2048 if n == vector["config"]["vocab_size"] else n for n in shape]
        for tensor, shape in vector["shapes"].items()
    }
    write(path, vector["config"] | {"vocab_size": 2048}, shapes, vector["seed"])
    shutil.copy(MODEL / "tokenizer.json", path)
