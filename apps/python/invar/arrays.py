"""Arrays of NumPy and tensors of torch (or of any library with DLPack), handed to the native module without copies."""

import sys

import numpy as np

from invar import _native

# Elements as plans name them -> as NumPy does; bf16 has no type there.
NUMPY = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i64": np.int64, "i32": np.int32, "i16": np.int16,
         "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "bool": np.bool_}
CUDA = 2  # kDLCUDA
NAMES = {np.dtype(t): name for name, t in NUMPY.items()}


def torch():
    """The module where somebody has imported it: a tensor of it can only come from there."""
    return sys.modules.get("torch")


def is_tensor(x):
    return torch() is not None and isinstance(x, torch().Tensor)


def on_host(x, where):
    """As an array that the native module reads in place where it can."""
    if is_tensor(x):
        return x.detach().cpu().contiguous()
    if not isinstance(x, np.ndarray) and not hasattr(x, "__dlpack__"):
        x = np.asarray(x)
    if isinstance(x, np.ndarray):
        x = x.astype(x.dtype.newbyteorder("="), copy=False)
        if x.dtype not in NAMES:
            raise _native.NotCovered(f"{where}: elements of NumPy's {x.dtype}")
        x = np.require(x, requirements=["C", "A"])
    return x


def gpu_of(x):
    """The number of the CUDA device on which an array lies; None: it lies elsewhere."""
    if is_tensor(x):
        return x.get_device() if x.is_cuda else None
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack_device__"):
        return None
    kind, number = x.__dlpack_device__()
    return number if kind == CUDA else None


def on_gpu(x, where, number, stream):
    """As the native module reads it where it lies: its queue, `stream`, waits there for what x's library has under way."""
    if gpu_of(x) != number:
        raise _native.BadInput(f"{where}: it lies on cuda:{gpu_of(x)}, the program runs on {'the host' if number < 0 else f'cuda:{number}'}")
    return (x.detach().contiguous() if is_tensor(x) else x).__dlpack__(stream=stream)


def like(given):
    """Results of the native module -> arrays of the library that the inputs come from."""
    if any(is_tensor(x) for x in given):
        return torch().from_dlpack
    return np.from_dlpack
