import torch as t


def torch(call):
    x, w, *b = call.inputs
    wide, bias, e = w.float(), b[0].float() if b else None, call.attrs["epsilon"]
    return {"layer_norm": lambda: t.nn.functional.layer_norm(x, w.shape, wide, bias, e)}
