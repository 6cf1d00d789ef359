import torch as t


def torch(call):
    q, k, v = call.inputs
    hq, hk, scale = call.attrs["q_heads"], call.attrs["kv_heads"], call.attrs["scale"]
    q, k, v = (x.view(*x.shape[:2], h, -1).transpose(1, 2).contiguous() for x, h in ((q, hq), (k, hk), (v, hk)))
    q = q[:, :, call.past:].contiguous()
    causal = bool(call.attrs.get("causal", 1)) and q.shape[2] > 1
    if call.past and causal:
        return {}  # bottom-right alignment is not what is_causal means there
    sdpa = t.nn.functional.scaled_dot_product_attention
    repeated = [x.repeat_interleave(hq // hk, 1) for x in (k, v)]
    return {"sdpa": lambda: sdpa(q, k, v, is_causal=causal, scale=scale, enable_gqa=hq != hk),
            "sdpa, heads repeated": lambda: sdpa(q, *repeated, is_causal=causal, scale=scale)}
