"""The reproducible operations, one by one, on NumPy arrays or torch tensors (on the host or on a
CUDA GPU).

Every operation of spec/opset.toml is a function here: `ops.NAME(x, w, axis=-1)`. Operands come
first, in the order of the operation's specification (src/ops/ROOM/spec.md); its attributes are
keywords. Where the type of the result does not follow from the operands, `shape` and `dtype`
("f32", ...) say it. The result is a new array of the operands' library, on their device, and the
same bytes wherever it is computed."""

import functools

import numpy as np

from invar import _native, arrays

__all__ = ["call", *_native.operations()]

_REMEMBERED = 4096  # types of results that are remembered


@functools.lru_cache(_REMEMBERED)
def _type(op, attributes, operands, wanted):
    return _native.infer(
        op,
        {name: list(v) if isinstance(v, tuple) else v for name, v in attributes},
        list(operands),
        wanted,
    )


class _Numpy:
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


@functools.cache
def _torch():
    torch = arrays.torch()
    from invar.nn import TYPES as types

    names = {t: name for name, t in types.items()}

    class Torch:
        @staticmethod
        def of(x, where):
            return x.detach().contiguous()

        @staticmethod
        def type_of(x):
            if x.dtype not in names:
                raise _native.NotCovered(f"elements of {x.dtype}")
            return names[x.dtype], tuple(x.shape)

        @staticmethod
        def empty(shape, dtype, like):
            return torch.empty(shape, dtype=types[dtype], device=like.device)

    return Torch


def call(op, *operands, shape=None, dtype=None, isa="", **attributes):
    """Operation `op` on `operands`; `isa` forces an instruction set of the host."""
    library = _torch() if any(arrays.is_tensor(x) for x in operands) else _Numpy
    operands = [library.of(x, f"{op}: operand {i}") for i, x in enumerate(operands)]
    attributes = {
        name: int(v) if isinstance(v, bool | np.integer) else v for name, v in attributes.items()
    }
    if operands and isinstance(axis := attributes.get("axis"), int) and axis < 0:
        attributes["axis"] = axis + operands[0].ndim
    types = tuple(library.type_of(x) for x in operands)
    wanted = None
    if shape is not None or dtype is not None:
        if (shape is None or dtype is None) and not types:
            raise _native.BadInput(f"{op}: without operands, give shape and dtype")
        wanted = (dtype or types[0][0], tuple(types[0][1] if shape is None else shape))
    frozen = tuple(
        sorted((n, tuple(v) if isinstance(v, list) else v) for n, v in attributes.items())
    )
    dtype, shape = _type(op, frozen, types, wanted)
    result = library.empty(shape, dtype, operands[0] if operands else None)
    if arrays.is_tensor(result) and result.is_cuda:
        arrays.torch().cuda.current_stream(
            result.device
        ).synchronize()  # the operation has a queue of its own
    _native.run_operation(
        op, attributes, [arrays.handed(x) for x in operands], arrays.handed(result), isa
    )
    return result


def __getattr__(op):
    if op in _native.operations():
        function = functools.partial(call, op)
        function.__doc__ = f"The operation {op} (spec/opset.toml)."
        globals()[op] = function
        return function
    raise AttributeError(f"invar.ops has no operation {op!r} (spec/opset.toml has all)")


def __dir__():
    return __all__
