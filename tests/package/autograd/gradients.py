"""What the tests of gradients share: a primitive beside torch's function of float64 numbers."""

import pytest
from conftest import BUILD

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import torch  # noqa: E402

UNIT = 2.0**-24  # the rounding of one f32 operation


def random(*shape, seed=0, scale=1.0, dtype=torch.float32):
    made = torch.Generator().manual_seed(1000 * seed + 7)
    return (torch.randn(shape, generator=made, dtype=torch.float64) * scale).to(dtype)


def leaves(tensors, dtype=None):
    return [
        (x.to(dtype) if dtype and x.is_floating_point() else x.clone()).requires_grad_(
            x.is_floating_point()
        )
        for x in tensors
    ]


def derivatives(function, operands, grad, again):
    """The result, the first derivatives along `grad`, and those of their product with `again`."""
    y = function(*operands)
    wanted = [x for x in operands if x.requires_grad]
    first = torch.autograd.grad(y, wanted, grad.to(y.dtype), create_graph=True)
    parts = [g for g in first if g.requires_grad]
    second = [None] * len(wanted)
    if parts:
        weights = [w.to(g.dtype) for g, w in zip(first, again) if g.requires_grad]
        second = torch.autograd.grad(parts, wanted, weights, allow_unused=True)
    second = [torch.zeros_like(x) if g is None else g for g, x in zip(second, wanted)]
    return [y, *first, *second]


def near(found, expected, factor):
    """Within `factor` roundings of the largest element: the error of f32 against float64."""
    found, expected = found.detach().double(), expected.detach().double()
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert torch.equal(found.isnan(), expected.isnan()), (found, expected)
    finite = expected.isfinite()
    assert torch.equal(found[~finite].nan_to_num(), expected[~finite].nan_to_num())
    if not finite.any():
        return
    most = expected[finite].abs().max().clamp_min(1.0)
    worst = (found[finite] - expected[finite]).abs().max() / (most * UNIT)
    assert worst <= factor, f"{float(worst):.1f} roundings of the largest, allowed are {factor}"


def compare(ours, theirs, operands, factor=64, second=True):
    """First and second derivatives of `ours` in f32 against torch's of `theirs` in float64."""
    with torch.no_grad():
        shape = theirs(*(x.double() if x.is_floating_point() else x for x in operands)).shape
    grad = random(*shape, seed=91)
    again = [random(*x.shape, seed=92 + i) for i, x in enumerate(operands) if x.is_floating_point()]
    found = derivatives(ours, leaves(operands), grad, again)
    expected = derivatives(theirs, leaves(operands, torch.float64), grad.double(), again)
    count = 1 + (len(found) - 1) // 2
    for a, b in list(zip(found, expected))[: None if second else count]:
        near(a, b, factor)


def first(function, operands, grad=None):
    """The first derivatives alone; `grad` is 1, 2, 3, ... where it is not given."""
    operands = leaves(operands)
    y = function(*operands)
    if grad is None:
        grad = torch.arange(1.0, y.numel() + 1, dtype=y.dtype).reshape(y.shape)
    return torch.autograd.grad(y, [x for x in operands if x.requires_grad], grad)
