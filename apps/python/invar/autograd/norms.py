"""What the gradients of layer and RMS normalization share. r: the reciprocal root; h: the normalized
row; u: the gradient times the weight."""

from invar import primitives as p


def mean(x, axes):
    return p.reduce_mean(x, axes=axes, keepdims=1)


def over_rows(x, rows):
    """The sum over the first `rows` dimensions."""
    return p.reduce_sum(x, axes=list(range(rows)), keepdims=0) if rows else x


def second_order(v, u, h, q, axes):
    """3 h B C - h A - u C - q B with A = mean(q u), B = mean(u h), C = mean(q h): the derivative of
    sum(q r (u - h B)) by what h = r (...) was made of, over r^2."""
    a, b, c = mean(p.mul(q, u), axes), mean(p.mul(u, h), axes), mean(p.mul(q, h), axes)
    inner = p.sub(p.mul(p.mul(b, c), v.constant(3.0)), a)
    return p.sub(p.sub(p.mul(h, inner), p.mul(u, c)), p.mul(q, b))
