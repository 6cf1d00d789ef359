"""The cases of every function, forward and backward: one result on each instruction set, with one
thread and with two, and on a GPU where there is one."""

import importlib

import pytest
from accuracy import called, invar, ops, torch
from conftest import cpu_isas, package_has_gpu

FAMILIES = (
    "activation", "attention", "elementwise", "indexing", "linalg", "loss", "neural",
    "normalization", "reduction", "shape", "spatial",
)  # fmt: skip
CASES = [c for family in FAMILIES for c in importlib.import_module(f"test_ops_{family}").CASES]


WAYS = [("cpu", isa, threads) for isa in cpu_isas() for threads in (1, 2)]
WAYS += [("cuda", "", 1)] if package_has_gpu() else []


def flat(found):
    if isinstance(found, torch.Tensor):
        return [found]
    return [x for part in found for x in flat(part)] if isinstance(found, tuple | list) else []


def computed(c, device):
    """The results, and the gradients of their floating operands for gradients of ones and twos."""
    leaves = []

    def operand(x):
        x = x.detach().clone().to(device)
        if x.is_floating_point():
            leaves.append(x.requires_grad_())
        return x

    results = flat(called(getattr(ops, c.name), c, operand))
    ends = [y for y in results if y.requires_grad]
    grads = []
    if ends:
        try:
            counted = [
                (1 + torch.arange(y.numel(), device=device) % 3).reshape(y.shape).to(y.dtype)
                for y in ends
            ]
            grads = list(torch.autograd.grad(ends, leaves, counted, allow_unused=True))
        except invar.NotCovered as refused:  # a rule that refuses does so everywhere
            grads = [str(refused)]
    return [
        x if x is None or isinstance(x, str) else stored(x.detach().cpu()) for x in results + grads
    ]


def stored(x):
    """Type, shape and bytes. Where a function uses an operand twice, torch adds the two gradients,
    and its kernels for GPUs write other bits for NaN than those for hosts."""
    if x.is_floating_point():
        x = torch.where(x.isnan(), torch.full_like(x, float("nan")), x)
    return x.dtype, tuple(x.shape), x.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("c", CASES, ids=str)
def test_one_result_everywhere(c):
    first = None
    try:
        for device, isa, threads in WAYS:
            invar.set_isa(isa)
            invar.set_threads(threads)
            found = computed(c, device)
            first = first or found
            assert found == first, (device, isa, threads)
    finally:
        invar.set_isa()
        invar.set_threads(0)
