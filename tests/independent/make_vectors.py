#!/usr/bin/env python3
"""make_vectors.py INVAR: writes attention_vectors.json, what `INVAR infer` makes of attention.

Operands that no receipt of a language model has: subnormal scores and factors, infinite values
behind weights of zero. The plan of each is written by spec/plan.md.
"""

import hashlib
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ONE, TOP = "3f800000", "7e800000"  # 1, 2^126
PLAN = """invar-plan 1
numerics "invar-1"
operations "reproducible"
input v0: f32 [1, {n}, {q}] "q"
input v1: f32 [1, {n}, {k}] "k"
input v2: f32 [1, {n}, {v}] "v"
node v3: f32 [1, {n}, {y}] = attention.1(v0, v1, v2) {{causal=1, kv_heads={kv_heads}, \
numerics="attention-1", q_heads={q_heads}, scale=0x{scale}}}
output v3 "y"
places
slots 1
slot v3 0
end
"""


def scores(name, keys, values, scale=ONE, query=1.0):
    """One head of one column: the score of a key is its number."""
    rows = [[[query]] * len(keys), [[k] for k in keys], [[v] for v in values]]
    return {"name": name, "q_heads": 1, "kv_heads": 1, "scale": scale, "rows": rows}


def random_rows(name, n, columns):
    """n rows of numbers in [-1, 1), by SHA-256."""
    data = hashlib.shake_128(name.encode()).digest(2 * n * columns)
    flat = [x / 2**15 for x in struct.unpack(f"<{n * columns}h", data)]
    return [flat[i * columns : (i + 1) * columns] for i in range(n)]


def cases():
    infinity, big = float("inf"), 2.0**120
    yield scores(
        "subnormal contractions", [1 / 2**64, 3 / 2**65, -1 / 2**63], [1, 2, 4], TOP, 2.0**-64
    )
    yield scores("a subnormal weight", [0, -90, -3], [1, big, 2])
    yield scores("the factor of the older blocks is subnormal", [0] * 128 + [90], [big] * 128 + [1])
    yield scores("the factor of the newer block is subnormal", [90] * 128 + [0], [1] * 128 + [big])
    yield scores("a weight of zero meets infinity", [1, -300, 1], [1, infinity, 2])
    yield scores("no key of the first block counts", [-infinity] * 128 + [2, 1], [1] * 130)
    yield {
        "name": "three blocks, three heads for a key head",
        "q_heads": 6,
        "kv_heads": 2,
        "scale": "3f13cd3a",
        "rows": [random_rows(x, 260, n) for x, n in {"q": 18, "k": 6, "v": 2}.items()],
    }


def write_npy(path, rows):
    shape = f"(1, {len(rows)}, {len(rows[0])})"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    data = b"".join(struct.pack("<f", x) for r in rows for x in r)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def read_npy(path, n):
    data = path.read_bytes()
    words = data[10 + struct.unpack("<H", data[8:10])[0] :]
    columns = len(words) // 4 // n
    flat = [words[i : i + 4][::-1].hex() for i in range(0, len(words), 4)]
    return [flat[i * columns : (i + 1) * columns] for i in range(n)]


def computed(invar, case, folder):
    rows = dict(zip("qkv", case["rows"]))
    n, widths = len(rows["q"]), {name: len(r[0]) for name, r in rows.items()}
    y = widths["v"] // case["kv_heads"] * case["q_heads"]
    plan = folder / "attention.invar"
    plan.write_text(PLAN.format(n=n, y=y, **widths, **case))
    command = [invar, "infer", plan, "--tensors-output", folder]
    for name, r in rows.items():
        write_npy(folder / f"{name}.npy", r)
        command += ["--input", f"{name}={folder / name}.npy"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return read_npy(folder / "y.npy", n)


def vectors(invar):
    with tempfile.TemporaryDirectory() as folder:
        return {case["name"]: computed(invar, case, Path(folder)) for case in cases()}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lines = [f"{json.dumps(name)}: {json.dumps(y)}" for name, y in vectors(sys.argv[1]).items()]
    (HERE / "attention_vectors.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
