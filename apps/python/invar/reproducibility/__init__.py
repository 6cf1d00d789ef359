"""with invar.reproducible(): torch code whose bits do not change with the machine, or a refusal
that names what does. invar.reproducible.enable(): the same for a whole process."""

import contextlib
import threading
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from invar import _native
from invar.autograd import modes
from invar.autograd.refusal import refused
from invar.errors import UNDER_AUTOCAST
from invar.reproducibility import active, carried, functions, gradients, settings, steps
from invar.reproducibility.kernels_mode import Kernels
from invar.reproducibility.operands import FLOATS, UNUSUAL, looked_at

__all__ = ["missing", "reproducible"]
missing = functions.missing

_NAMES = {"axis": "dim", "keepdims": "keepdim"}  # that torch takes for those of NumPy
_IDLE = ("_stacklevel", "inplace", "out")  # arguments that say nothing where a call is routed

_under_autocast = torch._C._is_any_autocast_enabled
_transforms = torch._C._are_functorch_transforms_active
_hooks_of_saved = torch._C._autograd._top_saved_tensors_default_hooks
_unjudged = torch._C._DisableTorchDispatch
_doing = modes.doing


@active.own
class Functions(TorchFunctionMode):
    """Sends functions and methods of torch to invar.ops; others run, and Kernels judges what they
    compute."""

    def __init__(self, kernels):
        super().__init__()
        self.kernels = kernels
        self.rows = functions.table()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        row = self.rows.get(function)
        if row is None:
            return self.run(function, args, kwargs or {})
        if row is functions.ASKED:
            return function(*args, **(kwargs or {}))
        seen = looked_at(args)
        if kwargs:
            seen |= looked_at(kwargs.values())
        ours = not seen & UNUSUAL and is_alone()
        if row is functions.MOVED or (row.whole and not seen & FLOATS):
            if not ours:
                return self.run(function, args, kwargs or {})
            with _unjudged():  # of tables whose kernels run as they are
                return function(*args, **(kwargs or {}))
        if not seen & FLOATS:
            return self.run(function, args, kwargs or {})
        return self.routed(function, row, args, kwargs or {}, ours)

    def routed(self, function, row, args, kwargs, ours):
        """A call with floating values of a function that invar.ops has."""
        counterpart = row.counterpart
        if row.place is not None and len(args) > row.place:  # as a keyword, as below
            args, kwargs = args[: row.place], {**kwargs, "inplace": args[row.place]}
        if kwargs:
            copied = row.copies_place and kwargs.get("inplace")
            if asks_for_place(kwargs) and not copied:
                return self.run(function, args, kwargs)
            if copied:
                counterpart = functions.in_place(counterpart)
            kwargs = {_NAMES.get(k, k): x for k, x in kwargs.items() if k not in _IDLE}
        if _under_autocast():
            raise refused(f"torch.{row.name}", UNDER_AUTOCAST)
        if row.swapped:
            args = (args[1], args[0], *args[2:])
        _doing[0] = row.name
        try:
            if ours and row.trusted:
                with _unjudged():
                    found = counterpart(*args, **kwargs)
            else:
                found = counterpart(*args, **kwargs)
            return found if row.name in functions.ANY_LAYOUT else functions.laid(found, args)
        except functions.Otherwise:
            return self.run(function, args, kwargs)
        except _native.Error as e:
            if hasattr(e, "named"):
                raise
            raise refused(f"torch.{row.name}", str(e)) from e
        finally:
            _doing[0] = None

    def run(self, function, args, kwargs):
        before = self.kernels.doing
        self.kernels.doing, self.kernels.autocast = function, _under_autocast()
        try:
            again = gradients.ENGINE.get(function)
            if again is not None:  # what is computed again there goes to invar.ops, too
                return again(self, *args, **kwargs)
            return function(*args, **kwargs)
        finally:
            self.kernels.doing = before


def is_alone():
    """Whether no mode, transform or hook beside ours has a part in a call, so that what is Invar's
    already need not be judged."""
    return modes.count() == 1 and not _transforms() and _hooks_of_saved(True) is None


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

    Threads and processes that start in the context compute so, too, and so does what is handed to
    the workers of concurrent.futures and multiprocessing.Pool there. enable() is for a whole
    process. As a decorator it is written with parentheses or without; each step of a generator or
    of an `async def` is in the context, and what else runs between the steps is not.

    A gradient that comes together from several places is the sum of two f32 tensors after the
    other, in the order of torch's graph of gradients, which is the same in each run of a program on
    one device.

    Raises invar.NotCovered where the program reaches what has no reproducible kernel.

    Not seen: arithmetic of Python and NumPy, threads that run already, and programs that are
    started as such (subprocess).

    Example:
        >>> with invar.reproducible():
        ...     torch.ones(2, 3).sum().item()
        6.0
    """

    def __new__(cls, function: Any = None) -> Any:
        if function is None:
            return super().__new__(cls)
        if not callable(function):
            raise TypeError(f"reproducible: {type(function).__name__} is no function to decorate")
        return cls()(function)

    def __call__(self, function: Any) -> Any:
        return steps.decorated(function, reproducible) or super().__call__(function)

    def __enter__(self) -> "reproducible":
        if not self.is_active():
            _thread.modes, _thread.contexts = _enter(), 0
        _thread.contexts += 1
        return self

    def __exit__(self, *error: Any) -> bool | None:
        _thread.contexts = max(_thread.contexts - 1, 0)
        if _thread.contexts == 0 and _thread.modes is not None:  # coroutines leave in any order
            modes, _thread.modes = _thread.modes, None
            for mode in modes:
                mode.__exit__(*error)
            settings.release()
        return None

    @staticmethod
    def is_active() -> bool:
        """Whether this thread is in such a context, or enable() holds for it.

        Example:
            >>> invar.reproducible.is_active()
            False
        """
        return active.depth() > 0

    @staticmethod
    def enable() -> None:
        """The rest of this thread, and every thread and process that it starts from now on (those
        that they start, too), computes as in the context: one line at the top of a script. Workers
        of a DataLoader, of concurrent.futures and of multiprocessing inherit it, by fork, spawn and
        forkserver. Once more changes nothing.

        Warns (RuntimeWarning) of threads that run already: it does not reach them.

        Example:
            >>> invar.reproducible.enable()  # doctest: +SKIP
        """
        if _thread.enabled:
            return
        _thread.enabled = True
        carried.warn_of_threads()
        _enter()

    def _recreate_cm(self):
        return type(self)()


class _Thread(threading.local):
    """How many contexts a thread is in, the modes that the first of them entered, and whether
    enable() was called there."""

    contexts, modes, enabled = 0, None, False


_thread = _Thread()


def _enter():
    kernels = Kernels()
    mode = Functions(kernels)
    carried.install(reproducible)
    settings.hold()
    kernels.__enter__()
    mode.__enter__()
    return mode, kernels
