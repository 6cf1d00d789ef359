def torch(call):
    return {}  # torch has no convolution of integers to integers


def onnxruntime(call):
    """Without the bias, which the node does not have."""
    a = call.attrs
    how = {"pads": a.get("pads", [0] * 4), "strides": a.get("strides", [1] * 2)}
    return {"ConvInteger": call.node("ConvInteger", 0, 1, 3, group=a.get("groups", 1), **how)}
