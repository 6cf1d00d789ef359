"""invar.optim: trajectories near those of torch.optim in binary64, state dicts of both kinds, and
bits that depend neither on threads nor on the instruction set nor on how tensors are joined."""

import copy
import math

import pytest

torch = pytest.importorskip("torch")

import invar  # noqa: E402
from invar import optim  # noqa: E402
from invar import primitives as p  # noqa: E402
from invar.optim import flat, lr_scheduler, scalars  # noqa: E402

SHAPES = [(3, 5), (7,), (), (2, 3, 1, 4), (33,)]
DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()


def made(dtype=torch.float32, device="cpu", seed=0):
    g = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(s, generator=g).to(device, dtype)) for s in SHAPES]


def loss_of(params):
    return sum((x.double() * (0.5 + i) - 1).square().sum() for i, x in enumerate(params))


def set_gradients(params):
    """The gradients of loss_of, rounded to the parameters' type; one stands out of memory order."""
    for i, x in enumerate(params):
        grad = 2 * (0.5 + i) * (x.detach().double() * (0.5 + i) - 1)
        x.grad = grad.to(x.dtype)
    if params[0].ndim == 2:
        params[0].grad = params[0].grad.t().contiguous().t()


def run(make, params, steps=25, schedule=None):
    optimizer = make(params)
    scheduler = schedule(optimizer) if schedule else None
    for _ in range(steps):
        set_gradients(params)
        optimizer.step()
        if scheduler:
            scheduler.step()
    return optimizer


def data(params):
    return b"".join(x.detach().cpu().contiguous().numpy().tobytes() for x in params)


CASES = {
    "sgd": ("SGD", dict(lr=0.01)),
    "decay": ("SGD", dict(lr=0.01, weight_decay=0.1)),
    "momentum": ("SGD", dict(lr=0.01, momentum=0.9, dampening=0.3, weight_decay=0.01)),
    "nesterov": ("SGD", dict(lr=0.01, momentum=0.9, nesterov=True)),
    "maximize": ("SGD", dict(lr=0.001, momentum=0.5, maximize=True)),
    "adam": ("Adam", dict(lr=0.01)),
    "adam decay": ("Adam", dict(lr=0.01, weight_decay=0.1, betas=(0.8, 0.95), eps=1e-6)),
    "amsgrad": ("Adam", dict(lr=0.05, amsgrad=True)),
    "adamw": ("AdamW", dict(lr=0.01, weight_decay=0.1)),
    "adamw amsgrad": ("AdamW", dict(lr=0.01, amsgrad=True, maximize=True)),
}
each_case = pytest.mark.parametrize("case", CASES)


def of(module, case):
    name, options = CASES[case]
    return lambda params: getattr(module, name)(params, **options)


@each_case
@pytest.mark.parametrize("device", DEVICES)
def test_trajectory_is_that_of_torch(case, device):
    ours, theirs = made(device=device), made(torch.float64)
    run(of(optim, case), ours)
    run(of(torch.optim, case), theirs)
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a.detach().cpu().double(), b.detach(), rtol=2e-4, atol=2e-5)
    assert data(ours) != data(made())


@each_case
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bits_for_threads(case, threads):
    once = made()
    run(of(optim, case), once)
    try:
        invar.set_threads(threads)
        again = made()
        run(of(optim, case), again)
    finally:
        invar.set_threads(0)
    assert data(once) == data(again)


STEPS = {
    "sgd_step": (2, [0.1, 0.01]),
    "momentum_step": (3, [0.1, 0.01, 0.9, 0.7]),
    "adam_step": (4, scalars.adam_scalars(1e-3, 0.9, 0.999, 1e-8, 0.1, True, 3)),
    "amsgrad_step": (5, scalars.adam_scalars(1e-3, 0.9, 0.999, 1e-8, 0.1, False, 7)),
    "lion_step": (3, [1e-3, 0.99, 0.1, 0.01]),
}


@pytest.mark.parametrize("op", STEPS)
@pytest.mark.parametrize("isa", ["scalar", "avx2", ""])
def test_bits_for_instruction_sets(op, isa):
    count, numbers = STEPS[op]
    g = torch.Generator().manual_seed(3)
    x = [torch.randn(10_001, generator=g).abs() for _ in range(count)]
    s = torch.tensor(numbers)
    wanted = p.call(op, *x, s, isa="reference")
    assert torch.equal(p.call(op, *x, s, isa=isa), wanted)
    assert not wanted.isnan().any()


@each_case
def test_joining_reaches_no_bit(case, monkeypatch):
    once = made()
    run(of(optim, case), once)
    for most in (1, 20):
        monkeypatch.setattr(flat, "MOST", most)
        again = made()
        run(of(optim, case), again)
        assert data(once) == data(again)


@each_case
def test_state_dicts_of_torch(case):
    """Ours after torch's, and torch's after ours: both continue near the whole run in binary64."""
    whole = made(torch.float64)
    run(of(torch.optim, case), whole, 20)
    for first, second in ((torch.optim, optim), (optim, torch.optim)):
        params = made()
        before = run(of(first, case), params, 10)
        after = of(second, case)(params)
        after.load_state_dict(copy.deepcopy(before.state_dict()))
        for _ in range(10):
            set_gradients(params)
            after.step()
        for a, b in zip(params, whole):
            torch.testing.assert_close(a.detach().double(), b.detach(), rtol=2e-4, atol=2e-5)


@each_case
def test_state_dict_has_the_keys_of_torch(case):
    ours, theirs = run(of(optim, case), made(), 2), run(of(torch.optim, case), made(), 2)
    a, b = ours.state_dict(), theirs.state_dict()
    assert a["param_groups"][0].keys() == b["param_groups"][0].keys()
    assert {i: set(s) for i, s in a["state"].items()} == {i: set(s) for i, s in b["state"].items()}
    for i, state in a["state"].items():
        for name, value in state.items():
            assert value.shape == b["state"][i][name].shape, name
            assert value.dtype == b["state"][i][name].dtype, name


@each_case
def test_resuming_is_exact(case, tmp_path):
    whole = made()
    run(of(optim, case), whole, 20)
    params = made()
    before = run(of(optim, case), params, 10)
    torch.save(before.state_dict(), tmp_path / "state")
    after = of(optim, case)(params)
    after.load_state_dict(torch.load(tmp_path / "state"))
    for _ in range(10):
        set_gradients(params)
        after.step()
    assert data(params) == data(whole)


def test_lion():
    """Against its formula in binary64."""
    ours = made()
    run(lambda params: optim.Lion(params, lr=0.01, weight_decay=0.1), ours)
    params = made(torch.float64)
    means = [torch.zeros_like(x) for x in params]
    for _ in range(25):
        set_gradients(params)
        for x, m in zip(params, means):
            with torch.no_grad():
                update = (0.9 * m + 0.1 * x.grad).sign()
                x.mul_(1 - 0.01 * 0.1).sub_(0.01 * update)
                m.mul_(0.99).add_(0.01 * x.grad)
    for a, b in zip(ours, params):
        torch.testing.assert_close(a.detach().double(), b.detach(), rtol=1e-4, atol=1e-5)


def test_groups_and_parameters_without_gradients():
    params = made()
    optimizer = optim.Adam([{"params": params[:2], "lr": 0.1}, {"params": params[2:]}], lr=0.0)
    before = [x.detach().clone() for x in params]
    set_gradients(params)
    params[1].grad = None
    optimizer.step()
    changed = [not torch.equal(a, b) for a, b in zip(params, before)]
    assert changed == [True, False, False, False, False]
    set_gradients(params)
    optimizer.step()  # parameter 1 takes its first step, parameter 0 its second
    assert [float(optimizer.state[x]["step"]) for x in params[:2]] == [2.0, 1.0]


def test_closure_and_hooks():
    params = made()
    optimizer = optim.SGD(params, lr=0.01)
    seen = []
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))

    def closure():
        optimizer.zero_grad()
        loss = loss_of(params)
        loss.backward()
        return loss

    assert optimizer.step(closure) > optimizer.step(closure)
    assert seen == ["after", "after"]


def test_a_nan_stays_in_its_element():
    params = made()
    set_gradients(params)
    params[0].grad[1, 2] = math.nan
    optim.AdamW(params).step()
    assert int(sum(x.isnan().sum() for x in params)) == 1
    assert params[0][1, 2].isnan()


@pytest.mark.parametrize(
    "options, error, message",
    [
        (dict(lr=-1.0), ValueError, "lr"),
        (dict(lr=torch.tensor(0.1)), NotImplementedError, "lr is a tensor"),
        (dict(betas=(0.9, 1.0)), ValueError, r"betas\[1\]"),
        (dict(capturable=True), NotImplementedError, "capturable=True"),
        (dict(differentiable=True), NotImplementedError, "differentiable=True"),
    ],
)
def test_refused_options(options, error, message):
    with pytest.raises(error, match=message):
        optim.Adam(made(), **options)


def test_refused_tensors():
    with pytest.raises(NotImplementedError, match="parameter 0 is torch.bfloat16"):
        optim.SGD([torch.nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))])
    with pytest.raises(ValueError, match="nesterov"):
        optim.SGD(made(), nesterov=True)
    table = torch.nn.Embedding(5, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(NotImplementedError, match="gradient of parameter 0"):
        optim.SGD(table.parameters()).step()


@pytest.mark.parametrize("norm_type", [2, math.inf])
@pytest.mark.parametrize("most", [0.5, 1e6])
@pytest.mark.parametrize("device", DEVICES)
def test_clip_grad_norm(norm_type, most, device):
    ours, theirs = made(device=device), made(torch.float64)
    set_gradients(ours)
    set_gradients(theirs)
    a = optim.clip_grad_norm_(ours, most, norm_type)
    b = torch.nn.utils.clip_grad_norm_(theirs, most, norm_type)
    torch.testing.assert_close(a.cpu().double(), b)
    for x, y in zip(ours, theirs):
        torch.testing.assert_close(x.grad.cpu().double(), y.grad, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("sizes", [[9000], [4096], [4095, 1, 1], [100] * 99, [1, 8192, 7]])
def test_norm_is_that_of_one_row_of_segments(sizes, monkeypatch):
    """optim.9: however tensors and joined parts are cut."""
    x = torch.randn(sum(sizes), generator=torch.Generator().manual_seed(1))
    rows = torch.zeros(-(-x.numel() // 4096), 4096)
    rows.view(-1)[: x.numel()] = x
    sums = p.reduce_sum_square(rows, axes=[1], keepdims=0)
    wanted = p.sqrt(p.reduce_sum(sums, axes=[0], keepdims=0))
    for most in (1 << 24, 5000):
        monkeypatch.setattr(flat, "MOST", most)
        assert torch.equal(optim.get_total_norm(x.split(sizes)), wanted)


def test_clip_by_value_and_refusals():
    params = made()
    set_gradients(params)
    params[1].grad[0] = math.nan
    wanted = [x.grad.clamp(-0.25, 0.25) for x in params]
    optim.clip_grad_value_(params, 0.25)
    for x, y in zip(params, wanted):
        assert torch.equal(x.grad.nan_to_num(9), y.nan_to_num(9))
    with pytest.raises(RuntimeError, match="not finite"):
        optim.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    with pytest.raises(NotImplementedError, match="norm_type 3"):
        optim.clip_grad_norm_(params, 1.0, 3)
    assert optim.clip_grad_norm_([], 1.0) == 0


def test_power_is_near():
    for base in (0.9, 0.999, 0.5, 0.0):
        for n in (0, 1, 2, 3, 10, 1000, 123_456):
            assert scalars.power(base, n) == pytest.approx(base**n, rel=1e-14)


def test_cosine_is_rounded():
    for a, b in ((0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (3, 2), (5, 1), (-1, 3)):
        exact = {0: 1.0, 1: -1.0}.get(a / b % 2)
        near = math.cos(math.pi * a / b)
        assert lr_scheduler.cos_pi(a, b) == pytest.approx(near, abs=1e-15)
        assert exact is None or lr_scheduler.cos_pi(a, b) == exact
    assert lr_scheduler.cos_pi(1, 3) == 0.5 and lr_scheduler.cos_pi(7, 2) == 0.0
    assert lr_scheduler.cos_pi(1, 4).hex() == "0x1.6a09e667f3bcdp-1"  # sqrt(1/2)


def rates(make, cls, steps=12):
    optimizer = cls([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def test_schedules():
    ours = rates(lambda o: lr_scheduler.CosineAnnealingLR(o, 10, 0.01), optim.SGD)
    theirs = rates(
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10, 0.01), torch.optim.SGD
    )
    assert ours == pytest.approx(theirs, rel=1e-9)
    warm = rates(lambda o: lr_scheduler.WarmupCosineLR(o, 4, 10), optim.SGD)
    assert warm[:5] == [0.0, 0.025, 0.05, 0.1 * 3 / 4, 0.1] and warm[10:] == [0.0, 0.0]
    for name, options in (
        ("StepLR", dict(step_size=3)),
        ("LinearLR", dict(total_iters=4)),
        ("ExponentialLR", dict(gamma=0.9)),
    ):
        make = lambda o: getattr(lr_scheduler, name)(o, **options)  # noqa: B023, E731
        assert rates(make, optim.SGD) == rates(make, torch.optim.SGD)
    with pytest.raises(ValueError, match="T_max"):
        lr_scheduler.CosineAnnealingLR(optim.SGD(made()), 0)
