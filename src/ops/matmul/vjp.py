"""Gradients of contractions: contractions of the same schedule."""

import math

from invar import primitives as p
from invar.autograd.rules import no_gradient, reduced_to, rule, widened


def _rows(x):
    return x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@rule("matmul", saves="others")
def matmul(v):
    trans_a, trans_b = v.attribute("trans_a"), v.attribute("trans_b")
    a, b, grad = v[0], v[1], v.grad
    grads = [None, None]
    if v.needs(0):
        da = (
            p.matmul(widened(b), grad, trans_a=trans_b, trans_b=1)
            if trans_a
            else p.matmul(grad, b, trans_a=0, trans_b=1 - trans_b)
        )
        grads[0] = v.reduced(0, da)
    if v.needs(1):
        grads[1] = _second(v, a, grad, trans_a, trans_b)
    return grads


def _second(v, a, grad, trans_a, trans_b):
    """Of b: one contraction over all rows of a where b is a single matrix."""
    if len(v.shape(1)) == 2 and not trans_a:
        if (accumulator := v.accumulator(1)) is not None:
            return _of_units(accumulator, a, grad, trans_b)
        a, grad = _rows(a), _rows(grad)
    db = (
        p.matmul(grad, a, trans_a=1, trans_b=trans_a)
        if trans_b
        else p.matmul(a, grad, trans_a=1 - trans_a, trans_b=0)
    )
    return v.reduced(1, db)


def _of_units(accumulator, a, grad, trans_b):
    """The contributions of each unit to the gradient of a weight: one contraction for each."""
    units = a.shape[0]
    a, grad = (x.reshape(units, -1, x.shape[-1]) for x in (a, grad))
    first, second = (grad, a) if trans_b else (a, grad)
    if hasattr(accumulator, "add_matmul"):
        accumulator.add_matmul(first, second)
    else:
        accumulator.add(p.matmul(first, second, trans_a=1, trans_b=0))


@rule("grouped_matmul")
def grouped_matmul(v):
    """Of a: the product with the same matrices transposed. Of a matrix: a contraction over all
    rows, in which those of other matrices are zero."""
    a, index, stack, grad = v[0], v[1], v[2:], v.grad
    trans_b = v.attribute("trans_b")
    grads = [None] * len(v)
    if v.needs(0):
        grads[0] = reduced_to(p.grouped_matmul(grad, index, *stack, trans_b=1 - trans_b), a.shape)
    wanted = [i for i in range(2, len(v)) if v.needs(i)]
    if not wanted:
        return grads
    if v.accumulator(2) is not None:
        v.refuse(2, "a parameter with exact gradients is not covered here")
    stacked = len(stack) == 1 and stack[0].ndim == 3
    count = stack[0].shape[0] if stacked else len(stack)
    rows, zero = p.expand(a, shape=(*index.shape, a.shape[-1])), v.constant(0.0)
    rows, grad = _rows(rows), _rows(grad)
    index = index.reshape(-1, 1)
    found = []
    for g in range(count) if stacked else (i - 2 for i in wanted):
        chosen = p.logical_or(*(p.equal(index, index.new_full((), n)) for n in (g, g - count)))
        mine = p.where(chosen, rows, zero)
        first, second = (grad, mine) if trans_b else (mine, grad)
        found.append(p.matmul(first, second, trans_a=1, trans_b=0))
    if stacked:
        grads[2] = p.concat(*(x.unsqueeze(0) for x in found), axis=0)
    else:
        for i, x in zip(wanted, found):
            grads[i] = x
    return grads


def _halves(packed, count):
    """Integers of 4 bits, two in a byte of the last dimension, the low half first."""
    number = lambda n: packed.new_full((), n)
    low, high = p.bitwise_and(packed, number(15)), p.shift_right(packed, number(4))
    both = p.concat(low.unsqueeze(-1), high.unsqueeze(-1), axis=packed.ndim)
    return both.reshape(*packed.shape[:-1], -1)[..., :count]


def dequantized(v, size):
    """w of matmul_nbits.2 as [N, K] with trans_b, else [K, N]; size: K."""
    q, scales, zeros = v[1], v[2], v[3] if len(v) > 3 else None
    bits, block = v.attribute("bits"), v.attribute("block") or size
    trans_b, groups = v.attribute("trans_b"), -(-size // block)
    if bits == 4:
        q = _halves(q.reshape(q.shape[0], -1), size)
        zeros = None if zeros is None else _halves(zeros.reshape(q.shape[0], -1), groups)
    elif trans_b:
        q = q.reshape(q.shape[0], -1)[:, :size]

    def spread(x):
        """A number for each group and column along K."""
        if x.numel() == 1:
            return x.reshape(1, 1)
        x = x.reshape(-1, groups) if trans_b else x.reshape(groups, -1)
        x = x.unsqueeze(-1 if trans_b else 1)
        shape = (*x.shape[:2], block) if trans_b else (groups, block, x.shape[2])
        x = p.expand(x, shape=shape)
        return x.reshape(shape[0], -1)[:, :size] if trans_b else x.reshape(-1, shape[2])[:size]

    zero = (
        v.constant(float(v.attribute("zero")))
        if zeros is None
        else spread(p.cast(zeros, dtype="f32"))
    )
    return p.mul(p.sub(p.cast(q, dtype="f32"), zero), spread(scales))


@rule("matmul_nbits")
def matmul_nbits(v):
    v.refuse(2, "scales of quantised weights have no gradient")
    grads = [None] * len(v)
    if v.needs(0):
        w = dequantized(v, v.shape(0)[-1])
        grads[0] = p.matmul(v.grad, w, trans_a=0, trans_b=1 - v.attribute("trans_b"))
        grads[0] = grads[0].reshape(v.shape(0))
    return grads


no_gradient(
    "matmul_exact16",
    "grouped_matmul_exact16",
    "matmul_nbits_exact16",
    "matmul_integer",
    "fixed_matmul",
)
