"""A Hugging Face folder: config.json and the tensors of its safetensors files."""

import hashlib
import json
import struct
from pathlib import Path

from arithmetic.library import LIBRARY, floats
from pages.packed import unpacked

DTYPES = {"F32": ("f32", 4), "BF16": ("bf16", 2), "F16": ("f16", 2)}


class Tensor:
    def __init__(self, name, dtype, shape, data):
        self.name, self.dtype, self.shape, self.data = name, dtype, shape, data
        self.sha256 = hashlib.sha256(data).hexdigest()

    def values(self):
        """formats.2: its elements as binary32."""
        n = len(self.data) // (4 if self.dtype == "f32" else 2)
        result = floats(n)
        if self.dtype == "f32":
            result[:] = struct.unpack(f"<{n}f", self.data)
        else:
            getattr(LIBRARY, f"law_widen_{self.dtype}")(self.data, n, result)
        return result


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            yield name, (entry["dtype"], entry["shape"], data[begin:end])


class Checkpoint:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.config = json.loads(self.bytes_of("config.json"))
        stored = {
            name: t
            for path in sorted(self.folder.glob("*.safetensors"))
            for name, t in read_safetensors(path)
            if not name.endswith(".rotary_emb.inv_freq")
        }
        if settings := self.config.get("quantization_config"):
            stored = unpacked(stored, settings)
        self.tensors = {
            name: Tensor(name, DTYPES[dtype][0], shape, data)
            for name, (dtype, shape, data) in stored.items()
        }

    def bytes_of(self, name):
        return (self.folder / name).read_bytes()
