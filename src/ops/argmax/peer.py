import torch as t


def torch(call):
    (x,) = call.inputs
    return {"argmax": lambda: t.argmax(x, -1)}
