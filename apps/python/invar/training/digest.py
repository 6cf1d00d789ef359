"""Digests of named tensors: a Merkle root with a leaf for each (spec/training.md training.8), and
files of them."""

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from invar import _native
from invar.modules.emitted import TYPES

_NAMES = {dtype: name for name, dtype in TYPES.items()}
_PYTHON = {bool: ("bool", torch.bool), int: ("i64", torch.int64), float: ("f64", torch.float64)}
# How safetensors names the types of elements.
_FILE = {"bool": "BOOL", "bf16": "BF16", "f16": "F16", "f32": "F32", "f64": "F64"} | {
    name: name.upper() for name in _NAMES.values() if name[0] in "iu"
}


def compact(value):
    """JSON without white space, members ascending (training.9)."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def as_tensor(name, value):
    """A tensor on the host; Python's numbers become tensors without dimensions."""
    if isinstance(value, torch.Tensor):
        if value.dtype not in _NAMES:
            raise _native.NotCovered(f"{name}: elements of {value.dtype}")
        return value.detach().cpu().contiguous()
    if type(value) not in _PYTHON:
        raise _native.BadInput(f"{name}: {type(value).__name__} is neither a tensor nor a number")
    return torch.tensor(value, dtype=_PYTHON[type(value)][1])


def bytes_of(tensor):
    """The elements of a tensor on the host, little-endian, without a copy."""
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())


def described(name, value):
    """name, dtype, shape and SHA-256 of a tensor: what its leaf is made of."""
    tensor = as_tensor(name, value)
    return {
        "name": name,
        "dtype": _NAMES[tensor.dtype],
        "shape": list(tensor.shape),
        "sha256": hashlib.sha256(bytes_of(tensor)).hexdigest(),
    }


def leaf(entry):
    """The leaf of a described tensor, as bytes."""
    return hashlib.sha256(compact(entry)).digest()


class Digest:
    """The digest of named tensors: .root in hexadecimal, .entries (described tensors, ascending by
    name), .leaves in hexadecimal."""

    def __init__(self, tensors):
        names = sorted(tensors, key=str.encode)
        with ThreadPoolExecutor(4) as pool:
            self.entries = list(pool.map(lambda name: described(name, tensors[name]), names))
        leaves = [leaf(entry) for entry in self.entries]
        self.leaves = [d.hex() for d in leaves]
        self.root = _native.merkle_root(leaves).hex()


def state_digest(tensors: Mapping[str, Any] | torch.nn.Module) -> str:
    """The digest of named tensors, 64 hexadecimal digits. tensors: a dict from names to tensors and
    numbers, or a torch.nn.Module (its state_dict())."""
    if isinstance(tensors, torch.nn.Module):
        tensors = tensors.state_dict()
    return Digest(dict(tensors)).root


def save(path: str | os.PathLike[str], tensors: Mapping[str, Any]) -> None:
    """Writes named tensors and numbers as a safetensors file."""
    header, parts, at = {}, [], 0
    numbers = [name for name, value in tensors.items() if not isinstance(value, torch.Tensor)]
    if numbers:
        header["__metadata__"] = {"numbers": json.dumps(sorted(numbers))}
    for name in sorted(tensors, key=str.encode):
        tensor = as_tensor(name, tensors[name])
        data = bytes_of(tensor)
        header[name] = {
            "dtype": _FILE[_NAMES[tensor.dtype]],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + len(data)],
        }
        parts.append(data)
        at += len(data)
    text = compact(header)
    text += b" " * (-len(text) % 8)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    with open(partial, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for data in parts:
            file.write(data)
    partial.replace(path)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The named tensors and numbers of a file that save() wrote. Nothing in it is executed."""
    data = Path(path).read_bytes()
    try:
        (size,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + size])
        numbers = json.loads(header.pop("__metadata__", {}).get("numbers", "[]"))
        types = {file: TYPES[name] for name, file in _FILE.items()}
        found = {}
        for name, entry in header.items():
            begin, end = (8 + size + at for at in entry["data_offsets"])
            dtype, shape = types[entry["dtype"]], entry["shape"]
            elements = torch.empty(shape, dtype=dtype)
            if end > len(data) or end - begin != elements.numel() * elements.element_size():
                raise ValueError(name)
            bytes_of(elements)[:] = data[begin:end]
            found[name] = elements.item() if name in numbers else elements
    except (struct.error, ArithmeticError, AttributeError, KeyError, TypeError, ValueError,
            RuntimeError) as e:  # fmt: skip
        raise _native.BadInput(
            f"{path}: no file of a state ({type(e).__name__}: {str(e)!a})"
        ) from None
    return found
