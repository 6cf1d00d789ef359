"""The rooms' vectors.txt computed a second time, from the specification alone: exact rational
numbers and one explicit rounding per operation. Shares no code with the C++ side, not even the
generator of inputs.

    python3 tests/conformance/oracle.py [ROOM...]           compares every room's vectors.txt
    python3 tests/conformance/oracle.py --write [ROOM...]   writes the outputs into them

It is slow (about a microsecond per rounding) and that does not matter.
"""

import contextlib
import functools
import math
import re
import runpy
import sys
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path

import tomllib
from oracle_fills import tensor
from oracle_formats import FORMATS, INF, NAN, WIDTH, read_bits, write_bits

ROOMS = Path(__file__).resolve().parents[2] / "src" / "ops"


# ---- numbers: a binary32 value is a Python float that happens to be one

ARITHMETIC = ["f32"]  # the format of operations: f64 where results are (formats.12)


@contextlib.contextmanager
def arithmetic(fmt):
    """Operations in the block round to this format, and after it as before."""
    ARITHMETIC[0], before = fmt, ARITHMETIC[0]
    try:
        yield
    finally:
        ARITHMETIC[0] = before


def rounded(x, fmt=None, sign=1.0):
    """The Fraction x rounded to nearest even; `sign` is the sign of an exact zero."""
    fmt = fmt or ARITHMETIC[0]
    precision, low, high = FORMATS[fmt]
    if x == 0:
        return math.copysign(0.0, sign)
    magnitude = abs(x)
    e = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** e:
        e -= 1
    unit = Fraction(2) ** (max(e, low) - precision + 1)
    units = round(magnitude / unit)  # ties to even
    value = units * unit
    result = INF if value >= Fraction(2) ** (high + 1) else float(value)
    return math.copysign(result, 1 if x > 0 else -1)


def finite(*xs):
    return all(math.isfinite(x) for x in xs)


def special(f):
    """What IEEE 754 says where an operand is not finite: the same as for Python's own floats."""
    try:
        return f()
    except ZeroDivisionError:
        return None


def add(a, b):
    return rounded(Fraction(a) + Fraction(b), sign=a + b) if finite(a, b) else a + b


def sub(a, b):
    return add(a, -b)


def mul(a, b):
    return (
        rounded(Fraction(a) * Fraction(b), sign=math.copysign(1, a) * math.copysign(1, b))
        if finite(a, b)
        else a * b
    )


def fma(a, b, c):
    if finite(a, b, c):
        product = Fraction(a) * Fraction(b)
        p = (
            math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b))
            if product == 0
            else 1.0
            if product > 0
            else -1.0
        )
        exact = product + Fraction(c)
        return rounded(exact, sign=p + c if product == 0 else 1.0)
    return a * b + c if finite(a, b) is False else c


def div(a, b):
    if not finite(a, b):
        return (
            a / b
            if b != 0
            else math.copysign(INF, math.copysign(1, a) * math.copysign(1, b))
            if a == a
            else NAN
        )
    sign = math.copysign(1, a) * math.copysign(1, b)
    if b == 0:
        return NAN if a == 0 else math.copysign(INF, sign)
    return rounded(Fraction(a) / Fraction(b), sign=sign)


def sqrt(a):
    if a != a or a < 0:
        return NAN
    if a == INF or a == 0:
        return a
    scaled = Fraction(a) * Fraction(4) ** 700
    root = math.isqrt(scaled.numerator // scaled.denominator)
    exact = root * root == scaled
    return rounded((Fraction(2 * root + (0 if exact else 1), 2)) / Fraction(2) ** 700)


def canon(x):
    """formats.5, formats.12."""
    if x != x:
        return NAN
    if ARITHMETIC[0] == "f64":
        return x
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


def maximum(a, b):
    if a != a or b != b:
        return NAN
    if a == b == 0:
        return 0.0 if math.copysign(1, a) + math.copysign(1, b) >= 0 else -0.0
    return max(a, b)


getcontext().prec = 150
PI = None


def pi():
    global PI
    if PI is None:  # Machin: 16 atan(1/5) - 4 atan(1/239)

        def atan(n):
            total, term, k = Decimal(0), Decimal(1) / n, 0
            while abs(term) > Decimal(10) ** -148:
                total += term / (2 * k + 1) * (-1 if k % 2 else 1)
                term /= n * n
                k += 1
            return total

        PI = 16 * atan(5) - 4 * atan(239)
    return PI


@functools.cache
def wide_exp(x):
    """To 150 digits, before any rounding."""
    return Fraction(Decimal(x).exp())


def exp(x):
    if x != x:
        return NAN
    if x > 200 or x < -200:
        return INF if x > 0 else 0.0
    return rounded(wide_exp(x)) if x else 1.0


def sine(x, shift):
    """sin(x + shift pi/2)."""
    if not finite(x):
        return NAN
    if x == 0:
        return 1.0 if shift else x
    t = Decimal(x) % (2 * pi()) + shift * pi() / 2
    total, term, k = Decimal(0), t, 1
    while abs(term) > Decimal(10) ** -100:
        total += term
        term *= -t * t / ((k + 1) * (k + 2))
        k += 2
    return rounded(Fraction(total))


# ---- the schedules


def contract(a, b):
    """contraction.2 - 4."""
    blocks = -(-len(a) // 256)
    per = -(-blocks // 8)
    s = []
    for segment in range(8):
        total = 0.0
        for block in range(segment * per, min(blocks, (segment + 1) * per)):
            chain = 0.0
            for k in range(256 * block, min(len(a), 256 * block + 256)):
                chain = fma(a[k], b[k], chain)
            total = add(total, chain)
        s.append(total)
    return add(add(add(s[0], s[1]), add(s[2], s[3])), add(add(s[4], s[5]), add(s[6], s[7])))


def joined(lane):
    """reduction.4."""
    while len(lane) > 1:
        half = len(lane) // 2
        lane = [add(lane[j], lane[j + half]) for j in range(half)]
    return lane[0]


def exact16_row(row):
    """exact16.1 and exact16.2: the scale and the integers; None: it has a NaN or an infinity."""
    if not all(math.isfinite(x) for x in row):
        return None
    exact = [Fraction(x) for x in row]
    m = max(map(abs, exact), default=0)
    if m == 0:
        return 0, [0] * len(row)
    p = math.frexp(m)[1]
    e = p - 15 if round(m / Fraction(2) ** (p - 15)) <= 32639 else p - 14
    return e, [round(x / Fraction(2) ** e) for x in exact]


def exact16_product(row, column):
    """exact16.3 to exact16.5."""
    a, b = exact16_row(row), exact16_row(column)
    if a is None or b is None:
        return math.nan
    return exact16_result(sum(x * y for x, y in zip(a[1], b[1])), a[0] + b[0])


def exact16_result(total, e):
    """exact16.4."""
    extra = max(total.bit_length() - 24, 0)
    y = Fraction(round(Fraction(total, 2**extra)) * 2**extra) * Fraction(2) ** e
    if abs(y) < Fraction(2) ** -126:
        return -0.0 if total < 0 else 0.0
    return math.copysign(math.inf, y) if abs(y) >= 2**128 else float(y)


def row_sum(x, squares=False):
    total = 0.0
    for begin in range(0, len(x), 4096):
        lane = [0.0] * 256
        for i in range(begin, min(len(x), begin + 4096)):
            lane[i % 256] = fma(x[i], x[i], lane[i % 256]) if squares else add(lane[i % 256], x[i])
        total = add(total, joined(lane))
    return total


def row_dot(a, b):
    """reduction.15."""
    total = 0.0
    for begin in range(0, len(a), 4096):
        lane = [0.0] * 256
        for i in range(begin, min(len(a), begin + 4096)):
            lane[i % 256] = fma(a[i], b[i], lane[i % 256])
        total = add(total, joined(lane))
    return total


# ---- operations: lists of operands, shapes and attributes -> list of values of the output


def pairs(f):
    def run(inputs, shapes, out, attrs):
        def at(shape, i):
            index, step = 0, 1
            for d, size in zip(range(len(out) - 1, -1, -1), list(reversed(out))):
                p, i = i % size, i // size
                back = len(out) - d
                if back <= len(shape):
                    n = shape[len(shape) - back]
                    index += step * (0 if n == 1 else p)
                    step *= n
            return index

        return [
            canon(f(inputs[0][at(shapes[0], i)], inputs[1][at(shapes[1], i)]))
            for i in range(math.prod(out))
        ]

    return run


def each(f):
    return lambda inputs, shapes, out, attrs: [canon(f(x)) for x in inputs[0]]


def rows(x, n):
    return [x[i : i + n] for i in range(0, len(x), n)]


@functools.cache
def operations():
    """What the rooms' oracle.py know: OPERATIONS, f(lists of values, shapes, output shape,
    attributes) -> values, or a list of them for each of several outputs; ON_BITS, f([(dtype, shape,
    bits)], [(dtype, shape)], attributes) -> bits by output."""
    sys.modules.setdefault("oracle", sys.modules[__name__])
    on_values, on_bits = {}, {}
    for path in sorted(ROOMS.glob("*/tests/oracle.py")):
        room = runpy.run_path(str(path))
        on_values.update(room.get("OPERATIONS", {}))
        on_bits.update(room.get("ON_BITS", {}))
    return on_values, on_bits


def evaluate(op, line):
    """The line with its outputs' values computed."""
    left, _, settings = line.partition(" | ")
    inputs, _, outputs = left.partition(" -> ")
    outputs = [o.split("=")[0] for o in outputs.split()]
    attrs = {}
    for s in settings.split():
        name, value = s.split("=")
        attrs[name] = (
            read_bits("f32", int(value[4:], 16))
            if value.startswith("f32:")
            else value
            if "," in value
            else int(value)
        )
    tensors = [tensor(t, attrs.get("seed", 0), i) for i, t in enumerate(inputs.split())]
    shaped = [tensor(o, 0, 0)[:2] for o in outputs]
    on_values, on_bits = operations()
    with arithmetic("f64" if shaped[0][0] == "f64" else "f32"):
        if op in on_bits:
            bits = on_bits[op](tensors, shaped, attrs)
        else:
            values = [[read_bits(t, b) for b in bits] for t, _, bits in tensors]
            shapes = [s for _, s in shaped]
            result = on_values[op](
                values, [s for _, s, _ in tensors], shapes[0] if len(shapes) == 1 else shapes, attrs
            )
            bits = [
                [write_bits(t, x) for x in r]
                for (t, _), r in zip(shaped, [result] if len(shapes) == 1 else result)
            ]
    words = (",".join(f"{b:0{2 * WIDTH[t]}x}" for b in r) for (t, _), r in zip(shaped, bits))
    return (
        f"{inputs} -> "
        + " ".join(f"{o}={w}" for o, w in zip(outputs, words))
        + (f" | {settings}" if settings else "")
    )


def with_new_operations(room, lines):
    """The lines, and for an operation without one those of the first operation of its kind."""
    table = tomllib.loads((ROOMS / room / "ops.toml").read_text())
    kinds = {op: entry.get("kind") for op, entry in table.items() if op != "kind"}
    named = [line.partition(": ")[0] for line in lines]
    yield from lines
    for op, kind in kinds.items():
        like = next((n for n in named if kind and op not in named and kinds.get(n) == kind), None)
        yield from (op + line[len(like) :] for n, line in zip(named, lines) if n == like)


def room_lines(room):
    """(line, what it should be) for every line of a room's vectors. In a room of several operations
    a line begins `OP: `."""
    for line in with_new_operations(
        room, (ROOMS / room / "tests/vectors.txt").read_text().splitlines()
    ):
        if line.startswith("#") or not line:
            yield line, line
            continue
        of = re.match(r"([a-z0-9_]+): ", line)
        yield line, of[0] + evaluate(of[1], line[of.end() :]) if of else evaluate(room, line)


def main():
    wrong, wanted = 0, [a for a in sys.argv[1:] if a != "--write"]
    found = {path.parents[1].name: path for path in sorted(ROOMS.glob("*/tests/vectors.txt"))}
    if unknown := [room for room in wanted if room not in found]:
        sys.exit(f"oracle.py: src/ops has no room {unknown[0]} with vectors.txt")
    for room in wanted or found:
        path = found[room]
        lines = list(room_lines(room))
        if "--write" in sys.argv:
            path.write_text("".join(new + "\n" for _, new in lines))
        for old, new in lines:
            if old != new and "--write" not in sys.argv:
                wrong += 1
                print(f"{room}: {old}\n  should be {new}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
