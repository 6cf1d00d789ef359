"""Contributions of units by rules that know of none (exact.py). What training.2 defines is the rule
for each unit alone; here are forms for all units at once, of the same bits."""

import math

import torch

from invar import _native
from invar import primitives as p
from invar.autograd.rules import Vjp

# Operands, beside a parameter, whose axis 0 counts rows of units.
OPERANDS = {
    "gather": (1,),
    "rmsnorm": (0,),
    "layernorm": (0,),
    "groupnorm": (0,),
    "batchnorm": (0,),
}


def gradients(about, operands, result, grad):
    """The gradients of a call: those of parameters with an accumulator go there, unit by unit."""
    call, rule, types, accumulators = about.call, about.rule, about.types, about.accumulators
    needs = about.needs
    refuse(call, grad, types, accumulators)
    own = [need and a is not None for need, a in zip(needs, accumulators)]
    rest = [need and a is None for need, a in zip(needs, accumulators)]
    grads = [None] * len(types)
    if any(rest):
        grads = rule.function(Vjp(about, operands, result, grad, types, rest))
    rows = grad.shape[0]
    accumulator = next(a for a in accumulators if a is not None)
    size = rows_of_unit(accumulator, rows, call.op)
    at_once = AT_ONCE.get(call.op)
    if rows and at_once is not None and at_once(call, operands, grad, own, accumulators, size):
        return [None if mine else g for mine, g in zip(own, grads)]
    batched = OPERANDS[call.op]
    for begin in range(0, rows, size):
        one = lambda x: None if x is None else x[begin : begin + size]
        shapes = [
            ((size, *shape[1:]), *kind) if i in batched else (shape, *kind)
            for i, (shape, *kind) in enumerate(types)
        ]
        parts = [one(x) if i in batched else x for i, x in enumerate(operands)]
        found = rule.function(Vjp(about, parts, one(result), one(grad), shapes, own))
        for wanted, a, g in zip(own, accumulators, found):
            if wanted:
                a.add_unit(g)
    return [None if mine else g for mine, g in zip(own, grads)]


def rows_of_unit(accumulator, rows, op):
    """How many indices of axis 0 a unit has."""
    units = accumulator.units or rows
    if rows % units:
        raise _native.NotCovered(
            f"{op}: {accumulator.name} meets {rows} rows, which are no multiple of the {units} units"
        )
    return rows // units


def refuse(call, grad, types, accumulators):
    batched = OPERANDS[call.op]
    rows = grad.shape[0] if grad.ndim else 0
    for i, accumulator in enumerate(accumulators):
        if accumulator is not None and i in batched:
            raise _native.NotCovered(f"{call.op}: {accumulator.name} is where units are expected")
    for i in batched:
        shape = types[i][0]
        if (
            not len(shape)
            or shape[0] != rows
            or (call.op == "gather" and call.attributes.get("axis", 0) % len(types[0][0]))
        ):
            name = next(a.name for a in accumulators if a is not None)
            raise _native.NotCovered(
                f"{call.op}: {name} meets an operand of shape {list(shape)}, whose axis 0 does not "
                "count units"
            )


def _of_rows(call, operands, grad, own, accumulators, size):
    """layernorm and rmsnorm: sums of g h and g over the rows of each unit (layernorm.8)."""
    x, w = operands[0], operands[1]
    split = lambda y: y.reshape(len(grad) // size, -1, *w.shape)
    sums = lambda y: p.reduce_sum(split(y), axes=[1], keepdims=0)
    if own[1]:
        ones = torch.ones(w.shape, dtype=x.dtype, device=x.device)
        h = getattr(p, call.op)(x, ones, epsilon=call.attributes["epsilon"])
        accumulators[1].add(sums(p.mul(grad, h)))
    if len(own) > 2 and own[2]:
        accumulators[2].add(sums(grad))
    return True


def _channels(y, size):
    """The sums over everything but units and channels: [units, C]."""
    y = y.reshape(len(y) // size, size, y.shape[1], -1)
    return p.reduce_sum(y, axes=[1, 3], keepdims=0)


def _groupnorm(call, operands, grad, own, accumulators, size):
    x = operands[0]
    if own[1]:
        rows = x.reshape(x.shape[0] * call.attributes["groups"], -1)
        ones = torch.ones(rows.shape[1], device=x.device)
        h = p.layernorm(rows, ones, epsilon=call.attributes["epsilon"]).reshape(x.shape)
        accumulators[1].add(_channels(p.mul(grad, h), size))
    if own[2]:
        accumulators[2].add(_channels(grad, size))
    return True


def _batchnorm(call, operands, grad, own, accumulators, size):
    if any(own[3:]):
        return False
    x, _, _, m, variance = operands
    if own[1]:
        epsilon = torch.full((), call.attributes["epsilon"], dtype=x.dtype, device=x.device)
        r = p.reciprocal(p.sqrt(p.add(variance, epsilon)))
        centred = p.sub(x, m.reshape(-1, *(1,) * (x.ndim - 2)))
        accumulators[1].add(p.mul(_channels(p.mul(grad, centred), size), r))
    if own[2]:
        accumulators[2].add(_channels(grad, size))
    return True


def _gather(call, operands, grad, own, accumulators, size):
    """A table's rows: the sums of each pair of unit and row that comes, in the order of
    gather.9."""
    table, index = accumulators[0], operands[1]
    if not hasattr(table, "add_rows") or not index.numel():
        return False
    count, width = table.shape[0], math.prod(table.shape[1:])
    if not width:
        return False
    unit = torch.arange(len(index), device=index.device) // size
    unit = unit.reshape(-1, *(1,) * (index.ndim - 1))
    place = torch.where(index < 0, index + count, index)
    pairs, which = (unit * count + place).unique(return_inverse=True)
    grad = grad if grad.dtype == torch.float32 else p.cast(grad, dtype="f32")
    sums = p.scatter_nd(
        torch.zeros(len(pairs), width, device=grad.device),
        which.reshape(-1, 1),
        grad.reshape(-1, width),
        reduction=1,
    )
    units = len(grad) // size
    most = p.reduce_max(p.abs(sums), axes=[1], keepdims=0)
    most = p.scatter_elements(
        torch.zeros(units, device=grad.device), pairs // count, most, axis=0, reduction=4
    )
    table.add_rows(
        pairs % count,
        p.fixed_sum(sums.unsqueeze(0)),
        p.fixed_magnitude(most.unsqueeze(1)),
        units,
    )
    return True


AT_ONCE = {
    "gather": _gather,
    "rmsnorm": _of_rows,
    "layernorm": _of_rows,
    "groupnorm": _groupnorm,
    "batchnorm": _batchnorm,
}
