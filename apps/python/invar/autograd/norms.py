"""What the gradients of layer and RMS normalization share. r: the reciprocal root; h: the
normalized row; u: the gradient times the weight."""

from invar import primitives as p


def mean(x, axes):
    return p.reduce_mean(x, axes=axes, keepdims=1)


def over_rows(x, rows):
    """The sum over the first `rows` dimensions."""
    return p.reduce_sum(x, axes=list(range(rows)), keepdims=0) if rows else x


def gradients(v, op, rows, epsilon):
    """Those of x, of the weight and, if there is one, of the bias, in one group."""
    x, w, g = v[0], v[1], v.grad
    calls = (
        (f"{op}_backward", (g, x, w), {"epsilon": epsilon}),
        (f"{op}_backward_weight", (g, x), {"axis": rows, "epsilon": epsilon}),
        ("reduce_sum", (g,), {"axes": list(range(rows)), "keepdims": 0}),
    )
    if v.needs(0) and v.needs(1) and rows and v.needs(2) == (len(v) == 3):
        return p.group(*calls[: len(v)])  # the common case
    grads = [p.call(c[0], *c[1], **c[2]) if v.needs(i) else None for i, c in enumerate(calls[:2])]
    return [*grads, over_rows(g, rows) if v.needs(2) else None][: len(v)]


def second_order(v, u, h, q, axes):
    """3 h B C - h A - u C - q B with A = mean(q u), B = mean(u h), C = mean(q h): the derivative of
    sum(q r (u - h B)) by what h = r (...) was made of, over r^2."""
    a, b, c = mean(p.mul(q, u), axes), mean(p.mul(u, h), axes), mean(p.mul(q, h), axes)
    inner = p.sub(p.mul(p.mul(b, c), v.constant(3.0)), a)
    return p.sub(p.sub(p.mul(h, inner), p.mul(u, c)), p.mul(q, b))
