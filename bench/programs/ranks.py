#!/usr/bin/env python3
"""Made Llamas by one GPU and by ranks on several: tokens a second, and whether every logit has the
bits of one GPU. Needs the program built for CUDA, and numpy.

    INVAR_BIN=build/bin/invar ranks.py [--shapes 1b,8b] [--ranks 2] [--numerics exact16,fp32]

A row each: the first run is one GPU; "ranks" join within their steps, each on a GPU of its own;
"ranks, by the host" are twice as many places as GPUs, which join between stages. Exit code 1: some
bit differs."""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from checkpoints import LLAMA_8B, header_bytes, shapes  # noqa: E402

BIN = os.environ.get("INVAR_BIN", str(ROOT / "build/bin/invar"))
TINY = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3, "vocab_size": 130000}
ONE_B = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16}
CHANGES = {
    "tiny": TINY | {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32},
    "1b": ONE_B | {"head_dim": 64, "tie_word_embeddings": True},
    "8b": {},
}
BLOCK = 16_777_259  # elements that repeat, a prime: rows of a matrix are not alike
PROMPT, LONG, NEW, SEQUENCES = 100, 6000, 128, 64


def write(folder, config):
    """A checkpoint of repeated random bf16 weights, as fast as the disk takes them."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    random = np.random.default_rng(1)
    values = (random.standard_normal(BLOCK, np.float32) * 0.02).view(np.uint32) >> 16
    block = np.concatenate([values.astype(np.uint16)] * 2)
    ones = np.full(config["hidden_size"], 0x3F80, np.uint16)
    with open(folder / "model.safetensors", "wb") as f:
        tensors = shapes(config)
        f.write(header_bytes(tensors, "BF16", 2)[0])
        at = 0
        for shape in tensors.values():
            left = int(np.prod(shape))
            if len(shape) == 1:
                ones[:left].tofile(f)
                continue
            while left:
                count = min(left, BLOCK)
                block[at : at + count].tofile(f)
                at, left = (at + count) % BLOCK, left - count


def invar(*arguments):
    done = subprocess.run([BIN, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"invar {arguments[0]}: {done.stderr}")
    return done


def run(plan, tokens, new, where):
    """-> (digest of tokens and logits, seconds of the prompt, tokens a second)"""
    command = ["infer", plan, "--tokens-file", tokens, "--max-new-tokens", new, "--no-do-sample"]
    done = invar(*command, "--progress", "lines", *where)
    rate = float(re.findall(r"([0-9.]+) tokens/s", done.stderr)[-1])
    prompt = re.findall(r"tokens (?:after|in) ([0-9.]+) s", done.stderr)
    return hashlib.sha256(done.stdout.encode()).hexdigest(), float(prompt[-1]), rate


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", default="1b,8b")
    parser.add_argument("--numerics", default="exact16,fp32")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--device", default="cuda", help="cpu: to try the program out")
    options = parser.parse_args()
    gpus = ["cpu"]
    if options.device == "cuda":
        gpus = [f"cuda:{i}" for i in range(options.ranks)]
    ranks = ["--device", ",".join(gpus), "--tensor-parallel", options.ranks]
    places = [
        ("one GPU", ["--device", gpus[0]]),
        ("ranks", ranks),
        ("ranks, by the host", [*ranks, "--n-partitions", 2]),
    ]
    right = True
    print("shape, numerics | work | where | prompt s | tokens/s | bits")
    for shape in options.shapes.split(","):
        config = LLAMA_8B | CHANGES[shape]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder / "model", config)
            invar("export", "-q", "--model-name", folder / "model", "-o", folder)
            random = np.random.default_rng(2)
            vocab = config["vocab_size"] - 1
            works = [("one sequence", [PROMPT], NEW), ("long prompt", [LONG], 8)]
            works.append((f"{SEQUENCES} sequences", [PROMPT] * SEQUENCES, NEW))
            for numerics in options.numerics.split(","):
                plan = folder / f"{numerics}.invar"
                invar("compile", "-q", folder / "model.onnx", "-o", plan, "--numerics", numerics)
                for work, lengths, new in works:
                    lists = [random.integers(0, vocab, n).tolist() for n in lengths]
                    tokens = folder / "tokens.json"
                    tokens.write_text(json.dumps(lists if len(lists) > 1 else lists[0]))
                    found = []
                    for place, where in places:
                        digest, prompt, rate = run(plan, tokens, new, where)
                        found.append(digest)
                        same = digest == found[0]
                        right &= same
                        bits = digest[:8] if same else f"{digest[:8]} DIFFERS"
                        print(f"{shape} {numerics} | {work} | {place} | {prompt:.3f} | {rate:.1f} | {bits}")
                        sys.stdout.flush()
    sys.exit(not right)


if __name__ == "__main__":
    main()
