import torch as t


def weight_gradient(call):
    (grad, x), w, attrs = call.inputs, call.outputs[0], call.attrs
    axes = x.dim() - 2
    stride, dilation = attrs.get("strides", [1] * axes), attrs.get("dilations", [1] * axes)
    pads, groups = attrs.get("pads", [0] * 2 * axes), attrs.get("groups", 1)
    if pads[:axes] != pads[axes:]:
        return {}
    back = t.ops.aten.convolution_backward
    more, wanted = [0] * axes, [False, True, False]
    return {
        "convolution_backward": lambda: back(
            grad, x, w, None, stride, pads[:axes], dilation, False, more, groups, wanted
        )
    }


def torch(call):
    if call.op == "conv_backward_weight":
        return weight_gradient(call)
    x, w, attrs = call.inputs[0], call.inputs[1].float(), call.attrs
    bias = call.inputs[2].float() if len(call.inputs) > 2 else None
    axes = x.dim() - 2
    stride, dilation = attrs.get("strides", [1] * axes), attrs.get("dilations", [1] * axes)
    pads, groups = attrs.get("pads", [0] * 2 * axes), attrs.get("groups", 1)
    if pads[:axes] != pads[axes:]:
        return {}
    if call.op == "conv_transpose":
        f = getattr(t.nn.functional, f"conv_transpose{axes}d")
        more = attrs.get("output_padding", [0] * axes)
        return {
            "conv_transpose": lambda: f(x, w, bias, stride, pads[:axes], more, groups, dilation)
        }
    f = getattr(t.nn.functional, f"conv{axes}d")
    ways = {"conv": lambda: f(x, w, bias, stride, pads[:axes], dilation, groups)}
    if axes == 2 and not x.is_cuda:
        packed = t.ops.mkldnn._reorder_convolution_weight(
            w, pads[:axes], stride, dilation, groups, list(x.shape)
        )
        ways["conv, oneDNN, packed"] = lambda: t.ops.mkldnn._convolution_pointwise(
            x, packed, bias, pads[:axes], stride, dilation, groups, "none", [], ""
        )
    return ways


def onnxruntime(call):
    a, axes = call.attrs, call.inputs[0].ndim - 2
    if call.op == "conv_backward_weight":
        return {}
    name = "ConvTranspose" if call.op == "conv_transpose" else "Conv"
    how = {n: a[n] for n in ("strides", "dilations", "pads", "output_padding") if n in a}
    shape = {"kernel_shape": list(call.inputs[1].shape[-axes:]), "group": a.get("groups", 1)}
    return {name: call.node(name, *range(len(call.inputs)), **shape, **how)}
