"""Shapes of results from sizes that a compiler leaves open (torch.SymInt), so that one graph serves
all of them. Element types, and what a size may be, come from the operation's own inference for the
sizes at hand; an operation that has no rule here is compiled for these sizes alone."""

import math

import torch

from invar import _native


def _first(attributes, x, *more):
    return x


def _broadcast(attributes, *operands):
    return torch.broadcast_shapes(*operands)


def _matmul(attributes, a, b):
    m = a[-1] if attributes.get("trans_a", 0) else a[-2]
    n = b[-2] if attributes.get("trans_b", 0) else b[-1]
    return (*torch.broadcast_shapes(a[:-2], b[:-2]), m, n)


def _reduce(attributes, x):
    axes = attributes.get("axes")
    axes = range(len(x)) if axes is None else axes
    if attributes.get("keepdims", 0):
        return tuple(1 if i in axes else n for i, n in enumerate(x))
    return tuple(n for i, n in enumerate(x) if i not in axes)


def _without_axis(attributes, x):
    axis = attributes.get("axis", len(x) - 1)
    return (*x[:axis], *x[axis + 1 :])


def _transpose(attributes, x):
    perm = attributes.get("perm")
    return tuple(x[d] for d in perm) if perm else x[::-1]


def _from_axis(attributes, grad, x, *more):
    return tuple(x[attributes["axis"] :])


def _concat(attributes, *operands):
    axis, x = attributes["axis"], operands[0]
    return (*x[:axis], sum(o[axis] for o in operands), *x[axis + 1 :])


def _gather(attributes, x, indices):
    axis = attributes.get("axis", 0)
    return (*x[:axis], *indices, *x[axis + 1 :])


def _attention(attributes, q, k, v, *more):
    if attributes.get("heads_first", 0):
        return (*q[:-1], v[-1])
    width = v[-1] // attributes["kv_heads"]
    return (*q[:-1], width * attributes["q_heads"])


def _attention_backward(attributes, grad, y, q, k, v, *more):
    return (math.prod(q) + math.prod(k) + math.prod(v),)


_RULES = {
    "matmul": _matmul,
    "transpose": _transpose,
    "concat": _concat,
    "gather": _gather,
    "attention": _attention,
    "attention_backward": _attention_backward,
    "cross_entropy": lambda attributes, x, target: target,
    "cross_entropy_backward": lambda attributes, grad, x, target: x,
    "gather_elements": lambda attributes, x, indices: indices,
    **dict.fromkeys(("argmax", "argmin"), _without_axis),
    **dict.fromkeys(_native.operations("elementwise"), _broadcast),
    **{op: _reduce for op in _native.operations("reduce") if op.startswith("reduce_")},
    **dict.fromkeys(
        ("softmax", "log_softmax", "rmsnorm", "layernorm", "groupnorm", "batchnorm", "rope"), _first
    ),
    **dict.fromkeys(
        ("softmax_backward", "log_softmax_backward", "rmsnorm_backward", "layernorm_backward"),
        _first,
    ),
    **dict.fromkeys(
        ("rmsnorm_backward_weight", "layernorm_backward_weight"),
        lambda attributes, grad, x: x[attributes["axis"] :],
    ),
    **dict.fromkeys(("cast", "cumsum", "cumprod", "hardmax", "trilu", "quantize_linear"), _first),
    **dict.fromkeys(
        ("softmax_backward", "log_softmax_backward", "rmsnorm_backward", "layernorm_backward"),
        _first,
    ),
    **dict.fromkeys(("rmsnorm_backward_weight", "layernorm_backward_weight"), _from_axis),
    "random_dropout": _first,
    **dict.fromkeys(("scatter_elements", "scatter_nd", "dequantize_linear"), _first),
}


def type_of(call, operands, shape):
    """(element type, shape) of the result for operands of these types, where `shape` is what the
    caller says or None. Sizes may be symbols."""
    at_hand = tuple((dtype, tuple(hint(n) for n in sizes)) for dtype, sizes in operands)
    dtype, found = call.type_of(at_hand)
    if shape is not None:
        return dtype, tuple(shape)
    if not any(isinstance(n, torch.SymInt) for _, sizes in operands for n in sizes):
        return dtype, found
    rule = _RULES.get(call.op)
    if rule is None:
        return dtype, call.type_of(
            tuple((dtype, tuple(int(n) for n in sizes)) for dtype, sizes in operands)
        )[1]
    return dtype, tuple(rule(call.attributes, *(sizes for _, sizes in operands)))


def hint(n):
    """The size at hand, which does not bind the graph to it."""
    if isinstance(n, torch.SymInt) and n.node.has_hint():
        return n.node.hint
    return int(n)
