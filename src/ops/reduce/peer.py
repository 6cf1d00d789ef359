import torch as t


def torch(call):
    (x,) = call.inputs
    axes = call.attrs.get("axes", list(range(x.dim())))
    axis = call.attrs.get("axis", -1)
    correction = call.attrs.get("correction", 0)
    return {
        "argmax": {"argmax": lambda: t.argmax(x, axis)},
        "argmin": {"argmin": lambda: t.argmin(x, axis)},
        "reduce_sum": {"sum": lambda: t.sum(x, axes, dtype=x.dtype)},
        "reduce_mean": {"mean": lambda: t.mean(x, axes)},
        "reduce_max": {"amax": lambda: t.amax(x, axes)},
        "reduce_min": {"amin": lambda: t.amin(x, axes)},
        "reduce_l2": {"vector_norm": lambda: t.linalg.vector_norm(x, dim=axes)},
        "reduce_var": {"var": lambda: t.var(x, axes, correction=correction)},
        "reduce_std": {"std": lambda: t.std(x, axes, correction=correction)},
        "hardmax": {"one_hot": lambda: t.nn.functional.one_hot(t.argmax(x, axis), x.shape[axis])},
        "reduce_log_sum_exp": {"logsumexp": lambda: t.logsumexp(x, axes)},
    }.get(call.op, {})


def onnxruntime(call):
    import numpy as np

    axis = {"axis": call.attrs.get("axis", -1)}
    if call.op == "hardmax":
        return {"Hardmax": call.node("Hardmax", 0, **axis)}
    if call.op.startswith("arg"):
        name = {"argmax": "ArgMax", "argmin": "ArgMin"}[call.op]
        return {name: call.node(name, 0, keepdims=0, **axis)}
    kinds = {"sum": "Sum", "mean": "Mean", "max": "Max", "min": "Min", "l2": "L2"}
    kind = (kinds | {"log_sum_exp": "LogSumExp"}).get(call.op.removeprefix("reduce_"))
    axes = call.attrs.get("axes", list(range(call.inputs[0].ndim)))
    if not kind:
        return {}
    return {f"Reduce{kind}": call.node(f"Reduce{kind}", 0, np.array(axes, np.int64), keepdims=0)}
