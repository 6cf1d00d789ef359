"""Clipping of gradients with the names and arguments of torch.nn.utils (spec: optim.9)."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from invar import _native
from invar import primitives as p
from invar.optim.flat import buckets, joined, split_into

Tensors = Tensor | Iterable[Tensor]
SEGMENT = 4096  # elements of a sum of squares (optim.9)


def _listed(parameters: Tensors) -> list[Tensor]:
    return [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)


def _gradients(parameters: Tensors, where: str) -> list[Tensor]:
    grads = [x.grad for x in _listed(parameters) if x.grad is not None]
    _check(grads, where, "gradient")
    return grads


def _check(tensors: list[Tensor], where: str, what: str) -> None:
    for i, g in enumerate(tensors):
        if g.dtype != torch.float32 or g.layout != torch.strided:
            raise _native.NotCovered(
                f"{where}: {what} {i} is {g.dtype}, {g.layout}; covered is torch.float32, strided"
            )
        if g.device != tensors[0].device:
            raise _native.NotCovered(
                f"{where}: {what} {i} lies on {g.device}, {what} 0 on {tensors[0].device}; "
                "covered is one device"
            )


def _segments(tensors: list[Tensor]) -> Iterator[Tensor]:
    """The elements of all tensors, end to end, as matrices of rows of SEGMENT; zeros fill the
    last."""
    rest: Tensor | None = None
    for part in buckets(tensors):
        flat = joined(part if rest is None else [rest, *part])
        whole = flat.numel() // SEGMENT * SEGMENT
        if whole:
            yield flat[:whole].view(-1, SEGMENT)
        rest = flat[whole:]
    if rest is not None and rest.numel():
        last = rest.new_zeros(SEGMENT)
        last[: rest.numel()] = rest
        yield last.view(1, SEGMENT)


@torch.no_grad()
def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of f32 tensors of one device together, as a tensor of one element
    (spec: optim.9). norm_type: 2 or infinity, others are refused (invar.NotCovered). foreach is
    accepted and changes nothing."""
    tensors = _listed(tensors)
    _check(tensors, "get_total_norm", "tensor")
    norm_type = float(norm_type)
    if norm_type not in (2.0, float("inf")):
        raise _native.NotCovered(f"get_total_norm: norm_type {norm_type}; covered are 2 and inf")
    if not any(x.numel() for x in tensors):
        return torch.tensor(0.0)
    if norm_type == 2.0:
        sums = [p.reduce_sum_square(x, axes=[1], keepdims=0) for x in _segments(tensors)]
        norm = p.sqrt(p.reduce_sum(joined(sums), axes=[0], keepdims=0))
    else:
        most = [
            p.reduce_max(p.abs(joined(part)), axes=[0], keepdims=0).view(1)
            for part in buckets([x for x in tensors if x.numel()])
        ]
        norm = p.reduce_max(joined(most), axes=[0], keepdims=0)
    if error_if_nonfinite and not torch.isfinite(norm):
        raise RuntimeError(
            f"get_total_norm: the norm of order {norm_type} is {float(norm)}, not finite; "
            "error_if_nonfinite=False clips nevertheless"
        )
    return norm


@torch.no_grad()
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients of f32 parameters of one device in place so that their norm together is
    at most max_norm, and returns the norm before (spec: optim.9). Arguments as those of
    torch.nn.utils.clip_grad_norm_."""
    grads = _gradients(parameters, "clip_grad_norm_")
    norm = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    if not grads:
        return norm
    norm = norm.to(grads[0].device)
    constants = torch.tensor([float(max_norm), 1e-6, 1.0], dtype=torch.float64).to(torch.float32)
    most, margin, one = constants.to(norm.device, non_blocking=True)
    factor = p.min(p.div(most, p.add(norm, margin)), one)
    for part in buckets(grads):
        split_into(part, p.mul(joined(part), factor))
    return norm


@torch.no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limits each element of the gradients of f32 parameters in place to [-clip_value, clip_value];
    NaN stays. Arguments as those of torch.nn.utils.clip_grad_value_."""
    grads = _gradients(parameters, "clip_grad_value_")
    if not grads:
        return
    limit = float(clip_value)
    low, high = (
        torch.tensor([-limit, limit], dtype=torch.float64).to(torch.float32).to(grads[0].device)
    )
    for part in buckets(grads):
        split_into(part, p.max(p.min(joined(part), high), low))
