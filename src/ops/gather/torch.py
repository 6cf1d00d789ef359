import torch


def places(indices, n):
    """Negative ones count from the end."""
    return torch.where(indices < 0, indices + n, indices)


def gather_nd(x, indices, batch_dims):
    """Tuples of indices into the dimensions behind those of the batch."""
    rank = indices.dim() - 1
    batch = [
        torch.arange(n, device=x.device).view([-1 if d == i else 1 for d in range(rank)])
        for i, n in enumerate(indices.shape[:batch_dims])
    ]
    return x[(*batch, *indices.unbind(-1))]


def scatter_nd(x, indices, updates, reduction):
    """Slices that tuples of indices name, multiplied or compared with updates."""
    k = indices.shape[-1]
    place, slices = 0, 1
    for n, i in zip(x.shape[:k], indices.unbind(-1)):
        place, slices = place * n + places(i, n), slices * n
    flat, rows = x.reshape(slices, -1), place.reshape(-1, 1)
    joined = updates.reshape(rows.shape[0], flat.shape[1])
    return flat.scatter_reduce(0, rows.expand(joined.shape), joined, reduction).reshape(x.shape)


REDUCTIONS = {1: "sum", 2: "prod", 3: "amin", 4: "amax"}


# An index of rank 0 would be asked for its value, which a GPU must first compute.
def gather(c):
    axis = c.get("axis", 0) % c.rank()
    widened = ".float()" if c[0] != c.operands[0] else ""
    index, dropped = (c[1], "") if c.rank(1) else (f"{c[1]}.reshape(1)", f".squeeze({axis})")
    return f"{c.operands[0]}[{':, ' * axis}{index}]{dropped}{widened}"


def gather_tuples(c):
    if c.batch_dims:
        return f"rooms.gather.gather_nd({c[0]}, {c[1]}, {c.batch_dims})"
    return (
        f"{c[0]}[{c[1]}.unbind(-1)]"
        if c.rank(1) > 1
        else f"{c[0]}[{c[1]}.unsqueeze(0).unbind(-1)].squeeze(0)"
    )


def along(c):
    axis = c.get("axis", 0)
    return f"{axis}, rooms.gather.places({c[1]}, {c[0]}.shape[{axis}])"


def scatter_elements(c):
    if c.reduction:
        return f'torch.scatter_reduce({c[0]}, {along(c)}, {c[2]}, "{REDUCTIONS[c.reduction]}")'
    return f"torch.scatter({c[0]}, {along(c)}, {c[2]})"


def scatter_tuples(c):
    if c.get("reduction", 0) > 1:
        return f'rooms.gather.scatter_nd({c[0]}, {c[1]}, {c[2]}, "{REDUCTIONS[c.reduction]}")'
    return f"torch.index_put({c[0]}, {c[1]}.unbind(-1), {c[2]}{', accumulate=True' if c.reduction else ''})"


SPELLED = {
    "gather": gather,
    "gather_elements": lambda c: f"torch.gather({c[0]}, {along(c)})",
    "gather_nd": gather_tuples,
    "scatter_elements": lambda c: c.as_signed(scatter_elements),
    "scatter_nd": lambda c: c.as_signed(scatter_tuples),
}
