#!/usr/bin/env python3
"""What drafts gain on a text that repeats: tokens/s with --speculate by those without.

drafts.py INVAR [--shipped FOLDER] [--width N] [--layers N] [--tokens N] [--threads N] [--rounds N]

Two models: the shipped one, and a made one of the Llama family with random weights, whose greedy
answers repeat. A round runs each without and with drafts, in turn; every receipt must be the one
without. The figure is the median of the rounds."""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "ROMEO:\nBut soft, what light through yonder window breaks?\n" * 4


def made_model(folder, tokenizer_of, width, layers):
    """A checkpoint in bfloat16 with the tokenizer of another one."""
    shutil.copytree(tokenizer_of, folder)
    config = json.loads((folder / "config.json").read_text())
    inner = width * 11 // 4
    config |= {"hidden_size": width, "intermediate_size": inner, "num_hidden_layers": layers}
    config |= {"num_attention_heads": width // 64, "num_key_value_heads": width // 128}
    config |= {"head_dim": 64, "max_position_embeddings": 4096, "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {
        "model.embed_tokens.weight": [config["vocab_size"], width],
        "model.norm.weight": [width],
    }
    shapes["lm_head.weight"] = [config["vocab_size"], width]
    for layer in range(layers):
        name = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{name}{norm}.weight"] = [width]
        for part, rows in {"q": width, "k": width // 2, "v": width // 2, "o": width}.items():
            shapes[f"{name}self_attn.{part}_proj.weight"] = [rows, width]
        for part in ("gate", "up"):
            shapes[f"{name}mlp.{part}_proj.weight"] = [inner, width]
        shapes[f"{name}mlp.down_proj.weight"] = [width, inner]
    for old in folder.glob("*.safetensors*"):
        old.unlink()
    header, at = {}, 0
    for name, shape in shapes.items():
        end = at + 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    random = np.random.default_rng(1)
    with open(folder / "model.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for name, shape in shapes.items():
            values = random.standard_normal(shape, np.float32)
            # The layers add little to an embedding, so that a token follows from the one before it,
            # and the answer soon goes in a circle.
            if "embed" not in name:
                small = 0.02 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1
                values *= small * shape[-1] ** -0.5
            if len(shape) == 1:
                values = np.ones(shape, np.float32)
            f.write((values.view(np.uint32) >> 16).astype("<u2").tobytes())


def run(args, model, folder, *options):
    """-> (the answer, the receipt's bytes, processor seconds)."""
    receipt = folder / "receipt.json"
    command = [args.invar, "run", "--model-name", model, "--prompt-text", PROMPT, "--json"]
    command += [
        "--max-new-tokens",
        str(args.tokens),
        "--no-do-sample",
        "--threads",
        str(args.threads),
    ]
    command += ["--tasks-root", folder / "tasks", "--receipt-path", receipt, *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    answer = json.loads(done.stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answer, receipt.read_bytes(), after.ru_utime - before.ru_utime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("invar")
    parser.add_argument("--shipped", default=ROOT / "models/shakespeare-4m", type=Path)
    parser.add_argument("--width", default=1024, type=int)
    parser.add_argument("--layers", default=12, type=int)
    parser.add_argument("--tokens", default=256, type=int)
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--numerics", default="fp32")
    parser.add_argument("--speculate", default="prompt")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        made_model(folder / "made", args.shipped, args.width, args.layers)
        for name, model in (("shipped", args.shipped), ("made", folder / "made")):
            ratios = []
            for _ in range(args.rounds):
                plain, receipt, cpu = run(args, model, folder, "--numerics", args.numerics)
                options = ["--numerics", args.numerics, "--speculate", args.speculate]
                drafted, same, less = run(args, model, folder, *options)
                if same != receipt:
                    sys.exit(f"{name}: drafts changed the receipt")
                rates = [a["decode_tokens_per_second"] for a in (plain, drafted)]
                ratios.append(rates[1] / rates[0])
                print(f"{name}: {rates[0]:.1f} -> {rates[1]:.1f} tokens/s, ", end="")
                print(f"{cpu:.2f} -> {less:.2f} processor seconds, ", end="")
                print(
                    f"{drafted['accepted']} of {drafted['drafted']} drafted tokens accepted",
                    flush=True,
                )
            print(f"{name}: {statistics.median(ratios):.2f} x, equal receipts")


if __name__ == "__main__":
    main()
