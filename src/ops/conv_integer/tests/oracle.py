"""The outputs of integer convolutions from spec/ops/conv_integer.md, without the C++ code
(tests/conformance/oracle.py)."""

import itertools


def numbers(attrs, name, default):
    value = attrs.get(name)
    return default if value is None else [int(v) for v in str(value).split(",") if v]


def conv_integer(inputs, shapes, out, attrs):
    x, w, bias, axes = *inputs[:3], len(out) - 2
    zero = inputs[3][0] if len(inputs) > 3 else 0
    zeros = inputs[4] if len(inputs) > 4 else [0]
    stride, dilation = (numbers(attrs, name, [1] * axes) for name in ("strides", "dilations"))
    begin, groups = numbers(attrs, "pads", [0] * 2 * axes)[:axes], attrs.get("groups", 1)
    size, kernel = shapes[0][2:], shapes[1][2:]
    channels, rows = shapes[0][1] // groups, out[1] // groups
    result = []
    for n, m, *o in itertools.product(*map(range, out)):
        total = bias[m]
        for c, *r in itertools.product(range(channels), *map(range, kernel)):
            at = [p * s + t * d - q for p, s, t, d, q in zip(o, stride, r, dilation, begin)]
            if not all(0 <= i < s for i, s in zip(at, size)):
                continue
            place, weight = (n * groups + m // rows) * channels + c, m * channels + c
            for i, s in zip(at, size):
                place = place * s + i
            for i, s in zip(r, kernel):
                weight = weight * s + i
            total += (x[place] - zero) * (w[weight] - zeros[0 if len(zeros) == 1 else m])
        result.append((total + 2**31) % 2**32 - 2**31)
    return result


OPERATIONS = {"conv_integer": conv_integer}
