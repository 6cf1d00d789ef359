SPELLED = {
    op: lambda c: f"torch.{c.op}({c[0]}, dim={c.get('axis', -1)})"
    for op in ("softmax", "log_softmax")
}
