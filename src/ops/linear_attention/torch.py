"""Linear attention in torch: the recurrence over positions, with or without the delta rule."""

import torch


def recurrence(q, k, v, g, beta=None, key_heads=1, value_heads=1, scale=1.0):
    """q, k [B, S, key_heads * D], v [B, S, value_heads * Dv], g [B, S, value_heads or value_heads *
    D], beta [B, S, value_heads] -> [B, S, value_heads * Dv]."""
    b, s = q.shape[:2]
    q, k = (
        x.reshape(b, s, key_heads, -1).repeat_interleave(value_heads // key_heads, 2)
        for x in (q, k)
    )
    v, decay = (x.reshape(b, s, value_heads, -1) for x in (v, g.exp()))
    state = v.new_zeros(b, value_heads, q.shape[3], v.shape[3])
    rows = []
    for t in range(s):
        state, u = state * decay[:, t, :, :, None], v[:, t]
        if beta is not None:
            u = beta[:, t, :, None] * (u - torch.einsum("bhd,bhdv->bhv", k[:, t], state))
        state = state + k[:, t, :, :, None] * u[:, :, None]
        rows.append(torch.einsum("bhd,bhdv->bhv", q[:, t], state))
    return (
        scale * torch.stack(rows, 1).reshape(b, s, -1)
        if rows
        else torch.zeros_like(v).reshape(b, s, -1)
    )
