"""Gradients of movement, scans, reductions, quantization and rotations, against torch's in
float64."""

import math

import gradients
import pytest
import torch
from gradients import compare, first, random
from invar import primitives as p

X = random(3, 4, 5, seed=1)

REDUCED = {
    "reduce_sum": lambda x, **d: x.sum(**d),
    "reduce_mean": lambda x, **d: x.mean(**d),
    "reduce_max": lambda x, **d: x.amax(**d),
    "reduce_min": lambda x, **d: x.amin(**d),
    "reduce_l1": lambda x, **d: x.abs().sum(**d),
    "reduce_l2": lambda x, **d: torch.linalg.vector_norm(x, **d),
    "reduce_sum_square": lambda x, **d: (x * x).sum(**d),
    "reduce_log_sum": lambda x, **d: x.abs().sum(**d).log(),
    "reduce_log_sum_exp": lambda x, **d: x.logsumexp(**d),
}


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 2], [0, 1, 2]])
@pytest.mark.parametrize("op", REDUCED)
def test_reductions(op, axes):
    for keepdims in (0, 1):
        x = X.abs() if op == "reduce_log_sum" else X
        compare(
            lambda x: getattr(p, op)(x, axes=axes, keepdims=keepdims),
            lambda x: REDUCED[op](x, dim=axes, keepdim=bool(keepdims)),
            [x],
        )


@pytest.mark.parametrize("axes", [[1], [0, 2]])
@pytest.mark.parametrize("correction", [0, 1])
def test_variance(axes, correction):
    options = dict(axes=axes, keepdims=0, correction=correction)
    for op, theirs in (("reduce_var", torch.var), ("reduce_std", torch.std)):
        compare(
            lambda x: getattr(p, op)(x, **options),
            lambda x: theirs(x, dim=axes, correction=correction),
            [X],
        )


@pytest.mark.parametrize("zeros", [[], [(0, 0)], [(0, 0), (0, 2), (1, 3)]])
def test_products_with_zeros(zeros):
    x = random(3, 4, seed=2)
    for place in zeros:
        x[place] = 0
    compare(lambda x: p.reduce_prod(x, axes=[1], keepdims=0), lambda x: x.prod(1), [x])
    compare(
        lambda x: p.reduce_prod(x, axes=[0, 1], keepdims=0),
        lambda x: x.reshape(-1).prod(0),
        [x],
    )
    compare(lambda x: p.cumprod(x, axis=1, exclusive=0, reverse=0), lambda x: x.cumprod(1), [x])
    compare(
        lambda x: p.cumprod(x, axis=0, exclusive=0, reverse=1),
        lambda x: x.flip(0).cumprod(0).flip(0),
        [x],
    )
    ones = lambda x: torch.cat([torch.ones_like(x[:, :1]), x[:, :-1]], 1)
    compare(
        lambda x: p.cumprod(x, axis=1, exclusive=1, reverse=0), lambda x: ones(x).cumprod(1), [x]
    )


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_sums_of_prefixes(exclusive, reverse):
    def theirs(x):
        x = x.flip(1) if reverse else x
        y = x.cumsum(1) - x if exclusive else x.cumsum(1)
        return y.flip(1) if reverse else y

    compare(lambda x: p.cumsum(x, axis=1, exclusive=exclusive, reverse=reverse), theirs, [X])


def test_extremes_share_and_roots_of_zero():
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, -0.0, -1.0]])
    for ours, theirs in ((p.reduce_max, torch.amax), (p.reduce_min, torch.amin)):
        found = first(lambda x: ours(x, axes=[1], keepdims=0), [x])[0]
        gradients.near(found, first(lambda x: theirs(x.double(), 1), [x])[0], 1)
    zeros = torch.zeros(2, 3)
    found = first(lambda x: p.reduce_l2(x, axes=[1], keepdims=0), [zeros])[0]
    assert torch.equal(found, zeros)
    found = first(lambda x: p.reduce_std(x, axes=[1], keepdims=0, correction=1), [zeros])[0]
    assert torch.equal(found, zeros)
    low = torch.tensor([[-math.inf, -math.inf], [-math.inf, 1.0]])
    found = first(lambda x: p.reduce_log_sum_exp(x, axes=[1], keepdims=0), [low])[0]
    assert found.tolist() == [[0.0, 0.0], [0.0, 2.0]]


MOVED = {
    "expand": (lambda x: p.expand(x, shape=(2, 3, 4, 5)), lambda x: x.expand(2, 3, 4, 5)),
    "transpose": (lambda x: p.transpose(x, perm=[2, 0, 1]), lambda x: x.permute(2, 0, 1)),
    "slice": (
        lambda x: p.slice(x, starts=[0, 1, -1], steps=[2, 1, -2], shape=(2, 2, 3)),
        lambda x: x.flip(2)[0::2, 1:3, 0::2],
    ),
    "slice step": (
        lambda x: p.slice(x, starts=[0, 0, 1], steps=[1, 1, 3], shape=(3, 4, 2)),
        lambda x: x[..., 1::3],
    ),
    "concat": (lambda x: p.concat(x, x[:, :2], axis=1), lambda x: torch.cat([x, x[:, :2]], 1)),
    "pad": (
        lambda x: p.pad(x, begins=[1, 0, -1], shape=(5, 4, 6)),
        lambda x: torch.nn.functional.pad(x, (-1, 2, 0, 0, 1, 1)),
    ),
    "pad_edge": (
        lambda x: p.pad_edge(x, begins=[0, 2, 1], shape=(3, 7, 7)),
        lambda x: torch.nn.functional.pad(x, (1, 1, 2, 1), mode="replicate"),
    ),
    "pad_reflect": (
        lambda x: p.pad_reflect(x, begins=[0, 2, 1], shape=(3, 7, 7)),
        lambda x: torch.nn.functional.pad(x, (1, 1, 2, 1), mode="reflect"),
    ),
    "pad_wrap": (
        lambda x: p.pad_wrap(x, begins=[0, 2, 1], shape=(3, 7, 7)),
        lambda x: torch.nn.functional.pad(x, (1, 1, 2, 1), mode="circular"),
    ),
    "trilu": (lambda x: p.trilu(x, upper=0, k=1), lambda x: x.tril(1)),
    "reshape": (lambda x: p.reshape(x, shape=(12, 5)), lambda x: x.reshape(12, 5)),
    "reverse_sequence": (
        lambda x: p.reverse_sequence(x, torch.tensor([2, 3, 0, 1]), time_axis=0),
        lambda x: torch.stack(
            [torch.cat([x[:n, i].flip(0), x[n:, i]]) for i, n in enumerate([2, 3, 0, 1])], 1
        ),
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_movement(name):
    compare(*MOVED[name], [X], factor=8)


@pytest.mark.parametrize("name", MOVED)
def test_movement_of_narrow_elements(name):
    """Sums of gradients are made in f32 and rounded once."""
    x = X.bfloat16()
    found = first(lambda x: p.cast(MOVED[name][0](x), dtype="f32"), [x])[0]
    wide = first(MOVED[name][0], [x.float()])[0]
    assert found.dtype == torch.bfloat16 and torch.equal(found, wide.bfloat16())


@pytest.mark.parametrize("crd", [0, 1])
def test_blocks(crd):
    x = random(2, 8, 3, 2, seed=4)
    ours = lambda x: p.depth_to_space(x, blocksize=2, crd=crd)
    grad = torch.arange(float(x.numel())).reshape(2, 2, 6, 4)
    found = first(ours, [x], grad)[0]
    assert torch.equal(ours(found), grad)  # a permutation: its inverse brought the gradient back
    ours = lambda x: p.space_to_depth(x, blocksize=2)
    x, grad = random(2, 2, 6, 4, seed=5), torch.arange(96.0).reshape(2, 8, 3, 2)
    assert torch.equal(ours(first(ours, [x], grad)[0]), grad)


def test_values_of_padding_and_classes():
    x, fill = random(2, 3, seed=6), random(1, seed=7)
    compare(
        lambda x, fill: p.pad(x, fill.reshape(()), begins=[1, -1], shape=(4, 4)),
        lambda x, fill: torch.cat(
            [
                torch.cat([x[:, 1:], fill.expand(2, 2)], 1).new_zeros(0, 4),
                fill.expand(1, 4),
                torch.cat([x[:, 1:], fill.expand(2, 2)], 1),
                fill.expand(1, 4),
            ]
        ),
        [x, fill],
        factor=8,
    )
    indices = torch.tensor([0, 2, -1, 7])
    hot = torch.zeros(4, 3, dtype=torch.float64)
    hot[0, 0] = hot[1, 2] = hot[2, 2] = 1
    compare(
        lambda v: p.one_hot(indices, v, axis=1, shape=(4, 3), dtype="f32"),
        lambda v: v[0] * (1 - hot) + v[1] * hot,
        [random(2, seed=8)],
        factor=8,
    )
    start, step = random(1, seed=9)[0], random(1, seed=10)[0]
    compare(
        lambda a, b: p.iota(a, b, shape=(7,)),
        lambda a, b: a + torch.arange(7).double() * b,
        [start, step],
        factor=8,
    )


def test_conversions():
    x = random(2, 3, seed=11)
    found = first(lambda x: p.cast(p.cast(x, dtype="bf16"), dtype="f32"), [x])[0]
    assert found.dtype == torch.float32 and found.flatten().tolist() == [1, 2, 3, 4, 5, 6]
    y = p.cast(x.clone().requires_grad_(), dtype="i32")
    assert not y.requires_grad
    compare(lambda x: p.cast(x, dtype="f64"), lambda x: x, [x])


@pytest.mark.parametrize("block", [0, 2])
@pytest.mark.parametrize("kind", ["one", "axis"])
def test_scales(block, kind):
    made = torch.Generator().manual_seed(3)
    q = torch.randint(-100, 100, (3, 5, 2), dtype=torch.int8, generator=made)
    shape = (3, 3, 2) if block else {"one": (1,), "axis": (5,)}[kind]
    scale, zeros = random(*shape, seed=12), torch.randint(-9, 9, shape, dtype=torch.int8)

    def spread(x):
        if block:
            return x.repeat_interleave(2, 1)[:, :5]
        return x.reshape(1, -1, 1)

    for more in ([], [zeros]):
        compare(
            lambda s: p.dequantize_linear(
                q, s, *more, axis=1, block=block, shape=q.shape, dtype="f32"
            ),
            lambda s: (q.double() - (spread(more[0].double()) if more else 0)) * spread(s),
            [scale],
        )


@pytest.mark.parametrize("heads_first", [0, 1])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rotary", [0, 4])
def test_rotations(heads_first, interleaved, rotary):
    b, s, h, d = 2, 3, 2, 6
    half = (rotary or d) // 2
    x = random(*((b, h, s, d) if heads_first else (b, s, h * d)), seed=13)
    cos, sin = random(b, s, half, seed=14), random(b, s, half, seed=15)

    def theirs(x, cos, sin):
        y = x.transpose(1, 2) if heads_first else x.reshape(b, s, h, d)
        turned, rest = y[..., : 2 * half], y[..., 2 * half :]
        c, z = cos.unsqueeze(2), sin.unsqueeze(2)
        first, second = (
            (turned[..., 0::2], turned[..., 1::2])
            if interleaved
            else (turned[..., :half], turned[..., half:])
        )
        pair = first * c - second * z, second * c + first * z
        y = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
        y = torch.cat([y, rest], -1)
        return y.transpose(1, 2) if heads_first else y.reshape(b, s, h * d)

    options = dict(num_heads=h, rotary_dim=rotary, interleaved=interleaved, heads_first=heads_first)
    compare(lambda *a: p.rope(*a, **options), theirs, [x, cos, sin], factor=16)


def test_no_elements():
    for shape, axes in (((0, 3), [0]), ((2, 0), [1])):
        x = torch.zeros(shape)
        for op in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_l2", "reduce_log_sum_exp"):
            found = first(lambda x: getattr(p, op)(x, axes=axes, keepdims=0), [x])[0]
            assert found.shape == shape


OF_BINARY64 = {
    **{
        op: lambda x, op=op: getattr(p, op)(x, axes=[0, 2], keepdims=0)
        for op in (
            "reduce_sum",
            "reduce_mean",
            "reduce_prod",
            "reduce_max",
            "reduce_min",
            "reduce_l1",
            "reduce_l2",
            "reduce_sum_square",
        )
    },
    "cumsum": lambda x: p.cumsum(x, axis=1, exclusive=1, reverse=1),
    "cumprod": lambda x: p.cumprod(x, axis=1, exclusive=0, reverse=0),
    **{name: MOVED[name][0] for name in MOVED if not name.startswith("pad_")},
}


@pytest.mark.parametrize("name", OF_BINARY64)
def test_binary64(name):
    """torch's own checks, against differences of the function itself."""
    x = random(3, 4, 5, seed=16, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(OF_BINARY64[name], [x], fast_mode=True)
    assert torch.autograd.gradgradcheck(OF_BINARY64[name], [x], fast_mode=True)


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_mean"])
def test_the_gradient_of_a_sum_is_a_view_where_nothing_asks_for_its_own(op):
    x, grad = random(3, 4, 5, seed=17).requires_grad_(), random(3, 5, seed=18)
    y = getattr(p, op)(x, axes=[1], keepdims=0)
    view = torch.autograd.grad(y, x, grad, retain_graph=True)[0]
    made = torch.autograd.grad(y, x, grad, create_graph=True)[0]
    assert view.stride(1) == 0 and made.is_contiguous() and torch.equal(view, made)
    y.backward(grad)
    assert x.grad.is_contiguous() and torch.equal(x.grad, made)


@pytest.mark.parametrize(
    "inner",
    [
        lambda x: p.mul(x, x),
        lambda x: p.exp(x),
        lambda x: p.softmax(x, axis=1),
        lambda x: p.transpose(x, perm=[1, 0]),
        lambda x: p.rmsnorm(x, torch.ones(5), epsilon=1e-6),
        lambda x: p.matmul(x, x, trans_a=0, trans_b=1),
    ],
)
def test_rules_take_gradients_that_are_views(inner):
    x = random(4, 5, seed=19).requires_grad_()
    y = inner(x)
    row = random(y.shape[1], seed=20)
    view = torch.autograd.grad(y, x, row.expand(y.shape), retain_graph=True)[0]
    assert torch.equal(view, torch.autograd.grad(y, x, row.expand(y.shape).contiguous())[0])
