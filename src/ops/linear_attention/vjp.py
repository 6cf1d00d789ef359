"""Gradients of linear attention (linear_attention.10 to linear_attention.14): the chunks of 64
positions again, from the last to the first. The names are those of the clauses. Every step is a
primitive or a view, so gradients of gradients come of their own."""

import numpy as np
from invar import primitives as p
from invar.autograd.rules import broadcast_to, rule, table

CHUNK = 64


def _product(a, b, trans_a=0, trans_b=0):
    return p.matmul(a, b, trans_a=trans_a, trans_b=trans_b)


def _sum(x, axis, kept=0):
    return p.reduce_sum(x, axes=[axis % x.ndim], keepdims=kept)


def _plus(a, b):
    return b if a is None else p.add(a, b)


def _below(x, diagonal):
    """[64, 64] of the device: whether column i is at most row t + diagonal."""
    return table(
        ("linear_attention", diagonal), x.device, lambda: np.tri(CHUNK, k=diagonal, dtype=bool)
    )


class _Layout:
    """Operands [B, S, heads * n] as chunks of rows of the heads of values, and gradients back."""

    def __init__(self, v):
        self.batch, self.rows = v.shape(0)[:2]
        self.keys, self.heads = v.attribute("key_heads"), v.attribute("value_heads")
        self.chunks = -(-self.rows // CHUNK)

    def split(self, x, heads):
        """[B, Hv, chunks, 64, n]; rows behind the last are 0."""
        x = x.reshape(self.batch, self.rows, heads, -1).transpose(1, 2)
        n, group = x.shape[3], self.heads // heads
        if group > 1:
            shape = (self.batch, heads, group, self.rows, n)
            x = broadcast_to(x.unsqueeze(2), shape).reshape(self.batch, self.heads, self.rows, n)
        shape = (self.batch, self.heads, self.chunks * CHUNK, n)
        if shape[2] != self.rows:
            x = p.pad(x, begins=[0] * 4, shape=shape)
        return x.reshape(*shape[:2], self.chunks, CHUNK, n)

    def joined(self, chunks, heads):
        """The gradient of an operand: chunks in their order, summed over heads that share it."""
        x = chunks[0] if len(chunks) == 1 else p.concat(*chunks, axis=2)
        x = x[:, :, : self.rows]
        if heads != self.heads:
            x = _sum(x.reshape(self.batch, heads, -1, *x.shape[2:]), 2)
        return x.transpose(1, 2).reshape(self.batch, self.rows, -1)


class _Decays:
    """linear_attention.10: A [.., 64, C] and d [.., 64, 64, C] of a chunk; C is 1 or D."""

    def __init__(self, v, g):
        sums = p.cumsum(p.cast(g, dtype="f64"), axis=2, exclusive=0, reverse=0)
        self.a = p.exp(p.cast(sums, dtype="f32"))
        between = p.cast(p.sub(sums.unsqueeze(3), sums.unsqueeze(2)), dtype="f32")
        seen = _below(g, 0).unsqueeze(2)
        self.d = p.exp(p.where(seen, between, v.constant(float("-inf"))))
        self.heads, self.grad = g.shape[3] == 1, None

    def summed(self, x):
        """What each channel gives to the decay of a head."""
        return _sum(x, -1, kept=1) if self.heads else x

    def add(self, x):
        self.grad = _plus(self.grad, x)

    def of_a(self, grad):
        self.add(p.mul(self.summed(grad), self.a))

    def of_d(self, grad):
        """[.., t, i, C]: d(t, i) grows with G_t and falls with G_i."""
        grad = p.mul(grad, self.d)
        self.add(p.sub(_sum(grad, 3), _sum(grad, 2)))

    def of_end(self, a, d):
        """a [.., C] of A in the last row, d [.., i, C] of d(63, i)."""
        a = p.mul(a, self.a[:, :, -1])
        d = p.mul(d, self.d[:, :, -1])
        begins, shape = [0, 0, CHUNK - 1, 0], tuple(self.a.shape)
        self.add(p.pad(p.add(a, _sum(d, 2)).unsqueeze(2), begins=begins, shape=shape))
        self.add(p.neg(d))


class _Weights:
    """linear_attention.11: w_x(t, i) of a chunk, for x = k or q."""

    def __init__(self, decays, x, k):
        self.decays, self.x, self.k = decays, x, k
        if decays.heads:
            self.factor = _product(x, k, trans_b=1)
            self.w = p.mul(self.factor, decays.d.squeeze(4))
        else:
            self.factor = p.mul(k.unsqueeze(2), decays.d)
            self.w = _product(self.factor, x.unsqueeze(4)).squeeze(4)

    def gradients(self, grad):
        """Those of x and k; the decays take theirs."""
        if self.decays.heads:
            self.decays.of_d(p.mul(grad, self.factor).unsqueeze(4))
            grad = p.mul(grad, self.decays.d.squeeze(4))
            return _product(grad, self.k), _product(grad, self.x, trans_a=1)
        of_factor = p.mul(grad.unsqueeze(4), self.x.unsqueeze(3))
        self.decays.of_d(p.mul(of_factor, self.k.unsqueeze(2)))
        of_x = _product(grad.unsqueeze(3), self.factor).squeeze(3)
        return of_x, _sum(p.mul(of_factor, self.decays.d), 2)


def _inverse(v, n):
    """linear_attention.12: of I + n by blocks of 1, 2, 4, ... 32 rows, n strictly lower."""
    blocks = broadcast_to(v.constant(1.0), (*n.shape[:2], CHUNK, 1, 1))
    size = 1
    while size < CHUNK:
        pairs = n.reshape(*n.shape[:2], CHUNK // (2 * size), 2 * size, CHUNK // (2 * size), -1)
        corner = pairs.diagonal(dim1=2, dim2=4).movedim(4, 2)[..., size:, :size]
        upper, lower = blocks[:, :, 0::2], blocks[:, :, 1::2]
        left = p.neg(_product(_product(lower, corner), upper))
        wide = (*upper.shape[:4], 2 * size)
        above = p.pad(upper, begins=[0] * 5, shape=wide)
        blocks = p.concat(above, p.concat(left, lower, axis=4), axis=3)
        size *= 2
    return blocks.squeeze(2)


class _Chunk:
    """One chunk of all heads: its updates u from the state before it, and its gradients."""

    def __init__(self, v, state, q, k, values, g, beta):
        self.v, self.state, self.q, self.k, self.beta = v, state, q, k, beta
        self.decays = _Decays(v, g)
        self.of_q, self.u = _Weights(self.decays, q, k), values
        self.past_q = p.mul(self.decays.a, q)
        if beta is not None:
            self.of_k = _Weights(self.decays, k, k)
            self.past_k = p.mul(self.decays.a, k)
            self.strict = p.where(_below(k, -1), self.of_k.w, v.constant(0.0))
            self.inverse = _inverse(v, p.mul(beta, self.strict))
            self.rest = p.sub(values, _product(self.past_k, state))
            self.u = _product(self.inverse, p.mul(beta, self.rest))
        self.kept = p.mul(k, self.decays.d[:, :, -1])

    def next_state(self):
        old = p.mul(self.decays.a[:, :, -1].unsqueeze(3), self.state)
        return p.add(old, _product(self.kept, self.u, trans_a=1))

    def gradients(self, grad, of_next):
        """Of q, k, v, g, beta and of the state before, by those of the rows of y, times scale, and
        of the state behind (None: nothing reads it)."""
        decays = self.decays
        of_u = _product(self.of_q.w, grad, trans_a=1)
        of_w = _product(grad, self.u, trans_b=1)
        dq, dk = self.of_q.gradients(of_w)
        of_state = _product(self.past_q, grad, trans_a=1)
        dq = p.add(dq, self._past(self.q, _product(grad, self.state, trans_b=1)))
        if of_next is not None:
            of_u = p.add(of_u, _product(self.kept, of_next))
            dk = p.add(dk, self._end(_product(self.u, of_next, trans_b=1), of_next))
            old = p.mul(decays.a[:, :, -1].unsqueeze(3), of_next)
            of_state = p.add(of_state, old)
        of_v, of_beta = of_u, None
        if self.beta is not None:
            of_v, of_beta, of_keys = self._correction(of_u)
            of_state = p.sub(of_state, _product(self.past_k, of_v, trans_a=1))
            dk = p.add(dk, of_keys)
        dg = p.cumsum(decays.grad, axis=2, exclusive=0, reverse=1)
        return dq, dk, of_v, dg, of_beta, of_state

    def _past(self, x, grad):
        """Of x, by that of A · x."""
        self.decays.of_a(p.mul(grad, x))
        return p.mul(grad, self.decays.a)

    def _end(self, grad, of_next):
        """Of k, by that of k · d(63, i)."""
        decays = self.decays
        of_a = _sum(p.mul(of_next, self.state), 3)
        decays.of_end(decays.summed(of_a), decays.summed(p.mul(grad, self.k)))
        return p.mul(grad, decays.d[:, :, -1])

    def _correction(self, of_u):
        """linear_attention.13: of v, beta and k."""
        of_rest = _product(self.inverse, of_u, trans_a=1)
        of_matrix = p.neg(_product(of_rest, self.u, trans_b=1))
        of_beta = p.add(
            _sum(p.mul(of_rest, self.rest), 3, kept=1),
            _sum(p.mul(of_matrix, self.strict), 3, kept=1),
        )
        of_matrix = p.mul(of_matrix, self.beta)
        of_matrix = p.where(_below(of_matrix, -1), of_matrix, self.v.constant(0.0))
        of_v = p.mul(of_rest, self.beta)
        of_x, of_k = self.of_k.gradients(of_matrix)
        of_past = p.neg(_product(of_v, self.state, trans_b=1))
        return of_v, of_beta, p.add(p.add(of_x, of_k), self._past(self.k, of_past))


@rule("gated_delta_rule", "gated_linear_attention")
def linear_attention(v):
    for i in range(len(v)):
        if v.attribute("state"):
            v.refuse(i, "linear attention with memory has no gradient")
        if v.accumulator(i) is not None:
            v.refuse(i, "its contributions are not kept apart by units")
    if v.grad.numel() == 0:
        return [v.zeros(i) for i in range(len(v))]
    layout = _Layout(v)
    heads = [layout.keys, layout.keys, *[layout.heads] * (len(v) - 2)]
    operands = [layout.split(v[i], heads[i]) for i in range(len(v))]
    grad = layout.split(p.mul(v.grad, v.constant(v.attribute("scale"))), layout.heads)
    operands += [None] * (5 - len(v))
    d, d_v = operands[1].shape[4], operands[2].shape[4]
    shape = (layout.batch, layout.heads, d, d_v)
    states = [broadcast_to(v.constant(0.0), shape)]

    def chunk(n):
        return _Chunk(v, states[n], *(x if x is None else x[:, :, n] for x in operands))

    for n in range(layout.chunks - 1):
        states.append(chunk(n).next_state())
    found, of_next = [], None
    for n in reversed(range(layout.chunks)):
        *parts, of_next = chunk(n).gradients(grad[:, :, n], of_next)
        found.insert(0, parts)
    return [
        layout.joined([parts[i] for parts in found], heads[i]) if v.needs(i) else None
        for i in range(len(v))
    ]
