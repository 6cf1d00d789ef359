"""Checkpoints with latent attention as llama.cpp's converter writes them (spec/weights.md
weights.12, weights.13)."""

import re

import numpy as np

NAMES = {
    "self_attn.q_a_proj": "attn_q_a",
    "self_attn.q_a_layernorm": "attn_q_a_norm",
    "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_b_proj": "attn_kv_b",
    "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
    "mlp.shared_experts.up_proj": "ffn_up_shexp",
    "mlp.shared_experts.down_proj": "ffn_down_shexp",
}


def metadata(config, scaling):
    rank, turned = config["kv_lora_rank"], config["qk_rope_head_dim"]
    sigmoid = config["model_type"] in ("deepseek_v3", "glm4_moe_lite")
    out = {
        "attention.head_count_kv": 1,
        "attention.kv_lora_rank": rank,
        "attention.key_length": rank + turned,
        "attention.value_length": rank,
        "attention.key_length_mla": config["qk_nope_head_dim"] + turned,
        "attention.value_length_mla": config["v_head_dim"],
        "rope.dimension_count": turned,
        "leading_dense_block_count": config.get("first_k_dense_replace", 0),
        "expert_feed_forward_length": config.get("moe_intermediate_size", 44),
        "expert_shared_count": config.get("n_shared_experts", 0),
    }
    if config["model_type"].startswith("glm4"):
        out["attention.layer_norm_rms_epsilon"] = 1e-5
    if config.get("q_lora_rank"):
        out["attention.q_lora_rank"] = config["q_lora_rank"]
    if "n_routed_experts" in config:
        out["expert_count"] = config["n_routed_experts"]
        out["expert_used_count"] = config["num_experts_per_tok"]
        out["expert_weights_norm"] = config.get("norm_topk_prob", sigmoid)
        scale = {"glm4_moe_lite": 1.8, "deepseek_v2": 1.0}.get(config["model_type"])
        out["expert_weights_scale"] = config.get("routed_scaling_factor", scale)
        if "scoring_func" in config or sigmoid:
            out["expert_gating_func"] = 2 if sigmoid else 1
        if "n_group" in config:
            out["expert_group_count"] = config["n_group"]
            out["expert_group_used_count"] = config["topk_group"]
    if scaling:
        out["rope.scaling.yarn_log_multiplier"] = 0.1 * scaling["mscale_all_dim"]
        out["rope.scaling.yarn_beta_fast"] = float(scaling["beta_fast"])
        out["rope.scaling.yarn_beta_slow"] = float(scaling["beta_slow"])
    return out


def tensors(stored, config, whole=False):
    """kv_b_proj is keys, whose rows and columns are exchanged, and values, unless `whole`."""
    out = {}
    heads, rank = config["num_attention_heads"], config["kv_lora_rank"]
    for name, (kind, shape, raw) in stored.items():
        found = re.match(r"model\.layers\.(\d+)\.(.*)", name)
        if found and int(found[1]) >= config["num_hidden_layers"]:
            continue  # of a layer that drafts
        layer = f"blk.{found[1]}." if found else ""
        if name.endswith("e_score_correction_bias"):
            out[layer + "exp_probs_b.bias"] = (kind, shape, raw)
        elif name.endswith("kv_b_proj.weight") and not whole:
            both = np.frombuffer(raw, "<f4").reshape(heads, -1, rank)
            keys = np.ascontiguousarray(both[:, : config["qk_nope_head_dim"]].swapaxes(1, 2))
            values = np.ascontiguousarray(both[:, config["qk_nope_head_dim"] :])
            for part, x in (("k", keys), ("v", values)):
                out[f"{layer}attn_{part}_b.weight"] = ("F32", list(x.shape), x.tobytes())
        else:
            out[name] = (kind, shape, raw)
    return out
