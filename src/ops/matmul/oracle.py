"""The outputs of matmul from spec.md, without the C++ code (tests/conformance/oracle.py)."""

import itertools
import math

from oracle import canon, contract


def matmul(inputs, shapes, out, attrs):
    trans_a, trans_b = attrs.get("trans_a", 0), attrs.get("trans_b", 0)
    shape_a, shape_b = shapes[0] if len(shapes[0]) > 1 else [1] + shapes[0], shapes[1]
    (m, k), n = shape_a[-2:][::-1 if trans_a else 1], shape_b[-2 if trans_b else -1]
    lead = out[:-2] if len(shapes[0]) > 1 else []

    def matrix(shape, index):
        """Where the matrix of these leading indices begins: aligned at the right, dimensions of length 1 repeat."""
        at = 0
        for size, i in zip(shape[:-2], index[len(index) - len(shape) + 2:]):
            at = at * size + (0 if size == 1 else i)
        return at * math.prod(shape[-2:])

    result = []
    for index in itertools.product(*map(range, lead)):
        a, b = inputs[0][matrix(shape_a, index):][:m * k], inputs[1][matrix(shape_b, index):][:k * n]
        for i in range(m):
            row = a[i::m] if trans_a else a[i * k:(i + 1) * k]
            result += [canon(contract(row, b[j * k:(j + 1) * k] if trans_b else b[j::n])) for j in range(n)]
    return result


OPERATIONS = {"matmul": matmul}
