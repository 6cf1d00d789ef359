"""with invar.reproducible(): torch code whose bits do not change with the machine, or a refusal
that names what does."""

import contextlib
import functools
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, resolve_name

from invar import _native
from invar.reproducibility import functions, gradients, optimizers
from invar.reproducibility.kernels_mode import Kernels, has_floats
from invar.reproducibility.refusal import Outside, refused

__all__ = ["Outside", "missing", "reproducible"]
missing = functions.missing

_NAMES = {"axis": "dim", "keepdims": "keepdim"}  # that torch takes for those of NumPy
_IDLE = ("_stacklevel", "inplace", "out")  # arguments that say nothing where a call is routed
_routes = functools.cache(functions.routes)


class Functions(TorchFunctionMode):
    """Sends functions and methods of torch to invar.ops; others run, and Kernels judges what they
    compute."""

    def __init__(self, kernels):
        super().__init__()
        self.kernels = kernels

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        route = _routes().get(function)
        place = functions.places().get(function)
        if place is not None and len(args) > place:  # as a keyword, as below
            args, kwargs = args[:place], {**kwargs, "inplace": args[place]}
        copied = place is not None and function not in functions.OWN_PLACE and kwargs.get("inplace")
        asked = asks_for_place(kwargs) and not copied
        if route is None or not has_floats(args, kwargs) or asked:
            return self.run(function, args, kwargs)
        name, counterpart, swapped = route
        if copied:
            counterpart = functools.partial(functions.in_place, counterpart)
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            raise refused(
                f"torch.{name}", "under torch.autocast: convert tensors and modules instead"
            )
        kwargs = {_NAMES.get(k, k): x for k, x in kwargs.items() if k not in _IDLE}
        if swapped:
            args = (args[1], args[0], *args[2:])
        try:
            found = counterpart(*args, **kwargs)
            return found if name in functions.ANY_LAYOUT else functions.laid(found, args)
        except _native.Error as e:
            if isinstance(e, Outside):
                raise
            raise refused(f"torch.{name}", str(e)) from e

    def run(self, function, args, kwargs):
        before = self.kernels.doing
        self.kernels.doing = resolve_name(function) or getattr(function, "__name__", None)
        try:
            again = gradients.ENGINE.get(function)
            if again is not None:  # what is computed again there goes to invar.ops, too
                return again(self, *args, **kwargs)
            return function(*args, **kwargs)
        finally:
            self.kernels.doing = before


def asks_for_place(kwargs):
    """Whether the result is to lie in a tensor that is there: such calls keep torch's bookkeeping,
    and their kernels go to Invar."""
    return bool(kwargs.get("inplace")) or kwargs.get("out") is not None


class reproducible(contextlib.ContextDecorator):
    """A context, or a decorator, under which torch computes the same bits on every machine:

        with invar.reproducible():
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()

    Functions and methods of torch go to invar.ops, with Invar's gradients. The arithmetic that they
    do not reach - of torch's own gradients, in place - is computed by Invar's primitives. torch's
    optimisers step as those of invar.optim; others are made of torch's kernels. Copies, views,
    comparisons and whole numbers stay torch's. Everything else raises invar.NotCovered, which is a
    NotImplementedError, too, and names the operation and your line.

    A gradient that comes together from several places is the sum of two f32 tensors after the
    other, in the order of torch's graph of gradients, which is the same in each run of a program on
    one device.

    Not seen: arithmetic of Python and NumPy, and threads that were started before."""

    def __init__(self) -> None:
        self._entered: list[contextlib.ExitStack] = []

    def __enter__(self) -> "reproducible":
        kernels = Kernels()
        with contextlib.ExitStack() as stack:
            # Attention that does not go to invar.ops is to be made of kernels that kernels.py has.
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(kernels)
            stack.enter_context(Functions(kernels))
            stack.enter_context(optimizers.routed())
            self._entered.append(stack.pop_all())
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._entered.pop().__exit__(*error)

    @staticmethod
    def is_active() -> bool:
        """Whether this thread is in such a context."""
        return any(isinstance(mode, Functions) for mode in _get_current_function_mode_stack())

    def _recreate_cm(self):
        return type(self)()
