"""Non-maximum suppression in torch."""

import torch


def corners(boxes, centred):
    """x1, y1, x2, y2."""
    p, q, r, s = boxes.unbind(-1)
    if centred:
        w, h = r / 2, s / 2
        return p - w, q - h, p + w, q + h
    return torch.minimum(q, s), torch.minimum(p, r), torch.maximum(q, s), torch.maximum(p, r)


def overlapping(boxes, centred, threshold):
    """[B, N, N]: whether intersection over union exceeds the threshold."""
    x1, y1, x2, y2 = corners(boxes, centred)
    area = (x2 - x1) * (y2 - y1)
    w = torch.minimum(x2[:, :, None], x2[:, None]) - torch.maximum(x1[:, :, None], x1[:, None])
    h = torch.minimum(y2[:, :, None], y2[:, None]) - torch.maximum(y1[:, :, None], y1[:, None])
    common = w * h
    union = area[:, :, None] + area[:, None] - common
    return (w > 0) & (h > 0) & (common > 0) & (common / union > threshold)


def ordered(scores):
    """Indices by descending score, of equals the first, NaN last."""
    nan = scores.isnan()
    order = torch.sort(
        torch.where(nan, float("-inf"), scores), dim=-1, descending=True, stable=True
    ).indices
    behind = torch.sort(nan.gather(-1, order).to(torch.int8), dim=-1, stable=True).indices
    return order.gather(-1, behind)


def nms(boxes, scores, most, threshold, least=None, k=0, centred=False):
    """Box after box in a loop of N steps without a look at a value: [B, C, k] indices of the
    selected boxes, then -1."""
    batches, classes, n = scores.shape
    order = ordered(scores)
    hides = overlapping(boxes, centred, threshold.reshape(()))
    left = (
        torch.ones_like(order, dtype=torch.bool)
        if least is None
        else (scores > least.reshape(())).gather(-1, order)
    )
    place, count = torch.full_like(order, k), order.new_zeros((batches, classes, 1))
    for i in range(n):
        taken = left[..., i : i + 1] & (count < most.reshape(())) & (count < k)
        place[..., i : i + 1] = torch.where(taken, count, k)
        count = count + taken
        row = hides.gather(1, order[..., i : i + 1].expand(batches, classes, n)).gather(-1, order)
        left = left & ~(taken & row)
    return order.new_full((batches, classes, k + 1), -1).scatter(-1, place, order)[..., :k]
