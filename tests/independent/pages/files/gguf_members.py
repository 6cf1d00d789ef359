"""gguf.5: the members of config.json that some architectures have. `keys` are those of
gguf_config.py."""


def expert(keys, kind, inner):
    """gguf.5: the rows of `expert_count`"""
    count = "num_local_experts" if kind in ("mixtral", "gpt_oss") else "num_experts"
    found = {
        count: keys.size("expert_count"), "num_experts_per_tok": keys.size("expert_used_count")
    }  # fmt: skip
    if kind == "mixtral":
        return found
    width = "intermediate_size" if kind == "gpt_oss" else "moe_intermediate_size"
    found |= keys.sizes(**{width: "expert_feed_forward_length"})
    if kind == "gpt_oss":
        return found
    if inner == 0:
        found["intermediate_size"] = keys.size("expert_feed_forward_length")
    if kind != "qwen3_5_moe_text":
        found["norm_topk_prob"] = kind != "qwen2_moe"
    if kind != "qwen3_moe":
        found["shared_expert_intermediate_size"] = keys.size("expert_shared_feed_forward_length")
    return found


def delta(keys):
    heads = keys.size("ssm.time_step_rank")
    return {
        "linear_conv_kernel_dim": keys.size("ssm.conv_kernel"),
        "linear_num_key_heads": keys.size("ssm.group_count"),
        "linear_key_head_dim": keys.size("ssm.state_size"),
        "linear_num_value_heads": heads,
        "linear_value_head_dim": keys.size("ssm.inner_size") // heads,
        "full_attention_interval": keys.size("full_attention_interval") or 4,
        "num_hidden_layers": keys.size("block_count") - keys.size("nextn_predict_layers"),
    }


def own(keys, config):
    """gguf.5: granite, phi3, gpt-oss, gemma to gemma3"""
    found, layers = {}, config["num_hidden_layers"]
    if keys.name == "granite":
        found |= keys.numbers(
            attention_multiplier="attention.scale", embedding_multiplier="embedding_scale",
            residual_multiplier="residual_scale", logits_scaling="logit_scale",
        )  # fmt: skip
    if keys.name in ("phi3", "gpt-oss", "gemma", "gemma2", "gemma3"):
        found |= keys.sizes(sliding_window="attention.sliding_window")
    if keys.name in ("gemma2", "gemma3"):
        by_width = layers == (46 if keys.name == "gemma2" else 62)
        width = config["hidden_size"] / config["num_attention_heads"]
        found["query_pre_attn_scalar"] = width if by_width else float(config["head_dim"])
        caps = ["final_logit_softcapping"] + ["attn_logit_softcapping"] * (keys.name == "gemma2")
        found |= keys.numbers(**{name: name for name in caps})
    if keys.name == "gemma3":
        found["rope_local_base_freq"] = float(keys.get("rope.freq_base_swa", 10000))
        found |= keys.sizes(sliding_window_pattern="attention.sliding_window_pattern")
    return found


def latent(keys, kind, heads):
    """gguf.5: deepseek2"""
    mla = "_mla" if keys.get("attention.key_length_mla") is not None else ""
    turned = keys.size("rope.dimension_count")
    found = {
        "num_key_value_heads": heads,
        "kv_lora_rank": keys.size("attention.kv_lora_rank"),
        "q_lora_rank": keys.size("attention.q_lora_rank") or None,
        "qk_rope_head_dim": turned,
        "qk_nope_head_dim": keys.size(f"attention.key_length{mla}") - turned,
        "v_head_dim": keys.size(f"attention.value_length{mla}"),
        "num_hidden_layers": keys.size("block_count") - keys.size("nextn_predict_layers"),
    }
    if kind == "youtu":
        return found
    v3, groups = kind == "deepseek_v3", keys.size("expert_group_count")
    found |= {
        "n_routed_experts": keys.size("expert_count"),
        "num_experts_per_tok": keys.size("expert_used_count"),
        "moe_intermediate_size": keys.size("expert_feed_forward_length"),
        "n_shared_experts": keys.size("expert_shared_count"),
        "routed_scaling_factor": float(keys.get("expert_weights_scale", 1)),
        "norm_topk_prob": keys.get("expert_weights_norm", False),
        "first_k_dense_replace": keys.size("leading_dense_block_count"),
        "scoring_func": "sigmoid" if v3 else "softmax",
        "topk_method": "noaux_tc" if v3 else "group_limited_greedy" if groups > 1 else "greedy",
    }
    if groups > 1:
        found |= {"n_group": groups, "topk_group": keys.size("expert_group_used_count")}
    elif v3:
        found |= {"n_group": 1, "topk_group": 1}
    return found | ({"num_nextn_predict_layers": 0} if v3 else {})


def gemma4(keys, heads):
    tensors, layers = keys.file.tensors, keys.size("block_count")
    windows = [bool(w) for w in keys.each("attention.sliding_window_pattern", layers)]
    kv = keys.each("attention.head_count_kv", layers)
    inner = keys.each("feed_forward_length", layers)
    shared, wide = keys.size("attention.shared_kv_layers"), keys.size("attention.key_length")
    same = any(
        not w and f"blk.{i}.attn_v.weight" not in tensors
        for i, w in enumerate(windows[: layers - shared])
    )
    narrow_kv = ([heads] + [g for g, w in zip(kv, windows) if w])[-1]
    other_kv = [g for g, w in zip(kv, windows) if not w]
    ones = keys.floats("rope_freqs.weight").count(1.0)
    found = {
        "layer_types": ["sliding_attention" if w else "full_attention" for w in windows],
        "num_kv_shared_layers": shared,
        "attention_k_eq_v": same,
        "num_key_value_heads": narrow_kv,
        "intermediate_size": inner[0],
        "use_double_wide_mlp": inner[-1] != inner[0],
        "head_dim": keys.size("attention.key_length_swa"),
        "global_head_dim": wide,
        "sliding_window": keys.size("attention.sliding_window"),
        "hidden_size_per_layer_input": keys.size("embedding_length_per_layer_input"),
        "rope_parameters": {
            "full_attention": {
                "rope_type": "proportional",
                "rope_theta": float(keys.get("rope.freq_base", 1e6)),
                "partial_rotary_factor": 2 * ones / wide,
            },
            "sliding_attention": {
                "rope_type": "default", "rope_theta": float(keys.get("rope.freq_base_swa", 1e4))
            },
        },
    }  # fmt: skip
    if same and other_kv and other_kv[-1] != narrow_kv:
        found["num_global_key_value_heads"] = other_kv[-1]
    if "per_layer_token_embd.weight" in tensors:
        found["vocab_size_per_layer_input"] = tensors["per_layer_token_embd.weight"][0][0]
    found |= keys.numbers(final_logit_softcapping="final_logit_softcapping")
    if keys.size("expert_count"):
        found |= {
            "enable_moe_block": True,
            "num_experts": keys.size("expert_count"),
            "top_k_experts": keys.size("expert_used_count"),
            "moe_intermediate_size": keys.size("expert_feed_forward_length"),
        }
    return found
