"""Optimisers that torch computes in one kernel, by the formulas of torch.optim with
foreach=False, of the scalars of optim.7."""

import torch

from invar.autograd.refusal import refused
from invar.optim.scalars import adam_scalars
from invar.reproducibility.kernels.elementwise import add, addcdiv, addcmul, div, lerp, mul
from invar.reproducibility.kernels.handlers import HANDLERS, handler


def fused_adam(decoupled):
    def step(params, grads, averages, squares, max_squares, steps, *, lr, beta1, beta2,
             weight_decay, eps, amsgrad, maximize, grad_scale=None, found_inf=None):  # fmt: skip
        if amsgrad or grad_scale is not None or found_inf is not None:
            raise refused("torch.optim (fused)", "amsgrad and gradient scaling are not covered")
        lr = lr.item() if isinstance(lr, torch.Tensor) else lr
        for x, grad, average, squared, count in zip(params, grads, averages, squares, steps):
            rate, kept, decay, toward, beta, rest, root, least = adam_scalars(
                lr, beta1, beta2, eps, weight_decay, decoupled, int(count.item())
            )
            grad = HANDLERS["neg"](grad) if maximize else grad
            if weight_decay and decoupled:
                x.copy_(mul(x, kept))
            elif weight_decay:
                grad = add(grad, x, decay)
            average.copy_(lerp(average, grad, toward))
            squared.copy_(addcmul(mul(squared, beta), grad, grad, rest))
            scale = add(div(HANDLERS["sqrt"](squared), root), least)
            x.copy_(addcdiv(x, average, scale, -rate))

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
