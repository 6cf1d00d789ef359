"""Gradients of convolutions, pools, gathers, scatters, resampling and dropout: against torch's of
binary64, the same bytes for every number of threads and instruction set; random numbers."""

import itertools
import pickle

import numpy as np
import pytest
from conftest import BUILD, cpu_isas

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from invar import ops  # noqa: E402
from invar import primitives as p  # noqa: E402


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def gradients(function, inputs, seed=99):
    """The result and the gradients of the floats among the inputs."""
    inputs = [x.detach().clone() for x in inputs]
    wanted = [x.requires_grad_() for x in inputs if x.is_floating_point()]
    y = function(*inputs)
    grad = normal(*y.shape, seed=seed).to(y.dtype)
    return [y.detach(), *torch.autograd.grad(y, wanted, grad, allow_unused=True)]


def ways():
    """Each instruction set with one and two threads."""
    for isa, threads in itertools.product(["scalar", ""], [1, 2]):
        invar.set_isa(isa)
        invar.set_threads(threads)
        yield isa, threads
    invar.set_threads(0)


def check(ours, theirs, inputs, tolerance=2e-5):
    expected = gradients(theirs, [x.double() if x.is_floating_point() else x for x in inputs])
    first = None
    for way in ways():
        found = gradients(ours, inputs)
        if first is None:
            first = found
            for a, b in zip(found, expected):
                assert (a is None) == (b is None)
                if a is None:
                    continue
                assert a.shape == b.shape
                scale = max(float(b.abs().max()) if b.numel() else 0, 1.0)
                assert torch.allclose(
                    a.double(), b.double(), rtol=tolerance, atol=tolerance * scale
                )
        for a, b in zip(found, first):
            assert a is None or a.numpy().tobytes() == b.numpy().tobytes(), way


CONVOLUTIONS = [  # x, w, strides, padding, dilations, groups
    ((2, 5, 30), (7, 5, 3), [1], [1], [1], 1),
    ((2, 6, 31), (8, 3, 5), [3], [2], [2], 2),
    ((2, 5, 13, 12), (6, 5, 3, 3), [1, 1], [1, 1], [1, 1], 1),
    ((3, 3, 23, 20), (40, 3, 7, 7), [2, 2], [3, 3], [1, 1], 1),
    ((2, 8, 14, 9), (12, 2, 3, 2), [2, 3], [2, 0], [2, 1], 4),
    ((1, 16, 12, 12), (16, 1, 3, 3), [1, 1], [1, 1], [1, 1], 16),
    ((2, 20, 9, 8), (33, 20, 1, 1), [2, 2], [0, 0], [1, 1], 1),
    ((1, 3, 7, 8, 6), (5, 3, 3, 2, 3), [1, 2, 1], [1, 0, 1], [1, 1, 2], 1),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("biased", [True, False])
def test_convolution(case, biased):
    x, w, strides, padding, dilations, groups = case
    named = {"strides": strides, "dilations": dilations, "groups": groups}
    theirs = getattr(F, f"conv{len(x) - 2}d")
    inputs = [normal(*x), normal(*w, seed=1), *([normal(w[0], seed=2)] if biased else [])]
    check(
        lambda *a: p.conv(*a, pads=padding * 2, **named),
        lambda x, w, b=None: theirs(x, w, b, strides, padding, dilations, groups),
        inputs,
    )


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("more", [0, 1])
def test_transposed_convolution(case, more):
    _, w, strides, padding, dilations, groups = case
    x = (2, w[0], *[6, 5, 4][: len(w) - 2])
    more = [more if max(s, d) > 1 else 0 for s, d in zip(strides, dilations)]
    named = {"strides": strides, "dilations": dilations, "groups": groups}
    theirs = getattr(F, f"conv_transpose{len(x) - 2}d")
    check(
        lambda *a: p.conv_transpose(*a, pads=padding * 2, output_padding=more, **named),
        lambda x, w, b: theirs(x, w, b, strides, padding, more, groups, dilations),
        [normal(*x), normal(*w, seed=1), normal(w[1] * groups, seed=2)],
    )


def test_convolution_with_cropped_ends():
    """Negative pads cut off elements, whose gradient is 0."""
    x, w = normal(1, 2, 8, 9).requires_grad_(), normal(3, 2, 3, 3, seed=1).requires_grad_()
    y = p.conv(x, w, strides=[1, 1], dilations=[1, 1], pads=[-1, 0, -2, 1], groups=1)
    grad = normal(*y.shape, seed=2)
    found = torch.autograd.grad(y, [x, w], grad)
    a, b = x.detach().double().requires_grad_(), w.detach().double().requires_grad_()
    expected = torch.autograd.grad(F.conv2d(F.pad(a, (0, 1, -1, -2)), b), [a, b], grad.double())
    for f, e in zip(found, expected):
        assert torch.allclose(f.double(), e, atol=1e-4)
    assert not found[0][:, :, 0].any() and not found[0][:, :, -2:].any()


@pytest.mark.parametrize("transposed", [False, True])
def test_gradient_of_gradient_of_convolution(transposed):
    op = p.conv_transpose if transposed else p.conv
    theirs = F.conv_transpose2d if transposed else F.conv2d
    named = {"output_padding": [1, 0]} if transposed else {}

    def twice(x, w, convolution):
        y = convolution(x, w)
        grads = torch.autograd.grad(y, [x, w], y * y, create_graph=True)
        return torch.autograd.grad(sum((g * g * g).sum() for g in grads), [x, w])

    x, w = normal(2, 4, 6, 7), normal(4, 4, 3, 2, seed=1) / 6
    found = twice(
        x.clone().requires_grad_(),
        w.clone().requires_grad_(),
        lambda x, w: op(
            x, w, strides=[2, 1], dilations=[1, 2], pads=[1, 0, 1, 0], groups=1, **named
        ),
    )
    more = {"output_padding": (1, 0)} if transposed else {}
    expected = twice(
        x.double().requires_grad_(),
        w.double().requires_grad_(),
        lambda x, w: theirs(x, w, stride=(2, 1), padding=(1, 0), dilation=(1, 2), **more),
    )
    for f, e in zip(found, expected):
        assert torch.allclose(f.double(), e, rtol=1e-3, atol=1e-4 * float(e.abs().max()))


def test_gradient_of_narrow_weights_has_their_type():
    w = normal(6, 3, 3, seed=1).bfloat16().requires_grad_()
    x = normal(2, 3, 10)
    y = p.conv(x, w, strides=[1], dilations=[1], pads=[0, 0], groups=1)
    (grad,) = torch.autograd.grad(y, [w], torch.ones_like(y))
    b = w.detach().double().requires_grad_()
    (expected,) = torch.autograd.grad(F.conv1d(x.double(), b).sum(), [b])
    assert grad.dtype == torch.bfloat16 and torch.allclose(grad.double(), expected, rtol=1e-2)


def test_gradient_of_weights_does_not_depend_on_its_neighbours():
    """Each element is a contraction of its own: of some channels the same bytes as of all."""
    x, grad = normal(3, 6, 11, 10), normal(3, 9, 11, 10, seed=1)
    named = {
        "strides": [1, 1],
        "dilations": [1, 1],
        "pads": [1, 1, 1, 1],
        "groups": 1,
        "dtype": "f32",
    }
    whole = p.conv_backward_weight(grad, x, shape=(9, 6, 3, 3), **named)
    part = p.conv_backward_weight(grad[:, 2:5], x[:, 1:2], shape=(3, 1, 3, 3), **named)
    assert torch.equal(part, whole[2:5, 1:2])


class Contributions:
    """An accumulator (invar.autograd.exact) that keeps what it is given."""

    name = "parameter"

    def __init__(self, units):
        self.units, self.found = units, None

    def add(self, found):
        assert self.found is None
        self.found = found.detach().clone()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("units", [6, 3, 1])
def test_contributions_of_units_are_those_of_each_alone(transposed, units):
    from invar.autograd import exact

    op = p.conv_transpose if transposed else p.conv
    named = {"strides": [2, 1], "dilations": [1, 1], "pads": [1, 0, 1, 0], "groups": 2}
    named |= {"output_padding": [0, 0]} if transposed else {}
    w, b = normal(4, 2, 3, 2, seed=1).requires_grad_(), normal(4, seed=2).requires_grad_()
    x = normal(6, 4, 8, 7)
    y = op(x, w, b, **named)
    grad = normal(*y.shape, seed=3)
    kept = [Contributions(units), Contributions(units)]
    for parameter, one in zip((w, b), kept):
        exact.register(parameter, one)
    try:
        op(x, w, b, **named).backward(grad)
    finally:
        for parameter in (w, b):
            exact.unregister(parameter)
    assert w.grad is None and b.grad is None
    rows = 6 // units
    for u in range(units):
        some = slice(u * rows, (u + 1) * rows)
        alone = torch.autograd.grad(op(x[some], w, b, **named), [w, b], grad[some])
        assert all(torch.equal(a, one.found[u]) for a, one in zip(alone, kept))


POOLS = [  # size, kernel, strides, padding, ceil
    ([12], [3], [2], [1], 0),
    ([9, 10], [3, 3], [2, 2], [1, 1], 0),
    ([9, 10], [2, 2], [2, 2], [0, 0], 1),
    ([8, 7], [3, 2], [1, 1], [1, 0], 0),
    ([7, 7], [7, 7], [7, 7], [0, 0], 0),
    ([5, 6, 7], [2, 3, 2], [2, 1, 2], [1, 1, 0], 0),
]


def pool_settings(kernel, strides, padding, ceil):
    return {
        "kernel": kernel,
        "strides": strides,
        "dilations": [1] * len(kernel),
        "pads": padding * 2,
        "ceil_mode": ceil,
    }


@pytest.mark.parametrize("case", POOLS, ids=str)
def test_pools(case):
    size, kernel, strides, padding, ceil = case
    x, n = normal(2, 3, *size), len(size)
    named = pool_settings(kernel, strides, padding, ceil)
    maximum, average = getattr(F, f"max_pool{n}d"), getattr(F, f"avg_pool{n}d")
    check(
        lambda x: p.max_pool(x, **named),
        lambda x: maximum(x, kernel, strides, padding, ceil_mode=bool(ceil)),
        [x],
    )
    for counted in (0, 1):
        check(
            lambda x: p.average_pool(x, count_include_pad=counted, **named),
            lambda x: average(x, kernel, strides, padding, bool(ceil), bool(counted)),
            [x],
        )


@pytest.mark.parametrize("power", [1, 2])
def test_lp_pool(power):
    x = normal(2, 3, 9, 10)
    check(
        lambda x: p.lp_pool(x, p=power, **pool_settings([3, 2], [2, 2], [0, 0], 0)),
        lambda x: F.lp_pool2d(x.abs(), power, (3, 2), 2),  # torch takes no magnitude
        [x],
    )
    zero = torch.zeros(1, 1, 4, 4, requires_grad=True)
    y = p.lp_pool(zero, p=power, **pool_settings([2, 2], [2, 2], [0, 0], 0))
    (grad,) = torch.autograd.grad(y, [zero], torch.ones_like(y))
    assert not grad.any()


def test_dilated_maximum_and_windows_without_elements():
    x = normal(2, 2, 9, 9)
    found = gradients(
        lambda x: p.max_pool(
            x, kernel=[3, 3], strides=[1, 2], dilations=[2, 1], pads=[1, 1, 1, 1], ceil_mode=0
        ),
        [x],
    )
    expected = gradients(lambda x: F.max_pool2d(x, 3, (1, 2), 1, (2, 1)), [x])
    assert all(torch.equal(f, e) for f, e in zip(found, expected))
    # A pad as long as the kernel: the first and last window hold no element.
    y, grad = gradients(
        lambda x: p.max_pool(x, kernel=[2], strides=[2], dilations=[1], pads=[2, 2], ceil_mode=0),
        [normal(2, 2, 4)],
    )
    assert torch.isinf(y[..., 0]).all() and torch.isinf(y[..., -1]).all()
    assert (grad != 0).sum() == 2 * 2 * 2


def test_equal_maxima_give_to_the_first():
    _, grad = gradients(
        lambda x: p.max_pool(x, **pool_settings([3], [1], [0], 0)), [torch.ones(1, 1, 6)]
    )
    assert (grad[0, 0, 4:] == 0).all() and (grad[0, 0, :4] != 0).all()


def test_embedding_and_gathers():
    table = normal(11, 7)
    index = torch.tensor([[3, 3, 0, -1], [10, 3, 2, 0]])
    check(
        lambda t: p.gather(t, index, axis=0),
        lambda t: F.embedding(index % 11, t),
        [table],
    )
    x = normal(3, 5, 4)
    for axis in (0, 1, 2, -1):
        some = torch.tensor([[0, 2], [2, 1]])
        check(
            lambda x: p.gather(x, some, axis=axis),
            lambda x: x.index_select(axis, some.reshape(-1)).unflatten(axis % 3, (2, 2)),
            [x],
        )
    along = torch.tensor([[[0, 1, 4, 4]] * 6] * 3)[:, :, :4] % 5
    check(
        lambda x: p.gather_elements(x, along, axis=1),
        lambda x: x.gather(1, along),
        [x],
    )
    tuples = torch.tensor([[0, 1], [2, 4], [0, 1], [-1, -1]])
    check(
        lambda x: p.gather_nd(x, tuples, batch_dims=0),
        lambda x: x[tuples[:, 0], tuples[:, 1]],
        [x],
    )
    batched = torch.tensor([[[1], [1]], [[0], [4]], [[3], [3]]])
    check(
        lambda x: p.gather_nd(x, batched, batch_dims=1),
        lambda x: torch.stack([x[i, batched[i, :, 0]] for i in range(3)]),
        [x],
    )


def test_embedding_gradient_adds_in_order():
    """gather.9: ascending updates, one addition each; another order has other bits."""
    grad = torch.tensor([2.0**24, 1.0, 1.0, -(2.0**24)]).reshape(4, 1)
    table = torch.zeros(3, 1, requires_grad=True)
    y = p.gather(table, torch.tensor([1, 1, 1, 1]), axis=0)
    (found,) = torch.autograd.grad(y, [table], grad)
    assert found.flatten().tolist() == [0.0, 0.0, 0.0]
    (found,) = torch.autograd.grad(
        p.gather(table, torch.tensor([1, 1, 1, 1]), axis=0), [table], grad.flip(0)
    )
    assert found.flatten().tolist() == [0.0, 2.0, 0.0]


def test_embedding_of_narrow_table():
    table = normal(5, 3).bfloat16().requires_grad_()
    y = p.gather(table, torch.tensor([0, 4, 4]), axis=0)
    (grad,) = torch.autograd.grad(y, [table], torch.ones_like(y))
    assert grad.dtype == torch.bfloat16 and grad.sum(1).tolist() == [3, 0, 0, 0, 6]


def test_scatters():
    x, u = normal(4, 6), normal(2, 6, seed=1)
    index = torch.tensor([[0, 1, 2, 3, 0, 1], [3, 2, 1, 0, 2, 3]])
    for how, theirs in ((0, torch.scatter), (1, torch.scatter_add)):
        check(
            lambda x, u: p.scatter_elements(x, index, u, axis=0, reduction=how),
            lambda x, u: theirs(x, 0, index, u),
            [x, u],
        )
    rows, v = torch.tensor([[2], [0], [2]]), normal(3, 6, seed=2)
    check(
        lambda x, v: p.scatter_nd(x, rows, v, reduction=1),
        lambda x, v: x.index_add(0, rows[:, 0], v),
        [x, v],
    )


def test_only_the_last_of_several_updates_has_a_gradient():
    x, u = normal(3, 2).requires_grad_(), normal(3, 2, seed=1).requires_grad_()
    y = p.scatter_nd(x, torch.tensor([[1], [0], [-2]]), u, reduction=0)
    dx, du = torch.autograd.grad(y, [x, u], torch.full_like(y, 3))
    assert dx.tolist() == [[0, 0], [0, 0], [3, 3]] and du.tolist() == [[0, 0], [3, 3], [3, 3]]
    y = p.scatter_elements(x, torch.tensor([[0, 0], [0, 1]]), u[:2], axis=0, reduction=0)
    (du,) = torch.autograd.grad(y, [u], torch.full_like(y, 2))
    assert du.tolist() == [[0, 2], [2, 2], [0, 0]]


def test_scatter_with_another_reduction_is_refused():
    x = normal(3, 2).requires_grad_()
    y = p.scatter_nd(x, torch.tensor([[1]]), normal(1, 2), reduction=2)
    with pytest.raises(invar.NotCovered, match="scatter_nd: the gradient with reduction 2"):
        torch.autograd.grad(y, [x], torch.ones_like(y))


RESIZE = {
    "antialias": 0,
    "exclude_outside": 0,
    "cubic": -0.75,
    "extrapolation": 0.0,
    "rounding": 2,
}


@pytest.mark.parametrize("to", [(10, 14), (3, 4), (5, 20), (13, 5)])
@pytest.mark.parametrize(
    "mode, order, coordinates",
    [("nearest", 0, 4), ("bilinear", 1, 0), ("bicubic", 3, 0), ("bilinear", 1, 3)],
)
def test_resize(to, mode, order, coordinates):
    x = normal(2, 3, 5, 7)
    corners = None if mode == "nearest" else coordinates == 3
    check(
        lambda x: p.resize(
            x,
            shape=(2, 3, *to),
            order=order,
            coordinates=coordinates,
            scales=[0] * 4,
            **RESIZE,
        ),
        lambda x: F.interpolate(x, to, mode=mode, align_corners=corners),
        [x],
    )


def test_resize_of_long_dimensions():
    """Beyond 512 elements the gradient takes another way."""
    check(
        lambda x: p.resize(
            x, shape=(2, 3, 700, 5), order=1, coordinates=0, scales=[0] * 4, **RESIZE
        ),
        lambda x: F.interpolate(x, (700, 5), mode="bilinear"),
        [normal(2, 3, 600, 7)],
    )


def test_resize_with_antialias():
    check(
        lambda x: p.resize(
            x,
            shape=(1, 2, 4, 5),
            order=1,
            coordinates=0,
            scales=[0] * 4,
            **{**RESIZE, "antialias": 1, "exclude_outside": 1},
        ),
        lambda x: F.interpolate(x, (4, 5), mode="bilinear", antialias=True),
        [normal(1, 2, 9, 11)],
    )


def test_gradient_of_gradient_of_resize_and_pools():
    named = pool_settings([2, 2], [2, 2], [0, 0], 0)
    x = normal(1, 1, 6, 6).requires_grad_()
    y = p.average_pool(x, count_include_pad=0, **named)
    grad = normal(*y.shape, seed=1).requires_grad_()
    (dx,) = torch.autograd.grad(y, [x], grad, create_graph=True)
    (back,) = torch.autograd.grad(dx, [grad], torch.ones_like(dx))
    assert torch.equal(back, torch.ones_like(back))


# ---- random numbers and dropout


def numpy_words(seed, offset, n):
    """random.2, once more."""
    m = 2**32 - 1
    result = []
    for e in range(offset, offset + n):
        e %= 2**64
        c, k = [e // 4 & m, e // 4 >> 32, 0, 2**31], [seed & m, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & m, (a >> 32) ^ c[3] ^ k[1], a & m]
            k = [(k[0] + 0x9E3779B9) & m, (k[1] + 0xBB67AE85) & m]
        result.append(c[e % 4])
    return np.array(result, np.uint32)


@pytest.mark.parametrize("offset", [0, 3, 2**64 - 5])
def test_dropout_is_specified(offset):
    x = normal(5, 9)
    y = ops.dropout(x, 0.25, seed=77, offset=offset)
    u = (numpy_words(77, offset, 45) >> 8).astype(np.float32) * np.float32(2**-24)
    scale = np.float32(1) / (np.float32(1) - np.float32(0.25))
    expected = np.where(u >= np.float32(0.25), x.numpy().ravel() * scale, np.float32(0))
    assert y.numpy().tobytes() == expected.astype(np.float32).tobytes()
    assert ops.dropout(x.numpy(), 0.25, seed=77, offset=offset).tobytes() == y.numpy().tobytes()


def test_dropout_of_parts_of_a_batch():
    x = normal(8, 33)
    whole = ops.dropout(x, 0.4, seed=5, offset=12)
    for rows in (1, 3, 8):
        parts = [
            ops.dropout(x[r : r + rows], 0.4, seed=5, offset=12 + r * 33) for r in range(0, 8, rows)
        ]
        assert torch.equal(torch.cat(parts), whole)


def test_gradient_of_dropout():
    x = normal(6, 50)
    y, grad = gradients(lambda x: ops.dropout(x, 0.3, seed=9), [x])
    sent = normal(6, 50, seed=99)
    assert torch.equal(grad, ops.dropout(sent, 0.3, seed=9))
    assert ((y == 0) == (grad == 0)).all() and 40 < int((y == 0).sum()) < 140
    for way in ways():
        again = gradients(lambda x: ops.dropout(x, 0.3, seed=9), [x])
        assert torch.equal(again[0], y) and torch.equal(again[1], grad), way
    half = ops.dropout(x.bfloat16(), 0.3, seed=9)
    assert half.dtype == torch.bfloat16 and ((half == 0) == (y == 0)).all()


def test_dropout_bounds():
    x = torch.tensor([1.0, float("inf"), float("nan")])
    assert ops.dropout(x, 1.0, seed=0).tolist() == [0, 0, 0]
    assert torch.equal(ops.dropout(x[:2], 0.0, seed=0), x[:2])
    assert ops.dropout(x, training=False) is x
    for bad in ({"p": 1.5}, {"p": float("nan")}, {"p": "x"}, {"offset": 3}, {"seed": 1.5}):
        with pytest.raises((RuntimeError, TypeError), match="dropout: argument"):
            ops.dropout(x, **bad)
    with pytest.raises(invar.NotCovered, match="inplace"):
        ops.dropout(x, inplace=True, seed=1)
    with pytest.raises(invar.NotCovered, match="expected f32, bf16, f16 or f64, got int64"):
        ops.dropout(torch.arange(3), seed=1)


def test_generator_counts_and_is_restored():
    g = invar.Generator(2**64 + 3)
    assert (g.seed, g.offset) == (3, 0)
    x = normal(3, 3)
    first = ops.dropout(x, generator=g)
    assert g.get_state() == (3, 12)  # 9 numbers, up to a counter
    saved, copied = g.get_state(), pickle.loads(pickle.dumps(g))
    second = ops.dropout(x, generator=g)
    assert not torch.equal(first == 0, second == 0)
    assert torch.equal(ops.dropout(x, generator=copied), second)
    assert torch.equal(ops.dropout(x, generator=invar.Generator().set_state(saved)), second)
    g.load_state_dict(invar.Generator(3).state_dict())
    assert torch.equal(ops.dropout(x, generator=g), first)
    invar.manual_seed(3)
    for want in (first, second):  # of arrays of NumPy: the default generator
        assert ops.dropout(x.numpy()).tobytes() == want.numpy().tobytes()
    assert torch.equal(ops.dropout(x, seed=torch.tensor(3), offset=torch.tensor([12])), second)
    for bad in ((1,), "ab", (1.5, 0)):
        with pytest.raises(invar.BadInput, match="Generator: argument"):
            g.set_state(bad)


DRAWN = {
    "dropout": lambda x: ops.dropout(x),
    "nn.Dropout": lambda x: invar.nn.Dropout()(x),
    "reproducible": lambda x: invar.reproducible()(torch.nn.functional.dropout)(x),
    "from_torch_module": lambda x: invar.from_torch_module(torch.nn.Dropout())(x),
}


def test_tensors_have_one_seed():
    """torch's, however a mask is spelled; invar.manual_seed() sets it, too."""
    x, found = normal(40, 9), []
    for seeded in (torch.manual_seed, invar.manual_seed):
        for function in DRAWN.values():
            seeded(11)
            found.append(function(x).numpy().tobytes())
    assert len(set(found)) == 1
    for function in (ops.rand, ops.randn):
        torch.manual_seed(4)
        first, second = function(5), function(5)
        torch.manual_seed(4)
        assert torch.equal(function(5), first) and not torch.equal(first, second)


def test_uniform_and_normal_numbers():
    u = ops.rand(100, 100, seed=1)
    assert u.shape == (100, 100) and 0 <= float(u.min()) and float(u.max()) < 1
    assert abs(float(u.double().mean()) - 0.5) < 0.01
    assert torch.equal(u.flatten()[17:], ops.rand(10000 - 17, seed=1, offset=17))
    n = ops.randn([200, 50], seed=4).double()
    assert n.shape == (200, 50) and abs(float(n.mean())) < 0.05 and abs(float(n.std()) - 1) < 0.05
    assert ops.rand(0, seed=1).shape == (0,)


def test_instruction_sets_are_those_of_this_machine():
    """The scalar rows of the tests above are not all that there is."""
    assert "scalar" in cpu_isas() and len(cpu_isas()) > 1
