import torch as t


def kept(boxes, score, most, overlap, least):
    """The usual loop: the best box, and of the others those that do not overlap it."""
    order = score.argsort(descending=True, stable=True)
    if least is not None:
        order = order[score[order] > least]
    low, high = t.minimum(boxes[:, :2], boxes[:, 2:]), t.maximum(boxes[:, :2], boxes[:, 2:])
    area = (high - low).prod(1)
    found = []
    while len(order) and len(found) < most:
        i, order = order[0], order[1:]
        found.append(i)
        common = (
            (t.minimum(high[i], high[order]) - t.maximum(low[i], low[order])).clamp(min=0).prod(1)
        )
        order = order[common / (area[i] + area[order] - common) <= overlap]
    return found


def torch(call):
    if call.gpu or call.attrs.get("center_point_box", 0):
        return {}  # a loop over values cannot be recorded
    (boxes, scores), k = call.inputs[:2], call.outputs[0].shape[2]
    least = 1.0 if len(call.inputs) > 4 else None  # of bench.txt
    return {
        "loop": lambda: [
            kept(b, s, k, 0.5, least) for b, of_classes in zip(boxes, scores) for s in of_classes
        ]
    }
