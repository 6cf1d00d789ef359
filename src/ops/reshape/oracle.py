"""The outputs of reshape from spec.md, without the C++ code (tests/conformance/oracle.py)."""

ON_BITS = {"reshape": lambda tensors, outputs, attrs: [tensors[0][2]]}
