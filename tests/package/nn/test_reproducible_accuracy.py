"""What torch code computes under invar.reproducible() is what torch computes, as exactly as its
dtype allows."""

import math

import pytest
import torch
from built import digest, invar, whole
from torch.nn import functional as F
from training_program import PROGRAMS, trained


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_training_program_learns_what_torch_does(name):
    for ours, torchs in zip(trained(name, invar.reproducible()), trained(name)):
        torch.testing.assert_close(ours, torchs, rtol=2e-3, atol=5e-5)


UNARY = """abs neg sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sinh
cosh asinh atan erf erfc floor ceil trunc round sign sigmoid relu square""".split()


@pytest.mark.parametrize("name", UNARY)
def test_elementwise_functions(name):
    x = whole((3, 5), 3).abs() + 2**-6
    with invar.reproducible():
        ours = getattr(torch, name)(x)
        place = getattr(torch.Tensor, f"{name}_")(x.clone())
        several = torch.stack(getattr(torch, f"_foreach_{name}")([x])) if hasattr(
            torch, f"_foreach_{name}") else ours  # fmt: skip
    torch.testing.assert_close(
        ours.double(), getattr(torch, name)(x.double()), rtol=3e-7, atol=1e-7
    )
    assert digest([ours]) == digest([place]) == digest([several])


BINARY = {
    "add": lambda m, a, b: m.add(a, b, alpha=3),
    "sub": lambda m, a, b: m.sub(a, b, alpha=0.5),
    "mul": lambda m, a, b: a * b * 0.7,
    "div": lambda m, a, b: 2 / a / b,
    "floor_div": lambda m, a, b: m.div(a, b, rounding_mode="floor"),
    "pow": lambda m, a, b: 2 ** a.abs() + a.abs() ** b + a**2,
    "rsub": lambda m, a, b: 1 - a,
    "maximum": lambda m, a, b: m.maximum(a, b) - m.minimum(a, b),
    "remainder": lambda m, a, b: m.remainder(a, b) + m.fmod(a, b),
    "atan2": lambda m, a, b: m.atan2(a, b),
    "clamp": lambda m, a, b: a.clamp(-0.1, 0.2) + b.clamp(max=0.1),
    "lerp": lambda m, a, b: m.lerp(a, b, 0.3) + m.lerp(a, b, 0.8),
    "addcmul": lambda m, a, b: m.addcmul(a, a, b, value=0.3) + m.addcdiv(b, a, b, value=2),
    "half": lambda m, a, b: (a.half() * b.half() + 0.1).float(),
    "bf16": lambda m, a, b: (a.bfloat16() / b.bfloat16()).float(),
    "int": lambda m, a, b: a * m.arange(5) + (m.arange(5) // 2) / 3,
    "linspace": lambda m, a, b: a + m.linspace(0, 0.3, 5) + m.arange(0, 1, 0.2),
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_several_operands(name):
    a, b = whole((4, 5), 4), whole((4, 5), 5)
    a, b = torch.where(a == 0, 0.5, a), torch.where(b == 0, 0.25, b)
    with invar.reproducible():
        ours = BINARY[name](torch, a, b)
    rtol = {"half": 5e-3, "bf16": 2e-2}.get(name, 1e-6)
    torch.testing.assert_close(ours, BINARY[name](torch, a, b), rtol=rtol, atol=1e-6)
    assert ours.dtype == BINARY[name](torch, a, b).dtype


REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "sum_dim": lambda x: x.sum((0, 2), keepdim=True),
    "mean": lambda x: x.mean(-1),
    "max": lambda x: x.max(1).values + x.min(1).values + x.amax(1) - x.max(),
    "argmax": lambda x: x.argmax(1).float() + x.min(1).indices,
    "var": lambda x: x.var(-1) + x.std(-1, unbiased=False),
    "norm": lambda x: x.norm() + x.norm(1, 1).sum() + torch.linalg.vector_norm(x, math.inf),
    "softmax": lambda x: F.softmax(x, 1) + F.log_softmax(x, -1),
    "logsumexp": lambda x: x.logsumexp(1),
    "cumsum": lambda x: x.cumsum(1) + x[..., :2].cumprod(-1).sum(),
    "bmm": lambda x: x @ x.mT + torch.baddbmm(x @ x.mT, x, x.mT, beta=0.5, alpha=2),
    "index": lambda x: x[[0, 0, 1]] * x[0, 1:2],
    "sort": lambda x: x.sort(-1).values + x.topk(5, -1).values,
    "where": lambda x: torch.where(x > 0, x, x * 0.1).masked_fill(x > 0.5, 0.0),
    "cat": lambda x: torch.cat([x, x * 2]).reshape(4, -1).t().contiguous(),
    "embedding": lambda x: F.embedding(torch.tensor([[0, 1], [1, 1]]), x[0]),
    "linear": lambda x: F.linear(x, x[0], x[0, :, 0]),
    "mse": lambda x: F.mse_loss(x, x * 0.5),
    "cross_entropy": lambda x: F.cross_entropy(x[0], torch.tensor([0, 4, -100]), reduction="mean"),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_gradients(name):
    """Forward and backward against torch in binary64."""
    function, found = REDUCTIONS[name], []
    for dtype in (torch.float32, torch.float64):
        x = whole((2, 3, 5), 6).to(dtype).requires_grad_()
        if dtype == torch.float32:
            with invar.reproducible():
                y = function(x)
                (y * y).sum().backward() if y.requires_grad else None
        else:
            y = function(x)
            (y * y).sum().backward() if y.requires_grad else None
        found.append((y.double(), torch.zeros(()) if x.grad is None else x.grad.double()))
    for ours, torchs in zip(*found):
        torch.testing.assert_close(ours, torchs, rtol=2e-5, atol=2e-6)


OPTIMISERS = {
    "SGD": dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": dict(weight_decay=0.01),
    "AdamW": dict(amsgrad=True),
    "Adagrad": dict(lr_decay=0.1),
    "Adadelta": {},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "RMSprop": dict(momentum=0.9, centered=True),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_of_torch(name):
    """Bits alike for the forms over lists and over single tensors; values as in binary64."""
    found = []
    for dtype, foreach in [(torch.float32, False), (torch.float32, True), (torch.float64, False)]:
        ps = [whole((3, 4), 7).to(dtype), whole((5,), 8).to(dtype)]
        optimizer = getattr(torch.optim, name)(ps, **OPTIMISERS[name], foreach=foreach)

        def steps():
            for k in range(3):
                for p in ps:
                    p.grad = whole(p.shape, 9 + k).to(dtype)
                optimizer.step()

        if dtype == torch.float32:
            with invar.reproducible():
                steps()
        else:
            steps()
        found.append(ps)
    assert digest(found[0]) == digest(found[1])
    for ours, torchs in zip(found[0], found[2]):
        torch.testing.assert_close(ours.double(), torchs, rtol=1e-4, atol=1e-5)


def test_gradients_by_grad_and_of_gradients():
    x = whole((3, 4), 3).requires_grad_()
    with invar.reproducible():
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(first, 3 * x**2)
    torch.testing.assert_close(second, 6 * x)
