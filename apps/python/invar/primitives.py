"""The reproducible operations by the names of spec/opset.toml, on NumPy arrays or torch tensors (on
the host or on a CUDA GPU). invar.ops has functions with the names and defaults of torch; they are
made of these.

`primitives.NAME(x, w, axis=-1)`: operands come first, in the order of the operation's specification
(src/ops/ROOM/spec.md); its attributes are keywords. Where the type of the result does not follow
from the operands, `shape` and `dtype` ("f32", ...) say it. The result is a new array of the
operands' library, on their device, and the same bytes wherever it is computed. Tensors that require
a gradient get one by the operation's rule (invar.autograd)."""

import functools

import numpy as np

from invar import _native, arrays

__all__ = ["call", *_native.operations()]

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
        return arrays.array(np.asarray(x), where)

    @staticmethod
    def type_of(x):
        return arrays.name_of(x.dtype, "an operand"), tuple(x.shape)

    @staticmethod
    def empty(shape, dtype, like):
        return np.empty(shape, arrays.numpy_type(dtype, "the result"))


class Call:
    """One call without its operands: the operation, its attributes, the result's type where it
    does not follow, and a forced instruction set."""

    __slots__ = ("op", "attributes", "shape", "dtype", "isa", "_frozen")

    def __init__(self, op, attributes, shape=None, dtype=None, isa=""):
        self.op, self.shape, self.dtype, self.isa = op, shape, dtype, isa
        self.attributes = {
            name: int(v) if isinstance(v, bool | np.integer) else v
            for name, v in attributes.items()
        }
        self._frozen = None

    def run(self, operands, library):
        """Computes the result; knows of no gradients."""
        operands = [library.of(x, f"{self.op}: operand {i}") for i, x in enumerate(operands)]
        if operands and isinstance(axis := self.attributes.get("axis"), int) and axis < 0:
            self.attributes["axis"] = axis + operands[0].ndim
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


def call(op, *operands, shape=None, dtype=None, isa="", **attributes):
    """Operation `op` on `operands`; `isa` forces an instruction set of the host."""
    made = Call(op, attributes, shape, dtype, isa)
    if any(arrays.is_tensor(x) for x in operands):
        from invar import autograd

        return autograd.apply(made, operands)
    return made.run(operands, Numpy)


def __getattr__(op):
    if op in _native.operations():
        function = functools.partial(call, op)
        function.__doc__ = f"The operation {op} (spec/opset.toml)."
        globals()[op] = function
        return function
    raise AttributeError(f"invar.primitives has no operation {op!r} (spec/opset.toml has all)")


def __dir__():
    return __all__
