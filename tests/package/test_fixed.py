"""Sums in fixed point: exact, and the same however the units are ordered and split."""

from fractions import Fraction

import invar
import numpy as np
import pytest
import torch
from invar import primitives as p

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
RNG = np.random.default_rng(1)


def exact(x):
    """Spec fixed.2 and fixed.3 in whole numbers."""
    return [sum(round(Fraction(float(v)) * 2**49) for v in column) for column in x.T]


def wrapped(values):
    return np.array([(v + 2**63) % 2**64 - 2**63 for v in values], np.int64)


def units(n, m=37):
    return (RNG.standard_normal((n, m)) * 2.0 ** RNG.integers(-40, 3, (n, m))).astype(np.float32)


def test_sum_is_exact():
    x = units(50)
    np.testing.assert_array_equal(p.fixed_sum(x), wrapped(exact(x)))


@pytest.mark.parametrize("isa", ["reference", "scalar", "avx2", ""])
def test_value_is_the_rounded_sum(isa):
    x = units(300)
    s, m = p.fixed_sum(x, isa=isa), p.fixed_magnitude(x, isa=isa)
    value = p.fixed_value(s, m, isa=isa)
    for found, true in zip(value, exact(x)):
        near = np.float32(np.longdouble(true) * np.longdouble(2.0) ** -49)
        assert found == near


def test_any_order_and_split():
    x = units(64)
    s, m = p.fixed_sum(x), p.fixed_magnitude(x)
    for cuts in ([1], [32], [7, 40], list(range(1, 64))):
        order = RNG.permutation(64)
        parts = np.split(x[order], cuts)
        sums = [p.fixed_sum(part) for part in parts]
        magnitudes = [p.fixed_magnitude(part) for part in parts]
        total, magnitude = sums[0], magnitudes[0]
        for a, b in zip(sums[1:], magnitudes[1:]):
            total, magnitude = p.add(total, a), p.add(magnitude, b)
        assert total.tobytes() == s.tobytes()
        assert magnitude.tobytes() == m.tobytes()


def test_overflow_is_seen_in_every_split():
    """The sum wraps around to a plausible number; its magnitude says that it did."""
    x = np.full((8, 1), 2.0**13, np.float32)
    assert p.fixed_sum(x)[0] == 0
    assert int(p.fixed_magnitude(x)) == 8 << 29
    assert np.isnan(p.fixed_value(p.fixed_sum(x), p.fixed_magnitude(x)))
    halves = [p.fixed_magnitude(part) for part in np.split(x, [1])]
    assert np.isnan(p.fixed_value(p.fixed_sum(x), p.add(*halves)))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 2.0**14, -(2.0**14)])
def test_what_does_not_fit_makes_all_nan(bad):
    x = units(5)
    x[3, 2] = bad
    assert int(p.fixed_magnitude(x)) >= 1 << 30
    assert np.isnan(p.fixed_value(p.fixed_sum(x), p.fixed_magnitude(x))).all()


def test_magnitude_cannot_wrap():
    """A hundred thousand bad units do not add up to a small magnitude modulo 2^64."""
    x = np.full((1 << 17, 1), np.inf, np.float32)
    assert int(p.fixed_magnitude(x)) == 1 << 47


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "shape", [(4, 30, 17, 9), (1, 300, 70, 33), (40, 8, 3, 5), (3, 257, 64, 128)]
)
def test_products_without_copies(device, shape):
    """fixed_matmul.1: the sums and the magnitude of the products of the units."""
    units_, length, rows, columns = shape
    a, b = units(units_ * length, rows), units(units_ * length, columns)
    a, b = a.reshape(units_, length, rows), b.reshape(units_, length, columns)
    products = p.matmul(a, b, trans_a=1, trans_b=0)
    found = p.fixed_matmul(torch.from_numpy(a).to(device), torch.from_numpy(b).to(device))
    assert found.cpu()[:-1].numpy().tobytes() == p.fixed_sum(products).tobytes()
    assert int(found[-1]) == int(p.fixed_magnitude(products))


def test_refusals():
    with pytest.raises(invar.Error, match="units"):
        p.fixed_sum(np.float32(1))
    with pytest.raises(invar.Error, match="magnitude"):
        p.fixed_value(np.zeros(3, np.int64), np.zeros(1, np.int64))
    with pytest.raises(invar.Error, match="fixed_sum"):
        p.fixed_sum(np.zeros((2, 2)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(20, 37), (3000, 5), (7, 100_000), (1000, 1)])
def test_tensors_agree_with_arrays(device, shape):
    x = units(*shape)
    s, m = p.fixed_sum(x), p.fixed_magnitude(x)
    t = torch.from_numpy(x).to(device)
    a, b = p.fixed_sum(t), p.fixed_magnitude(t)
    assert a.cpu().numpy().tobytes() == s.tobytes()
    assert b.cpu().numpy().tobytes() == m.tobytes()
    assert p.fixed_value(a, b).cpu().numpy().tobytes() == p.fixed_value(s, m).tobytes()
