"""Attention in torch, where functional.scaled_dot_product_attention has no such."""

import torch
import torch.nn.functional as functional


def visible(q, k, causal, lengths, left, right, first):
    """Which keys a query sees: [S, T] or [B, 1, S, T], or None for all. Queries count from position
    0 or, with lengths, so that the last one stands at the last key."""
    i, j = (
        torch.arange(q.shape[-2], device=q.device)[:, None],
        torch.arange(k.shape[-2], device=q.device),
    )
    seen = None
    if lengths is not None:
        n = lengths.clamp(0, k.shape[-2]).view(-1, 1, 1, 1)
        i, seen = i + n - q.shape[-2], j < n
    both = lambda a, b: b if a is None else a & b
    if causal:
        seen = both(seen, j <= i)
    if right >= 0:
        seen = both(seen, j <= i + right)
    if left >= 0:
        seen = both(seen, (j >= i - left) | (j < first))
    return seen


def attention(
    q,
    k,
    v,
    *more,
    q_heads,
    kv_heads,
    scale,
    causal=1,
    heads_first=0,
    mask=0,
    sinks=0,
    lengths=0,
    slopes=0,
    left=-1,
    right=-1,
    first=0,
    softcap=0.0,
):
    """Scaled dot-product attention of [B, S, heads * D], or with heads_first of [B, heads, S, D];
    `more`: mask, sinks, lengths, slopes."""
    if not heads_first:
        q, k, v = (
            x.unflatten(-1, (h, -1)).transpose(1, 2)
            for x, h in ((q, q_heads), (k, kv_heads), (v, kv_heads))
        )
    given = iter(more)
    mask, sinks, lengths, slopes = (
        next(given) if there else None for there in (mask, sinks, lengths, slopes)
    )
    if (
        mask is None
        and sinks is None
        and lengths is None
        and slopes is None
        and left < 0
        and right < 0
        and not softcap
        and k.shape[-2]
    ):
        y = functional.scaled_dot_product_attention(
            q, k, v, is_causal=bool(causal), scale=scale, enable_gqa=q_heads != kv_heads
        )
    else:
        k, v = (x.repeat_interleave(q_heads // kv_heads, 1) for x in (k, v))
        y = weighted(
            q,
            k,
            v,
            sloped(
                slopes,
                biased(mask, visible(q, k, causal, lengths, left, right, first), k),
                q,
                k,
                lengths,
            ),
            sinks,
            scale,
            softcap,
        )
    return y if heads_first else y.transpose(1, 2).flatten(2)


def backward(grad, y, q, k, v, *more, **attributes):
    """The gradients of q, k and v, end to end."""
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        made = attention(*leaves, *more, **attributes)
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(made, leaves, grad)])


def biased(mask, seen, k):
    """What is added to scores; None: nothing. The mask's columns are the first keys."""
    if mask is None:
        return None if seen is None else torch.where(seen, 0.0, float("-inf"))
    mask = functional.pad(
        mask,
        (0, k.shape[-2] - mask.shape[-1]),
        value=False if mask.dtype == torch.bool else float("-inf"),
    )
    if mask.dtype == torch.bool:
        return torch.where(mask if seen is None else mask & seen, 0.0, float("-inf"))
    return mask if seen is None else torch.where(seen, mask, float("-inf"))


def sloped(slopes, bias, q, k, lengths):
    """The bias with each head's slope times the distance of key and query, or with what a table
    [heads, 2 * farthest + 1] has for that distance."""
    if slopes is None:
        return bias
    i = torch.arange(q.shape[-2], device=q.device)[:, None]
    if lengths is not None:
        i = i + lengths.clamp(0, k.shape[-2]).view(-1, 1, 1, 1) - q.shape[-2]
    distance = torch.arange(k.shape[-2], device=q.device) - i
    if slopes.dim() == 2:
        far = slopes.shape[1] // 2
        at = distance.clamp(-far, far) + far
        added = slopes[:, at] if at.dim() == 2 else slopes[:, at[:, 0]].transpose(0, 1)
    else:
        added = slopes.view(-1, 1, 1) * distance.to(torch.float32)
    return added if bias is None else bias + added


def weighted(q, k, v, bias, sinks, scale, softcap):
    """Rows that see no key are 0."""
    if sinks is None and not softcap and k.shape[-2]:
        y = functional.scaled_dot_product_attention(q, k, v, bias, scale=scale)
        return (
            y if bias is None else torch.where((bias > float("-inf")).any(-1, keepdim=True), y, 0.0)
        )
    scores = torch.matmul(q, k.mT) * scale
    scores = softcap * torch.tanh(scores / softcap) if softcap else scores
    scores = scores if bias is None else scores + bias
    if sinks is not None:
        scores = torch.cat((scores, sinks.view(-1, 1, 1).expand(*scores.shape[:3], 1)), -1)
    weights = torch.softmax(scores, -1)
    return torch.matmul(torch.where(scores > float("-inf"), weights, 0.0)[..., : k.shape[-2]], v)
