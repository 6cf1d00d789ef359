import torch as t


def torch(call):
    (x,), (y,) = call.inputs, call.outputs
    return {"sigmoid": lambda: t.sigmoid(x, out=y)}
