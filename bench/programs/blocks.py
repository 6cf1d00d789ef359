#!/usr/bin/env python3
"""Decoding and prompts of GGUF files in blocks on the CPU, against llama.cpp, in turns.

    blocks.py make FOLDER [--only TYPE...] [--layers N]
    blocks.py run FOLDER [--invar PROGRAM...] [--rounds N] [--only TYPE...]

`make` writes a Llama of the 1B shape with fewer layers and the shipped model's vocabulary, its
matrices of random blocks, a file a type. `run` times `invar run` of each program, fp32, and
llama.cpp (the peer of hybrids.py, which says what it needs) in alternation, one thread each. A row
has milliseconds a token of a prompt of 256 and of 128 new tokens, the best of the rounds, and the
peer's time over ours. Times are of the processor, so other work on the machine disturbs little;
ours are differences between runs of more and fewer tokens, and so have no start in them.

The peer rounds activations to 8 bits and multiplies integers. Ours never rounds them: its sums are
those of fp32 with the numbers that the file says. So the texts of the two differ."""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tests" / "weights")]
import gguf_files  # noqa: E402
import hybrids  # noqa: E402
import numpy as np  # noqa: E402

MODEL = Path(__file__).parents[2] / "models" / "shakespeare-4m"
TYPES = ("Q8_0", "Q4_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL")
CONFIG = {
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
}


def command_make(args):
    args.folder.mkdir(parents=True, exist_ok=True)
    vocabulary = gguf_files.byte_level_metadata(MODEL, "smaug-bpe")
    tokens = len(vocabulary["tokenizer.ggml.tokens"])
    config = {**CONFIG, "num_hidden_layers": args.layers, "vocab_size": tokens}
    width, inner, keys = (
        config["hidden_size"],
        config["intermediate_size"],
        config["num_key_value_heads"] * config["head_dim"],
    )
    layer = {
        "attn_q": (width, width), "attn_k": (keys, width), "attn_v": (keys, width),
        "attn_output": (width, width), "ffn_gate": (inner, width), "ffn_up": (inner, width),
        "ffn_down": (width, inner),
    }  # fmt: skip
    for kind in args.only or TYPES:
        random = np.random.default_rng(1)
        tensors = {}

        def add(name, shape, kind):
            raw = gguf_files.random_bytes(kind, int(np.prod(shape)), random)
            tensors[f"{name}.weight"] = (kind, shape, raw)

        def add_ones(name):
            tensors[f"{name}.weight"] = ("F32", (width,), np.ones(width, "<f4").tobytes())

        add("token_embd", (tokens, width), "F16")
        add("output", (tokens, width), kind)
        add_ones("output_norm")
        for i in range(args.layers):
            add_ones(f"blk.{i}.attn_norm"), add_ones(f"blk.{i}.ffn_norm")
            for name, shape in layer.items():
                add(f"blk.{i}.{name}", shape, kind)
        path = args.folder / f"{kind}.gguf"
        path.write_bytes(
            gguf_files.file_bytes({**gguf_files.llama_metadata(config), **vocabulary}, tensors)
        )
        print(f"{path}: {path.stat().st_size / 1e6:.0f} MB", flush=True)


def processor_seconds(program, file, words, new):
    """Of `invar run` with these tokens, and those of the prompt, which is a word repeated."""
    with tempfile.TemporaryDirectory() as folder:
        receipt = f"{folder}/receipt.json"
        command = [
            program, "run", "--model-name", str(file), "--prompt-text", "the" + " the" * words,
            "--max-new-tokens", str(new), "--ignore-eos", "--no-do-sample", "--threads", "1",
            "--progress", "none", "--receipt-path", receipt,
        ]  # fmt: skip
        child = os.posix_spawnp(
            program, command, os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)],
        )  # fmt: skip
        _, status, used = os.wait4(child, 0)
        if status:
            sys.exit(f"blocks.py: {' '.join(command)}: status {status}")
        tokens = len(json.loads(Path(receipt).read_bytes())["input"]["tokens"])
    return used.ru_utime + used.ru_stime, tokens


def ours(program, file):
    processor_seconds(program, file, 0, 1)  # writes what later runs find
    start, least = processor_seconds(program, file, 0, 1)
    prompt, most = processor_seconds(program, file, hybrids.PROMPT, 1)
    new, _ = processor_seconds(program, file, 0, 1 + hybrids.NEW)
    return [(prompt - start) / (most - least), (new - start) / hybrids.NEW]


def command_run(args):
    print("milliseconds a token: prompt and ratio, decoding and ratio, for each program; the peer's")
    peer = [sys.executable, hybrids.__file__, "peer", "--threads", "1", "--processor"]
    for kind in args.only or TYPES:
        file, best = args.folder / f"{kind}.gguf", {}
        for _ in range(args.rounds):
            for name in (*args.invar, "peer"):
                found = hybrids.printed([*peer, file]) if name == "peer" else ours(name, file)
                best[name] = [*map(min, found, best.get(name, found))]
        cells = ""
        for name in args.invar:
            for mine, other in zip(best[name], best["peer"]):
                cells += f"{mine * 1e3:9.2f}{other / mine:6.2f}"
        cells += "".join(f"{x * 1e3:9.2f}" for x in best["peer"])
        print(f"{kind:8}{file.stat().st_size / 1e6:6.0f} MB{cells}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    make = commands.add_parser("make")
    make.add_argument("--layers", type=int, default=4)
    make.set_defaults(command=command_make)
    run = commands.add_parser("run")
    run.add_argument(
        "--invar", nargs="+", default=[os.environ.get("INVAR_BIN", "build/bin/invar")]
    )
    run.add_argument("--rounds", type=int, default=1)
    run.set_defaults(command=command_run)
    for parsed in (make, run):
        parsed.add_argument("folder", type=Path)
        parsed.add_argument("--only", nargs="+", choices=gguf_files.BLOCKS)
    args = parser.parse_args()
    args.command(args)
