import torch


def blocks(v, axis, block, n):
    """Of scales or zero points for `block` indices of an axis of n, one for each."""
    return v.repeat_interleave(min(block, n), axis).narrow(axis, 0, n)


def quantized(x, scale, zero, dtype):
    """NaN becomes the zero point."""
    steps = torch.round(x / scale)
    steps = torch.where(steps.isnan(), 0.0, steps)
    limits = torch.iinfo(dtype)
    return torch.clamp(steps if zero is None else steps + zero, limits.min, limits.max).to(dtype)


def spread(c, i):
    """The text of scales or zero points, shaped to meet the operand's elements."""
    axis, block, (_, shape) = (
        c.get("axis", 1) % max(1, c.rank()),
        c.get("block", 0),
        c.operand_types[i],
    )
    if block:
        return f"rooms.quantize.blocks({c[i]}, {axis}, {block}, {c.operand_types[0][1][axis]})"
    if shape == [1] and c.rank() == 0:
        return f"{c[i]}.reshape(())"
    if len(shape) == 0 or shape == [1] or axis == c.rank() - 1:
        return c[i]
    return f"{c[i]}.reshape(-1{', 1' * (c.rank() - 1 - axis)})"


def quantize(c):
    return (
        f"rooms.quantize.quantized({c[0]}, {spread(c, 1)}, "
        f"{spread(c, 2) if len(c) > 2 else None}, {c.dtype})"
    )


def dequantize(c):
    steps = f"({c[0]}.float() - {spread(c, 2)}.float())" if len(c) > 2 else f"{c[0]}.float()"
    return f"{steps} * {spread(c, 1)}"


SPELLED = {"quantize_linear": quantize, "dequantize_linear": dequantize}
