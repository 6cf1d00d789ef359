"""Ensembles of decision trees in torch (tree_ensemble.2 to tree_ensemble.5)."""

import torch


def leaves(x, nodes, thresholds, root):
    """The leaf that each row reaches from `root`, or -1."""
    at = torch.full((x.shape[0],), root if 0 <= root < len(nodes) else -1, device=x.device)
    while True:
        feature, outcomes, if_true, if_false = nodes[at.clamp(0)].unbind(-1)
        inside = (at >= 0) & (feature >= 0) & (feature < x.shape[1])
        if not bool(inside.any()):
            return at
        value = x.gather(1, torch.where(inside, feature, 0)[:, None])[:, 0]
        threshold = thresholds[at.clamp(0)]
        outcome = torch.where(
            value < threshold,
            1,
            torch.where(value == threshold, 2, torch.where(value > threshold, 4, 8)),
        )
        step = torch.where((outcomes & outcome) != 0, if_true, if_false)
        leads = (step > 0) & (step < len(nodes) - at)
        at = torch.where(inside, torch.where(leads, at + step, -1), at)


def tree_ensemble(x, nodes, thresholds, roots, targets, weights, base, aggregate=0):
    """[N, C]: per target the aggregate of the leaves' weights, tree after tree."""
    value = x.new_zeros((x.shape[0], base.shape[0]))
    if x.is_meta or not len(x):  # how far a row goes depends on its values
        return value
    seen = torch.zeros_like(value, dtype=torch.bool)
    nodes, columns = nodes.long(), torch.arange(base.shape[0], device=x.device)
    for root in roots.tolist() if len(nodes) else ():
        leaf = leaves(x, nodes, thresholds, root)
        first, end = nodes[leaf.clamp(0)][:, 2:].unbind(-1)
        first, end = first.clamp(0), torch.where(leaf >= 0, end.clamp(max=len(targets)), 0)
        for i in range(int((end - first).max())):
            entry = torch.where(first + i < end, first + i, 0)
            here = (targets[entry][:, None] == columns) & (first + i < end)[:, None]
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
