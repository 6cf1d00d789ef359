"""Distances, similarities, and windows of images."""

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart


@counterpart
class CosineSimilarity(nn.CosineSimilarity):
    def forward(self, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        return ops.cosine_similarity(x1, x2, self.dim, self.eps)


@counterpart
class PairwiseDistance(nn.PairwiseDistance):
    def forward(self, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        return ops.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


@counterpart
class Unfold(nn.Unfold):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


@counterpart
class Fold(nn.Fold):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )
