import torch as t


def torch(call):
    (x,), (y,) = call.inputs, call.outputs
    return {"sin": lambda: t.sin(x, out=y)}
