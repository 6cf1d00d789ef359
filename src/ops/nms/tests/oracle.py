"""The outputs of nms from spec/ops/nms.md, without the C++ code (tests/conformance/oracle.py)."""

from oracle import add, div, mul, sub


def corners(b, centred):
    """nms.2: x1, y1, x2, y2, area; nothing where there is a NaN (nms.6)."""
    if any(v != v for v in b):
        return None
    p, q, r, s = b
    if centred:
        w, h = mul(r, 0.5), mul(s, 0.5)
        x1, y1, x2, y2 = sub(p, w), sub(q, h), add(p, w), add(q, h)
    else:
        x1, y1, x2, y2 = min(q, s), min(p, r), max(q, s), max(p, r)
    return x1, y1, x2, y2, mul(sub(x2, x1), sub(y2, y1))


def overlap(a, b, threshold):
    """nms.5, nms.6."""
    if a is None or b is None:
        return False
    w, h = sub(min(a[2], b[2]), max(a[0], b[0])), sub(min(a[3], b[3]), max(a[1], b[1]))
    c = mul(w, h)
    u = sub(add(a[4], b[4]), c)
    return w > 0 and h > 0 and c > 0 and div(c, u) > threshold


def nms(inputs, shapes, out, attrs):
    boxes, scores, (most,), (threshold,), *least = inputs
    _, n, _ = shapes[0]
    batches, classes, k = out
    result = []
    for row in range(batches * classes):
        score = scores[row * n : (row + 1) * n]
        at = row // classes * n
        box = [
            corners(boxes[4 * (at + i) : 4 * (at + i) + 4], attrs.get("center_point_box", 0))
            for i in range(n)
        ]
        order = sorted(
            (i for i in range(n) if not least or score[i] > least[0][0]),
            key=lambda i: (1, 0.0) if score[i] != score[i] else (0, -score[i]),
        )  # -0 == +0; stable
        selected = []
        for i in order:
            if len(selected) < min(most, k) and not any(
                overlap(box[i], box[j], threshold) for j in selected
            ):
                selected.append(i)
        result += selected + [-1] * (k - len(selected))
    return result


OPERATIONS = {"nms": nms}
