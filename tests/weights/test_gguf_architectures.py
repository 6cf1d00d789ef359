"""Models of every architecture that is read from GGUF files have the program and the logits of the
checkpoint that they were made of (spec/weights.md weights.12 to weights.14), and the config.json
that the independent implementation makes of their keys (spec/gguf.md gguf.2 to gguf.6)."""

import hashlib
import json
import math
import re
import sys
from pathlib import Path

import gguf_files as gguf
import gguf_latent as latent
import numpy as np
import pytest
from conftest import ROOT, invar, refused

sys.path[:0] = [str(ROOT / "tests/families"), str(ROOT / "tests/independent")]
from pages.files.gguf import File  # noqa: E402
from pages.files.gguf_config import config_of  # noqa: E402
from pages.files.gguf_text import spelled  # noqa: E402
from random_checkpoint import write  # noqa: E402

VECTORS = {
    v["name"]: v
    for v in map(json.loads, (ROOT / "tests/families/vectors.jsonl").read_text().splitlines())
}
# name of the vector -> llama.cpp's architecture, changes to the config that GGUF cannot say
CASES = {
    "llama": ("llama", {"max_position_embeddings": 16384, "rope_theta": 500000.0}),
    "llama-biases": ("llama", {}),
    "mixtral": ("llama", {}),
    "qwen2": ("qwen2", {}),
    "qwen2-tied-linear": ("qwen2", {}),
    "qwen3": ("qwen3", {}),
    "qwen2_moe": ("qwen2moe", {}),
    "qwen3_moe": ("qwen3moe", {}),
    "qwen3_next": ("qwen3next", {}),
    "qwen3_5-interval": ("qwen35", {}),
    "gemma": ("gemma", {}),
    "gemma2": ("gemma2", {"query_pre_attn_scalar": 12}),
    "gemma3": ("gemma3", {}),
    "gemma3-scaled": ("gemma3", {"query_pre_attn_scalar": 12}),
    "gemma4": ("gemma4", {}),
    "gemma4-keys-are-values": ("gemma4", {}),
    "gemma4-experts": ("gemma4", {}),
    "phi3": ("phi3", {}),
    "phi3-partial": ("phi3", {}),
    "phi3-longrope": ("phi3", {}),
    "granite": ("granite", {}),
    "granite-biases": ("granite", {}),
    "olmo2": ("olmo2", {}),
    "gpt_oss": ("gpt-oss", {}),
    "deepseek_v2-lite": ("deepseek2", {}),
    "deepseek_v2": ("deepseek2", {"attention_bias": False}),
    "deepseek_v2-dense": ("deepseek2", {}),
    "deepseek_v3": ("deepseek2", {}),
    "glm4_moe_lite": ("deepseek2", {}),
    "youtu": ("deepseek2", {}),
}
# Heads of values in another order than in the checkpoint: sums of other orders.
TILED = {
    "qwen3_5": ("qwen35", {"full_attention_interval": 2}),
    "qwen3_5_moe": ("qwen35moe", {"full_attention_interval": 2}),
}
ADDED = ("gemma", "gemma2", "gemma3")  # norms have 1 added
HYBRID = ("qwen3next", "qwen35", "qwen35moe")
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"rope_type": "llama3", "original_max_position_embeddings": 8192}
OWN_NAMES = {
    "gpt-oss": {"mlp.router": "ffn_gate_inp", "post_attention_layernorm": "post_attention_norm"},
    "gemma2": {"pre_feedforward_layernorm": "ffn_norm"},
    "gemma3": {"pre_feedforward_layernorm": "ffn_norm"},
    "llama": {"block_sparse_moe.gate": "ffn_gate_inp"},
}
OWN_NAMES["gemma4"] = {
    "pre_feedforward_layernorm": "ffn_norm",
    "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
    "post_feedforward_layernorm_1": "post_ffw_norm_1",
    "post_feedforward_layernorm_2": "post_ffw_norm_2",
    "per_layer_input_gate": "inp_gate",
    "per_layer_projection": "proj",
    "post_per_layer_input_norm": "post_norm",
    "router.proj": "ffn_gate_inp",
    "model.embed_tokens_per_layer": "per_layer_token_embd",
    "model.per_layer_model_projection": "per_layer_model_proj",
    "model.per_layer_projection_norm": "per_layer_proj_norm",
}
# Without an ending in a checkpoint.
BARE = {
    "layer_scalar": "layer_output_scale.weight",
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
    "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight",
}
DELTA_NAMES = {
    "post_attention_layernorm": "post_attention_norm",
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_ba": "ssm_ba",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
}
OWN_NAMES |= dict.fromkeys(HYBRID, DELTA_NAMES)
OWN_NAMES["deepseek2"] = latent.NAMES
POST_NORMS = {"post_attention_layernorm": "post_attention_norm"}
POST_NORMS |= {"post_feedforward_layernorm": "post_ffw_norm"}


def head_dim(config):
    usual = {"qwen3": 128, "gemma": 256, "qwen3_5_text": 256}
    own = config.get("head_dim")
    return (
        own
        or usual.get(config["model_type"])
        or config["hidden_size"] // config["num_attention_heads"]
    )


def metadata(config, architecture):
    """The keys that llama.cpp's converter writes of a config.json."""
    kind, a = config["model_type"], architecture + "."
    epsilon = 1e-5 if kind in ("phi3", "gpt_oss", "mixtral", "olmo2") else 1e-6
    full = {
        **config,
        "head_dim": head_dim(config),
        "intermediate_size": config.get("intermediate_size", 0),
        "rms_norm_eps": config.get("rms_norm_eps", epsilon),
    }
    theta = 1e6 if kind in ("gemma3_text",) else 10000.0
    theta = config.get("rope_parameters", {}).get("rope_theta", theta)
    full["rope_theta"] = config.get("rope_theta", theta)
    out = gguf.llama_metadata(full, architecture)
    del out[a + "vocab_size"]
    scaling = config.get("rope_scaling") or {}
    type_ = scaling.get("rope_type", scaling.get("type"))
    if type_ == "linear":
        out[a + "rope.scaling.type"], out[a + "rope.scaling.factor"] = "linear", scaling["factor"]
    if type_ == "yarn":
        out[a + "rope.scaling.type"], out[a + "rope.scaling.factor"] = "yarn", scaling["factor"]
        length = scaling["original_max_position_embeddings"]
        out[a + "rope.scaling.original_context_length"] = length
    if type_ == "longrope":
        out[a + "rope.scaling.type"] = "longrope"
        out[a + "rope.scaling.original_context_length"] = config["original_max_position_embeddings"]
    out[a + "rope.dimension_count"] = int(full["head_dim"] * config.get("partial_rotary_factor", 1))
    if "kv_lora_rank" in config:
        return out | {a + key: value for key, value in latent.metadata(config, scaling).items()}
    for key, name in [
        ("num_experts", "expert_count"),
        ("num_local_experts", "expert_count"),
        ("num_experts_per_tok", "expert_used_count"),
        ("moe_intermediate_size", "expert_feed_forward_length"),
        ("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
        ("attention_multiplier", "attention.scale"),
        ("embedding_multiplier", "embedding_scale"),
        ("residual_multiplier", "residual_scale"),
        ("logits_scaling", "logit_scale"),
        ("final_logit_softcapping", "final_logit_softcapping"),
    ]:
        if config.get(key) is not None:
            out[a + name] = config[key]
    if architecture == "gemma4":
        out |= gemma4_metadata(config, a)
    if architecture in HYBRID:
        values = config["linear_num_value_heads"]
        out[a + "ssm.conv_kernel"] = config.get("linear_conv_kernel_dim", 4)
        out[a + "ssm.state_size"] = config["linear_key_head_dim"]
        out[a + "ssm.group_count"] = config["linear_num_key_heads"]
        out[a + "ssm.time_step_rank"] = values
        out[a + "ssm.inner_size"] = values * config["linear_value_head_dim"]
        out[a + "full_attention_interval"] = config.get("full_attention_interval", 4)
        rope = config.get("rope_parameters", config)
        partial = rope.get("partial_rotary_factor", 0.25)
        out[a + "rope.dimension_count"] = int(full["head_dim"] * partial)
        out[a + "rope.dimension_sections"] = [2, 1, 1, 0]
        # Layers that draft tokens are left out.
        out[a + "block_count"] = config["num_hidden_layers"] + 1
        out[a + "nextn_predict_layers"] = 1
    if kind == "gpt_oss":
        out[a + "expert_feed_forward_length"] = config["intermediate_size"]
    if kind in ("gemma2", "gemma3_text", "phi3", "gpt_oss") and config.get("sliding_window"):
        out[a + "attention.sliding_window"] = config["sliding_window"]
    if kind == "gemma2":
        out[a + "attn_logit_softcapping"], out[a + "final_logit_softcapping"] = 50.0, 30.0
    if "sliding_window_pattern" in config:
        out[a + "attention.sliding_window_pattern"] = config["sliding_window_pattern"]
    return out


def tiled(x, axis, keys, values, size):
    """Heads of values behind their head of keys -> the first of each, then the second of each."""
    shape = list(x.shape)
    split = shape[:axis] + [keys, values // keys, size] + shape[axis + 1 :]
    return np.ascontiguousarray(x.reshape(split).swapaxes(axis, axis + 1)).reshape(shape)


def delta_tensors(tensors, config, architecture):
    """The changes of llama.cpp's converter to layers of the gated delta rule
    (_LinearAttentionVReorderBase and Qwen3NextModel)."""
    keys, values = config["linear_num_key_heads"], config["linear_num_value_heads"]
    deep, wide = config["linear_key_head_dim"], config["linear_value_head_dim"]
    out = {}
    for name, (kind, shape, raw) in tensors.items():
        base, _, part = name.partition("linear_attn.")
        x = np.frombuffer(raw, "<f4").reshape(shape)
        if name.endswith("norm.weight") and part != "norm.weight":
            x = x + np.float32(1)
        if architecture != "qwen3next" and part:
            both = 2 * keys * deep
            if part in ("in_proj_qkv.weight", "conv1d.weight"):
                x = np.concatenate([x[:both], tiled(x[both:], 0, keys, values, wide)])
            elif part == "in_proj_z.weight":
                x = tiled(x, 0, keys, values, wide)
            elif part == "out_proj.weight":
                x = tiled(x, 1, keys, values, wide)
            elif part != "norm.weight":
                x = tiled(x, 0, keys, values, 1)
        if part == "A_log":
            x, name = -np.exp(x.astype(np.float64)).astype("<f4"), base + "ssm_a"
        if part == "dt_bias":
            name = base + "ssm_dt.bias"
        if part == "conv1d.weight":
            x = x[:, 0]
        if part == "in_proj_qkvz.weight":
            sizes = np.cumsum([deep, deep, values // keys * wide])
            heads = np.split(x.reshape(keys, -1, x.shape[-1]), sizes, axis=1)
            q, k, v, z = (part.reshape(-1, x.shape[-1]) for part in heads)
            qkv = np.concatenate([q, k, v])
            out[base + "linear_attn.in_proj_qkv.weight"] = ("F32", list(qkv.shape), qkv.tobytes())
            name, x = base + "linear_attn.in_proj_z.weight", np.ascontiguousarray(z)
        out[name] = ("F32", list(x.shape), np.ascontiguousarray(x, "<f4").tobytes())
    return out


def gemma4_metadata(config, a):
    windows = [t == "sliding_attention" for t in layer_types(config)]
    count, shared = len(windows), config.get("num_kv_shared_layers", 0)
    wide = wide_head(config)
    inner, heads = config["intermediate_size"], config["num_key_value_heads"]
    out = {
        "attention.sliding_window_pattern": windows,
        "attention.sliding_window": config["sliding_window"],
        "attention.shared_kv_layers": shared,
        "attention.key_length": wide,
        "attention.value_length": wide,
        "attention.key_length_swa": config["head_dim"],
        "attention.value_length_swa": config["head_dim"],
        "embedding_length_per_layer_input": config["hidden_size_per_layer_input"],
        "rope.dimension_count": wide,
        "rope.dimension_count_swa": config["head_dim"],
        "rope.freq_base": config["rope_parameters"]["full_attention"]["rope_theta"],
        "rope.freq_base_swa": config["rope_parameters"]["sliding_attention"]["rope_theta"],
    }
    if config.get("use_double_wide_mlp"):
        own = count - shared
        out["feed_forward_length"] = [inner if i < own else 2 * inner for i in range(count)]
    if config.get("num_global_key_value_heads"):
        others = config["num_global_key_value_heads"]
        out["attention.head_count_kv"] = [heads if w else others for w in windows]
    if config.get("enable_moe_block"):
        out["expert_count"] = config["num_experts"]
        out["expert_used_count"] = config["top_k_experts"]
        out["expert_feed_forward_length"] = config["moe_intermediate_size"]
    return {a + key: value for key, value in out.items() if value is not None}


def wide_head(config):
    """The size of a head in layers without window."""
    saved = config.get("per_layer_config", {"": {"head_dim": config.get("global_head_dim", 512)}})
    return next(iter(saved.values()))["head_dim"]


def layer_types(config):
    count = config["num_hidden_layers"]
    usual = ["sliding_attention" if (i + 1) % 6 else "full_attention" for i in range(count)]
    return [*config.get("layer_types", usual)[:-1], "full_attention"]


def stack_experts(tensors):
    """Matrices of experts -> stacks of llama.cpp."""
    out, stacks = {}, {}
    names = {
        "gate_proj": "gate",
        "up_proj": "up",
        "down_proj": "down",
        "w1": "gate",
        "w3": "up",
        "w2": "down",
    }
    for name, t in tensors.items():
        found = re.fullmatch(r"model\.layers\.(\d+)\.\S+\.experts\.(\d+)\.(\w+)\.weight", name)
        if not found:
            out[name] = t
            continue
        stack = stacks.setdefault(f"blk.{found[1]}.ffn_{names[found[3]]}_exps.weight", {})
        stack[int(found[2])] = t
    for name, stack in stacks.items():
        kind, shape, _ = stack[0]
        out[name] = (kind, [len(stack), *shape], b"".join(stack[i][2] for i in range(len(stack))))
    return out


def tensors_of(folder, config, architecture, whole=False):
    own = OWN_NAMES.get(architecture, {})
    if architecture.startswith("gemma2") or architecture in ("gemma3", "gemma4", "olmo2"):
        own = {**own, **POST_NORMS}
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    out = {}
    stored = gguf.read_safetensors(folder)
    if architecture in HYBRID:
        stored = delta_tensors(stored, config, architecture)
    if architecture == "deepseek2":
        stored = latent.tensors(stored, config, whole)
    for name, (kind, shape, raw) in stack_experts(stored).items():
        if name.startswith("blk."):
            out[name] = (kind, shape, raw)
            continue
        if ".ssm_" in name:
            out[name.replace("model.layers", "blk")] = (kind, shape, raw)
            continue
        layer, part = name.split(".")[2:3], name.split(".")[-2]
        bare = next((new for old, new in BARE.items() if name.endswith("." + old)), None)
        if bare and architecture == "gemma4":
            out[f"blk.{layer[0]}.{bare}"] = (kind, shape, raw)
            continue
        if name.endswith("sinks"):
            out[f"blk.{layer[0]}.attn_sinks.weight"] = (kind, shape, raw)
            continue
        if part == "experts":  # of gpt-oss: [experts, in, out], gates and values in turns
            ending = "bias" if name.endswith("_bias") else "weight"
            stack = np.frombuffer(raw, "<f4").reshape(shape)
            both = ("gate", "up") if "gate_up" in name else ("down",)
            for i, one in enumerate(both):
                turned = stack[..., i :: len(both)]
                turned = turned.swapaxes(1, 2) if ending == "weight" else turned
                place = f"blk.{layer[0]}.ffn_{one}_exps.{ending}"
                out[place] = (kind, list(turned.shape), np.ascontiguousarray(turned).tobytes())
            continue
        if architecture in ("llama", "granite") and part in heads:
            raw = gguf.paired(raw, shape[0], heads[part])
        if architecture in ADDED and name.endswith("norm.weight"):
            raw = (np.frombuffer(raw, "<f4") + np.float32(1)).astype("<f4").tobytes()
        if name.endswith("shared_expert_gate.weight"):
            shape = shape[1:]
        out[gguf.gguf_name(name, **own)] = (kind, shape, raw)
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "llama3":
        out["rope_freqs.weight"] = ("F32", [head_dim(config) // 2], llama3_factors(config, scaling))
    if architecture == "gemma4":
        pairs = wide_head(config) // 2
        part = config["rope_parameters"]["full_attention"]["partial_rotary_factor"]
        factors = [1.0] * int(pairs * part) + [1e30] * (pairs - int(pairs * part))
        out["rope_freqs.weight"] = ("F32", [pairs], np.array(factors, "<f4").tobytes())
    if scaling.get("type") == "longrope":
        for length in ("long", "short"):
            raw = np.array(scaling[f"{length}_factor"], "<f4").tobytes()
            out[f"rope_factors_{length}.weight"] = ("F32", [len(raw) // 4], raw)
    return out


def llama3_factors(config, scaling):
    """As llama.cpp's converter writes them."""
    low, high, old = (
        scaling[k]
        for k in ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    )
    size, factors = head_dim(config), []
    for i in range(0, size, 2):
        wavelength = 2 * math.pi * config["rope_theta"] ** (i / size)
        if wavelength < old / high:
            factors.append(1.0)
        elif wavelength > old / low:
            factors.append(scaling["factor"])
        else:
            smooth = (old / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / scaling["factor"] + smooth))
    return np.array(factors, "<f4").tobytes()


TOKENIZER = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": ["a", "b", "ab"],
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
}


def made(name, folder):
    """A case as a checkpoint and as a GGUF file."""
    architecture, changes = {**CASES, **TILED}[name]
    vector = VECTORS[name]
    config = {**vector["config"], **changes}
    if name == "llama":
        config["rope_scaling"] = LLAMA3
    shapes = {
        n: s
        for n, s in vector["shapes"].items()
        if not (n.endswith(".bias") and changes.get("attention_bias") is False)
    }
    write(folder / "model", config, shapes, vector["seed"])
    keys = {**metadata(config, architecture), **TOKENIZER}
    tensors = tensors_of(folder / "model", config, architecture)
    (folder / "m.gguf").write_bytes(gguf.file_bytes(keys, tensors))
    return vector, keys, tensors


def compiled(model, out, *options):
    invar("export", "--model-name", model, "-o", out, *options)
    if model.suffix == ".gguf":
        text = spelled(config_of(File(model), [model.name])) + "\n"
        assert (
            hashlib.sha256(text.encode()).hexdigest().encode() in (out / "model.onnx").read_bytes()
        )
    invar("compile", out / "model.onnx", "-o", out / "plan.invar")
    program = invar("compile", out / "model.onnx", "--emit", "program").out.decode()
    return out / "plan.invar", program


def logits(plan, tokens):
    out = plan.parent / "logits.bin"
    invar("infer", plan, "--tokens", ",".join(map(str, tokens)), "--logits-output", out)
    return out.read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_the_checkpoint(name, tmp_path):
    vector, _, _ = made(name, tmp_path)
    theirs, their_program = compiled(tmp_path / "model", tmp_path / "a")
    ours, program = compiled(tmp_path / "m.gguf", tmp_path / "b")
    assert logits(ours, vector["tokens"]) == logits(theirs, vector["tokens"])
    if (
        CASES[name][0] in HYBRID
    ):  # what the converter computes of weights is said by other parameters
        assert "delta_stored_decays" in program and "delta_stored_decays" not in their_program
        return
    if CASES[name][0] in ADDED:  # the 1 of norms is in the weights
        assert "norm_offset" in their_program and "norm_offset" not in program
        norms = r"(?m)^.*(norm_offset|norm\.weight).*\n"
        program, their_program = (re.sub(norms, "", text) for text in (program, their_program))
    if name == "glm4_moe_lite":  # DeepSeek-V3 with other sizes
        their_program = their_program.replace("family glm4_moe_lite", "family deepseek_v3")
    assert program == their_program


@pytest.mark.parametrize("name", TILED)
def test_logits_of_heads_in_another_order_are_close(name, tmp_path):
    vector, _, _ = made(name, tmp_path)
    theirs, _ = compiled(tmp_path / "model", tmp_path / "a")
    ours, program = compiled(tmp_path / "m.gguf", tmp_path / "b")
    assert "delta_tiled_heads" in program
    x, y = (np.frombuffer(logits(plan, vector["tokens"]), "<f4") for plan in (ours, theirs))
    assert np.abs(x - y).max() < 1e-5 * np.abs(y).max()
    assert len(x) > 0 and x.tobytes() != y.tobytes()


def test_rotary_factors_of_another_kind_are_refused(tmp_path):
    _, keys, tensors = made("llama", tmp_path)
    raw = np.frombuffer(tensors["rope_freqs.weight"][2], "<f4").copy()
    raw[-1] *= 1.01
    tensors["rope_freqs.weight"] = ("F32", [len(raw)], raw.tobytes())
    (tmp_path / "m.gguf").write_bytes(gguf.file_bytes(keys, tensors))
    refused(
        "export",
        "--model-name",
        tmp_path / "m.gguf",
        "-o",
        tmp_path / "c",
        code=3,
        names=["rope_freqs"],
    )


def test_sizes_that_differ_from_layer_to_layer_are_refused(tmp_path):
    _, keys, tensors = made("qwen3", tmp_path)
    keys["qwen3.attention.head_count_kv"] = [2, 4]
    (tmp_path / "m.gguf").write_bytes(gguf.file_bytes(keys, tensors))
    refused(
        "export",
        "--model-name",
        tmp_path / "m.gguf",
        "-o",
        tmp_path / "c",
        code=3,
        names=["other values in some layers"],
    )
    keys["qwen3.attention.head_count_kv"] = [2, 2]
    (tmp_path / "m.gguf").write_bytes(gguf.file_bytes(keys, tensors))
    invar("export", "--model-name", tmp_path / "m.gguf", "-o", tmp_path / "c")
    assert Path(tmp_path / "c/model.onnx").exists()
