"""Arrays of NumPy and tensors of torch (or of any library with DLPack), handed to the native module
without copies."""

import sys

import numpy as np

from invar import _native

# Elements as plans name them -> as NumPy does; bf16 has no type there but that of ml_dtypes.
NUMPY = {
    "f32": np.float32,
    "f16": np.float16,
    "f64": np.float64,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "u64": np.uint64,
    "u32": np.uint32,
    "u16": np.uint16,
    "u8": np.uint8,
    "bool": np.bool_,
}
# -> as torch does.
TORCH = {
    "f32": "torch.float32",
    "bf16": "torch.bfloat16",
    "f16": "torch.float16",
    "f64": "torch.float64",
    "i64": "torch.int64",
    "i32": "torch.int32",
    "i16": "torch.int16",
    "i8": "torch.int8",
    "u64": "torch.uint64",
    "u32": "torch.uint32",
    "u16": "torch.uint16",
    "u8": "torch.uint8",
    "bool": "torch.bool",
}
CUDA = 2  # kDLCUDA
NAMES = {np.dtype(t): name for name, t in NUMPY.items()}


def torch():
    """The module where somebody has imported it: a tensor of it can only come from there."""
    return sys.modules.get("torch")


def is_tensor(x):
    return torch() is not None and isinstance(x, torch().Tensor)


def numpy_type(name, where):
    """The type of elements in NumPy."""
    if name in NUMPY:
        return np.dtype(NUMPY[name])
    try:
        import ml_dtypes
    except ImportError:
        raise _native.NotCovered(
            f"{where}: NumPy has no elements of {name}: install ml_dtypes, or give torch tensors"
        ) from None
    return np.dtype(ml_dtypes.bfloat16)


def name_of(dtype, where):
    """How plans name elements of NumPy's."""
    if dtype in NAMES:
        return NAMES[dtype]
    ml_dtypes = sys.modules.get("ml_dtypes")  # an array of it can only come from there
    if ml_dtypes is not None and dtype == ml_dtypes.bfloat16:
        return "bf16"
    raise _native.NotCovered(
        f"{where}: elements of NumPy's {dtype}; covered are {' '.join(NUMPY)} and ml_dtypes.bfloat16"
    )


def array(x, where):
    """As an array of NumPy, or of a library with DLPack, whose elements lie as the native module
    reads them."""
    unmasked(x, where)
    if not isinstance(x, np.ndarray) and not hasattr(x, "__dlpack__"):
        x = np.asarray(x)
    if isinstance(x, np.ndarray):
        x = x.astype(x.dtype.newbyteorder("="), copy=False)
        name_of(x.dtype, where)
        x = np.require(x, requirements=["C", "A"])
    return x


def unmasked(x, where):
    """Refuses a masked array, whose elements alone are not what it means; else returns it."""
    if isinstance(x, np.ma.MaskedArray):
        raise _native.NotCovered(
            f"{where}: a masked array of NumPy: give x.filled(value), or x.data and the mask"
        )
    return x


def handed(x):
    """As the native module takes it: NumPy hands on no types but its own."""
    if isinstance(x, np.ndarray) and x.dtype not in NAMES:
        return _native.retyped(x.view(np.uint16), "bf16")
    return x


def on_host(x, where):
    """As an array that the native module reads in place where it can."""
    return strided(x, where).cpu().contiguous() if is_tensor(x) else handed(array(x, where))


def strided(x, where):
    """A tensor of torch whose memory has its elements, without its gradient."""
    if str(x.layout) != "torch.strided" or x.is_meta or x.is_nested or x.is_quantized:
        kinds = {"meta": x.is_meta, "quantized": x.is_quantized, "nested": x.is_nested}
        kind = next(
            (k for k, is_so in kinds.items() if is_so), str(x.layout).removeprefix("torch.")
        )
        raise _native.NotCovered(
            f"{where}: a {kind} tensor, whose memory does not hold its elements; covered are strided "
            f"ones"
        )
    return x.detach().resolve_neg()  # a view may have its signs in a flag


def device_of(name):
    """A device by its name, or as torch has it."""
    return str(name) if (found := torch()) is not None and isinstance(name, found.device) else name


def gpu_of(x):
    """The number of the CUDA device on which an array lies; None: it lies elsewhere."""
    if is_tensor(x):
        return x.get_device() if x.is_cuda else None
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack_device__"):
        return None
    kind, number = x.__dlpack_device__()
    return number if kind == CUDA else None


def on_gpu(x, where, number, stream):
    """As the native module reads it where it lies: its queue, `stream`, waits there for what x's
    library has under way."""
    if gpu_of(x) != number:
        raise _native.BadInput(
            f"{where}: it lies on cuda:{gpu_of(x)}, the program runs on "
            f"{'the host' if number < 0 else f'cuda:{number}'}"
        )
    return (strided(x, where).contiguous() if is_tensor(x) else x).__dlpack__(stream=stream)


def like(given, wanted):
    """Results of the native module, by name, -> arrays of the library that the inputs come from.
    `wanted`: (name, element type) of all; asked before anything is computed."""
    if any(is_tensor(x) for x in given):
        return lambda found: {name: torch().from_dlpack(value) for name, value in found}
    types = {name: numpy_type(dtype, f"output '{name}'") for name, dtype in wanted}

    def arrays(name, value):
        foreign = types[name] not in NAMES
        return (
            np.from_dlpack(_native.retyped(value, "u16")).view(types[name])
            if foreign
            else np.from_dlpack(value)
        )

    return lambda found: {name: arrays(name, value) for name, value in found}
