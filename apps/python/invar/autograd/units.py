"""Contributions of units by rules that know of none (exact.py): the rule for each unit alone. It is
what training.2 defines; rules that give contributions themselves are faster."""

from invar import _native
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
