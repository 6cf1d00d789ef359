"""The outputs of topk from spec/ops/topk.md, without the C++ code (tests/conformance/oracle.py)."""

import math


def topk(inputs, shapes, out, attrs):
    shape = shapes[0]
    axis = attrs.get("axis", -1) % len(shape)
    n, k, inner = shape[axis], out[axis], math.prod(shape[axis + 1 :])
    result = [None] * math.prod(out)
    for row in range(math.prod(shape) // n if n else 0):
        at = row // inner * n * inner + row % inner
        x = [inputs[0][at + i * inner] for i in range(n)]
        rank = [(2, 0) if v != v else (1, v) for v in x]  # NaN above +inf; -0 == +0
        order = sorted(
            range(n), key=lambda i: rank[i], reverse=bool(attrs.get("largest", 1))
        )  # stable both ways
        for j in range(k):
            result[row // inner * k * inner + row % inner + j * inner] = order[j]
    return result


OPERATIONS = {"topk": topk}
