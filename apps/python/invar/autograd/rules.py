"""Rules of gradients: a vector-Jacobian product for each differentiable operation.

A room's vjp.py has functions under @rule("NAME", ..., saves=...). The function takes a Vjp and
returns one gradient for each operand (None where it needs none). `saves` says what the rule reads:
"operands", "result", both ("operands result"), "others" (an operand is kept where another one needs
a gradient) or nothing (""). A rule is written with primitives and with torch's views (reshape,
permute, unsqueeze), nothing else: these compute the same bits everywhere and have gradients
themselves. A gradient takes the element type of its operand (cast) after the rule.

An operand that is a parameter with registered contributions (invar.autograd.exact) is a broadcast
one or a weight: v.reduced() and v.accumulator() serve it."""

import functools
import importlib

import torch

from invar import _native, primitives
from invar.autograd import modes

_default_of = functools.cache(_native.default_of)


class Rule:
    """A rule and what it reads."""

    __slots__ = ("_kept", "_others", "function", "keeps_operands", "keeps_result", "reads")

    def __init__(self, function, saves):
        self.function = function
        self.keeps_operands, self.keeps_result = "operands" in saves, "result" in saves
        self._others, self.reads = "others" in saves, bool(saves)
        self._kept = {}

    def kept(self, needs):
        """For each operand, whether the rule reads it, unless it reads them all."""
        if (known := self._kept.get(needs)) is None:
            wanted = sum(needs) if self._others else 0
            known = self._kept[needs] = tuple([wanted > need for need in needs])
        return known


class Vjp:
    """One call whose gradient is asked for. v[i]: operand i (None unless the rule saves it);
    v.result; v.grad: of the result; v.needs(i): whether operand i needs a gradient; v.shape(i),
    v.dtype(i): those of operand i; v.attribute(name); v.memo: what rules keep for calls
    with equal attributes and types."""

    __slots__ = (
        "_accumulators", "_needs", "_types", "call", "grad", "memo", "operands", "result"
    )  # fmt: skip

    def __init__(self, about, operands, result, grad, types=None, needs=None):
        self.call, self.operands, self.result, self.grad = about.call, operands, result, grad
        if types is None:
            self._types, self._needs, self._accumulators = (
                about.types,
                about.needs,
                about.accumulators,
            )
            self.memo = about.memo
        else:  # of a part of the operands
            self._types, self._needs, self._accumulators, self.memo = types, needs, None, {}

    def __getitem__(self, i):
        return self.operands[i]

    def __len__(self):
        return len(self.operands)

    def needs(self, i):
        return i < len(self._needs) and self._needs[i]

    def shape(self, i):
        return self._types[i][0]

    def dtype(self, i):
        return self._types[i][1]

    def attribute(self, name, default=None):
        """An attribute of the call, or its default, or that of the room's ops.toml; `axis` counted
        from the front."""
        value = self.call.attributes.get(name, default)
        if value is None:
            value = _default_of(self.call.op, name)
        return value + len(self._types[0][0]) if name == "axis" and value < 0 else value

    def axis(self):
        return self.attribute("axis")

    def constant(self, value):
        """A number as a tensor without dimensions, of the gradient's type and device."""
        return constant(self.grad, value)

    def zeros(self, i):
        """The gradient of an operand on which the result depends by steps only."""
        shape, dtype, device = self._types[i]
        return torch.zeros(shape, dtype=dtype, device=device)

    def accumulator(self, i):
        """Where the contributions of each unit to the gradient of operand i go (exact.py); None:
        the rule returns their sum."""
        return None if self._accumulators is None else self._accumulators[i]

    def reduced(self, i, grad):
        """The gradient of operand i, which was broadcast to the shape of `grad`; None where it
        needs none or its contributions went to an accumulator."""
        if not self.needs(i):
            return None
        if self._accumulators is None and grad.shape == self._types[i][0]:
            return grad
        return sum_over_rows(self, i, grad)

    def refuse(self, i, what):
        """No gradient of operand i: an error where it needs one."""
        if self.needs(i):
            raise _native.NotCovered(
                f"{self.call.op}: operand {i} requires a gradient: {what}; use detach()"
            )


_PLAIN = (torch.Tensor, torch.nn.Parameter)
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
    if (known := _RULES.get(op)) is not None:
        return known
    _load()
    if op in _RULES or op in _NONE:
        return _RULES.get(op)
    raise _native.NotCovered(
        f"{op}: an operand requires a gradient, and the operation has no rule for one; "
        "use torch.no_grad() or detach()"
    )


_CONSTANTS = {}  # numbers that rules use again and again


def constant(like, value, dtype=None):
    """A number as a tensor without dimensions, of the type (or `dtype`) and device of another."""
    dtype = dtype or like.dtype
    if watched() or torch.is_inference_mode_enabled() or type(like) not in _PLAIN:
        return torch.full((), value, dtype=dtype, device=like.device)
    key = (value or str(value), dtype, like.device)  # 0 is not -0
    if (made := _CONSTANTS.get(key)) is None:
        made = torch.full((), value, dtype=dtype, device=like.device)
        if like.is_cuda:
            stream = torch.cuda.current_stream(like.device)
            if torch.cuda.is_current_stream_capturing():
                return made  # the graph's own
            stream.synchronize()  # once for each number: other streams may read it
        if len(_CONSTANTS) < 4096:
            _CONSTANTS[key] = made
    return made


_TABLES = {}  # arrays that rules use again and again


def table(key, device, make):
    """The NumPy array make() as a tensor on the device, made once for each key."""
    if watched() or torch.is_inference_mode_enabled():
        return torch.from_numpy(make()).to(device)
    if (found := _TABLES.get((key, device))) is None:
        found = torch.from_numpy(make()).to(device)
        if len(_TABLES) >= 256:
            _TABLES.clear()
        _TABLES[key, device] = found
    return found


def watched():
    """Whether a compiler, a transform or a mode looks: it must see all tensors made anew."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or modes.foreign() > 0
    )


def widened(x):
    """As operations take it that add: bf16 and f16 as f32."""
    return x if x.element_size() > 2 else primitives.cast(x, dtype="f32")


def broadcast_to(x, shape):
    """x expanded to the shape: a view, or where its own gradient may be asked for the operation,
    whose gradient has specified bits."""
    if torch.is_grad_enabled() or watched():
        return primitives.expand(x, shape=shape)
    return x.expand(shape)


def reduced_to(grad, shape):
    """The gradient of a broadcast: `grad` summed over the dimensions that `shape` does not have or
    has as 1 (spec/reduction.md: the order of reduce_sum over these axes)."""
    if tuple(grad.shape) == tuple(shape):
        return grad
    more = grad.ndim - len(shape)
    axes = [
        i for i in range(grad.ndim) if i < more or (shape[i - more] == 1 and grad.shape[i] != 1)
    ]
    if axes:
        grad = primitives.reduce_sum(widened(grad), axes=axes, keepdims=0)
    return grad.reshape(shape)


def sum_over_rows(v, i, product):
    """The gradient of operand i of call v: `product`, in which it was broadcast, reduced to its
    shape. Where the operand has an accumulator, that gets the sums of each unit (index of the first
    axis of `product`) instead, and the gradient is None."""
    shape, accumulator = v.shape(i), v.accumulator(i)
    if accumulator is None:
        return reduced_to(product, shape)
    more = product.ndim - len(shape)
    if more > 0:
        each = (product.shape[0], *(1,) * (more - 1), *shape)
    elif shape and shape[0] == 1:
        each = (product.shape[0], *shape[1:])
    else:
        raise _native.NotCovered(
            f"{v.call.op}: operand {i} is a parameter with exact gradients and was not broadcast: "
            f"no axis of {list(product.shape)} counts units"
        )
    accumulator.add(reduced_to(product, each).reshape(product.shape[0], *shape))
    return None
