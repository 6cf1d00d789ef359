"""invar.optim near torch.optim in binary64: steps, clipping, schedules, continued state dicts."""

import copy
import math

import pytest
import torch
from invar import optim
from invar.optim import lr_scheduler, rounded, scalars
from test_optim import DEVICES, data, each_case, made, of, run, set_gradients


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


@pytest.mark.parametrize("norm_type", [2, math.inf])
@pytest.mark.parametrize("most", [0.5, 1e6])
@pytest.mark.parametrize("device", DEVICES)
def test_clip_grad_norm(norm_type, most, device):
    ours, theirs = (
        [x for x in all_of if x.numel()] for all_of in (made(device=device), made(torch.float64))
    )  # torch takes no norm of an empty tensor
    set_gradients(ours)
    set_gradients(theirs)
    a = optim.clip_grad_norm_(ours, most, norm_type)
    b = torch.nn.utils.clip_grad_norm_(theirs, most, norm_type)
    torch.testing.assert_close(a.cpu().double(), b)
    for x, y in zip(ours, theirs):
        torch.testing.assert_close(x.grad.cpu().double(), y.grad, rtol=1e-5, atol=1e-7)


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
        ("MultiStepLR", dict(milestones=[3, 5, 9])),
        ("LambdaLR", dict(lr_lambda=lambda t: 1 / (1 + t))),
        ("MultiplicativeLR", dict(lr_lambda=lambda t: 0.5)),
        ("CyclicLR", dict(base_lr=0.01, max_lr=0.1, step_size_up=3, mode="triangular2")),
    ):
        make = lambda o: getattr(lr_scheduler, name)(o, **options)  # noqa: B023, E731
        assert rates(make, optim.SGD) == rates(make, torch.optim.SGD)
    joined = rates(
        lambda o: lr_scheduler.SequentialLR(
            o,
            [
                lr_scheduler.LinearLR(o, start_factor=0.25, total_iters=3),
                lr_scheduler.CosineAnnealingLR(o, 8),
            ],
            milestones=[3],
        ),
        optim.SGD,
    )
    cosine = [0.05 * (1 + math.cos(math.pi * i / 8)) for i in range(9)]
    assert joined == pytest.approx([0.025, 0.05, 0.075, *cosine], abs=1e-12)
    with pytest.raises(ValueError, match="T_max"):
        lr_scheduler.CosineAnnealingLR(optim.SGD(made()), 0)


@pytest.mark.parametrize(
    "name, options",
    [
        ("MultiStepLR", dict(milestones=[3, 3, 3, 5, 9], gamma=0.3)),
        ("PolynomialLR", dict(total_iters=8, power=0.9)),
        ("PolynomialLR", dict(total_iters=9, power=2)),
        (
            "CyclicLR",
            dict(base_lr=0.01, max_lr=0.1, step_size_up=3, mode="exp_range", gamma=0.97),
        ),
        ("OneCycleLR", dict(max_lr=0.5, total_steps=13)),
        ("OneCycleLR", dict(max_lr=0.5, total_steps=20, three_phase=True)),
        ("OneCycleLR", dict(max_lr=0.5, total_steps=13, anneal_strategy="linear")),
        ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=2, eta_min=0.01)),
    ],
)
@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_schedules_near_those_of_torch(name, options, kind):
    """Rates and, where they go around, momenta; with a state dict in the middle."""

    def rates(schedules, optimizers):
        found = []
        parameters = [torch.nn.Parameter(torch.zeros(1))]
        more = dict(momentum=0.9) if kind == "SGD" else {}
        make = lambda: getattr(optimizers, kind)(parameters, lr=0.1, **more)  # noqa: E731
        optimizer = make()
        scheduler = getattr(schedules, name)(optimizer, **options)
        for i in range(12):
            if i == 6:
                states = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
                optimizer = make()
                scheduler = getattr(schedules, name)(optimizer, **options)
                optimizer.load_state_dict(states[0])
                scheduler.load_state_dict(states[1])
            group = optimizer.param_groups[0]
            found += [group["lr"], *group.get("betas", [group.get("momentum")])]
            optimizer.step()
            scheduler.step()
        return found

    ours = rates(lr_scheduler, optim)
    assert ours == pytest.approx(rates(torch.optim.lr_scheduler, torch.optim), rel=1e-12)
    assert len(set(ours)) > 3


def test_warm_restarts_by_epoch():
    make = lambda m: m.CosineAnnealingWarmRestarts(  # noqa: E731
        torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1), 3, 2
    )
    ours, theirs = make(lr_scheduler), make(torch.optim.lr_scheduler)
    for epoch in (0, 1.5, 3, 8.25, 9, 20.75, 2, 21):
        ours.step(epoch)
        theirs.step(epoch)
        assert ours.get_last_lr() == pytest.approx(theirs.get_last_lr(), rel=1e-9), epoch
    assert ours.state_dict().keys() == theirs.state_dict().keys()


def test_powers_are_rounded():
    from fractions import Fraction

    for base, exponent in ((0.96, 0.004), (0.96, 12.5), (0.3, 0.9), (1.7, -3.25), (0.999, 1e4)):
        found = rounded.pow_of(base, exponent)
        assert found == pytest.approx(base**exponent, rel=1e-14)
        whole = Fraction(exponent)  # found ** q is near base ** p where exponent = p / q
        if whole.denominator <= 4:
            q, wanted = whole.denominator, Fraction(base) ** whole.numerator
            low, high = (Fraction(math.nextafter(found, t)) for t in (0.0, math.inf))
            half = lambda other: ((Fraction(found) + other) / 2) ** q  # noqa: B023, E731
            assert half(low) <= wanted <= half(high)
    assert rounded.pow_of(0.25, 0.5) == 0.5 and rounded.pow_of(0.0, 0.0) == 1.0
    assert rounded.pow_of(0.0, 2.0) == 0.0 and rounded.pow_of(0.5, 2000.0) == 0.0
    assert rounded.pow_of(0.9, 3.0) == float(Fraction(0.9) ** 3)
