"""Products of matrices (spec/contraction.md) and a factorisation."""

import torch

from invar.autograd.refusal import refused
from invar.reproducibility.kernels.handlers import (
    HANDLERS,
    cast,
    computed,
    handler,
    number,
    p,
    scaled,
)


@handler("mm", "bmm", "matmul")
def matmul(a, b):
    return computed(lambda a, b: p("matmul", a, b, trans_a=0, trans_b=0), a, b)


@handler("addmv")
def addmv(x, a, b, beta=1, alpha=1):
    x = x.unsqueeze(-1) if isinstance(x, torch.Tensor) and x.ndim else x
    return addmm(x, a, b.unsqueeze(1), beta, alpha).squeeze(1)


@handler("addmm", "baddbmm")
def addmm(x, a, b, beta=1, alpha=1):
    def formula(x, a, b):
        product = scaled(p("matmul", a, b, trans_a=0, trans_b=0), alpha)
        return product if beta == 0 else p("add", scaled(x, beta), product)

    return computed(formula, x, a, b)


def dot(a, b):
    return matmul(a.unsqueeze(0), b.unsqueeze(1)).reshape(())


def mv(a, b):
    return matmul(a, b.unsqueeze(1)).squeeze(1)


HANDLERS.update(vdot=dot, dot=dot, mv=mv)


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
