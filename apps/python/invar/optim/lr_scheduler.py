"""Schedules of learning rates that are the same numbers on every machine (spec: optim.10).

torch's schedulers compute with Python floats. Those that only add, subtract, multiply and divide
are reproducible as they are and stand here, too; LambdaLR and MultiplicativeLR are as reproducible
as the function that they are given. Others of torch's call C's cos, pow or log, which differ
between machines in the last place; those here round the true cosine or power once, and raise to
whole powers by multiplications."""

import math
from bisect import bisect_right
from fractions import Fraction
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim import lr_scheduler as of_torch
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    ReduceLROnPlateau,
    SequentialLR,
)

from invar import _native
from invar.optim.rounded import cos_pi, pow_of
from invar.optim.scalars import power

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "WarmupCosineLR",
    "cos_pi",
]

Rate = float | Tensor


def _whole(name: str, value: int, least: int) -> int:
    if int(value) != value or value < least:
        raise _native.BadInput(f"{name}: expected a whole number of at least {least}, got {value}")
    return int(value)


def _annealed(base: float, least: float, done: int, steps: int) -> float:
    return least + (base - least) * ((1.0 + cos_pi(done, steps)) * 0.5)


class CosineAnnealingLR(LRScheduler):
    """torch.optim.lr_scheduler.CosineAnnealingLR: in step t of T_max the rate is
    eta_min + (initial - eta_min) (1 + cos(pi t / T_max)) / 2."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = _whole("T_max", T_max, 1), float(eta_min)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        return [
            _annealed(float(base), self.eta_min, self.last_epoch, self.T_max)
            for base in self.base_lrs
        ]


class WarmupCosineLR(LRScheduler):
    """Rates that rise linearly from 0 during `warmup` steps and then fall along half a cosine, to
    eta_min in step `total`, where they stay."""

    def __init__(
        self,
        optimizer: Optimizer,
        warmup: int,
        total: int,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.warmup, self.total = _whole("warmup", warmup, 0), _whole("total", total, 1)
        if self.total <= self.warmup:
            raise _native.BadInput(f"total: expected more than warmup = {warmup}, got {total}")
        self.eta_min = float(eta_min)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        t = min(self.last_epoch, self.total)
        if t < self.warmup:
            return [float(base) * t / self.warmup for base in self.base_lrs]
        done, steps = t - self.warmup, self.total - self.warmup
        return [_annealed(float(base), self.eta_min, done, steps) for base in self.base_lrs]


class StepLR(of_torch.StepLR):
    """torch.optim.lr_scheduler.StepLR."""

    def _get_closed_form_lr(self) -> list[Rate]:
        done = self.last_epoch // self.step_size
        return [base * power(self.gamma, done) for base in self.base_lrs]


class ExponentialLR(of_torch.ExponentialLR):
    """torch.optim.lr_scheduler.ExponentialLR."""

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base * power(self.gamma, self.last_epoch) for base in self.base_lrs]


class MultiStepLR(of_torch.MultiStepLR):
    """torch.optim.lr_scheduler.MultiStepLR: a milestone that stands n times multiplies by the nth
    power of gamma, made by multiplications (spec: optim.7)."""

    def get_lr(self) -> list[Rate]:
        times = self.milestones.get(self.last_epoch, 0)
        factor = power(self.gamma, times)
        return [x["lr"] * factor if times else x["lr"] for x in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Rate]:
        done = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * power(self.gamma, done) for base in self.base_lrs]


class PolynomialLR(of_torch.PolynomialLR):
    """torch.optim.lr_scheduler.PolynomialLR: step t multiplies the rate by ((1 - t / T) /
    (1 - (t - 1) / T)) to the power `power`, which is rounded once."""

    def get_lr(self) -> list[Rate]:
        t, total = self.last_epoch, self.total_iters
        if getattr(self, "_is_initial", t == 0) or t > total:
            return [x["lr"] for x in self.optimizer.param_groups]
        factor = pow_of((1.0 - t / total) / (1.0 - (t - 1) / total), self.power)
        return [x["lr"] * factor for x in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Rate]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * pow_of(left, self.power) for base in self.base_lrs]


class CyclicLR(of_torch.CyclicLR):
    """torch.optim.lr_scheduler.CyclicLR. A scale_fn of yours is as reproducible as what it
    computes."""

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return math.ldexp(1.0, 1 - int(x))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return power(gamma, int(x))


class OneCycleLR(of_torch.OneCycleLR):
    """torch.optim.lr_scheduler.OneCycleLR, whose cosine of pi * pct is rounded once."""

    @staticmethod
    def _annealing_cos(start: float, end: float, pct: float) -> float:
        return end + (start - end) / 2.0 * (cos_pi(*float(pct).as_integer_ratio()) + 1.0)


class CosineAnnealingWarmRestarts(of_torch.CosineAnnealingWarmRestarts):
    """torch.optim.lr_scheduler.CosineAnnealingWarmRestarts: t = T_cur steps into a run of T_i the
    rate is eta_min + (initial - eta_min) (1 + cos(pi t / T_i)) / 2. Which run a given epoch lies in
    is found by whole numbers."""

    def get_lr(self) -> list[Rate]:
        part = Fraction(self.T_cur) / self.T_i
        return [
            _annealed(float(base), self.eta_min, part.numerator, part.denominator)
            for base in self.base_lrs
        ]

    def step(self, epoch: Any = None) -> None:
        """The next step, or that of `epoch`, which may have a fraction."""
        if epoch is None or self.T_mult == 1 or not epoch >= self.T_0:
            super().step(epoch)
            return
        begin, length = 0, self.T_0
        while epoch >= begin + length:
            begin, length = begin + length, length * self.T_mult
        self.T_cur, self.T_i, self.last_epoch = epoch - begin, length, math.floor(epoch)
        rates = self.get_lr()
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self._last_lr = list(rates)
