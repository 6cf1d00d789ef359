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
