"""The outputs of convolutions from spec/ops/conv.md, without the C++ code
(tests/conformance/oracle.py)."""

import itertools

from oracle import add, canon, contract, exact16_product


def numbers(attrs, name, default):
    value = attrs.get(name)
    return default if value is None else [int(v) for v in str(value).split(",") if v]


def contraction(a, b):
    return canon(contract(a, b))


def convolution(inputs, shapes, out, attrs, transposed, product):
    x, w, axes = inputs[0], inputs[1], len(out) - 2
    stride, dilation = (numbers(attrs, name, [1] * axes) for name in ("strides", "dilations"))
    begin, groups = numbers(attrs, "pads", [0] * 2 * axes)[:axes], attrs.get("groups", 1)
    size, kernel = shapes[0][2:], shapes[1][2:]
    channels, rows = shapes[0][1] // groups, out[1] // groups
    result = []
    for n, m, *o in itertools.product(*map(range, out)):
        group, a, b = m // rows, [], []
        for r in itertools.product(*map(range, kernel)):
            if transposed:
                at = [p + q - t * d for p, q, t, d in zip(o, begin, r, dilation)]
                if any(i % s for i, s in zip(at, stride)):
                    continue
                at = [i // s for i, s in zip(at, stride)]
            else:
                at = [p * s + t * d - q for p, s, t, d, q in zip(o, stride, r, dilation, begin)]
            inside = all(0 <= i < s for i, s in zip(at, size))
            for c in range(channels):
                place, lead = (
                    (n * groups + group) * channels + c,
                    (group * channels + c, m % rows) if transposed else (m, c),
                )
                for i, s in zip(at, size):
                    place = place * s + i
                weight = lead[0] * (rows if transposed else channels) + lead[1]
                for i, s in zip(r, kernel):
                    weight = weight * s + i
                a.append(x[place] if inside else 0.0)
                b.append(w[weight])
        y = product(a, b)
        result.append(canon(add(y, inputs[2][m])) if len(inputs) > 2 else y)
    return result


def backward_weight(inputs, shapes, out, attrs):
    """conv_backward_weight.2."""
    (grad, x), axes = inputs[:2], len(out) - 2
    stride, dilation = (numbers(attrs, name, [1] * axes) for name in ("strides", "dilations"))
    begin, groups = numbers(attrs, "pads", [0] * 2 * axes)[:axes], attrs.get("groups", 1)
    pixels, size = shapes[0][2:], shapes[1][2:]
    rows = out[0] // groups
    result = []
    for m, c, *r in itertools.product(*map(range, out)):
        a, b = [], []
        for n, *o in itertools.product(range(shapes[0][0]), *map(range, pixels)):
            at = [p * s + t * d - q for p, s, t, d, q in zip(o, stride, r, dilation, begin)]
            from_grad, place = n * out[0] + m, (n * groups + m // rows) * out[1] + c
            for i, s in zip(o, pixels):
                from_grad = from_grad * s + i
            for i, s in zip(at, size):
                place = place * s + i
            a.append(grad[from_grad])
            b.append(x[place] if all(0 <= i < s for i, s in zip(at, size)) else 0.0)
        result.append(canon(contract(a, b)))
    return result


OPERATIONS = {
    "conv_backward_weight": backward_weight,
    "conv": lambda *a: convolution(*a, False, contraction),
    "conv_exact16": lambda *a: convolution(*a, False, exact16_product),
    "conv_transpose": lambda *a: convolution(*a, True, contraction),
}
