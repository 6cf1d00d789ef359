"""Gradients of elementwise operations against torch's in float64, first and second."""

import math

import gradients
import pytest
import torch
import torch.nn.functional as F
from gradients import compare, first, random
from invar import primitives as p

X = random(3, 37, seed=1)
UNIT_INTERVAL = X.sigmoid() * 1.8 - 0.9
ABOVE_ONE = X.abs() + 1.0625
POSITIVE = X.abs() + 0.0625

UNARY = {
    "abs": (torch.abs, X),
    "neg": (torch.neg, X),
    "sqrt": (torch.sqrt, POSITIVE),
    "reciprocal": (torch.reciprocal, POSITIVE),
    "rsqrt": (torch.rsqrt, POSITIVE),
    "cbrt": (lambda x: x.abs().pow(1 / 3) * x.sign(), POSITIVE),
    "exp": (torch.exp, X),
    "exp2": (torch.exp2, X),
    "exp10": (lambda x: torch.pow(10.0, x), X),
    "expm1": (torch.expm1, X),
    "log": (torch.log, POSITIVE),
    "log2": (torch.log2, POSITIVE),
    "log10": (torch.log10, POSITIVE),
    "log1p": (torch.log1p, POSITIVE),
    "sin": (torch.sin, X),
    "cos": (torch.cos, X),
    "tan": (torch.tan, UNIT_INTERVAL),
    "sinc": (torch.sinc, X),
    "entr": (torch.special.entr, POSITIVE),
    "sinpi": (lambda x: torch.sin(math.pi * x), X),
    "cospi": (lambda x: torch.cos(math.pi * x), X),
    "asin": (torch.asin, UNIT_INTERVAL),
    "acos": (torch.acos, UNIT_INTERVAL),
    "atan": (torch.atan, X),
    "sinh": (torch.sinh, X),
    "cosh": (torch.cosh, X),
    "tanh": (torch.tanh, X),
    "asinh": (torch.asinh, X),
    "acosh": (torch.acosh, ABOVE_ONE),
    "atanh": (torch.atanh, UNIT_INTERVAL),
    "erf": (torch.erf, X),
    "erfc": (torch.erfc, X),
    "softplus": (F.softplus, X),
    "logsigmoid": (F.logsigmoid, X),
    "relu": (torch.relu, X),
    "hardswish": (F.hardswish, X * 2),
    "softsign": (F.softsign, X),
    "sigmoid": (torch.sigmoid, X),
    "silu": (F.silu, X),
    "mish": (F.mish, X),
    "gelu": (F.gelu, X),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), X),
}
SCALED = {
    "elu": (dict(alpha=0.75), lambda x: F.elu(x, 0.75)),
    "selu": (
        dict(alpha=1.6732631921768188, gamma=1.0507010221481323),
        F.selu,
    ),
    "celu": (dict(alpha=0.75), lambda x: F.celu(x, 0.75)),
    "leakyrelu": (dict(alpha=0.125), lambda x: F.leaky_relu(x, 0.125)),
    "thresholdedrelu": (dict(alpha=0.5), lambda x: F.threshold(x, 0.5, 0.0)),
    "shrink": (dict(lambd=0.5, bias=0.5), lambda x: F.softshrink(x, 0.5)),
    "hardsigmoid": (dict(alpha=0.25, beta=0.5), lambda x: (x * 0.25 + 0.5).clamp(0, 1)),
    "clip": (dict(min=-0.5, max=0.75), lambda x: x.clamp(-0.5, 0.75)),
    "swish": (dict(alpha=1.5), lambda x: x * torch.sigmoid(1.5 * x)),
}
BINARY = {
    "add": (torch.add, X),
    "sub": (torch.sub, X),
    "mul": (torch.mul, X),
    "div": (torch.div, POSITIVE),
    "max": (torch.maximum, X),
    "min": (torch.minimum, X),
    "fmod": (torch.fmod, X),
    "mod": (torch.remainder, X),
    "pow": (torch.pow, POSITIVE),
    "atan2": (torch.atan2, X),
    "prelu": (lambda x, a: torch.where(x > 0, x, a * x), X),
}


@pytest.mark.parametrize("op", UNARY)
def test_unary(op):
    theirs, x = UNARY[op]
    compare(getattr(p, op), theirs, [x])


@pytest.mark.parametrize("op", SCALED)
def test_with_attributes(op):
    attributes, theirs = SCALED[op]
    compare(lambda x: getattr(p, op)(x, **attributes), theirs, [X * 2])


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize(
    "shapes", [((3, 37), (3, 37)), ((3, 37), (37,)), ((3, 1), (2, 1, 37)), ((), (5,))]
)
def test_binary(op, shapes):
    theirs, _ = BINARY[op]
    a, b = (random(*s, seed=3 + i) for i, s in enumerate(shapes))
    if op in ("div", "fmod", "mod"):
        b = b.abs() + 0.25
    if op == "pow":
        a = a.abs() + 0.25
    compare(getattr(p, op), theirs, [a, b], factor=256)


def test_where():
    condition = random(3, 1, seed=5) > 0
    compare(
        lambda a, b: p.where(condition, a, b), lambda a, b: torch.where(condition, a, b), [X, X[0]]
    )


AT_EDGES = {
    "abs": (torch.abs, {}, [0.0, -0.0]),
    "relu": (torch.relu, {}, [0.0, -0.0, math.nan, math.inf, -math.inf]),
    "sqrt": (torch.sqrt, {}, [0.0, math.inf]),
    "sign": (torch.sign, {}, [0.0, 1.5]),
    "floor": (torch.floor, {}, [0.5, 1.0]),
    "ceil": (torch.ceil, {}, [0.5, 1.0]),
    "round": (torch.round, {}, [0.5, 1.0]),
    "trunc": (torch.trunc, {}, [0.5, 1.0]),
    "hardswish": (F.hardswish, {}, [-3.0, 3.0, 0.0, -4.0, 4.0]),
    "clip": (lambda x: x.clamp(-1, 1), dict(min=-1.0, max=1.0), [-1.0, 1.0, 2.0, -2.0, 0.0]),
    "leakyrelu": (lambda x: F.leaky_relu(x, 0.125), dict(alpha=0.125), [0.0, -0.0]),
    "elu": (lambda x: F.elu(x, 2.0), dict(alpha=2.0), [0.0, -200.0, 200.0]),
    "celu": (lambda x: F.celu(x, 2.0), dict(alpha=2.0), [0.0, -200.0, 200.0]),
    "shrink": (lambda x: F.hardshrink(x, 0.5), dict(lambd=0.5, bias=0.0), [-0.5, 0.5, 0.0]),
    "thresholdedrelu": (lambda x: F.threshold(x, 1.0, 0.0), dict(alpha=1.0), [1.0, 0.0]),
    "sigmoid": (torch.sigmoid, {}, [200.0, -200.0]),
    "silu": (F.silu, {}, [50.0, -50.0]),
    "tanh": (torch.tanh, {}, [50.0, -50.0]),
    "softplus": (F.softplus, {}, [100.0, -100.0]),
    "gelu": (F.gelu, {}, [30.0, -30.0]),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), {}, [30.0, -30.0]),
}


@pytest.mark.parametrize("op", AT_EDGES)
def test_subgradients_are_those_of_torch(op):
    theirs, attributes, x = AT_EDGES[op]
    x = torch.tensor(x)
    found = first(lambda x: getattr(p, op)(x, **attributes), [x])
    gradients.near(found[0], first(theirs, [x.double()])[0], 4)


def test_equal_operands_share():
    a, b = torch.tensor([1.0, 2.0, 3.0, math.nan]), torch.tensor([1.0, 3.0, 2.0, 0.0])
    for ours, theirs in ((p.max, torch.maximum), (p.min, torch.minimum)):
        assert [g.tolist() for g in first(ours, [a, b])] == [
            g.tolist() for g in first(theirs, [a, b])
        ]


def test_powers_at_zero():
    a, b = torch.tensor([0.0, 0.0, 0.0, 2.0]), torch.tensor([0.0, 1.0, 2.0, 0.0])
    for found, expected in zip(first(p.pow, [a, b]), first(torch.pow, [a.double(), b.double()])):
        gradients.near(found, expected, 4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_gradient_has_the_type_of_its_operand(dtype):
    a, b = X.to(dtype), X[0].to(dtype)
    ours, theirs = first(p.mul, [a, b]), first(lambda a, b: a.float() * b.float(), [a, b])
    assert [g.dtype for g in ours] == [dtype, dtype]
    assert torch.equal(ours[0], theirs[0])  # a product and one rounding each
    gradients.near(ours[1], theirs[1], 2**16)


@pytest.mark.parametrize("op", [op for op in BINARY if op != "mod"])
def test_narrow_operands_have_the_gradients_of_wide_ones(op):
    a, b = X.abs() + 0.5, X[0].abs() + 0.75
    function = getattr(p, op)
    narrow = [x.bfloat16() for x in (a, b)]
    wide = first(function, [x.float() for x in narrow])
    found = first(function, narrow)
    assert all(torch.equal(f, w.bfloat16()) for f, w in zip(found, wide))


BINARY64 = {
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "max": 2,
    "min": 2,
    "fmod": 2,
    "mod": 2,
    "sqrt": 1,
    "reciprocal": 1,
    "neg": 1,
    "abs": 1,
    "relu": 1,
    "exp_f64": 1,
    "log_f64": 1,
}


@pytest.mark.parametrize("op", BINARY64)
def test_binary64(op):
    """torch's own checks, against differences of the function itself."""
    count = BINARY64[op]
    x = [
        (random(2, 5, seed=i, dtype=torch.float64).abs() + 0.5).requires_grad_()
        for i in range(count)
    ]
    if count == 2:
        x[1] = (x[1].detach()[0] + 0.125).requires_grad_()
    assert torch.autograd.gradcheck(getattr(p, op), x)
    assert torch.autograd.gradgradcheck(getattr(p, op), x)
