import torch


def scanned(how, x, axis, exclusive, reverse):
    """torch.cumsum or torch.cumprod, from the other end, or of the elements before."""
    x = x.flip(axis) if reverse else x
    if exclusive and x.shape[axis]:
        first = torch.full_like(x.narrow(axis, 0, 1), how is torch.cumprod)
        x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    y = how(x, axis, dtype=x.dtype)
    return y.flip(axis) if reverse else y


def spelled(c):
    axis, exclusive, reverse = c.get("axis", -1), bool(c.exclusive), bool(c.reverse)
    if exclusive or reverse:
        return f"rooms.scan.scanned(torch.{c.op}, {c[0]}, {axis}, exclusive={exclusive}, reverse={reverse})"
    return (
        f"torch.{c.op}({c[0]}, {axis}{'' if c.type[0] in ('f32', 'f64') else f', dtype={c.dtype}'})"
    )


SPELLED = {"cumsum": spelled, "cumprod": spelled}
