"""Convolutions of integers in torch."""

from torch.nn import functional


def conv_integer(
    x, w, bias, x_zero=None, w_zero=None, *, strides=(), dilations=(), pads=(), groups=1
):
    """Sums of products of bytes: exact in double precision; modulo 2^32."""
    axes = x.dim() - 2
    x, w = x.double(), w.double()
    if x_zero is not None:
        x = x - x_zero.double()
    if w_zero is not None:
        w = w - w_zero.double().reshape(-1, *[1] * (axes + 1))
    pads = list(pads) or [0] * 2 * axes
    around = [pads[d + side * axes] for d in reversed(range(axes)) for side in (0, 1)]
    y = getattr(functional, f"conv{axes}d")(
        functional.pad(x, around),
        w,
        stride=list(strides) or 1,
        dilation=list(dilations) or 1,
        groups=groups,
    )
    return (y.long() + bias.reshape(-1, *[1] * axes)).int()
