"""with invar.reproducible(): torch code computes the same bits whatever torch's own kernels would
do; what it does not cover it names."""

import math

import pytest
import torch
from built import digest, script, whole
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import invar
from invar.reproducibility import allowed, kernels_mode

# An unmodified program: model, loss, clipping and optimiser are torch's.
TRAINING = """
import contextlib, sys
import numpy as np, torch
import torch.nn.functional as F
from torch import nn

def run(context, threads=1):
    torch.set_num_threads(threads)
    rng = np.random.default_rng(0)
    values = lambda *s: torch.from_numpy(rng.standard_normal(s).astype("f"))
    model = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(values(*p.shape) * 0.1)
    x, target = values(96, 40), torch.from_numpy(rng.integers(0, 5, 96))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    with context:
        for _ in range(4):
            optimizer.zero_grad()
            loss = F.nll_loss(F.log_softmax(model(x), -1), target)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
    return [loss, *model.parameters()]
"""


def namespace():
    found = {}
    exec(TRAINING, found)
    return found


@pytest.fixture(scope="module")
def trained():
    return namespace()["run"](invar.reproducible())


def test_a_training_program_learns_what_torch_does(trained):
    import contextlib

    plain = namespace()["run"](contextlib.nullcontext())
    for ours, torchs in zip(trained, plain):
        torch.testing.assert_close(ours, torchs, rtol=1e-3, atol=2e-5)


def test_its_bits_depend_on_no_kernel_of_torch(trained):
    """torch's kernels for another instruction set, and other threads, change the bits of torch
    alone."""
    said = script(
        "from built import digest\nimport invar\n" + TRAINING + "print(digest(run(invar.reproducible(), 2)))",
        ATEN_CPU_CAPABILITY="default",
    )
    assert said.strip() == digest(trained)


class Spy(TorchDispatchMode):
    """What reaches torch's kernels after all."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        base = kernels_mode.plain(function._schema.name.split("::")[1])
        numbers = [x for x in kernels_mode.flat([*args, result]) if isinstance(x, torch.Tensor)]
        known = allowed.MOVES | allowed.QUESTIONS | allowed.EXACT | {"copy", "_to_copy", "scatter"}
        if base not in known and any(x.is_floating_point() for x in numbers):
            self.seen.add(base)
        return result


def test_no_arithmetic_kernel_of_torch_runs():
    with Spy() as spy:
        namespace()["run"](invar.reproducible())
    # Weights are made before: `mul` there is the program's own, outside of the context.
    assert spy.seen - {"mul", "uniform", "div"} == set()
    with Spy() as spy:
        x = whole((4, 8), 1).requires_grad_()
        spy.seen.clear()
        with invar.reproducible():
            ((x @ x.T).sigmoid() * x.sum()).mean().backward()
            torch.optim.SGD([x], lr=0.1, momentum=0.9, weight_decay=0.1).step()
    assert spy.seen == set()
    with Spy() as spy:
        (x @ x.T).mean()
    assert spy.seen == {"mm", "mean"}


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
    torch.testing.assert_close(ours.double(), getattr(torch, name)(x.double()), rtol=3e-7, atol=1e-7)
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


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_fused_optimisers_are_the_plain_ones(name):
    found = []
    for fused in (False, True):
        p = whole((3, 4), 7).requires_grad_()
        optimizer = getattr(torch.optim, name)([p], lr=0.01, weight_decay=0.1, fused=fused)
        with invar.reproducible():
            for k in range(3):
                p.grad = whole(p.shape, 9 + k)
                optimizer.step()
        found.append(digest([p]))
    assert found[0] == found[1]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_of_activations_change_no_bit(reentrant):
    def block(x):
        return torch.tanh(F.linear(x, w)) * x.sum(-1, keepdim=True)

    w, found = whole((6, 6), 1).requires_grad_(), []
    for keep in (True, False):
        x = whole((4, 6), 2).requires_grad_()
        w.grad = None
        with invar.reproducible():
            y = block(x) if keep else checkpoint(block, x, use_reentrant=reentrant)
            y.square().sum().backward()
        found.append(digest([y, x.grad, w.grad]))
    assert found[0] == found[1]


def test_gradients_by_grad_and_of_gradients():
    x = whole((3, 4), 3).requires_grad_()
    with invar.reproducible():
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(first, 3 * x**2)
    torch.testing.assert_close(second, 6 * x)


def test_rows_added_to_twice_keep_their_order():
    table = whole((4, 3), 4).requires_grad_()
    rows = torch.tensor([1, 1, 3, 1])
    with invar.reproducible():
        table[rows].mul(whole((4, 3), 5)).sum().backward()
        there = torch.zeros(4, 3).index_put((rows,), whole((4, 3), 5), accumulate=True)
    want = torch.zeros(4, 3)
    for row, values in zip(rows, whole((4, 3), 5)):
        want[row] += values
    assert torch.equal(table.grad, want) and torch.equal(there, want)


X = torch.ones(2, 3)
REFUSED = {
    "fft": (lambda: torch.fft.fft(X), "torch.fft.fft"),
    "multinomial": (lambda: torch.multinomial(X, 1), "multinomial"),
    "svd": (lambda: torch.linalg.svd(X), "svd"),
    "lgamma": (lambda: torch.lgamma(X), "lgamma"),
    "complex": (lambda: X.to(torch.complex64) * 1j, "complex64"),
    "index twice": (lambda: X.clone().index_put_((torch.tensor([0, 0]),), X), "stands twice"),
    "lstm": (lambda: torch.nn.LSTM(3, 4)(X), "lstm"),
    "histc": (lambda: torch.histc(X), "histc"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_covered_is_named_with_the_line(name):
    function, named = REFUSED[name]
    with pytest.raises(invar.NotCovered, match=named) as e, invar.reproducible():
        function()
    assert isinstance(e.value, NotImplementedError)
    assert "test_reproducible.py:" in str(e.value) and "\n" not in str(e.value)
    torch.ones(2).sum()  # nothing of the context is left


def test_whole_numbers_stay_torchs():
    with invar.reproducible():
        x = torch.arange(10).reshape(2, 5)
        assert (x.sum() + x.max() - x.cumsum(1)[0, -1]).item() == 45 + 9 - 10
        assert torch.bincount(x.flatten() % 3).tolist() == [4, 3, 3]
        assert (x // 3 % 2 == 0).sum().item() == 6 and x.float().tolist()[1][4] == 9.0
        torch.manual_seed(1)
        assert sorted(torch.randperm(5).tolist()) == [0, 1, 2, 3, 4]


def test_as_a_decorator_and_nested():
    @invar.reproducible()
    def mean(x):
        with invar.reproducible():
            return x.mean()

    assert mean(X).item() == 1.0
    assert mean(X).item() == 1.0
