"""Attention (spec/attention.md) and rotary embedding (rope.1 to rope.6)."""

import math
from collections.abc import Sequence
from typing import Any, cast

from invar.errors import NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.binary64 import operations as p

_NAME = "scaled_dot_product_attention"


@public
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    window: tuple[int, int] | None = None,
    softcap: float = 0.0,
    sinks: Array | None = None,
) -> Array:
    """softmax(query · keyᵀ · scale + mask) · value over the keys that a query sees.

    query [..., H, L, E], key [..., H, S, E], value [..., H, S, Ev] -> [..., H, L, Ev]; leading
    dimensions broadcast, and H may be missing. With enable_gqa key and value have a divisor of H
    heads. attn_mask: of bool, False hides a key; of numbers it is added to the scores, -inf hides;
    broadcast to [..., H, L, S]. is_causal: query i sees keys 0 ... i. scale: by default 1 /
    sqrt(E). Beyond torch: window = (left, right), how many keys before and after its own position a
    query sees (-1: all); softcap c: scores become c · tanh(score / c); sinks [H]: a score for each
    head that takes weight and has no value. A query that sees nothing gives 0.

    All of f32, bf16 or f16, computed in f32 and rounded once; or of f64, without window, softcap
    and sinks. Dropout is refused. Raises RuntimeError for shapes and types that do not fit. Spec:
    attention.1 to attention.18; f64: functions.43."""
    if t.are_f32(query, key, value) and attn_mask is sinks is None and _together(query, key, value):
        e = "f32"  # the common case at once
    else:
        e = _element_type(query, key, value)
        t.same_kind(_NAME, query=query, key=key, value=value, attn_mask=attn_mask, sinks=sinks)
    if dropout_p:
        raise NotCovered(f"{_NAME}: argument 'dropout_p': expected 0, got {dropout_p}")
    if is_causal and attn_mask is not None:
        raise OperandError(
            f"{_NAME}: arguments 'attn_mask' and 'is_causal': expected one, got both"
        )
    q, k, v, lead = _heads(query, key, value, enable_gqa)
    if e == "f64":
        if window is not None or softcap or sinks is not None:
            raise NotCovered(f"{_NAME}: window, softcap and sinks of float64")
        scaled = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
        y = _in_f64(q, k, v, attn_mask, lead, is_causal, scaled)
        return cast(Array, y.reshape((*lead, *y.shape[2:])))
    attributes: dict[str, Any] = {
        "q_heads": q.shape[1],
        "kv_heads": k.shape[1],
        "scale": 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale),
        "causal": int(is_causal),
        "heads_first": 1,
    }
    more: list[Any] = []
    if attn_mask is not None:
        attributes["mask"] = 1
        more.append(_mask(attn_mask, lead, q, k))
    if sinks is not None:
        if tuple(sinks.shape) != (q.shape[1],):
            raise OperandError(
                f"{_NAME}: argument 'sinks': expected shape ({q.shape[1]},), got {tuple(sinks.shape)}"
            )
        attributes["sinks"] = 1
        more.append(t.f32(_NAME, sinks, "sinks"))
    if window is not None:
        attributes["left"], attributes["right"] = arr.tuple_of(_NAME, "window", window, 2)
    if softcap:
        attributes["softcap"] = float(softcap)
    if e != "f32":
        q, k, v = (t.cast(x, "f32") for x in (q, k, v))
    y = p.attention(q, k, v, *more, **attributes)
    if e != "f32":
        y = t.cast(y, e)
    return cast(Array, y if len(lead) == 2 else y.reshape((*lead, *y.shape[2:])))


def _in_f64(
    q: Any, k: Any, v: Any, mask: Any, lead: Sequence[int], causal: bool, scale: float
) -> Any:
    """Products, softmax and products of [B, H, S, D]; 0 where a query sees nothing."""
    at = lambda value: t.number(value, "f64", q)
    groups = (q.shape[0], k.shape[1], q.shape[1] // max(k.shape[1], 1))
    q = q.reshape((*groups, *q.shape[2:]))
    k, v = (arr.insert(x, 2) for x in (k, v))
    scores = p.mul(p.matmul(q, k, trans_a=0, trans_b=1), at(scale))
    if causal:
        ones = arr.full(scores.shape[-2:], True, "bool", q)
        scores = p.where(p.trilu(ones, upper=0, k=0), scores, at(-math.inf))
    elif mask is not None:
        arr.fits_broadcast(_NAME, "attn_mask", mask, (*lead, *scores.shape[-2:]))
        mask = arr.expand(mask, (*lead, *scores.shape[-2:])).reshape(scores.shape)
        if t.type_of(mask, "attn_mask") == "bool":
            scores = p.where(mask, scores, at(-math.inf))
        else:
            scores = p.add(scores, t.cast(mask, "f64"))
    if not arr.numel(scores):
        return arr.full((groups[0], groups[1] * groups[2], q.shape[3], v.shape[4]), 0, "f64", q)
    top = p.reduce_max(arr.detached(scores), axes=[4], keepdims=1)
    nothing = p.equal(top, at(-math.inf))
    weights = p.softmax(p.where(nothing, at(0.0), scores), axis=4)
    y = p.matmul(p.where(nothing, at(0.0), weights), v, trans_a=0, trans_b=0)
    return y.reshape((groups[0], groups[1] * groups[2], *y.shape[3:]))


def _together(x: Any, *others: Any) -> bool:
    """Whether arrays are on one device."""
    return all(x.device == y.device for y in others)


def _element_type(query: Any, key: Any, value: Any) -> str:
    e = t.real(_NAME, query, "query")
    for argument, x in (("key", key), ("value", value)):
        if t.type_of(x, argument) != e:
            raise OperandError(
                f"{_NAME}: argument '{argument}': expected elements of {t.spelled(e)} as 'query' has, "
                f"got {t.spelled(t.type_of(x, argument))}"
            )
    return e


def _heads(q: Any, k: Any, v: Any, gqa: bool) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """All as [B, H, S, D], and what the result has in the place of B and H."""
    if q.ndim == k.ndim == v.ndim == 4:  # the common case at once
        (batch, heads, _, size), (b, shared, keys, of_key), (*lead_v, values, _) = (
            q.shape,
            k.shape,
            v.shape,
        )
        fits = shared == heads or (gqa and shared and heads % shared == 0)
        if fits and b == batch and lead_v == [b, shared] and size == of_key and size:
            if keys == values:
                return q, k, v, (batch, heads)
    for argument, x in (("query", q), ("key", k), ("value", v)):
        if x.ndim < 2:
            raise OperandError(
                f"{_NAME}: argument '{argument}': expected at least 2 dimensions, got {tuple(x.shape)}"
            )
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2] or q.shape[-1] == 0:
        raise OperandError(
            f"{_NAME}: expected query [..., L, E], key [..., S, E], value [..., S, Ev], got "
            f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
        )
    if gqa and q.ndim > 2:
        heads, shared = q.shape[-3], k.shape[-3] if k.ndim > 2 else 1
        if (v.shape[-3] if v.ndim > 2 else 1) != shared or shared == 0 or heads % shared:
            raise OperandError(
                f"{_NAME}: expected key and value of a number of heads that divides query's, got "
                f"{tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
            )
        batch = arr.broadcast_shapes(_NAME, q.shape[:-3], k.shape[:-3], v.shape[:-3])
        lead, kv = (*batch, heads), (*batch, shared)
    else:
        lead = kv = arr.broadcast_shapes(_NAME, q.shape[:-2], k.shape[:-2], v.shape[:-2])
    return _four(q, lead), _four(k, kv), _four(v, kv), lead


def _four(x: Any, lead: Sequence[int]) -> Any:
    x = arr.expand(x, (*lead, *x.shape[-2:]))
    if x.ndim == 4:
        return x
    heads = lead[-1] if lead else 1
    return x.reshape((math.prod(lead[:-1]), heads, *x.shape[-2:]))


def _mask(mask: Any, lead: Sequence[int], q: Any, k: Any) -> Any:
    """Of rank 2 to 4, bool or f32."""
    e = t.type_of(mask, "attn_mask")
    wanted = (*lead, q.shape[-2], k.shape[-2])
    arr.fits_broadcast(_NAME, "attn_mask", mask, wanted)
    if e != "bool":
        mask = t.f32(_NAME, mask, "attn_mask")
    if mask.ndim < 2:
        mask = mask.reshape((1,) * (2 - mask.ndim) + tuple(mask.shape))
    if mask.shape[-1] != k.shape[-2]:
        mask = arr.expand(mask, (*mask.shape[:-1], k.shape[-2]))
    if mask.ndim > 4 or len(lead) > 2 and mask.ndim > 3:
        return _four(mask, lead)
    return mask


@public
def rope(
    input: Array,
    cos: Array,
    sin: Array,
    *,
    interleaved: bool = False,
    rotary_dim: int = 0,
) -> Array:
    """Rotary embedding: each pair of elements of a head turned by the angle of its position.

    input [..., H, S, D]; cos and sin [..., S, R / 2] without H (leading dimensions broadcast),
    where R = rotary_dim (0: D); the elements from R on stay. A pair is (j, j + R / 2), or with
    interleaved (2j, 2j + 1). All of f32, bf16 or f16, computed in f32; the result has input's type.
    Raises RuntimeError for shapes and types that do not fit. Spec: rope.1 to rope.7."""
    if t.are_f32(input, cos, sin) and len(input.shape) == 4 and _together(input, cos, sin):
        _, heads, length, size = input.shape
        if cos.shape == sin.shape == (length, (rotary_dim or size) // 2):  # the common case at once
            return cast(
                Array, _rotated(input, [cos[None], sin[None]], heads, interleaved, rotary_dim)
            )
    e = t.narrow_real("rope", input)
    t.same_kind("rope", input=input, cos=cos, sin=sin)
    x = t.cast(input, "f32")
    angles = [t.f32("rope", y, argument) for argument, y in (("cos", cos), ("sin", sin))]
    half = (rotary_dim or x.shape[-1]) // 2
    if x.ndim < 3:
        raise OperandError(
            f"rope: argument 'input': expected at least 3 dimensions [..., H, S, D], got {tuple(x.shape)}"
        )
    batch = tuple(x.shape[:-3])
    wanted = (*batch, x.shape[-2], half)
    if all(tuple(y.shape) == wanted[-2:] for y in angles):  # rope.7
        angles = [y[None] for y in angles]
    else:
        for argument, y in zip(("cos", "sin"), angles):
            arr.fits_broadcast("rope", argument, y, wanted)
        rows = (math.prod(batch), x.shape[-2], half)
        angles = [arr.expand(y, wanted).reshape(rows) for y in angles]
    four = x.reshape((math.prod(batch), *x.shape[-3:]))
    made = _rotated(four, angles, x.shape[-3], interleaved, rotary_dim)
    return cast(Array, t.cast(made, e).reshape(x.shape))


def _rotated(x: Any, angles: Any, heads: int, interleaved: bool, rotary_dim: int) -> Any:
    """x [B, H, S, D]."""
    return p.rope(
        x,
        *angles,
        num_heads=heads,
        rotary_dim=rotary_dim,
        interleaved=int(interleaved),
        heads_first=1,
    )
