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
