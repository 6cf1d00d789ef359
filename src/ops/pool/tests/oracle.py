"""The outputs of the pools from spec/ops/pool.md, without the C++ code
(tests/conformance/oracle.py)."""

import functools
import itertools
import math

from oracle import INF, NAN, canon, contract, div, maximum, sqrt


def numbers(attrs, name, default):
    value = attrs.get(name)
    return default if value is None else [int(v) for v in str(value).split(",") if v]


def pooled(f):
    """f(the window's places as (element or None, index in x, in pads), attrs) for every output."""

    def run(inputs, shapes, out, attrs):
        x, size = inputs[0], shapes[0][2:]
        axes = len(size)
        kernel = numbers(attrs, "kernel", None)
        stride, dilation = (numbers(attrs, name, [1] * axes) for name in ("strides", "dilations"))
        pads = numbers(attrs, "pads", [0] * 2 * axes)
        result = []
        for n, c, *o in itertools.product(*map(range, out)):
            places = []
            for r in itertools.product(*map(range, kernel)):
                at = [p * s + t * d - q for p, s, t, d, q in zip(o, stride, r, dilation, pads)]
                inside = all(0 <= i < s for i, s in zip(at, size))
                padded = all(-a <= i < s + b for i, s, a, b in zip(at, size, pads, pads[axes:]))
                index = 0
                for i, s in zip([n * out[1] + c, *at], [0, *size]):
                    index = index * s + i
                places.append((x[index] if inside else None, index, at, padded))
            result.append(f(places, attrs, size, (n * out[1] + c) * math.prod(size)))
        return result

    return run


@pooled
def most(places, attrs, size, base):
    inside = [v for v, *_ in places if v is not None]
    return canon(functools.reduce(maximum, inside, -INF))


@pooled
def indices(places, attrs, size, base):
    best = None
    for v, index, at, _ in places:
        if v is not None and (best is None or v > best[0] or (v != v and best[0] == best[0])):
            best = v, index, at
    if best is None:
        return -1
    if attrs.get("column_major"):
        index = 0
        for i, s in zip(reversed(best[2]), reversed(size)):
            index = index * s + i
        return base + index
    return best[1]


@pooled
def average(places, attrs, size, base):
    total = contract([0.0 if v is None else v for v, *_ in places], [1.0] * len(places))
    count = sum(
        padded if attrs.get("count_include_pad") else v is not None for v, _, _, padded in places
    )
    return canon(div(total, float(count)) if count else NAN)


@pooled
def norm(places, attrs, size, base):
    values = [0.0 if v is None else v for v, *_ in places]
    if attrs.get("p", 2) == 1:
        return canon(contract([abs(v) for v in values], [1.0] * len(values)))
    return canon(sqrt(contract(values, values)))


OPERATIONS = {
    "max_pool": most,
    "max_pool_indices": indices,
    "average_pool": average,
    "lp_pool": norm,
}
