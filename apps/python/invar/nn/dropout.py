"""Dropout by the counter-based generator (spec/sampling.md)."""

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart
from invar.ops.random import torch_seed


@counterpart
class Dropout(nn.Dropout):
    """torch.nn.Dropout by Invar's mask (random.5) for a seed that torch's generator draws: torch.manual_seed
    fixes it, whatever the device."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0:
            return input
        return ops.dropout(input, self.p, True, **torch_seed(input))
