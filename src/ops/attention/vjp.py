"""The gradient of attention: attention_backward (attention.20 to attention.24), or the composition
that has the same bits. The composition has memory for all scores and serves gradients of gradients,
of masks, sinks and slopes, and heads wider than 256: the weights P again, then dV = Pᵀ dY,
dP = dY Vᵀ, dS = P (dP − row sum of dY Y), dQ = dS K, dK = dSᵀ Q. Heads that share a key head stand
one after another as rows of one matrix, so sums over them are contractions (spec/contraction.md). A
NaN or infinity in a key that is hidden from some queries reaches their gradients."""

import torch
from invar import primitives as p
from invar.autograd.rules import no_gradient, reduced_to, rule

_MORE = ("mask", "sinks", "lengths", "slopes")  # optional operands, in their order
_WIDEST = 256  # elements of a head that attention_backward takes (attention.20)


class _Layout:
    """Operands as [B, key heads, queries of the group, D] and back."""

    def __init__(self, v):
        self.first = v.attribute("heads_first")
        self.heads, self.keys = v.attribute("q_heads"), v.attribute("kv_heads")
        self.group = self.heads // self.keys

    def taken(self, x, heads):
        """As [B, heads, S, D]."""
        if self.first:
            return x
        return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(1, 2)

    def grouped(self, x):
        """[B, Hq, S, D] -> [B, Hkv, G S, D]."""
        b, _, s, d = x.shape
        return x.reshape(b, self.keys, self.group * s, d)

    def apart(self, x):
        """[B, Hkv, G S, D] -> [B, Hq, S, D]."""
        b, _, rows, d = x.shape
        return x.reshape(b, self.heads, rows // self.group, d)

    def given(self, x, shape):
        return (x if self.first else x.transpose(1, 2)).reshape(shape)

    def width(self, x, heads):
        """Elements of a head."""
        return x.shape[-1] if self.first else x.shape[-1] // heads


def _number(like, n):
    return torch.full((), n, dtype=torch.int64, device=like.device)


def _distances(q, k, lengths):
    """j − p (attention.3, attention.15): [S, T], or [B, 1, S, T] with lengths; and the keys that
    lengths leave, or None."""
    i, j = (torch.arange(n, dtype=torch.int64, device=q.device) for n in (q.shape[2], k.shape[2]))
    rows, seen = i.unsqueeze(1), None
    if lengths is not None:
        n = p.max(p.min(lengths, _number(q, k.shape[2])), _number(q, 0)).reshape(-1, 1, 1, 1)
        rows, seen = p.add(rows, p.sub(n, _number(q, q.shape[2]))), p.less(j, n)
    return j, p.sub(j, rows), seen


def _visible(v, keys, distances, seen, mask):
    """Which keys a query sees, or None for all (attention.3, attention.13 to attention.15)."""
    number = lambda name, default: v.attribute(name, default)
    right = number("right", -1)
    if number("causal", 1):
        right = min(right, 0) if right >= 0 else 0
    if right >= 0:
        seen = _both(seen, p.less_equal(distances, _number(keys, right)))
    if (left := number("left", -1)) >= 0:
        near = p.greater_equal(distances, _number(keys, -left))
        seen = _both(seen, p.logical_or(near, p.less(keys, _number(keys, number("first", 0)))))
    if mask is not None:
        if mask.dtype != torch.bool:
            low = torch.full((), float("-inf"), dtype=mask.dtype, device=mask.device)
            mask = p.logical_not(p.equal(mask, low))
        seen = _both(seen, _columns(mask, keys.shape[0]))
    return seen


def _both(a, b):
    return b if a is None else p.logical_and(a, b)


def _columns(mask, count):
    """The mask with a column for each key: those beyond it are hidden."""
    shape = (*mask.shape[:-1], count)
    return mask if mask.shape[-1] == count else p.pad(mask, begins=[0] * mask.ndim, shape=shape)


class _Weights:
    """The scores of all visible keys and their weights; rows that see nothing have weights 0."""

    def __init__(self, v, layout, q, k, more):
        mask, sinks, lengths, slopes = more
        self.cap = v.attribute("softcap")
        self.scale = v.constant(v.attribute("scale"))
        scores = p.matmul(layout.grouped(q), k, trans_a=0, trans_b=1)
        scores = p.mul(layout.apart(scores), self.scale)
        self.bent = None
        if self.cap:
            self.bent = p.tanh(p.div(scores, v.constant(self.cap)))
            scores = p.mul(self.bent, v.constant(self.cap))
        keys, self.distances, seen = _distances(q, k, lengths)
        if slopes is not None:
            far = p.cast(self.distances, dtype="f32")
            scores = p.add(scores, p.mul(slopes.reshape(-1, 1, 1), far))
        self.seen = _visible(v, keys, self.distances, seen, mask)
        if mask is not None and mask.dtype != torch.bool:
            scores = p.add(scores, _columns(mask, k.shape[2]))
        lowest = v.constant(float("-inf"))
        if self.seen is not None:
            scores = p.where(self.seen, scores, lowest)
        top = p.reduce_max(scores.detach(), axes=[3], keepdims=1)
        if sinks is not None:
            top = p.max(top, sinks.detach().reshape(-1, 1, 1))
        zero = v.constant(0.0)
        top = p.where(p.equal(top, lowest), zero, top)
        weights = p.exp(p.sub(scores, top))
        total = p.reduce_sum(weights, axes=[3], keepdims=1)
        self.sink = None
        if sinks is not None:
            self.sink = p.exp(p.sub(sinks.reshape(-1, 1, 1), top))
            total = p.add(total, self.sink)
        total = p.where(p.equal(total, zero), v.constant(1.0), total)
        self.of_keys = p.div(weights, total)
        if sinks is not None:
            self.sink = p.div(self.sink, total)


@rule("attention", saves="operands result")
def attention(v):
    for i in range(len(v)):
        if v.attribute("state"):
            v.refuse(i, "attention with memory has no gradient")
    layout, names = _Layout(v), [n for n in _MORE if v.attribute(n, 0)]
    if not torch.is_grad_enabled() and not any(v.needs(i) for i in range(3, len(v))):
        if all(layout.width(v[i], layout.keys) <= _WIDEST for i in (1, 2)):
            return _at_once(v)
    here = {name: 3 + names.index(name) if name in names else None for name in _MORE}
    more = [None if here[name] is None else v[here[name]] for name in _MORE]
    q = layout.taken(v[0], layout.heads)
    k, values = (layout.taken(x, layout.keys) for x in (v[1], v[2]))
    grad, y = (layout.taken(x, layout.heads) for x in (v.grad, v.result))
    grads = [None] * len(v)
    weights = _Weights(v, layout, q, k, more)
    rows = layout.grouped(grad)
    if v.needs(2):
        found = p.matmul(layout.grouped(weights.of_keys), rows, trans_a=1, trans_b=0)
        grads[2] = layout.given(found, v.shape(2))
    rest = [0, 1, *(here[name] for name in ("mask", "sinks", "slopes") if here[name])]
    if not any(v.needs(i) for i in rest):
        return grads
    mean = p.reduce_sum(p.mul(grad, y), axes=[3], keepdims=1)
    if here["sinks"] and v.needs(here["sinks"]):
        product = p.neg(p.mul(weights.sink, mean))
        grads[here["sinks"]] = p.reduce_sum(product, axes=[0, 2, 3], keepdims=0)
    scores = layout.apart(p.matmul(rows, values, trans_a=0, trans_b=1))
    scores = p.mul(weights.of_keys, p.sub(scores, mean))
    if weights.seen is not None:
        scores = p.where(weights.seen, scores, v.constant(0.0))
    _of_bias(v, here, weights, scores, grads)
    if weights.bent is not None:
        one, bent = v.constant(1.0), weights.bent
        scores = p.mul(scores, p.mul(p.sub(one, bent), p.add(one, bent)))
    scores = p.mul(scores, weights.scale)
    if weights.seen is not None:
        scores = p.where(weights.seen, scores, v.constant(0.0))
    scores = layout.grouped(scores)
    if v.needs(0):
        found = layout.apart(p.matmul(scores, k, trans_a=0, trans_b=0))
        grads[0] = layout.given(found, v.shape(0))
    if v.needs(1):
        found = p.matmul(scores, layout.grouped(q), trans_a=1, trans_b=0)
        grads[1] = layout.given(found, v.shape(1))
    return grads


def _at_once(v):
    """By the operation, whose result has the gradients of q, k and v end to end."""
    found = p.attention_backward(v.grad, v.result, *v.operands, **v.call.attributes)
    parts = found.split([v[i].numel() for i in range(3)])
    return [
        *(part.view(v.shape(i)) if v.needs(i) else None for i, part in enumerate(parts)),
        *[None] * (len(v) - 3),
    ]


def _of_bias(v, here, weights, scores, grads):
    """Of what is added to scores: a mask of numbers and slopes."""
    mask, slopes = here["mask"], here["slopes"]
    if mask and v.needs(mask):
        shape = v.shape(mask)
        found = reduced_to(scores, (*shape[:-1], scores.shape[3]))
        if shape[-1] != scores.shape[3]:
            found = p.pad(found, begins=[0] * len(shape), shape=shape)
        grads[mask] = found
    if slopes and v.needs(slopes):
        product = p.mul(scores, p.cast(weights.distances, dtype="f32"))
        grads[slopes] = p.reduce_sum(product, axes=[0, 2, 3], keepdims=0)


no_gradient("attention_exact16")
