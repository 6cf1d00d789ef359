"""Linear attention in torch: the recurrence over positions, with or without the delta rule."""

import torch


def recurrence(q, k, v, g, beta=None, key_heads=1, value_heads=1, scale=1.0):
    """q, k [B, S, key_heads * D], v [B, S, value_heads * Dv], g [B, S, value_heads or value_heads *
    D], beta [B, S, value_heads] -> [B, S, value_heads * Dv]."""
    y, (b, s) = torch.empty_like(v), v.shape[:2]

    def split(x, heads):
        return x.reshape(b, s, heads, x.shape[2] // heads)

    q, k = (split(x, key_heads).repeat_interleave(value_heads // key_heads, 2) for x in (q, k))
    v, decay = split(v, value_heads), split(g.exp(), value_heads)
    state = v.new_zeros(b, value_heads, q.shape[3], v.shape[3])
    for t in range(s):
        state, u = state * decay[:, t, :, :, None], v[:, t]
        if beta is not None:
            u = beta[:, t, :, None] * (u - torch.einsum("bhd,bhdv->bhv", k[:, t], state))
        state = state + k[:, t, :, :, None] * u[:, :, None]
        y[:, t] = scale * torch.einsum("bhd,bhdv->bhv", q[:, t], state).flatten(1)
    return y
