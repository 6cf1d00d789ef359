"""What the functions of invar raise: each error is invar.BadInput or invar.NotCovered, and of the
kind that torch raises for the same mistake."""

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from invar._native import BadInput, NotCovered

__all__ = [
    "ArgumentTypeError",
    "BadInput",
    "DimensionError",
    "NotCovered",
    "OperandError",
    "public",
]

P = ParamSpec("P")
R = TypeVar("R")


class OperandError(BadInput, RuntimeError):
    """Shapes, element types, devices or values that do not fit (RuntimeError, as in torch)."""


class ArgumentTypeError(BadInput, TypeError):
    """An argument of another Python type."""


class DimensionError(BadInput, IndexError):
    """A dimension, or an index of an element, that is not there."""


UNDER_AUTOCAST = (
    "under torch.autocast, which would choose other element types: convert tensors and modules "
    "instead (model.to(torch.bfloat16)), or leave it (torch.autocast(device, enabled=False))"
)


def under_autocast() -> bool:
    """Whether torch.autocast holds in this thread, for any device."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "compiler"):  # not imported, or not yet
        return False
    if not torch.compiler.is_dynamo_compiling():
        globals()["under_autocast"] = torch._C._is_any_autocast_enabled  # from now on
    return bool(torch._C._is_any_autocast_enabled())


def _has_tensors(values: Iterable[Any]) -> bool:
    tensor = sys.modules["torch"].Tensor
    return any(
        _has_tensors(x) if isinstance(x, list | tuple) else isinstance(x, tensor) for x in values
    )


def public(function: Callable[P, R]) -> Callable[P, R]:
    """A function with torch's errors: what an operation refuses is raised as OperandError, messages
    begin with the function's name, and `out` is refused by name. So are tensors under
    torch.autocast, which torch's function of the name would convert."""
    name = function.__name__

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if under_autocast() and _has_tensors((*args, *kwargs.values())):
                raise NotCovered(UNDER_AUTOCAST)
            return function(*args, **kwargs)
        except (BadInput, NotCovered) as e:
            if hasattr(e, "function"):  # named by a function inside
                raise
            made = _of_torchs_kind(e, name)
        except TypeError:
            if "out" not in kwargs:
                raise
            if kwargs["out"] is None:
                rest: Any = {k: v for k, v in kwargs.items() if k != "out"}
                return function(*args, **rest)
            made = NotCovered(f"{name}: argument 'out': results are new arrays; expected None")
        made.function = name
        raise made from None

    return checked


def _of_torchs_kind(e: Any, name: str) -> Any:
    text = f"{name}: {str(e).removeprefix(f'{name}: ')}"
    if type(e) is not BadInput:
        return type(e)(text)
    return (DimensionError if e.out_of_bounds else OperandError)(text)
