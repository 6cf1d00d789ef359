"""Inverse frequencies of rotary embeddings from their definition (spec/checkpoint.md onnx.6): NumPy
fp32 steps, the power from 60 decimal digits and rounded once. Run it to print the digests that
src/checkpoint/recipes/rope_frequencies_test.cc expects."""

import hashlib
import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np

F = np.float32


def rounded(exact):
    """Fraction -> fp32, to nearest, ties to even."""
    near = F(float(exact))
    candidates = (near, np.nextafter(near, F(np.inf)), np.nextafter(near, F(-np.inf)))
    return min(
        candidates, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.uint32)) & 1)
    )


def inverse_frequencies(
    head_dim,
    theta=10000.0,
    rope_type="default",
    factor=1.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=8192,
    **yarn,
):
    getcontext().prec = 60
    power = [
        rounded(Fraction(Decimal(float(F(theta))) ** Decimal(float(F(i) / F(head_dim)))))
        for i in range(0, head_dim, 2)
    ]
    f = F(1) / np.array(power, F)
    if rope_type == "linear":
        f = f / F(factor)
    if rope_type == "yarn":
        return ramped(
            head_dim, theta, factor, original_max_position_embeddings, np.array(power, F), f, **yarn
        )
    if rope_type != "llama3":
        return f
    low, high, original = low_freq_factor, high_freq_factor, original_max_position_embeddings
    wavelength = (F(1) / f) * F(2 * math.pi)
    smooth = ((F(1) / wavelength) * F(original) - F(low)) / F(high - low)
    between = (F(1) - smooth) * f / F(factor) + smooth * f
    medium = ~(wavelength < F(original / high)) & ~(wavelength > F(original / low))
    return np.where(
        medium, between, np.where(wavelength > F(original / low), f / F(factor), f)
    ).astype(F)


def logarithm(x):
    getcontext().prec = 60
    return float(Decimal(x).ln())


def ramped(
    head_dim, theta, factor, original, power, f, beta_fast=32, beta_slow=1, truncate=True, **_
):
    def turns(n):
        return head_dim * logarithm(original / (n * (2 * math.pi))) / (2 * logarithm(theta))

    low, high = turns(beta_fast), turns(beta_slow)
    if truncate:
        low, high = float(math.floor(low)), float(math.ceil(high))
    low, high = max(low, 0.0), min(high, float(head_dim - 1))
    if low == high:
        high += 0.001
    kept = F(1) - np.clip((np.arange(head_dim // 2, dtype=F) - F(low)) / F(high - low), F(0), F(1))
    return (F(1) / (F(factor) * power)) * (F(1) - kept) + f * kept


def attention_factor(
    rope_type="default", factor=1.0, attention_factor=None, mscale=None, mscale_all_dim=None, **_
):
    def magnitude(scale):
        return 1.0 if factor <= 1 else 0.1 * scale * logarithm(factor) + 1.0

    if rope_type != "yarn":
        return F(1)
    if attention_factor is not None:
        return F(attention_factor)
    return F(
        magnitude(mscale) / magnitude(mscale_all_dim) if mscale and mscale_all_dim else magnitude(1)
    )


if __name__ == "__main__":
    LLAMA3 = {"theta": 500000.0, "rope_type": "llama3"}
    YARN = {"rope_type": "yarn"}
    CASES = [
        ("{}", 32, {}),
        ("{}", 64, {}),
        ("{}", 128, {}),
        ("{.theta = 500000}", 128, {"theta": 500000.0}),
        ("{.theta = 1e6}", 128, {"theta": 1e6}),
        ("{.theta = 10000.1}", 96, {"theta": 10000.1}),
        ("{RopeParameters::linear, 10000, 2.5}", 128, {"rope_type": "linear", "factor": 2.5}),
        ("llama3_8", 128, {**LLAMA3, "factor": 8.0}),
        ("llama3_32", 64, {**LLAMA3, "factor": 32.0}),
        (
            "yarn_4",
            128,
            {**YARN, "theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 32768},
        ),
        (
            "yarn_16",
            64,
            {
                **YARN,
                "factor": 16.0,
                "original_max_position_embeddings": 4096,
                "attention_factor": 1.25,
            },
        ),
        (
            "yarn_32",
            64,
            {
                **YARN,
                "theta": 150000.0,
                "factor": 32.0,
                "original_max_position_embeddings": 4096,
                "truncate": False,
                "mscale": 0.707,
                "mscale_all_dim": 0.5,
            },
        ),
        # the ramp is a step: both of its ends are 0
        ("yarn_step", 32, {**YARN, "factor": 1.5, "original_max_position_embeddings": 6}),
    ]
    for text, dim, how in CASES:
        table = inverse_frequencies(dim, **how)
        bits = attention_factor(**how).view(np.uint32)
        print(
            f"      {{{text}, {dim}, "
            f'"{hashlib.sha256(table.astype("<f4").tobytes()).hexdigest()}", 0x{bits:08x}}},'
        )
