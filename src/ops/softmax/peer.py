import torch as t


def torch(call):
    *x, y = *call.inputs, *call.outputs
    if call.op.startswith("cross_entropy"):
        return cross_entropy(x, call)
    axis = call.attrs.get("axis", -1)
    if call.op.endswith("_backward"):
        data = getattr(t.ops.aten, f"_{call.op}_data")
        return {call.op: lambda: data(*x, axis, t.float32)}
    return {call.op: lambda: getattr(t, call.op)(x[0], axis, out=y)}


def cross_entropy(x, call):
    """The loss of each row, or its backward pass alone."""
    logits, target = x[-2:]
    loss = t.nn.functional.cross_entropy
    how = {"ignore_index": call.attrs["ignore"], "reduction": "none"}
    if call.op == "cross_entropy":
        return {call.op: lambda: loss(logits, target, **how)}
    logits = logits.detach().requires_grad_()
    made = loss(logits, target, **how)
    return {call.op: lambda: t.autograd.grad(made, logits, x[0], retain_graph=True)}


def onnxruntime(call):
    if call.op == "cross_entropy":
        how = {"reduction": "none", "ignore_index": call.attrs["ignore"]}
        name = "SoftmaxCrossEntropyLoss"
        return {name: call.node(name, 0, 1, **how)}
    name = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}.get(call.op)
    return {name: call.node(name, 0, axis=call.attrs.get("axis", -1))} if name else {}
