import torch


def prod(x, axes, keepdim):
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keepdim=keepdim, dtype=x.dtype)
    return x


def mean_of_integers(x, axes, keepdim):
    """Towards zero; 0 of no elements."""
    total = torch.sum(x, axes, keepdim=keepdim, dtype=x.dtype)
    n = 1
    for axis in axes:
        n *= x.shape[axis]
    return torch.div(total, n, rounding_mode="trunc") if n else total


def last_of(how, x, axis, keepdim):
    """The last of equals, by torch.argmax or torch.argmin of what is turned."""
    return x.shape[axis] - 1 - how(x.flip(axis), axis, keepdim=keepdim)


class Reduced:
    """What a reduction's text is made of."""

    def __init__(self, c):
        self.axes = (
            tuple(sorted(a % c.rank() for a in c.axes))
            if c.axes
            else tuple(range(c.rank())) or (0,)
        )
        self.keepdim = c.rank() > 0 and len(c.type[1]) == c.rank()
        self.dims = f"dim={self.axes}" + (", keepdim=True" if self.keepdim else "")
        self.integers = c.type[0] not in ("f32", "f64")
        self.summed = self.dims + (f", dtype={c.dtype}" if self.integers else "")
        self.empty = c.rank() > 0 and any(c.operand_types[0][1][a] == 0 for a in self.axes)


LEAST = {
    "f32": 'float("-inf")',
    "f64": 'float("-inf")',
    "bool": "False",
    "u8": "0",
    "i8": "-128",
    "i32": "-2**31",
    "i64": "-2**63",
}
GREATEST = {
    "f32": 'float("inf")',
    "f64": 'float("inf")',
    "bool": "True",
    "u8": "255",
    "i8": "127",
    "i32": "2**31 - 1",
    "i64": "2**63 - 1",
}


def extreme(name, of_bools, of_none):
    def text(c):
        r = Reduced(c)
        if r.empty:
            return f"torch.full({c.shape}, {of_none[c.type[0]]}, dtype={c.dtype}, device={c[0]}.device)"
        return f"torch.{of_bools if c.type[0] == 'bool' else name}({c[0]}, {r.dims})"

    return text


def mean(c):
    r = Reduced(c)
    if r.integers:
        return f"rooms.reduce.mean_of_integers({c[0]}, {r.axes}, keepdim={r.keepdim})"
    return f"torch.mean({c[0]}, {r.dims})"


def product(c):
    r = Reduced(c)
    if len(r.axes) > 1:
        return f"rooms.reduce.prod({c[0]}, {r.axes}, keepdim={r.keepdim})"
    return f"torch.prod({c[0]}, {r.summed.replace(str(r.axes), str(r.axes[0]))})"


def spread(c):
    return (
        f"torch.{c.op.removeprefix('reduce_')}({c[0]}, {Reduced(c).dims}, "
        f"correction={c.get('correction', 0)})"
    )


def index(c):
    keepdim, how = len(c.type[1]) == c.rank(), f"torch.{c.op}"
    if c.select_last:
        return f"rooms.reduce.last_of({how}, {c[0]}, {c.get('axis', -1)}, keepdim={keepdim})"
    return f"{how}({c[0]}, dim={c.get('axis', -1)}{', keepdim=True' if keepdim else ''})"


def hardmax(c):
    axis = c.get("axis", -1)
    return f"torch.zeros_like({c[0]}).scatter({axis}, torch.argmax({c[0]}, dim={axis}, keepdim=True), 1.0)"


def of(form):
    return lambda c: form.format(c[0], summed=Reduced(c).summed, dims=Reduced(c).dims)


SPELLED = {
    "argmax": index,
    "argmin": index,
    "hardmax": hardmax,
    "reduce_l1": of("torch.sum(torch.abs({0}), {summed})"),
    "reduce_l2": of("torch.linalg.vector_norm({0}, {dims})"),
    "reduce_log_sum": of("torch.log(torch.sum({0}, {dims}))"),
    "reduce_log_sum_exp": of("torch.logsumexp({0}, {dims})"),
    "reduce_max": extreme("amax", "any", LEAST),
    "reduce_mean": mean,
    "reduce_min": extreme("amin", "all", GREATEST),
    "reduce_prod": product,
    "reduce_std": spread,
    "reduce_sum": of("torch.sum({0}, {summed})"),
    "reduce_sum_square": of("torch.sum(torch.square({0}), {summed})"),
    "reduce_var": spread,
}
