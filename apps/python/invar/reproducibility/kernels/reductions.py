"""Sums, extremes, order statistics, scans and softmax along dimensions."""

import math

import torch

from invar import ops
from invar.autograd.refusal import refused
from invar.ops.binary64.reductions import place
from invar.reproducibility.kernels.handlers import HANDLERS, cast, computed, handler, p


def axes_of(x, dim):
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(x.ndim))
    return [d % max(x.ndim, 1) for d in (dim if isinstance(dim, list | tuple) else [dim])]


def reduced(op, x, dim=None, keepdim=False, dtype=None, **attributes):
    x = x if dtype is None else cast(x, dtype)
    if x.ndim == 0:
        return reduced(op, x.reshape(1), [0], False, None, **attributes)
    axes, keep = axes_of(x, dim), int(keepdim)
    return computed(lambda x: p(op, x, axes=axes, keepdims=keep, **attributes), x)


for _name, _op in {"sum": "reduce_sum", "mean": "reduce_mean", "prod": "reduce_prod",
                   "amax": "reduce_max", "amin": "reduce_min",
                   "logsumexp": "reduce_log_sum_exp"}.items():  # fmt: skip
    HANDLERS[_name] = lambda x, dim=None, keepdim=False, dtype=None, op=_op: reduced(
        op, x, dim, keepdim, dtype
    )


def extreme(reduce, index):
    def of(x, dim=None, keepdim=False):
        if dim is None:
            return reduced(reduce, x)
        where = HANDLERS[index](x, dim, True)
        values = torch.gather(x, dim, where) if x.ndim else x
        return (
            (values, where) if keepdim or not x.ndim else (values.squeeze(dim), where.squeeze(dim))
        )

    return of


def chosen(op):
    def of(x, dim=None, keepdim=False):
        flat = x.reshape(-1) if dim is None or x.ndim == 0 else x
        axis = 0 if dim is None or x.ndim == 0 else dim % x.ndim
        found = place(op == "argmax", flat, axis).squeeze(axis)
        if dim is None:
            return found.reshape([1] * x.ndim) if keepdim else found
        return found.unsqueeze(axis) if keepdim and x.ndim else found

    return of


HANDLERS.update(argmax=chosen("argmax"), argmin=chosen("argmin"))
HANDLERS.update(max=extreme("reduce_max", "argmax"), min=extreme("reduce_min", "argmin"))


def spread(op):
    def of(x, dim=None, unbiased=True, keepdim=False, *, correction=None):
        if isinstance(dim, bool):  # var(x, unbiased)
            dim, unbiased = None, dim
        by = int(unbiased) if correction is None else correction
        name = op.removeprefix("reduce_")
        return getattr(ops, name)(x, dim, keepdim=keepdim, correction=by)

    return of


HANDLERS.update(var=spread("reduce_var"), std=spread("reduce_std"))


@handler("linalg_vector_norm", "norm")
def vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    if ord in (math.inf, -math.inf):
        op = "reduce_max" if ord > 0 else "reduce_min"
        return reduced(op, HANDLERS["abs"](x), dim, keepdim, dtype)
    if ord not in (1, 2):
        raise refused("torch.linalg.vector_norm", f"ord={ord}; covered are 1, 2 and the infinities")
    return reduced(f"reduce_l{int(ord)}", x, dim, keepdim, dtype)


def scanned(op):
    def of(x, dim, dtype=None):
        x = x if dtype is None else cast(x, dtype)
        if not x.ndim:
            return x
        return computed(lambda x: p(op, x, axis=dim % x.ndim, exclusive=0, reverse=0), x)

    return of


HANDLERS.update(cumsum=scanned("cumsum"), cumprod=scanned("cumprod"))


def softmax(op):
    def of(x, dim, half_to_float=False):
        x = cast(x, torch.float32) if half_to_float else x
        return computed(lambda x: p(op, x, axis=dim % x.ndim), x)

    return of


HANDLERS.update(_softmax=softmax("softmax"), _log_softmax=softmax("log_softmax"))


@handler("_safe_softmax")
def safe_softmax(x, dim, dtype=None):
    """softmax, and +0 along rows that are masked throughout."""
    masked = (x == -math.inf).all(dim, keepdim=True)
    found = HANDLERS["_softmax"](x if dtype is None else cast(x, dtype), dim)
    return found.masked_fill(masked, 0)


def _over(x, dim):
    return p("reduce_sum", x, axes=[dim % x.ndim], keepdims=1)


@handler("_softmax_backward_data")
def softmax_backward(grad, y, dim, input_dtype):
    formula = lambda g, y: p("mul", y, p("sub", g, _over(p("mul", g, y), dim)))
    return cast(computed(formula, grad, y), input_dtype)


@handler("_log_softmax_backward_data")
def log_softmax_backward(grad, y, dim, input_dtype):
    formula = lambda g, y: p("sub", g, p("mul", p("exp", y), _over(g, dim)))
    return cast(computed(formula, grad, y), input_dtype)


@handler("median")
def median(x, dim=None, keepdim=False):
    """The lower of two middle elements, NaN where there is one; of equal elements the first
    place."""
    flat, axis = (x.reshape(-1), 0) if dim is None else (x if x.ndim else x.reshape(1), dim)
    values, places = torch.sort(flat, dim=axis, stable=True)
    n = flat.shape[axis]
    if not n:
        raise refused("torch.median", "of no elements")
    last = values.narrow(axis, n - 1, 1).isnan()  # NaN stands last
    first_nan = values.isnan().to(torch.int64).argmax(axis, keepdim=True)
    middle = torch.full_like(first_nan, (n - 1) // 2)
    at = torch.where(last, first_nan, middle)
    values, places = values.gather(axis, at), places.gather(axis, at)
    if dim is None:
        return values.reshape(())
    if keepdim and x.ndim:
        return values, places
    return values.squeeze(axis), places.squeeze(axis)


@handler("kthvalue")
def kthvalue(x, k, dim=-1, keepdim=False):
    if not x.ndim:
        return tuple(y.reshape(()) for y in kthvalue(x.reshape(1), k, 0))
    found = [y.narrow(dim, k - 1, 1) for y in torch.sort(x, dim=dim, stable=True)]
    return tuple(found if keepdim else (y.squeeze(dim) for y in found))


@handler("aminmax")
def aminmax(x, *, dim=None, keepdim=False):
    if not x.numel() and (dim is None or not x.shape[dim]):
        raise IndexError(f"aminmax: expected elements, got {list(x.shape)}")
    axes = None if dim is None else [dim]
    return reduced("reduce_min", x, axes, keepdim), reduced("reduce_max", x, axes, keepdim)


@handler("nansum")
def nansum(x, dim=None, keepdim=False, dtype=None):
    zero = torch.zeros((), dtype=x.dtype, device=x.device)
    return reduced("reduce_sum", torch.where(x.isnan(), zero, x), dim, keepdim, dtype)


@handler("trace")
def trace(x):
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, got {x.ndim} dimensions")
    return reduced("reduce_sum", x.diagonal())
