#!/usr/bin/env python3
"""make_checkpoint.py FOLDER [MODEL [SEED]]: the made models of spec/made-models.md.

MODEL is `edges` (the default) or `tied`, or one of made_hybrids.py, which the page does not have.
Equal seeds give equal bytes; the page has seed 1.
"""

import hashlib
import json
import math
import struct
import sys
from pathlib import Path

import made_hybrids
from made_tokenizer import NAMES, tokenizer

VOCABULARY = len(NAMES)
COMMON = {
    "architectures": ["LlamaForCausalLM"],
    "bos_token_id": 0,
    "eos_token_id": None,
    "hidden_act": "silu",
    "max_position_embeddings": 640,
    "model_type": "llama",
    "num_hidden_layers": 2,
    "rms_norm_eps": 1e-06,
    "vocab_size": VOCABULARY,
}
CONFIG = COMMON | {
    "attention_bias": True,
    "head_dim": 18,
    "hidden_size": 4099,
    "intermediate_size": 37,
    "mlp_bias": True,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 12345.0,
        "factor": 5.0,
        "original_max_position_embeddings": 128,
        "beta_fast": 24.0,
        "beta_slow": 1.5,
    },
    "tie_word_embeddings": False,
}
TIED = COMMON | {
    "attention_bias": False,
    "head_dim": 64,
    "hidden_size": 257,
    "intermediate_size": 2049,
    "mlp_bias": False,
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "rope_parameters": {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "tie_word_embeddings": True,
}
HIDDEN, HEAD = CONFIG["hidden_size"], CONFIG["head_dim"]  # of `edges`
LAYERS = COMMON["num_hidden_layers"]
BEGIN = 0  # the token that begins every prompt


def size_of(shape):
    return math.prod(shape)


def elements(seed, name, dtype, shape):
    """Numbers of both signs: bf16 and f32 in [2^-7, 2^-5), f16 in [2^-5, 2^-4)."""
    n = size_of(shape)
    raw = hashlib.shake_128(f"{seed} {name}".encode()).digest(4 * n)
    if dtype == "F16":
        top = bytes((b & 0x80) | 0x28 | (b & 3) for b in range(256))
    else:
        top = bytes((b & 0x80) | 0x3C for b in range(256))
    width = 4 if dtype == "F32" else 2
    data = bytearray(raw[: width * n])
    data[width - 1 :: width] = data[width - 1 :: width].translate(top)
    return data


class Table:
    """A tensor whose elements can be set one by one."""

    def __init__(self, seed, name, dtype, *shape):
        self.dtype, self.shape = dtype, list(shape)
        self.data = elements(seed, name, dtype, shape)

    def set(self, value, row, column=None):
        """One element, or the element `row` of a vector."""
        index = row if column is None else row * self.shape[1] + column
        if self.dtype == "F32":
            self.data[4 * index : 4 * index + 4] = struct.pack("<f", value)
        else:
            assert self.dtype == "BF16"
            self.data[2 * index : 2 * index + 2] = struct.pack("<f", value)[2:]

    def fill(self, value, row=None, column=None):
        """A row or a column."""
        rows = range(self.shape[0]) if row is None else [row]
        columns = range(self.shape[1]) if column is None else [column]
        for r in rows:
            for c in columns:
                self.set(value, r, c)


def tensors_of(seed, config):
    found = {}

    def add(name, dtype, *shape):
        found[name] = Table(seed, name, dtype, *shape)

    hidden, inner = config["hidden_size"], config["intermediate_size"]
    q, kv = (
        config["head_dim"] * config[f"num_{kind}_heads"] for kind in ("attention", "key_value")
    )
    add("model.embed_tokens.weight", "BF16", VOCABULARY, hidden)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        add(f"{at}.input_layernorm.weight", "F32", hidden)
        add(f"{at}.post_attention_layernorm.weight", "BF16", hidden)
        for part, rows, columns, dtype in [
            ("self_attn.q_proj", q, hidden, "BF16"),
            ("self_attn.k_proj", kv, hidden, "BF16"),
            ("self_attn.v_proj", kv, hidden, "F16" if layer else "BF16"),
            ("self_attn.o_proj", hidden, q, "F32" if layer else "BF16"),
            ("mlp.gate_proj", inner, hidden, "BF16"),
            ("mlp.up_proj", inner, hidden, "BF16"),
            ("mlp.down_proj", hidden, inner, "BF16"),
        ]:
            add(f"{at}.{part}.weight", dtype, rows, columns)
            if config["mlp_bias" if part.startswith("mlp") else "attention_bias"]:
                add(f"{at}.{part}.bias", dtype if dtype == "F16" else "BF16", rows)
    add("model.norm.weight", "BF16", hidden)
    if not config["tie_word_embeddings"]:
        add("lm_head.weight", "BF16", VOCABULARY, hidden)
    for name, table in found.items():
        if "norm" in name:  # near 1, that rows keep their size
            top = 3 if table.dtype == "F32" else 1
            width = top + 1
            table.data[top::width] = bytes([0x3F]) * (len(table.data) // width)
    return found


def hybrid_tensors(seed, config):
    """Decays that forget within a few positions, and some that remember a chunk and more."""
    found = {}
    for name, *shape in made_hybrids.shapes_of(config):
        dtype = "F32" if name.endswith(("A_log", "dt_bias", "D")) else "BF16"
        t = found[name] = Table(seed, name, dtype, *shape)
        if "norm" in name:
            t.data[1::2] = bytes([0x3F]) * (len(t.data) // 2)
        if "conv1d" in name or name.endswith("D"):  # [2^-3, 2^-1)
            top = bytes((b & 0x80) | 0x3E for b in range(256))
            width = 2 if dtype == "BF16" else 4
            t.data[width - 1 :: width] = t.data[width - 1 :: width].translate(top)
        for i in range(shape[0] if name.endswith("A_log") else 0):
            t.set(1.0 - 2 * (i % 4), i)
    return found


def reach_the_edges(t):
    """Channel 8 of the embedding is that of BEGIN alone; 9 and 13 are the same for all tokens."""
    embedding, logits = t["model.embed_tokens.weight"], t["lm_head.weight"]
    embedding.fill(0.0, column=8)
    embedding.set(2**-6, BEGIN, 8)
    embedding.fill(2**-6, column=9)
    at = "model.layers.0"
    for channel in (8, 9):
        t[f"{at}.input_layernorm.weight"].set(1.0, channel)

    # The score of BEGIN is near -95: its weight is subnormal, stored as +0 (attention.6). Its value
    # is near 2^120. The frequency of the last pair is so low that positions hardly turn it.
    for head in range(3):
        t[f"{at}.self_attn.q_proj.weight"].set(17.5, HEAD * head + HEAD // 2 - 1, 9)
    t[f"{at}.self_attn.k_proj.weight"].set(-23.0, HEAD // 2 - 1, 8)
    t[f"{at}.self_attn.v_proj.weight"].set(2.0**120, 0, 8)

    # silu(gate) * up is near 2^-130 in four places, what meets it near 2^115 (formats.5); in the
    # fifth the sigmoid is subnormal: the gate is near -88.
    for row in range(4):
        for part in ("gate", "up"):
            table = t[f"{at}.mlp.{part}_proj.weight"]
            begin, end = 2 * row * HIDDEN, 2 * (row + 1) * HIDDEN
            top = bytes((b & 0x80) | 0x1C for b in range(256))  # [2^-71, 2^-69)
            table.data[begin + 1 : end : 2] = table.data[begin + 1 : end : 2].translate(top)
            t[f"{at}.mlp.{part}_proj.bias"].set(0.0, row)
        t[f"{at}.mlp.down_proj.weight"].fill(2.0**115, column=row)
    t[f"{at}.mlp.gate_proj.bias"].set(-88.0, 4)
    t[f"{at}.mlp.down_proj.weight"].fill(2.0**115, column=4)

    # Half of the tokens have logits near 2^20, so that many are equal; no other is drawn.
    embedding.fill(0.25, column=13)
    for layer in range(LAYERS):
        for part in ("self_attn.o_proj", "mlp.down_proj"):
            t[f"model.layers.{layer}.{part}.weight"].fill(0.0, row=13)
            t[f"model.layers.{layer}.{part}.bias"].set(0.0, 13)
    for row in range(VOCABULARY // 2):
        logits.set(2.0**20, row, 13)

    # Logits: from a subnormal weight, of a subnormal result, and NaN.
    for channel, weight in {10: 2.0**100, 11: 1.0, 12: 0.0}.items():
        logits.fill(0.0, column=channel)
        t["model.norm.weight"].set(weight, channel)
    for row, channel, value in [
        (310, 10, 2.0**-133),
        (309, 11, 2.0**-130),
        (308, 12, float("inf")),
    ]:
        logits.fill(0.0, row=row)
        logits.set(value, row, channel)


def write_safetensors(path, tensors):
    header, end = {}, 0
    for name, t in tensors.items():
        header[name] = {
            "dtype": t.dtype, "shape": t.shape, "data_offsets": [end, end + len(t.data)],
        }  # fmt: skip
        end += len(t.data)
    text = json.dumps(header).encode()
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            out.write(t.data)


def make(folder, model="edges", seed=1):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if model in made_hybrids.CONFIGS:
        config = {
            "model_type": model,
            "bos_token_id": 0,
            "eos_token_id": None,
        } | made_hybrids.CONFIGS[model]
        tensors = hybrid_tensors(seed, config)
    else:
        config = {"edges": CONFIG, "tied": TIED}[model]
        tensors = tensors_of(seed, config)
    if model == "edges":
        reach_the_edges(tensors)
    write_safetensors(folder / "model.safetensors", tensors)
    for name, value in {"config": dict(sorted(config.items())), "tokenizer": tokenizer()}.items():
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1), encoding="utf-8")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4 or sys.argv[2:3] not in (
        [],
        *([name] for name in ("edges", "tied", *made_hybrids.CONFIGS)),
    ):
        sys.exit(__doc__)
    make(sys.argv[1], *sys.argv[2:3], *map(int, sys.argv[3:]))
