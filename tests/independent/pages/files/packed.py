"""weights.md: packed matrices of safetensors as tensors of their numbers. One of each kind: small
floats with scales of blocks (weights.17), integers with scales and zeros of groups (weights.20)."""

import struct


def small_float(code):
    """weights.16: an element of e4m3."""
    exponent, mantissa = code >> 3 & 15, code & 7
    size = (8 + mantissa) * 2.0 ** (exponent - 10) if exponent else mantissa * 2.0**-9
    return -size if code & 128 else size


SMALL_FLOATS = [small_float(code) for code in range(256)]


def fp8(parts, settings):
    """weights.17. Each product is exact in binary64, and rounded where it is stored."""
    (dtype, (rows, columns), codes) = parts["weight"]
    assert dtype == "F8_E4M3" and parts["weight_scale_inv"][0] == "F32"
    down, across = settings["weight_block_size"]
    wide = -(-columns // across)
    scales = struct.unpack(f"<{wide * -(-rows // down)}f", parts["weight_scale_inv"][2])
    numbers = [
        SMALL_FLOATS[codes[r * columns + k]] * scales[r // down * wide + k // across]
        for r in range(rows)
        for k in range(columns)
    ]
    return [rows, columns], numbers


def gptq(parts, settings):
    """weights.20, with scales of binary16."""
    bits = settings["bits"]
    in_word, mask = 32 // bits, (1 << bits) - 1
    assert parts["scales"][0] == "F16"

    def words(name):
        raw = parts[name][2]
        return struct.unpack(f"<{len(raw) // 4}I", raw)

    (deep, rows), codes = parts["qweight"][1], words("qweight")
    columns = deep * in_word
    zeros, across = words("qzeros"), -(-rows // in_word)
    scales = struct.unpack(f"<{len(parts['scales'][2]) // 2}e", parts["scales"][2])
    less = 0 if settings.get("checkpoint_format") == "gptq_v2" else 1
    groups = words("g_idx") if "g_idx" in parts else None
    numbers = []
    for r in range(rows):
        for k in range(columns):
            group = groups[k] if groups else k // settings["group_size"]
            q = codes[k // in_word * rows + r] >> k % in_word * bits & mask
            z = zeros[group * across + r // in_word] >> r % in_word * bits & mask
            numbers.append((q - z - less) * scales[group * rows + r])
    return [rows, columns], numbers


# quant_method -> the part that a matrix is known by, all parts, and its numbers
METHODS = {
    "fp8": ("weight_scale_inv", ("weight", "weight_scale_inv"), fp8),
    "gptq": ("qweight", ("qweight", "qzeros", "scales", "g_idx"), gptq),
}


def unpacked(stored, settings):
    """(dtype, shape, bytes) by name -> the same with packed matrices as binary32 (weights.16)."""
    known_by, names, numbers_of = METHODS[settings["quant_method"]]
    out = dict(stored)
    for name in [n for n in stored if n.endswith("." + known_by)]:
        base = name.removesuffix(known_by)
        parts = {part: out.pop(base + part) for part in names if base + part in out}
        shape, numbers = numbers_of(parts, settings)
        out[base + "weight"] = ("F32", shape, struct.pack(f"<{len(numbers)}f", *numbers))
    return out
