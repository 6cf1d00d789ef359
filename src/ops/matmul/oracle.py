"""The outputs of matmul from spec.md, without the C++ code (tests/conformance/oracle.py)."""

from oracle import canon, contract, rows


def matmul(inputs, shapes, out, attrs):
    k, n = shapes[0][-1], out[-1]
    if attrs.get("trans_b"):
        columns = rows(inputs[1], k)
    else:
        columns = [inputs[1][j::n] for j in range(n)]
    return [canon(contract(a, b)) for a in rows(inputs[0], k) for b in columns]


OPERATIONS = {"matmul": matmul}
