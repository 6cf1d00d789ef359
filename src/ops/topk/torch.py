def topk(c):
    """A stable sort: torch.topk promises no order of equals."""
    axis, k, n = (
        c.get("axis", -1),
        c.type[1][c.get("axis", -1)],
        c.operand_types[0][1][c.get("axis", -1)],
    )
    order = f"torch.sort({c[0]}, dim={axis}, descending={c.get('largest', 1) == 1}, stable=True).indices"
    return order if k == n else f"{order}.narrow({axis}, 0, {k})"


SPELLED = {"topk": topk}
