"""The outputs of cos from spec.md, without the C++ code (tests/conformance/oracle.py)."""

from oracle import each, sine

OPERATIONS = {"cos": each(lambda x: sine(x, 1))}
