import torch as t

# Where the name or the form with a result made beforehand differs.
SPELLED = {
    "silu": lambda x, y: t.ops.aten.silu.out(x, out=y),
    "mish": lambda x, y: t.ops.aten.mish.out(x, out=y),
    "gelu_tanh": lambda x, y: t.ops.aten.gelu.out(x, approximate="tanh", out=y),
}


def torch(call):
    (y,) = call.outputs
    if call.op in SPELLED:
        return {call.op: lambda: SPELLED[call.op](*call.inputs, y)}
    function = getattr(t, call.op, None)
    return {call.op: lambda: function(*call.inputs, out=y)} if function else {}
