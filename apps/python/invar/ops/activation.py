"""Activations (spec: elementwise.9, elementwise.10, elementwise.12) and softmax (softmax.1 to
softmax.7), with the names, arguments and defaults of torch.nn.functional. Elements are f32, bf16,
f16 or f64; f16 and bf16 are computed in f32 and rounded once. `inplace=True` is refused: results
are new arrays."""

from typing import Any, Protocol, cast

from invar.errors import OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array, DType
from invar.ops.binary64 import operations as p
from invar.ops.elementwise import _made, binary, real, sigmoid


class Activation(Protocol):
    __name__: str

    def __call__(self, input: Array, inplace: bool = False) -> Array: ...


def _activation(name: str, what: str, op: str, clause: str, **attributes: float) -> Activation:
    def function(input: Any, inplace: bool = False) -> Any:
        if inplace:
            arr.refuse(name, inplace=inplace)
        return _computed(name, op, input, **attributes)

    return cast(
        Activation,
        _made(
            function,
            name,
            f"{what}\n\ninput: any shape, f32, bf16, f16, f64. The result has its shape and type.\nRaises "
            f"RuntimeError or NotImplementedError for other types. Spec: {clause}.",
        ),
    )


def _computed(name: str, op: str, x: Any, **attributes: Any) -> Any:
    e = t.type_of(x)
    if e == "f32":
        return p.call(op, x, **attributes)
    t.real(name, x)
    return real(name, op, x, **attributes)


silu = _activation("silu", "input · sigmoid(input).", "silu", "elementwise.10")
mish = _activation("mish", "input · tanh(softplus(input)).", "mish", "elementwise.10")
hardswish = _activation("hardswish", "input · hardsigmoid(input).", "hardswish", "elementwise.9")
hardsigmoid = _activation(
    "hardsigmoid",
    "input / 6 + 1/2 limited to [0, 1].",
    "hardsigmoid",
    "elementwise.9",
    alpha=1 / 6,
    beta=0.5,
)
selu = _activation(
    "selu",
    "gamma · elu(input) with the constants of the paper.",
    "selu",
    "elementwise.12",
    alpha=1.6732632423543772848170429916717,
    gamma=1.0507009873554804934193349852946,
)
relu6 = _activation("relu6", "input limited to [0, 6].", "clip", "elementwise.8", min=0.0, max=6.0)


@public
def relu(input: Array, inplace: bool = False) -> Array:
    """max(input, 0); f32, bf16, f16, f64 and integers. NaN stays. Spec: elementwise.9."""
    arr.refuse("relu", inplace=inplace)
    if t.type_of(input) not in t.FLOATS:
        return cast(Array, binary("relu", "max", input, 0))
    return cast(Array, real("relu", "relu", input))


@public
def hardtanh(
    input: Array, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Array:
    """input limited to [min_val, max_val]. Spec: elementwise.8."""
    if min_val > max_val:
        raise OperandError(
            f"hardtanh: argument 'min_val': expected at most max_val, got {min_val} and {max_val}"
        )
    arr.refuse("hardtanh", inplace=inplace)
    return cast(Array, _computed("hardtanh", "clip", input, min=float(min_val), max=float(max_val)))


@public
def elu(input: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    """alpha · expm1(input) below 0, else input. Spec: elementwise.12."""
    arr.refuse("elu", inplace=inplace)
    return cast(Array, _computed("elu", "elu", input, alpha=float(alpha)))


@public
def celu(input: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    """alpha · expm1(input / alpha) below 0, else input. Spec: elementwise.12."""
    arr.refuse("celu", inplace=inplace)
    return cast(Array, _computed("celu", "celu", input, alpha=float(alpha)))


@public
def leaky_relu(input: Array, negative_slope: float = 0.01, inplace: bool = False) -> Array:
    """negative_slope · input below 0, else input. Spec: elementwise.9."""
    arr.refuse("leaky_relu", inplace=inplace)
    return cast(Array, _computed("leaky_relu", "leakyrelu", input, alpha=float(negative_slope)))


@public
def rrelu(
    input: Array,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Array:
    """leaky_relu with the slope (lower + upper) / 2; training, which draws slopes, is refused.
    Spec: elementwise.9."""
    arr.refuse("rrelu", training=training, inplace=inplace)
    return leaky_relu(input, (lower + upper) / 2)


@public
def prelu(input: Array, weight: Array) -> Array:
    """weight · input below 0, else input; weight of one element, or one for each channel (dimension
    1). Spec: elementwise.9."""
    x = t.wide("prelu", input)
    t.same_kind("prelu", input=input, weight=weight)
    w = t.wide("prelu", weight, "weight")
    channels = input.shape[1] if input.ndim > 1 else 1
    if w.ndim > 1 or arr.numel(w) not in (1, channels):
        raise OperandError(
            f"prelu: argument 'weight': expected 1 or {channels} elements, got {tuple(w.shape)}"
        )
    w = w.reshape((-1,) + (1,) * (input.ndim - 2) if input.ndim > 1 else ())
    return cast(Array, t.cast(p.prelu(x, w), t.type_of(input)))


@public
def threshold(input: Array, threshold: float, value: float, inplace: bool = False) -> Array:
    """input where it is greater than the threshold, else value; NaN stays. Spec: elementwise.9,
    elementwise.15."""
    arr.refuse("threshold", inplace=inplace)
    e = t.real("threshold", input)
    x = t.wide("threshold", input)
    if value == 0:
        return cast(Array, t.cast(p.thresholdedrelu(x, alpha=float(threshold)), e))
    below = p.less_equal(x, t.beside(threshold, x))
    return cast(Array, t.cast(p.where(below, t.beside(value, x), x), e))


@public
def hardshrink(input: Array, lambd: float = 0.5) -> Array:
    """input where |input| > lambd, else 0. Spec: elementwise.9."""
    return cast(Array, _computed("hardshrink", "shrink", input, lambd=float(lambd), bias=0.0))


@public
def softshrink(input: Array, lambd: float = 0.5) -> Array:
    """input nearer to 0 by lambd, 0 where |input| <= lambd. Spec: elementwise.9."""
    if lambd < 0:
        raise OperandError(
            f"softshrink: argument 'lambd': expected a number of at least 0, got {lambd}"
        )
    made = _computed("softshrink", "shrink", input, lambd=float(lambd), bias=float(lambd))
    return cast(Array, made)


@public
def tanhshrink(input: Array) -> Array:
    """input - tanh(input), two operations. Spec: elementwise.5, elementwise.11."""
    x = t.wide("tanhshrink", input)
    return cast(Array, t.cast(p.sub(x, p.tanh(x)), t.type_of(input)))


@public
def softsign(input: Array) -> Array:
    """input / (1 + |input|). Spec: elementwise.9."""
    return cast(Array, _computed("softsign", "softsign", input))


@public
def softplus(input: Array, beta: float = 1, threshold: float = 20) -> Array:
    """log(1 + exp(beta · input)) / beta, or input where beta · input > threshold. Spec:
    elementwise.12, elementwise.5."""
    e = t.real("softplus", input)
    x = t.wide("softplus", input)
    constant = lambda v: t.beside(v, x)
    scaled = x if beta == 1 else p.mul(x, constant(beta))
    y = p.softplus(scaled)
    if beta != 1:
        y = p.div(y, constant(beta))
    if beta != 1 or threshold < 20 or e == "f64":  # from 17.4 on, softplus(x) is x in f32
        y = p.where(p.greater(scaled, constant(threshold)), x, y)
    return cast(Array, t.cast(y, e))


@public
def logsigmoid(input: Array) -> Array:
    """log(sigmoid(input)). Spec: elementwise.12."""
    return cast(Array, _computed("logsigmoid", "logsigmoid", input))


@public
def gelu(input: Array, approximate: str = "none") -> Array:
    """input · Φ(input) by the error function, or with approximate="tanh" by the formula of that
    name. Spec: elementwise.12, elementwise.10."""
    if approximate not in ("none", "tanh"):
        raise OperandError(
            f"gelu: argument 'approximate': expected 'none' or 'tanh', got {approximate!r}"
        )
    return cast(Array, _computed("gelu", "gelu" if approximate == "none" else "gelu_tanh", input))


@public
def glu(input: Array, dim: int = -1) -> Array:
    """a · sigmoid(b) of the halves a and b along a dimension. Spec: elementwise.5,
    elementwise.10."""
    t.real("glu", input)
    axis = arr.dim_of("glu", dim, input.ndim)
    if input.ndim == 0 or input.shape[axis] % 2:
        raise OperandError(
            f"glu: argument 'input': expected an even size along dim {dim}, got {tuple(input.shape)}"
        )
    n = input.shape[axis] // 2
    a, b = arr.cut(input, axis, 0, n), arr.cut(input, axis, n, 2 * n)
    return cast(Array, binary("glu", "mul", a, sigmoid(b)))


def _softmax(name: str, op: str, x: Any, dim: int | None, dtype: DType | None) -> Any:
    if dim is None:
        dim = 0 if x.ndim in (0, 1, 3) else 1  # as torch.nn.functional chooses
    if dtype is not None:
        x = t.cast(x, t.named(dtype))
    e = t.real(name, x)
    if e == "f64":
        return _softmax_f64(name, op, x, dim)
    if e == "f32" and -x.ndim <= dim < x.ndim and x.shape[dim]:
        return p.call(op, x, axis=dim % x.ndim)
    axis = arr.dim_of(name, dim, x.ndim)
    if arr.numel(x) == 0:
        return x
    row = t.cast(x, "f32").reshape(1) if x.ndim == 0 else t.cast(x, "f32")
    return t.cast(p.call(op, row, axis=axis), e).reshape(x.shape)


def _softmax_f64(name: str, op: str, x: Any, dim: int) -> Any:
    """In binary64, one operation after the other (functions.43)."""
    axis = arr.dim_of(name, dim, x.ndim)
    if arr.numel(x) == 0:
        return x
    row = x.reshape(1) if x.ndim == 0 else x
    return p.call(op, row, axis=axis).reshape(x.shape)


@public
def softmax(
    input: Array, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Array:
    """exp(input - max) divided by its sum along a dimension; dtype: elements are converted first.
    f32, bf16, f16; f64 by one operation of binary64 after the other. Without dim it is the one that
    torch chooses: 0 for 0, 1 or 3 dimensions, else 1.

    Raises IndexError for a dimension out of range. Spec: softmax.1 to softmax.5, elementwise.19,
    functions.40, functions.41."""
    return cast(Array, _softmax("softmax", "softmax", input, dim, dtype))


@public
def log_softmax(
    input: Array, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Array:
    """log of softmax, in one operation; arguments as softmax. Spec: softmax.6, softmax.7."""
    return cast(Array, _softmax("log_softmax", "log_softmax", input, dim, dtype))


@public
def softmin(
    input: Array, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Array:
    """softmax of -input; arguments as softmax. Spec: elementwise.5, softmax.1 to softmax.5."""
    x: Any = input if dtype is None else t.cast(input, t.named(dtype))
    t.real("softmin", x)
    return cast(Array, _softmax("softmin", "softmax", real("softmin", "neg", x), dim, None))
