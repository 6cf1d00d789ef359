"""Other shapes and sizes."""

import pytest
from accuracy import case, check, ids, ops, randn, raw, refused, torch

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
