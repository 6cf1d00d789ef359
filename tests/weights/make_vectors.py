"""Writes vectors.json: what PyPI's package gguf makes of the blocks of gguf_files.fixed_bytes().

Needs the packages gguf and numpy."""

import hashlib
import json
from pathlib import Path

import gguf
import gguf_files
import numpy as np

HERE = Path(__file__).parent


def main():
    vectors = {}
    for kind in gguf_files.BLOCKS:
        raw = gguf_files.fixed_bytes(kind)
        blocks = np.frombuffer(raw, np.uint8).reshape(-1, gguf_files.TYPES[kind][2])
        numbers = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[kind])
        vectors[kind] = hashlib.sha256(numbers.astype("<f4").tobytes()).hexdigest()
    (HERE / "vectors.json").write_text(json.dumps(vectors, indent=1) + "\n")


if __name__ == "__main__":
    main()
