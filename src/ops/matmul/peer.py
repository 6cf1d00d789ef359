import torch as t


def torch(call):
    (a, b), constant = call.inputs, call.constant[1]
    weight = b if call.attrs.get("trans_b") else b.mT  # [N, K]
    wide = weight.float()
    y = call.outputs[0]
    ways = {"matmul": lambda: t.matmul(a, wide.mT, out=y)}  # MKL
    if constant and a.dim() == 2:
        dense = wide.contiguous()
        ways["linear"] = lambda: t.nn.functional.linear(a, dense)
        packed = t.ops.mkldnn._reorder_linear_weight(dense, None)
        ways["linear, oneDNN, packed"] = lambda: t.ops.mkldnn._linear_pointwise(a, packed, None, "none", [], "")
        if weight.dtype != t.float32:
            half = a.to(weight.dtype)  # fewer bits everywhere: what a decoder in that type would run
            ways[f"linear {weight.dtype}".replace("torch.", "")] = lambda: t.nn.functional.linear(half, weight)
    return ways
