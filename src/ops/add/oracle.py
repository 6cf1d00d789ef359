"""The outputs of add from spec.md, without the C++ code (tests/conformance/oracle.py)."""

from oracle import add, pairs

OPERATIONS = {"add": pairs(add)}
