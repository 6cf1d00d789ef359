import torch


def strided(x, starts, steps, shape):
    """Elements start + i * step of every dimension, steps of either sign."""
    for d, (start, step, n) in enumerate(zip(starts, steps, shape)):
        if (start, step, n) != (0, 1, x.shape[d]):
            start += x.shape[d] if start < 0 else 0
            x = x.index_select(d, start + step * torch.arange(n, device=x.device))
    return x


def pad(x, value, begins, shape):
    """x among elements that are all `value`."""
    y = value.reshape([1] * x.dim()).expand(shape).clone()
    for d, (begin, n) in enumerate(zip(begins, x.shape)):
        first, end = max(0, -begin), min(n, shape[d] - begin)
        if end <= first:
            return y
        x = x.narrow(d, first, end - first)
    y[tuple(slice(max(0, b), max(0, b) + n) for b, n in zip(begins, x.shape))] = x
    return y


def continued(x, mode, begins, shape):
    """x continued beyond its ends: by them ("edge"), mirrored there ("reflect"), or from the other
    end ("wrap")."""
    for d, (begin, m) in enumerate(zip(begins, shape)):
        n = x.shape[d]
        if (begin, m) == (0, n):
            continue
        i = torch.arange(m, device=x.device) - begin
        if mode == "edge":
            i = i.clamp(0, n - 1)
        elif mode == "wrap":
            i = i % n
        else:
            i = i % max(1, 2 * n - 2)
            i = torch.minimum(i, 2 * n - 2 - i)
        x = x.index_select(d, i)
    return x


def depth_to_space(x, b):
    """Channels in blocks of [b, b, C]; functional.pixel_shuffle has [C, b, b]."""
    n, c, h, w = x.shape
    return (
        x.reshape(n, b, b, c // (b * b), h, w)
        .permute(0, 3, 4, 1, 5, 2)
        .reshape(n, c // (b * b), h * b, w * b)
    )


def space_to_depth(x, b):
    n, c, h, w = x.shape
    return (
        x.reshape(n, c, h // b, b, w // b, b)
        .permute(0, 3, 5, 1, 2, 4)
        .reshape(n, b * b * c, h // b, w // b)
    )


def reverse_sequence(x, lengths, time_axis):
    n = x.shape[time_axis]
    t = torch.arange(n, device=x.device).unsqueeze(1 - time_axis)
    length = lengths.clamp(0, n).unsqueeze(time_axis)
    i = torch.where(t < length, length - 1 - t, t)
    sequence = torch.arange(x.shape[1 - time_axis], device=x.device).unsqueeze(time_axis)
    return x[(sequence, i) if time_axis else (i, sequence)]


def one_hot(indices, values, axis, depth):
    i = torch.where(indices < 0, indices + depth, indices).unsqueeze(axis)
    shape = [1] * i.dim()
    shape[axis] = depth
    return torch.where(i == torch.arange(depth, device=i.device).view(shape), values[1], values[0])


def sliced(c):
    """Python's slices shorten what a dimension that only a call decides does not have: narrow() and
    strided() refuse. An empty slice may start behind what is there, which narrow() would refuse,
    too."""
    rank = c.rank()
    rows = list(
        zip(
            c.operand_types[0][1],
            c.get("starts", [0] * rank),
            c.get("steps", [1] * rank),
            c.type[1],
        )
    )
    spans, narrowed = [], ""
    for d, (n, start, step, count) in enumerate(rows):
        known = isinstance(n, int) and isinstance(count, int)
        start += n if start < 0 and known else 0
        end = start + count * step if known else None
        if (start, step, n) == (0, 1, count):
            spans.append(":")
        elif step == 1 and not known:
            spans.append(":")
            first = start
            if start and not isinstance(n, int) and not isinstance(count, int):
                first = (
                    f"min({start}, {c[0]}.size({d}))"
                    if start > 0
                    else f"max({start}, -{c[0]}.size({d}))"
                )
            narrowed += f".narrow({d}, {first}, {count})"
        elif step < 1 or not known:
            return f"rooms.move.strided({c[0]}, {[r[1] for r in rows]}, {[r[2] for r in rows]}, {c.shape})"
        else:
            spans.append(
                f"{start or ''}:{'' if end >= n and count else end}{'' if step == 1 else f':{step}'}"
            )
    while spans and spans[-1] == ":":
        spans.pop()
    return c[0] + (f"[{', '.join(spans)}]" if spans else "") + narrowed


def sizes(c):
    """Of what functional.pad adds: the last dimension first, begin and end; from the first that is
    not kept."""
    amounts = []
    begins = c.get("begins", [0] * c.rank())
    for n, begin, m in zip(c.operand_types[0][1], begins, c.type[1]):
        known = isinstance(n, int) and isinstance(m, int)
        end = (
            m - n - begin
            if known
            else 0
            if (n, begin) == (m, 0)
            else f"{m} - ({n}){f' - {begin}' if begin else ''}"
        )
        amounts.append((begin, end))
    while amounts and amounts[0] == (0, 0):
        amounts.pop(0)
    return [a for pair in amounts[::-1] for a in pair]


def padded(c):
    if len(c) > 1:
        return f"rooms.move.pad({c[0]}, {c[1]}, {c.get('begins', [0] * c.rank())}, {c.shape})"
    amounts = sizes(c)
    return f"functional.pad({c[0]}, ({', '.join(map(str, amounts))}))" if amounts else c[0]


def further(mode, name):
    def text(c):
        amounts, x = sizes(c), c.operand_types[0]
        n = [m for m in x[1][::-1][: len(amounts) // 2] for _ in "be"]
        plain = (
            name
            and x[0] == "f32"
            and c.rank() in (3, 4, 5)
            and 0 < len(amounts) <= 2 * (c.rank() - 2)
        )
        if (
            plain
            and all(isinstance(v, int) for v in amounts + x[1])
            and all(0 <= a < m for a, m in zip(amounts, n))
        ):
            amounts += [0] * (2 * (c.rank() - 2) - len(amounts))
            return f'functional.pad({c[0]}, {tuple(amounts)}, mode="{name}")'
        return (
            f'rooms.move.continued({c[0]}, "{mode}", {c.get("begins", [0] * c.rank())}, {c.shape})'
        )

    return text


def permuted(c):
    return (
        f"{c[0]}.permute({', '.join(map(str, c.perm or range(c.rank() - 1, -1, -1)))})"
        if c.rank()
        else c[0]
    )


def counted(c):
    start, n = c[0], c.type[1][0]
    return f"{start} + torch.arange({n}, dtype={c.dtype}, device={start}.device) * {c[1]}"


def triangle(c):
    return f"torch.{'triu' if c.get('upper', 1) else 'tril'}({c[0]}, diagonal={c.get('k', 0)})"


SPELLED = {
    "concat": lambda c: (
        f"torch.cat(({', '.join(c[i] for i in range(len(c)))}{',' * (len(c) == 1)}), dim={c.axis})"
    ),
    "depth_to_space": lambda c: (
        f"{'functional.pixel_shuffle' if c.crd else 'rooms.move.depth_to_space'}({c[0]}, {c.blocksize})"
    ),
    "expand": "{0}.expand({shape})",
    "iota": counted,
    "one_hot": lambda c: (
        f"rooms.move.one_hot({c[0]}, {c[1]}, axis={c.get('axis', 0)}, depth={c.type[1][c.get('axis', 0)]})"
    ),
    "pad": padded,
    "pad_edge": further("edge", "replicate"),
    "pad_reflect": further("reflect", "reflect"),
    "pad_wrap": further("wrap", None),
    "reverse_sequence": lambda c: (
        f"rooms.move.reverse_sequence({c[0]}, {c[1]}, time_axis={c.get('time_axis', 0)})"
    ),
    "slice": sliced,
    "space_to_depth": "rooms.move.space_to_depth({0}, {blocksize})",
    "transpose": permuted,
    "trilu": lambda c: c.as_signed(triangle),
}
