"""The outputs of tree_ensemble from spec/ops/tree_ensemble.md, without the C++ code
(tests/conformance/oracle.py)."""

from oracle import add, canon, div


def leaf(nodes, thresholds, at, x):
    """tree_ensemble.3: the entries of the leaf, none where a step leads nowhere."""
    while 0 <= at < len(thresholds):
        feature, outcomes, first, second = nodes[4 * at : 4 * at + 4]
        if not 0 <= feature < len(x):
            return first, second
        value, threshold = x[feature], thresholds[at]
        bit = 0 if value < threshold else 1 if value == threshold else 2 if value > threshold else 3
        step = first if outcomes >> bit & 1 else second
        if step <= 0:
            break
        at += step
    return 0, 0


def tree_ensemble(inputs, shapes, out, attrs):
    x, nodes, thresholds, roots, targets, weights, base = inputs
    features, aggregate = shapes[0][1], attrs.get("aggregate", 0)
    result = []
    for row in range(out[0]):
        lists = [[] for _ in base]
        for root in roots:
            first, end = leaf(nodes, thresholds, root, x[row * features : (row + 1) * features])
            for i in range(max(first, 0), min(end, len(weights))):
                if 0 <= targets[i] < len(base):
                    lists[targets[i]].append(weights[i])
        for found, b in zip(lists, base):
            value = 0.0
            for i, w in enumerate(found):
                if aggregate < 2:
                    value = add(value, w)
                elif i == 0 or (w < value if aggregate == 2 else w > value):
                    value = w
            if aggregate == 1:
                value = div(value, float(len(roots)))
            result.append(canon(add(value, b)))
    return result


OPERATIONS = {"tree_ensemble": tree_ensemble}
