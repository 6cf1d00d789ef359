"""Schedules of learning rates that are the same numbers on every machine (spec: optim.10).

torch's schedulers compute with Python floats. Those that only add, subtract, multiply and divide
are reproducible as they are and stand here, too. torch's cosine schedules call C's cos, which
differs between machines in the last place; those here round the true cosine."""

import functools
from decimal import Decimal, localcontext
from fractions import Fraction

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    ExponentialLR,
    LinearLR,
    LRScheduler,
    SequentialLR,
    StepLR,
)

from invar import _native

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LinearLR",
    "SequentialLR",
    "StepLR",
    "WarmupCosineLR",
    "cos_pi",
]


@functools.cache
def _pi() -> Decimal:
    """To 100 digits: 16 atan(1/5) - 4 atan(1/239)."""

    def atan(n: int) -> Decimal:
        total, term, k = Decimal(0), Decimal(1) / n, 0
        while abs(term) > Decimal(10) ** -110:
            total += term / (2 * k + 1) * (-1 if k % 2 else 1)
            term /= n * n
            k += 1
        return total

    return 16 * atan(5) - 4 * atan(239)


@functools.lru_cache(1 << 16)
def cos_pi(numerator: int, denominator: int) -> float:
    """cos(pi * numerator / denominator) of whole numbers, rounded once to binary64."""
    turn = Fraction(numerator, denominator) % 2
    turn = 2 - turn if turn > 1 else turn  # the cosine is even
    if turn * 2 == 1:
        return 0.0
    with localcontext() as context:
        context.prec = 110
        square = (_pi() * turn.numerator / turn.denominator) ** 2
        total, term, k = Decimal(0), Decimal(1), 0
        while abs(term) > Decimal(10) ** -90:
            total += term
            term *= -square / ((k + 1) * (k + 2))
            k += 2
        return float(Fraction(round(total * Decimal(10) ** 80), 10**80))


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

    def get_lr(self) -> list[float | Tensor]:
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

    def get_lr(self) -> list[float | Tensor]:
        t = min(self.last_epoch, self.total)
        if t < self.warmup:
            return [float(base) * t / self.warmup for base in self.base_lrs]
        done, steps = t - self.warmup, self.total - self.warmup
        return [_annealed(float(base), self.eta_min, done, steps) for base in self.base_lrs]
