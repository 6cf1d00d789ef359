"""Functions of one element of each operand."""

import itertools
import math

import numpy as np
import pytest
from accuracy import case, check, ids, of_torch, ops, randn, raw, refused, torch

X, Y = randn(3, 4, 5), randn(4, 1, seed=1)
UNIT = torch.linspace(-0.99, 0.99, 64).reshape(4, 16)
POSITIVE = torch.linspace(0.01, 9, 64).reshape(4, 16)
EDGES = torch.tensor(
    [0.0, -0.0, 1.0, -1.5, 2.5, -2.5, float("inf"), -float("inf"), float("nan"), 1e-30]
)
INTS = torch.tensor([[-7, 3, 0], [5, -2, 100]])
MORE = torch.tensor([3, -2, 7])

EVERYWHERE = (
    "abs neg sign floor ceil trunc exp expm1 sin cos tan atan sinh cosh tanh asinh erf erfc sigmoid "
    "isnan isinf isfinite logical_not square round frac exp2"
).split()
TWO = (
    "add sub mul div maximum minimum eq ne lt "
    "le gt ge atan2 logical_and logical_or logical_xor logaddexp true_divide"
).split()
OF_INTEGERS = (
    "add sub mul div floor_divide remainder fmod "
    "maximum minimum eq lt bitwise_and bitwise_or bitwise_xor logical_and"
).split()
CASES = [
    *(case(n, UNIT * 3, error=16) for n in EVERYWHERE),
    *(case(n, UNIT) for n in ("asin", "acos", "atanh")),
    *(case(n, POSITIVE + 1, error=16, narrow=n != "acosh") for n in ("acosh", "log1p", "log")),
    *(case(n, POSITIVE) for n in ("sqrt", "rsqrt", "reciprocal", "log", "log2", "log10", "log1p")),
    *(
        case(n, EDGES, narrow=False)
        for n in "abs neg floor ceil trunc sigmoid tanh isnan isinf isfinite logical_not exp".split()
    ),
    *(case(n, X, Y) for n in TWO),
    *(case(n, X, 2.5) for n in "add sub mul div eq lt fmod remainder pow".split() if n != "pow"),
    case("add", X, Y, alpha=0.5),
    case("sub", X, Y, alpha=3),
    case("fmod", UNIT * 30, torch.tensor(0.7), narrow=False),
    case("remainder", UNIT * 30, torch.tensor(-0.7), narrow=False),
    case("pow", POSITIVE, 2.5, narrow=False, error=16),
    case("pow", POSITIVE, UNIT, narrow=False),
    case("pow", UNIT, 3),
    case("pow", 2.0, UNIT),
    case("floor_divide", UNIT * 30, 0.75, narrow=False),
    case("floor_divide", EDGES[:, None], EDGES, narrow=False),
    case("div", UNIT * 30, 4.0, rounding_mode="trunc"),
    case("clamp", X, -1.0, 2.5),
    case("clamp", X, min=0.5),
    case("clamp", X, max=torch.tensor(0.25)),
    case("clamp", X, Y, X.abs()),
    case("clamp", EDGES, -1.0, 1.0, narrow=False),
    case("clip", INTS, 0, 4),
    case("where", X > 0, X, Y),
    case("where", X > 0, X, 0.0),
    case("where", X > 0, 1, X),
    case("lerp", X, X + 1, 0.25, error=16),
    case("lerp", X, Y, X.abs(), error=32, narrow=False),
    case("addcmul", X, X, Y, value=0.5),
    case("addcdiv", X, X, Y, value=2.0, error=16),
    case("logit", POSITIVE / 10),
    case("logit", UNIT.abs(), 1e-2, narrow=False),
    case("nan_to_num", EDGES, 1.0, 2.0, 3.0, narrow=False),
    *(case(n, INTS, MORE) for n in OF_INTEGERS),
    *(
        case(n, INTS)
        for n in "abs neg sign floor bitwise_not logical_not isnan square exp sigmoid".split()
    ),
    *(case(n, INTS, 3) for n in "add mul div pow".split()),
    case("add", INTS, 2.5),
    case("mul", INTS, True),
    case("div", INTS, MORE, rounding_mode="floor"),
    case("div", INTS, MORE, rounding_mode="trunc"),
]


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_elements(c):
    check(c)


DTYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
]


@pytest.mark.parametrize("a,b", list(itertools.product(DTYPES, DTYPES)), ids=str)
def test_types_are_promoted_as_torch_does(a, b):
    x = torch.tensor([0, 1, 3]).to(a)
    for y in (torch.tensor([1, 1, 2]).to(b), torch.tensor(2).to(b), 2, 1.5, True):
        wanted = torch.result_type(x, y)
        if wanted == torch.bool:
            continue
        got, want = ops.mul(x, y), torch.mul(x, y)
        assert got.dtype == wanted == want.dtype and torch.equal(got, want), (a, b, y)
        assert ops.eq(x, y).dtype == torch.bool
        assert torch.equal(ops.ge(x, y), torch.ge(x, y)), (a, b, y)
        assert torch.equal(ops.maximum(x, torch.as_tensor(y)), torch.maximum(x, torch.as_tensor(y)))


def test_numbers_round_once_and_overflow_to_infinity():
    x = torch.tensor([1.0, -1.0])
    assert torch.equal(ops.mul(x, 1e300), torch.tensor([float("inf"), -float("inf")]))
    assert torch.equal(ops.add(x, 0.1), torch.add(x, 0.1))
    assert raw(ops.add(x.numpy(), 0.1)) == raw(ops.add(x, 0.1))


def test_numpy_promotes_like_torch():
    x = np.arange(3, dtype="f4")
    assert ops.add(x, 1.5).dtype == np.float32 and ops.add(np.arange(3), 1.5).dtype == np.float32
    assert ops.add(x, np.arange(3, dtype="f8")).dtype == np.float64
    assert ops.add(x, np.float64(1.5)).dtype == np.float32  # a number, as Python's


@pytest.mark.parametrize(
    "name", ["add", "mul", "sub", "div", "maximum", "abs", "sqrt", "floor", "relu", "reciprocal"]
)
def test_binary64(name):
    x = [randn(4, 5).double() / 3, randn(4, 5, seed=2).double()][
        : 2 if name in ("add", "mul", "sub", "div", "maximum") else 1
    ]
    x = [v.abs() if name == "sqrt" else v for v in x]
    wanted = (
        np.sqrt(x[0].numpy()) if name == "sqrt" else of_torch(name)(*x).numpy()
    )  # torch's sqrt is not exact
    assert raw(getattr(ops, name)(*x)) == raw(wanted)


def test_infinities_become_the_largest_numbers():
    assert torch.equal(ops.nan_to_num(EDGES), torch.nan_to_num(EDGES))


def test_alpha_beside_a_number():
    for name in ("add", "sub"):
        ours, theirs = getattr(ops, name), getattr(torch, name)
        for x, other, alpha in ((X, 0.5, 3), (INTS, 2, 3), (X.bfloat16(), 2, 0.5), (MORE, 0.5, 2)):
            wanted = theirs(x, other, alpha=alpha)
            assert raw(ours(x, other, alpha=alpha)) == raw(wanted)
        message = f"{name}: argument 'alpha': expected an integer"
        refused(RuntimeError, message, ours, INTS, 2, alpha=0.5)
        refused(RuntimeError, message, ours, INTS, MORE, alpha=0.5)


def test_alpha_beside_a_narrower_operand():
    """The product has the result's type: it does not wrap, nor round, in that of the operand."""
    wide = {torch.int64: INTS.long(), torch.float32: X}
    for narrow in (torch.uint8, torch.int8, torch.int16, torch.bool, torch.float16):
        for kind, x in wide.items():
            other = (torch.arange(x.numel()).reshape(x.shape) % 100).to(narrow)
            if kind == torch.int64 and narrow == torch.float16:
                continue
            for name in ("add", "sub"):
                if name == "sub" and narrow == torch.bool:
                    continue
                wanted = getattr(torch, name)(x, other, alpha=3)
                assert raw(getattr(ops, name)(x, other, alpha=3)) == raw(wanted)


UNARY64 = """exp2 expm1 log1p log2 log10 rsqrt sigmoid tanh sinh cosh asinh acosh atanh erf erfc gelu silu
mish softplus logsigmoid elu selu hardswish softsign""".split()


@pytest.mark.parametrize("name", UNARY64)
def test_functions_of_binary64(name):
    """Within 4 units in the last place (functions.42) of torch's, which has one or two itself; with
    gradients."""
    edges = torch.tensor([0.0, 1.0, -1, 0.5, 2, 30, -30, 1e-300, math.inf, -math.inf, math.nan])
    x = torch.cat([edges.double(), randn(4000, seed=5).double(), randn(500, seed=6).double() * 9])
    x = x.abs() if name in ("log1p", "log2", "log10", "rsqrt", "acosh") else x
    x = x[x.abs() < 1] if name == "atanh" else 2 * x + 1.5 if name == "acosh" else x
    x = x[(x < 700) | ~x.isfinite()]  # torch's softplus of f64 and its like overflow there
    found = []
    for space in (ops, torch):
        v = x.clone().requires_grad_()
        f = getattr(ops, name) if space is ops else of_torch(name)
        if name == "gelu" and space is torch:  # whose own loses the tail
            f = lambda v: v * (torch.erfc(-v * math.sqrt(0.5)) / 2)
        y = f(v, threshold=1e9) if name == "softplus" else f(v)
        found.append((y.detach(), *torch.autograd.grad(y.sum(), v)))
    for ours, theirs, units in zip(*found, (8, 64)):
        gap = (ours - theirs).abs()
        near = gap <= units * 2**-52 * theirs.abs() + units * 2**-56
        assert bool((near | (ours == theirs) | theirs.isnan()).all()), x[~near][:5]
    assert raw(ops.exp2(torch.arange(-1074.0, 1024).double())) == raw(
        torch.ldexp(torch.ones(2098).double(), torch.arange(-1074, 1024))
    )


def test_powers_of_binary64():
    values = [
        0.0,
        -0.0,
        1,
        -1,
        2,
        -2,
        0.5,
        -0.5,
        3,
        -3,
        1e300,
        1e-300,
        math.inf,
        -math.inf,
        math.nan,
    ]
    x, y = (
        v.reshape(-1) for v in torch.meshgrid(*[torch.tensor(values).double()] * 2, indexing="ij")
    )
    ours, theirs = ops.pow(x, y), torch.pow(x, y)
    same = (ours == theirs) & (ours.signbit() == theirs.signbit()) | ours.isnan() & theirs.isnan()
    near = (ours - theirs).abs() <= 4 * 2**-52 * theirs.abs()
    assert bool((same | near).all()), (x[~(same | near)], y[~(same | near)])
    a, b = randn(2000).double().abs() + 0.01, randn(2000, seed=3).double().clamp(-20, 20)
    gap = (ops.pow(a, b) - torch.pow(a, b)).abs() / torch.pow(a, b)
    assert bool((gap <= (4 + b.abs()) * 2**-52).all())


def test_refusals():
    x = torch.ones(2, 3)
    refused(NotImplementedError, "elements of float64 .operands meet", ops.atan2, x, x.double())
    refused(
        RuntimeError, r"add: shapes \[2, 3\] and \[2\] do not broadcast", ops.add, x, torch.ones(2)
    )
    refused(NotImplementedError, "add: argument 'out'", ops.add, x, x, out=x)
    assert torch.equal(ops.add(x, x, out=None), x + x)
    refused(TypeError, "add: argument 'other': expected .* got list", ops.add, x, [1])
    refused(TypeError, "sin: argument 'input': expected .* got list", ops.sin, [1])
    refused(
        RuntimeError,
        "add: argument 'other': expected an array on torch's cpu .* NumPy",
        ops.add,
        x,
        np.ones(3),
    )
    refused(NotImplementedError, "sin: argument 'input': elements of float64", ops.sin, x.double())
    refused(RuntimeError, "At least one of", ops.clamp, x)
    refused(NotImplementedError, "where: arguments 'input' and 'other'", ops.where, x > 0)
    refused(RuntimeError, "condition", ops.where, x, x, x)
    refused(RuntimeError, "bitwise_and: expected operands of integers", ops.bitwise_and, x, x)
    refused(RuntimeError, "the number", ops.add, torch.ones(2, dtype=torch.int32), 2**40)
    refused(NotImplementedError, "complex64", ops.abs, x.to(torch.complex64))
