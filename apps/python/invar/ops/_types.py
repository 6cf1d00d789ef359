"""Element types by the names of the specification ("f32", ...): those of arrays, torch's rules of
promotion, conversion, and Python's numbers as operands."""

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from invar import arrays
from invar import primitives as p
from invar.arrays import TORCH
from invar.errors import ArgumentTypeError, NotCovered, OperandError

if TYPE_CHECKING:
    import torch

    AnyArray: TypeAlias = np.ndarray[Any, Any] | torch.Tensor
    DType: TypeAlias = torch.dtype | np.dtype[Any] | type[Any] | str
else:
    AnyArray = DType = Any
# Operands and result of a call are arrays of one library.
Array = TypeVar("Array", bound="AnyArray")
Number: TypeAlias = bool | int | float

FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
UNSIGNED = frozenset({"u16", "u32", "u64"})
COMPUTED = {"f16": "f32", "bf16": "f32", "i16": "i32", "u16": "i32", "u32": "i64"}
LIMITS = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38}
EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52}
WIDTH = {
    "bool": 1,
    "i8": 8,
    "u8": 8,
    "i16": 16,
    "u16": 16,
    "i32": 32,
    "u32": 32,
    "i64": 64,
    "u64": 64,
}


class _Names(dict[Any, str]):
    """Names by torch.dtype or numpy.dtype."""

    def __missing__(self, dtype: Any) -> str:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(dtype, torch.dtype):
            for name, text in TORCH.items():
                self[getattr(torch, text.removeprefix("torch."))] = name
            if dtype in self:
                return self[dtype]
            raise NotCovered(f"elements of {dtype}; covered are {', '.join(TORCH.values())}")
        if isinstance(dtype, np.dtype):
            self[dtype] = arrays.name_of(dtype.newbyteorder("="), "elements")
            return self[dtype]
        raise ArgumentTypeError(f"argument 'dtype': expected a dtype, got {dtype!r}")


NAMES = _Names()


def type_of(x: Any, argument: str = "input") -> str:
    """The name of the element type of an array; anything else is refused."""
    try:
        return NAMES[x.dtype]
    except AttributeError:
        raise ArgumentTypeError(
            f"argument '{argument}': expected torch.Tensor or numpy.ndarray, got {type(x).__name__}"
        ) from None


def are_f32(*given: Any) -> bool:
    """Whether all are arrays of f32 of one library: the common case, which needs no promotion."""
    dtype = getattr(given[0], "dtype", None)
    if dtype is None or NAMES[dtype] != "f32":
        return False
    for x in given[1:]:
        if getattr(x, "dtype", None) != dtype:
            return False
    return True


def named(dtype: Any) -> str:
    """The name of an argument `dtype`: torch's or NumPy's."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return NAMES[dtype]
    try:
        return NAMES[np.dtype(dtype)]
    except TypeError:
        raise ArgumentTypeError(
            f"argument 'dtype': expected torch.dtype or numpy.dtype, got {dtype!r}"
        ) from None


def spelled(name: str) -> str:
    """As messages name an element type."""
    return TORCH[name].removeprefix("torch.")


def dtype_like(name: str, like: Any) -> Any:
    """The element type in the library of `like`."""
    if isinstance(like, np.ndarray):
        return arrays.numpy_type(name, "the result")
    return getattr(sys.modules["torch"], TORCH[name].removeprefix("torch."))


def default_float() -> str:
    """What integers become where a function is one of real numbers."""
    torch = sys.modules.get("torch")
    return "f32" if torch is None else NAMES[torch.get_default_dtype()]


def cast(x: Any, name: str) -> Any:
    """x with elements of this type (cast.1 to cast.6)."""
    return x if NAMES[x.dtype] == name else p.cast(x, dtype=name)


@functools.cache
def promote(a: str, b: str) -> str:
    """The type of a result of two types, as torch.promote_types has it."""
    if a == b or b == "bool" and a not in UNSIGNED:
        return a
    if a == "bool" and b not in UNSIGNED:
        return b
    if a in FLOATS or b in FLOATS:
        if a not in FLOATS or b not in FLOATS:
            return a if a in FLOATS else b
        return "f64" if "f64" in (a, b) else "f32"
    if a in UNSIGNED or b in UNSIGNED:
        raise NotCovered(f"{spelled(a)} and {spelled(b)} have no common type, as in torch")
    wider, other = (a, b) if WIDTH[a] >= WIDTH[b] else (b, a)
    return "i16" if {wider, other} == {"u8", "i8"} else wider


def category(name: str) -> int:
    return 0 if name == "bool" else 2 if name in FLOATS else 1


def number_type(x: Any, argument: str) -> str:
    """The type that a number has beside arrays of lower category."""
    if isinstance(x, bool):
        return "bool"
    if isinstance(x, int | np.integer):
        return "i64"
    if isinstance(x, float | np.floating):
        return default_float()
    return type_of(x, argument)  # refuses it


def is_number(x: Any) -> bool:
    return isinstance(x, bool | int | float | np.generic)


def result_type(*operands: Any) -> str:
    """torch.result_type: arrays with dimensions decide, then those without, then numbers; a lower
    one counts where its category (truth value, integer, real) is higher."""
    ranks: list[str | None] = [None, None, None]
    for x in operands:
        rank = 2 if is_number(x) else 1 if x.ndim == 0 else 0
        name = number_type(x, "other") if rank == 2 else type_of(x)
        old = ranks[rank]
        ranks[rank] = name if old is None else promote(old, name)
    found, *rest = (name for name in ranks if name is not None)
    for name in rest:
        if category(name) > category(found):
            found = promote(found, name)
    return found


def number(value: Any, name: str, like: Any) -> Any:
    """An array without dimensions, of the library and on the device of `like`. A real number is
    rounded once to the type, to infinity beyond its range."""
    if name in FLOATS:
        value = float(value)
        if name == "f32" and abs(value) > LIMITS["f32"]:
            with np.errstate(over="ignore"):
                value = float(np.float32(value))
    elif name != "bool" and not -(2 ** (WIDTH[name] - 1)) <= value < 2 ** WIDTH[name]:
        raise OperandError(f"the number {value} is not one of {spelled(name)}")
    if isinstance(like, np.ndarray):
        return np.array(value, arrays.numpy_type(name, "a number"))
    torch = sys.modules["torch"]
    return torch.full((), value, dtype=dtype_like(name, like), device=like.device)


def constant(value: Any, name: str, like: Any) -> Any:
    """number() for operands that only this package sees: the same one serves every call."""
    if isinstance(like, np.ndarray):
        return number(value, name, like)
    from invar.autograd.rules import constant as shared

    return shared(like, value, dtype_like(name, like))


def same_kind(name: str, **given: Any) -> None:
    """Arguments that are arrays must be of one library and on one device. NumPy's arrays have a
    device, too, which equals none of torch's."""
    first = ""
    place: Any = None
    for argument, x in given.items():
        if x is None or is_number(x):
            continue
        type_of(x, argument)
        if place is None:
            first, place = argument, x.device
        elif x.device != place:
            raise OperandError(
                f"{name}: argument '{argument}': expected an array on {_place(place)} as '{first}' "
                f"is, got one on {_place(x.device)}"
            )


def _place(device: Any) -> str:
    return "NumPy's host" if device == "cpu" else f"torch's {device}"


def real(name: str, x: Any, argument: str = "input") -> str:
    """The type of a real operand; others are refused."""
    t = type_of(x, argument)
    if t not in FLOATS:
        raise NotCovered(
            f"{name}: argument '{argument}': expected elements of a floating type, got {spelled(t)}"
        )
    return t


def narrow_real(name: str, x: Any, argument: str = "input") -> str:
    """The type of an operand of what is computed in f32; f64 is not covered there."""
    t = real(name, x, argument)
    if t == "f64":
        raise NotCovered(
            f"{name}: argument '{argument}': elements of float64; covered are float32, bfloat16 and float16"
        )
    return t


def wide(name: str, x: Any, argument: str = "input") -> Any:
    """A real operand in the type that it is computed in: f32, or f64."""
    e = real(name, x, argument)
    return cast(x, COMPUTED.get(e, e))


def beside(value: Any, x: Any) -> Any:
    """A number of the type of x."""
    return number(value, NAMES[x.dtype], x)


def f32(name: str, x: Any, argument: str = "input") -> Any:
    """A real operand as f32."""
    return x if narrow_real(name, x, argument) == "f32" else p.cast(x, dtype="f32")
