"""python3 -m files.made_gguf FILE [pieces]: a made model in a GGUF file of the architecture llama,
with a matrix in each format of weights.1. Its tokenizer joins bytes by merges, or pieces by scores.
Equal names give equal bytes."""

import hashlib
import math
import struct
import sys
from pathlib import Path

from made_tokenizer import MERGES, NAMES

HIDDEN, INNER, HEADS, KV_HEADS, HEAD = 256, 96, 2, 1, 32
# Behind the made tokenizer's: one that ends an answer by its name, an added one, an unused one.
BYTES = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "llama-bpe",
    "tokenizer.ggml.tokens": [*NAMES, "<|im_end|>", "<added>", "[unused]"],
    "tokenizer.ggml.token_type": [3, 3] + [1] * (len(NAMES) - 2) + [3, 4, 5],
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.bos_token_id": 0,
    "tokenizer.ggml.eos_token_id": 1,
}
# Pieces of letters, longer ones with greater scores; "he" is unused, "<added>" is user-defined.
JOINED = "▁t he th in er an ▁a the ▁the ▁s es ▁o nd ▁i on ▁in ea ▁th seas ▁se as ▁seas".split()
PIECES = [
    ("<unk>", 2), ("<s>", 3), ("</s>", 3), *((f"<0x{b:02X}>", 6) for b in range(256)),
    *((c, 1) for c in "▁etaoinshrdlucmwfgypbvkTR:.,'"), ("<added>", 4),
    *((piece, 5 if piece == "he" else 1) for piece in JOINED),
]  # fmt: skip
SCORES = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": [piece for piece, _ in PIECES],
    "tokenizer.ggml.token_type": [kind for _, kind in PIECES],
    "tokenizer.ggml.scores": [
        -float(i * 7 % 11) if piece in JOINED else -100.0 for i, (piece, _) in enumerate(PIECES)
    ],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.unknown_token_id": 0,
    "tokenizer.ggml.add_eos_token": False,
}
TOKENIZERS = {"bytes": BYTES, "pieces": SCORES}
# format: GGUF type, numbers and bytes of a block, where its binary16 scales are
FORMATS = {
    "F32": (0, 1, 4, ()), "F16": (1, 1, 2, ()), "BF16": (30, 1, 2, ()),
    "Q8_0": (8, 32, 34, (0,)), "Q4_0": (2, 32, 18, (0,)), "Q5_0": (6, 32, 22, (0,)),
    "Q4_1": (3, 32, 20, (0, 2)), "Q5_1": (7, 32, 24, (0, 2)), "IQ4_NL": (20, 32, 18, (0,)),
    "MXFP4": (39, 32, 17, ()), "Q2_K": (10, 256, 84, (80, 82)), "Q4_K": (12, 256, 144, (0, 2)),
    "Q5_K": (13, 256, 176, (0, 2)), "Q3_K": (11, 256, 110, (108,)),
    "Q6_K": (14, 256, 210, (208,)), "IQ4_XS": (23, 256, 136, (0,)),
}  # fmt: skip
LARGEST = {  # of the integers that a scale is multiplied with
    "Q8_0": 128, "Q4_0": 8, "Q5_0": 16, "Q4_1": 15, "Q5_1": 31, "IQ4_NL": 127, "Q2_K": 45,
    "Q4_K": 945, "Q5_K": 1953, "Q3_K": 128, "Q6_K": 4096, "IQ4_XS": 4064,
}  # fmt: skip
MATRICES = [
    ("attn_q", HEADS * HEAD, HIDDEN, "Q4_K", "Q3_K"),
    ("attn_k", KV_HEADS * HEAD, HIDDEN, "Q6_K", "IQ4_XS"),
    ("attn_v", KV_HEADS * HEAD, HIDDEN, "IQ4_NL", "MXFP4"),
    ("attn_output", HIDDEN, HEADS * HEAD, "Q4_0", "Q4_1"),
    ("ffn_gate", INNER, HIDDEN, "Q5_K", "BF16"),
    ("ffn_up", INNER, HIDDEN, "Q2_K", "F16"),
    ("ffn_down", HIDDEN, INNER, "Q5_0", "Q5_1"),
]
THETA, FACTOR = 500000.0, 8.0


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def value_of(value):
    """A value with its type."""
    if isinstance(value, list):
        elements = [value_of(x) for x in value]
        kinds = {e[:4] for e in elements}
        assert len(kinds) == 1
        return struct.pack("<I", 9) + kinds.pop() + struct.pack("<Q", len(value)) + b"".join(
            e[4:] for e in elements
        )  # fmt: skip
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<Ii" if value < 0 else "<II", 5 if value < 0 else 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    return struct.pack("<I", 8) + text(value)


def blocks(name, kind, numbers):
    """Bytes that follow from the name; each scale makes numbers of at most about 2^-4."""
    _, block, size, scales = FORMATS[kind]
    raw = bytearray(hashlib.shake_128(name.encode()).digest(numbers // block * size))
    if kind in ("F32", "F16", "BF16"):  # of both signs, [2^-5, 2^-4)
        top = {"F32": 0x3D, "BF16": 0x3D, "F16": 0x28}[kind]
        raw[size - 1 :: size] = bytes((b & 0x80) | top for b in raw[size - 1 :: size])
    for at in scales:
        for begin in range(at, len(raw), size):
            low, high = raw[begin], raw[begin + 1]
            d = (1 + low / 256) * 2.0**-5 / LARGEST[kind] * (-1 if high & 1 else 1)
            raw[begin : begin + 2] = struct.pack("<e", d)
    if kind == "MXFP4":
        raw[0::size] = bytes(119 + b % 4 for b in raw[0::size])
    return bytes(raw)


def norm(name):
    raw = bytearray(blocks(name, "F32", HIDDEN))
    raw[3::4] = bytes([0x3F] * HIDDEN)
    return "F32", [HIDDEN], bytes(raw)


def factors():
    """rope_freqs: what llama3 divides each frequency by (onnx.6), low 1, high 4, 8192 positions."""
    out = []
    for i in range(HEAD // 2):
        length = 2 * math.pi * THETA ** (2 * i / HEAD)
        s = (8192 / length - 1) / 3
        between = 1 / ((1 - s) / FACTOR + s)
        out.append(1.0 if length < 2048 else FACTOR if length > 8192 else between)
    return "F32", [HEAD // 2], struct.pack(f"<{len(out)}f", *out)


def tensors(vocabulary):
    """name -> format, shape, bytes"""

    def matrix(name, rows, columns, kind):
        return kind, [rows, columns], blocks(name, kind, rows * columns)

    found = {
        "token_embd.weight": matrix("token_embd", vocabulary, HIDDEN, "Q6_K"),
        "rope_freqs.weight": factors(),
    }
    for layer in range(2):
        at = f"blk.{layer}."
        for part in ("attn_norm", "ffn_norm"):
            found[f"{at}{part}.weight"] = norm(f"{at}{part}")
        for part, rows, columns, *kinds in MATRICES:
            found[f"{at}{part}.weight"] = matrix(f"{at}{part}", rows, columns, kinds[layer])
    found["output_norm.weight"] = norm("output_norm")
    found["output.weight"] = matrix("output", vocabulary, HIDDEN, "Q8_0")
    return found


def keys(vocabulary):
    return {
        "general.architecture": "llama",
        "general.name": "made",
        "general.alignment": 64,
        "llama.block_count": 2,
        "llama.context_length": 16384,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": [INNER, INNER],  # as llama.cpp has one a layer
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.key_length": HEAD,
        "llama.attention.value_length": HEAD,
        "llama.attention.layer_norm_rms_epsilon": 1e-6,
        "llama.rope.freq_base": THETA,
        "llama.rope.dimension_count": HEAD,
        "llama.vocab_size": vocabulary,
        "tokenizer.chat_template": "{{ messages[0]['content'] }}",
    }


def make(path, kind="bytes", without=(), **changed):
    """without: tensors that are left out; changed: keys with other values, `__` for a point; None:
    without the key."""
    tokens = TOKENIZERS[kind]
    vocabulary = len(tokens["tokenizer.ggml.tokens"])
    pairs = keys(vocabulary) | tokens
    pairs |= {name.replace("__", "."): value for name, value in changed.items()}
    pairs = {key: value for key, value in pairs.items() if value is not None}
    stored, align = tensors(vocabulary), pairs["general.alignment"]
    for name in without:
        del stored[name]
    out = b"GGUF" + struct.pack("<IQQ", 3, len(stored), len(pairs))
    for key, value in pairs.items():
        out += text(key) + value_of(value)
    data = b""
    for name, (form, shape, raw) in stored.items():
        out += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        out += struct.pack("<IQ", FORMATS[form][0], len(data))
        data += raw + bytes(-len(raw) % align)
    Path(path).write_bytes(out + bytes(-len(out) % align) + data)


if __name__ == "__main__":
    make(*sys.argv[1:3])
