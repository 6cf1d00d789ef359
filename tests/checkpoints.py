"""Llama checkpoints made for tests: small random ones with a float64 evaluation, and full-sized
ones that are all holes."""

import json
import struct

import numpy as np
from rope_oracle import attention_factor, inverse_frequencies

SMALL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "vocab_size": 29,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "bos_token_id": 128000,
    "eos_token_id": [128001, 128008, 128009],
    "torch_dtype": "bfloat16",
}


def head_dim(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def shapes(config):
    """Every tensor of the model -> its shape."""
    hidden, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    q, kv = (
        config["num_attention_heads"] * head_dim(config),
        config["num_key_value_heads"] * head_dim(config),
    )
    out = {"model.embed_tokens.weight": [vocab, hidden], "model.norm.weight": [hidden]}
    if not config.get("tie_word_embeddings"):
        out["lm_head.weight"] = [vocab, hidden]
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        out[p + "input_layernorm.weight"] = out[p + "post_attention_layernorm.weight"] = [hidden]
        for name, rows, columns in [
            ("self_attn.q", q, hidden),
            ("self_attn.k", kv, hidden),
            ("self_attn.v", kv, hidden),
            ("self_attn.o", hidden, q),
            ("mlp.gate", inner, hidden),
            ("mlp.up", inner, hidden),
            ("mlp.down", hidden, inner),
        ]:
            out[f"{p}{name}_proj.weight"] = [rows, columns]
            if config.get("attention_bias" if "attn" in name else "mlp_bias"):
                out[f"{p}{name}_proj.bias"] = [rows]
    return out


def header_bytes(tensors, dtype, width):
    """The safetensors header of {name: shape} -> (bytes with their length field, size of the
    data)."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        size = width * int(np.prod(shape))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, at


def stored(values, dtype):
    """float32 values -> (bytes in `dtype`, the values as they then are)."""
    if dtype == "F32":
        return values.astype("<f4").tobytes(), values
    if dtype == "F16":
        half = values.astype("<f2")
        return half.tobytes(), half.astype(np.float32)
    bits = values.view(np.uint32)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return bits.astype("<u2").tobytes(), (bits << 16).astype(np.uint32).view(np.float32)


def write_small(folder, dtype="BF16", seed=1, shards=1, **changes):
    """A random checkpoint in `folder` -> (config, {name: float32 values as stored})."""
    config = {**SMALL, **changes}
    config = {k: v for k, v in config.items() if v is not ...}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    rng = np.random.default_rng(seed)
    tensors = shapes({**SMALL, **config})
    weights, where = {}, {}
    names = list(tensors)
    for s in range(shards):
        file = (
            "model.safetensors" if shards == 1 else f"model-{s + 1:05d}-of-{shards:05d}.safetensors"
        )
        part = {n: tensors[n] for n in names[s::shards]}
        head, _ = header_bytes(part, dtype, 4 if dtype == "F32" else 2)
        with open(folder / file, "wb") as f:
            f.write(head)
            for name, shape in part.items():
                values = rng.standard_normal(shape).astype(np.float32)
                values = (
                    1 + values / 8 if "norm" in name else values / np.float32(np.sqrt(shape[-1]))
                )
                raw, weights[name] = stored(values.astype(np.float32), dtype)
                where[name] = file
                f.write(raw)
    if shards > 1:
        (folder / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {}, "weight_map": where})
        )
    return {**SMALL, **config}, weights


def write_holes(folder, config, shards):
    """A checkpoint of full size whose data are holes: real headers, no disk."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    tensors = list(shapes(config).items())
    per, where = -(-len(tensors) // shards), {}
    for s in range(shards):
        file = f"model-{s + 1:05d}-of-{shards:05d}.safetensors"
        part = dict(tensors[s * per : (s + 1) * per])
        head, size = header_bytes(part, "BF16", 2)
        with open(folder / file, "wb") as f:
            f.write(head)
            f.truncate(len(head) + size)
        where.update(dict.fromkeys(part, file))
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": where})
    )


def rope_of(config):
    rope = dict(config.get("rope_scaling") or config.get("rope_parameters") or {})
    kind = rope.pop("rope_type", None) or rope.pop("type", None) or "default"
    rope.pop("type", None)
    theta = rope.pop("rope_theta", config.get("rope_theta", 10000.0))
    if kind in ("llama3", "yarn"):
        rope.setdefault(
            "original_max_position_embeddings", config.get("max_position_embeddings", 2048)
        )
    return inverse_frequencies(
        head_dim(config), theta=theta, rope_type=kind, **rope
    ), attention_factor(kind, **rope)


def float64_logits(config, weights, ids):
    """The model of the literature in float64, all positions at once."""
    w = {k: v.astype(np.float64) for k, v in weights.items()}
    heads, groups, d = (
        config["num_attention_heads"],
        config["num_key_value_heads"],
        head_dim(config),
    )
    n = len(ids)
    frequencies, scale = rope_of(config)
    angles = np.arange(n)[:, None] * frequencies.astype(np.float64)
    cos, sin = scale * np.cos(angles)[:, None], scale * np.sin(angles)[:, None]

    def linear(x, name):
        return x @ w[name + ".weight"].T + w.get(name + ".bias", 0)

    def norm(x, name):
        return (
            x
            / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(config["rms_norm_eps"]))
            * w[name + ".weight"]
        )

    def rotate(x):
        a, b = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    x = w["model.embed_tokens.weight"][ids]
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        h = norm(x, p + "input_layernorm")
        q = rotate(linear(h, p + "self_attn.q_proj").reshape(n, heads, d))
        k = np.repeat(
            rotate(linear(h, p + "self_attn.k_proj").reshape(n, groups, d)), heads // groups, 1
        )
        v = np.repeat(linear(h, p + "self_attn.v_proj").reshape(n, groups, d), heads // groups, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(d)
        scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
        e = np.exp(scores - scores.max(-1, keepdims=True))
        y = np.einsum("hqk,khd->qhd", e / e.sum(-1, keepdims=True), v).reshape(n, -1)
        x = x + linear(y, p + "self_attn.o_proj")
        h = norm(x, p + "post_attention_layernorm")
        gate = linear(h, p + "mlp.gate_proj")
        x = x + linear(
            gate / (1 + np.exp(-gate)) * linear(h, p + "mlp.up_proj"), p + "mlp.down_proj"
        )
    return norm(x, "model.norm") @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T
