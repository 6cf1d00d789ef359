"""Gradients of quantization: integers have none, scales of dequantized numbers do."""

from invar import primitives as p
from invar.autograd.rules import no_gradient, reduced_to, rule


@rule("dequantize_linear")
def dequantize_linear(v):
    q, scale, zeros = v[0], v.shape(1), v[2] if len(v) > 2 else None
    block, axis = v.attribute("block"), v.axis() if v.shape(0) else 0
    numbers = p.cast(q, dtype="f32")
    if zeros is not None:
        zeros = p.cast(zeros, dtype="f32")
        if block:
            zeros = p.expand(zeros.unsqueeze(axis + 1), shape=_split(scale, axis, block))
            zeros = zeros.reshape(_joined(scale, axis, block)).narrow(axis, 0, q.shape[axis])
        elif zeros.numel() != 1:
            zeros = zeros.reshape([n if i == axis else 1 for i, n in enumerate(q.shape)])
        numbers = p.sub(numbers, zeros)
    product = p.mul(v.grad, numbers)
    if block:
        whole = _joined(scale, axis, block)
        product = p.pad(product, begins=[0] * len(whole), shape=tuple(whole))
        product = product.reshape(_split(scale, axis, block))
        found = p.reduce_sum(product, axes=[axis + 1], keepdims=0)
    elif scale in ((), (1,)):
        found = reduced_to(product, ()).reshape(scale)
    else:
        lines = [n if i == axis else 1 for i, n in enumerate(q.shape)]
        found = reduced_to(product, lines).reshape(scale)
    return [None, found, None][: len(v)]


def _split(scale, axis, block):
    """The shape of x with its blocks as a dimension of their own, the last one filled up."""
    return (*scale[: axis + 1], block, *scale[axis + 1 :])


def _joined(scale, axis, block):
    return [n * block if i == axis else n for i, n in enumerate(scale)]


no_gradient("quantize_linear")
