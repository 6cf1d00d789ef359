import torch as t


def torch(call):
    *x, y = *call.inputs, *call.outputs
    axis = call.attrs.get("axis", -1)
    if call.op.endswith("_backward"):
        data = getattr(t.ops.aten, f"_{call.op}_data")
        return {call.op: lambda: data(*x, axis, t.float32)}
    return {call.op: lambda: getattr(t, call.op)(x[0], axis, out=y)}
