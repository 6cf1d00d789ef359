"""The outputs of batchnorm from spec/ops/batchnorm.md, without the C++ code
(tests/conformance/oracle.py)."""

from oracle import add, canon, div, mul, sqrt, sub


def batchnorm(inputs, shapes, out, attrs):
    x, weight, bias, mean, variance = inputs
    spatial = len(x) // (out[0] * out[1])
    result = []
    for i, v in enumerate(x):
        c = i // spatial % out[1]
        scale = div(1.0, sqrt(add(variance[c], attrs["epsilon"])))
        result.append(canon(add(mul(mul(sub(v, mean[c]), scale), weight[c]), bias[c])))
    return result


OPERATIONS = {"batchnorm": batchnorm}
