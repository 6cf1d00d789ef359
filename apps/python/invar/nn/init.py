"""torch.nn.init on Invar's generator: the same names and distributions, with the same bits on every
machine."""

import functools

from torch.nn import init as of_torch

__all__ = [
    "calculate_gain",
    "constant_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def _specified(function):
    @functools.wraps(function)
    def initialised(tensor, *args, **kwargs):
        from invar.reproducibility import reproducible

        with reproducible():
            return function(tensor, *args, **kwargs)

    return initialised


constant_ = _specified(of_torch.constant_)
eye_ = _specified(of_torch.eye_)
kaiming_normal_ = _specified(of_torch.kaiming_normal_)
kaiming_uniform_ = _specified(of_torch.kaiming_uniform_)
normal_ = _specified(of_torch.normal_)
ones_ = _specified(of_torch.ones_)
trunc_normal_ = _specified(of_torch.trunc_normal_)
uniform_ = _specified(of_torch.uniform_)
xavier_normal_ = _specified(of_torch.xavier_normal_)
xavier_uniform_ = _specified(of_torch.xavier_uniform_)
zeros_ = _specified(of_torch.zeros_)
calculate_gain = of_torch.calculate_gain
