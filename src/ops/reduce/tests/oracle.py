"""The outputs of this room's operations from spec/ops/reduce.md, without the C++ code
(tests/conformance/oracle.py)."""

import functools
import itertools
import math

import oracle
from oracle import INF, NAN, add, canon, div, fma, maximum, mul, rounded, sqrt


def rows_of(x, shape, attrs):
    """reduce.2: the rows, in the order of the results."""
    axes = attrs.get("axes", ",".join(map(str, range(len(shape)))))
    axes = [int(a) for a in str(axes).split(",") if a]
    kept = [d for d in range(len(shape)) if d not in axes]
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]

    def places(dims):
        for index in itertools.product(*(range(shape[d]) for d in dims)):
            yield sum(i * strides[d] for i, d in zip(index, dims))

    inside = list(places(axes))
    return [[x[k + i] for i in inside] for k in places(kept)]


def row(x, start, step, join):
    """reduction.1 - 5, reduction.10."""
    total = start
    for begin in range(0, len(x), 4096):
        lane = [start] * 256
        for i in range(begin, min(len(x), begin + 4096)):
            lane[i % 256] = step(lane[i % 256], x[i])
        while len(lane) > 1:
            half = len(lane) // 2
            lane = [join(lane[j], lane[j + half]) for j in range(half)]
        total = join(total, lane[0])
    return total


def by_row(f):
    return lambda inputs, shapes, out, attrs: [
        canon(f(r)) for r in rows_of(inputs[0], shapes[0], attrs)
    ]


def total(x):
    return row(x, 0.0, add, add)


def squares(x):
    return row(x, 0.0, lambda lane, v: fma(v, v, lane), add)


def mean(x):
    return div(total(x), rounded(oracle.Fraction(len(x)))) if x else NAN


def smallest(x):
    return -functools.reduce(maximum, [-v for v in x], -INF)


def log(x):
    if x != x or x < 0:
        return NAN
    return (
        -INF
        if x == 0
        else x
        if x == INF
        else 0.0
        if x == 1
        else rounded(oracle.Fraction(oracle.Decimal(x).ln()))
    )


def log_sum_exp(x):
    most = functools.reduce(maximum, x, -INF)
    centre = most if math.isfinite(most) else 0.0
    return add(centre, log(total([canon(oracle.exp(oracle.sub(v, centre))) for v in x])))


def arg(better):
    def run(inputs, shapes, out, attrs):
        axis = attrs.get("axis", -1) % len(shapes[0])
        result = []
        for r in rows_of(inputs[0], shapes[0], {"axes": f"{axis},"}):
            nan = [i for i, v in enumerate(r) if v != v]
            ties = nan or [i for i, v in enumerate(r) if v == better(r)]
            result.append(ties[-1 if attrs.get("select_last") else 0])
        return result

    return run


def variance(x, free):
    m = mean(x)
    d = [oracle.sub(v, m) for v in x]
    return div(squares(d), rounded(oracle.Fraction(free))) if free > 0 else NAN


def spread(f):
    def run(inputs, shapes, out, attrs):
        return [
            canon(f(variance(r, len(r) - attrs.get("correction", 0))))
            for r in rows_of(inputs[0], shapes[0], attrs)
        ]

    return run


def hardmax(inputs, shapes, out, attrs):
    axis = attrs.get("axis", -1) % len(out)
    n, inner = out[axis], math.prod(out[axis + 1 :])
    result = [0.0] * math.prod(out)
    for row, best in enumerate(arg(max)(inputs, shapes, None, {"axis": axis})):
        result[(row // inner * n + best) * inner + row % inner] = 1.0
    return result


def least(dtype):
    return -1 << 8 * oracle.WIDTH[dtype] - 1 if dtype[0] == "i" else 0


def most(dtype):
    return 1 if dtype == "bool" else (1 << 8 * oracle.WIDTH[dtype]) - 1 + least(dtype)


def average(dtype, x):
    total = oracle.read_bits(dtype, oracle.write_bits(dtype, sum(x)))
    return int(oracle.Fraction(total, len(x))) if x else 0


INTEGERS = {
    "reduce_sum": lambda dtype, x: sum(x),
    "reduce_mean": average,
    "reduce_prod": lambda dtype, x: math.prod(x),
    "reduce_max": lambda dtype, x: max(x, default=least(dtype)),
    "reduce_min": lambda dtype, x: min(x, default=most(dtype)),
    "reduce_l1": lambda dtype, x: sum(map(abs, x)),
    "reduce_sum_square": lambda dtype, x: sum(v * v for v in x),
}


def by_type(floats, integers):
    def run(tensors, outs, attrs):
        dtype, shape, bits = tensors[0]
        x = [oracle.read_bits(dtype, b) for b in bits]
        y = (
            floats([x], [shape], outs[0][1], attrs)
            if dtype in oracle.FORMATS
            else [integers(dtype, r) for r in rows_of(x, shape, attrs)]
        )
        return [[oracle.write_bits(dtype, v) for v in y]]

    return run


OPERATIONS = {
    "hardmax": hardmax,
    "reduce_var": spread(lambda v: v),
    "reduce_std": spread(sqrt),
    "argmax": arg(max),
    "argmin": arg(min),
    "reduce_sum": by_row(total),
    "reduce_mean": by_row(mean),
    "reduce_prod": by_row(lambda x: row(x, 1.0, mul, mul)),
    "reduce_max": by_row(lambda x: functools.reduce(maximum, x, -INF)),
    "reduce_min": by_row(smallest),
    "reduce_l1": by_row(lambda x: total([abs(v) for v in x])),
    "reduce_sum_square": by_row(squares),
    "reduce_log_sum": by_row(lambda x: log(total(x))),
    "reduce_log_sum_exp": by_row(log_sum_exp),
    "reduce_l2": by_row(lambda x: sqrt(squares(x))),
}
ON_BITS = {op: by_type(OPERATIONS.pop(op), f) for op, f in INTEGERS.items()}
