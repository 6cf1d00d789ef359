"""Dropout by the counter-based generator (spec/sampling.md)."""

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart


@counterpart
class Dropout(nn.Dropout):
    """torch.nn.Dropout whose mask comes from Invar's generator (invar.manual_seed)."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if not self.training or self.p == 0:
            return input
        return ops.dropout(input, self.p, True)
