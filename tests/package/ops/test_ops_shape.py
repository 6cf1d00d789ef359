"""Other shapes and sizes, new arrays, and products of whole numbers."""

import numpy as np
import pytest
from accuracy import case, check, ids, invar, ops, randn, raw, refused, torch

ROW, PLANE, SPACE = randn(2, 3, 7), randn(2, 3, 6, 5, seed=1), randn(1, 2, 4, 3, 5, seed=2)
SMOOTH = torch.linspace(-1, 1, 180).reshape(2, 3, 6, 5)

CASES = [
    case("pad", PLANE, (1, 2)),
    case("pad", PLANE, (1, 2, 3, 0), value=2.5),
    case("pad", PLANE, [-1, 2, 0, -2]),
    case("pad", torch.arange(6).reshape(2, 3), (1, 1), value=7.0),
    *(
        case("pad", x, p, mode=m)
        for m in ("reflect", "replicate", "circular")
        for x, p in [(ROW, (2, 3)), (PLANE, (1, 2, 3, 0)), (SPACE, (1, 1, 2, 0, 1, 2))]
    ),
    *(case("cat", [PLANE, PLANE * 2], d) for d in (0, 1, -1)),
    case("cat", [torch.empty(0), PLANE]),
    case("cat", [torch.arange(3), randn(2)]),
    case("stack", [ROW, ROW * 2], 1),
    case("stack", [ROW, ROW], -1),
    case("tril", PLANE),
    case("triu", PLANE, 1),
    case("tril", torch.ones(3, 4, dtype=torch.bool), -1),
    case("flip", PLANE, (0, -1)),
    case("flip", PLANE, ()),
    case("roll", PLANE, 2, 3),
    case("roll", PLANE, (1, -2), (0, 2)),
    case("roll", ROW, 5),
    case("tile", ROW, (2, 1, 2, 1)),
    case("tile", ROW, (3,)),
    case("pixel_shuffle", randn(2, 8, 3, 2), 2),
    case("pixel_unshuffle", randn(2, 3, 4, 6), 2),
    case("pixel_shuffle", randn(9, 3, 2), 3),
    *(
        case("interpolate", x, s, f, m)
        for m in ("nearest", "nearest-exact")
        for x, s, f in [
            (ROW, 14, None),
            (ROW, 5, None),
            (PLANE, (9, 4), None),
            (PLANE, None, 2),
            (PLANE, None, (0.5, 1.5)),
            (SPACE, None, 2.0),
        ]
    ),
    *(
        case("interpolate", x, s, f, m, a, error=64)
        for a in (False, True, None)
        for x, m, s, f in [
            (ROW, "linear", 11, None),
            (PLANE, "bilinear", (9, 4), None),
            (PLANE, "bilinear", None, 2),
            (PLANE, "bicubic", (9, 4), None),
            (SPACE, "trilinear", None, 2.0),
            (PLANE, "bicubic", None, 2),
        ]
    ),
    *(
        case("interpolate", SMOOTH, s, None, m, antialias=True, error=64, narrow=False)
        for m in ("bilinear", "bicubic")
        for s in [(3, 2), (4, 9)]
    ),
    case("interpolate", PLANE, (3, 5), mode="area"),
    case("interpolate", PLANE, (4, 3), mode="area"),
    case("interpolate", PLANE, scale_factor=0.7, recompute_scale_factor=True),
    case("interpolate", torch.arange(24.0).reshape(1, 2, 3, 4), 2),
]


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_shapes(c):
    check(c)


@pytest.mark.parametrize("n", range(1, 24))
def test_nearest_elements_are_those_of_the_exact_quotient(n):
    x = torch.arange(n, dtype=torch.float32).reshape(1, 1, n)
    for m in range(1, 48):
        wanted = torch.tensor([(i * n) // m for i in range(m)], dtype=torch.float32)
        assert torch.equal(ops.interpolate(x, m)[0, 0], wanted), (n, m)


def test_any_type_is_moved():
    for dtype in (torch.uint8, torch.int16, torch.float64, torch.bool):
        x = (PLANE * 4).to(dtype)
        assert torch.equal(ops.cat([x, x]), torch.cat([x, x]))
        assert torch.equal(ops.pad(x, (1, 2)), torch.nn.functional.pad(x, (1, 2)))
        assert raw(ops.interpolate(x, (3, 2))) == raw(x[:, :, ::2, [0, 2]])


def test_align_corners_with_antialias():
    image = randn(1, 2, 7, 9)
    for mode in ("bilinear", "bicubic"):
        for size in ((4, 5), (3, 13), (7, 4)):
            more = dict(size=size, mode=mode, align_corners=True, antialias=True)
            wanted = torch.nn.functional.interpolate(image.double(), **more)
            gap = (ops.interpolate(image, **more).double() - wanted).abs().max()
            assert gap <= 2e-5 * image.abs().max()


def test_circular_pads_that_cut():
    x = torch.arange(12.0).reshape(1, 3, 4)
    for amounts in ((-1, 2), (2, -1), (-1, -1), (1, 0)):
        theirs = torch.nn.functional.pad(x, amounts, mode="circular")
        assert torch.equal(ops.pad(x, amounts, mode="circular"), theirs)


def test_refusals():
    refused(RuntimeError, "pad: argument 'pad': expected pairs", ops.pad, ROW, (1,))
    refused(RuntimeError, "pad: argument 'mode'", ops.pad, ROW, (1, 1), "mirror")
    refused(RuntimeError, "pad: .* at most 6", ops.pad, ROW, (7, 0), "reflect")
    refused(RuntimeError, "negative size", ops.pad, ROW, (-8, 0))
    refused(TypeError, "cat: argument 'tensors'", ops.cat, [])
    refused(RuntimeError, "cat", ops.cat, [ROW, PLANE])
    refused(RuntimeError, "stack: .* one shape", ops.stack, [ROW, ROW[:1]])
    refused(RuntimeError, "'size' and 'scale_factor'", ops.interpolate, ROW)
    refused(NotImplementedError, "'bicubic' of 1", ops.interpolate, ROW, 3, mode="bicubic")
    refused(RuntimeError, "align_corners", ops.interpolate, ROW, 3, align_corners=True)
    refused(RuntimeError, "tril: argument 'input'", ops.tril, ROW[0, 0])


GRID = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
ONE = GRID.reshape(1, 2, 1, 12)
LAYOUT = {
    "reshape": [(GRID, (4, -1)), (GRID, (24,)), (GRID, (2, 3, 4))],
    "permute": [(GRID, (2, 0, 1)), (GRID, (-1, 1, 0))],
    "transpose": [(GRID, 0, 2), (GRID, -1, -2)],
    "swapaxes": [(GRID, 0, 1)],
    "movedim": [(GRID, 0, 2), (GRID, (0, 1), (2, 0)), (GRID, -1, 0)],
    "squeeze": [(ONE,), (ONE, 0), (ONE, 1), (ONE, (0, 2))],
    "unsqueeze": [(GRID, 0), (GRID, -1), (GRID, 3)],
    "flatten": [(GRID,), (GRID, 1), (GRID, 0, 1), (torch.tensor(3.0),)],
    "unflatten": [(GRID, 2, (2, -1)), (GRID, 0, (1, 2))],
    "broadcast_to": [(GRID[:, :1], (2, 3, 4)), (GRID, (5, 2, 3, 4))],
    "split": [(GRID, 2, 1), (GRID, 3, 2), (GRID, [1, 3], 2), (GRID, (2,), 0)],
    "chunk": [(GRID, 2, 2), (GRID, 3, 0), (GRID, 3, 2)],
    "unbind": [(GRID,), (GRID, -1)],
    "select": [(GRID, 1, 2), (GRID, -1, -1)],
    "narrow": [(GRID, 1, 1, 2), (GRID, 2, -3, 2), (GRID, 0, 2, 0)],
}


def all_of(found):
    return list(found) if isinstance(found, tuple | list) else [found]


@pytest.mark.parametrize("name", LAYOUT)
def test_shapes_are_torchs(name):
    ours, theirs = getattr(ops, name), getattr(torch, name)
    for args in LAYOUT[name]:
        for kind in (torch.float32, torch.bfloat16, torch.int64, torch.bool):
            x = args[0].to(kind)
            want = all_of(theirs(x, *args[1:]))
            got = all_of(ours(x, *args[1:]))
            assert [g.tolist() for g in got] == [w.tolist() for w in want]
            assert all(g.dtype == kind and g.shape == w.shape for g, w in zip(got, want))
        x = args[0].clone().requires_grad_()
        leaf = args[0].clone().requires_grad_()
        for one, function in ((x, ours), (leaf, theirs)):
            sum(y.square().sum() for y in all_of(function(one, *args[1:]))).backward()
        assert torch.equal(x.grad, leaf.grad)
        got = all_of(ours(args[0].numpy(), *args[1:]))
        want = all_of(theirs(*args))
        assert all(type(g) is np.ndarray and np.array_equal(g, w) for g, w in zip(got, want, strict=True))  # fmt: skip


NEW = {
    "zeros": [((2, 3),), (2, 3), (0,)],
    "ones": [((2, 3),), (4,)],
    "full": [((2,), 3), ((2,), 0.1), ((2,), True)],
    "zeros_like": [(GRID,)],
    "ones_like": [(GRID,)],
    "full_like": [(GRID, 0.1)],
    "eye": [(3,), (2, 4)],
    "arange": [(5,), (2, 9, 3), (5, -1, -2), (0.5,), (1, 2, 0.25), (3, 3)],
    "linspace": [(0, 1, 5), (1, 0, 2), (3, 4, 1), (0, 1, 0), (-1.0, 2.0, 7)],
}


@pytest.mark.parametrize("name", NEW)
def test_new_arrays_are_torchs(name):
    ours, theirs = getattr(ops, name), getattr(torch, name)
    for args in NEW[name]:
        want = theirs(*args)
        got = ours(*args)
        assert got.dtype == want.dtype and got.shape == want.shape
        if want.dtype.is_floating_point and not name.endswith("_like"):
            want = theirs(*args, dtype=torch.float64).float()  # rounded once
        assert torch.equal(got, want)
        with invar.reproducible():
            assert torch.equal(theirs(*args), got)
        if name.endswith("_like"):
            assert np.array_equal(ours(args[0].numpy(), *args[1:]), got)
            continue
        for kind in (np.float32, np.int64, np.float64):
            made = ours(*args, dtype=kind)
            assert type(made) is np.ndarray and made.dtype == kind and made.shape == got.shape


def test_grids():
    x, y = torch.arange(3), torch.arange(2)
    for how in ("ij", "xy"):
        for got, want in zip(ops.meshgrid(x, y, indexing=how), torch.meshgrid(x, y, indexing=how)):
            assert torch.equal(got, want)


def test_what_does_not_fit():
    refused(RuntimeError, "reshape: argument 'shape'", ops.reshape, GRID, (5, -1))
    refused(RuntimeError, "reshape: argument 'shape'", ops.reshape, GRID, (-1, -1))
    refused(RuntimeError, "permute: argument 'dims'.*twice", ops.permute, GRID, (0, 0, 1))
    refused(IndexError, "transpose: argument 'dim1'", ops.transpose, GRID, 0, 3)
    refused(RuntimeError, "split", ops.split, GRID, [1, 1], 2)
    refused(RuntimeError, "chunk: argument 'chunks'", ops.chunk, GRID, 0)
    refused(IndexError, "select: argument 'index'", ops.select, GRID, 0, 2)
    refused(RuntimeError, "narrow", ops.narrow, GRID, 0, 1, 2)
    refused(RuntimeError, "arange", ops.arange, 0, 3, -1)
    refused(RuntimeError, "broadcast_to", ops.broadcast_to, GRID, (3, 4))
    refused(RuntimeError, "unflatten", ops.unflatten, GRID, 0, (3, -1))
    refused(TypeError, "reshape: argument 'shape'", ops.reshape, GRID, "ab")


KINDS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_products_of_whole_numbers_are_exact(kind):
    """Modulo 2^n of their type, as those of torch, which reproducible() takes."""
    made = torch.Generator().manual_seed(3)
    limits = torch.iinfo(kind)
    draw = lambda *shape: torch.randint(limits.min, limits.max, shape, generator=made).to(kind)
    for a, b in (((3, 5), (5, 4)), ((2, 1, 3, 7), (4, 7, 2)), ((5,), (5,)), ((3, 0), (0, 2)), ((4,), (4, 3)), ((3, 4), (4,))):  # fmt: skip
        x, y = draw(*a), draw(*b)
        got = ops.matmul(x, y)
        assert got.dtype == kind and torch.equal(got, torch.matmul(x, y))
        with invar.reproducible():
            assert torch.equal(torch.matmul(x, y), got) and torch.equal(x @ y, got)
        assert np.array_equal(ops.matmul(x.numpy(), y.numpy()), got)
    x, w, bias = draw(2, 5), draw(3, 5), draw(3)
    assert torch.equal(ops.linear(x, w, bias), torch.nn.functional.linear(x, w, bias))
    assert torch.equal(ops.mm(w, w.T), w @ w.T)


def test_long_products_of_whole_numbers_are_added_in_parts():
    from invar.ops import linalg

    x, y = torch.arange(600).reshape(3, 200), torch.arange(800).reshape(200, 4)
    want, before = x @ y, linalg._AT_ONCE
    try:
        linalg._AT_ONCE = 50  # 4 at a time
        assert torch.equal(ops.matmul(x, y), want)
    finally:
        linalg._AT_ONCE = before


def test_arithmetic_of_truth_values():
    a, b = torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    for name in ("add", "mul", "maximum", "minimum"):
        want = getattr(torch, name)(a, b)
        assert torch.equal(getattr(ops, name)(a, b), want)
        assert np.array_equal(getattr(ops, name)(a.numpy(), b.numpy()), want)
        with invar.reproducible():
            assert torch.equal(getattr(torch, name)(a, b), want)
    refused(RuntimeError, "sub: expected operands of numbers", ops.sub, a, b)
