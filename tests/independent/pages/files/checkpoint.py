"""A checkpoint: config.json, the files of its tokenizer, and tensors."""

import hashlib
import json
import struct
from pathlib import Path

from arithmetic.library import LIBRARY, floats
from pages.files.adapter import Adapter
from pages.files.gguf import GgufCheckpoint
from pages.files.packed import unpacked
from pages.files.safetensors import read_safetensors

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


class Checkpoint:
    """A folder of transformers."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.name = self.folder.name
        self.config = json.loads(self.bytes_of("config.json"))
        self.stored = {
            name: t
            for path in sorted(self.folder.glob("*.safetensors"))
            for name, t in read_safetensors(path)
            if not name.endswith(".rotary_emb.inv_freq")
        }
        if settings := self.config.get("quantization_config"):
            self.stored = unpacked(self.stored, settings)

    def has(self, name):
        return (self.folder / name).exists()

    def bytes_of(self, name):
        return (self.folder / name).read_bytes()

    def further_templates(self):
        """receipt.19"""
        paths = self.folder.glob("additional_chat_templates/*.jinja")
        return {path.stem: path.read_bytes().decode() for path in paths}


def opened(path, adapter=None):
    """The checkpoint of a folder or of a GGUF file, with its `tensors`, those of an adapter among
    them."""
    checkpoint = GgufCheckpoint(path) if Path(path).is_file() else Checkpoint(path)
    checkpoint.adapter = adapter and Adapter(adapter)
    if checkpoint.adapter:
        checkpoint.stored |= checkpoint.adapter.stored
    checkpoint.tensors = {
        name: Tensor(name, DTYPES[dtype][0], shape, data)
        for name, (dtype, shape, data) in checkpoint.stored.items()
    }
    return checkpoint
