#!/usr/bin/env python3
"""A Llama checkpoint of a given size with seeded random bf16 weights, the same bytes wherever it is
made.

random_llama.py FOLDER [--size 8b|1b] [--layers N] [--seed N] [--processes N]

For whole-model measurements and digests where no trained weights are at hand. A weight is a 16-bit
random number looked up in a table: about normal, standard deviation 0.02; norms lie around 1. Needs
numpy; an 8b takes 16 GB of disk and some seconds a core."""

import argparse
import json
import multiprocessing
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from checkpoints import LLAMA_8B, header_bytes, shapes  # noqa: E402

SIZES = {
    "8b": LLAMA_8B,
    "1b": {
        **LLAMA_8B,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "head_dim": 64,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": True,
    },
}
CHUNK = 1 << 24  # elements that one random stream makes


def to_bf16(x):
    """float64 -> bits, ties to even; exact arithmetic of integers and one rounding, so the same
    everywhere."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def table(centre):
    u = np.arange(1 << 16)
    nibbles = (
        (u & 15) + (u >> 4 & 15) + (u >> 8 & 15) + (u >> 12)
    )  # mean 30, standard deviation 9.2
    return to_bf16(centre + (nibbles - 30) * 0.0021 + (u * 40503 % 65536 - 32768) * 2.0**-24)


def fill(job):
    path, offset, count, centre, seed = job
    raw = np.random.PCG64(np.random.SeedSequence(seed)).random_raw((count + 3) // 4)
    out = np.memmap(path, np.uint16, "r+", offset, (count,))
    np.take(table(centre), raw.view(np.uint16)[:count], out=out)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="8b")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    config = dict(SIZES[options.size])
    if options.layers:
        config["num_hidden_layers"] = options.layers
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "config.json").write_text(json.dumps(config, indent=1))
    tensors = shapes(config)
    header, size = header_bytes(tensors, "BF16", 2)
    path, at, jobs = options.folder / "model.safetensors", len(header), []
    with open(path, "wb") as f:
        f.write(header)
        f.truncate(at + size)
    for number, (name, shape) in enumerate(tensors.items()):
        elements = int(np.prod(shape))
        for chunk, first in enumerate(range(0, elements, CHUNK)):
            jobs.append(
                (
                    path,
                    at + 2 * first,
                    min(CHUNK, elements - first),
                    1.0 if "norm" in name else 0.0,
                    [options.seed, number, chunk],
                )
            )
        at += 2 * elements
    with multiprocessing.Pool(options.processes) as pool:
        pool.map(fill, jobs, chunksize=1)
    print(f"{path}: {at / 1e9:.2f} GB, {len(tensors)} tensors")


if __name__ == "__main__":
    main()
