"""The outputs of silu from spec.md, without the C++ code (tests/conformance/oracle.py)."""

from oracle import add, canon, div, each, exp, mul


def sigmoid(x):
    return div(1.0, add(1.0, exp(-x)))


OPERATIONS = {"silu": each(lambda x: mul(x, canon(sigmoid(x))))}
