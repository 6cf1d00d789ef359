"""Every room's vectors.txt against the specification, evaluated in exact rational arithmetic
(tests/conformance/oracle.py)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))
import oracle


@pytest.mark.parametrize(
    "op", sorted(p.parent.parent.name for p in oracle.ROOMS.glob("*/tests/vectors.txt"))
)
def test_vectors(op):
    lines = list(oracle.room_lines(op))
    assert any(not line.startswith("#") for line, _ in lines), "no vectors"
    for line, expected in lines:
        assert line == expected


def test_an_order_shows():
    """The oracle tells orders apart: 2^24 + 1 + 1 in one chain, and in two."""
    one, two = [0.0] * 512, [0.0] * 512
    one[0], one[1], one[2] = 2.0**24, 1.0, 1.0
    two[0], two[256], two[257] = 2.0**24, 1.0, 1.0
    assert oracle.contract([1.0] * 512, one) == 2.0**24
    assert oracle.contract([1.0] * 512, two) == 2.0**24 + 2


def test_binary64_stays_in_its_line():
    """A line with results of binary64 leaves the arithmetic of what follows at binary32."""
    line = "f32[1]=3f800000 -> f64[1]=3ff0000000000000"
    assert oracle.evaluate("cast", line) == line
    assert oracle.add(2.0**24, 1.0) == 2.0**24
