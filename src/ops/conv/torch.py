import torch


class Windows:
    """A convolution's attributes, a number for each spatial dimension."""

    def __init__(self, c):
        n = self.axes = c.rank() - 2
        self.strides, self.dilations = list(c.strides or [1] * n), list(c.dilations or [1] * n)
        pads = list(c.pads or [0] * 2 * n)
        self.begins, self.ends = pads[:n], pads[n:]
        if 0 in c.operand_types[1][1]:
            raise c.refused("of weights without elements")
        self.more, self.groups = list(c.output_padding or [0] * n), c.get("groups", 1)

    def around(self, pairs):
        """Begins and ends as functional.pad takes them."""
        return tuple(a for pair in list(pairs)[::-1] for a in pair)


def keywords(**named):
    """Those that do not say what torch takes anyway."""
    plain = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1, "groups": 1}
    short = lambda v: (
        v[0] if isinstance(v, list) and len(set(v)) == 1 else tuple(v) if isinstance(v, list) else v
    )
    return "".join(f", {name}={short(v)}" for name, v in named.items() if short(v) != plain[name])


def conv(c):
    w, x = Windows(c), c[0]
    padding = w.begins
    if w.begins != w.ends or min(w.begins, default=0) < 0:
        x, padding = f"functional.pad({x}, {w.around(zip(w.begins, w.ends))})", [0] * w.axes
    more = keywords(stride=w.strides, padding=padding, dilation=w.dilations, groups=w.groups)
    return f"functional.conv{w.axes}d({', '.join([x, *(c[i] for i in range(1, len(c)))])}{more})"


def conv_transpose(c):
    w = Windows(c)
    name, named = (
        f"functional.conv_transpose{w.axes}d",
        {"stride": w.strides, "groups": w.groups, "dilation": w.dilations},
    )
    operands = [c[i] for i in range(len(c))]
    if (
        w.begins == w.ends
        and min(w.begins, default=0) >= 0
        and all(m < max(s, d) for m, s, d in zip(w.more, w.strides, w.dilations))
    ):
        return f"{name}({', '.join(operands)}{keywords(padding=w.begins, output_padding=w.more, **named)})"
    # torch pads both ends alike: what is too much is cut off, what is missing has the bias alone.
    sizes = w.around((-b, m - e) for b, e, m in zip(w.begins, w.ends, w.more))
    text = f"functional.pad({name}({', '.join(operands[:2])}{keywords(**named)}), {sizes})"
    return text + (f" + {operands[2]}.reshape(-1{', 1' * w.axes})" if len(c) > 2 else "")


def weight_gradient(grad, x, shape, stride, padding, dilation, groups):
    """torch.nn.grad of the weights; without images or channels they are zeros."""
    if 0 in grad.shape or 0 in x.shape or 0 in shape:
        return x.new_zeros(shape)
    of = getattr(torch.nn.grad, f"conv{x.dim() - 2}d_weight")
    return of(x, tuple(shape), grad, stride, padding, dilation, groups)


def conv_backward_weight(c):
    n = c.rank() - 2
    strides, dilations = c.strides or [1] * n, c.dilations or [1] * n
    pads, x = list(c.pads or [0] * 2 * n), c[1]
    begins, ends = pads[:n], pads[n:]
    padding = begins
    if begins != ends or min(begins, default=0) < 0:
        around = tuple(a for pair in list(zip(begins, ends))[::-1] for a in pair)
        x, padding = f"functional.pad({x}, {around})", [0] * n
    return (
        f"rooms.conv.weight_gradient({c[0]}, {x}, {c.shape}, {list(strides)}, {list(padding)}, "
        f"{list(dilations)}, {c.get('groups', 1)})"
    )


SPELLED = {
    "conv": conv,
    "conv_backward_weight": conv_backward_weight,
    "conv_transpose": conv_transpose,
}
