"""Losses."""

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart


def _module(of, function, *arguments):
    """torch's loss `of`: ops.FUNCTION of input and target, these attributes by name."""

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        values = {name: getattr(self, name) for name in arguments}
        return getattr(ops, function)(input, target, **values)

    made = type(of.__name__, (of,), {"forward": forward, "__module__": __name__})
    return counterpart(made)


CrossEntropyLoss = _module(
    nn.CrossEntropyLoss,
    "cross_entropy",
    *("weight", "ignore_index", "reduction", "label_smoothing"),
)
NLLLoss = _module(nn.NLLLoss, "nll_loss", "weight", "ignore_index", "reduction")
MSELoss = _module(nn.MSELoss, "mse_loss", "reduction")
L1Loss = _module(nn.L1Loss, "l1_loss", "reduction")
SmoothL1Loss = _module(nn.SmoothL1Loss, "smooth_l1_loss", "reduction", "beta")
HuberLoss = _module(nn.HuberLoss, "huber_loss", "reduction", "delta")
KLDivLoss = _module(nn.KLDivLoss, "kl_div", "reduction", "log_target")
BCELoss = _module(nn.BCELoss, "binary_cross_entropy", "weight", "reduction")
BCEWithLogitsLoss = _module(
    nn.BCEWithLogitsLoss,
    "binary_cross_entropy_with_logits",
    *("weight", "pos_weight", "reduction"),
)
