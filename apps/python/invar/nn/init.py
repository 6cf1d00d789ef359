"""torch.nn.init on Invar's generator: the same names and distributions, with the same bits on every
machine."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from torch.nn import init as of_torch

from invar.reproducibility import reproducible

__all__ = [
    "calculate_gain",
    "constant_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "dirac_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


P = ParamSpec("P")
R = TypeVar("R")


def _specified(function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def initialised(*args: P.args, **kwargs: P.kwargs) -> R:
        with reproducible():
            return function(*args, **kwargs)

    return initialised


constant_ = _specified(of_torch.constant_)
eye_ = _specified(of_torch.eye_)
kaiming_normal_ = _specified(of_torch.kaiming_normal_)
kaiming_uniform_ = _specified(of_torch.kaiming_uniform_)
normal_ = _specified(of_torch.normal_)
dirac_ = _specified(of_torch.dirac_)
orthogonal_ = _specified(of_torch.orthogonal_)
sparse_ = _specified(of_torch.sparse_)
ones_ = _specified(of_torch.ones_)
trunc_normal_ = _specified(of_torch.trunc_normal_)
uniform_ = _specified(of_torch.uniform_)
xavier_normal_ = _specified(of_torch.xavier_normal_)
xavier_uniform_ = _specified(of_torch.xavier_uniform_)
zeros_ = _specified(of_torch.zeros_)
calculate_gain = of_torch.calculate_gain
