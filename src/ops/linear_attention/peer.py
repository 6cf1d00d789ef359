import torch as t

CHUNK = 64


def torch(call):
    """The form that others compute prompts by: chunks, and the inverse of a triangle for the delta
    rule. A step is the recurrence."""
    a, (q, k, v, g, *beta) = call.attrs, call.inputs
    heads, scale = a["value_heads"], a["scale"]
    batch, seq = q.shape[:2]
    if g.shape[2] != heads:
        return {}
    q, k = (
        x.view(batch, seq, a["key_heads"], -1).repeat_interleave(heads // a["key_heads"], 2)
        for x in (q, k)
    )
    v = v.view(batch, seq, heads, -1)
    # [B, H, rows, size]
    q, k, v, g, *beta = (
        x.view(batch, seq, heads, -1).transpose(1, 2).contiguous() for x in (q, k, v, g, *beta)
    )

    def step():
        s, row = state * g[:, :, -1:].exp(), k[:, :, -1:]
        u = beta[0][:, :, -1:] * (v[:, :, -1:] - row @ s) if beta else v[:, :, -1:]
        return scale * (q[:, :, -1:] @ (s + row.mT @ u))

    if call.past:
        state = t.zeros(batch, heads, q.shape[3], v.shape[3])
        return {"recurrence": step}
    pad = -seq % CHUNK
    q, k, v, g, *beta = (
        t.nn.functional.pad(x, (0, 0, 0, pad)).unflatten(2, (-1, CHUNK))
        for x in (q, k, v, g, *beta)
    )
    below = t.ones(CHUNK, CHUNK).tril()

    def chunks():
        s, total = t.zeros(batch, heads, q.shape[-1], v.shape[-1]), g.cumsum(-2)
        decay = (total - total.mT).tril().exp() * below
        u, w = v, None
        if beta:
            system = (beta[0] * (k @ k.mT) * decay).tril(-1)
            rows = t.cat([beta[0] * v, beta[0] * total.exp() * k], -1)
            u, w = t.linalg.solve_triangular(system, rows, upper=False, unitriangular=True).split(
                [v.shape[-1], k.shape[-1]], -1
            )
        seen, outputs = (q @ k.mT) * decay, []
        for i in range(u.shape[2]):
            new = u[:, :, i] - w[:, :, i] @ s if beta else u[:, :, i]
            outputs.append((q[:, :, i] * total[:, :, i].exp()) @ s + seen[:, :, i] @ new)
            last = total[:, :, i, -1:]
            s = s * last.exp() + (k[:, :, i] * (last - total[:, :, i]).exp()).mT @ new
        return scale * t.stack(outputs, 2)

    return {"chunks": chunks}
