import torch as t


def torch(call):
    x, ids, (y,) = call.inputs[0], call.inputs[1], call.outputs
    axis = call.attrs.get("axis", 0)
    if call.op == "gather" and axis == 0 and x.ndim == 2:
        return {"embedding": lambda: t.nn.functional.embedding(ids, x).float()}
    names = {
        "gather": {"index_select": lambda: t.index_select(x, axis, ids, out=y)},
        "gather_elements": {"gather": lambda: t.gather(x, axis, ids, out=y)},
        "gather_nd": {"index": lambda: x[tuple(ids.unbind(-1))]},
        "scatter_elements": {
            "scatter_add": lambda: t.scatter_add(x, axis, ids, call.inputs[2], out=y)
        },
        "scatter_nd": {"index_add": lambda: t.index_add(x, 0, ids[:, 0], call.inputs[2], out=y)},
    }
    return names[call.op]


def onnxruntime(call):
    axis = {"axis": call.attrs.get("axis", 0)}
    add = {"reduction": "add"} if call.attrs.get("reduction") else {}
    name, how = {
        "gather": ("Gather", axis),
        "gather_elements": ("GatherElements", axis),
        "gather_nd": ("GatherND", {}),
        "scatter_elements": ("ScatterElements", axis | add),
        "scatter_nd": ("ScatterND", add),
    }[call.op]
    return {name: call.node(name, *range(len(call.inputs)), **how)}
