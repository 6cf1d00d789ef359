"""Attention and layers of transformers."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from invar import ops
from invar.nn.counterparts import counterpart
from invar.ops.random import torch_seed
from invar.reproducibility import functions


def as_bias(mask, dtype):
    """A mask of torch's modules (True: not attended to) as what is added to the scores."""
    if mask is None or mask.is_floating_point():
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -math.inf)


def joined(mask, padding, batch, heads):
    """attn_mask [L, S] or [N * heads, L, S], and key_padding_mask [N, S], as one bias that
    broadcasts to [N, heads, L, S]; None: nothing is masked."""
    if mask is not None and mask.ndim == 3:
        mask = mask.reshape(batch, heads, *mask.shape[1:])
    if padding is not None:
        padding = padding.reshape(batch, 1, 1, padding.shape[-1])
        mask = padding if mask is None else ops.add(mask, padding)
    return mask


def projected(query, key, value, weights, biases):
    """Queries, keys and values times their parts of `weights`: one matrix of all, or three."""
    if isinstance(weights, torch.Tensor):
        if query is key and key is value:  # one product: exact gradients see whole parameters
            return ops.linear(query, weights, biases).chunk(3, dim=-1)
        weights = weights.chunk(3)
    biases = (None,) * 3 if biases is None else biases.chunk(3)
    return [ops.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]


def attended(inputs, heads, weights, biases, masks, dropout, last, need_weights, average):
    """What torch.nn.MultiheadAttention computes of queries, keys and values [N, L, E]: the result
    and, where they are needed, the weights. masks: attn_mask and key_padding_mask; dropout: its
    probability; last: weight and bias of the last layer."""
    n, length, width = inputs[0].shape
    split = lambda x: x.reshape(n, -1, heads, width // heads).transpose(1, 2)
    q, k, v = map(split, projected(*inputs, weights, biases))
    bias = joined(*(as_bias(mask, q.dtype) for mask in masks), n, heads)
    kept = None
    if need_weights or dropout:
        scores = ops.matmul(ops.mul(q, 1 / math.sqrt(width // heads)), k.mT)
        kept = ops.softmax(scores if bias is None else ops.add(scores, bias), dim=-1)
        kept = ops.dropout(kept, dropout, True, **torch_seed(kept)) if dropout else kept
        found = ops.matmul(kept, v)
    else:
        found = ops.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    found = ops.linear(found.transpose(1, 2).reshape(n, length, width), *last)
    if not need_weights:
        return found, None
    return found, ops.mean(kept, dim=1) if average else kept


def multi_head_attention(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
    add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None,
    need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None,
    k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
    average_attn_weights=True, is_causal=False,
):  # fmt: skip
    """torch.nn.functional.multi_head_attention_forward with the bits of MultiheadAttention below:
    [L, N, E], or [L, E]."""
    if add_zero_attn or any(x is not None for x in (bias_k, bias_v, static_k, static_v)):
        raise functions.Otherwise
    masks = attn_mask, key_padding_mask
    batched = nn.functional._mha_shape_check(query, key, value, *masks[::-1], num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if query.shape[-1] != embed_dim_to_check:
        raise RuntimeError(f"query: expected [..., {embed_dim_to_check}], got {list(query.shape)}")
    if not batched and key_padding_mask is not None:
        masks = attn_mask, key_padding_mask.unsqueeze(0)
    first = (lambda x: x.transpose(0, 1)) if batched else (lambda x: x.unsqueeze(0))
    alone = query is key and key is value
    inputs = (first(query),) * 3 if alone else map(first, (query, key, value))
    weights = in_proj_weight
    if use_separate_proj_weight:
        weights = q_proj_weight, k_proj_weight, v_proj_weight
    found, kept = attended(
        tuple(inputs), num_heads, weights, in_proj_bias, masks, dropout_p if training else 0.0,
        (out_proj_weight, out_proj_bias), need_weights, average_attn_weights,
    )  # fmt: skip
    if batched:
        return found.transpose(0, 1), kept
    return found.squeeze(0), None if kept is None else kept.squeeze(0)


FUNCTIONS = {"multi_head_attention_forward": multi_head_attention}


@counterpart
class MultiheadAttention(nn.MultiheadAttention):
    """torch.nn.MultiheadAttention. Without weights (need_weights=False) it is
    ops.scaled_dot_product_attention; with them, matmul, softmax and matmul."""

    @staticmethod
    def refusals(module: Any) -> Iterator[str]:
        if module.bias_k is not None:
            yield "add_bias_kv=True"
        if module.add_zero_attn:
            yield "add_zero_attn=True"

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        key_padding_mask: torch.Tensor | None = None,
        need_weights: bool = True,
        attn_mask: torch.Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        if is_causal and attn_mask is None:
            raise RuntimeError("attn_mask: needed with is_causal=True, which is a hint about it")
        batched, first = query.ndim == 3, self.batch_first
        alone = query is key and key is value
        if not batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        weights = self.in_proj_weight
        if not self._qkv_same_embed_dim:
            weights = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        found, kept = attended(
            (query,) * 3 if alone else (query, key, value), self.num_heads, weights,
            self.in_proj_bias, (attn_mask, key_padding_mask), self.dropout if self.training else 0.0,
            (self.out_proj.weight, self.out_proj.bias), need_weights, average_attn_weights,
        )  # fmt: skip
        if not batched:
            return found.squeeze(0), None if kept is None else kept.squeeze(0)
        return found if first else found.transpose(0, 1), kept


# Activations that are functions of torch -> ours.
ACTIVATIONS = {
    getattr(space, name): getattr(ops, name)
    for space in (nn.functional, torch)
    for name in functions.NEURAL
    if hasattr(space, name) and hasattr(ops, name)
}


def is_activation(function):
    """Whether it is a module, a function of Invar, or a function of torch that Invar has."""
    if isinstance(function, nn.Module) or function in ACTIVATIONS:
        return True
    return getattr(function, "__module__", "").startswith("invar.")


class _Layer:
    """What both layers share: blocks of torch's, with our functions."""

    @staticmethod
    def refusals(module: Any) -> Iterator[str]:
        if not is_activation(module.activation):
            yield f"activation={getattr(module.activation, '__name__', module.activation)!r}"

    def _feed_forward(self, x, dropout):
        activation = ACTIVATIONS.get(self.activation, self.activation)
        return dropout(self.linear2(self.dropout(activation(self.linear1(x)))))

    def _attended(self, attention, x, other, mask, padding, is_causal, dropout):
        found, _ = attention(
            x, other, other, padding, need_weights=False, attn_mask=mask, is_causal=is_causal
        )
        return dropout(found)

    def _residuals(self, x, *blocks):
        """x and each (norm, block) after the other, norms first or last."""
        for norm, block in blocks:
            if self.norm_first:
                x = ops.add(x, block(norm(x)))
            else:
                x = norm(ops.add(x, block(x)))
        return x


@counterpart
class TransformerEncoderLayer(_Layer, nn.TransformerEncoderLayer):
    """torch.nn.TransformerEncoderLayer with the same bits on every machine."""

    def forward(
        self,
        src: torch.Tensor,
        src_mask: torch.Tensor | None = None,
        src_key_padding_mask: torch.Tensor | None = None,
        is_causal: bool = False,
    ) -> torch.Tensor:
        attend = lambda x: self._attended(
            self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal, self.dropout1
        )
        return self._residuals(
            src,
            (self.norm1, attend),
            (self.norm2, lambda x: self._feed_forward(x, self.dropout2)),
        )


@counterpart
class TransformerDecoderLayer(_Layer, nn.TransformerDecoderLayer):
    """torch.nn.TransformerDecoderLayer with the same bits on every machine."""

    def forward(
        self,
        tgt: torch.Tensor,
        memory: torch.Tensor,
        tgt_mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
        tgt_key_padding_mask: torch.Tensor | None = None,
        memory_key_padding_mask: torch.Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> torch.Tensor:
        attend = lambda x: self._attended(
            self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal, self.dropout1
        )
        cross = lambda x: self._attended(
            *(self.multihead_attn, x, memory, memory_mask, memory_key_padding_mask),
            *(memory_is_causal, self.dropout2),
        )
        return self._residuals(
            tgt,
            (self.norm1, attend),
            (self.norm2, cross),
            (self.norm3, lambda x: self._feed_forward(x, self.dropout3)),
        )


@counterpart
class TransformerEncoder(nn.TransformerEncoder):
    """torch.nn.TransformerEncoder; its layers run one after the other, without nested tensors."""

    def forward(
        self,
        src: torch.Tensor,
        mask: torch.Tensor | None = None,
        src_key_padding_mask: torch.Tensor | None = None,
        is_causal: bool | None = None,
    ) -> torch.Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


@counterpart
class TransformerDecoder(nn.TransformerDecoder):
    """torch.nn.TransformerDecoder with the same bits on every machine."""

    def forward(
        self,
        tgt: torch.Tensor,
        memory: torch.Tensor,
        tgt_mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
        tgt_key_padding_mask: torch.Tensor | None = None,
        memory_key_padding_mask: torch.Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> torch.Tensor:
        for layer in self.layers:
            tgt = layer(
                *(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask),
                *(memory_key_padding_mask, bool(tgt_is_causal), memory_is_causal),
            )
        return tgt if self.norm is None else self.norm(tgt)


@counterpart
class Transformer(nn.Transformer):
    """torch.nn.Transformer, whose encoder and decoder are Invar's."""

    @staticmethod
    def refusals(module: Any) -> Iterator[str]:
        for name, cls in (("encoder", nn.TransformerEncoder), ("decoder", nn.TransformerDecoder)):
            if not isinstance(getattr(module, name), cls):
                yield f"custom_{name} of {type(getattr(module, name)).__name__}"
