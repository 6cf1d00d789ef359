#!/usr/bin/env python3
"""Made Llamas by one GPU, by ranks and by partitions on several: seconds of a prompt, tokens a
second, and whether every logit has the bits of one GPU. Needs the program built for CUDA, and
numpy.

    INVAR_BIN=build/bin/invar ranks.py [--shapes 1b,8b] [--gpus 2] [--numerics exact16,fp32]
                                       [--plans FOLDER] [--only TEXT]

A row each: the first run of a work is one GPU, and the last column is how much faster the others
are. "ranks" join within their steps, each on a GPU of its own. --plans: where this build has no
compiler, a folder with SHAPE/model.safetensors and, beside it, SHAPE/NUMERICS.invar, which another
build compiled. Exit code 1: some bit differs."""

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
BIN = os.environ.get("INVAR_BIN", str(ROOT / "build/bin/invar"))
VOCAB = 128256
# Work: lengths of the prompts, new tokens.
WORKS = {
    "one sequence": ([100], 256),
    "prompt of 8192": ([8192], 8),
    "64 sequences": ([100] * 64, 128),
}


def call(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{arguments[:2]}: {done.stdout}{done.stderr}")
    return done


def make_plan(shape, numerics, folder):
    """The plan of a seeded checkpoint, which is made where it is not there."""
    here, plan = folder / shape, folder / shape / f"{numerics}.invar"
    if plan.exists():
        return plan
    if not (here / "model.onnx").exists():
        call(sys.executable, ROOT / "tools/models/random_llama.py", here, "--size", shape)
        call(BIN, "export", "-q", "--model-name", here, "-o", here)
    call(BIN, "compile", "-q", here / "model.onnx", "-o", plan, "--numerics", numerics)
    return plan


def run(plan, tokens, new, where):
    """-> (digest of tokens and logits, seconds of the prompt, tokens a second)"""
    command = ["infer", plan, "--tokens-file", tokens, "--max-new-tokens", new, "--no-do-sample"]
    done = call(BIN, *command, "--progress", "lines", *where)
    rate = float(re.findall(r"([0-9.]+) tokens/s", done.stderr)[-1])
    prompt = re.findall(r"tokens (?:after|in) ([0-9.]+) s", done.stderr)
    return hashlib.sha256(done.stdout.encode()).hexdigest(), float(prompt[-1]), rate


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", default="1b,8b")
    parser.add_argument("--numerics", default="exact16,fp32")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--plans", type=Path)
    parser.add_argument("--only", default="", help="rows with this text")
    options = parser.parse_args()
    gpus, n = [f"cuda:{i}" for i in range(options.gpus)], options.gpus
    several = ["--device", ",".join(gpus)]
    places = {
        "one GPU": ["--device", gpus[0]],
        f"{n} ranks": [*several, "--tensor-parallel", n],
        f"{n} partitions": [*several, "--n-partitions", n],
    }
    random = np.random.default_rng(2)
    lists = {w: [random.integers(0, VOCAB - 1, k).tolist() for k in WORKS[w][0]] for w in WORKS}
    differ = False
    print("shape, numerics | work | where | prompt s | tokens/s | bits | faster")
    with tempfile.TemporaryDirectory() as made:
        for shape in options.shapes.split(","):
            for numerics in options.numerics.split(","):
                plan = make_plan(shape, numerics, options.plans or Path(made))
                for work, (lengths, new) in WORKS.items():
                    tokens = Path(made) / "tokens.json"
                    tokens.write_text(
                        json.dumps(lists[work] if len(lengths) > 1 else lists[work][0])
                    )
                    first = None
                    for place, where in places.items():
                        if first and options.only not in f"{shape} {numerics} {work} {place}":
                            continue
                        digest, prompt, rate = found = run(plan, tokens, new, where)
                        first = first or found
                        differ |= digest != first[0]
                        bits = digest[:8] if digest == first[0] else f"{digest[:8]} DIFFERS"
                        faster = first[1] / prompt if "prompt" in work else rate / first[2]
                        print(
                            f"{shape} {numerics} | {work} | {place} | {prompt:.3f} | {rate:.1f} | "
                            f"{bits} | {faster:.2f}",
                            flush=True,
                        )
    sys.exit(differ)


if __name__ == "__main__":
    main()
