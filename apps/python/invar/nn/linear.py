"""Linear layers and embeddings."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart


@counterpart
class Linear(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.linear(input, self.weight, self.bias)


@counterpart
class NonDynamicallyQuantizableLinear(nn.modules.linear.NonDynamicallyQuantizableLinear):
    """What torch calls the last layer of its MultiheadAttention."""

    forward = Linear.forward


@counterpart
class Bilinear(nn.Bilinear):
    """torch.nn.Bilinear: x1 W x2 + b, as a contraction over x2 and then one over x1."""

    def forward(self, input1: torch.Tensor, input2: torch.Tensor) -> torch.Tensor:
        inner = ops.matmul(input2.unsqueeze(-2).unsqueeze(-3), self.weight.mT)  # [..., out, 1, in1]
        found = ops.sum(ops.mul(inner.squeeze(-2), input1.unsqueeze(-2)), dim=-1)
        return found if self.bias is None else ops.add(found, self.bias)


def _of_embeddings(module: Any) -> Iterator[str]:
    if module.max_norm is not None:
        yield f"max_norm={module.max_norm}"
    if module.scale_grad_by_freq:
        yield "scale_grad_by_freq=True"
    if module.sparse:
        yield "sparse=True"


@counterpart
class Embedding(nn.Embedding):
    refusals = staticmethod(_of_embeddings)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return ops.embedding(input, self.weight, self.padding_idx)


@counterpart
class EmbeddingBag(nn.EmbeddingBag):
    refusals = staticmethod(_of_embeddings)

    def forward(
        self,
        input: torch.Tensor,
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        return ops.embedding_bag(
            input,
            self.weight,
            offsets,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )
