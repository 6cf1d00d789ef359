"""invar.optim: bits that depend neither on threads nor on the instruction set nor on how tensors
are joined; state dicts with torch's keys; refusals. test_optim_accuracy.py compares numbers with
torch."""

import math
import pickle

import invar
import pytest
import torch
from conftest import cpu_isas
from invar import optim
from invar import primitives as p
from invar.optim import flat, scalars

SHAPES = [(3, 5), (7,), (), (0, 3), (2, 3, 1, 4), (33,)]
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
    "rmsprop": ("RMSprop", dict(lr=0.003)),
    "rmsprop centered": (
        "RMSprop",
        dict(lr=0.003, momentum=0.5, centered=True, alpha=0.8, eps=1e-3, weight_decay=0.1),
    ),
    "adagrad": (
        "Adagrad",
        dict(lr=0.05, lr_decay=0.1, initial_accumulator_value=0.5, weight_decay=0.1),
    ),
    "adadelta": ("Adadelta", dict(lr=0.5, rho=0.8, eps=1e-4, maximize=True)),
    "adamax": ("Adamax", dict(lr=0.01, weight_decay=0.1)),
    "nadam": ("NAdam", dict(lr=0.01, momentum_decay=0.01)),
    "nadam decay": ("NAdam", dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True)),
    "radam": ("RAdam", dict(lr=0.01, weight_decay=0.1)),
    "radam decay": (
        "RAdam",
        dict(lr=0.01, betas=(0.8, 0.9), weight_decay=0.1, decoupled_weight_decay=True),
    ),
}
each_case = pytest.mark.parametrize("case", CASES)


def of(module, case):
    name, options = CASES[case]
    return lambda params: getattr(module, name)(params, **options)


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


@each_case
def test_bits_for_instruction_sets_of_steps(case):
    found = set()
    try:
        for isa in cpu_isas():
            invar.set_isa(isa)
            params = made()
            run(of(optim, case), params)
            found.add(data(params))
    finally:
        invar.set_isa("")
    assert len(found) == 1


@each_case
@pytest.mark.parametrize("device", DEVICES)
def test_bits_for_devices(case, device):
    """Also of clipped gradients. With "cpu" alone it says that a run repeats."""
    found = []
    for place in ("cpu", device):
        params = made(device=place)
        set_gradients(params)
        norm = optim.clip_grad_norm_(params, 0.5)
        optim.clip_grad_value_(params, 0.125)
        of(optim, case)(params).step()
        clipped = data(params)
        run(of(optim, case), params)
        found.append((data([norm]), clipped, data(params)))
    assert found[0] == found[1]


@each_case
def test_parameters_that_come_and_go(case, monkeypatch):
    """Gradients of some parameters only, and state tensors that a program replaces."""
    found = []
    for most in (1 << 16, 1, 20):
        monkeypatch.setitem(flat.MOST, "cpu", most)
        params = made()
        optimizer = of(optim, case)(params)
        for i in range(12):
            set_gradients(params)
            for k, x in enumerate(params):
                if (i * 7 + k * 5) % 4 == 0:
                    x.grad = None
            optimizer.step()
            for name, value in list(optimizer.state.get(params[1], {}).items()):
                if name in ("step", "mu_product"):
                    continue
                if i == 5:
                    optimizer.state[params[1]][name] = value * 2
                if i == 7:
                    value.data = value * 2
        found.append(data(params))
    assert found[0] == found[1] == found[2]


def test_copies_of_an_optimizer():
    params = made()
    first = run(of(optim, "adam"), params, 3)
    second = pickle.loads(pickle.dumps(first))
    copied = second.param_groups[0]["params"]
    for x, y in zip(params, copied):
        x.grad = torch.ones_like(x)
        y.grad = torch.ones_like(y)
    first.step()
    second.step()
    assert data(params) == data(copied)


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
        monkeypatch.setitem(flat.MOST, "cpu", most)
        again = made()
        run(of(optim, case), again)
        assert data(once) == data(again)


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


def test_groups_and_parameters_without_gradients():
    params = made()
    optimizer = optim.Adam([{"params": params[:2], "lr": 0.1}, {"params": params[2:]}], lr=0.0)
    before = [x.detach().clone() for x in params]
    set_gradients(params)
    params[1].grad = None
    optimizer.step()
    changed = [not torch.equal(a, b) for a, b in zip(params, before)]
    assert changed == [True] + [False] * 5
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


@pytest.mark.parametrize("sizes", [[9000], [4096], [4095, 1, 1], [100] * 99, [1, 8192, 7]])
def test_norm_is_that_of_one_row_of_segments(sizes, monkeypatch):
    """optim.9: however tensors and joined parts are cut."""
    x = torch.randn(sum(sizes), generator=torch.Generator().manual_seed(1))
    rows = torch.zeros(-(-x.numel() // 4096), 4096)
    rows.view(-1)[: x.numel()] = x
    sums = p.reduce_sum_square(rows, axes=[1], keepdims=0)
    wanted = p.sqrt(p.reduce_sum(sums, axes=[0], keepdims=0))
    for most in (1 << 24, 5000):
        monkeypatch.setitem(flat.MOST, "cpu", most)
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
