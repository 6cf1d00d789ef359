"""spec/checkpoint.md onnx.6, spec/llama.md llama.3: inverse frequencies and the attention factor.

`f32` after each operation of binary32: a sum, product or quotient of two binary32 numbers that is
rounded to binary64 and then to binary32 is that which is rounded once.
"""

import math
from decimal import Decimal, localcontext

from arithmetic.library import LIBRARY, f32, floats
from arithmetic.mutation import active


def ln(x):
    """The natural logarithm, known to 50 digits before it is rounded to binary64."""
    with localcontext() as context:
        context.prec = 50
        return float(Decimal(x).ln())


def parameters_of(config):
    """llama.3: the object, with what may stand beside it."""
    found = dict(config.get("rope_scaling") or config.get("rope_parameters") or {})
    found.setdefault("rope_type", found.get("type", "default"))
    found.setdefault("rope_theta", config.get("rope_theta") or 10000.0)
    context = config.get("max_position_embeddings") or 2048
    found.setdefault(
        "original_max_position_embeddings",
        config.get("original_max_position_embeddings") or context,
    )
    return {k: v for k, v in found.items() if v is not None}


def llama3(f, n, low, high, factor):
    """The table's value for the frequency f."""
    longest, shortest, span = f32(n / low), f32(n / high), f32(high - low)
    low, factor, n = f32(low), f32(factor), f32(n)
    w = f32(f32(1 / f) * f32(2 * math.pi))
    if w > longest:
        return f32(f / factor)
    if w < shortest or active("llama3_without_ramp"):
        return f
    s = f32(f32(f32(f32(1 / w) * n) - low) / span)
    return f32(f32(f32(f32(1 - s) * f) / factor) + f32(s * f))


def yarn_ramp(parameters, d, theta):
    """lo and w of onnx.6."""

    def c(r):
        n = parameters["original_max_position_embeddings"]
        return d * ln(n / (r * (2 * math.pi))) / (2 * ln(theta))

    lo, hi = c(parameters.get("beta_fast", 32)), c(parameters.get("beta_slow", 1))
    if parameters.get("truncate", True) and not active("yarn_without_truncation"):
        lo, hi = math.floor(lo), math.ceil(hi)
    lo, hi = max(lo, 0), min(hi, d - 1)
    if lo == hi:
        hi = hi + 0.001
    return f32(lo), f32(hi - lo)


def attention_factor(parameters):
    def m(s):
        factor = parameters["factor"]
        return 0.1 * s * ln(factor) + 1 if factor > 1 else 1.0

    if parameters["rope_type"] != "yarn" or active("yarn_without_attention_factor"):
        return 1.0
    if "attention_factor" in parameters:
        return f32(parameters["attention_factor"])
    if "mscale" in parameters and "mscale_all_dim" in parameters:
        return f32(m(parameters["mscale"]) / m(parameters["mscale_all_dim"]))
    return f32(m(1))


def inverse_frequencies(config, d):
    """The table of d / 2 frequencies and the attention factor."""
    parameters = parameters_of(config)
    kind, theta = parameters["rope_type"], float(parameters["rope_theta"])
    table = floats(d // 2)
    if kind == "yarn":
        lo, w = yarn_ramp(parameters, d, theta)
    for i in range(d // 2):
        p = LIBRARY.law_pow(f32(theta), f32(2 * i / d))
        f = f32(1 / p)
        if active("frequency_is_negative_power"):
            f = LIBRARY.law_pow(f32(theta), f32(-2 * i / d))
        if kind == "linear":
            f = f32(f / f32(parameters["factor"]))
        elif kind == "llama3":
            n = parameters["original_max_position_embeddings"]
            low, high = parameters["low_freq_factor"], parameters["high_freq_factor"]
            f = llama3(f, n, low, high, parameters["factor"])
        elif kind == "yarn":
            k = f32(1 - min(max(f32(f32(i - lo) / w), 0.0), 1.0))
            slow = f32(1 / f32(f32(parameters["factor"]) * p))
            if active("yarn_divides_frequency"):
                slow = f32(f / f32(parameters["factor"]))
            f = f32(f32(slow * f32(1 - k)) + f32(f * k))
        table[i] = f
    return table, attention_factor(parameters)
