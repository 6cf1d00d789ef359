"""The reproducible operations by the names of spec/opset.toml, on NumPy arrays or torch tensors (on
the host or on a CUDA GPU). invar.ops has functions with the names and defaults of torch; they are
made of these.

`primitives.NAME(x, w, axis=-1)`: operands come first, in the order of the operation's specification
(spec/ops/ROOM.md); its attributes are keywords. Where the type of the result does not follow
from the operands, `shape` and `dtype` ("f32", ...) say it. The result is a new array of the
operands' library, on their device, and the same bytes wherever it is computed. Tensors that require
a gradient get one by the operation's rule (invar.autograd)."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from invar import _native, arrays, generation

__all__ = ["call", "group", *_native.operations()]

_at_once = _native.call
_REMEMBERED = 4096  # types of results that are remembered


@functools.lru_cache(_REMEMBERED)
def infer(op, attributes, operands, wanted):
    """(element type, shape) of the result; attributes and operands as `Call` freezes them."""
    return _native.infer(
        op,
        {name: list(v) if isinstance(v, tuple) else v for name, v in attributes},
        list(operands),
        wanted,
    )


class Numpy:
    """The library of the operands, if it is NumPy."""

    @staticmethod
    def of(x, where):
        return arrays.array(np.asarray(arrays.unmasked(x, where)), where)

    @staticmethod
    def type_of(x):
        return arrays.name_of(x.dtype, "an operand"), tuple(x.shape)

    @staticmethod
    def empty(shape, dtype, like):
        return np.empty(shape, arrays.numpy_type(dtype, "the result"))


class Call:
    """One call without its operands: the operation, its attributes, the result's type where it
    does not follow, and a forced instruction set."""

    __slots__ = ("op", "attributes", "shape", "dtype", "isa", "_frozen", "_operation", "native")

    def __init__(self, op, attributes, shape=None, dtype=None, isa=""):
        self.op, self.shape, self.dtype, self.isa = op, shape, dtype, isa
        self.attributes = {
            name: int(v) if isinstance(v, bool | np.integer) else v
            for name, v in attributes.items()
        }
        self._frozen = self._operation = None
        self.native = None  # the native operation, where calls with equal keywords share this one

    def run(self, operands, library):
        """Computes the result; knows of no gradients. On tensors of torch on a GPU it is queued on
        the current stream."""
        if self._operation is not None and library is not Numpy:
            return self._operation.run(tuple(operands))
        if library is not Numpy and _native.has_exchange_api():
            self._operation = self._prepared()
            return self._operation.run(tuple(operands))
        return self._of_rank(operands)._run_and_wait(operands, library)

    def _of_rank(self, operands):
        """The call with its axis counted from the front."""
        axis = self.attributes.get("axis")
        if not operands or not isinstance(axis, int) or axis >= 0:
            return self
        attributes = {**self.attributes, "axis": axis + np.ndim(operands[0])}
        return Call(self.op, attributes, self.shape, self.dtype, self.isa)

    def _prepared(self):
        """The native operation; equal calls share one."""
        shape = None if self.shape is None else tuple(self.shape)
        given = {**self.attributes, "isa": self.isa, "dtype": self.dtype, "shape": shape}
        made = _native.prepared(self.op, given)
        if made is None:
            made = _native.Operation(self.op, self.attributes, self.isa, self.dtype, shape)
        return made

    def _run_and_wait(self, operands, library):
        """For arrays of NumPy, and of a torch that cannot hand its tensors to others in C."""
        operands = [library.of(x, f"{self.op}: operand {i}") for i, x in enumerate(operands)]
        dtype, shape = self.type_of(tuple(library.type_of(x) for x in operands))
        result = library.empty(shape, dtype, operands[0] if operands else None)
        if arrays.is_tensor(result) and result.is_cuda:
            arrays.torch().cuda.current_stream(
                result.device
            ).synchronize()  # the operation has a queue of its own
        _native.run_operation(
            self.op,
            self.attributes,
            [arrays.handed(x) for x in operands],
            arrays.handed(result),
            self.isa,
        )
        return result

    def type_of(self, operands):
        """(element type, shape) of the result for operands of these types."""
        wanted = None
        if self.shape is not None or self.dtype is not None:
            if (self.shape is None or self.dtype is None) and not operands:
                raise _native.BadInput(f"{self.op}: without operands, give shape and dtype")
            shape = operands[0][1] if self.shape is None else self.shape
            wanted = (self.dtype or operands[0][0], tuple(shape))
        if self._frozen is None:
            self._frozen = tuple(
                sorted(
                    (n, tuple(v) if isinstance(v, list) else v) for n, v in self.attributes.items()
                )
            )
        return infer(self.op, self._frozen, operands, wanted)


def _compiling():
    """Whether torch's compiler follows this call (or torch is not imported)."""
    if (torch := arrays.torch()) is None or torch.compiler.is_dynamo_compiling():
        return True
    globals()["_compiling"] = torch.compiler.is_dynamo_compiling  # from now on
    return False


def _followed():
    """Whether torch's compiler or torch.jit.trace follows this call: it is to see operators."""
    return _compiling() or _tracing() is not None


def _tracing():
    """What torch.jit.trace has open in this thread, or None."""
    globals()["_tracing"] = arrays.torch()._C._get_tracing_state  # from now on
    return _tracing()


def _counted(value):
    """Sizes are numbers: under torch.jit.trace those of a tensor are tensors."""
    if isinstance(value, list | tuple):
        return [_counted(v) for v in value]
    return int(value) if arrays.is_tensor(value) else value


def _made(op, given):
    given = dict(given)
    return Call(op, given, given.pop("shape", None), given.pop("dtype", None), given.pop("isa", ""))


_calls = {}  # by the native operation


def _call_of(op, given):
    """The Call of these keywords; equal ones share it."""
    operation = _native.prepared(op, given)
    if (made := _calls.get(operation)) is not None:
        return made
    made = _made(op, given)
    if operation is not None:
        made._operation = made.native = operation
        if len(_calls) >= _REMEMBERED:
            _calls.clear()
        _calls[operation] = made
    return made


def call(op: str, *operands: Any, **given: Any) -> Any:
    """Operation `op` on `operands`. Keywords: its attributes; `shape` and `dtype` of the result
    where they do not follow; `isa` forces an instruction set of the host."""
    if not _followed():
        result = _at_once(op, operands, given)  # plain tensors that need no gradient
        if result is not NotImplemented:
            return result
    return _otherwise(op, operands, given)


def group(*calls: tuple[str, tuple[Any, ...], dict[str, Any]]) -> list[Any]:
    """The results of several calls (operation, operands, keywords), none of which depends on
    another. On a GPU some groups have kernels for all, which read what the calls share once (the
    gradients of a normalization); the bits are those of single calls."""
    if len(calls) > 1 and not _followed():
        results = _native.call_group(calls)
        if results is not NotImplemented:
            return results
    return [call(op, *operands, **given) for op, operands, given in calls]


def _otherwise(op, operands, given):
    compiling = _compiling()
    if not compiling and _tracing() is not None:
        given = {name: _counted(value) for name, value in given.items()}
    made = _made(op, given) if compiling else _call_of(op, given)
    for x in operands:
        if arrays.is_tensor(x):
            # A graph has no guard on `_apply`, which a call while it is made would set.
            return (load_gradients() if compiling else _apply or _gradients())(made, operands)
    return made.run(operands, Numpy)


_apply = None
load_gradients: Any = None  # gives autograd.apply; the package sets it


def _gradients():
    """autograd.apply, from the first call on: only imported where torch is."""
    global _apply
    _apply = load_gradients()
    return _apply


def _function(op: str) -> Callable[..., Any]:
    """call() of one operation, written out because its overhead counts."""

    def function(*operands: Any, **given: Any) -> Any:
        if not _followed():
            result = _at_once(op, operands, given)
            if result is not NotImplemented:
                return result
        return _otherwise(op, operands, given)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"The operation {op} (spec/opset.toml)."
    return function


def set_threads(threads: int) -> None:
    """How many threads of the host single operations (invar.ops, primitives, bitexact) use; 0: one
    per core. No bit depends on it."""
    _native.set_threads(generation.whole("threads", threads, 0, 1024))


def set_isa(isa: str = "") -> None:
    """Forces an instruction set of the host for single operations; "": the best here. No bit
    depends on it."""
    _native.set_isa(generation.text_of("isa", isa))


def synchronize() -> None:
    """Waits for all work on the current CUDA device, and raises what calls on any GPU have met
    since the last call: an index that is out of bounds (BadInput). On a GPU such a call is queued,
    and the next call of an operation, or this one, reports it."""
    torch = arrays.torch()
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    _native.raise_faults()


def __getattr__(op: str) -> Any:
    if op in _native.operations():
        return globals().setdefault(op, _function(op))
    raise AttributeError(f"invar.primitives has no operation {op!r} (spec/opset.toml has all)")


def __dir__() -> list[str]:
    return __all__
