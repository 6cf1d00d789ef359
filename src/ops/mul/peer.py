import torch as t


def torch(call):
    (a, b), (y,) = call.inputs, call.outputs
    return {"mul": lambda: t.mul(a, b, out=y)}
