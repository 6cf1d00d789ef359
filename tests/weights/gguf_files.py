"""GGUF files made for tests, and their numbers unpacked with numpy: written from the layouts of
spec/weights.md, element by element, and compared with PyPI's package gguf where that is there."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np

# name -> ggml_type, numbers and bytes of a block
TYPES = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "BF16": (30, 1, 2),
    "Q4_0": (2, 32, 18),
    "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34),
    "Q2_K": (10, 256, 84),
    "Q3_K": (11, 256, 110),
    "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210),
    "IQ4_NL": (20, 32, 18),
    "IQ4_XS": (23, 256, 136),
    "MXFP4": (39, 32, 17),
}
BLOCKS = [kind for kind in TYPES if kind not in ("F32", "F16", "BF16")]
# bytes of a block at which binary16 scales begin
SCALES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
    "MXFP4": [],
}
IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])

U8, I32, U32, F32, BOOL, STRING, ARRAY, U64 = 0, 5, 4, 6, 7, 8, 9, 10


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def typed(value):
    """A value of Python -> (type, bytes)."""
    if isinstance(value, tuple):  # (type, bytes) as they are
        return value
    if isinstance(value, bool):
        return BOOL, bytes([value])
    if isinstance(value, int):
        return U32, struct.pack("<I", value)
    if isinstance(value, float):
        return F32, struct.pack("<f", value)
    if isinstance(value, str | bytes):
        return STRING, text(value)
    kind = typed(value[0])[0] if value else U32
    return ARRAY, struct.pack("<IQ", kind, len(value)) + b"".join(typed(v)[1] for v in value)


def file_bytes(metadata, tensors, alignment=32, version=3):
    """tensors: name -> (type's name or number, shape in row-major order, bytes)."""
    pairs = list(metadata.items() if isinstance(metadata, dict) else metadata)
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    for key, value in pairs:
        kind, raw = typed(value)
        out += text(key) + struct.pack("<I", kind) + raw
    data = bytearray()
    for name, (kind, shape, raw) in tensors.items():
        number = TYPES[kind][0] if isinstance(kind, str) else kind
        out += text(name) + struct.pack("<I", len(shape))
        out += b"".join(struct.pack("<Q", d) for d in reversed(shape))
        out += struct.pack("<IQ", number, len(data))
        data += raw + bytes(-len(raw) % alignment)
    return out + bytes(-len(out) % alignment) + data


def halves(blocks, at):
    return blocks[:, at : at + 2].copy().view("<f2").astype(np.float32)


def nibbles(raw):
    """Bytes [blocks, n] -> the low halves, then the high ones [blocks, 2n]."""
    return np.concatenate([raw & 15, raw >> 4], axis=1)


def bits(raw, count):
    """Bit i of little-endian bytes [blocks, n], for i = 0 ... count - 1."""
    return np.stack([raw[:, i // 8] >> i % 8 & 1 for i in range(count)], axis=1)


def six_bits(s):
    """12 bytes a block -> eight scales and eight minima of six bits."""
    scale = [s[:, j] & 63 for j in range(4)]
    scale += [(s[:, j + 8] & 15) | (s[:, j] >> 6) << 4 for j in range(4)]
    minimum = [s[:, j + 4] & 63 for j in range(4)]
    minimum += [s[:, j + 8] >> 4 | (s[:, j + 4] >> 6) << 4 for j in range(4)]
    return np.stack(scale, 1).astype(np.float32), np.stack(minimum, 1).astype(np.float32)


def unpack(kind, raw):
    """The numbers of `raw`, float32, one after the other."""
    if kind in ("F32", "F16"):
        return np.frombuffer(raw, "<f4" if kind == "F32" else "<f2").astype(np.float32)
    if kind == "BF16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    b = np.frombuffer(raw, np.uint8).reshape(-1, TYPES[kind][2])
    f = np.float32
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "Q8_0":
            return (halves(b, 0) * b[:, 2:].copy().view(np.int8).astype(f)).ravel()
        if kind == "Q4_0":
            return (halves(b, 0) * (nibbles(b[:, 2:]).astype(f) - f(8))).ravel()
        if kind == "Q4_1":
            return (halves(b, 0) * nibbles(b[:, 4:]).astype(f) + halves(b, 2)).ravel()
        if kind in ("Q5_0", "Q5_1"):
            at = 2 if kind == "Q5_0" else 4
            q = (nibbles(b[:, at + 4 :]) | bits(b[:, at : at + 4], 32) << 4).astype(f)
            if kind == "Q5_0":
                return (halves(b, 0) * (q - f(16))).ravel()
            return (halves(b, 0) * q + halves(b, 2)).ravel()
        if kind == "IQ4_NL":
            return (halves(b, 0) * IQ4[nibbles(b[:, 2:])].astype(f)).ravel()
        if kind == "MXFP4":
            code = nibbles(b[:, 1:])
            value = np.where(code < 8, 1.0, -1.0) * FP4[code % 8]
            return (value * np.exp2(b[:, :1].astype(np.float64) - 127)).astype(f).ravel()
        return unpack_256(kind, b, f).ravel()


def unpack_256(kind, b, f):
    i = np.arange(256)
    if kind == "Q2_K":
        two = b[:, 16 + i // 128 * 32 + i % 32] >> (i // 32 % 4 * 2).astype(np.uint8) & 3
        s = b[:, i // 16]
        scale, low = halves(b, 80) * (s & 15).astype(f), halves(b, 82) * (s >> 4).astype(f)
        return scale * two.astype(f) - low
    if kind == "Q3_K":
        two = b[:, 32 + i // 128 * 32 + i % 32] >> (i // 32 % 4 * 2).astype(np.uint8) & 3
        third = b[:, i % 32] >> (i // 32).astype(np.uint8) & 1
        part = i // 16
        low = b[:, 96 + part % 8] >> (part // 8 * 4).astype(np.uint8) & 15
        high = b[:, 104 + part % 4] >> (part // 4 * 2).astype(np.uint8) & 3
        scale = halves(b, 108) * ((low | high << 4).astype(f) - f(32))
        return scale * (two.astype(f) - f(4) * (1 - third).astype(f))
    if kind in ("Q4_K", "Q5_K"):
        scale, minimum = six_bits(b[:, 4:16])
        first = 16 if kind == "Q4_K" else 48
        q = b[:, first + i // 64 * 32 + i % 32] >> (i // 32 % 2 * 4).astype(np.uint8) & 15
        if kind == "Q5_K":
            q = q | (b[:, 16 + i % 32] >> (i // 32).astype(np.uint8) & 1) << 4
        d, m = halves(b, 0) * scale, halves(b, 2) * minimum
        return d[:, i // 32] * q.astype(f) - m[:, i // 32]
    if kind == "Q6_K":
        four = b[:, i // 128 * 64 + i % 64] >> (i % 128 // 64 * 4).astype(np.uint8) & 15
        two = b[:, 128 + i // 128 * 32 + i % 32] >> (i % 128 // 32 * 2).astype(np.uint8) & 3
        scale = halves(b, 208) * b[:, 192:208].copy().view(np.int8).astype(f)
        return scale[:, i // 16] * ((four | two << 4).astype(f) - f(32))
    assert kind == "IQ4_XS"
    part = i // 32
    high = b[:, 2].astype(np.int32) | b[:, 3].astype(np.int32) << 8
    six = b[:, 4 + part // 2].astype(np.int32) >> (part % 2 * 4) & 15
    six |= (high[:, None] >> (part * 2) & 3) << 4
    q = b[:, 8 + part * 16 + i % 16] >> (i % 32 // 16 * 4).astype(np.uint8) & 15
    return halves(b, 0) * (six.astype(f) - f(32)) * IQ4[q].astype(f)


def random_bytes(kind, numbers, rng, size=0.02):
    """Blocks of random bits with scales of about `size` over the largest integer."""
    if kind in ("F32", "F16", "BF16"):
        values = rng.normal(0, size, numbers).astype(np.float32)
        if kind == "BF16":
            return (values.view(np.uint32) >> 16).astype("<u2").tobytes()
        return values.astype("<f4" if kind == "F32" else "<f2").tobytes()
    _, block, length = TYPES[kind]
    out = rng.integers(0, 256, (numbers // block, length), dtype=np.uint8)
    most = {"Q8_0": 127, "Q6_K": 127 * 32, "IQ4_NL": 127, "IQ4_XS": 127 * 32}.get(kind, 63 * 15)
    for at in SCALES[kind]:
        scale = (rng.uniform(-1, 1, len(out)) * size / most * (16 if length < 40 else 1)).astype(
            "<f2"
        )
        out[:, at : at + 2] = scale[:, None].view(np.uint8)
    if kind == "MXFP4":
        out[:, 0] = rng.integers(117, 122, len(out))
    return out.tobytes()


def fixed_bytes(kind):
    """Blocks of bits that are the same in every version of numpy, with scales below 2."""
    _, block, length = TYPES[kind]
    count = 512 * 32 // block
    raw = hashlib.shake_256(kind.encode()).digest(count * length)
    out = np.frombuffer(raw, np.uint8).reshape(count, length).copy()
    for at in SCALES[kind]:
        out[:, at + 1] &= 0xBF
    if kind == "MXFP4":
        out[:, 0] = 64 + out[:, 0] // 2
    return out.tobytes()


def read_safetensors(folder):
    """name -> (dtype, shape, bytes) of all files of a folder."""
    out = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        raw = path.read_bytes()
        length = struct.unpack("<Q", raw[:8])[0]
        for name, t in json.loads(raw[8 : 8 + length]).items():
            if name != "__metadata__":
                begin, end = (8 + length + at for at in t["data_offsets"])
                out[name] = (t["dtype"], t["shape"], raw[begin:end])
    return out


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        place = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": place}
        data += raw
    raw = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(raw)) + raw + data)


NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
}


def gguf_name(name, **other):
    """model.layers.0.input_layernorm.weight -> blk.0.attn_norm.weight"""
    stem, ending = name.rsplit(".", 1)
    names = {**NAMES, **other}
    if not stem.startswith("model.layers."):
        return f"{names[stem]}.{ending}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{names[part]}.{ending}"


def row_order(rows, heads):
    """Row r of llama.cpp's queries and keys is this row of transformers'."""
    size = rows // heads
    return [
        h * size + j * (size // 2) + i
        for h in range(heads)
        for i in range(size // 2)
        for j in (0, 1)
    ]


def paired(raw, rows, heads):
    one = len(raw) // rows
    return b"".join(raw[r * one : (r + 1) * one] for r in row_order(rows, heads))


def unpaired(raw, rows, heads):
    one = len(raw) // rows
    out = [b""] * rows
    for at, r in enumerate(row_order(rows, heads)):
        out[r] = raw[at * one : (at + 1) * one]
    return b"".join(out)


def llama_metadata(config, architecture="llama"):
    """The keys of a config.json of the Llama kind, as llama.cpp's converter writes them."""
    a = architecture + "."
    theta = config.get("rope_theta", config.get("rope_parameters", {}).get("rope_theta", 10000.0))
    out = {
        "general.architecture": architecture,
        "general.name": "made",
        a + "context_length": config["max_position_embeddings"],
        a + "embedding_length": config["hidden_size"],
        a + "block_count": config["num_hidden_layers"],
        a + "feed_forward_length": config["intermediate_size"],
        a + "attention.head_count": config["num_attention_heads"],
        a + "attention.head_count_kv": config["num_key_value_heads"],
        a + "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        a + "rope.freq_base": theta,
        a + "rope.dimension_count": config["head_dim"],
        a + "attention.key_length": config["head_dim"],
        a + "attention.value_length": config["head_dim"],
        a + "vocab_size": config["vocab_size"],
    }
    return out


def byte_level_metadata(folder, pre="llama-bpe"):
    """The tokenizer of a tokenizer.json of the byte-level kind."""
    file = json.loads((Path(folder) / "tokenizer.json").read_text())
    vocab = {**file["model"]["vocab"], **{t["content"]: t["id"] for t in file["added_tokens"]}}
    special = {t["content"] for t in file["added_tokens"] if t["special"]}
    tokens = [name for name, _ in sorted(vocab.items(), key=lambda pair: pair[1])]
    assert sorted(vocab.values()) == list(range(len(tokens)))
    kinds = [3 if t in special else 1 for t in tokens]
    merges = [m if isinstance(m, str) else " ".join(m) for m in file["model"]["merges"]]
    config = json.loads((Path(folder) / "config.json").read_text())
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": (
            ARRAY,
            struct.pack("<IQ", I32, len(kinds)) + struct.pack(f"<{len(kinds)}i", *kinds),
        ),
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": config["bos_token_id"],
        "tokenizer.ggml.eos_token_id": config["eos_token_id"],
        "tokenizer.ggml.add_bos_token": True,
    }


def one_matrix(model, kind, rows, raw):
    """A model with the tokenizer of `model` whose embedding, of rows of 256 numbers, has these
    blocks."""
    config = {
        **json.loads((Path(model) / "config.json").read_text()),
        "vocab_size": rows,
        "num_hidden_layers": 1,
        "intermediate_size": 32,
    }
    config |= {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 2}
    tensors = {"token_embd.weight": (kind, [rows, 256], raw)}
    tensors["output_norm.weight"] = ("F32", [256], bytes(1024))
    shapes = {"attn_norm": [256], "ffn_norm": [256], "attn_q": [2, 256], "attn_k": [2, 256]}
    shapes |= {"attn_v": [2, 256], "attn_output": [256, 2]}
    shapes |= {"ffn_gate": [32, 256], "ffn_up": [32, 256], "ffn_down": [256, 32]}
    for name, shape in shapes.items():
        tensors[f"blk.0.{name}.weight"] = ("F32", shape, bytes(4 * int(np.prod(shape))))
    keys = {**llama_metadata(config), **byte_level_metadata(model)}
    return file_bytes(keys, tensors)
