"""The outputs of sin from spec.md, without the C++ code (tests/conformance/oracle.py)."""

from oracle import each, sine

OPERATIONS = {"sin": each(lambda x: sine(x, 0))}
