#!/usr/bin/env python3
"""Writes docs/reference/families.md: each small checkpoint of tests/families exported, compiled and
run, compared with transformers by the committed vectors. Needs the built program and numpy.

INVAR_BIN=build/bin/invar table.py [NAME ...]: the lines of these, else all"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/families"))
from random_checkpoint import write  # noqa: E402

OUT = ROOT / "docs/reference/families.md"
WAYS = [
    ["--isa", "scalar", "--threads", "1"],
    ["--isa", "avx2", "--threads", "2"],
    ["--threads", "3", "--prefill-chunk", "5"],
    ["--prefill-chunk", "1"],
    ["--no-kv-cache"],
]
HEAD = """# Families of models

`tools/families/table.py` writes this page. Each line is a small checkpoint with random weights of
`tests/families`, in a spelling of `config.json` that the field has. *Error*: the largest difference
of logits from transformers in float64, over the largest logit; after it that of transformers in
float32. *Greedy*: how many of 64 tokens are those of transformers in float32. *Bits*: whether the
logits of the prompt are the same bytes with the instruction sets scalar and avx2, one to three
threads, chunks of 1 and 5 tokens, and without memory. [families.md](../../spec/families.md) says
what each family reads of its config. The last lines are encoder-decoders
([seq2seq.md](../../spec/seq2seq.md)), whose source has 150 tokens.

"""
TAIL = """
## What is refused

Every line of this list ends with exit code 3, or 2 for sequences that are too long, and a message
that names what is not covered.

- Architectures of no line above: among others models of images or sound, and mixtures of
  experts of other forms: DBRX, DeepSeek-V4.
  [model-types.md](model-types.md) lists all types.
  Encoders have [a page of their own](encoders.md). Of a model of images and text above, images
  are not taken.
- An answer that leads beyond `original_max_position_embeddings` (4096 tokens) of Phi-3 with 128k
  tokens, Phi-3.5, Phi-4-mini and others with LongRoPE, where its prompt has fewer: longer prompts
  have other frequencies, and no sequence changes them ([decoder.29](../../spec/decoder.md)).
- Sequences beyond `max_position_embeddings` of the rotary type `dynamic`: transformers computes
  other frequencies at every length there, so its answers depend on the chunks of the prompt.
- Sequences of Llama 4 beyond `attention_chunk_size` (8192 tokens): layers that see a chunk alone
  see other tokens there ([decoder.35](../../spec/decoder.md)).
- `attn_logit_softcapping` of Gemma 3, which transformers ignores.
- Sequences of DeepSeek-V3.2 and GLM-5 beyond `index_topk` (2048 tokens): an indexer chooses among
  their positions, and up to there it chooses all ([decoder.73](../../spec/decoder.md)).
- Quantised weights other than those of [Quantised weights](../guide/quantised.md). Every key of
  [onnx.4](../../spec/checkpoint.md) that the family does not read.
"""


def invar(*arguments):
    command = [os.environ.get("INVAR_BIN", ROOT / "build/bin/invar"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def measure(vector, folder):
    """-> (error over the largest logit, equal greedy tokens, whether the bits agree)."""
    write(folder / "model", vector["config"], vector["shapes"], vector["seed"])
    plan, out = folder / "plan.invar", folder / "logits.bin"
    long = ["--long-context"] if vector["name"].endswith("-long-context") else []
    invar("export", "--model-name", folder / "model", "-o", folder, *long)
    invar("compile", folder / "model.onnx", "-o", plan)
    tokens = ["--tokens", ",".join(map(str, vector["tokens"]))]
    source = ["--source-tokens", ",".join(map(str, vector["source"]))] if "source" in vector else []
    digests, logits = set(), None
    for way in [[], *WAYS]:
        invar("infer", plan, *source, *tokens, "--logits-output", out, *way)
        digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
        logits = np.fromfile(out, "<f4").reshape(len(vector["tokens"]), -1)
    error = max(
        np.abs(logits[int(row)] - np.array(exact)).max() / vector["largest"]
        for row, exact in vector["rows"].items()
    )
    count = ["--no-do-sample", "--max-new-tokens", len(vector["greedy"])]
    if source:  # whose tokens are those of the answer
        tokens[1] = vector["tokens"][0]
    answer = json.loads(invar("infer", plan, *source, *tokens, *count))["tokens"]
    equal = sum(a == b for a, b in zip(answer, vector["greedy"], strict=True))
    return error, equal, len(digests) == 1


def vectors():
    """Decoders, and encoder-decoders with their longer source."""
    for name in ("vectors.jsonl", "seq2seq/vectors.jsonl"):
        for line in (ROOT / "tests/families" / name).read_text().splitlines():
            vector = json.loads(line)
            if "texts" in vector:
                text = vector["texts"][-1]
                tokens = text["tokens"]
                vector |= text | {"tokens": tokens[:-1], "greedy": tokens[1:]}
            yield vector


def main():
    rows = [
        "| family | checkpoint | error | float32 | greedy | bits |",
        "|---|---|---:|---:|---:|---|",
    ]
    kept = {row.split("|")[2].strip(): row for row in OUT.read_text().splitlines() if "| " in row}
    for vector in vectors():
        if sys.argv[1:] and vector["name"] in kept.keys() - set(sys.argv[1:]):
            rows.append(kept[vector["name"]])
            continue
        with tempfile.TemporaryDirectory() as temporary:
            error, equal, same = measure(vector, Path(temporary))
        rows.append(
            f"| {vector['config']['architectures'][0]} | {vector['name']} | {error:.1e} "
            f"| {vector['float32_error']:.1e} | {equal} | {'equal' if same else 'DIFFER'} |"
        )
        print(rows[-1])
    OUT.write_text(HEAD + "\n".join(rows) + "\n" + TAIL)


if __name__ == "__main__":
    main()
