"""What torch code computes under invar.reproducible() is what torch computes, as exactly as its
dtype allows."""

import contextlib
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


def _weight_norm(x, of):
    layer = of(torch.nn.Linear(5, 4, dtype=x.dtype))
    for i, p in enumerate(layer.parameters()):
        p.data.copy_(whole(p.shape, 40 + i))
    for i, b in enumerate(layer.buffers()):
        b.data.copy_(torch.nn.functional.normalize(whole(b.shape, 50 + i).double(), dim=0))
    return layer.eval()(x)


PARAMETRISED = torch.nn.utils.parametrizations
SQUARE = whole((4, 4), 12)
MORE = {
    "vdot": lambda x: torch.vdot(x[0], x[1]),
    "spectral_norm": lambda x: _weight_norm(x, PARAMETRISED.spectral_norm),
    "weight_norm": lambda x: _weight_norm(x, PARAMETRISED.weight_norm),
    "weight_norm of columns": lambda x: _weight_norm(x, lambda l: PARAMETRISED.weight_norm(l, dim=1)),
    "median": lambda x: x.median(),
    "median of rows": lambda x: x.median(1).values,
    "median, kept": lambda x: x.median(0, keepdim=True).values,
    "kthvalue": lambda x: x.kthvalue(2, 1).values,
    "quantile": lambda x: torch.quantile(x, 0.3),
    "quantiles": lambda x: torch.quantile(x, x.new_tensor([0.2, 0.5, 0.9]), dim=1),
    "cdist": lambda x: torch.cdist(x, x[:3] + 1),
    "cdist of order 1": lambda x: torch.cdist(x, x[:3] + 1, p=1.0),
    "hypot": lambda x: torch.hypot(x, x + 1),
    "xlogy": lambda x: torch.xlogy(x, x.abs() + 1),
    "cross": lambda x: torch.linalg.cross(x[:, :3], x[:, 2:]),
    "nansum": lambda x: torch.nansum(torch.where(x > 0.5, torch.nan, x), 1),
    "aminmax": lambda x: torch.stack(torch.aminmax(x)),
    "std_mean": lambda x: torch.stack(torch.std_mean(x, 1)),
    "trace": lambda x: torch.trace(x),
    "addr": lambda x: torch.addr(x, x[:, 0], x[0], beta=0.5, alpha=2.0),
    "fmax": lambda x: torch.fmax(x, -x),
    "erfinv": lambda x: torch.erfinv(x.tanh()),
    "erfinv near 1": lambda x: torch.erfinv(1 - (x.abs() + 2.0**-10) * 2.0**-14) * 2.0**-7,
    "grid_sample": lambda x: torch.nn.functional.grid_sample(
        x.reshape(1, 1, 6, 5), x[:4, :2].tanh().reshape(1, 2, 2, 2), align_corners=False),
    "rrelu": lambda x: torch.nn.functional.rrelu(x, training=False),
    "lerp": lambda x: torch.lerp(x, x * 2, x.sigmoid()),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_more_kernels(name):
    """Values and gradients near those of torch in binary64."""
    function, found = MORE[name], []
    for dtype in (torch.float32, torch.float64):
        x = whole((6, 5), 6).to(dtype).requires_grad_()
        with invar.reproducible() if dtype == torch.float32 else contextlib.nullcontext():
            y = function(x)
            try:
                (y * y).sum().backward()
            except RuntimeError as e:
                assert "derivative for" in str(e) and dtype == torch.float64
                pytest.skip("this torch has no gradient of it")
        found.append((y.double(), x.grad.double()))
    for ours, torchs in zip(*found):
        torch.testing.assert_close(ours, torchs, rtol=2e-4, atol=2e-5)


def test_orders_and_special_values():
    x = torch.tensor([[2.0, 1, 2, 1], [0, torch.nan, 3, torch.nan]])
    with invar.reproducible():
        values, places = x.median(1)
        assert torch.isnan(x.median()) and values[0] == 1 and torch.isnan(values[1])
        assert places.tolist() == [3, 1]
        special = torch.tensor([0.0, -0.0, 1, -1, 2, torch.nan, 2.0**-120])
        found = torch.erfinv(special)
        assert found.tolist()[:4] == [0, 0, torch.inf, -torch.inf] and found[1].signbit()
        assert found[4:6].isnan().all() and 0 < found[6] < 2.0**-120
        assert torch.allclose(x, x, equal_nan=True) and not torch.allclose(x, x)
        assert torch.allclose(x[0], x[0] * (1 + 1e-6)) and not torch.allclose(x[0], x[0] * 1.01)
        assert torch.nan_to_num(x, 7.0).tolist()[1] == [0, 7, 3, 7]
        y = x.clone()
        assert y.nan_to_num_(7.0).tolist()[1] == [0, 7, 3, 7]
        assert torch.xlogy(torch.zeros(2), torch.tensor([0.0, torch.nan])).tolist()[0] == 0


@pytest.mark.parametrize("shape", [(5, 5), (7, 3), (3, 7)])
def test_orthogonal_matrices(shape):
    a = whole(shape, 3)
    with invar.reproducible():
        q, r = torch.linalg.qr(a)
        torch.manual_seed(3)
        w = torch.nn.init.orthogonal_(torch.empty(shape))
    torch.testing.assert_close(q @ r, a, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(r, r.triu(), rtol=0, atol=0)
    k = min(shape)
    torch.testing.assert_close(q.T @ q, torch.eye(k), rtol=0, atol=1e-6)
    torch.testing.assert_close(
        w @ w.T if shape[0] <= shape[1] else w.T @ w, torch.eye(k), rtol=0, atol=1e-6
    )
    torch.manual_seed(3)
    assert torch.equal(invar.nn.init.orthogonal_(torch.empty(shape)), w)


def test_random_choices_have_their_frequencies():
    weights = torch.tensor([1.0, 0, 3, 4])
    with invar.reproducible():
        torch.manual_seed(0)
        drawn = torch.multinomial(weights, 8000, replacement=True)
        once = torch.stack([torch.multinomial(weights, 3) for _ in range(20)])
        sample = torch.distributions.Categorical(logits=weights.log()).sample((4000,))
        waits = torch.empty(8000).exponential_(2.0)
        gumbel = torch.nn.functional.gumbel_softmax(weights.expand(4000, 4), hard=True)
        cut = torch.nn.init.trunc_normal_(torch.empty(4000), 0.0, 1.0, -0.5, 1.0)
        narrow = torch.nn.init.trunc_normal_(torch.empty(4000), 0.0, 1.0, 1.0, 1.1)
        with pytest.raises(RuntimeError, match="multinomial"):
            torch.multinomial(weights, 4)
    for found, n in ((drawn, 8000), (sample, 4000)):
        counts = torch.bincount(found, minlength=4) / n
        torch.testing.assert_close(counts, weights / 8, rtol=0, atol=0.03)
    assert all(set(row.tolist()) == {0, 2, 3} for row in once)
    assert (waits > 0).all() and abs(waits.mean() - 0.5) < 0.03
    torch.testing.assert_close(gumbel.mean(0), weights.softmax(0), rtol=0, atol=0.03)
    assert (cut >= -0.5).all() and (cut <= 1).all() and abs(cut.mean() - 0.2) < 0.05
    assert (narrow >= 1).all() and (narrow <= 1.1).all()
