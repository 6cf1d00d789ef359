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


def onnxruntime(call):
    import numpy as np

    order, how = call.attrs.get("order", 0), {"antialias": call.attrs.get("antialias", 0)}
    if order == 0:
        how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    sizes = np.array(call.outputs[0].shape, np.int64)
    mode = {0: "nearest", 1: "linear", 3: "cubic"}[order]
    return {"Resize": call.node("Resize", 0, None, None, sizes, mode=mode, **how)}
