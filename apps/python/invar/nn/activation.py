"""Activations. inplace=True is taken as the permission that it is: the input keeps its values."""

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart
from invar.reproducibility.random import rrelu


def _module(of, function, *arguments):
    """torch's module `of`, whose forward is ops.FUNCTION of the input and of these attributes."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return getattr(ops, function)(input, *[getattr(self, name) for name in arguments])

    made = type(of.__name__, (of,), {"forward": forward, "__module__": __name__})
    return counterpart(made)


CELU = _module(nn.CELU, "celu", "alpha")
ELU = _module(nn.ELU, "elu", "alpha")
GELU = _module(nn.GELU, "gelu", "approximate")
GLU = _module(nn.GLU, "glu", "dim")
Hardshrink = _module(nn.Hardshrink, "hardshrink", "lambd")
Hardsigmoid = _module(nn.Hardsigmoid, "hardsigmoid")
Hardswish = _module(nn.Hardswish, "hardswish")
Hardtanh = _module(nn.Hardtanh, "hardtanh", "min_val", "max_val")
LeakyReLU = _module(nn.LeakyReLU, "leaky_relu", "negative_slope")
LogSigmoid = _module(nn.LogSigmoid, "logsigmoid")
LogSoftmax = _module(nn.LogSoftmax, "log_softmax", "dim")
Mish = _module(nn.Mish, "mish")
PReLU = _module(nn.PReLU, "prelu", "weight")
ReLU = _module(nn.ReLU, "relu")
ReLU6 = _module(nn.ReLU6, "relu6")
SELU = _module(nn.SELU, "selu")
SiLU = _module(nn.SiLU, "silu")
Sigmoid = _module(nn.Sigmoid, "sigmoid")
Softmax = _module(nn.Softmax, "softmax", "dim")
Softmin = _module(nn.Softmin, "softmin", "dim")
Softplus = _module(nn.Softplus, "softplus", "beta", "threshold")
Softshrink = _module(nn.Softshrink, "softshrink", "lambd")
Softsign = _module(nn.Softsign, "softsign")
Tanh = _module(nn.Tanh, "tanh")
Tanhshrink = _module(nn.Tanhshrink, "tanhshrink")
Threshold = _module(nn.Threshold, "threshold", "threshold", "value")


@counterpart
class Softmax2d(nn.Softmax2d):
    """torch.nn.Softmax2d: softmax over the channels of an image."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"input: expected 3 or 4 dimensions, got {input.ndim}")
        return ops.softmax(input, -3)


@counterpart
class RReLU(nn.RReLU):
    """torch.nn.RReLU; in training its slopes are Invar's numbers for a seed that torch's generator
    draws, as those of Dropout."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return rrelu(input, self.lower, self.upper, self.training)
