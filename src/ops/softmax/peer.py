import torch as t


def torch(call):
    (x,), (y,) = call.inputs, call.outputs
    return {"softmax": lambda: t.softmax(x, -1, out=y)}
