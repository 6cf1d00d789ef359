import torch as t


def torch(call):
    (x,), (y,) = call.inputs, call.outputs
    return {call.op: lambda: getattr(t, call.op)(x, call.attrs.get("axis", -1), out=y)}
