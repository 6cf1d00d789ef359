import torch


def factor(x, dims, epsilon):
    return torch.rsqrt(x.square().mean(dims, keepdim=True) + epsilon)


def backward(grad, x, weight, epsilon):
    dims = tuple(range(-weight.dim(), 0))
    r = factor(x, dims, epsilon)
    u, h = grad * weight, x * r
    return (u - h * (u * h).mean(dims, keepdim=True)) * r


def backward_weight(grad, x, axis, epsilon):
    product = grad * (x * factor(x, tuple(range(axis, x.dim())), epsilon))
    return product.sum(tuple(range(axis))) if axis else product


SPELLED = {
    "rmsnorm": lambda c: (
        f"functional.rms_norm({c[0]}, {c.shape_of(1)}, {c[1]}, {c.text('epsilon')})"
    ),
    "rmsnorm_backward": lambda c: (
        f"rooms.rmsnorm.backward({c[0]}, {c[1]}, {c[2]}, {c.text('epsilon')})"
    ),
    "rmsnorm_backward_weight": lambda c: (
        f"rooms.rmsnorm.backward_weight({c[0]}, {c[1]}, {c.axis}, {c.text('epsilon')})"
    ),
}
