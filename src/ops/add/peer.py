import torch as t


def torch(call):
    (a, b), (y,) = call.inputs, call.outputs
    return {"add": lambda: t.add(a, b, out=y)}
