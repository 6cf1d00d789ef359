"""Elements by index, and order."""

import numpy as np
import pytest
from accuracy import EPSILON, case, check, ids, near, ops, randn, raw, refused, torch

functional = torch.nn.functional
X, W = randn(4, 5, 6), randn(9, 7, seed=1)
I = torch.tensor([[3, 1, 8, 3], [0, 0, 7, 2]])
PLACES = torch.tensor([[0, 2, 2, 1], [3, 3, 0, 2]])
SPREAD = randn(4, 4, seed=2)
MANY = torch.randint(0, 3, (4, 5, 6), generator=torch.Generator().manual_seed(3))
SCORES = torch.tensor([[3.0, 1, 3, -0.0, 0.0, float("inf"), 1], [2, 2, 2, -1, -2, 5, 4]])
BIG = torch.tensor([[2**53, 2**53 + 1, -5, 2**62, -(2**62), 2**53 + 1, 0]])
OFFSETS = torch.tensor([0, 2, 2, 5, 8])
FLAT = torch.tensor([3, 1, 8, 3, 0, 0, 7, 2])

CASES = [
    case("embedding", I, W),
    case("embedding", I[0, 0], W),
    case("embedding", I, W, 3),
    case("embedding", I.int(), W),
    case("embedding", I, W, padding_idx=-1),
    *(case("embedding_bag", I, W, mode=m) for m in ("sum", "mean", "max")),
    *(case("embedding_bag", FLAT, W, OFFSETS, mode=m) for m in ("sum", "mean", "max")),
    *(case("embedding_bag", I, W, mode=m, padding_idx=3) for m in ("sum", "mean", "max")),
    *(
        case("embedding_bag", FLAT, W, OFFSETS, mode=m, padding_idx=0)
        for m in ("sum", "mean", "max")
    ),
    case("embedding_bag", I, W, mode="sum", per_sample_weights=randn(2, 4)),
    case("embedding_bag", FLAT, W, OFFSETS, mode="sum", per_sample_weights=randn(8)),
    case("embedding_bag", FLAT, W, OFFSETS, include_last_offset=True),
    case("gather", SPREAD, 0, PLACES),
    case("gather", SPREAD, 1, PLACES),
    case("gather", SPREAD, -1, PLACES[:, :2]),
    case("gather", MANY, 2, MANY),
    case("take_along_dim", X, X[:, :1].argsort(1), 1),
    case("take_along_dim", X, MANY),
    case("take_along_dim", X[:, :1], MANY, 2),
    case("index_select", X, 1, torch.tensor([4, 0, 0])),
    case("index_select", MANY, -1, torch.tensor(2)),
    case("scatter", SPREAD, 0, PLACES[:, :2], SPREAD * 2),
    case("scatter", SPREAD, 1, PLACES, value=7.0),
    case("scatter", MANY, 0, MANY[:1], 9),
    case("scatter_add", SPREAD, 0, PLACES, SPREAD * 2),
    case("scatter_add", SPREAD, 1, PLACES, SPREAD[:2]),
    case("scatter_add", MANY, 1, MANY, MANY),
    case("scatter_add", MANY.int(), 2, MANY, MANY.int()),
    *(
        case("scatter_reduce", SPREAD, 0, PLACES, SPREAD.flip(0), r)
        for r in ("sum", "prod", "amin", "amax")
    ),
    case("index_add", X, 1, torch.tensor([4, 0, 0]), randn(4, 3, 6)),
    case("index_add", X, 0, torch.tensor([1]), randn(1, 5, 6), alpha=0.5),
    case("index_add", MANY, 2, torch.tensor([5, 5]), MANY[..., :2], alpha=3),
    case("masked_fill", X, X[:, :1] > 0, -1.0, torch=lambda x, m, v: x.masked_fill(m, v)),
    case("masked_fill", MANY, MANY > 1, 5, torch=lambda x, m, v: x.masked_fill(m, v)),
    case("one_hot", I, 9),
    case("one_hot", I),
    case("one_hot", torch.tensor(2), 4),
    *(
        case("topk", torch.tensor([[3.0, 1, -2, 8, 9], [5, 4, 3, 2, 1]]), 3, largest=b)
        for b in (True, False)
    ),
    case("topk", X, 2, 1),
    case("topk", torch.tensor(2.0), 1),
    *(
        case(
            "sort",
            SCORES,
            -1,
            b,
            stable=True,
            torch=lambda x, d, b, stable: torch.sort(x, dim=d, descending=b, stable=True),
        )
        for b in (True, False)
    ),
    *(
        case("sort", v, d, b, torch=lambda x, d, b: torch.sort(x, dim=d, descending=b, stable=True))
        for b in (True, False)
        for v, d in [
            (X, 0),
            (BIG, 1),
            (BIG.clamp(-(2**31), 2**31 - 1).int(), 1),
            (MANY, 1),
            (MANY.to(torch.uint8), 2),
            (SCORES > 1, 1),
            (torch.tensor(1.0), 0),
        ]
    ),
    case("argsort", X, 1),
    case("argsort", X, descending=True),
]


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_indexing(c):
    check(c)


def test_binary64_is_sorted_and_gathered():
    x = torch.cat([X.double() / 3, X.double() / 3], 1)
    x[0, 0, 0], x[0, 1, 0], x[0, 2, 0], x[0, 3, 0] = float("nan"), -0.0, 0.0, -float("inf")
    for descending in (False, True):
        got, want = (
            ops.sort(x, 1, descending),
            torch.sort(x, dim=1, descending=descending, stable=True),
        )
        assert torch.equal(got.indices, want.indices)
    assert raw(ops.gather(x, 1, MANY)) == raw(torch.gather(x, 1, MANY))
    assert torch.equal(ops.embedding(I, W.double()), functional.embedding(I, W.double()))


def test_nan_is_largest_and_equals_keep_their_order():
    x = torch.tensor([1.0, float("nan"), 1.0, float("inf"), float("nan")])
    assert ops.topk(x, 3).indices.tolist() == [1, 4, 3]
    assert ops.sort(x).indices.tolist() == [0, 2, 3, 1, 4]


def test_updates_join_in_order():
    """2^24 + 1 is 2^24: the order of updates shows."""
    x = torch.tensor([2.0**24])
    i = torch.zeros(3, dtype=torch.int64)
    ones = torch.tensor([1.0, 1.0, -1.0])
    assert (
        ops.scatter_add(x, 0, i, ones) == 2**24 - 1
        and ops.scatter_add(x, 0, i, ones.flip(0)) == 2**24 + 0
    )
    assert ops.index_add(x, 0, i, ones) == 2**24 - 1
    assert ops.scatter(x, 0, i, torch.tensor([1.0, 5, 3])) == 3


def test_topk_of_an_array_without_dimensions():
    one = torch.tensor(3.0)
    for k in (0, 1):
        found, wanted = ops.topk(one, k), torch.topk(one, k)
        assert all(torch.equal(a, b) for a, b in zip(found, wanted))


def test_refusals():
    first = "embedding: argument 'input': expected indices of 0 ... 8, got some of "
    refused(IndexError, first + "9 ... 9", ops.embedding, torch.tensor([9]), W)
    refused(IndexError, first + "-1 ... 3", ops.embedding, torch.tensor([-1, 3]), W)
    refused(IndexError, first + "-1 ... -1", ops.embedding, np.array([-1]), W.numpy())
    bag = first.replace("embedding", "embedding_bag")
    refused(IndexError, bag + "-2 ... 0", ops.embedding_bag, torch.tensor([[0, -2]]), W)
    refused(IndexError, "gather: .*index 4", ops.gather, SPREAD, 0, PLACES + 1)
    refused(
        RuntimeError,
        "embedding: argument 'input': expected elements of int64",
        ops.embedding,
        I.float(),
        W,
    )
    refused(NotImplementedError, "max_norm", ops.embedding, I, W, max_norm=1.0)
    refused(NotImplementedError, "sparse", ops.embedding, I, W, sparse=True)
    refused(RuntimeError, "padding_idx", ops.embedding, I, W, 9)
    refused(RuntimeError, "offsets", ops.embedding_bag, FLAT, W)
    refused(RuntimeError, "gather: argument 'index'", ops.gather, SPREAD, 0, PLACES[0])
    refused(
        RuntimeError,
        "scatter_add: argument 'src'",
        ops.scatter_add,
        SPREAD,
        0,
        PLACES,
        SPREAD.long(),
    )
    refused(RuntimeError, "no dimension longer", ops.scatter_add, SPREAD, 0, PLACES, SPREAD[:1])
    for bad in (torch.tensor([-1, 2]), torch.tensor([0, 5])):
        refused(
            RuntimeError, "one_hot: argument 'tensor': expected classes of 0", ops.one_hot, bad, 5
        )
    refused(RuntimeError, "one_hot: argument 'tensor'", ops.one_hot, torch.tensor([-3]))
    refused(RuntimeError, "index_add: argument 'source'", ops.index_add, X, 1, torch.tensor([4]), X)
    refused(RuntimeError, "topk: argument 'k'", ops.topk, SPREAD, 5)
    refused(RuntimeError, "mask", ops.masked_fill, X, X, 1.0)
    assert raw(ops.gather(SPREAD, 0, PLACES - 4)) == raw(ops.gather(SPREAD, 0, PLACES))


JOINS = ["sum", "prod", "mean", "amax", "amin"]


@pytest.mark.parametrize("reduce", JOINS)
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_and_its_gradients(reduce, include_self):
    """Equal extremes, and factors of 0, too; as torch's of binary64."""
    x = torch.tensor([[1.0, 2, 0], [3, 0, 2], [1, 1, 1]])
    source = torch.tensor([[2.0, 2, 0], [0, 3, 0], [3, 2, 5]])
    x = x if include_self else x + 8  # torch counts itself where it has the extreme
    index, found = torch.tensor([[0, 1, 0], [0, 1, 2], [0, 1, 0]]), []
    for dtype, space in ((torch.float64, torch), (torch.float64, ops), (torch.float32, ops)):
        a, b = (v.to(dtype).requires_grad_() for v in (x, source))
        y = space.scatter_reduce(a, 0, index, b, reduce, include_self=include_self)
        grads = torch.autograd.grad(y, (a, b), (x - 0.25).to(dtype))
        found.append([v.detach().double() for v in (y, *grads)])
    for theirs, *ours in zip(*found):
        for v in ours:
            near(v, theirs, 2, EPSILON[torch.float32])


def test_gradients_of_f64_gathers_are_sums_in_f64():
    x = torch.full((3,), 2.0**-40, dtype=torch.float64, requires_grad=True)
    grad = torch.tensor([1.0, 2**-50, 2**-50], dtype=torch.float64)
    ops.index_select(x, 0, torch.tensor([1, 1, 1])).backward(grad)
    assert x.grad.tolist() == [0.0, 1 + 2**-49, 0.0]
