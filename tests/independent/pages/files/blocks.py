"""weights.3 to weights.10: the numbers of blocks, as a formula for each number of a block.

Every product is exact in binary64, and so is every sum before it is rounded: scales are binary16
and integers have few bits. So the one rounding is that of Tensor.values' binary32."""

import struct

from arithmetic.mutation import active

IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def half(b, at):
    return struct.unpack_from("<e", b, at)[0]


def signed(byte):
    return byte - 256 if byte > 127 else byte


def nibbles(q):
    """n of weights.3: the low halves of the bytes, then the high ones."""
    if active("nibbles_in_turn"):
        return [part for b in q for part in (b & 15, b >> 4)]
    return [b & 15 for b in q] + [b >> 4 for b in q]


def with_fifth_bit(h, q):
    return [n + 16 * (h[i // 8] >> i % 8 & 1) for i, n in enumerate(nibbles(q))]


def two_bits(q, i):
    """weights.6: two bits of each of 32 bytes at a time."""
    return q[32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3


def q8_0(b):
    d = half(b, 0)
    return [(x if active("q8_is_unsigned") else signed(x)) * d for x in b[2:]]


def q4_0(b):
    d = half(b, 0)
    return [(n - 8) * d for n in nibbles(b[2:])]


def q5_0(b):
    d = half(b, 0)
    return [(n - 16) * d for n in with_fifth_bit(b[2:6], b[6:])]


def q4_1(b):
    d, m = half(b, 0), half(b, 2)
    return [n * d + m for n in nibbles(b[4:])]


def q5_1(b):
    d, m = half(b, 0), half(b, 2)
    return [n * d + m for n in with_fifth_bit(b[4:8], b[8:])]


def iq4_nl(b):
    d = half(b, 0)
    return [IQ4[n] * d for n in nibbles(b[2:])]


def mxfp4(b):
    scale = 2.0 ** (b[0] - 127)
    signed_zeros = not active("zeros_lose_their_sign")
    return [
        (-FP4[n % 8] if n > 7 and (n > 8 or signed_zeros) else FP4[n % 8]) * scale
        for n in nibbles(b[1:])
    ]


def q2_k(b):
    q, d, e = b[16:80], half(b, 80), half(b, 82)
    return [
        d * (b[i // 16] & 15) * two_bits(q, i) - e * (b[i // 16] >> 4) for i in range(256)
    ]  # fmt: skip


def six_bits(s):
    """weights.7: s(j) and m(j)."""
    if active("k_scales_without_high_bits"):
        return [x & 15 for x in s[:8]], [x & 15 for x in s[4:]]
    scales = [x & 63 for x in s[:4]] + [(s[j + 4] & 15) + 16 * (s[j - 4] >> 6) for j in range(4, 8)]
    least = [x & 63 for x in s[4:8]] + [(s[j + 4] >> 4) + 16 * (s[j] >> 6) for j in range(4, 8)]
    return scales, least


def k_with_minima(b, fifth, q):
    d, e = half(b, 0), half(b, 2)
    scales, least = six_bits(b[4:16])
    sign = 1 if active("k_minima_are_added") else -1
    out = []
    for j in range(8):
        part = q[32 * (j // 2) : 32 * (j // 2) + 32]
        scale, low = d * scales[j], sign * e * least[j]
        out += [
            scale * ((x >> 4 if j % 2 else x & 15) + (16 * (fifth[i] >> j & 1) if fifth else 0))
            + low
            for i, x in enumerate(part)
        ]
    return out


def q4_k(b):
    return k_with_minima(b, None, b[16:])


def q5_k(b):
    return k_with_minima(b, b[16:48], b[48:])


def q3_k(b):
    h, q, s, d = b[:32], b[32:96], b[96:108], half(b, 108)
    scales = [
        d * ((s[j] & 15 if j < 8 else s[j - 8] >> 4) + 16 * (s[8 + j % 4] >> 2 * (j // 4) & 3) - 32)
        for j in range(16)
    ]
    return [
        scales[i // 16] * (two_bits(q, i) - 4 * (1 - (h[i % 32] >> i // 32 & 1)))
        for i in range(256)
    ]


def q6_k(b):
    q, h, d = b[:128], b[128:192], half(b, 208)
    scales = [d * signed(x) for x in b[192:208]]
    out = []
    for i in range(256):
        r = i % 128
        x = q[64 * (i // 128) + r % 64]
        t = h[32 * (i // 128) + r % 32] >> 2 * (r // 32) & 3
        four = x & 15 if (r < 64) != active("q6_halves_change_places") else x >> 4
        out.append(scales[i // 16] * (four + 16 * t - 32))
    return out


def iq4_xs(b):
    d, h, s, q = half(b, 0), b[2] + 256 * b[3], b[4:8], b[8:]
    out = []
    for j in range(8):
        low = s[j // 2] >> 4 if j % 2 else s[j // 2] & 15
        scale = d * (low + 16 * (h >> 2 * j & 3) - 32)
        out += [scale * IQ4[n] for n in nibbles(q[16 * j : 16 * j + 16])]
    return out


# weights.1: GGUF type -> name, clause, numbers and bytes of a block, the type of the numbers, and
# what makes them, or None where the bytes are they.
TYPES = {
    0: ("F32", "weights.2", 1, 4, "F32", None),
    1: ("F16", "weights.2", 1, 2, "F16", None),
    30: ("BF16", "weights.2", 1, 2, "BF16", None),
    8: ("Q8_0", "weights.3", 32, 34, "F32", q8_0),
    2: ("Q4_0", "weights.3", 32, 18, "F32", q4_0),
    6: ("Q5_0", "weights.3", 32, 22, "F32", q5_0),
    3: ("Q4_1", "weights.4", 32, 20, "F32", q4_1),
    7: ("Q5_1", "weights.4", 32, 24, "F32", q5_1),
    20: ("IQ4_NL", "weights.5", 32, 18, "F32", iq4_nl),
    39: ("MXFP4", "weights.5", 32, 17, "BF16", mxfp4),
    10: ("Q2_K", "weights.6", 256, 84, "F32", q2_k),
    12: ("Q4_K", "weights.7", 256, 144, "F32", q4_k),
    13: ("Q5_K", "weights.7", 256, 176, "F32", q5_k),
    11: ("Q3_K", "weights.8", 256, 110, "F32", q3_k),
    14: ("Q6_K", "weights.9", 256, 210, "F32", q6_k),
    23: ("IQ4_XS", "weights.10", 256, 136, "F32", iq4_xs),
}


def unpacked(kind, data):
    """The bytes of a tensor of this GGUF type -> its dtype in safetensors, and its bytes there."""
    _, _, _, size, dtype, numbers_of = TYPES[kind]
    if numbers_of is None:
        return dtype, data
    numbers = [x for at in range(0, len(data), size) for x in numbers_of(data[at : at + size])]
    raw = struct.pack(f"<{len(numbers)}f", *numbers)
    if dtype == "BF16":  # exact: the two bytes below are zero
        raw = b"".join(raw[i + 2 : i + 4] for i in range(0, len(raw), 4))
    return dtype, raw
