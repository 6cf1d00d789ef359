"""The outputs of resize from spec/ops/resize.md, without the C++ code
(tests/conformance/oracle.py). A Python float is binary64 and every operation on it is rounded to
nearest even: the coordinates and weights of the specification, step by step."""

import itertools
import math
from fractions import Fraction

import numpy as np
from oracle import canon, fma, read_bits, rounded, write_bits


def listed(attrs, name, count):
    given = [int(v) for v in str(attrs[name]).split(",") if v] if name in attrs else [0] * count
    return [read_bits("f32", v) for v in given]


def coordinate(how, i, n, m, scale, start, end, binary32=False):
    """resize.3. In binary32 every operation is rounded to it: of two such numbers that is the
    rounding of the binary64 result."""
    if binary32:
        one, half = np.float32(1), np.float32(0.5)
        i, n, m, scale, start, end = map(np.float32, (i, n, m, scale, start, end))
        with np.errstate(all="ignore"):
            return float(
                (i + half) / scale - half
                if how == 0 or how == 2 and m > 1
                else n / np.float32(2) * (one - m / (scale * n)) + (i + half) / scale - half
                if how == 1
                else np.float32(0)
                if how == 2
                else (i * (n - one) / (m - one) if m > 1 else 0)
                if how == 3
                else i / scale
                if how == 4
                else (i * (n - one) / (scale * n - one) if scale * n != 1 else 0)
                if how == 6
                else start * (n - one) + i * (end - start) * (n - one) / (m - one)
                if m > 1
                else half * (start + end) * (n - one)
            )
    if how == 0 or how == 2 and m > 1:
        return (i + 0.5) / scale - 0.5
    if how == 1:
        return n / 2 * (1 - m / (scale * n)) + (i + 0.5) / scale - 0.5
    if how == 2:
        return 0.0
    if how == 3:
        return i * (n - 1.0) / (m - 1.0) if m > 1 else 0.0
    if how == 4:
        return i / scale
    if how == 6:
        return i * (n - 1.0) / (scale * n - 1.0) if scale * n != 1 else 0.0
    return (
        start * (n - 1.0) + i * (end - start) * (n - 1.0) / (m - 1.0)
        if m > 1
        else 0.5 * (start + end) * (n - 1.0)
    )


def nearest(rounding, c):
    """resize.4."""
    half = Fraction(c) - math.floor(c)
    up = [half > Fraction(1, 2), half >= Fraction(1, 2), False, half > 0][rounding]
    return math.floor(c) + up


def kernel(order, a, d):
    """resize.5."""
    d = abs(d)
    if order == 1:
        return max(1 - d, 0.0)
    if d < 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0.0


def taps(i, n, m, scale, region, attrs):
    """[(index, weight)], whether outside."""
    order, exclude = attrs.get("order", 0), attrs.get("exclude_outside", 0)
    how, antialias = attrs.get("coordinates", 0) % 8, attrs.get("antialias", 0)
    c = coordinate(how, i, n, m, scale, *region, binary32=attrs.get("coordinates", 0) >= 8)
    outside = how == 5 and not 0 <= c <= n - 1

    def within(j):
        return min(max(j, 0), n - 1)

    if order == 0:
        return [(within(nearest(attrs.get("rounding", 0), c)), None)], outside
    support, shrink = 1.0 if order == 1 else 2.0, 1.0
    if antialias and scale < 1:
        support, shrink = support / scale, scale
    half = -math.floor(-support)
    places = range(math.floor(c) - half + 1, math.floor(c) + half + 1)
    w = [
        0.0
        if exclude and not 0 <= j < n
        else kernel(order, attrs.get("cubic", -0.75), (j - c) * shrink)
        for j in places
    ]
    if antialias or exclude:
        total = 0.0
        for v in w:
            total += v
        w = [v / total for v in w]
    return [(within(j), rounded(Fraction(v), sign=v)) for j, v in zip(places, w)], outside


def resize(tensors, outputs, attrs):
    dtype, shape, bits = tensors[0]
    out = outputs[0][1]
    rank = len(shape)
    scales, roi = listed(attrs, "scales", rank), listed(attrs, "roi", 2 * rank)
    axes = []
    for d, (n, m) in enumerate(zip(shape, out)):
        region = roi[d], roi[rank + d]
        crop = attrs.get("coordinates", 0) % 8 == 5
        if n == m and (scales[d] in (0, 1)) and (not crop or region == (0, 1)):
            axes.append([([(i, None)], False) for i in range(m)])
        else:
            axes.append([taps(i, n, m, scales[d] or m / n, region, attrs) for i in range(m)])

    def value(place, d, at):
        if d == rank:
            return read_bits(dtype, bits[at])
        chosen = axes[d][place[d]][0]
        if chosen[0][1] is None:
            return value(place, d + 1, at * shape[d] + chosen[0][0])
        c = 0.0
        for j, w in chosen:
            c = fma(w, value(place, d + 1, at * shape[d] + j), c)
        return c

    result = []
    for place in itertools.product(*map(range, out)):
        if any(axes[d][i][1] for d, i in enumerate(place)):
            result.append(
                write_bits(dtype, canon(attrs.get("extrapolation", 0.0))) if dtype == "f32" else 0
            )
        elif attrs.get("order", 0) == 0:
            at = 0
            for d, i in enumerate(place):
                at = at * shape[d] + axes[d][i][0][0][0]
            result.append(bits[at])
        else:
            result.append(write_bits(dtype, canon(value(place, 0, 0))))
    return [result]


ON_BITS = {"resize": resize}
