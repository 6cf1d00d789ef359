"""Gradients of the rotary embedding: the rotation back."""

from invar import primitives as p
from invar.autograd.rules import reduced_to, rule


def _pairs(v, x):
    """The two halves of what is rotated, each [B, S, heads, rotary / 2]."""
    heads, angles = v.attribute("num_heads"), v.shape(1)[-1]
    if v.attribute("heads_first"):
        x = x.transpose(1, 2)
    else:
        x = x.unflatten(-1, (heads, x.shape[-1] // heads))
    x = x[..., : 2 * angles]
    if v.attribute("interleaved"):
        return x[..., 0::2], x[..., 1::2]
    return x[..., :angles], x[..., angles:]


@rule("rope")
def rope(v):
    x, cos, sin = v[0], v[1], v[2]
    grads = [None, None, None]
    if v.needs(0):
        grads[0] = p.rope(v.grad, cos, p.neg(sin), **v.call.attributes)
    if v.needs(1) or v.needs(2):
        (x1, x2), (g1, g2) = _pairs(v, x), _pairs(v, v.grad)
        of_cos = p.add(p.mul(g1, x1), p.mul(g2, x2))
        of_sin = p.sub(p.mul(g2, x1), p.mul(g1, x2))
        for i, product in ((1, of_cos), (2, of_sin)):
            if v.needs(i):
                product = p.reduce_sum(product, axes=[2], keepdims=0)
                grads[i] = reduced_to(product, v.shape(i))  # rope.7
    return grads
