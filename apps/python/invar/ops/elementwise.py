"""Functions of one element of each operand (spec: elementwise.1 to elementwise.19), with torch's
names, broadcasting and promotion of types. f16 and bf16 are computed in f32 and rounded once to the
result's type. Tables below make most of the functions."""

import math
from typing import Any, Protocol, cast

from invar.errors import ArgumentTypeError, NotCovered, OperandError, public
from invar.ops import _types as t
from invar.ops import binary64
from invar.ops._types import Array, DType, Number
from invar.ops.binary64 import operations as p

REAL64 = frozenset("abs neg sign sqrt reciprocal floor ceil trunc round relu isnan".split())
NUMBERS = frozenset("abs neg sign add sub mul div max min fmod mod".split())
# Sums, products and extremes of truth values.
TRUTHS = {"add": "logical_or", "mul": "logical_and", "max": "logical_or", "min": "logical_and"}
INTEGERS = frozenset({"i64", "i32", "i8", "u8", "u64"})


class Unary(Protocol):
    __name__: str

    def __call__(self, input: Array) -> Array: ...


class Binary(Protocol):
    __name__: str

    def __call__(self, input: Array, other: Array | Number) -> Array: ...


def real(name: str, op: str, x: Any, **attributes: Any) -> Any:
    """A function of real numbers; integers become floats first."""
    e = t.type_of(x)
    if e == "f32":
        return p.call(op, x, **attributes)
    if e == "f64":
        if op not in REAL64 and op not in binary64.NAMES:
            raise NotCovered(
                f"{name}: argument 'input': elements of float64; covered are float32, bfloat16, float16"
            )
        return p.call(op, x, **attributes)
    if e not in t.FLOATS:
        return real(name, op, p.cast(x, dtype=t.default_float()), **attributes)
    return p.cast(p.call(op, p.cast(x, dtype="f32"), **attributes), dtype=e)


def number(name: str, op: str, x: Any) -> Any:
    """A function that integers keep."""
    e = t.type_of(x)
    if e in t.FLOATS:
        return real(name, op, x)
    if e == "bool":
        if op == "sign":
            return x
        raise OperandError(f"{name}: argument 'input': expected elements of numbers, got bool")
    if op not in NUMBERS:  # floor, ceil, trunc, round
        return x
    wide = t.COMPUTED.get(e, e)
    return t.cast(p.call(op, t.cast(x, wide)), e)


def operands(name: str, a: Any, b: Any, least: str | None = None) -> tuple[Any, Any, str]:
    """Both as arrays of the type in which they are computed, and the result's type."""
    na, nb = t.is_number(a), t.is_number(b)
    if na and nb:
        t.type_of(a)
    if not na and not nb:
        ea, eb = t.type_of(a), t.type_of(b, "other")
        if a.device != b.device:
            t.same_kind(name, input=a, other=b)
        e = ea if ea == eb else t.result_type(a, b)
    else:
        e = t.result_type(a, b)
    if least and e not in t.FLOATS:
        e = t.default_float()
    wide = t.COMPUTED.get(e, e)
    made = [
        _operand(x, wide, b if x is a else a) if n else t.cast(t.cast(x, e), wide)
        for x, n in ((a, na), (b, nb))
    ]
    return made[0], made[1], e


def _operand(value: Any, name: str, like: Any) -> Any:
    """A number as an operand beside an array; the same one serves every call."""
    if name in t.FLOATS and type(value) in (int, float) and -1024 < value < 1024:
        return t.constant(float(value), name, like)
    return t.number(value, name, like)


def _narrow_operands(name: str, a: Any, b: Any) -> tuple[Any, Any, str]:
    """operands, of a function that f64 does not have."""
    x, y, e = operands(name, a, b, least="float")
    if e == "f64":
        raise NotCovered(
            f"{name}: elements of float64 (operands meet in it); covered are float32, bfloat16, float16"
        )
    return x, y, e


def binary(name: str, op: str, a: Any, b: Any, least: str | None = None) -> Any:
    """An arithmetic function of two operands."""
    if t.are_f32(a, b):
        return p.call(op, a, b)
    if type(b) is float and t.are_f32(a):
        return p.call(op, a, _operand(b, "f32", a))
    x, y, e = operands(name, a, b, least)
    if e == "bool":
        if op not in TRUTHS:
            raise OperandError(f"{name}: expected operands of numbers, got bool")
        return p.call(TRUTHS[op], x, y)
    return t.cast(p.call(op, x, y), e)


def compared(name: str, op: str, a: Any, b: Any) -> Any:
    if t.are_f32(a, b):
        return p.call(op, a, b)
    if type(b) in (int, float) and -1024 < b < 1024 and t.are_f32(a):
        return p.call(op, a, _operand(b, "f32", a))
    x, y, e = operands(name, a, b)
    if e == "bool" and op != "equal":
        x, y = p.cast(x, dtype="i32"), p.cast(y, dtype="i32")
    return p.call(op, x, y)


def truth(x: Any, like: Any = None) -> Any:
    return t.number(bool(x), "bool", like) if t.is_number(x) else t.cast(x, "bool")


def _made(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return public(function)


def _unary(name: str, what: str, clause: str, op: str = "", how: Any = real) -> Unary:
    op = op or name

    def function(input: Array) -> Array:
        return cast(Array, how(name, op, input))

    types = "f32, bf16, f16" + (", f64" if op in REAL64 or op in binary64.NAMES else "")
    types += " and integers, of which it is the same type" if how is number else ""
    more = "" if how is number else "; integers become the default float"
    return cast(
        Unary,
        _made(
            function,
            name,
            f"{what}\n\ninput: any shape, {types}{more}. The result has its shape and type.\n"
            f"Raises RuntimeError or NotImplementedError for other types. Spec: {clause}.",
        ),
    )


def _binary(name: str, what: str, clause: str, op: str, how: Any = binary, **more: Any) -> Binary:
    def function(input: Array, other: Array | Number) -> Array:
        return cast(Array, how(name, op, input, other, **more))

    result = "bool" if how is compared else "of the type that torch promotes to"
    return cast(
        Binary,
        _made(
            function,
            name,
            f"{what}\n\ninput, other: arrays that broadcast, or one of them a number. The result "
            f"is {result}.\nRaises RuntimeError for shapes, types or devices that do not fit. "
            f"Spec: {clause}.",
        ),
    )


CR = "elementwise.11, functions (correctly rounded)"
abs = absolute = _unary("abs", "|input|.", "elementwise.5, elementwise.13", how=number)
neg = negative = _unary("neg", "-input.", "elementwise.5, elementwise.13", how=number)
sign = _unary("sign", "-1, 0 or 1; NaN for NaN.", "elementwise.5, elementwise.13", how=number)
floor = _unary("floor", "Rounded down.", "elementwise.6", how=number)
ceil = _unary("ceil", "Rounded up.", "elementwise.6", how=number)
trunc = fix = _unary("trunc", "Rounded towards zero.", "elementwise.6", how=number)
sqrt = _unary("sqrt", "The square root.", "elementwise.5")
reciprocal = _unary("reciprocal", "1 / input.", "elementwise.5")
rsqrt = _unary("rsqrt", "1 / sqrt(input).", CR)
exp = _unary("exp", "e to the power of input.", "functions.2; f64: functions.40")
exp2 = _unary("exp2", "2 to the power of input.", CR)
expm1 = _unary("expm1", "exp(input) - 1.", CR)
log = _unary("log", "The natural logarithm.", CR + "; f64: functions.41")
log2 = _unary("log2", "The logarithm to base 2.", CR)
log10 = _unary("log10", "The logarithm to base 10.", CR)
log1p = _unary("log1p", "log(1 + input).", CR)
sin = _unary("sin", "The sine.", CR)
cos = _unary("cos", "The cosine.", CR)
tan = _unary("tan", "The tangent.", CR)
asin = arcsin = _unary("asin", "The inverse sine.", CR)
acos = arccos = _unary("acos", "The inverse cosine.", CR)
atan = arctan = _unary("atan", "The inverse tangent.", CR)
sinh = _unary("sinh", "The hyperbolic sine.", CR)
cosh = _unary("cosh", "The hyperbolic cosine.", CR)
asinh = arcsinh = _unary("asinh", "The inverse hyperbolic sine.", CR)
acosh = arccosh = _unary("acosh", "The inverse hyperbolic cosine.", CR)
atanh = arctanh = _unary("atanh", "The inverse hyperbolic tangent.", CR)
tanh = _unary("tanh", "The hyperbolic tangent.", CR)
erf = _unary("erf", "The error function.", CR)
erfc = _unary("erfc", "1 - erf(input).", CR)
sigmoid = expit = _unary("sigmoid", "1 / (1 + exp(-input)).", "elementwise.10")

mul = multiply = _binary("mul", "input · other.", "elementwise.5", "mul")
true_divide = _binary("true_divide", "input / other.", "elementwise.5", "div", least="float")
fmod = _binary("fmod", "The remainder with the sign of input.", "elementwise.8", "fmod")
remainder = _binary("remainder", "The remainder with the sign of other.", "elementwise.8", "mod")
maximum = _binary("maximum", "The larger; NaN if one is.", "formats.7", "max")
minimum = _binary("minimum", "The smaller; NaN if one is.", "formats.7", "min")
eq = _binary("eq", "input = other.", "elementwise.7", "equal", compared)
lt = less = _binary("lt", "input < other.", "elementwise.7", "less", compared)
le = less_equal = _binary("le", "input <= other.", "elementwise.7", "less_equal", compared)
gt = greater = _binary("gt", "input > other.", "elementwise.7", "greater", compared)
ge = greater_equal = _binary("ge", "input >= other.", "elementwise.7", "greater_equal", compared)


def _scaled(name: str, op: str, a: Any, b: Any, alpha: Number) -> Any:
    if alpha == 1:
        return binary(name, op, a, b)
    if isinstance(alpha, float) and t.result_type(a, b) not in t.FLOATS:
        if name not in ("add", "sub"):
            raise NotCovered(f"{name}: argument 'value': {alpha} beside operands of integers")
        raise OperandError(
            f"{name}: argument 'alpha': expected an integer beside operands of integers, got {alpha}"
        )
    x, y, e = operands(name, a, b)
    if e == "bool":
        raise OperandError(f"{name}: expected operands of numbers, got bool")
    wide = t.COMPUTED.get(e, e)
    y = p.mul(y, t.number(alpha, wide, y))
    if not t.is_number(b):  # the product has the result's type, which may be wider than b's
        y = t.cast(t.cast(y, e), wide)
    return t.cast(p.call(op, x, y), e)


@public
def add(input: Array, other: Array | Number, *, alpha: Number = 1) -> Array:
    """input + alpha · other, of the type that torch promotes to; alpha · other is rounded first.

    input, other: arrays that broadcast, or one of them a number. Raises RuntimeError for shapes,
    types or devices that do not fit. Spec: elementwise.5."""
    return cast(Array, _scaled("add", "add", input, other, alpha))


@public
def sub(input: Array, other: Array | Number, *, alpha: Number = 1) -> Array:
    """input - alpha · other; otherwise as add. Spec: elementwise.5."""
    return cast(Array, _scaled("sub", "sub", input, other, alpha))


subtract = sub


@public
def div(input: Array, other: Array | Number, *, rounding_mode: str | None = None) -> Array:
    """input / other: of integers the default float; with rounding_mode "trunc" or "floor" the
    quotient rounded so, of the promoted type. Spec: elementwise.5, elementwise.14."""
    if rounding_mode is None:
        return cast(Array, binary("div", "div", input, other, least="float"))
    if rounding_mode not in ("trunc", "floor"):
        raise OperandError(
            f"div: argument 'rounding_mode': expected None, 'trunc' or 'floor', got {rounding_mode!r}"
        )
    x, y, e = operands("div", input, other)
    if e in t.FLOATS:
        q = p.trunc(p.div(x, y)) if rounding_mode == "trunc" else _floor_quotient(x, y)
    else:
        q = p.div(x, y)
        if rounding_mode == "floor" and e[0] == "i":
            q = _floored(q, x, y)
    return cast(Array, t.cast(q, e))


def _floored(q: Any, x: Any, y: Any) -> Any:
    """The quotient towards zero of integers, less one where it is negative and inexact."""
    e = t.NAMES[x.dtype]
    zero = t.number(0, e, x)
    inexact = p.logical_not(p.equal(p.mod(x, y), zero))
    return p.sub(q, p.cast(p.logical_and(p.less(p.bitwise_xor(x, y), zero), inexact), dtype=e))


def _floor_quotient(x: Any, y: Any) -> Any:
    """Of the exact quotient of reals, as torch and Python find it: from the exact remainder."""
    at = lambda v: t.number(v, t.NAMES[x.dtype], x)
    whole, rest = p.div(x, y), p.fmod(x, y)
    q = p.div(p.sub(x, rest), y)
    other = p.logical_xor(p.less(rest, at(0)), p.less(y, at(0)))
    lower = p.logical_and(other, p.logical_not(p.equal(rest, at(0))))
    q = p.where(lower, p.sub(q, at(1)), q)
    near = p.round(q)
    near = p.where(p.equal(near, at(0)), p.mul(whole, at(0)), near)  # a zero of the quotient's sign
    return p.where(p.equal(y, at(0)), whole, near)


divide = div


@public
def floor_divide(input: Array, other: Array | Number) -> Array:
    """The exact quotient rounded down, of the promoted type. Spec: elementwise.5, elementwise.8,
    elementwise.14."""
    return div(input, other, rounding_mode="floor")


@public
def pow(input: Array | Number, exponent: Array | Number) -> Array:
    """input to the power of exponent (an array, or one of them a number), of the type that torch
    promotes to. f32, bf16, f16, f64, integers. Spec: functions.26, elementwise.17; f64:
    functions.42."""
    x, y, e = operands("pow", input, exponent)
    if e == "f64":
        if isinstance(exponent, int | float) and exponent in (1, 2, 3, 0.5, -1, -0.5):
            return cast(Array, _small_power(x, exponent))
    if e in ("i8", "u8", "i16"):
        wide = p.pow(t.cast(x, "i64"), t.cast(y, "i64"))
        return cast(Array, t.cast(wide, e))
    return cast(Array, t.cast(p.pow(x, y), e))


def _small_power(x: Any, n: Any) -> Any:
    if n in (0.5, -0.5):
        return p.sqrt(x) if n > 0 else p.reciprocal(p.sqrt(x))
    if n == -1:
        return p.reciprocal(x)
    return x if n == 1 else p.mul(x, x) if n == 2 else p.mul(p.mul(x, x), x)


@public
def square(input: Array) -> Array:
    """input · input, of its type. Spec: elementwise.5."""
    return cast(Array, binary("square", "mul", input, input))


@public
def round(input: Array, *, decimals: int = 0) -> Array:
    """The nearest integer, of two the even one. Other decimals are refused. Spec: elementwise.6."""
    if decimals != 0:
        raise NotCovered(f"round: argument 'decimals': expected 0, got {decimals}")
    return cast(Array, number("round", "round", input))


@public
def frac(input: Array) -> Array:
    """input - trunc(input), exact. Spec: elementwise.5, elementwise.6."""
    t.real("frac", input)
    return cast(Array, binary("frac", "sub", input, number("frac", "trunc", input)))


@public
def atan2(input: Array, other: Array | Number) -> Array:
    """The angle of the point (other, input). f32, bf16, f16. Spec: functions (atan2)."""
    x, y, e = _narrow_operands("atan2", input, other)
    return cast(Array, t.cast(p.atan2(x, y), e))


arctan2 = atan2


@public
def logit(input: Array, eps: float | None = None) -> Array:
    """log(x / (1 - x)), x limited to [eps, 1 - eps] where eps is given. Four operations, each
    rounded. f32, bf16, f16, f64. Spec: elementwise.5, elementwise.11."""
    e = t.type_of(input)
    x = t.wide("logit", input if e in t.FLOATS else t.cast(input, t.default_float()))
    if eps is not None:
        x = p.clip(x, min=eps, max=1 - eps)
    y = p.log(p.div(x, p.sub(t.beside(1, x), x)))
    return cast(Array, t.cast(y, e if e in t.FLOATS else t.default_float()))


@public
def clamp(
    input: Array, min: Array | Number | None = None, max: Array | Number | None = None
) -> Array:
    """input limited to [min, max]: numbers, or arrays that broadcast; max where min > max. NaN
    stays.

    f32, bf16, f16, f64, integers. Raises RuntimeError where neither bound is given. Spec:
    elementwise.8, formats.7."""
    if min is None and max is None:
        raise OperandError("clamp: At least one of 'min' or 'max' must not be None")
    numbers = all(v is None or isinstance(v, int | float) for v in (min, max))
    if numbers and t.type_of(input) in t.FLOATS:
        low = -math.inf if min is None else float(cast(float, min))
        high = math.inf if max is None else float(cast(float, max))
        return cast(Array, real("clamp", "clip", input, min=low, max=high))
    x: Any = input
    if min is not None:
        x = binary("clamp", "max", x, min)
    return cast(Array, x if max is None else binary("clamp", "min", x, max))


clip = clamp


@public
def where(
    condition: Array, input: Array | Number | None = None, other: Array | Number | None = None
) -> Array:
    """input where the condition (bool) holds, else other; all three broadcast, numbers too. The
    result has the promoted type. Where only the condition is given it is refused: the result's
    shape would depend on values. Spec: elementwise.15."""
    if input is None or other is None:
        raise NotCovered(
            "where: arguments 'input' and 'other': expected both: the shape of a result must not "
            "depend on values"
        )
    if t.type_of(condition, "condition") not in ("bool", "u8"):
        raise OperandError(
            "where: argument 'condition': expected elements of bool, got "
            f"{t.spelled(t.type_of(condition, 'condition'))}"
        )
    t.same_kind("where", condition=condition, input=input, other=other)
    e = t.result_type(input, other)
    a, b = (t.number(x, e, condition) if t.is_number(x) else t.cast(x, e) for x in (input, other))
    return cast(Array, t.cast(p.where(t.cast(condition, "bool"), a, b), e))


@public
def ne(input: Array, other: Array | Number) -> Array:
    """Where input is not other (NaN is not NaN), as bool. Spec: elementwise.7."""
    return cast(Array, p.logical_not(compared("ne", "equal", input, other)))


not_equal = ne


@public
def isnan(input: Array) -> Array:
    """Where input is NaN, as bool. Spec: elementwise.7."""
    e = t.type_of(input)
    return cast(Array, p.isnan(t.cast(input, "f64" if e == "f64" else "f32")))


@public
def isinf(input: Array) -> Array:
    """Where input is infinite, as bool. Spec: elementwise.7."""
    if t.type_of(input) == "f64":
        return cast(Array, compared("isinf", "equal", number("isinf", "abs", input), math.inf))
    return cast(Array, p.isinf(t.cast(input, "f32"), negative=1, positive=1))


@public
def isfinite(input: Array) -> Array:
    """Where input is neither infinite nor NaN, as bool. Spec: elementwise.7."""
    wide = "f64" if t.type_of(input) == "f64" else "f32"
    least = number("isfinite", "abs", t.cast(input, wide))
    return cast(Array, compared("isfinite", "less", least, math.inf))


@public
def logical_not(input: Array) -> Array:
    """Where input is zero, as bool. Spec: elementwise.15."""
    t.type_of(input)
    return cast(Array, p.logical_not(truth(input)))


def _logical(name: str, what: str) -> Binary:
    def how(_: str, op: str, a: Any, b: Any) -> Any:
        if t.is_number(a) and t.is_number(b):
            t.type_of(a)
        t.same_kind(name, input=a, other=b)
        return p.call(op, truth(a, b), truth(b, a))

    return _binary(name, what, "elementwise.15", name, how)


logical_and = _logical("logical_and", "Where both are not zero, as bool.")
logical_or = _logical("logical_or", "Where one is not zero, as bool.")
logical_xor = _logical("logical_xor", "Where exactly one is not zero, as bool.")


def _bits(name: str, what: str, op: str) -> Binary:
    def how(_: str, op: str, a: Any, b: Any) -> Any:
        x, y, e = operands(name, a, b)
        if e in t.FLOATS:
            raise OperandError(f"{name}: expected operands of integers or bool, got {t.spelled(e)}")
        if e == "bool":
            return p.call(op.replace("bitwise", "logical"), x, y)
        return t.cast(p.call(op, x, y), e)

    return _binary(name, what, "elementwise.16", op, how)


bitwise_and = _bits("bitwise_and", "The bits that both have.", "bitwise_and")
bitwise_or = _bits("bitwise_or", "The bits that one has.", "bitwise_or")
bitwise_xor = _bits("bitwise_xor", "The bits that exactly one has.", "bitwise_xor")


@public
def bitwise_not(input: Array) -> Array:
    """The other bits of integers; of bool what is false. Spec: elementwise.16."""
    e = t.type_of(input)
    if e in t.FLOATS:
        raise OperandError(
            f"bitwise_not: argument 'input': expected integers or bool, got {t.spelled(e)}"
        )
    if e == "bool":
        return cast(Array, p.logical_not(input))
    return cast(Array, t.cast(p.bitwise_not(t.cast(input, t.COMPUTED.get(e, e))), e))


@public
def lerp(input: Array, end: Array, weight: Array | Number) -> Array:
    """input + weight · (end - input), three operations, each rounded. Spec: elementwise.5."""
    step = binary("lerp", "sub", end, input)
    return cast(Array, binary("lerp", "add", input, binary("lerp", "mul", step, weight)))


def _alike(*given: Any) -> list[Any]:
    """Operands of one type, that of the result; where they all have it, as they are."""
    e = t.result_type(*given)
    return [t.cast(x, e) for x in given]


@public
def addcmul(input: Array, tensor1: Array, tensor2: Array, *, value: Number = 1) -> Array:
    """input + value · (tensor1 · tensor2), each operation rounded. Spec: elementwise.5."""
    x, a, b = _alike(input, tensor1, tensor2)
    return cast(Array, _scaled("addcmul", "add", x, binary("addcmul", "mul", a, b), value))


@public
def addcdiv(input: Array, tensor1: Array, tensor2: Array, *, value: Number = 1) -> Array:
    """input + value · (tensor1 / tensor2), each operation rounded. Spec: elementwise.5."""
    if not {t.type_of(x) for x in (tensor1, tensor2)} & t.FLOATS:
        raise OperandError("addcdiv: expected a divisor or dividend of a floating type")
    x, a, b = _alike(input, tensor1, tensor2)
    quotient = binary("addcdiv", "div", a, b, least="float")
    return cast(Array, _scaled("addcdiv", "add", x, quotient, value))


@public
def logaddexp(input: Array, other: Array) -> Array:
    """log(exp(input) + exp(other)) = max + log1p(exp(-|input - other|)). f32, bf16, f16, f64.
    Spec: elementwise.11, elementwise.12."""
    x, y, e = operands("logaddexp", input, other, least="float")
    top = p.max(x, y)
    # Equal infinities have no difference, and add nothing.
    gap = p.where(p.equal(x, y), t.beside(0, x), p.neg(p.abs(p.sub(x, y))))
    return cast(Array, t.cast(p.add(top, p.log1p(p.exp(gap))), e))


@public
def nan_to_num(
    input: Array, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """NaN and infinities replaced; by default infinities become the largest numbers of the type.
    Spec: elementwise.15."""
    e = t.type_of(input)
    if e not in t.FLOATS:
        return input
    top = t.LIMITS.get(e, 1.7976931348623157e308)
    wide = t.COMPUTED.get(e, e)
    x = t.cast(input, wide)
    constant = lambda v: t.number(v, wide, x)
    high, low = top if posinf is None else posinf, -top if neginf is None else neginf
    x = p.where(p.equal(x, constant(math.inf)), constant(high), x)
    x = p.where(p.equal(x, constant(-math.inf)), constant(low), x)
    return cast(Array, t.cast(p.where(p.isnan(x), constant(nan), x), e))


@public
def to(input: Array, dtype: DType) -> Array:
    """input with elements of another type, each rounded once. Spec: cast.1 to cast.6."""
    t.type_of(input)
    if dtype is None:
        raise ArgumentTypeError("to: argument 'dtype': expected a dtype, got None")
    return cast(Array, t.cast(input, t.named(dtype)))
