"""Optimisers that torch computes in one kernel, as the handlers of kernels.py compute their
formulas: those of torch.optim with foreach=False."""

import math

import torch

from invar.autograd.refusal import refused
from invar.optim.scalars import power
from invar.reproducibility.kernels import HANDLERS, add, addcdiv, addcmul, div, handler, lerp, mul


def fused_adam(decoupled):
    def step(params, grads, averages, squares, max_squares, steps, *, lr, beta1, beta2,
             weight_decay, eps, amsgrad, maximize, grad_scale=None, found_inf=None):  # fmt: skip
        if amsgrad or grad_scale is not None or found_inf is not None:
            raise refused("torch.optim (fused)", "amsgrad and gradient scaling are not covered")
        lr = lr.item() if isinstance(lr, torch.Tensor) else lr
        for x, grad, average, squared, count in zip(params, grads, averages, squares, steps):
            n = int(count.item())
            grad = HANDLERS["neg"](grad) if maximize else grad
            if weight_decay and decoupled:
                x.copy_(mul(x, 1 - lr * weight_decay))
            elif weight_decay:
                grad = add(grad, x, weight_decay)
            average.copy_(lerp(average, grad, 1 - beta1))
            squared.copy_(addcmul(mul(squared, beta2), grad, grad, 1 - beta2))
            root = math.sqrt(1 - power(beta2, n))
            scale = add(div(HANDLERS["sqrt"](squared), root), eps)
            x.copy_(addcdiv(x, average, scale, -(lr / (1 - power(beta1, n)))))

    return step


HANDLERS.update(_fused_adam_=fused_adam(False), _fused_adamw_=fused_adam(True))


@handler("_fused_sgd_")
def fused_sgd(params, grads, buffers, *, weight_decay, momentum, lr, dampening, nesterov, maximize,
              is_first_step, grad_scale=None, found_inf=None):  # fmt: skip
    if grad_scale is not None or found_inf is not None:
        raise refused("torch.optim.SGD (fused)", "gradient scaling is not covered")
    lr = lr.item() if isinstance(lr, torch.Tensor) else lr
    for i, (x, grad) in enumerate(zip(params, grads)):
        grad = HANDLERS["neg"](grad) if maximize else grad
        grad = add(grad, x, weight_decay) if weight_decay else grad
        if momentum:
            moved = grad if is_first_step else add(mul(buffers[i], momentum), grad, 1 - dampening)
            buffers[i].copy_(moved)
            grad = add(grad, buffers[i], momentum) if nesterov else moved
        x.copy_(add(x, grad, -lr))
