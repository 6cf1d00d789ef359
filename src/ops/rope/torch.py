"""Rotary embeddings in torch."""

import torch


def rope(x, cos, sin, num_heads, rotary_dim=0, interleaved=0, heads_first=0):
    """Rotary embedding of [B, S, heads * D], or with heads_first of [B, heads, S, D], by angles [B,
    S, R / 2]."""
    heads = x if heads_first else x.reshape(*x.shape[:2], num_heads, -1)
    cos, sin = (t.unsqueeze(1 if heads_first else 2) for t in (cos, sin))
    r = rotary_dim or heads.shape[-1]
    turned, rest = heads[..., :r], heads[..., r:]
    a, b = (turned[..., 0::2], turned[..., 1::2]) if interleaved else turned.chunk(2, -1)
    pair = a * cos - b * sin, b * cos + a * sin
    turned = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    return torch.cat((turned, rest), -1).reshape(x.shape)
