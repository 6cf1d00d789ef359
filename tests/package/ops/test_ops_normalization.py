"""Normalizations."""

import pytest
from accuracy import EPSILON, case, check, ids, invar, near, ops, randn, raw, refused, torch

X, WIDE, IMAGES = randn(3, 4, 6), randn(5, 3000, seed=1), randn(2, 6, 4, 5, seed=2)
W, B = randn(6, seed=3), randn(6, seed=4)
ONE = torch.ones(6)

CASES = [
    case("rms_norm", X, (6,)),
    case("rms_norm", X, (6,), W),
    case("rms_norm", X, (4, 6), randn(4, 6), 1e-5),
    case("rms_norm", X, [6], W, eps=1e-3),
    case("rms_norm", WIDE, (3000,), eps=1e-6),
    case("rms_norm", torch.empty(0, 6), (6,)),
    case("layer_norm", X, (6,), error=16),
    case("layer_norm", X.double(), (6,), W.double(), B.double(), narrow=False),
    case("rms_norm", X.double(), (4, 6), eps=1e-6, narrow=False),
    case("layer_norm", X, (6,), W, B, error=16),
    case("layer_norm", X, (6,), None, B, error=16),
    case("layer_norm", X, (4, 6), randn(4, 6), None, 1e-3, error=16),
    case("layer_norm", WIDE, (3000,), error=32),
    *(case("group_norm", IMAGES, g, *m, error=32) for g in (1, 2, 3, 6) for m in [(), (W, B)]),
    case("group_norm", IMAGES, 2, W),
    case("group_norm", randn(2, 6), 2),
    case("group_norm", X.mT, 3, None, B, 1e-2),
    case("instance_norm", IMAGES, error=32),
    case("instance_norm", IMAGES, weight=W, bias=B, error=32),
    case("instance_norm", IMAGES, B, W.abs(), use_input_stats=False, error=32),
    case("batch_norm", IMAGES, B, W.abs()),
    case("batch_norm", IMAGES, B, W.abs(), W, B, False, 0.1, 1e-3),
    case("batch_norm", randn(7, 6), B, W.abs(), None, B),
    case("batch_norm", IMAGES, None, None, W, B, True, error=32),
    case("batch_norm", randn(9, 6), None, None, training=True, error=32),
    case("normalize", IMAGES),
    case("normalize", X, 1.0, -1),
    case("cosine_similarity", X, X + 1),
    case("cosine_similarity", X, X.flip(0), dim=2),
]


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_normalizations(c):
    check(c)


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_running_statistics_are_updated(name):
    found, wanted = [], []
    for module, runs, dtype in (
        (ops, found, torch.float32),
        (torch.nn.functional, wanted, torch.float64),
    ):
        mean, var = torch.zeros(6, dtype=dtype), torch.ones(6, dtype=dtype)
        for i in range(3):
            getattr(module, name)(
                randn(4, 6, 5, seed=i).to(dtype), mean, var, W.to(dtype), B.to(dtype), True, 0.3
            )
        runs.extend([mean, var])
    for got, want in zip(found, wanted):
        near(got, want)
    mean, var = torch.zeros(6).numpy(), torch.ones(6).numpy()
    for i in range(3):
        getattr(ops, name)(
            randn(4, 6, 5, seed=i).numpy(), mean, var, W.numpy(), B.numpy(), True, 0.3
        )
    assert [raw(mean), raw(var)] == [raw(v) for v in found]


@pytest.mark.parametrize(
    "name,more", [("rms_norm", ((3000,),)), ("layer_norm", ((3000,),)), ("normalize", (2.0, 1))]
)
def test_a_row_does_not_depend_on_its_batch(name, more):
    whole = getattr(ops, name)(WIDE, *more)
    for i in range(5):
        assert raw(getattr(ops, name)(WIDE[i : i + 1], *more)) == raw(whole[i])


def test_narrow_weights_are_widened():
    w = W.bfloat16()
    assert raw(ops.rms_norm(X, (6,), w)) == raw(ops.rms_norm(X, (6,), w.float()))
    got = ops.layer_norm(X.bfloat16(), (6,), W, B)
    assert raw(got) == raw(ops.layer_norm(X.bfloat16().float(), (6,), W, B).bfloat16())


@pytest.mark.parametrize(
    "shapes", [((4, 1), (4, 6)), ((1, 6), (3, 1)), ((6,), (3, 6)), ((2, 1, 5), (3, 1))]
)
@pytest.mark.parametrize("dim", [-1, -2])
def test_cosines_where_a_dimension_is_broadcast(shapes, dim):
    """The norms are those of the broadcast operands: no cosine is beyond 1."""
    if dim < -min(map(len, shapes)) and len(shapes[0]) != len(shapes[1]):
        dim = -1
    found = []
    for space, dtype in (
        (ops, torch.float32),
        (ops, torch.float64),
        (torch.nn.functional, torch.float64),
    ):
        made = torch.Generator().manual_seed(3)
        x = [torch.randn(s, generator=made).to(dtype).requires_grad_() for s in shapes]
        y = space.cosine_similarity(*x, dim=dim)
        found.append([v.detach().double() for v in (y, *torch.autograd.grad((y * y).sum(), x))])
    for theirs, *ours in zip(*reversed(found)):
        for v in ours:
            near(v + 1, theirs + 1, 100, EPSILON[torch.float32])  # gradients cancel at cosines of 1
    assert found[0][0].abs().max() < 1 + 1e-6


def test_batch_norm_in_eval_then_train_then_backward():
    """The gradient is that of the statistics at the time of the forward pass."""
    m = invar.nn.BatchNorm1d(6).eval()
    x = torch.ones(3, 6, requires_grad=True)
    y = m(x)
    m.train()(torch.arange(18.0).reshape(3, 6))
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3, 6), (1 + 1e-5) ** -0.5))


def test_refusals():
    refused(RuntimeError, "rms_norm: argument 'normalized_shape'", ops.rms_norm, X, (5,))
    refused(
        RuntimeError,
        "layer_norm: argument 'weight': expected shape",
        ops.layer_norm,
        X,
        (6,),
        W[:5],
    )
    refused(
        RuntimeError,
        "layer_norm: argument 'bias': expected shape",
        ops.layer_norm,
        X,
        (6,),
        W,
        B[:5],
    )
    refused(RuntimeError, "rms_norm: argument 'normalized_shape'", ops.rms_norm, X, (5,), W[:5])
    refused(RuntimeError, "rms_norm: argument 'weight': .* NumPy", ops.rms_norm, X, (6,), W.numpy())
    refused(RuntimeError, "argument 'weight': expected elements of float64", ops.layer_norm, X.double(), (6,), W)  # fmt: skip
    refused(
        RuntimeError,
        "expected elements of a floating type, got int64",
        ops.rms_norm,
        X.long(),
        (6,),
    )
    refused(RuntimeError, "num_groups", ops.group_norm, IMAGES, 4)
    refused(
        RuntimeError, "batch_norm: arguments 'running_mean'", ops.batch_norm, IMAGES, None, None
    )
    refused(
        RuntimeError,
        "more than 1 value per channel",
        ops.batch_norm,
        randn(1, 6),
        None,
        None,
        training=True,
    )
    refused(RuntimeError, "at least 2 dimensions", ops.batch_norm, W, None, None, training=True)
