"""Convolutions and pools."""

import pytest
from accuracy import case, check, ids, ops, randn, raw, refused, torch

ROW, PLANE, SPACE = randn(2, 4, 15), randn(2, 4, 9, 11, seed=1), randn(2, 4, 5, 6, 7, seed=2)
K1, K2, K3 = randn(6, 4, 3, seed=3), randn(6, 4, 3, 2, seed=4), randn(6, 4, 2, 3, 2, seed=5)
G2, T1, T2, T3 = (
    randn(6, 2, 3, 3, seed=6),
    randn(4, 3, 3, seed=7),
    randn(4, 3, 3, 2, seed=8),
    randn(4, 2, 2, 3, 2, seed=9),
)
BIAS = randn(6, seed=10)

CASES = [
    case("conv1d", ROW, K1),
    case("conv1d", ROW, K1, BIAS, 2, 1, 2),
    case("conv1d", ROW[0], K1, BIAS),
    case("conv1d", ROW, K1, padding="same", dilation=3),
    case("conv1d", ROW, K1, None, 1, "valid"),
    case("conv2d", PLANE, K2, BIAS),
    case("conv2d", PLANE, K2, None, (2, 1), (1, 0), (1, 2)),
    case("conv2d", PLANE, G2, BIAS, padding=1, groups=2),
    case("conv2d", PLANE, K2, padding="same"),
    case("conv2d", PLANE, randn(8, 1, 3, 3), groups=4, stride=2),
    case("conv2d", PLANE[1], K2),
    case("conv3d", SPACE, K3, BIAS, padding=(1, 0, 1)),
    case("conv3d", SPACE, K3, stride=2),
    case("conv_transpose1d", ROW, T1),
    case("conv_transpose1d", ROW, T1, randn(3), 3, 1, 2),
    case("conv_transpose2d", PLANE, T2, randn(3), 2, (1, 0), (1, 0)),
    case("conv_transpose2d", PLANE, T2, None, 2, 1, 1, 2, (2, 3)),
    case("conv_transpose3d", SPACE, T3, stride=2),
    case("conv_transpose2d", PLANE[0], T2),
    *(
        case(f"max_pool{n}d", x, *more)
        for n, x in ((1, ROW), (2, PLANE), (3, SPACE))
        for more in [(2,), (3, 2, 1), (2, 1, 0, 2), (3, 2, 1, 1, True)]
    ),
    case("max_pool2d", PLANE, (2, 3), (1, 2), (1, 0)),
    case("max_pool1d", ROW[0], 2),
    *(
        case(f"max_pool{n}d", x, 3, 2, 1, return_indices=True)
        for n, x in ((1, ROW), (2, PLANE), (3, SPACE))
    ),
    case("max_pool2d", PLANE[0], 2, return_indices=True),
    *(
        case(f"avg_pool{n}d", x, *more)
        for n, x in ((1, ROW), (2, PLANE), (3, SPACE))
        for more in [(2,), (3, 2, 1), (3, 2, 1, True), (3, 2, 1, True, False)]
    ),
    case("avg_pool2d", PLANE, (2, 3), (1, 2), (1, 0)),
    case("avg_pool2d", PLANE[0], 2),
    *(case(f"lp_pool{n}d", x, 2, 2) for n, x in ((1, ROW), (2, PLANE), (3, SPACE))),
    case("lp_pool2d", PLANE, 2.0, (2, 3), 1),
    *(
        case(f"adaptive_{k}_pool{n}d", x, s)
        for k in ("avg", "max")
        for n, x, s in [
            (1, ROW, 5),
            (1, ROW, 4),
            (2, PLANE, 1),
            (2, PLANE, (3, 11)),
            (2, PLANE, (4, None)),
            (2, PLANE, (7, 5)),
            (3, SPACE, (2, 3, 4)),
            (2, PLANE[0], 3),
        ]
    ),
]


@pytest.mark.parametrize("c", CASES, ids=ids)
def test_spatial(c):
    check(c)


@pytest.mark.parametrize(
    "name,more",
    [
        ("conv2d", (K2, BIAS)),
        ("conv_transpose2d", (T2,)),
        ("max_pool2d", (2,)),
        ("avg_pool2d", (3, 2, 1)),
        ("adaptive_avg_pool2d", (4,)),
    ],
)
def test_a_sample_does_not_depend_on_its_batch(name, more):
    batch = torch.cat([PLANE, PLANE.flip(0), PLANE * 3])
    whole = getattr(ops, name)(batch, *more)
    for i in range(6):
        assert raw(getattr(ops, name)(batch[i : i + 1], *more)) == raw(whole[i])
        assert raw(getattr(ops, name)(batch[i], *more)) == raw(whole[i])


def test_refusals():
    refused(RuntimeError, "conv2d: argument 'input': expected 4 dimensions", ops.conv2d, ROW[0], K2)
    refused(RuntimeError, "conv2d: argument 'weight'", ops.conv2d, PLANE, K2[:, :3])
    refused(
        RuntimeError, "conv2d: argument 'bias': expected shape", ops.conv2d, PLANE, K2, BIAS[:5]
    )
    refused(RuntimeError, "longer than the padded input", ops.conv2d, PLANE[..., :1], K2)
    refused(
        RuntimeError, "'same' expects stride 1", ops.conv2d, PLANE, K2, stride=2, padding="same"
    )
    refused(
        RuntimeError, "expected elements of float32 as 'input' has", ops.conv2d, PLANE, K2.half()
    )
    refused(RuntimeError, "output_padding", ops.conv_transpose2d, PLANE, T2, output_padding=2)
    refused(
        RuntimeError,
        "max_pool2d: argument 'padding': expected at most half",
        ops.max_pool2d,
        PLANE,
        2,
        padding=2,
    )
    refused(
        RuntimeError,
        "max_pool2d: argument 'input': expected a spatial size",
        ops.max_pool2d,
        PLANE,
        12,
    )
    refused(TypeError, "kernel_size", ops.max_pool2d, PLANE, (2, 2, 2))
    refused(NotImplementedError, "divisor_override", ops.avg_pool2d, PLANE, 2, divisor_override=3)
    refused(NotImplementedError, "norm_type", ops.lp_pool2d, PLANE, 3, 2)
    refused(RuntimeError, "output_size", ops.adaptive_avg_pool2d, PLANE, (1, 2, 3))
