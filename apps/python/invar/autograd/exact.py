"""Contributions of single units to gradients of parameters.

A gradient of a parameter is a sum over units: the indices of the first axis of the operand that
meets the parameter. A sum of floating numbers depends on how the units are split into batches. An
accumulator of a parameter takes the contributions of each unit instead, and may sum them so that no
split matters (spec/training.md). It is an object with

    add(per_unit)            a tensor [U, *parameter.shape] of f32
    add_matmul(a, b)         optional: the contributions a[u]^T b[u] of [U, T, M] and [U, T, N]

While a parameter is registered, operations that have it as an operand itself give it to the
accumulator, and the parameter gets no gradient from them. An operation that cannot is refused by
name. In eager mode only."""

import weakref

from invar import _native

REGISTERED = {}  # id of a parameter -> (weak reference to it, its accumulator)


def register(parameter, accumulator):
    """From now on `accumulator` gets the contributions to the gradient of `parameter`, a leaf that
    requires a gradient."""
    if not parameter.is_leaf or not parameter.requires_grad:
        raise _native.BadInput(
            "parameter: a tensor that is no leaf, or requires no gradient, has no exact gradient"
        )
    key = id(parameter)
    gone = lambda _: REGISTERED.pop(key, None)
    REGISTERED[key] = (weakref.ref(parameter, gone), accumulator)


def unregister(parameter):
    """The parameter gets ordinary gradients again."""
    REGISTERED.pop(id(parameter), None)


def active():
    """Whether any parameter is registered."""
    return bool(REGISTERED)


def accumulators(operands):
    """For each operand its accumulator or None; None where no operand has one."""
    found = [REGISTERED.get(id(x)) for x in operands]
    if not any(found):
        return None
    return [None if f is None or f[0]() is not x else f[1] for f, x in zip(found, operands)]


def check(call, accumulators, grads):
    """A gradient that a rule returned although its parameter has an accumulator is an error: the
    rule knows of no units."""
    for i, (accumulator, grad) in enumerate(zip(accumulators, grads)):
        if accumulator is not None and grad is not None:
            raise _native.NotCovered(
                f"{call.op}: operand {i} is a parameter with exact gradients, and the rule of the "
                "operation gives no contributions of units"
            )
