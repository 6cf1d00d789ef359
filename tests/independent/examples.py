"""The examples of the arithmetic in spec/, and the vectors. Each function yields what differs."""

import ctypes
import json
import re
from ctypes import c_float
from functools import cache
from pathlib import Path

import make_vectors
from arithmetic.library import LIBRARY, floats, linear_memory, operation, row

ROOT = Path(__file__).resolve().parents[2]


@cache
def published():
    """The vectors that `invar infer` made."""
    return json.loads(make_vectors.VECTORS.read_bytes())


def page(name):
    return (ROOT / "spec" / f"{name}.md").read_text(encoding="utf-8")


def rows_of(name, begin):
    """The cells of the lines of a page that begin so."""
    for line in page(name).split("\n"):
        if line.startswith(begin):
            yield [c.strip() for c in re.split(r"(?<!\\)\|", line.strip("|"))]


def number(bits):
    return c_float.from_buffer_copy(int(bits, 16).to_bytes(4, "little")).value


def bits(x):
    return bytes(c_float(x))[::-1].hex()


def expect(what, found, expected):
    if found != expected:
        yield f"{what}: {found}, not {expected}"


def function(name, x):
    y = c_float()
    assert LIBRARY.law_function(name.encode(), x, ctypes.byref(y)), name
    return bits(y.value)


def functions():
    """Every table of functions.md, and the edges of exp (functions.2)."""
    names = None
    for line in page("functions").split("\n"):
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("| x |"):
            names = cells[1:]
        elif names and line.startswith("| `"):
            x = cells[0][1:9]
            for name, y in zip(names, cells[1:]):
                expected = "7fc00000" if y == "NaN" else y.strip("`")
                found = (
                    bits(LIBRARY.law_exp(number(x))) if name == "exp" else function(name, number(x))
                )
                yield from expect(f"functions.md {name}({x})", found, expected)
    for x, y in {"42b17218": "7f800000", "c2cff1b5": "00000000", "c2cff1b4": "00000001"}.items():
        yield from expect(f"functions.2 exp({x})", bits(LIBRARY.law_exp(number(x))), y)
    power = LIBRARY.law_pow(10000.0, 2 / 64)
    yield from expect("functions.4", bits(power), "3faab0d5")
    yield from expect("functions.4", bits(1 / power), "3f3ff911")


def sparse(cell, n):
    """The row of n elements that `x[0] = `bits` (remark), x[1] = x[2] = `bits`` means."""
    found = floats(n)
    for indices, value in re.findall(r"((?:\w\[\d+\] = )+)`([0-9a-f]{8})`", cell):
        for i in re.findall(r"\[(\d+)\]", indices):
            found[int(i)] = number(value)
    return found


def reduction():
    for x, expected, _ in rows_of("reduction", "| x[0]"):
        found = bits(LIBRARY.sum_of_row(sparse(x, 4098), 4098))
        yield from expect(f"reduction.md {x}", f"`{found}`", expected)


def contraction():
    ones = row(*[1.0] * 512)
    for b, expected, _ in rows_of("contraction", "| b[0]"):
        found = bits(LIBRARY.contract(ones, sparse(b, 512), 512))
        yield from expect(f"contraction.md {b}", f"`{found}`", expected)
    for k in (1, 2048):
        a, b = row(*[number("8d800000")] * k), row(*[number("0d800000")] * k)
        yield from expect(f"contraction.md K = {k}", bits(LIBRARY.contract(a, b, k)), "00000000")
    for name, (a, b) in make_vectors.product_cases().items():
        y = operation("linear", row(*a[0]), row(*b[0]), 1, len(a[0]), n=1)
        yield from expect(name, [[bits(y[0])]], published()[name])


def formats():
    for x, y in {0x0001: "00010000", 0x8001: "80010000", 0x7F80: "7f800000"}.items():
        found = operation("widen_bf16", x.to_bytes(2, "little"), 1, n=1)
        yield from expect(f"formats.2 bf16 {x:04x}", bits(found[0]), y)
    for x, y in {0x0001: "33800000", 0x83FF: "b87fc000"}.items():
        found = operation("widen_f16", x.to_bytes(2, "little"), 1, n=1)
        yield from expect(f"formats.2 f16 {x:04x}", bits(found[0]), y)
    stored = {
        "ffc00000": "7fc00000", "007fffff": "00000000", "80000001": "80000000",
        "00800000": "00800000", "ff800000": "ff800000",
    }  # fmt: skip
    for x, y in stored.items():
        yield from expect(f"formats.5 {x}", bits(LIBRARY.store(number(x))), y)


def attended(q, k, v, heads, kv_heads, scale):
    """The rows of causal attention over rows of the same positions."""
    d, d_v = len(q[0]) // heads, len(v[0]) // kv_heads
    keys, values = (row(*sum(rows, [])) for rows in (k, v))
    for position, query in enumerate(q):
        y = operation(
            "attention", row(*query), keys, values, position, heads, kv_heads, d, d_v, scale,
            n=heads * d_v,
        )  # fmt: skip
        yield [bits(x) for x in y]


def attention():
    """The table of attention.md without masks, and vectors."""
    for k, v, expected, why in rows_of("attention", "| "):
        if not re.match(r"[-−]?[\d∞]", k) or "mask" in why:
            continue
        k, v = (
            [float(x.replace("−", "-").replace("∞", "inf")) for x in s.split(",")] for s in (k, v)
        )
        found = attended([[1.0]] * len(k), [[x] for x in k], [[x] for x in v], 1, 1, 1.0)
        yield from expect(f"attention.md {k}", ", ".join(f"`{y[0]}`" for y in found), expected)
    for name, case in make_vectors.attention_cases().items():
        sizes = case["q_heads"], case["kv_heads"], number(case["scale"])
        yield from expect(name, list(attended(*case["operands"], *sizes)), published()[name])


def recurrent(q, k, v, g, beta, key_heads, value_heads, scale):
    """The rows of linear attention, one position after the other."""
    d, d_v, decays = len(q[0]) // key_heads, len(v[0]) // value_heads, len(g[0]) // value_heads
    memory = linear_memory(value_heads, d, d_v, decays)
    for position, operands in enumerate(zip(q, k, v, g, beta)):
        y = operation(
            "linear_attention", *(x and row(*x) for x in operands), position, key_heads,
            value_heads, d, d_v, decays, scale, *memory, n=len(v[0]),
        )  # fmt: skip
        yield [bits(x) for x in y]


def linear_attention():
    """The table of linear_attention.md, and vectors."""

    def numbers(cell):
        return [[float(x.replace("−", "-").replace("∞", "inf"))] for x in cell.split(",")]

    for name in ("gated_linear_attention", "gated_delta_rule"):
        for _, v, g, beta, expected, _ in rows_of("ops/linear_attention", f"| {name} "):
            v = numbers(v)
            rates = numbers(beta) if beta else [None] * len(v)
            ones = [[1.0]] * len(v)
            found = [y[0] for y in recurrent(ones, ones, v, numbers(g), rates, 1, 1, 1.0)]
            expected = [bits(LIBRARY.store(float(x))) for x in expected.split(",")]
            yield from expect(f"linear_attention.md {name} {v} {g}", found, expected)
    for name, case in make_vectors.linear_cases().items():
        q, k, v, g, *rates = case["operands"]
        sizes = case["key_heads"], case["value_heads"], number(case["scale"])
        found = list(recurrent(q, k, v, g, *(rates or [[None] * len(v)]), *sizes))
        yield from expect(name, found, published()[name])


def convolution():
    """The two examples of causal_conv.md."""
    x, w = [1.0, 2.0, 3.0], row(number("7f800000"), 1.0)
    found = [
        bits(
            operation("causal_conv", row(*x[max(0, i - 1) : i + 1]), min(i + 1, 2), w, 2, 1, n=1)[0]
        )
        for i in range(3)
    ]
    yield from expect("causal_conv.md", found, ["3f800000", "7f800000", "7f800000"])
    y = operation("causal_conv", row(-(2.0**-100)), 1, row(2.0**-100), 1, 1, n=1)
    yield from expect("causal_conv.md W = 1", bits(y[0]), "00000000")


def differences():
    for example in (
        formats, functions, reduction, contraction, attention, linear_attention, convolution
    ):  # fmt: skip
        yield from example()
