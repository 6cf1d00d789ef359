import torch as t


def torch(call):
    x, attrs = call.inputs[0], call.attrs
    axes = x.dim() - 2
    kernel, pads = attrs["kernel"], attrs.get("pads", [0] * 2 * axes)
    stride, dilation = attrs.get("strides", [1] * axes), attrs.get("dilations", [1] * axes)
    if pads[:axes] != pads[axes:]:
        return {}
    f = t.nn.functional
    if call.op in ("max_pool", "max_pool_indices"):
        pool = getattr(f, f"max_pool{axes}d")
        indices = call.op == "max_pool_indices"
        return {
            "max_pool": lambda: pool(
                x, kernel, stride, pads[:axes], dilation, return_indices=indices
            )
        }
    if call.op == "average_pool":
        pool = getattr(f, f"avg_pool{axes}d")
        return {
            "avg_pool": lambda: pool(
                x, kernel, stride, pads[:axes], False, bool(attrs.get("count_include_pad", 0))
            )
        }
    return {"lp_pool": lambda: getattr(f, f"lp_pool{axes}d")(x, attrs.get("p", 2), kernel, stride)}
