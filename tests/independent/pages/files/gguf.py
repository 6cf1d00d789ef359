"""gguf.md and weights.11 to weights.15: a GGUF file of the architecture llama as a checkpoint."""

import math
import struct
from pathlib import Path

from arithmetic.mutation import active
from pages.files.blocks import TYPES, unpacked
from pages.files.gguf_config import config_of
from pages.files.gguf_text import spelled
from pages.files.gguf_tokenizer import files_of

# gguf.1: type -> its form for struct
SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
TEXT, LIST = 8, 9


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def one(self, form):
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        n = self.one("Q")
        self.at += n
        return self.data[self.at - n : self.at].decode()

    def value(self, kind):
        if kind == TEXT:
            return self.text()
        if kind == LIST:
            kind, count = self.one("I"), self.one("Q")
            return [self.value(kind) for _ in range(count)]
        return self.one(SCALARS[kind])

    def tensor(self):
        """name, shape, type, offset"""
        name = self.text()
        shape = [self.one("Q") for _ in range(self.one("I"))][::-1]
        return name, shape, self.one("I"), self.one("Q")


class File:
    """gguf.1"""

    def __init__(self, path):
        read = Reader(path.read_bytes())
        assert read.data[:4] == b"GGUF"
        read.at = 4
        _, tensors, pairs = read.one("I"), read.one("Q"), read.one("Q")
        self.keys = {}
        for _ in range(pairs):
            name = read.text()
            self.keys[name] = read.value(read.one("I"))
        places = [read.tensor() for _ in range(tensors)]
        self.header = read.data[: read.at]
        alignment = self.keys.get("general.alignment", 32)
        data = -(-read.at // alignment) * alignment
        self.tensors = {}
        for name, shape, kind, offset in places:
            _, _, numbers, size, _, _ = TYPES[kind]
            begin = data + offset
            end = begin + math.prod(shape) // numbers * size
            self.tensors[name] = shape, kind, read.data[begin:end]


NAMES = {  # weights.13
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}  # fmt: skip


def name_of(name):
    """weights.13: the name that transformers has."""
    *layer, part, ending = name.split(".")
    where = f"model.layers.{layer[1]}." if layer else ""
    return f"{where}{NAMES[part]}.{ending}"


def in_halves(raw, rows, heads):
    """weights.14: rows in the order that a rotation of halves takes."""
    one, d = len(raw) // rows, rows // heads
    out = b""
    for row in range(rows):
        h, j = divmod(row, d)
        at = h * d + 2 * (j % (d // 2)) + j // (d // 2)
        out += raw[at * one : at * one + one]
    return out


class GgufCheckpoint:
    """What a Checkpoint has, of one file."""

    def __init__(self, path):
        self.path, file = Path(path), File(Path(path))
        self.name = self.path.name
        self.config = config_of(file, [self.name])
        text = spelled(self.config) + "\n"
        self.texts = {"config.json": text.encode(), **files_of(file.keys)}
        heads = {
            "attn_q": self.config["num_attention_heads"],
            "attn_k": self.config["num_key_value_heads"],
        }
        self.stored = {}
        for name, (shape, kind, data) in file.tensors.items():
            if name == "rope_freqs.weight":
                continue
            dtype, raw = unpacked(kind, data)
            part = name.split(".")[-2]
            if part in heads and not active("rows_stay_in_pairs"):
                raw = in_halves(raw, shape[0], heads[part])
            self.stored[name_of(name)] = dtype, shape, raw

    def has(self, name):
        return name in self.texts

    def bytes_of(self, name):
        return self.texts[name]

    def further_templates(self):
        return {}
