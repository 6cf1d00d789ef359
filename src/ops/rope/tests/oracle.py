"""The outputs of rope from spec/ops/rope.md, without the C++ code (tests/conformance/oracle.py)."""

from oracle import add, canon, mul, rows, sub


def rope(inputs, shapes, out, attrs):
    heads = attrs.get("num_heads", 1)
    d = out[-1] if attrs.get("heads_first") else out[-1] // heads
    rotary = attrs.get("rotary_dim", 0) or d
    half, result = rotary // 2, []
    for i, x in enumerate(rows(inputs[0], d)):
        row = (
            i // (out[1] * out[2]) * out[2] + i % out[2] if attrs.get("heads_first") else i // heads
        )
        if shapes[1][0] == 1:  # rope.7
            row %= out[2] if attrs.get("heads_first") else out[1]
        c, s = inputs[1][row * half : (row + 1) * half], inputs[2][row * half : (row + 1) * half]
        y = [canon(v) for v in x]
        for j in range(half):
            p, q = (2 * j, 2 * j + 1) if attrs.get("interleaved") else (j, j + half)
            y[p] = canon(sub(mul(x[p], c[j]), mul(x[q], s[j])))
            y[q] = canon(add(mul(x[q], c[j]), mul(x[p], s[j])))
        result += y
    return result


OPERATIONS = {"rope": rope}
