"""Reductions, scans and what finds elements."""

import pytest
from accuracy import EPSILON, case, check, ids, near, ops, randn, raw, refused, torch

X, LONG, FIVE = randn(3, 4, 5), randn(3, 9001, seed=1), randn(2, 3, 2, 3, 2, seed=2)
SMALL = 1 + randn(4, 6) / 64
INTS = torch.tensor([[5, -7, 5, 0], [2, 2, -9, 1]])
TIES = torch.tensor(
    [
        [1.0, 3, 3, -3, -3],
        [float("nan"), 1, float("nan"), 9, 0],
        [-0.0, 0, -0.0, 0, 0],
        [float("-inf")] * 5,
    ]
)
TRUTH = torch.tensor([[True, False, True], [True, True, True]])
NONE = torch.empty(3, 0)
KEPT = [
    {},
    {"dim": 1},
    {"dim": -1, "keepdim": True},
    {"dim": (0, 2)},
    {"dim": (2, -3), "keepdim": True},
]

CASES = [
    *(case(n, X, **k) for n in ("sum", "mean", "var", "std", "norm") for k in KEPT),
    *(
        case(n, X, **{"dim": (), **k})
        for n in ("amax", "amin", "logsumexp")
        for k in KEPT
        if n != "logsumexp" or k
    ),
    *(case(n, LONG, dim=1) for n in ("sum", "mean", "std", "var", "logsumexp", "amax", "argmin")),
    *(case(n, FIVE, dim=(1, 3)) for n in ("sum", "mean", "amax", "var", "logsumexp")),
    *(
        case(n, torch.tensor(2.5), **k)
        for n in ("sum", "mean", "amax", "prod", "argmax", "logsumexp", "cumsum")
        for k in [{"dim": 0}]
    ),
    *(case(n, torch.tensor(2.5)) for n in ("sum", "mean", "max", "prod", "argmax")),
    case("prod", SMALL, error=64),
    case("prod", SMALL, 1, error=32),
    case("prod", SMALL, dim=0, keepdim=True, error=32),
    case("var", X, 1, False),
    case("var", X, False),
    case("var", X, (0, 1), correction=0),
    case("std", X, 2, True, True),
    case("var_mean", X, 1),
    case("var_mean", X),
    case("max", X),
    case("min", X),
    *(case(n, X, d) for n in ("max", "min", "argmax", "argmin") for d in (0, -1)),
    case("max", X, 1, True),
    case("argmin", X, 1, keepdim=True),
    case("argmax", X, keepdim=True),
    case("argmax", X),
    case("max", X, randn(4, 1)),
    case("min", X, randn(5)),
    *(
        case(n, X, p, 1)
        for n in ("norm", "vector_norm")
        for p in (1, 2, 0, 3, float("inf"), -float("inf"))
    ),
    case("norm", X),
    case("norm", X, "fro", (0, 1)),
    case("norm", X, 2, 0, True),
    *(case(n, LONG[:, :1000], 1, error=64) for n in ("cumsum",)),
    case("cumprod", SMALL, 0, error=32),
    case("cumsum", X, 0),
    case("cumsum", X, -2),
    *(
        case(n, INTS)
        for n in ("sum", "prod", "amax", "amin", "max", "min", "argmin", "count_nonzero")
    ),
    *(
        case(n, INTS, dim=1)
        for n in (
            "sum",
            "prod",
            "amax",
            "amin",
            "max",
            "min",
            "argmin",
            "cumsum",
            "cumprod",
            "count_nonzero",
            "all",
            "any",
            "logsumexp",
        )
    ),
    *(
        case(n, INTS.to(d), dim=1)
        for n in ("sum", "amax", "min", "argmax")
        for d in (torch.int32, torch.int16, torch.int8, torch.uint8)
    ),
    *(case(n, TRUTH, dim=1) for n in ("sum", "amax", "all", "any", "cumsum")),
    case("all", TRUTH),
    case("any", X),
    case("all", X, (0, 1), True),
    case("any", NONE),
    case("all", NONE, 1),
    case("count_nonzero", X, (0, 2)),
    *(case(n, NONE, 1) for n in ("sum", "prod", "mean", "logsumexp", "norm", "cumsum")),
    *(case(n, NONE, 0) for n in ("amax", "sum")),
    case("sum", NONE),
    case("mean", NONE, 0),
    *(case(n, TIES[:2], 1, narrow=False) for n in ("amax", "amin", "argmax", "argmin", "sum")),
    *(case(n, TIES[[0, 2, 3]], 1) for n in ("argmax", "argmin", "max", "logsumexp")),
    case(
        "sum",
        X,
        1,
        dtype=torch.float64,
        narrow=False,
        torch=lambda x, d, dtype: torch.sum(x, d, dtype=dtype),
    ),
    case("sum", INTS, dtype=torch.float32),
    case("mean", INTS, 1, dtype=torch.float32),
    case("cumsum", INTS, 0, dtype=torch.float32),
    case("sum", INTS, dtype=torch.int32),
    case("dist", X, X + 1),
    case("vector_norm", X),
]


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_reductions(c):
    check(c)


@pytest.mark.parametrize(
    "name", ["max", "min", "argmax", "argmin", "amax", "sum", "mean", "prod", "norm"]
)
def test_binary64(name):
    x = torch.cat([LONG[:, :300].double() / 3, LONG[:, :300].double() / 3], 1)
    got, want = getattr(ops, name)(x, dim=1), getattr(torch, name)(x, dim=1)
    if name in ("max", "min"):
        assert torch.equal(got.indices, want.indices) and torch.equal(got.values, want.values)
    else:
        near(got, want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_first_of_equals_and_of_nan_is_found(dtype):
    x = TIES.to(dtype)
    assert ops.argmax(x, 1).tolist() == [1, 0, 0, 0] and ops.argmin(x, 1).tolist() == [3, 0, 0, 0]
    assert ops.max(x, 1).values[1].isnan() and ops.argmax(x) == 5
    assert ops.argmax(torch.tensor([2**53, 2**53 + 1]), 0) == 1


@pytest.mark.parametrize(
    "name", ["sum", "mean", "var", "std", "amax", "logsumexp", "norm", "argmax", "cumsum"]
)
def test_a_row_does_not_depend_on_its_batch(name):
    whole = getattr(ops, name)(LONG, dim=1)
    for i in range(3):
        assert raw(getattr(ops, name)(LONG[i : i + 1], dim=1)) == raw(whole[i : i + 1])
    order = [2, 0, 1]
    assert raw(getattr(ops, name)(LONG[order], dim=1)) == raw(whole[order])


def test_the_order_of_a_sum_is_that_of_the_specification():
    x = torch.zeros(300)
    x[0], x[128], x[256] = 2**24, 1, 1
    assert ops.sum(x) == 2**24  # the examples of spec/reduction.md
    x = torch.zeros(300)
    x[0], x[1], x[129] = 2**24, 1, 1
    assert ops.sum(x) == 2**24 + 2


def test_equal():
    assert ops.equal(X, X.clone()) and not ops.equal(X, X + 1) and not ops.equal(X, X[0])
    assert not ops.equal(TIES, TIES)


def test_truth_over_no_dimensions_and_of_bytes():
    x = torch.tensor([[1, 0, 2], [3, 4, 5]])
    for name in ("all", "any"):
        for dtype in (torch.uint8, torch.int64, torch.float32, torch.bool):
            for more in (
                {},
                {"dim": []},
                {"dim": ()},
                {"dim": 1},
                {"dim": (0, 1), "keepdim": True},
            ):
                ours = getattr(ops, name)(x.to(dtype), **more)
                theirs = getattr(torch, name)(x.to(dtype), **more)
                assert ours.dtype == theirs.dtype and torch.equal(ours, theirs), (name, dtype, more)


@pytest.mark.parametrize("correction", [2, 0.5, 3])
def test_other_corrections(correction):
    for name in ("var", "std"):
        x = LONG[:, :20].clone().requires_grad_()
        wide = x.detach().double().requires_grad_()
        ours = getattr(ops, name)(x, 1, correction=correction)
        theirs = getattr(torch, name)(wide, 1, correction=correction)
        near(ours.double(), theirs, 64, EPSILON[torch.float32])
        grads = [
            torch.autograd.grad(y.sum(), v)[0].double() for y, v in ((ours, x), (theirs, wide))
        ]
        near(*grads, 256, EPSILON[torch.float32])


def test_refusals():
    x = torch.ones(2, 3)
    refused(
        IndexError,
        r"sum: argument 'dim': Dimension out of range \(expected to be in range of \[-2, 1\], but got 5\)",
        ops.sum,
        x,
        5,
    )
    refused(RuntimeError, "multiple times", ops.sum, x, (0, 0))
    refused(TypeError, "sum: argument 'dim': expected int, got str", ops.sum, x, "0")
    refused(
        RuntimeError,
        "mean: argument 'input': expected elements of a floating type, got int64",
        ops.mean,
        x.long(),
    )
    refused(RuntimeError, "max: Expected reduction dim", ops.max, NONE)
    refused(IndexError, "amax: .* dim 1 to have non-zero size", ops.amax, NONE, 1)
    refused(IndexError, "argmax: .* dim 1", ops.argmax, NONE, 1)
    refused(NotImplementedError, "'nuc'", ops.norm, x, "nuc")
    refused(NotImplementedError, "sum: argument 'out'", ops.sum, x, out=x)
    refused(TypeError, "sum: argument 'input': expected .* got list", ops.sum, [1.0])
    refused(TypeError, "'dtype'", ops.sum, x, dtype="nonsense")
