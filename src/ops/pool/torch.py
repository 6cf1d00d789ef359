import torch
import torch.nn.functional as functional


def taps_inside(x, out, kernel, strides, dilations, pads):
    """For each spatial dimension the places [O, R] in x that its windows have."""
    axis = lambda n: torch.arange(n, device=x.device)
    return [
        axis(o)[:, None] * s + axis(r) * d - p
        for o, r, s, d, p in zip(out, kernel, strides, dilations, pads)
    ]


def windows(x, out, fill, kernel, strides, dilations, pads):
    """Elements [N, C, O..., R...] of the windows of all outputs, `fill` outside, and where they are
    inside [O..., R...]."""
    axes = len(kernel)
    inside = torch.ones((), dtype=torch.bool, device=x.device)
    at = []
    for d, place in enumerate(taps_inside(x, out, kernel, strides, dilations, pads)):
        shape = [1] * 2 * axes
        shape[d], shape[axes + d] = place.shape
        n = x.shape[2 + d]
        inside = inside & ((place >= 0) & (place < n)).view(shape)
        at.append(place.clamp(0, n - 1).view(shape))
    return torch.where(inside, x[(slice(None), slice(None), *at)], fill), inside, at


def max_pool(x, out, **how):
    values, _, _ = windows(x, out, float("-inf"), **how)
    return values.flatten(-len(out)).amax(-1)


def max_pool_indices(x, out, column_major=0, plain=False, **how):
    """Indices in the whole of x: torch counts in a channel; -1 where a window is outside. plain:
    torch has such windows."""
    axes = len(out)
    sizes = x.shape[2:]
    if plain:
        pool = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[axes - 1]
        _, best = pool(
            x,
            how["kernel"],
            how["strides"],
            how["pads"][:axes],
            how["dilations"],
            plain == "ceil",
            return_indices=True,
        )
    else:
        values, inside, at = windows(x, out, float("-inf"), **how)
        values, inside = values.flatten(-axes), inside.expand(*out, *how["kernel"]).flatten(-axes)
        most = values.amax(-1, keepdim=True)
        hit = inside & ((values == most) | (values.isnan() & most.isnan()))
        tap = hit.byte().argmax(-1, keepdim=True)
        place = 0
        for n, i in zip(sizes, at):
            place = place * n + i
        best = (
            place.expand(*out, *how["kernel"])
            .flatten(-axes)
            .expand(hit.shape)
            .gather(-1, tap)
            .squeeze(-1)
        )
        best = torch.where(hit.any(-1), best, -1)
    outside = best < 0
    if column_major:
        rest, place = best, 0
        for n in reversed(sizes):
            place, rest = place * n + rest % n, rest // n
        best = place
    channel = torch.arange(x.shape[0] * x.shape[1], device=x.device).view(*x.shape[:2], *[1] * axes)
    return torch.where(outside, -1, best + channel * sizes.numel())


def average_pool(x, out, count_include_pad=0, ends=(), **how):
    values, inside, _ = windows(x, out, 0.0, **how)
    if count_include_pad:
        inside = torch.ones((), dtype=torch.bool, device=x.device)
        for d, place in enumerate(taps_inside(x, out, **how)):
            shape = [1] * 2 * len(out)
            shape[d], shape[len(out) + d] = place.shape
            inside = inside & (
                (place >= -how["pads"][d]) & (place < x.shape[2 + d] + ends[d])
            ).view(shape)
    count = inside.expand(*out, *how["kernel"]).flatten(-len(out)).sum(-1)
    return values.flatten(-len(out)).sum(-1) / count


def lp_pool(x, out, p=2, **how):
    values, _, _ = windows(x, out, 0.0, **how)
    return torch.linalg.vector_norm(values.flatten(-len(out)), p, dim=-1)


class Windows:
    def __init__(self, c):
        n = self.axes = c.rank() - 2
        self.kernel = list(c.kernel)
        self.strides, self.dilations = list(c.strides or [1] * n), list(c.dilations or [1] * n)
        pads = list(c.pads or [0] * 2 * n)
        self.begins, self.ends = pads[:n], pads[n:]
        self.out = f"({', '.join(map(str, c.type[1][2:]))}{',' if n == 1 else ''})"
        # torch pads both ends alike, at most half a window, and of averages and norms has no
        # dilated ones.
        self.alike = self.begins == self.ends and all(
            0 <= 2 * p <= k for p, k in zip(self.begins, self.kernel)
        )
        self.dense = set(self.dilations) <= {1}
        self.ceil = bool(c.ceil_mode) or self.rounded_up(c)

    def rounded_up(self, c):
        """Whether there are more windows than fit."""
        sizes = zip(
            c.operand_types[0][1][2:],
            c.type[1][2:],
            self.kernel,
            self.strides,
            self.dilations,
            self.begins,
            self.ends,
        )
        return any(
            isinstance(n, int) and isinstance(o, int) and (o - 1) * s + (k - 1) * d + 1 > n + b + e
            for n, o, k, s, d, b, e in sizes
        )

    def text(self, name, c, *more):
        how = f"kernel={self.kernel}, strides={self.strides}, dilations={self.dilations}, pads={self.begins}"
        return f"rooms.pool.{name}({', '.join([c[0], self.out, *more, how])})"

    def plain(self, *more):
        short = lambda v: v[0] if len(set(v)) == 1 else tuple(v)
        text = [str(short(self.kernel)), f"stride={short(self.strides)}"]
        text += [f"padding={short(self.begins)}"] if any(self.begins) else []
        return ", ".join([*text, *(["ceil_mode=True"] if self.ceil else []), *more])


def largest(c):
    w = Windows(c)
    if not w.alike:
        return w.text("max_pool", c)
    dilated = [] if w.dense else [f"dilation={tuple(w.dilations)}"]
    return f"functional.max_pool{w.axes}d({c[0]}, {w.plain(*dilated)})"


def indices(c):
    w = Windows(c)
    plain = ['plain="ceil"' if w.ceil else "plain=True"] if w.alike else []
    return w.text("max_pool_indices", c, f"column_major={c.get('column_major', 0)}", *plain)


def average(c):
    w, padded = Windows(c), bool(c.count_include_pad)
    if w.alike and w.dense:
        return f"functional.avg_pool{w.axes}d({c[0]}, {w.plain(f'count_include_pad={padded}')})"
    return w.text("average_pool", c, f"count_include_pad={int(padded)}", f"ends={w.ends}")


def norm(c):
    w, p = Windows(c), c.get("p", 2)
    if p == 2 and w.dense and not (any(w.begins) or any(w.ends) or w.ceil):
        return f"functional.lp_pool{w.axes}d({c[0]}, 2, {w.plain()})"
    return w.text("lp_pool", c, f"p={p}")


SPELLED = {
    "max_pool": largest,
    "max_pool_indices": indices,
    "average_pool": average,
    "lp_pool": norm,
}
