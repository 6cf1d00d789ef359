import torch as t


def torch(call):
    x, axis, largest = (
        call.inputs[0],
        call.attrs.get("axis", -1),
        bool(call.attrs.get("largest", 1)),
    )
    if call.op != "topk":
        return {}
    k = call.outputs[0].shape[axis]
    if k == x.shape[axis]:
        return {"sort": lambda: t.sort(x, dim=axis, descending=largest, stable=True)}
    return {"topk": lambda: t.topk(x, k, axis, largest)}


def onnxruntime(call):
    import numpy as np

    if call.op != "topk":
        return {}
    (y,), axis = call.outputs, call.attrs.get("axis", -1)
    results = [np.zeros(y.shape, call.inputs[0].dtype), y]
    how = {"axis": axis, "largest": call.attrs.get("largest", 1)}
    return {"TopK": call.node("TopK", 0, np.array([y.shape[axis]]), results=results, **how)}
