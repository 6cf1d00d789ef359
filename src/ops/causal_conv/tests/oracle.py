"""The outputs of causal_conv from spec/ops/causal_conv.md, without the C++ code
(tests/conformance/oracle.py)."""

from oracle import add, canon, contract


def causal_conv(inputs, shapes, out, attrs):
    x, w, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    (batch, seq, channels), width = out, shapes[1][1]
    result = []
    for b in range(batch):
        for p in range(seq):
            positions = range(max(p - width + 1, 0), p + 1)  # causal_conv.2
            for c in range(channels):
                a = [x[(b * seq + q) * channels + c] for q in positions]
                taps = w[(c + 1) * width - len(positions) : (c + 1) * width]
                y = canon(contract(a, taps))
                result.append(y if bias is None else canon(add(y, bias[c])))
    return result


OPERATIONS = {"causal_conv": causal_conv}
