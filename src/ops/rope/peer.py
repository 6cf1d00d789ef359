import torch as t


def torch(call):
    x, cos, sin = call.inputs
    heads = call.attrs["num_heads"]
    x = x.view(*x.shape[:2], heads, -1)
    c, s = t.cat([cos, cos], -1)[:, :, None], t.cat([sin, sin], -1)[:, :, None]

    def halves():
        a, b = x.chunk(2, -1)
        return x * c + t.cat([-b, a], -1) * s

    return {"rotate_half": halves}


def onnxruntime(call):
    import numpy as np

    heads, places = call.attrs["num_heads"], np.arange(call.inputs[0].shape[1])[None]
    cos, sin = (np.ascontiguousarray(x[0]) for x in call.inputs[1:])
    operands, how = (0, places, cos, sin), {"num_heads": heads, "domain": "com.microsoft"}
    return {"RotaryEmbedding": call.node("RotaryEmbedding", *operands, **how)}
