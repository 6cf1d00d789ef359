"""Ensembles of decision trees in torch."""

import torch


def leaves(x, nodes, thresholds, root):
    """The leaf that each row reaches from `root`."""
    at = torch.full((x.shape[0],), int(root), dtype=torch.int64, device=x.device)
    while True:
        feature, outcomes, if_true, if_false = nodes.long()[at].unbind(-1)
        inside = feature >= 0
        if not bool(inside.any()):
            return at
        value = x.gather(1, feature.clamp(0)[:, None])[:, 0]
        threshold = thresholds[at]
        outcome = torch.where(
            value < threshold,
            1,
            torch.where(value == threshold, 2, torch.where(value > threshold, 4, 8)),
        )
        step = torch.where((outcomes & outcome) != 0, if_true, if_false)
        at = torch.where(inside, at + step, at)


def tree_ensemble(x, nodes, thresholds, roots, targets, weights, base, aggregate=0):
    """[N, C]: per target the aggregate of the leaves' weights, tree after tree."""
    value = x.new_zeros((x.shape[0], base.shape[0]))
    seen = torch.zeros_like(value, dtype=torch.bool)
    for root in roots.tolist():
        first, end = nodes.long()[leaves(x, nodes, thresholds, root)][:, 2:].unbind(-1)
        for i in range(int((end - first).max())) if len(first) else ():
            entry = (first + i).clamp(max=targets.shape[0] - 1)
            here = torch.nn.functional.one_hot(targets.long()[entry], base.shape[0]).bool()
            here = here & (first + i < end)[:, None]
            w = weights[entry][:, None]
            if aggregate < 2:
                value = torch.where(here, value + w, value)
            else:
                better = w < value if aggregate == 2 else w > value
                value = torch.where(here & (better | ~seen), w, value)
            seen = seen | here
    if aggregate == 1:
        value = value / len(roots)
    return value + base
