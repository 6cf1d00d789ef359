#!/usr/bin/env python3
"""Memory and time of long prompts on the CPU: a made model with the heads of a 1B Llama (32 of
queries, 8 of keys, of 64 elements; 16 layers), whose other sizes are small, so that attention is
what is measured. Needs the built program and numpy.

INVAR_BIN=build/bin/invar long_context.py [--layers N] [--heads Q KV] [--threads N] [LENGTH ...]

A line for each length: resident memory, what a token takes of it, over the floor (keys and values
in float32), processor time of a token of the prompt, and of a step behind the prompt. A length
has to double for a step to take twice as long, and the prompt four times."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
for folder in ("tests", "tests/families"):
    sys.path.insert(0, str(ROOT / folder))
from checkpoints import LLAMA_8B, shapes  # noqa: E402
from random_checkpoint import write  # noqa: E402

BIN = os.environ.get("INVAR_BIN", str(ROOT / "build/bin/invar"))
SIZE, STEPS, SMALL = 64, 64, 64


def model(folder, layers, heads, kv_heads):
    config = {**LLAMA_8B, "hidden_size": SMALL, "intermediate_size": SMALL, "vocab_size": 2048}
    config |= {"num_hidden_layers": layers, "num_attention_heads": heads, "head_dim": SIZE}
    config |= {"num_key_value_heads": kv_heads, "tie_word_embeddings": True}
    config |= {"bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32"}
    write(folder / "model", config, shapes(config), 1)
    subprocess.run([BIN, "export", "-q", "--model-name", folder / "model", "-o", folder], check=True)
    command = [BIN, "compile", "-q", folder / "model.onnx", "-o", folder / "plan.invar"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "plan.invar"


def measure(plan, tokens, new, threads):
    """-> (bytes resident at most, processor seconds) of a process of its own."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
        command = [BIN, "infer", plan, "--tokens-file", tokens, "--no-do-sample"]
        command += ["--max-new-tokens", new, "--threads", threads]
        os.execv(BIN, [str(c) for c in command])
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"{BIN} infer failed")
    return used.ru_maxrss * 1024, used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lengths", nargs="*", type=int, default=[1024, 2048, 4096])
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--heads", nargs=2, type=int, default=(32, 8))
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    floor = 2 * given.layers * given.heads[1] * SIZE * 4
    with tempfile.TemporaryDirectory() as temporary:
        plan = model(Path(temporary), given.layers, *given.heads)
        file, before = Path(temporary) / "tokens.json", None
        print("tokens  resident MB  B/token  of floor  prompt ms/token  step ms")
        for n in given.lengths:
            tokens = np.random.default_rng(n).integers(5, 2048, n)
            file.write_text(json.dumps(tokens.tolist()))
            most, seconds = measure(plan, file, 2, given.threads)
            _, more = measure(plan, file, 2 + STEPS, given.threads)
            each = (most - before[0]) / (n - before[1]) if before else 0
            shown = f"{each:7.0f}  {each / floor:8.3f}" if before else f"{'-':>7}  {'-':>8}"
            print(
                f"{n:6}  {most / 1e6:11.1f}  {shown}  {seconds / n * 1e3:15.3f}"
                f"  {(more - seconds) / STEPS * 1e3:7.2f}",
                flush=True,
            )
            before = (most, n)


if __name__ == "__main__":
    main()
