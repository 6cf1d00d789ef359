"""More kernels of torch as formulas of primitives: order statistics, distances, factorisations,
inverse functions. Registered as those of kernels.py are."""

import math

import torch

from invar import ops
from invar.autograd.refusal import refused
from invar.reproducibility.kernels import (
    HANDLERS,
    add,
    cast,
    computed,
    handler,
    matmul,
    mul,
    number,
    p,
    reduced,
    scaled,
)


@handler("scatter_reduce")
def scatter_reduce(x, dim, index, source, reduce, *, include_self=True):
    return ops.scatter_reduce(x, dim, index, source, reduce, include_self=include_self)


@handler("index_reduce")
def index_reduce(x, dim, index, source, reduce, *, include_self=True):
    if not x.ndim:
        one = index_reduce(
            x.reshape(1), 0, index, source.reshape(-1), reduce, include_self=include_self
        )
        return one.reshape(())
    shape = [1] * x.ndim
    shape[dim] = -1
    where = index.reshape(shape).expand(source.shape)
    return ops.scatter_reduce(x, dim, where, source, reduce, include_self=include_self)


def dot(a, b):
    return matmul(a.unsqueeze(0), b.unsqueeze(1)).reshape(())


def mv(a, b):
    return matmul(a, b.unsqueeze(1)).squeeze(1)


HANDLERS.update(vdot=dot, dot=dot, mv=mv)


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


@handler("allclose")
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """|a - b| <= atol + rtol |b|, or equal."""
    gap = HANDLERS["abs"](HANDLERS["sub"](a, b))
    close = (gap <= add(mul(HANDLERS["abs"](b), rtol), atol)) & gap.isfinite() | (a == b)
    close = close | (a.isnan() & b.isnan()) if equal_nan else close
    return bool(close.all())


@handler("nan_to_num")
def nan_to_num(x, nan=None, posinf=None, neginf=None):
    if not x.is_floating_point():
        return x.clone()
    limits = torch.finfo(x.dtype)
    value = lambda v, otherwise: torch.full(
        (), otherwise if v is None else v, dtype=x.dtype, device=x.device
    )
    x = torch.where(x.isnan(), value(nan, 0.0), x)
    x = torch.where(x == math.inf, value(posinf, limits.max), x)
    return torch.where(x == -math.inf, value(neginf, limits.min), x)


@handler("hypot")
def hypot(a, b):
    """In binary64, rounded once more."""

    def root(a, b):
        wide = [cast(x, torch.float64) for x in (a, b)]
        squares = [p("mul", x, x) for x in wide]
        return cast(p("sqrt", p("add", *squares)), a.dtype)

    return computed(root, a, b)


@handler("xlogy", "special_xlogy")
def xlogy(a, b):
    def formula(a, b):
        found = p("mul", a, p("log", b))
        zero = torch.zeros((), dtype=found.dtype, device=found.device)
        return torch.where((a == 0) & ~b.isnan(), zero, found)

    return computed(formula, a, b)


@handler("addr")
def addr(x, a, b, beta=1, alpha=1):
    def formula(x, a, b):
        product = scaled(p("mul", a.unsqueeze(1), b.unsqueeze(0)), alpha)
        return product if beta == 0 else p("add", scaled(x, beta), product)

    return computed(formula, x, a, b)


@handler("linalg_cross")
def cross(a, b, *, dim=-1):
    if a.ndim != b.ndim or (a.shape[dim], b.shape[dim]) != (3, 3):
        raise RuntimeError(
            f"linalg.cross: expected 3 elements along {dim}, got {list(a.shape)} and {list(b.shape)}"
        )
    part = lambda x, i: x.select(dim, i)

    def formula(a, b):
        a, b = torch.broadcast_tensors(a, b)
        pairs = ((1, 2), (2, 0), (0, 1))
        found = [
            p("sub", p("mul", part(a, i), part(b, j)), p("mul", part(a, j), part(b, i)))
            for i, j in pairs
        ]
        return torch.stack(found, dim)

    return computed(formula, a, b)


@handler("erfinv", "special_erfinv")
def erfinv(x):
    """Winitzki's estimate, then three steps of Halley: of erf where |x| < 1/2, else of erfc, whose
    value is accurate there."""

    def formula(x):
        at = lambda v: number(v, x)
        size = p("abs", x)
        rest = p("sub", at(1), size)  # exact from 1/2 on
        log = p("add", p("log", rest), p("log1p", size))  # of 1 - x^2
        half = p("add", p("mul", log, at(0.5)), at(2 / (math.pi * 0.147)))
        inner = p("sub", p("mul", half, half), p("mul", log, at(1 / 0.147)))
        y = p("sqrt", p("max", p("sub", p("sqrt", inner), half), at(0)))
        for _ in range(3):
            gap = torch.where(size < 0.5, p("sub", p("erf", y), size), p("sub", rest, p("erfc", y)))
            slope = p("mul", p("exp", p("neg", p("mul", y, y))), at(2 / math.sqrt(math.pi)))
            step = p("div", gap, slope)
            y = p("sub", y, p("div", step, p("add", at(1), p("mul", y, step))))
        line = p("mul", size, at(math.sqrt(math.pi) / 2))  # to the last bit for small x
        y = torch.where(size == 1, at(math.inf), torch.where(size < 2.0**-13, line, y))
        y = torch.where(size <= 1, y, at(math.nan))
        return torch.copysign(y, x)

    return computed(formula, x)


@handler("linalg_qr")
def qr(a, mode="reduced"):
    """By Householder's reflections, one column after the other, in binary64; rounded once."""
    if a.ndim != 2 or mode == "r":
        raise refused(
            "torch.linalg.qr", f"{a.ndim} dimensions, mode {mode!r}; covered are matrices"
        )
    m, n = a.shape
    r = cast(a, torch.float64).clone()
    k, reflections = min(m, n), []

    def reflect(v, factor, x):
        """x - v (factor (v x))"""
        row = p("mul", p("matmul", v.unsqueeze(0), x, trans_a=0, trans_b=0), factor)
        return p("sub", x, p("mul", v.unsqueeze(1), row))

    for i in range(k):
        v = r[i:, i].clone()
        length = p("reduce_l2", v, axes=[0], keepdims=0)
        v[0] = p("add", v[0], torch.copysign(length, v[0]))
        squares = p("reduce_sum_square", v, axes=[0], keepdims=0)
        factor = torch.where(squares == 0, squares, p("div", number(2.0, v), squares))
        r[i:, i:] = reflect(v, factor, r[i:, i:].contiguous())
        reflections.append((v, factor))
    q = torch.eye(m, m if mode == "complete" else k, dtype=torch.float64, device=a.device)
    for i in reversed(range(k)):
        v, factor = reflections[i]
        q[i:, i:] = reflect(v, factor, q[i:, i:].contiguous())
    rows = m if mode == "complete" else k
    return cast(q, a.dtype), cast(r[:rows].triu(), a.dtype)
