import torch as t

aten = t.ops.aten
# Where the name or the form with a result made beforehand differs: (result, attributes, operands
# ...).
SPELLED = {
    "relu_backward": lambda y, a, g, z: aten.threshold_backward.grad_input(g, z, 0, grad_input=y),
    "sigmoid_backward": lambda y, a, g, z: aten.sigmoid_backward.grad_input(g, z, grad_input=y),
    "tanh_backward": lambda y, a, g, z: aten.tanh_backward.grad_input(g, z, grad_input=y),
    "silu_backward": lambda y, a, g, x: aten.silu_backward.grad_input(g, x, grad_input=y),
    "gelu_backward": lambda y, a, g, x: aten.gelu_backward.grad_input(g, x, grad_input=y),
    "gelu_tanh_backward": lambda y, a, g, x: aten.gelu_backward.grad_input(
        g, x, approximate="tanh", grad_input=y
    ),
    "silu": lambda y, a, x: aten.silu.out(x, out=y),
    "mish": lambda y, a, x: aten.mish.out(x, out=y),
    "gelu": lambda y, a, x: aten.gelu.out(x, out=y),
    "gelu_tanh": lambda y, a, x: aten.gelu.out(x, approximate="tanh", out=y),
    "elu": lambda y, a, x: aten.elu.out(x, a["alpha"], out=y),
    "softplus": lambda y, a, x: aten.softplus.out(x, out=y),
    "hardswish": lambda y, a, x: aten.hardswish.out(x, out=y),
    "leakyrelu": lambda y, a, x: aten.leaky_relu.out(x, a["alpha"], out=y),
    "clip": lambda y, a, x: t.clamp(x, a["min"], a["max"], out=y),
    "equal": lambda y, a, x, z: t.eq(x, z, out=y),
    "isnan": lambda y, a, x: aten.isnan.out(x, out=y),
    "mod": lambda y, a, x, z: t.remainder(x, z, out=y),
    "shift_left": lambda y, a, x, z: t.bitwise_left_shift(x, z, out=y),
    "shift_right": lambda y, a, x, z: t.bitwise_right_shift(x, z, out=y),
}


def torch(call):
    (y,) = call.outputs
    if call.op in SPELLED:
        return {call.op: lambda: SPELLED[call.op](y, call.attrs, *call.inputs)}
    function = getattr(t, call.op, None)
    return {call.op: lambda: function(*call.inputs, out=y)} if function else {}


def onnxruntime(call):
    a, operands = call.attrs, range(len(call.inputs))
    if call.op == "silu":
        return {"QuickGelu": call.node("QuickGelu", 0, domain="com.microsoft", alpha=1.0)}
    if call.op == "gelu_tanh":
        return {"Gelu": call.node("Gelu", 0, approximate="tanh")}
    if call.op == "fmod":
        return {"Mod": call.node("Mod", 0, 1, fmod=1)}
    if call.op == "clip":
        bounds = (call.inputs[0].dtype.type(a[name]) for name in ("min", "max"))
        return {"Clip": call.node("Clip", 0, *bounds)}
    named = "exp sin cos sigmoid gelu mish tanh erf log add mul div less where pow".split()
    name = call.op.capitalize()
    return {name: call.node(name, *operands)} if call.op in named else {}
