import torch as t


def torch(call):
    (x,), (y,) = call.inputs, call.outputs
    return {"silu": lambda: t.ops.aten.silu.out(x, out=y)}
