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


def onnxruntime(call):
    a, outputs = call.attrs, call.outputs
    how = {n: a[n] for n in ("strides", "pads", "dilations", "count_include_pad", "p") if n in a}
    if call.op == "max_pool_indices":
        outputs = [call.library.tensor({"dtype": "f32", "shape": outputs[0].shape, "fill": "zero"})]
        outputs += call.outputs
    kinds = {"average_pool": "AveragePool", "lp_pool": "LpPool"}
    name = kinds.get(call.op, "MaxPool")
    return {name: call.node(name, 0, results=outputs, kernel_shape=a["kernel"], **how)}
