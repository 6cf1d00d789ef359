"""What kernels of torch (operations of aten) compute under reproducible(), made of primitives: the
arithmetic that functions.py does not reach, such as that of torch's own gradients, of optimisers
and of in-place methods.

A handler has the name of an operation of aten and takes its arguments; the forms in place, with
`out` and over lists (_foreach_NAME) follow from it. f16 and bf16 are widened to f32, the whole
formula is computed there, one primitive after the other, and the result is rounded once."""

import math

import torch

from invar import ops
from invar.autograd.refusal import refused
from invar.autograd.rules import constant
from invar.modules.emitted import TYPES
from invar.ops import binary64
from invar.ops.binary64.reductions import place

NAMES = {dtype: name for name, dtype in TYPES.items()}
HANDLERS = {}
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))


def handler(*names):
    """Registers the function for these operations of aten."""

    def register(function):
        for name in names:
            assert name not in HANDLERS, name
            HANDLERS[name] = function
        return function

    return register


def p(op, *operands, **attributes):
    """A primitive, outside of the graph of gradients; of f64 its composition where there is no
    other."""
    return binary64.call(op, *operands, **attributes)


def cast(x, dtype):
    """x in another dtype, rounded once (spec: cast)."""
    if x.dtype == dtype:
        return x
    if dtype not in NAMES or x.dtype not in NAMES:
        raise refused(f"conversion from {x.dtype} to {dtype}", "it has no reproducible kernel")
    if torch.bool not in (dtype, x.dtype) and not (
        dtype.is_floating_point or x.is_floating_point()
    ):
        return x.to(dtype)
    return p("cast", x, dtype=NAMES[dtype])


def type_of(*operands):
    """The dtype that torch gives the result, and the dtype in which it is computed."""
    found = None
    for x in operands:
        if x is not None:
            found = x if found is None else torch.empty(0, dtype=torch.result_type(found, x))
    dtype = found.dtype if isinstance(found, torch.Tensor) else torch.get_default_dtype()
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    return dtype, torch.float64 if dtype == torch.float64 else torch.float32


def device_of(operands):
    """The device of the tensors; torch lets a number that is a tensor lie on the host."""
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    return next((x.device for x in tensors if x.ndim), tensors[0].device)


def all_f32(operands):
    """The operands as `computed` has them where the first is a tensor of f32 and the others are so,
    numbers or None: the common case. None: they are not."""
    first, made = operands[0], []
    for x in operands:
        if type(x) in _PLAIN:
            if x.dtype is not torch.float32 or x.device != first.device:
                return None
            made.append(x)
        elif made and (x is None or type(x) in (int, float)):
            made.append(x if x is None else constant(first, x))
        else:
            return None
    return made


def computed(function, *operands):
    """function(operands), all of one dtype as `type_of` says; the result rounded to torch's."""
    if (given := all_f32(operands)) is not None:
        return cast(function(*given), torch.float32)
    dtype, wide = type_of(*operands)
    device = device_of(operands)

    def widened(x):
        if isinstance(x, torch.Tensor):
            return cast(x if x.device == device or x.ndim else x.to(device), wide)
        return x if x is None else torch.full((), x, dtype=wide, device=device)

    return cast(function(*map(widened, operands)), dtype)


def number(value, like):
    return torch.full((), value, dtype=like.dtype, device=like.device)


# Elementwise.

for _name in """abs neg sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p sin cos tan asin
acos atan sinh cosh tanh asinh acosh atanh erf erfc floor ceil trunc round sign sigmoid relu silu
mish hardswish""".split():
    HANDLERS[_name] = lambda x, op=_name: computed(lambda x: p(op, x), x)
for _name, _op in {"maximum": "max", "minimum": "min", "fmod": "fmod", "remainder": "mod",
                   "atan2": "atan2", "fmax": None, "fmin": None}.items():  # fmt: skip
    if _op:
        HANDLERS[_name] = lambda a, b, op=_op: computed(lambda a, b: p(op, a, b), a, b)


def scaled(x, alpha):
    return x if alpha == 1 else p("mul", x, number(alpha, x))


@handler("add")
def add(a, b, alpha=1):
    return computed(lambda a, b: p("add", a, scaled(b, alpha)), a, b)


@handler("sub")
def sub(a, b, alpha=1):
    return computed(lambda a, b: p("sub", a, scaled(b, alpha)), a, b)


@handler("rsub")
def rsub(a, b, alpha=1):
    return sub(b, a, alpha)


@handler("mul")
def mul(a, b):
    return computed(lambda a, b: p("mul", a, b), a, b)


@handler("div", "true_divide")
def div(a, b, rounding_mode=None):
    quotient = computed(lambda a, b: p("div", a, b), a, b)
    if rounding_mode is None:
        return quotient
    return HANDLERS[rounding_mode if rounding_mode == "floor" else "trunc"](quotient)


@handler("pow")
def power(a, b):
    if not isinstance(b, torch.Tensor) and b == 2:
        return mul(a, a)
    return computed(lambda a, b: p("pow", a, b), a, b)


HANDLERS["sgn"] = HANDLERS["sign"]


@handler("square")
def square(x):
    return mul(x, x)


@handler("clamp", "clip")
def clamp(x, min=None, max=None):
    def bounded(x, min, max):
        x = x if min is None else p("max", x, min)
        return x if max is None else p("min", x, max)

    return computed(bounded, x, min, max)


@handler("clamp_min")
def clamp_min(x, min):
    return clamp(x, min)


@handler("clamp_max")
def clamp_max(x, max):
    return clamp(x, None, max)


@handler("lerp")
def lerp(start, end, weight):
    def between(start, end, weight):
        return p("add", start, p("mul", weight, p("sub", end, start)))

    def from_end(start, end, weight):
        rest = p("sub", number(1, end), weight)
        return p("sub", end, p("mul", p("sub", end, start), rest))

    if isinstance(weight, torch.Tensor):
        if weight.numel() != 1:
            near = weight.abs() < 0.5
            return torch.where(
                near, computed(between, start, end, weight), computed(from_end, start, end, weight)
            )
        weight = weight.item()
    return computed(between if abs(weight) < 0.5 else from_end, start, end, weight)


@handler("addcmul")
def addcmul(x, a, b, value=1):
    return computed(lambda x, a, b: p("add", x, p("mul", scaled(a, value), b)), x, a, b)


@handler("addcdiv")
def addcdiv(x, a, b, value=1):
    return computed(lambda x, a, b: p("add", x, p("div", scaled(a, value), b)), x, a, b)


@handler("gelu")
def gelu(x, approximate="none"):
    return computed(lambda x: p("gelu" if approximate == "none" else "gelu_tanh", x), x)


@handler("threshold_backward")
def threshold_backward(grad, x, threshold):
    return torch.where(x <= threshold, torch.zeros((), dtype=grad.dtype, device=grad.device), grad)


@handler("sigmoid_backward")
def sigmoid_backward(grad, y):
    return computed(lambda g, y: p("mul", p("mul", g, p("sub", number(1, y), y)), y), grad, y)


@handler("tanh_backward")
def tanh_backward(grad, y):
    return computed(lambda g, y: p("mul", g, p("sub", number(1, y), p("mul", y, y))), grad, y)


@handler("silu_backward")
def silu_backward(grad, x):
    def formula(g, x):
        s = p("sigmoid", x)
        inner = p("add", number(1, x), p("mul", x, p("sub", number(1, x), s)))
        return p("mul", g, p("mul", s, inner))

    return computed(formula, grad, x)


@handler("gelu_backward")
def gelu_backward(grad, x, approximate="none"):
    """grad (c + x c'), where gelu is x c: c = erfc(-x / sqrt(2)) / 2, or (1 + tanh(u)) / 2 with
    u = sqrt(2 / pi) (x + 0.044715 x^3)."""

    def exact(g, x):
        c = p("mul", p("erfc", p("mul", x, number(-math.sqrt(0.5), x))), number(0.5, x))
        density = p("exp", p("mul", p("mul", x, x), number(-0.5, x)))
        slope = p("mul", density, number(1 / math.sqrt(2 * math.pi), x))
        return p("mul", g, p("add", c, p("mul", x, slope)))

    def by_tanh(g, x):
        root, cubic, one = math.sqrt(2 / math.pi), 0.044715, number(1, x)
        xx = p("mul", x, x)
        inner = p("add", one, p("mul", xx, number(cubic, x)))
        t = p("tanh", p("mul", p("mul", x, number(root, x)), inner))
        c = p("mul", p("add", one, t), number(0.5, x))
        slope = p("mul", p("sub", one, p("mul", t, t)), number(root / 2, x))
        slope = p("mul", slope, p("add", one, p("mul", xx, number(3 * cubic, x))))
        return p("mul", g, p("add", c, p("mul", x, slope)))

    return computed(exact if approximate == "none" else by_tanh, grad, x)


# Reductions.


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


# Products of matrices (spec/contraction.md).


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


# Sequences, conversions, indices.


def progression(start, step, steps, dtype, device):
    """start + i * step, two operations of binary64, rounded to dtype."""
    index = p("cast", torch.arange(steps), dtype="f64")
    found = p("add", p("mul", index, number(step, index)), number(start, index))
    return cast(found, torch.get_default_dtype() if dtype is None else dtype).to(device or "cpu")


@handler("arange")
def arange(*bounds, dtype=None, layout=None, device=None, pin_memory=None):
    """As many steps as torch makes; those of whole numbers are by whole numbers."""
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if dtype == torch.int64:
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise RuntimeError("arange: step: expected a number other than 0")
    steps = max(0, math.ceil((end - start) / step))
    if dtype is not None and not dtype.is_floating_point:
        start, step = int(start), int(step)
    return progression(start, step, steps, dtype, device)


@handler("linspace")
def linspace(start, end, steps, dtype=None, layout=None, device=None, pin_memory=None):
    """By the step (end - start) / (steps - 1); the last is `end`. Of whole numbers from whole ends,
    the second half counted from the last, rounded towards zero."""
    if dtype is not None and not dtype.is_floating_point and steps > 1:
        start, end = int(start), int(end)
        step = (end - start) / max(steps - 1, 1)
        half = steps // 2
        first = progression(start, step, half, torch.float64, device)
        last = progression(end, -step, steps - half, torch.float64, device).flip(0)
        return cast(torch.cat([first, last]), dtype)
    found = progression(start, (end - start) / max(steps - 1, 1), steps, dtype, device)
    if steps > 1:
        found[-1] = end
    return found


def laid_as(x, strides):
    """x in the layout of these strides, where they are those of channels last."""
    for n, layout in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if x.ndim == n == len(strides) and x.stride() != strides and strides[1] == 1:
            return x.contiguous(memory_format=layout)
    return x


@handler("_to_copy")
def to_copy(x, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False,
            memory_format=None):  # fmt: skip
    strides = x.stride() if x.layout == torch.strided else ()
    x = x if dtype is None else cast(x, dtype)
    x = x.to(device=device, non_blocking=non_blocking, copy=True) if device else x.clone()
    if memory_format in (torch.channels_last, torch.channels_last_3d, torch.contiguous_format):
        return x.contiguous(memory_format=memory_format)
    return laid_as(x, strides)


@handler("copy")
def copy(target, source, non_blocking=False):
    return cast(source, target.dtype)


@handler("embedding_dense_backward")
def embedding_backward(grad, indices, rows, padding_idx, scale_grad_by_freq):
    if scale_grad_by_freq:
        raise refused("torch.nn.functional.embedding", "scale_grad_by_freq is not covered")
    where = indices.reshape(-1)
    grad = grad.reshape(-1, grad.shape[-1])
    if padding_idx >= 0:
        kept = where != padding_idx
        where, grad = where[kept], grad[kept]
    zeros = torch.zeros((rows, grad.shape[-1]), dtype=torch.float32, device=grad.device)
    return computed(lambda g: p("scatter_nd", zeros, where.unsqueeze(-1), g, reduction=1), grad)


def added(x, dim, index, source):
    """x + source at the rows `index` along dim, in the order of index."""
    moved = lambda t: t.movedim(dim, 0).contiguous()
    result = computed(
        lambda x, s: p("scatter_nd", moved(x), index.reshape(-1, 1), moved(s), reduction=1),
        x,
        source,
    )
    return result.movedim(0, dim)


@handler("index_add")
def index_add(x, dim, index, source, alpha=1):
    return added(x, dim, index, source if alpha == 1 else mul(source, alpha))


@handler("scatter_add")
def scatter_add(x, dim, index, source):
    source = source[tuple(slice(n) for n in index.shape)]
    axis = dim % x.ndim
    return computed(
        lambda x, s: p("scatter_elements", x, index, s, axis=axis, reduction=1), x, source
    )
