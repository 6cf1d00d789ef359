import torch as t


def torch(call):
    (x,), (y,) = call.inputs, call.outputs
    mode = {0: "nearest", 1: "bilinear", 3: "bicubic"}[call.attrs.get("order", 0)]
    size, antialias = list(y.shape[2:]), bool(call.attrs.get("antialias", 0))
    if mode == "nearest":
        return {mode: lambda: t.nn.functional.interpolate(x, size, mode=mode)}
    return {
        mode: lambda: t.nn.functional.interpolate(
            x, size, mode=mode, align_corners=False, antialias=antialias
        )
    }
