"""The outputs of the operations of this room from spec/ops/matmul.md, without the C++ code
(tests/conformance/oracle.py)."""

import itertools
import math
from fractions import Fraction

from oracle import canon, contract, exact16_product, exact16_result, exact16_row, mul, rows


def matmul(inputs, shapes, out, attrs):
    return products(*inputs, shapes, out, attrs, lambda row, column: canon(contract(row, column)))


def products(left, right, shapes, out, attrs, product):
    trans_a, trans_b = attrs.get("trans_a", 0), attrs.get("trans_b", 0)
    shape_a, shape_b = shapes[0] if len(shapes[0]) > 1 else [1] + shapes[0], shapes[1]
    (m, k), n = shape_a[-2:][:: -1 if trans_a else 1], shape_b[-2 if trans_b else -1]
    lead = out[:-2] if len(shapes[0]) > 1 else []

    def matrix(shape, index):
        """Where the matrix of these leading indices begins: aligned at the right, dimensions of
        length 1 repeat."""
        at = 0
        for size, i in zip(shape[:-2], index[len(index) - len(shape) + 2 :]):
            at = at * size + (0 if size == 1 else i)
        return at * math.prod(shape[-2:])

    result = []
    for index in itertools.product(*map(range, lead)):
        a, b = left[matrix(shape_a, index) :][: m * k], right[matrix(shape_b, index) :][: k * n]
        for i in range(m):
            row = a[i::m] if trans_a else a[i * k : (i + 1) * k]
            result += [
                product(row, b[j * k : (j + 1) * k] if trans_b else b[j::n]) for j in range(n)
            ]
    return result


def grouped_matmul(inputs, shapes, out, attrs):
    return grouped(inputs, shapes, out, attrs, lambda row, column: canon(contract(row, column)))


def grouped(inputs, shapes, out, attrs, product):
    a, index, k, n = inputs[0], inputs[1], shapes[0][-1], out[-1]
    if len(shapes[2]) == 3:
        stack = [inputs[2][g * k * n : (g + 1) * k * n] for g in range(shapes[2][0])]
    else:
        stack = inputs[2:]
    share = len(index) // max(math.prod(shapes[0][:-1]), 1)  # rows of the result for a row of a
    result = []
    for row, g in enumerate(index):
        x, b = a[row // share * k : (row // share + 1) * k], stack[g]
        columns = [b[j * k : (j + 1) * k] if attrs.get("trans_b", 0) else b[j::n] for j in range(n)]
        result += [product(x, column) for column in columns]
    return result


def matmul_integer(inputs, shapes, out, attrs):
    a, b = inputs[:2]
    m, n = (shapes[0][-2] if len(shapes[0]) > 1 else 1), shapes[1][-1]
    zeros = [inputs[i] if len(inputs) > i else [0] for i in (2, 3)]
    moved = [
        [v - z[0 if len(z) == 1 else at(i)] for i, v in enumerate(x)]
        for x, z, at in (
            (a, zeros[0], lambda i: i // shapes[0][-1] % m),
            (b, zeros[1], lambda i: i % n),
        )
    ]
    return products(
        *moved, shapes, out, attrs, lambda row, column: sum(x * y for x, y in zip(row, column))
    )


def quantized_columns(inputs, shapes, out, attrs):
    """matmul_nbits.1: of each column the integers q - z of each group, and the scale of each."""
    b, scales = inputs[1:3]
    k, n, bits = shapes[0][-1], out[-1], attrs.get("bits", 8)
    block = attrs.get("block", 0) or max(k, 1)
    groups = -(-k // block) if attrs.get("block", 0) else 1

    def of_group(values, j, g):
        return values[
            0 if len(values) == 1 else j * groups + g if attrs.get("trans_b") else g * n + j
        ]

    def nibble(data, column, i):  # each column begins with a byte
        return data[column + i // 2] >> 4 * (i % 2) & 15

    def difference(j, i):
        g = i // block
        if len(inputs) < 4:
            z = attrs.get("zero", 0)
        else:
            z = (
                nibble(inputs[3], j * ((groups + 1) // 2), g)
                if bits == 4
                else of_group(inputs[3], j, g)
            )
        if bits == 4:
            return nibble(b, j * groups * block // 2, i) - z
        return b[j * (len(b) // n) + i if attrs.get("trans_b") else i * n + j] - z

    return [
        (
            [
                [difference(j, i) for i in range(g * block, min(k, (g + 1) * block))]
                for g in range(groups)
            ],
            [of_group(scales, j, g) for g in range(groups)],
        )
        for j in range(n)
    ]


def matmul_nbits(inputs, shapes, out, attrs):
    columns = [
        [canon(mul(float(d), s)) for group, s in zip(*column) for d in group]
        for column in quantized_columns(inputs, shapes, out, attrs)
    ]
    return [canon(contract(row, c)) for row in rows_of(inputs, shapes, out) for c in columns]


def rows_of(inputs, shapes, out):
    return rows(inputs[0], shapes[0][-1]) if shapes[0][-1] else [[]] * math.prod(out[:-1])


def matmul_exact16(inputs, shapes, out, attrs):
    return products(*inputs, shapes, out, attrs, exact16_product)


def grouped_matmul_exact16(inputs, shapes, out, attrs):
    return grouped(inputs, shapes, out, attrs, exact16_product)


def matmul_nbits_exact16(inputs, shapes, out, attrs):
    """matmul_nbits_exact16.2 and matmul_nbits_exact16.3."""

    def product(row, groups, scales):
        a, t = exact16_row(row), exact16_row(scales)
        if a is None or t is None:
            return math.nan
        es = t[0] - 2
        left, total = iter(a[1]), 0
        for group, s in zip(groups, scales):
            total += round(Fraction(s) / Fraction(2) ** es) * sum(next(left) * d for d in group)
        return exact16_result(total, a[0] + es)

    columns = quantized_columns(inputs, shapes, out, attrs)
    return [product(row, *column) for row in rows_of(inputs, shapes, out) for column in columns]


def fixed_matmul(inputs, shapes, out, attrs):
    """fixed_matmul.1: fixed.3 and fixed.4 of the products."""
    (units, length, rows_a), (_, _, columns) = shapes
    total, magnitude = [0] * (rows_a * columns), 0
    for u in range(units):
        left = inputs[0][u * length * rows_a :][: length * rows_a]
        right = inputs[1][u * length * columns :][: length * columns]
        values = [
            canon(contract(left[i::rows_a], right[j::columns]))
            for i in range(rows_a)
            for j in range(columns)
        ]
        counts = [math.isfinite(v) and abs(v) < 2**14 for v in values]
        for i, v in enumerate(values):
            total[i] += round(Fraction(v) * 2**49) if counts[i] else 0
        if not all(counts):
            magnitude += 2**30
        elif values:
            magnitude += math.ceil(max(abs(Fraction(v)) for v in values) * 2**16)
    return [*total, magnitude]


OPERATIONS = {
    "fixed_matmul": fixed_matmul,
    "matmul": matmul,
    "grouped_matmul": grouped_matmul,
    "grouped_matmul_exact16": grouped_matmul_exact16,
    "matmul_exact16": matmul_exact16,
    "matmul_integer": matmul_integer,
    "matmul_nbits": matmul_nbits,
    "matmul_nbits_exact16": matmul_nbits_exact16,
}
