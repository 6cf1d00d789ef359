"""The outputs of sigmoid from spec.md, without the C++ code (tests/conformance/oracle.py)."""

from oracle import add, div, each, exp


def sigmoid(x):
    return div(1.0, add(1.0, exp(-x)))


OPERATIONS = {"sigmoid": each(sigmoid)}
