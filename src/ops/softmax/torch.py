SPELLED = {
    op: lambda c: f"torch.{c.op}({c[0]}, dim={c.get('axis', -1)})"
    for op in ("softmax", "log_softmax")
} | {
    f"{op}_backward": lambda c: (
        f"torch.ops.aten._{c.op}_data({c[0]}, {c[1]}, {c.get('axis', -1)}, torch.float32)"
    )
    for op in ("softmax", "log_softmax")
}
