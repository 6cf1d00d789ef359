"""gguf.3, gguf.4 and weights.12: config.json of a GGUF file."""

import hashlib
import math
import struct

from pages.files import gguf_members as members
from pages.files.blocks import TYPES
from pages.files.gguf_text import end_tokens

# gguf.3: architecture -> model_type and class; two of them depend on keys.
FAMILIES = {
    "llama": ("llama", "Llama"), "qwen2": ("qwen2", "Qwen2"), "qwen3": ("qwen3", "Qwen3"),
    "qwen2moe": ("qwen2_moe", "Qwen2Moe"), "qwen3moe": ("qwen3_moe", "Qwen3Moe"),
    "qwen3next": ("qwen3_next", "Qwen3Next"), "qwen35": ("qwen3_5_text", "Qwen3_5"),
    "qwen35moe": ("qwen3_5_moe_text", "Qwen3_5Moe"), "gemma": ("gemma", "Gemma"),
    "gemma2": ("gemma2", "Gemma2"), "gemma3": ("gemma3_text", "Gemma3"),
    "gemma4": ("gemma4_text", "Gemma4"), "phi3": ("phi3", "Phi3"),
    "granite": ("granite", "Granite"), "olmo2": ("olmo2", "Olmo2"), "gpt-oss": ("gpt_oss", "GptOss"),
}  # fmt: skip
HYBRID = ("qwen3next", "qwen35", "qwen35moe")


class Keys:
    """The keys of a file's architecture."""

    def __init__(self, file):
        self.file, self.name = file, file.keys["general.architecture"]

    def get(self, name, absent=None):
        return self.file.keys.get(f"{self.name}.{name}", absent)

    def size(self, name, absent=0):
        """One size, or the first of a list of equal ones."""
        found = self.get(name, absent)
        return found[0] if isinstance(found, list) else found

    def each(self, name, layers):
        """A size of each layer."""
        found = self.get(name)
        return found if isinstance(found, list) else [found] * layers

    def numbers(self, **members):
        """member = key: those that are there, as binary64."""
        return {m: float(self.get(key)) for m, key in members.items() if self.get(key) is not None}

    def sizes(self, **members):
        """member = key: those that are there and not 0."""
        return {m: self.size(key) for m, key in members.items() if self.size(key)}

    def family(self):
        """weights.12"""
        experts = self.size("expert_count")
        if self.name == "llama" and experts:
            return "mixtral", "Mixtral"
        if self.name != "deepseek2":
            return FAMILIES[self.name]
        if not experts:
            return "youtu", "Youtu"
        glm = self.file.tensors["token_embd.weight"][0][0] == 154880
        sigmoid = (self.size("expert_gating_func") or (2 if glm else 1)) == 2
        return ("deepseek_v3", "DeepseekV3") if sigmoid else ("deepseek_v2", "DeepseekV2")

    def floats(self, tensor):
        _, _, raw = self.file.tensors[tensor]
        return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def rope_members(keys, head):
    """gguf.4, and the members of gguf.3 that follow the rotary embedding"""
    found = {"rope_theta": float(keys.get("rope.freq_base", 10000))}
    kind = keys.get("rope.scaling.type", "none")
    original = {
        "original_max_position_embeddings": keys.size("rope.scaling.original_context_length")
    }
    scaling = None
    if "rope_freqs.weight" in keys.file.tensors:
        factor = float(math.floor(max(keys.floats("rope_freqs.weight")) + 0.5))
        scaling = {
            "rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
        }  # fmt: skip
    elif "rope_factors_long.weight" in keys.file.tensors:
        scaling = {"type": "longrope"}
        for length in ("long", "short"):
            scaling[f"{length}_factor"] = keys.floats(f"rope_factors_{length}.weight")
        found |= original
    elif kind != "none":
        scaling = {"rope_type": kind, "factor": float(keys.get("rope.scaling.factor", 1))}
        if kind == "yarn":
            at = "rope.scaling.yarn_"
            scaling |= original
            scaling |= keys.numbers(beta_fast=f"{at}beta_fast", beta_slow=f"{at}beta_slow")
            tenth = keys.get(f"{at}log_multiplier")
            if keys.name == "deepseek2" and tenth is not None:
                scaling["mscale"] = scaling["mscale_all_dim"] = round(tenth * 1e6) / 1e5
        if keys.name == "gpt-oss":
            scaling["truncate"] = False
    if scaling:
        found["rope_scaling"] = scaling
    turned = keys.size("rope.dimension_count")
    if turned and keys.name != "deepseek2" and (turned != head or keys.name in HYBRID):
        found["partial_rotary_factor"] = turned / head
    return found


def config_of(file, files):
    """gguf.3"""
    keys, tensors = Keys(file), file.tensors
    kind, stem = keys.family()
    heads, hidden = keys.size("attention.head_count"), keys.size("embedding_length")
    head = keys.size("attention.key_length") or hidden // heads
    config = {
        "architectures": [f"{stem}ForCausalLM"],
        "model_type": kind,
        "vocab_size": tensors["token_embd.weight"][0][0],
        "hidden_size": hidden,
        "intermediate_size": keys.size("feed_forward_length"),
        "num_hidden_layers": keys.size("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": keys.size("attention.head_count_kv") or heads,
        "head_dim": head,
        "max_position_embeddings": keys.size("context_length"),
        "rms_norm_eps": float(keys.get("attention.layer_norm_rms_epsilon", 1e-5)),
        "tie_word_embeddings": "output.weight" not in tensors,
    }
    biased = any(name.endswith(".attn_q.bias") for name in tensors)
    if biased and kind not in ("qwen2", "qwen2_moe"):
        config["attention_bias"] = True
    if "blk.0.ffn_up.bias" in tensors:
        config["mlp_bias"] = True
    if keys.name == "gemma4":
        config |= members.gemma4(keys, heads)
    elif keys.name == "deepseek2":
        config |= members.latent(keys, kind, heads) | rope_members(keys, head)
        del config["head_dim"]
    else:
        if keys.size("expert_count"):
            config |= members.expert(keys, kind, config["intermediate_size"])
        config |= members.delta(keys) if keys.name in HYBRID else members.own(keys, config)
        config |= rope_members(keys, head)
        if keys.name == "qwen35moe":
            del config["intermediate_size"]
    if "tokenizer.ggml.bos_token_id" in file.keys:
        config["bos_token_id"] = file.keys["tokenizer.ggml.bos_token_id"]
    if ends := end_tokens(file.keys):
        config["eos_token_id"] = ends
    config["gguf"] = {
        "architecture": keys.name,
        "files": files,
        "formats": {TYPES[kind][0]: TYPES[kind][1] for _, kind, _ in tensors.values()},
        "header_sha256": hashlib.sha256(file.header).hexdigest(),
    }
    return config
