"""Dropout by the counter-based generator (spec/sampling.md)."""

import math

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart
from invar.ops.random import torch_seed


@counterpart
class Dropout(nn.Dropout):
    """torch.nn.Dropout by Invar's mask (random.5) for a seed that torch's generator draws:
    torch.manual_seed fixes it, whatever the device."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0:
            return input
        return ops.dropout(input, self.p, True, **torch_seed(input))


def _module(of, function, channels=True):
    """torch's module `of`, whose forward is ops.FUNCTION with a seed of torch's generator.
    channels: it draws one number for each channel."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0:
            return input
        count = math.prod(input.shape[:2]) if channels else None
        return getattr(ops, function)(input, self.p, True, **torch_seed(input, count))

    made = type(of.__name__, (of,), {"forward": forward, "__module__": __name__})
    return counterpart(made)


Dropout1d = _module(nn.Dropout1d, "dropout1d")
Dropout2d = _module(nn.Dropout2d, "dropout2d")
Dropout3d = _module(nn.Dropout3d, "dropout3d")
AlphaDropout = _module(nn.AlphaDropout, "alpha_dropout", channels=False)
FeatureAlphaDropout = _module(nn.FeatureAlphaDropout, "feature_alpha_dropout")
