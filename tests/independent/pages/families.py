"""spec/families.md for qwen3_next, falcon_h1 and mamba2: the switches of spec/decoder.md by the
keys of config.json, and the names of tensors."""

import math

from arithmetic.library import f32

NAMES = {  # families.6 and families.11: what differs from Llama
    "qwen3_next": {},
    "falcon_h1": {
        "post_attention_layernorm": "pre_ff_layernorm",
        "mlp": "feed_forward",
        "norm": "final_layernorm",
    },
    "mamba2": {
        "prefix": "backbone.",
        "embed_tokens": "embeddings",
        "input_layernorm": "norm",
        "norm": "norm_f",
        "mamba": "mixer",
    },
}


def switches(config):
    """The switches of decoder.2 that are not neutral, and those of decoder.13 that always stand."""
    config = {key: value for key, value in config.items() if value is not None}
    family = config["model_type"]
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    found = {
        "family": family, "hidden_size": hidden, "num_hidden_layers": layers,
        "tie_word_embeddings": config.get("tie_word_embeddings", False),
        "vocab_size": config["vocab_size"],
    }  # fmt: skip
    if family == "mamba2":  # families.11
        found |= dict.fromkeys(
            ["head_dim", "intermediate_size", "num_attention_heads", "num_key_value_heads"], 0
        )
        found |= {"norm_epsilon": f32(config.get("layer_norm_epsilon", 1e-5)), "block": "single"}
        return found | state_space(
            config, "num_heads", "head_dim", "n_groups", 8, "state_size", 128
        )
    heads = config["num_attention_heads"]
    found |= {
        "intermediate_size": config["intermediate_size"], "num_attention_heads": heads,
    }  # fmt: skip
    if family == "falcon_h1":
        found |= {
            "num_key_value_heads": config.get("num_key_value_heads", heads),
            "head_dim": config.get("head_dim", hidden // heads),
            "norm_epsilon": f32(config.get("rms_norm_eps", 1e-5)),
            "qkv_bias": config.get("attention_bias", False),
            "output_bias": config.get("attention_bias", False),
            "mlp_bias": config.get("mlp_bias", False),
        }
        return found | falcon(config)
    found |= {
        "num_key_value_heads": config.get("num_key_value_heads", 2),
        "head_dim": config.get("head_dim", 256),
        "norm_epsilon": f32(config.get("rms_norm_eps", 1e-6)),
        "qkv_bias": config.get("attention_bias", False),
        "output_bias": config.get("attention_bias", False),
    }
    return found | qwen(config, found)


def qwen(config, found):
    """qwen3_next: families.3, families.4, families.8 and families.12"""
    every = config.get("full_attention_interval", 4)
    kinds = config.get("layer_types") or [
        "linear_attention" if (i + 1) % every else "full_attention"
        for i in range(found["num_hidden_layers"])
    ]
    dense = config.get("mlp_only_layers", [])
    step, experts = config.get("decoder_sparse_step", 1), config.get("num_experts", 512)
    sparse = [experts and (i + 1) % step == 0 and i not in dense for i in range(len(kinds))]
    found = {
        "norm_offset": True, "qk_norm": "head", "attention_gate": True,
        "layer_mixers": "".join("d" if k == "linear_attention" else "a" for k in kinds),
        "delta_key_heads": config.get("linear_num_key_heads", 16),
        "delta_value_heads": config.get("linear_num_value_heads", 32),
        "delta_key_dim": config.get("linear_key_head_dim", 128),
        "delta_value_dim": config.get("linear_value_head_dim", 128),
        "delta_taps": config.get("linear_conv_kernel_dim", 4),
        "delta_norm_epsilon": found["norm_epsilon"], "delta_layout": "by_key_head",
        "rotary_dim": partial(config, found["head_dim"], 0.25),
    }  # fmt: skip
    if any(sparse):
        found |= {
            "layer_experts": "".join("e" if s else "d" for s in sparse),
            "num_experts": experts,
            "num_experts_per_tok": config.get("num_experts_per_tok", 10),
            "moe_intermediate_size": config.get("moe_intermediate_size", 512),
            "norm_topk_prob": config.get("norm_topk_prob", True),
            "shared_intermediate_size": config.get("shared_expert_intermediate_size", 512),
            "shared_expert_gate": True,
        }
    return found


def partial(config, head, absent):
    """families.4: `rotary_dim` in the row of phi"""
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    f = rope.get("partial_rotary_factor", config.get("partial_rotary_factor", absent))
    return math.floor(head * f)


def falcon(config):
    """falcon_h1: families.11"""
    found = state_space(
        config, "mamba_n_heads", "mamba_d_head", "mamba_n_groups", 1, "mamba_d_state", 256
    )
    gate, down = config.get("mlp_multipliers", [1, 1])
    norm = config.get("mamba_rms_norm", False)
    return found | {
        "layer_mixers": "b" * config["num_hidden_layers"],
        "ssm_norm": norm,
        "ssm_norm_before_gate": norm and config.get("mamba_norm_before_gate", True),
        "ssm_out_bias": config.get("projectors_bias", False),
        "ssm_scales": [f32(x) for x in config.get("ssm_multipliers", [1] * 5)],
        "mlp_gate_scale": f32(gate),
        "mlp_scale": f32(down),
        **{
            name: f32(config.get(key, 1))
            for name, key in {
                "ssm_in_scale": "ssm_in_multiplier",
                "ssm_out_scale": "ssm_out_multiplier",
                "attention_in_scale": "attention_in_multiplier",
                "attention_out_scale": "attention_out_multiplier",
                "key_scale": "key_multiplier",
                "embedding_scale": "embedding_multiplier",
                "logits_scale": "lm_head_multiplier",
            }.items()
        },
    }


def state_space(config, heads, head, groups, absent_groups, state, absent_state):
    """families.11: the sizes of state spaces, by their keys"""
    mamba2 = config["model_type"] == "mamba2"
    of = "" if mamba2 else "mamba_"
    z = config.get(heads, 128)
    width = config.get("expand" if mamba2 else "mamba_expand", 2) * config["hidden_size"]
    inner = width if mamba2 else config.get("mamba_d_ssm", width)
    bias = config.get("use_bias" if mamba2 else "mamba_proj_bias", False)
    low, high = config.get("time_step_limit", [0.0, math.inf])
    return {
        "layer_mixers": "s" * config["num_hidden_layers"],
        "ssm_num_heads": z,
        "ssm_head_dim": config.get(head, inner // z),
        "ssm_num_groups": config.get(groups, absent_groups),
        "ssm_state_size": config.get(state, absent_state),
        "ssm_conv_width": config.get("conv_kernel" if mamba2 else of + "d_conv", 4),
        "ssm_conv_bias": config.get("use_conv_bias" if mamba2 else of + "conv_bias", True),
        "ssm_in_bias": bias,
        "ssm_out_bias": bias,
        "ssm_dt_minimum": f32(low),
        "ssm_dt_maximum": f32(high) if math.isfinite(high) else 0.0,
    }


SCALES = (
    "embedding_scale logits_scale key_scale attention_in_scale attention_out_scale mlp_gate_scale "
    "mlp_scale ssm_in_scale ssm_out_scale"
).split()
NEUTRAL = dict.fromkeys(SCALES, 1) | {
    "block": "pre", "qk_norm": "none", "ssm_norm": True, "ssm_num_groups": 1,
    "ssm_scales": [1] * 5,
}  # fmt: skip
ALWAYS = set(
    "family head_dim hidden_size intermediate_size norm_epsilon num_attention_heads "
    "num_hidden_layers num_key_value_heads tie_word_embeddings vocab_size".split()
)
