"""Losses as torch's kernels have them, for what does not come through invar.ops."""

import torch

from invar.autograd.refusal import refused
from invar.reproducibility.kernels.elementwise import div, mul, sub
from invar.reproducibility.kernels.handlers import HANDLERS, handler
from invar.reproducibility.kernels.reductions import reduced

NONE, MEAN, SUM = range(3)


def picked(x, target, weight, ignore_index):
    """(the rows' classes, 0 where they are ignored; the weight of each row)."""
    if x.ndim != 2:
        raise refused("torch.nn.functional.nll_loss", f"{x.ndim} dimensions; covered are two")
    kept = target != ignore_index
    classes = torch.where(kept, target, torch.zeros_like(target))
    weights = torch.ones_like(x[:, 0]) if weight is None else weight[classes]
    return classes, torch.where(kept, weights, torch.zeros_like(weights))


@handler("nll_loss_forward")
def nll_loss(x, target, weight, reduction, ignore_index):
    """-x[row, class] * weight of each row; their sum, or it divided by the sum of the weights."""
    classes, weights = picked(x, target, weight, ignore_index)
    chosen = x.gather(1, classes.unsqueeze(1)).squeeze(1)
    losses = torch.where(weights == 0, weights, HANDLERS["neg"](mul(chosen, weights)))
    total = reduced("reduce_sum", weights)
    if reduction == NONE:
        return losses, torch.zeros_like(total)
    loss = reduced("reduce_sum", losses)
    return (div(loss, total) if reduction == MEAN else loss), total


@handler("nll_loss_backward")
def nll_loss_backward(grad, x, target, weight, reduction, ignore_index, total):
    classes, weights = picked(x, target, weight, ignore_index)
    of_row = mul(div(grad, total) if reduction == MEAN else grad, HANDLERS["neg"](weights))
    return torch.zeros_like(x).scatter_(1, classes.unsqueeze(1), of_row.unsqueeze(1))


@handler("mse_loss")
def mse_loss(x, target, reduction=MEAN):
    squares = HANDLERS["square"](sub(x, target))
    return squares if reduction == NONE else reduced(
        "reduce_mean" if reduction == MEAN else "reduce_sum", squares
    )  # fmt: skip


@handler("mse_loss_backward")
def mse_loss_backward(grad, x, target, reduction):
    factor = 2 / x.numel() if reduction == MEAN and x.numel() else 2
    return mul(mul(sub(x, target), factor), grad)
