"""Losses."""

from typing import Any

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
HingeEmbeddingLoss = _module(nn.HingeEmbeddingLoss, "hinge_embedding_loss", "margin", "reduction")
SoftMarginLoss = _module(nn.SoftMarginLoss, "soft_margin_loss", "reduction")
MultiLabelMarginLoss = _module(nn.MultiLabelMarginLoss, "multilabel_margin_loss", "reduction")
MultiLabelSoftMarginLoss = _module(
    nn.MultiLabelSoftMarginLoss, "multilabel_soft_margin_loss", "weight", "reduction"
)
MultiMarginLoss = _module(
    nn.MultiMarginLoss, "multi_margin_loss", "p", "margin", "weight", "reduction"
)
PoissonNLLLoss = _module(
    nn.PoissonNLLLoss, "poisson_nll_loss", "log_input", "full", "eps", "reduction"
)


def _of_three(of, function, *arguments):
    """Likewise of three tensors."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        values = {name: getattr(self, name) for name in arguments}
        return getattr(ops, function)(a, b, c, **values)

    made = type(of.__name__, (of,), {"forward": forward, "__module__": __name__})
    return counterpart(made)


CosineEmbeddingLoss = _of_three(
    nn.CosineEmbeddingLoss, "cosine_embedding_loss", "margin", "reduction"
)
MarginRankingLoss = _of_three(nn.MarginRankingLoss, "margin_ranking_loss", "margin", "reduction")
GaussianNLLLoss = _of_three(nn.GaussianNLLLoss, "gaussian_nll_loss", "full", "eps", "reduction")
TripletMarginLoss = _of_three(
    nn.TripletMarginLoss, "triplet_margin_loss", "margin", "p", "eps", "swap", "reduction"
)


@counterpart
class TripletMarginWithDistanceLoss(nn.TripletMarginWithDistanceLoss):
    """torch.nn.TripletMarginWithDistanceLoss; a distance of yours has the bits of what it calls."""

    def forward(
        self, anchor: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor
    ) -> torch.Tensor:
        distance = self.distance_function
        if distance is nn.functional.pairwise_distance:
            distance = ops.pairwise_distance
        return ops.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=distance, margin=self.margin,
            swap=self.swap, reduction=self.reduction,
        )  # fmt: skip


@counterpart
class CTCLoss(nn.CTCLoss):
    def forward(
        self,
        log_probs: torch.Tensor,
        targets: torch.Tensor,
        input_lengths: Any,
        target_lengths: Any,
    ) -> torch.Tensor:
        return ops.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
            self.zero_infinity,
        )  # fmt: skip
