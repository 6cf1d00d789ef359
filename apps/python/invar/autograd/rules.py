"""Rules of gradients: a vector-Jacobian product for each differentiable operation.

A room's vjp.py has functions under @rule("NAME", ..., saves=...). The function takes a Vjp and
returns one gradient for each operand (None where it needs none). `saves` says what the rule reads:
"operands", "result", both ("operands result") or nothing (""). A rule is written with primitives
and with torch's views (reshape, permute, unsqueeze), nothing else: these compute the same bits
everywhere and have gradients themselves."""

import functools
import importlib
from dataclasses import dataclass
from typing import Callable

from invar import _native


@dataclass(frozen=True, slots=True)
class Rule:
    function: Callable
    saves: str


class Vjp:
    """One call whose gradient is asked for. v[i]: operand i (None unless the rule saves operands);
    v.result; v.grad: of the result; v.needs(i): whether operand i needs a gradient; v.shape(i),
    v.dtype(i): those of operand i; v.attribute(name, default)."""

    def __init__(self, call, operands, result, grad, types, needs):
        self.call, self.operands, self.result, self.grad = call, operands, result, grad
        self._types, self._needs = types, needs

    def __getitem__(self, i):
        return self.operands[i]

    def __len__(self):
        return len(self.operands)

    def needs(self, i):
        return self._needs[i]

    def shape(self, i):
        return tuple(self._types[i][0])

    def dtype(self, i):
        return self._types[i][1]

    def attribute(self, name, default=None):
        return self.call.attributes.get(name, default)


_RULES = {}
_NONE = set()


def rule(*ops, saves="operands"):
    """Registers the function as the rule of these operations."""

    def register(function):
        for op in ops:
            assert op not in _RULES, op
            _RULES[op] = Rule(function, saves)
        return function

    return register


def no_gradient(*ops):
    """Operations whose results do not depend on their operands differentiably (indices, truth
    values, steps): their results require no gradient."""
    _NONE.update(ops)


@functools.cache
def _load():
    from invar import vjp

    for name in vjp.NAMES:
        importlib.import_module(f"invar.vjp.{name}")


def rule_of(op):
    """The rule of an operation; None where its result is not differentiable; an operation without
    either is refused."""
    _load()
    if op in _RULES or op in _NONE:
        return _RULES.get(op)
    raise _native.NotCovered(
        f"{op}: an operand requires a gradient, and the operation has no rule for one; "
        "use torch.no_grad() or detach()"
    )


def reduced_to(grad, shape):
    """The gradient of a broadcast: `grad` summed over the dimensions that `shape` does not have or
    has as 1 (spec/reduction.md: the order of reduce_sum over these axes)."""
    from invar import primitives

    if tuple(grad.shape) == tuple(shape):
        return grad
    more = grad.ndim - len(shape)
    axes = [
        i for i in range(grad.ndim) if i < more or (shape[i - more] == 1 and grad.shape[i] != 1)
    ]
    if axes:
        grad = primitives.reduce_sum(grad, axes=axes, keepdims=0)
    return grad.reshape(shape)
