def torch(call):
    (x,), (y,) = call.inputs, call.outputs
    return {"copy_": lambda: y.copy_(x)}
