import torch as t


def torch(call):
    (x,), (y,) = call.inputs, call.outputs
    return {"cos": lambda: t.cos(x, out=y)}
