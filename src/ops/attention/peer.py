import torch as t


def backward(call):
    """The backward pass of causal attention, heads last."""
    a, (grad, _, *operands) = call.attrs, call.inputs
    heads = [a["q_heads"], a["q_heads"], a["kv_heads"], a["kv_heads"]]
    grad, q, k, v = (
        x.view(*x.shape[:2], h, -1).transpose(1, 2).contiguous()
        for x, h in zip((grad, *operands), heads)
    )
    if len(operands) > 3 or not a.get("causal", 1) or len(a.keys() & {"left", "right", "softcap"}):
        return {}
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    y = t.nn.functional.scaled_dot_product_attention(
        *leaves, is_causal=True, scale=a["scale"], enable_gqa=heads[1] != heads[2]
    )
    return {"sdpa": lambda: t.autograd.grad(y, leaves, grad, retain_graph=True)}


def torch(call):
    if call.op == "attention_backward":
        return backward(call)
    a, more = call.attrs, list(call.inputs[3:])
    hq, hk, scale = a["q_heads"], a["kv_heads"], a["scale"]
    q, k, v = call.inputs[:3]
    if not a.get("heads_first"):
        q, k, v = (
            x.view(*x.shape[:2], h, -1).transpose(1, 2).contiguous()
            for x, h in ((q, hq), (k, hk), (v, hk))
        )
    q = q[:, :, call.past :].contiguous()
    causal = bool(a.get("causal", 1)) and q.shape[2] > 1
    if a.get("lengths") or a.get("slopes") or (call.past and causal):
        return {}  # bottom-right alignment is not what is_causal means there
    mask = more.pop(0) if a.get("mask") else None
    if a.get("left", -1) >= 0:
        i, j = t.arange(q.shape[2])[:, None] + call.past, t.arange(k.shape[2])
        mask, causal = (j <= i) & ((j >= i - a["left"]) | (j < a.get("first", 0))), False
    repeated = [x.repeat_interleave(hq // hk, 1) for x in (k, v)]
    if a.get("softcap") or a.get("sinks"):
        cap, sinks = a.get("softcap"), more.pop(0) if a.get("sinks") else None
        hidden = t.ones(q.shape[2], k.shape[2], dtype=t.bool).triu(1) if causal else None

        def plain():
            s = q @ repeated[0].transpose(2, 3) * scale
            s = cap * t.tanh(s / cap) if cap else s
            s = s if hidden is None else s.masked_fill(hidden, float("-inf"))
            if sinks is not None:
                s = t.cat([s, sinks.view(1, -1, 1, 1).expand(*s.shape[:3], 1)], -1)
            return t.softmax(s, -1)[..., : k.shape[2]] @ repeated[1]

        return {"written out": plain}
    sdpa = t.nn.functional.scaled_dot_product_attention
    return {
        "sdpa": lambda: sdpa(q, k, v, mask, is_causal=causal, scale=scale, enable_gqa=hq != hk),
        "sdpa, heads repeated": lambda: sdpa(q, *repeated, mask, is_causal=causal, scale=scale),
    }


def onnxruntime(call):
    a = call.attrs
    if call.op != "attention" or set(a) - {"q_heads", "kv_heads", "scale", "causal"}:
        return {}
    q = call.inputs[0]
    sizes = {"q_num_heads": a["q_heads"], "kv_num_heads": a["kv_heads"], "scale": a["scale"]}
    causal = int(a.get("causal", 1) and not call.past)
    call.inputs[0], results = q[:, call.past :], [call.outputs[0][:, call.past :]]
    node = call.node("Attention", 0, 1, 2, results=results, is_causal=causal, **sizes)
    return {"Attention": node}
