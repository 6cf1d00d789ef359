"""Inverse frequencies of rotary embeddings from their definition (spec/onnx.md onnx.6): NumPy fp32 steps, the power from 60
decimal digits and rounded once. Run it to print the digests that src/onnx/rope_test.cc expects."""

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
    return min(candidates, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.uint32)) & 1))


def inverse_frequencies(head_dim, theta=10000.0, rope_type="default", factor=1.0, low_freq_factor=1.0, high_freq_factor=4.0,
                        original_max_position_embeddings=8192):
    getcontext().prec = 60
    power = [rounded(Fraction(Decimal(float(F(theta))) ** Decimal(float(F(i) / F(head_dim))))) for i in range(0, head_dim, 2)]
    f = F(1) / np.array(power, F)
    if rope_type == "linear":
        f = f / F(factor)
    if rope_type != "llama3":
        return f
    low, high, original = low_freq_factor, high_freq_factor, original_max_position_embeddings
    wavelength = (F(1) / f) * F(2 * math.pi)
    smooth = ((F(1) / wavelength) * F(original) - F(low)) / F(high - low)
    between = (F(1) - smooth) * f / F(factor) + smooth * f
    medium = ~(wavelength < F(original / high)) & ~(wavelength > F(original / low))
    return np.where(medium, between, np.where(wavelength > F(original / low), f / F(factor), f)).astype(F)


if __name__ == "__main__":
    LLAMA3 = {"theta": 500000.0, "rope_type": "llama3"}
    for text, dim, how in [("{}", 32, {}), ("{}", 64, {}), ("{}", 128, {}), ("{.theta = 500000}", 128, {"theta": 500000.0}),
                           ("{.theta = 1e6}", 128, {"theta": 1e6}), ("{.theta = 10000.1}", 96, {"theta": 10000.1}),
                           ("{RopeParameters::linear, 10000, 2.5}", 128, {"rope_type": "linear", "factor": 2.5}),
                           ("llama3_8", 128, {**LLAMA3, "factor": 8.0}), ("llama3_32", 64, {**LLAMA3, "factor": 32.0})]:
        table = inverse_frequencies(dim, **how)
        print(f'      {{{text}, {dim}, "{hashlib.sha256(table.astype("<f4").tobytes()).hexdigest()}"}},')
