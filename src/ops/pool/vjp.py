"""Gradients of pools: a transposed convolution with ones spreads what belongs to a window; the
gradient of a maximum goes to the element that max_pool_indices names."""

import math

import numpy as np
import torch
from invar import primitives as p
from invar.autograd.rules import no_gradient, rule, table

no_gradient("max_pool_indices")


class Windows:
    """The attributes of a pool, a number for each spatial dimension."""

    def __init__(self, v):
        self.shape, self.out = v.shape(0), tuple(v.grad.shape[2:])
        self.size = self.shape[2:]
        n = self.axes = len(self.size)
        self.kernel = list(v.attribute("kernel"))
        self.strides = list(v.attribute("strides") or [1] * n)
        self.dilations = list(v.attribute("dilations") or [1] * n)
        pads = list(v.attribute("pads") or [0] * 2 * n)
        self.begins, self.ends = pads[:n], pads[n:]
        self.attributes = {
            "kernel": self.kernel,
            "strides": self.strides,
            "dilations": self.dilations,
            "pads": pads,
            "ceil_mode": v.attribute("ceil_mode"),
        }

    def counts(self, d, padded):
        """How many places of each window of axis d lie inside of the operand, or of it and its
        pads."""
        low = -self.begins[d] if padded else 0
        high = self.size[d] + (self.ends[d] if padded else 0)
        firsts = (o * self.strides[d] - self.begins[d] for o in range(self.out[d]))
        steps = [r * self.dilations[d] for r in range(self.kernel[d])]
        return [sum(low <= first + step < high for step in steps) for first in firsts]

    def areas(self, padded):
        """The number of places of each window, as pool.5 divides by it: f32 [1, 1, O...]."""
        areas = np.ones((1, 1), np.float32)
        for d in range(self.axes):
            areas = areas[..., None] * np.array(self.counts(d, padded), np.float32)
        return areas

    def all_filled(self):
        return all(min(self.counts(d, False), default=1) > 0 for d in range(self.axes))

    def whole(self):
        """There is one window, the operand."""
        return (
            all(n == 1 for n in self.out)
            and tuple(self.kernel) == tuple(self.size)
            and not any(self.begins)
            and not any(self.ends)
        )

    def spread(self, grad):
        """The sum of grad over the windows that hold an element, for each element of the
        operand."""
        if self.whole():
            return p.expand(grad, shape=self.shape)
        ends, more = [], []
        for n, m, k, s, d, b in zip(
            self.size, self.out, self.kernel, self.strides, self.dilations, self.begins
        ):
            over = (m - 1) * s + (k - 1) * d + 1 - b - n  # windows reach so far behind the operand
            ends.append(max(over, 0))
            more.append(max(-over, 0))
        sums = p.conv_transpose(
            grad.reshape(math.prod(self.shape[:2]), 1, *self.out),
            torch.ones(1, 1, *self.kernel, dtype=torch.float32, device=grad.device),
            strides=self.strides,
            dilations=self.dilations,
            pads=self.begins + ends,
            output_padding=more,
            groups=1,
        )
        return sums.reshape(self.shape)


@rule("max_pool")
def max_pool(v):
    w, grad = Windows(v), v.grad
    rows, inner = math.prod(w.shape[:2]), math.prod(w.size)
    index = p.max_pool_indices(v[0], column_major=0, **w.attributes).reshape(rows, -1)
    grad = grad.reshape(rows, -1)
    if not w.all_filled():  # no index, and nothing to give back
        zero, nothing = torch.zeros((), dtype=torch.int64, device=grad.device), grad.new_zeros(())
        grad = p.where(p.less(index, zero), nothing, grad)
        index = p.max(index, zero)
    step = max(inner, 1)
    first = torch.arange(0, rows * step, step, device=grad.device).unsqueeze(1)
    index = p.sub(index, p.min(index, first))  # within the spatial part
    sums = p.scatter_elements(
        torch.zeros(rows, inner, dtype=torch.float32, device=grad.device),
        index,
        grad,
        axis=1,
        reduction=1,
    )
    return [sums.reshape(w.shape)]


@rule("average_pool", saves="")
def average_pool(v):
    w = Windows(v)
    padded = bool(v.attribute("count_include_pad"))
    areas = w.areas(padded)
    if areas.size and (areas == areas.flat[0]).all():
        divisor = v.constant(float(areas.flat[0]))
    else:
        key = ("average_pool", w.size, w.out, padded, repr(w.attributes))
        divisor = table(key, v.grad.device, lambda: areas)
    return [w.spread(p.div(v.grad, divisor))]


@rule("lp_pool", saves="operands result")
def lp_pool(v):
    w, x, y, grad = Windows(v), v[0], v.result, v.grad
    if v.attribute("p") == 1:
        return [p.mul(p.sign(x), w.spread(grad))]
    zero = v.constant(0.0)
    share = p.where(p.equal(y, zero), zero, p.div(grad, y))
    return [p.mul(x, w.spread(share))]
