#!/usr/bin/env python3
"""Writes docs/reference/encoders.md: each small encoder of tests/families exported, compiled and
run, compared with transformers by the committed vectors. Needs the built program and numpy.

INVAR_BIN=build/bin/invar encoder_table.py"""

import json
import tempfile
from pathlib import Path

import numpy as np
from table import ROOT, invar, write

OUT = ROOT / "docs/reference/encoders.md"
WAYS = [
    ["--isa", "scalar", "--threads", "1"],
    ["--isa", "avx2", "--threads", "2"],
    ["--threads", "3"],
]
HEAD = """# Encoders

`tools/families/encoder_table.py` writes this page. Each line is a small checkpoint with random
weights of `tests/families`, for texts of 1, 7 and 150 tokens. *Error*: the largest difference of
vectors or scores from transformers in float64, pooled as sentence-transformers pools them, over the
largest number of the output. *Bits*: whether they are the same bytes with the instruction sets
scalar and avx2, one to three threads, and beside other texts. [encoder.md](../../spec/encoder.md)
says what each family reads of its config, [the guide](../guide/embed.md) how they are used.

"""
TAIL = """
## What is refused

Every line of this list ends with exit code 3 and a message that names the key, the module or the
architecture.

- Encoders of no line above: DeBERTa, T5, and models that bring code of their own
  (`auto_map`), such as nomic-bert and the GTE models of the type `new`.
- Classes of transformers that answer questions or label tokens.
- Decoders that serve as encoders, such as Qwen3-Embedding and E5-Mistral.
- Modules of sentence-transformers other than Transformer, Pooling and Normalize, in this order; so
  LaBSE, which has a Dense module. `do_lower_case`, `truncate_dim`, and a prompt where
  `include_prompt` is false.
- `rerank` with a classifier of several labels, or with an activation other than Sigmoid and
  Identity.
- Relative positions of BERT (`position_embedding_type`), activations other than silu, gelu, its
  tanh form, relu and relu2, and every key of [onnx.4](../../spec/checkpoint.md) that the family
  does not read.
"""


def outputs(plan, rows, *options):
    inputs = []
    for key, name in (("ids", "input_ids"), ("types", "token_type_ids")):
        if key in rows[0]:
            np.save(plan.parent / f"{name}.npy", np.array([row[key] for row in rows], np.int64))
            inputs += ["--input", f"{name}={plan.parent / name}.npy"]
    invar("infer", plan, *inputs, "--tensors-output", plan.parent, *options)
    for name in ("embedding", "logits"):
        if (plan.parent / f"{name}.npy").exists():
            return np.load(plan.parent / f"{name}.npy")


def measure(vector, folder):
    """-> (error over the largest number, whether the bits agree)."""
    write(folder / "model", vector["config"], vector["shapes"], vector["seed"])
    for name, content in vector["files"].items():
        (folder / "model" / name).parent.mkdir(exist_ok=True)
        (folder / "model" / name).write_text(json.dumps(content))
    invar("export", "--model-name", folder / "model", "-o", folder)
    invar("compile", folder / "model.onnx", "-o", folder / "plan.invar")
    largest = max(abs(x) for text in vector["texts"] for x in text["output"])
    error, same = 0, True
    for text in vector["texts"]:
        ours = outputs(folder / "plan.invar", [text])
        error = max(error, np.abs(ours[0] - np.array(text["output"])).max() / largest)
        for way in WAYS:
            same &= outputs(folder / "plan.invar", [text], *way).tobytes() == ours.tobytes()
        other = {**text, "ids": text["ids"][::-1]}
        beside = outputs(folder / "plan.invar", [other, text])
        same &= beside[1].tobytes() == ours[0].tobytes()
    return error, same


def main():
    rows = ["| family | checkpoint | pooling | error | bits |", "|---|---|---|---:|---|"]
    for line in (ROOT / "tests/families/encoder_vectors.jsonl").read_text().splitlines():
        vector = json.loads(line)
        with tempfile.TemporaryDirectory() as temporary:
            error, same = measure(vector, Path(temporary))
        architecture = vector["config"]["architectures"][0]
        pooling = vector["files"].get("1_Pooling/config.json", {"pooling_mode": "mean"})
        modes = pooling.get("pooling_mode") or [
            key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
            for key, on in pooling.items()
            if on is True
        ]
        modes = modes if isinstance(modes, str) else ", ".join(modes)
        if architecture.endswith("ForSequenceClassification"):
            modes = "scores"
        rows.append(
            f"| {architecture} | {vector['name']} | {modes} | {error:.1e} "
            f"| {'equal' if same else 'DIFFER'} |"
        )
        print(rows[-1], flush=True)
    OUT.write_text(HEAD + "\n".join(rows) + "\n" + TAIL)


if __name__ == "__main__":
    main()
