import torch as t


def torch(call):
    x, w, b = call.inputs
    w, b, groups, e = w.float(), b.float(), call.attrs["groups"], call.attrs["epsilon"]
    found = {"group_norm": lambda: t.nn.functional.group_norm(x, groups, w, b, e)}
    if groups == x.shape[1] and x.dim() > 2:
        found["instance_norm"] = lambda: t.nn.functional.instance_norm(
            x, None, None, w, b, True, 0.0, e
        )
    return found


def onnxruntime(call):
    groups, e, x = call.attrs["groups"], call.attrs["epsilon"], call.inputs[0]
    name, how = "GroupNormalization", {"num_groups": groups}
    if groups == x.shape[1] and x.ndim > 2:
        name, how = "InstanceNormalization", {}
    return {name: call.node(name, 0, 1, 2, epsilon=e, **how)}
