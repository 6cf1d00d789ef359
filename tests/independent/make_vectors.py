#!/usr/bin/env python3
"""make_vectors.py INVAR: writes vectors.json, what `INVAR infer` makes of single operations.

Operands that no receipt of a language model has: subnormal scores and factors, infinite values
behind weights of zero, products that all underflow. The plan of each is written by spec/plan.md.
"""

import hashlib
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

VECTORS = Path(__file__).resolve().parent / "vectors.json"
ONE, TOP = "3f800000", "7e800000"  # 1, 2^126
ATTENTION = """attention.1(v0, v1, v2) {{causal=1, kv_heads={kv_heads}, numerics="attention-1", \
q_heads={q_heads}, scale=0x{scale}}}"""
LINEAR = """{operation}.1({values}) {{key_heads={key_heads}, numerics="linear-attention-1", \
scale=0x{scale}, value_heads={value_heads}}}"""
PRODUCT = 'matmul.1(v0, v1) {numerics="fp32-1", trans_b=1}'


def scores(keys, values, scale=ONE, query=1.0):
    """One head of one column: the score of a key is its number."""
    operands = [[[query]] * len(keys), [[k] for k in keys], [[v] for v in values]]
    return {"q_heads": 1, "kv_heads": 1, "scale": scale, "operands": operands}


def random_rows(name, n, columns):
    """n rows of numbers in [-1, 1), by SHA-256."""
    data = hashlib.shake_128(name.encode()).digest(2 * n * columns)
    flat = [x / 2**15 for x in struct.unpack(f"<{n * columns}h", data)]
    return [flat[i * columns : (i + 1) * columns] for i in range(n)]


def attention_cases():
    infinity, big = float("inf"), 2.0**120
    tiny = [1 / 2**64, 3 / 2**65, -1 / 2**63]
    return {
        "subnormal contractions": scores(tiny, [1, 2, 4], TOP, 2.0**-64),
        "a subnormal weight": scores([0, -90, -3], [1, big, 2]),
        "a subnormal factor of the older blocks": scores([0] * 128 + [90], [big] * 128 + [1]),
        "a subnormal factor of the newer block": scores([90] * 128 + [0], [1] * 128 + [big]),
        "a weight of zero meets infinity": scores([1, -300, 1], [1, infinity, 2]),
        "no key of the first block counts": scores([-infinity] * 128 + [2, 1], [1] * 130),
        "three blocks, three heads for a key head": {
            "q_heads": 6,
            "kv_heads": 2,
            "scale": "3f13cd3a",
            "operands": [random_rows(x, 260, n) for x, n in {"q": 18, "k": 6, "v": 2}.items()],
        },
    }


def recurrent(operation, decays, rates, name, d=3, d_v=2):
    """Four heads of values for two of keys, 70 positions; decays: numbers for each position."""
    sizes = {"q": 2 * d, "k": 2 * d, "v": 4 * d_v} | ({"beta": 4} if rates else {})
    made = {x: random_rows(f"{name} {x}", 70, n) for x, n in sizes.items()}
    operands = [made["q"], made["k"], made["v"], decays] + ([made["beta"]] if rates else [])
    return {
        "operation": operation, "key_heads": 2, "value_heads": 4, "scale": "3f13cd3a",
        "operands": operands,
    }  # fmt: skip


def linear_cases():
    def below_zero(name, columns):
        return [[-abs(x) / 3 for x in r] for r in random_rows(name, 70, columns)]

    # What lies before positions 2 and 66 has subnormal decays there.
    sharp = [[-88.0 if i in (2, 66) else 0.0, -0.5, -0.25, 0.0] for i in range(70)]
    found = {
        "delta rule, decays of heads": recurrent(
            "gated_delta_rule", below_zero("g", 4), True, "heads"
        ),
        "delta rule, decays of channels": recurrent(
            "gated_delta_rule", below_zero("gs", 12), True, "channels"
        ),
        "linear attention, the smallest numbers": recurrent(
            "gated_linear_attention", sharp, False, "smallest"
        ),
    }
    for i, row in enumerate(found["linear attention, the smallest numbers"]["operands"][2]):
        row[0] *= 2.0**120 if i < 64 else 1
        row[2] *= 2.0**-124
    return found


def product_cases():
    """Two operands, each of one row."""
    return {"2048 products underflow to -0": [[[-(2.0**-100)] * 2048], [[2.0**-100] * 2048]]}


def write_npy(path, rows):
    shape = f"(1, {len(rows)}, {len(rows[0])})"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    data = b"".join(struct.pack("<f", x) for r in rows for x in r)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def read_npy(path, n):
    """The bits of n rows."""
    data = path.read_bytes()
    words = data[10 + struct.unpack("<H", data[8:10])[0] :]
    columns = len(words) // 4 // n
    flat = [words[i : i + 4][::-1].hex() for i in range(0, len(words), 4)]
    return [flat[i * columns : (i + 1) * columns] for i in range(n)]


def plan(node, operands, columns):
    """The text of a program of one node."""
    inputs = [f'input v{i}: f32 [1, {len(x)}, {len(x[0])}] "x{i}"' for i, x in enumerate(operands)]
    result = f"v{len(operands)}"
    return "\n".join(
        [
            "invar-plan 1", 'numerics "invar-1"', 'operations "reproducible"', *inputs,
            f"node {result}: f32 [1, {len(operands[0])}, {columns}] = {node}",
            f'output {result} "y"', "places", "slots 1", f"slot {result} 0", "end", "",
        ]
    )  # fmt: skip


def computed(invar, node, operands, columns):
    """The rows of the result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.invar").write_text(plan(node, operands, columns))
        command = [invar, "infer", folder / "plan.invar", "--tensors-output", folder]
        for i, rows in enumerate(operands):
            write_npy(folder / f"x{i}.npy", rows)
            command += ["--input", f"x{i}={folder}/x{i}.npy"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return read_npy(folder / "y.npy", len(operands[0]))


def vectors(invar):
    found = {}
    for name, case in attention_cases().items():
        columns = len(case["operands"][2][0]) // case["kv_heads"] * case["q_heads"]
        found[name] = computed(invar, ATTENTION.format(**case), case["operands"], columns)
    for name, case in linear_cases().items():
        values = ", ".join(f"v{i}" for i in range(len(case["operands"])))
        node = LINEAR.format(values=values, **case)
        found[name] = computed(invar, node, case["operands"], len(case["operands"][2][0]))
    for name, operands in product_cases().items():
        found[name] = computed(invar, PRODUCT, operands, 1)
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lines = [f"{json.dumps(name)}: {json.dumps(y)}" for name, y in vectors(sys.argv[1]).items()]
    VECTORS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
