"""Models of every architecture that is read from GGUF files have the program and the logits of the
checkpoint that they were made of (spec/weights.md weights.12 to weights.14)."""

import json
import math
import re
import sys
from pathlib import Path

import gguf_files as gguf
import numpy as np
import pytest
from conftest import ROOT, invar, refused

sys.path.insert(0, str(ROOT / "tests/families"))
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
    "gemma": ("gemma", {}),
    "gemma2": ("gemma2", {"query_pre_attn_scalar": 12}),
    "gemma3": ("gemma3", {}),
    "gemma3-scaled": ("gemma3", {"query_pre_attn_scalar": 12}),
    "phi3": ("phi3", {}),
    "phi3-partial": ("phi3", {}),
    "phi3-longrope": ("phi3", {}),
    "granite": ("granite", {}),
    "granite-biases": ("granite", {}),
    "olmo2": ("olmo2", {}),
    "gpt_oss": ("gpt-oss", {}),
}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"rope_type": "llama3", "original_max_position_embeddings": 8192}
OWN_NAMES = {
    "gpt-oss": {"mlp.router": "ffn_gate_inp", "post_attention_layernorm": "post_attention_norm"},
    "gemma2": {"pre_feedforward_layernorm": "ffn_norm"},
    "gemma3": {"pre_feedforward_layernorm": "ffn_norm"},
    "llama": {"block_sparse_moe.gate": "ffn_gate_inp"},
}
POST_NORMS = {"post_attention_layernorm": "post_attention_norm"}
POST_NORMS |= {"post_feedforward_layernorm": "post_ffw_norm"}


def head_dim(config):
    usual = {"qwen3": 128, "gemma": 256}
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
        "rms_norm_eps": config.get("rms_norm_eps", epsilon),
    }
    theta = 1e6 if kind in ("gemma3_text",) else 10000.0
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
        if key in config:
            out[a + name] = config[key]
    if kind == "gpt_oss":
        out[a + "expert_feed_forward_length"] = config["intermediate_size"]
    if kind in ("gemma2", "gemma3_text", "phi3", "gpt_oss") and config.get("sliding_window"):
        out[a + "attention.sliding_window"] = config["sliding_window"]
    if kind == "gemma2":
        out[a + "attn_logit_softcapping"], out[a + "final_logit_softcapping"] = 50.0, 30.0
    if "sliding_window_pattern" in config:
        out[a + "attention.sliding_window_pattern"] = config["sliding_window_pattern"]
    return out


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


def tensors_of(folder, config, architecture):
    own = OWN_NAMES.get(architecture, {})
    if architecture.startswith("gemma2") or architecture in ("gemma3", "olmo2"):
        own = {**own, **POST_NORMS}
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    out = {}
    for name, (kind, shape, raw) in stack_experts(gguf.read_safetensors(folder)).items():
        if name.startswith("blk."):
            out[name] = (kind, shape, raw)
            continue
        layer, part = name.split(".")[2:3], name.split(".")[-2]
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
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            raw = (np.frombuffer(raw, "<f4") + np.float32(1)).astype("<f4").tobytes()
        if name.endswith("shared_expert_gate.weight"):
            shape = shape[1:]
        out[gguf.gguf_name(name, **own)] = (kind, shape, raw)
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "llama3":
        out["rope_freqs.weight"] = ("F32", [head_dim(config) // 2], llama3_factors(config, scaling))
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
    architecture, changes = CASES[name]
    vector = VECTORS[name]
    config = {**vector["config"], **changes}
    if name == "llama":
        config["rope_scaling"] = LLAMA3
    write(folder / "model", config, vector["shapes"], vector["seed"])
    keys = {**metadata(config, architecture), **TOKENIZER}
    tensors = tensors_of(folder / "model", config, architecture)
    (folder / "m.gguf").write_bytes(gguf.file_bytes(keys, tensors))
    return vector, keys, tensors


def compiled(model, out, *options):
    invar("export", "--model-name", model, "-o", out, *options)
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
    if CASES[name][0].startswith("gemma"):  # the 1 of norms is in the weights
        assert "norm_offset" in their_program and "norm_offset" not in program
        norms = r"(?m)^.*(norm_offset|norm\.weight).*\n"
        program, their_program = (re.sub(norms, "", text) for text in (program, their_program))
    assert program == their_program


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
