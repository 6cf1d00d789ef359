"""The outputs of mul from spec.md, without the C++ code (tests/conformance/oracle.py)."""

from oracle import mul, pairs

OPERATIONS = {"mul": pairs(mul)}
