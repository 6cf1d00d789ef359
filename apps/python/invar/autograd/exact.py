"""Contributions of single units to gradients of parameters.

A gradient of a parameter is a sum over units: the indices of the first axis of the operand that
meets the parameter. A sum of floating numbers depends on how the units are split into batches. An
accumulator of a parameter takes the contributions of each unit instead, and may sum them so that no
split matters (spec/training.md). It is an object with

    add(per_unit)            a tensor [U, *parameter.shape] of f32
    add_matmul(a, b)         optional: the contributions a[u]^T b[u] of [U, T, M] and [U, T, N]

    part(shape, begin)       optional: an accumulator of the elements from `begin` on, row-major, as
                             a tensor of this shape

While a parameter is registered, operations that have it as an operand itself give it to the
accumulator, and the parameter gets no gradient from them. So do those that have a part of it that
lies together in memory, such as a chunk of its rows, and products with its transposition. An
operation that cannot is refused by name. In eager mode only."""

import threading
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
    found = [_accumulator(x) for x in operands]
    return found if any(f is not None for f in found) else None


def _accumulator(x):
    if (known := REGISTERED.get(id(x))) is not None:
        return known[1] if known[0]() is x else None
    base = _base(x)
    if base is None or not x.is_contiguous() or not base.is_contiguous() or x.dtype != base.dtype:
        return None
    whole = REGISTERED[id(base)][1]
    begin = x.storage_offset() - base.storage_offset()
    return whole.part(tuple(x.shape), begin) if hasattr(whole, "part") else None


def _base(x):
    """The registered parameter of which x is a view that has a gradient, or None."""
    base = getattr(x, "_base", None)
    known = REGISTERED.get(id(base)) if base is not None and x.requires_grad else None
    return base if known is not None and known[0]() is base else None


def untransposed(call, operands):
    """The call with parameters themselves where a product has their transposed views."""
    if call.op != "matmul":
        return call, operands
    for i, name in ((1, "trans_b"), (0, "trans_a")):
        base = _base(operands[i])
        if base is None or operands[i].ndim != 2 or base.ndim != 2 or not base.is_contiguous():
            continue
        x = operands[i]
        same = x.data_ptr() == base.data_ptr() and x.shape == base.shape[::-1]
        if same and x.stride() == base.stride()[::-1] and not x.is_contiguous():
            given = {**call.attributes, name: 1 - call.attributes.get(name, 0)}
            call = type(call)(call.op, given, call.shape, call.dtype, call.isa)
            operands = [base if k == i else y for k, y in enumerate(operands)]
    return call, operands


# The Part in force. Of the whole process: a checkpoint computes its forward pass again on the
# thread that torch has for a GPU's gradients.
_current = None


class Part:
    """Which units of a batch the forward pass that runs has: `units` from unit `first` on. Random
    numbers are those of the units' places in the whole batch."""

    def __init__(self, first, units):
        self.first, self.units, self.thread = first, units, threading.get_ident()

    def __enter__(self):
        global _current
        if _current is not None and _current.thread != self.thread:
            raise RuntimeError("another thread of this process has a part of a batch in force")
        self._before, _current = _current, self
        return self

    def __exit__(self, *error):
        global _current
        _current = self._before

    def offset(self, count, name="dropout"):
        """Where the numbers of these units begin, of `count` numbers for all of them."""
        if count % max(self.units, 1):
            raise _native.NotCovered(
                f"{name}: {count} random numbers are no multiple of the {self.units} units"
            )
        return self.first * (count // max(self.units, 1))


def part():
    """The Part in force, or None."""
    return _current


def check(call, accumulators, grads):
    """A gradient that a rule returned although its parameter has an accumulator is an error: the
    rule knows of no units."""
    for i, (accumulator, grad) in enumerate(zip(accumulators, grads)):
        if accumulator is not None and grad is not None:
            raise _native.NotCovered(
                f"{call.op}: operand {i} is a parameter with exact gradients, and the rule of the "
                "operation gives no contributions of units"
            )
