"""torch.nn.init on Invar's generator: the same names and distributions, with the same bits on every
machine."""

import functools

from torch.nn import init as of_torch

__all__ = [
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


for _name in __all__:
    globals()[_name] = _specified(getattr(of_torch, _name))
calculate_gain = of_torch.calculate_gain
