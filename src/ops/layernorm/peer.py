import torch as t


# Torch computes the gradients of x and of weight and bias in one call, and remembers the moments.
def gradient(call):
    grad, x = call.inputs[:2]
    of_x = call.op == "layernorm_backward"
    w = call.inputs[2].float() if of_x else t.ones_like(call.outputs[0])
    _, mean, scale = t.ops.aten.native_layer_norm(x, w.shape, w, w, call.attrs["epsilon"])
    wanted = [of_x, not of_x, False]
    backward = t.ops.aten.native_layer_norm_backward
    return {"layer_norm": lambda: backward(grad, x, w.shape, mean, scale, w, w, wanted)}


def torch(call):
    if call.op != "layernorm":
        return gradient(call)
    x, w, *b = call.inputs
    wide, bias, e = w.float(), b[0].float() if b else None, call.attrs["epsilon"]
    return {"layer_norm": lambda: t.nn.functional.layer_norm(x, w.shape, wide, bias, e)}


def onnxruntime(call):
    if call.op != "layernorm":
        return {}
    how = {"axis": -call.inputs[1].ndim, "epsilon": call.attrs["epsilon"]}
    name = "LayerNormalization"
    return {name: call.node(name, *range(len(call.inputs)), **how)}
