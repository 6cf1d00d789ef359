import torch as t


# With a weight of another type than x there is no fused kernel: both spellings are tried.
def torch(call):
    x, w = call.inputs
    n, e, wide = w.shape, call.attrs["epsilon"], w.float()

    def steps():
        return x * t.rsqrt(x.square().mean(tuple(range(-w.dim(), 0)), keepdim=True) + e) * wide

    return {"rms_norm": lambda: t.nn.functional.rms_norm(x, n, wide, e), "in steps": steps}
