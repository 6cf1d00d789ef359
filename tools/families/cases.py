"""The small checkpoints that stand for the families: config.json as files of the field have it,
older and newer spellings, and settings beyond the defaults. Every setting that a family covers is
in at least one of them."""

# Long because one table is one table.

SIZES = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 44,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


def case(model_type, architecture, **settings):
    config = {"model_type": model_type, "architectures": [architecture], **SIZES, **settings}
    return {k: v for k, v in config.items() if v is not ...}


def llama(**s):
    return case("llama", "LlamaForCausalLM", **s)


def mistral(**s):
    return case("mistral", "MistralForCausalLM", rms_norm_eps=1e-5, **s)


def qwen2(**s):
    return case("qwen2", "Qwen2ForCausalLM", **s)


def qwen3(**s):
    return case("qwen3", "Qwen3ForCausalLM", head_dim=12, **s)


def gemma(**s):
    return case("gemma", "GemmaForCausalLM", head_dim=12, **s)


def gemma2(**s):
    return case("gemma2", "Gemma2ForCausalLM", head_dim=12, query_pre_attn_scalar=10, **s)


def gemma3(**s):
    return case("gemma3_text", "Gemma3ForCausalLM", head_dim=12, **s)


def phi3(**s):
    return case("phi3", "Phi3ForCausalLM", **s)


def gpt(model_type, architecture, **s):
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    absent = dict.fromkeys((*names, "intermediate_size", "max_position_embeddings"), ...)
    return case(model_type, architecture, **absent, **sizes, **s)


def opt(**s):
    return case(
        "opt", "OPTForCausalLM", intermediate_size=..., num_key_value_heads=..., ffn_dim=44, **s
    )


def xglm(**s):
    sizes = {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 44}
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    absent = dict.fromkeys((*names, "intermediate_size"), ...)
    return case("xglm", "XGLMForCausalLM", **absent, **sizes, **s)


def recurrent_gemma(**s):
    sizes = {"num_hidden_layers": 4, "num_key_value_heads": 1, "attention_window_size": 12}
    sizes |= {"max_position_embeddings": ..., "rope_theta": 10000.0}
    return case("recurrent_gemma", "RecurrentGemmaForCausalLM", **{**sizes, **s})


def falcon(**s):
    return case("falcon", "FalconForCausalLM", intermediate_size=..., num_key_value_heads=..., **s)


def moe(model_type, architecture, **s):
    sizes = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 20}
    return case(model_type, architecture, **{**sizes, **s})


def bloom(**s):
    sizes = {"hidden_size": 32, "n_layer": 2, "n_head": 4, "seq_length": 128}
    names = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    absent = dict.fromkeys((*names, "intermediate_size", "max_position_embeddings"), ...)
    return case("bloom", "BloomForCausalLM", **{**absent, **sizes, **s})


def mpt(**s):
    sizes = {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 128}
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    absent = dict.fromkeys((*names, "intermediate_size", "max_position_embeddings"), ...)
    return case("mpt", "MptForCausalLM", **{**absent, **sizes, **s})


def whole(model_type, architecture, text, **s):
    """A model of images and text, with a small vision tower."""
    text = {
        k: v for k, v in text.items() if k not in ("architectures", "bos_token_id", "eos_token_id")
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 20,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 28,
        "patch_size": 14,
    }
    ids = {k: SIZES[k] for k in ("bos_token_id", "eos_token_id")}
    return {
        "model_type": model_type,
        "architectures": [architecture],
        "text_config": text,
        "vision_config": {**vision, **s.pop("vision", {})},
        "image_token_index": 60,
        **ids,
        **s,
    }


def neox(**s):
    return case("gpt_neox", "GPTNeoXForCausalLM", num_key_value_heads=..., **s)


def latent(model_type, architecture, **s):
    sizes = {"num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 24}
    sizes |= {"qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 10}
    return case(model_type, architecture, **{**sizes, **s})


# Positions for more than one chunk of linear_attention.2.
LONG = {"max_position_embeddings": 256}


def lfm2(**s):
    return case("lfm2", "Lfm2ForCausalLM", **{"num_hidden_layers": 3, **LONG, **s})


STATES = {"mamba_n_heads": 4, "mamba_d_state": 6, "mamba_expand": 2, "mamba_d_conv": 4}


def bamba(model_type="bamba", architecture="BambaForCausalLM", **s):
    return case(model_type, architecture, **{**STATES, "num_hidden_layers": 3, **LONG, **s})


def mamba2(**s):
    kept = ("vocab_size", "hidden_size", "num_hidden_layers", "bos_token_id", "eos_token_id")
    unread = {k: ... for k in SIZES if k not in kept}
    sizes = {"num_heads": 4, "head_dim": 16, "state_size": 6, "n_groups": 2, "expand": 2}
    return case("mamba2", "Mamba2ForCausalLM", **{**unread, **sizes, **s})


def nemotron_h(**s):
    sizes = {"mamba_num_heads": 4, "mamba_head_dim": 10, "ssm_state_size": 6, "n_groups": 2}
    return case("nemotron_h", "NemotronHForCausalLM", head_dim=12, **{**sizes, **LONG, **s})


def zamba2(**s):
    sizes = {"mamba_d_state": 6, "mamba_expand": 2, "mamba_d_conv": 4, "n_mamba_heads": 4}
    sizes |= {"mamba_ngroups": 1, "num_key_value_heads": ...}
    return case("zamba2", "Zamba2ForCausalLM", **{**sizes, **LONG, **s})


def granite4(**s):
    """Without state-space layers where nothing else is said. Their sizes have to fit all the
    same."""
    sizes = {"layer_types": ["attention"] * 2, "mamba_n_heads": 8, "logits_scaling": 6.0}
    sizes |= {"embedding_multiplier": 2.0, "residual_multiplier": 0.5, "attention_multiplier": 0.25}
    return case("granitemoehybrid", "GraniteMoeHybridForCausalLM", **{**sizes, **s})


def minicpm3(**s):
    return latent("minicpm3", "MiniCPM3ForCausalLM", **{"dim_model_base": 16, **s})


EXPERTS = {
    "num_hidden_layers": 3,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 20,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
}


def deepseek2(**s):
    return latent("deepseek_v2", "DeepseekV2ForCausalLM", **{**EXPERTS, **s})


def deepseek3(**s):
    sizes = {**EXPERTS, "n_shared_experts": 1, "n_group": 4, "topk_group": 2}
    return latent("deepseek_v3", "DeepseekV3ForCausalLM", **{**sizes, **s})


def indexed(model_type, architecture, **s):
    sizes = {**EXPERTS, "n_shared_experts": 1, "index_topk": 96, "index_n_heads": 2}
    return latent(model_type, architecture, **{**sizes, "index_head_dim": 8, **s})


def longcat(**s):
    absent = dict.fromkeys(("intermediate_size", "num_hidden_layers"), ...)
    sizes = {"num_layers": 2, "ffn_hidden_size": 44, "expert_ffn_hidden_size": 20, "moe_topk": 3}
    sizes |= {"n_routed_experts": 6, "zero_expert_num": 3, "zero_expert_type": "identity"}
    sizes |= {"mla_scale_q_lora": True, "mla_scale_kv_lora": True, "head_dim": 4}
    return latent("longcat_flash", "LongcatFlashForCausalLM", **{**absent, **sizes, **s})


def youtu(**s):
    # transformers overwrites the embedding of the padding token.
    return latent("youtu", "YoutuForCausalLM", pad_token_id=None, **s)


MSCALE = {
    "type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 32,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 0.707,
    "mscale_all_dim": 0.707,
}

# With steps of positions as short as the prompts here.
GROWING = {
    "type": "yarn",
    "rope_theta": 1e4,
    "factor": 16.0,
    "original_max_position_embeddings": 9,
    "max_position_embeddings": 128,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}


def gemma4_unified(**s):
    unread = dict.fromkeys(("hidden_size_per_layer_input", "vocab_size_per_layer_input"), ...)
    names = {"model_type": "gemma4_unified_text", "architectures": ["Gemma4UnifiedForCausalLM"]}
    return {k: v for k, v in (gemma4(**unread, **s) | names).items() if v is not ...}


def llama4(**s):
    sizes = {"num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 36}
    return case("llama4_text", "Llama4ForCausalLM", **{**sizes, "head_dim": 12, **s})


def gemma4(**s):
    sizes = {"num_hidden_layers": 3, "head_dim": 8, "global_head_dim": 12, "sliding_window": 6}
    sizes |= {"hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 61}
    sizes |= {"final_logit_softcapping": 2.0, "use_bidirectional_attention": "vision"}
    ropes = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        "full_attention": {
            "rope_type": "proportional",
            "partial_rotary_factor": 0.5,
            "rope_theta": 1e6,
        },
    }
    return case("gemma4_text", "Gemma4ForCausalLM", **{**sizes, "rope_parameters": ropes, **s})


GEMMA4_VISION = {"num_key_value_heads": 2, "head_dim": 8, "position_embedding_size": 16}
LLAMA4_VISION = {"vision_output_dim": 16, "projector_input_dim": 16, "projector_output_dim": 16}

HYBRID = {"max_position_embeddings": 256, "head_dim": 16}
HYBRID |= {"linear_num_key_heads": 2, "linear_num_value_heads": 4}
HYBRID |= {"linear_key_head_dim": 8, "linear_value_head_dim": 12}
HYBRID_EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 20}
HYBRID_EXPERTS |= {"shared_expert_intermediate_size": 24}


def qwen3_next(**s):
    return case("qwen3_next", "Qwen3NextForCausalLM", **{**HYBRID, **HYBRID_EXPERTS, **s})


def qwen3_5(**s):
    return case("qwen3_5_text", "Qwen3_5ForCausalLM", **{**HYBRID, **s})


def qwen3_5_moe(**s):
    sizes = {**HYBRID, **HYBRID_EXPERTS, "intermediate_size": ...}
    return case("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", **{**sizes, **s})


def olmo_hybrid(**s):
    return case("olmo_hybrid", "OlmoHybridForCausalLM", max_position_embeddings=256, **s)


MROPE = {
    "rope_type": "default",
    "rope_theta": 1e7,
    "partial_rotary_factor": 0.5,
    "mrope_section": [2, 1, 1],
    "mrope_interleaved": True,
}
SMALL_VISION = {"num_heads": 2, "depth": 1, "out_hidden_size": 32, "num_position_embeddings": 16}


def gemma3n(**s):
    sizes = {"num_hidden_layers": 4, "head_dim": 8, "sliding_window": 6, "num_kv_shared_layers": 2}
    sizes |= {"layer_types": ["sliding_attention", "full_attention"] * 2}
    sizes |= {"hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 61, "laurel_rank": 5}
    sizes |= {"activation_sparsity_pattern": [0.95, 0.8, 0.0, 0.0], "altup_num_inputs": 4}
    return case("gemma3n_text", "Gemma3nForCausalLM", **{**sizes, **s})


KDA = {"num_heads": 3, "head_dim": 8, "short_conv_kernel_size": 4}
KDA |= {"full_attn_layers": [2], "kda_layers": [1, 3]}


def kimi_linear(**s):
    ranks = {"q_lora_rank": None, "num_key_value_heads": 4, "kv_lora_rank": 16, "v_head_dim": 10}
    ranks |= {"qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "model_max_length": 256}
    experts = {"num_experts": 8, "num_experts_per_token": 3, "moe_intermediate_size": 20}
    sizes = {"num_hidden_layers": 3, "max_position_embeddings": ..., **ranks, **experts}
    return case("kimi_linear", "KimiLinearForCausalLM", **{**sizes, **s})


def mamba(model_type="mamba", architecture="MambaForCausalLM", **s):
    kept = ("vocab_size", "hidden_size", "num_hidden_layers", "bos_token_id", "eos_token_id")
    sizes = {k: SIZES[k] if k in kept else ... for k in SIZES}
    return case(model_type, architecture, **{**sizes, "state_size": 6, **s})


def jamba(**s):
    sizes = {"num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, **LONG}
    sizes |= {"mamba_d_state": 6, "mamba_dt_rank": 5}
    return case("jamba", "JambaForCausalLM", **{**sizes, **s})


def afmoe(**s):
    sizes = {"num_hidden_layers": 4, "head_dim": 12, "sliding_window": 6, "num_experts": 6}
    sizes |= {"num_experts_per_tok": 2, "moe_intermediate_size": 20, "num_shared_experts": 1}
    return case("afmoe", "AfmoeForCausalLM", **{**sizes, **s})


CASES = {
    "llama": llama(rope_scaling=LLAMA3, rope_theta=5000.0),
    "llama-biases": llama(attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    "mistral-window": mistral(sliding_window=7, rope_theta=10000.0),
    "mistral-without-window": mistral(
        sliding_window=None, head_dim=10, num_key_value_heads=4, rope_theta=1e6
    ),
    "mistral-yarn": mistral(
        sliding_window=None,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 1e6,
            "factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    ),
    "qwen2": qwen2(use_sliding_window=False, sliding_window=16, max_window_layers=1),
    "qwen2-tied-linear": qwen2(
        tie_word_embeddings=True,
        num_key_value_heads=4,
        rope_scaling={"type": "linear", "factor": 2.0},
    ),
    "qwen2-window": qwen2(use_sliding_window=True, sliding_window=6, max_window_layers=1),
    "qwen2-layer-types": qwen2(
        num_hidden_layers=3,
        use_sliding_window=True,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "qwen3": qwen3(rope_theta=1e6, rope_scaling=None),
    "qwen3-bias-tied": qwen3(attention_bias=True, tie_word_embeddings=True, num_key_value_heads=1),
    "qwen3-window-yarn": qwen3(
        use_sliding_window=True,
        sliding_window=6,
        max_window_layers=0,
        rope_scaling={
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    ),
    "gemma": gemma(hidden_act="gelu"),
    "gemma-one-key-head": gemma(
        hidden_act="gelu_pytorch_tanh",
        hidden_activation=None,
        num_key_value_heads=1,
        hidden_size=30,
    ),
    "gemma2": gemma2(sliding_window=6, hidden_act="gelu_pytorch_tanh"),
    "gemma2-without-caps": gemma2(
        sliding_window=6,
        attn_logit_softcapping=None,
        final_logit_softcapping=None,
        num_key_value_heads=4,
        attention_bias=True,
        layer_types=["full_attention", "full_attention"],
    ),
    "gemma2-strong-caps": gemma2(
        sliding_window=9, attn_logit_softcapping=2.0, final_logit_softcapping=1.5
    ),
    "gemma3": gemma3(
        num_hidden_layers=4,
        sliding_window=6,
        sliding_window_pattern=3,
        rope_theta=1e6,
        rope_local_base_freq=10000.0,
        query_pre_attn_scalar=12,
    ),
    "gemma3-scaled": gemma3(
        sliding_window=6,
        sliding_window_pattern=2,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
        query_pre_attn_scalar=21,
        final_logit_softcapping=3.0,
    ),
    "gemma3-new-spelling": gemma3(
        num_hidden_layers=3,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
            "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 500000.0},
        },
        tie_word_embeddings=False,
        attention_bias=True,
    ),
    "phi3": phi3(original_max_position_embeddings=128, rope_scaling=None, sliding_window=11),
    "phi3-partial": phi3(
        partial_rotary_factor=0.75, num_key_value_heads=4, tie_word_embeddings=True
    ),
    "smollm3": case("smollm3", "SmolLM3ForCausalLM", num_hidden_layers=4, rope_theta=5e6),
    "smollm3-window-untied": case(
        "smollm3",
        "SmolLM3ForCausalLM",
        num_hidden_layers=3,
        no_rope_layers=[1, 0, 1],
        use_sliding_window=True,
        sliding_window=6,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=False,
    ),
    "olmo2": case("olmo2", "Olmo2ForCausalLM", rope_theta=5e5),
    "olmo2-biases-tied": case(
        "olmo2",
        "Olmo2ForCausalLM",
        attention_bias=True,
        tie_word_embeddings=True,
        rms_norm_eps=1e-6,
        num_key_value_heads=4,
    ),
    "olmo3": case(
        "olmo3",
        "Olmo3ForCausalLM",
        num_hidden_layers=4,
        sliding_window=6,
        rope_theta=5e5,
        rope_scaling={
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 32,
            "attention_factor": 1.2,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
        },
    ),
    "olmo3-one-rope": case(
        "olmo3",
        "Olmo3ForCausalLM",
        sliding_window=6,
        layer_types=["full_attention", "sliding_attention"],
    ),
    "granite": case(
        "granite",
        "GraniteForCausalLM",
        embedding_multiplier=12.0,
        residual_multiplier=0.22,
        attention_multiplier=0.09,
        logits_scaling=7.0,
        tie_word_embeddings=True,
    ),
    "granite-biases": case(
        "granite", "GraniteForCausalLM", attention_bias=True, mlp_bias=True, rope_theta=1e4
    ),
    "cohere": case("cohere", "CohereForCausalLM", logit_scale=0.25, rope_theta=8e6),
    "cohere-untied-biases": case(
        "cohere", "CohereForCausalLM", attention_bias=True, tie_word_embeddings=False
    ),
    "cohere2": case(
        "cohere2",
        "Cohere2ForCausalLM",
        num_hidden_layers=4,
        sliding_window=6,
        sliding_window_pattern=2,
        rope_theta=5e4,
        logit_scale=1.0,
    ),
    "cohere2-layer-types": case(
        "cohere2",
        "Cohere2ForCausalLM",
        sliding_window=5,
        layer_types=["full_attention", "sliding_attention"],
    ),
    "stablelm": case("stablelm", "StableLmForCausalLM", partial_rotary_factor=0.5),
    "stablelm-parallel-bias": case(
        "stablelm",
        "StableLmForCausalLM",
        use_parallel_residual=True,
        use_qkv_bias=True,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    ),
    "starcoder2": case("starcoder2", "Starcoder2ForCausalLM", sliding_window=7, rope_theta=1e6),
    "starcoder2-without-biases": case(
        "starcoder2", "Starcoder2ForCausalLM", use_bias=False, tie_word_embeddings=False
    ),
    "nemotron": case("nemotron", "NemotronForCausalLM", head_dim=12),
    "nemotron-biases": case(
        "nemotron",
        "NemotronForCausalLM",
        attention_bias=True,
        mlp_bias=True,
        partial_rotary_factor=0.25,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    ),
    "glm": case("glm", "GlmForCausalLM", head_dim=12, partial_rotary_factor=0.5),
    "glm4": case("glm4", "Glm4ForCausalLM", head_dim=8),
    "glm4-without-bias": case(
        "glm4", "Glm4ForCausalLM", head_dim=8, attention_bias=False, tie_word_embeddings=True
    ),
    "ernie4_5": case("ernie4_5", "Ernie4_5ForCausalLM", head_dim=8),
    "ernie4_5-biases": case(
        "ernie4_5", "Ernie4_5ForCausalLM", head_dim=12, use_bias=True, tie_word_embeddings=False
    ),
    "hunyuan": case("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", head_dim=8),
    "hunyuan-biases": case(
        "hunyuan_v1_dense",
        "HunYuanDenseV1ForCausalLM",
        head_dim=12,
        attention_bias=True,
        tie_word_embeddings=True,
        rope_theta=1e5,
    ),
    "phi": case("phi", "PhiForCausalLM", num_key_value_heads=..., partial_rotary_factor=0.5),
    "phi-grouped": case("phi", "PhiForCausalLM", partial_rotary_factor=0.25),
    "gpt_neox": neox(rotary_pct=0.5, use_parallel_residual=True),
    "gpt_neox-in-sequence": neox(
        use_parallel_residual=False,
        attention_bias=False,
        rotary_emb_base=5000,
        rotary_pct=1.0,
        tie_word_embeddings=True,
    ),
    "gptj": gpt("gptj", "GPTJForCausalLM", rotary_dim=4),
    "gptj-whole": gpt("gptj", "GPTJForCausalLM", rotary_dim=8, n_inner=40),
    "gpt2": gpt("gpt2", "GPT2LMHeadModel"),
    "gpt2-unscaled": gpt(
        "gpt2",
        "GPT2LMHeadModel",
        scale_attn_weights=False,
        n_inner=40,
        activation_function="relu",
        tie_word_embeddings=False,
    ),
    "opt": opt(),
    "opt-norms-behind": opt(
        do_layer_norm_before=False, activation_function="gelu", tie_word_embeddings=False
    ),
    "opt-without-biases": opt(enable_bias=False),
    "falcon": falcon(multi_query=True, parallel_attn=True, bias=False),
    "falcon-grouped": falcon(new_decoder_architecture=True, num_kv_heads=2, bias=True),
    "falcon-one-norm": falcon(
        new_decoder_architecture=True,
        num_kv_heads=2,
        num_ln_in_parallel_attn=1,
        tie_word_embeddings=False,
        ffn_hidden_size=48,
    ),
    "falcon-alibi": falcon(
        alibi=True,
        multi_query=False,
        parallel_attn=False,
        bias=True,
        hidden_size=48,
        num_attention_heads=6,
    ),
    "bloom": bloom(),
    "bloom-six-heads": bloom(n_embed=48, hidden_size=..., n_head=6, tie_word_embeddings=False),
    "mpt": mpt(),
    "mpt-clip": mpt(
        d_model=48,
        n_heads=6,
        attn_config={"clip_qkv": 0.4, "softmax_scale": 0.3},
        layer_norm_epsilon=1e-6,
    ),
    "gemma3-whole": whole(
        "gemma3",
        "Gemma3ForConditionalGeneration",
        gemma3(num_hidden_layers=3, sliding_window=6, sliding_window_pattern=3, vocab_size=61),
        mm_tokens_per_image=4,
    ),
    "mistral3-whole": whole(
        "mistral3",
        "Mistral3ForConditionalGeneration",
        mistral(sliding_window=None, head_dim=10),
        vision={"head_dim": 8, "hidden_act": "silu"},
        tie_word_embeddings=False,
    ),
    "llava-whole": whole(
        "llava",
        "LlavaForConditionalGeneration",
        llama(),
        vision={"model_type": "clip_vision_model", "projection_dim": 8},
        tie_word_embeddings=False,
    ),
    "phi3-longrope": phi3(
        original_max_position_embeddings=100,
        partial_rotary_factor=0.75,
        rope_scaling={
            "type": "longrope",
            "short_factor": [1.0, 1.1, 1.25],
            "long_factor": [1.5, 4.0, 9.0],
        },
        tie_word_embeddings=True,
    ),
    "qwen2-dynamic": qwen2(rope_scaling={"type": "dynamic", "factor": 2.0}),
    "hunyuan-alpha": case(
        "hunyuan_v1_dense",
        "HunYuanDenseV1ForCausalLM",
        head_dim=8,
        rope_scaling={
            "type": "dynamic",
            "alpha": 1000.0,
            "factor": 1.0,
            "beta_fast": 32,
            "beta_slow": 1,
            "mscale": 1.0,
        },
    ),
    "cohere-qk-norm": case("cohere", "CohereForCausalLM", use_qk_norm=True),
    "stablelm-qk-norm": case(
        "stablelm", "StableLmForCausalLM", qk_layernorm=True, partial_rotary_factor=0.25
    ),
    "phi-qk-norm": case("phi", "PhiForCausalLM", qk_layernorm=True),
    "opt-projected": opt(word_embed_proj_dim=20, do_layer_norm_before=False),
    "gpt2-by-layer": gpt("gpt2", "GPT2LMHeadModel", scale_attn_by_inverse_layer_idx=True),
    "olmo": case("olmo", "OlmoForCausalLM", clip_qkv=0.3),
    "falcon-in-sequence": falcon(multi_query=False, parallel_attn=False, rope_theta=5000.0),
    "qwen3_moe": moe(
        "qwen3_moe", "Qwen3MoeForCausalLM", head_dim=12, norm_topk_prob=True, num_experts=8
    ),
    "qwen3_moe-sparse-step": moe(
        "qwen3_moe",
        "Qwen3MoeForCausalLM",
        head_dim=8,
        num_hidden_layers=4,
        num_experts_per_tok=3,
        norm_topk_prob=False,
        decoder_sparse_step=2,
        mlp_only_layers=[3],
        attention_bias=True,
        tie_word_embeddings=True,
        use_sliding_window=True,
        sliding_window=6,
    ),
    "mixtral": case(
        "mixtral",
        "MixtralForCausalLM",
        num_local_experts=4,
        num_experts_per_tok=2,
        rope_theta=1e6,
        sliding_window=None,
    ),
    "mixtral-window-tied": case(
        "mixtral",
        "MixtralForCausalLM",
        num_local_experts=5,
        num_experts_per_tok=3,
        head_dim=12,
        sliding_window=6,
        tie_word_embeddings=True,
    ),
    "qwen2_moe": moe(
        "qwen2_moe", "Qwen2MoeForCausalLM", num_hidden_layers=3, shared_expert_intermediate_size=24
    ),
    "qwen2_moe-window": moe(
        "qwen2_moe",
        "Qwen2MoeForCausalLM",
        num_hidden_layers=3,
        shared_expert_intermediate_size=12,
        norm_topk_prob=True,
        mlp_only_layers=[0],
        qkv_bias=False,
        use_sliding_window=True,
        sliding_window=6,
        max_window_layers=2,
        tie_word_embeddings=True,
    ),
    "olmoe": case("olmoe", "OlmoeForCausalLM", num_experts=8, num_experts_per_tok=3),
    "olmoe-normalized-tied": case(
        "olmoe",
        "OlmoeForCausalLM",
        num_experts=4,
        num_experts_per_tok=4,
        norm_topk_prob=True,
        num_key_value_heads=4,
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "granitemoe": case(
        "granitemoe",
        "GraniteMoeForCausalLM",
        num_local_experts=6,
        num_experts_per_tok=3,
        embedding_multiplier=2.0,
        residual_multiplier=0.75,
        attention_multiplier=0.25,
        logits_scaling=6.0,
        attention_bias=True,
    ),
    "granitemoeshared": case(
        "granitemoeshared",
        "GraniteMoeSharedForCausalLM",
        num_local_experts=4,
        num_experts_per_tok=2,
        shared_intermediate_size=28,
        attention_multiplier=0.25,
        residual_multiplier=0.5,
    ),
    "ernie4_5_moe": case(
        "ernie4_5_moe",
        "Ernie4_5_MoeForCausalLM",
        num_hidden_layers=3,
        head_dim=8,
        moe_num_experts=6,
        moe_k=2,
        moe_intermediate_size=20,
        moe_num_shared_experts=2,
    ),
    "ernie4_5_moe-interval-biases": case(
        "ernie4_5_moe",
        "Ernie4_5_MoeForCausalLM",
        num_hidden_layers=4,
        moe_num_experts=4,
        moe_k=3,
        moe_intermediate_size=16,
        moe_num_shared_experts=0,
        moe_layer_interval=2,
        moe_layer_start_index=0,
        moe_layer_end_index=2,
        use_bias=True,
        tie_word_embeddings=False,
    ),
    "hunyuan_v1_moe": case(
        "hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", head_dim=8, num_experts=4, moe_topk=2
    ),
    "glm4_moe": case(
        "glm4_moe",
        "Glm4MoeForCausalLM",
        num_hidden_layers=3,
        head_dim=12,
        n_routed_experts=8,
        num_experts_per_tok=3,
        moe_intermediate_size=20,
        n_shared_experts=2,
        first_k_dense_replace=1,
        n_group=4,
        topk_group=2,
        routed_scaling_factor=2.5,
        use_qk_norm=True,
        attention_bias=True,
        partial_rotary_factor=0.5,
        num_nextn_predict_layers=1,
    ),
    "glm4_moe-one-group": case(
        "glm4_moe",
        "Glm4MoeForCausalLM",
        num_hidden_layers=2,
        head_dim=8,
        n_routed_experts=6,
        num_experts_per_tok=2,
        moe_intermediate_size=20,
        n_shared_experts=1,
        first_k_dense_replace=0,
        norm_topk_prob=False,
        partial_rotary_factor=0.5,
    ),
    "gpt_oss": case(
        "gpt_oss",
        "GptOssForCausalLM",
        num_hidden_layers=3,
        head_dim=12,
        num_local_experts=6,
        num_experts_per_tok=2,
        sliding_window=6,
        rope_theta=150000.0,
        rope_scaling={
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 32,
        },
    ),
    "gpt_oss-without-biases": case(
        "gpt_oss",
        "GptOssForCausalLM",
        head_dim=8,
        num_local_experts=4,
        num_experts_per_tok=4,
        layer_types=["full_attention", "sliding_attention"],
        sliding_window=5,
        swiglu_limit=0.25,
        swiglu_alpha=1.5,
        attention_bias=False,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    ),
    "minicpm3": minicpm3(rms_norm_eps=1e-5, scale_emb=12, scale_depth=1.4),
    "minicpm3-unscaled": minicpm3(
        q_lora_rank=None,
        scale_depth=None,
        dim_model_base=None,
        v_head_dim=None,
        scale_emb=1,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=False,
    ),
    "minicpm3-longrope": minicpm3(
        rope_scaling={
            "type": "longrope",
            "factor": 3.0,
            "short_factor": [1.0591, 1.375],
            "long_factor": [2.0, 31.25],
            "original_max_position_embeddings": 128,
        }
    ),
    "youtu": youtu(rope_theta=1.6e6, v_head_dim=12, q_lora_rank=None),
    "youtu-mscale-biases": youtu(
        rope_scaling=MSCALE,
        attention_bias=True,
        rope_interleave=False,
        tie_word_embeddings=False,
        head_dim=4,
        qk_head_dim=12,
    ),
    "deepseek_v2-lite": deepseek2(
        q_lora_rank=None, rope_scaling=MSCALE, routed_scaling_factor=1.0, topk_method="greedy"
    ),
    "deepseek_v2": deepseek2(
        topk_method="group_limited_greedy",
        n_group=4,
        topk_group=2,
        routed_scaling_factor=16.0,
        v_head_dim=14,
        attention_bias=True,
        norm_topk_prob=False,
        scoring_func="softmax",
    ),
    "deepseek_v2-dense": deepseek2(first_k_dense_replace=3, tie_word_embeddings=True),
    "deepseek_v3": deepseek3(
        num_hidden_layers=2,
        rope_scaling={**MSCALE, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0},
        topk_method="noaux_tc",
        scoring_func="sigmoid",
        num_nextn_predict_layers=1,
        routed_scaling_factor=2.5,
    ),
    "deepseek_v3-plain": deepseek3(
        q_lora_rank=None,
        n_group=1,
        topk_group=1,
        norm_topk_prob=False,
        first_k_dense_replace=0,
        rope_interleave=False,
        attention_bias=True,
        v_head_dim=8,
        tie_word_embeddings=True,
    ),
    "glm4_moe_lite": latent(
        "glm4_moe_lite",
        "Glm4MoeLiteForCausalLM",
        **{**EXPERTS, "n_shared_experts": 1, "num_hidden_layers": 2},
        v_head_dim=6,
        partial_rotary_factor=1.0,
        rope_theta=1e6,
    ),
    "glm4_moe_lite-layer-types": latent(
        "glm4_moe_lite",
        "Glm4MoeLiteForCausalLM",
        **{**EXPERTS, "first_k_dense_replace": ...},
        mlp_layer_types=["sparse", "dense", "sparse"],
        q_lora_rank=None,
        n_group=2,
        topk_group=1,
        norm_topk_prob=False,
        rope_interleave=False,
        attention_bias=True,
    ),
    "granitemoehybrid": granite4(
        num_local_experts=4,
        num_experts_per_tok=2,
        shared_intermediate_size=28,
        position_embedding_type="rope",
    ),
    "granitemoehybrid-dense": granite4(
        num_local_experts=0, shared_intermediate_size=36, tie_word_embeddings=True
    ),
    "seed_oss": case("seed_oss", "SeedOssForCausalLM", head_dim=10, rope_theta=1e7),
    "seed_oss-biases-tied": case(
        "seed_oss",
        "SeedOssForCausalLM",
        head_dim=None,
        attention_bias=False,
        attention_out_bias=True,
        mlp_bias=True,
        tie_word_embeddings=True,
    ),
    "arcee": case("arcee", "ArceeForCausalLM", rope_scaling=MSCALE, rope_theta=1e4),
    "arcee-biases": case(
        "arcee",
        "ArceeForCausalLM",
        hidden_act="silu",
        attention_bias=True,
        mlp_bias=True,
        head_dim=12,
        tie_word_embeddings=True,
    ),
    "helium": case("helium", "HeliumForCausalLM", head_dim=8),
    "helium-biases": case(
        "helium",
        "HeliumForCausalLM",
        head_dim=8,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=True,
    ),
    "internlm3": case(
        "internlm3",
        "InternLM3ForCausalLM",
        head_dim=12,
        auto_map={"AutoModelForCausalLM": "modeling_internlm3.InternLM3ForCausalLM"},
        rope_scaling={"rope_type": "dynamic", "factor": 6.0},
        rope_theta=5e7,
        qkv_bias=False,
        bias=False,
    ),
    "internlm3-biases": case(
        "internlm3", "LlamaForCausalLM", head_dim=8, attention_bias=True, mlp_bias=True
    ),
    "iquestcoder": case("iquestcoder", "IQuestCoderForCausalLM", head_dim=10, rope_theta=5e5),
    "cwm": case(
        "cwm",
        "CwmForCausalLM",
        num_hidden_layers=5,
        head_dim=12,
        sliding_window=6,
        rope_scaling=LLAMA3,
        rope_theta=1e6,
    ),
    "apertus": case(
        "apertus", "ApertusForCausalLM", rope_scaling=LLAMA3, rope_theta=12e6, hidden_act="xielu"
    ),
    "apertus-biases-tied": case(
        "apertus",
        "ApertusForCausalLM",
        rope_scaling=LLAMA3,
        hidden_act="relu2",
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "nanochat": case("nanochat", "NanoChatForCausalLM", num_key_value_heads=4),
    "nanochat-biases-uncapped": case(
        "nanochat",
        "NanoChatForCausalLM",
        attention_bias=True,
        final_logit_softcapping=None,
        rope_theta=1e5,
        tie_word_embeddings=True,
    ),
    "jais2": case("jais2", "Jais2ForCausalLM", rope_theta=5e5),
    "jais2-without-biases": case(
        "jais2",
        "Jais2ForCausalLM",
        head_dim=12,
        attention_bias=False,
        mlp_bias=False,
        tie_word_embeddings=True,
    ),
    "exaone": case(
        "exaone",
        "ExaoneForCausalLM",
        num_hidden_layers=...,
        num_layers=2,
        activation_function="silu",
        layer_norm_epsilon=1e-5,
        rope_scaling=LLAMA3,
        rope_theta=1e6,
    ),
    "exaone4": case(
        "exaone4",
        "Exaone4ForCausalLM",
        num_hidden_layers=4,
        sliding_window=6,
        sliding_window_pattern="LLLG",
        layer_types=["sliding_attention"] * 3 + ["full_attention"],
        rope_scaling=LLAMA3,
        rope_theta=1e6,
    ),
    "exaone4-pattern": case(
        "exaone4",
        "Exaone4ForCausalLM",
        num_hidden_layers=3,
        sliding_window=9,
        sliding_window_pattern=2,
        head_dim=12,
        tie_word_embeddings=True,
    ),
    "exaone4-without-window": case(
        "exaone4",
        "Exaone4ForCausalLM",
        sliding_window=None,
        sliding_window_pattern=None,
        layer_types=["full_attention"] * 2,
    ),
    "ministral": case(
        "ministral",
        "MinistralForCausalLM",
        head_dim=10,
        sliding_window=7,
        layer_types=["full_attention", "sliding_attention"],
    ),
    "ministral-all-windowed": case(
        "ministral", "MinistralForCausalLM", head_dim=8, sliding_window=5, tie_word_embeddings=True
    ),
    "ministral3": case("ministral3", "Ministral3ForCausalLM", head_dim=12, rope_parameters=GROWING),
    "ministral3-window": case(
        "ministral3",
        "Ministral3ForCausalLM",
        sliding_window=11,
        tie_word_embeddings=True,
        rope_parameters={**GROWING, "llama_4_scaling_beta": 0.4, "mscale": 0.0},
    ),
    "vaultgemma": case(
        "vaultgemma",
        "VaultGemmaForCausalLM",
        head_dim=12,
        query_pre_attn_scalar=10,
        sliding_window=6,
    ),
    "hyperclovax": case(
        "hyperclovax",
        "HyperCLOVAXForCausalLM",
        embedding_multiplier=2.0,
        logits_scaling=0.5,
        residual_multiplier=0.5,
        attention_multiplier=0.25,
    ),
    "hyperclovax-biases": case(
        "hyperclovax",
        "HyperCLOVAXForCausalLM",
        head_dim=12,
        use_post_norm=False,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=True,
    ),
    "flex_olmo": case(
        "flex_olmo",
        "FlexOlmoForCausalLM",
        num_experts=5,
        num_experts_per_tok=2,
        attention_bias=True,
    ),
    "flex_olmo-normalized": case(
        "flex_olmo",
        "FlexOlmoForCausalLM",
        num_experts=4,
        num_experts_per_tok=3,
        norm_topk_prob=True,
        tie_word_embeddings=True,
        num_key_value_heads=4,
    ),
    "solar_open": case(
        "solar_open",
        "SolarOpenForCausalLM",
        intermediate_size=...,
        head_dim=12,
        n_routed_experts=8,
        num_experts_per_tok=3,
        moe_intermediate_size=20,
        n_shared_experts=2,
        n_group=4,
        topk_group=2,
        routed_scaling_factor=1.5,
        attention_bias=True,
    ),
    "dots1": case(
        "dots1",
        "Dots1ForCausalLM",
        **{**EXPERTS, "n_shared_experts": 2},
        head_dim=12,
        norm_topk_prob=True,
        routed_scaling_factor=2.5,
        sliding_window=None,
    ),
    "dots1-window": case(
        "dots1",
        "Dots1ForCausalLM",
        **{**EXPERTS, "first_k_dense_replace": 0},
        n_group=4,
        topk_group=2,
        sliding_window=6,
        max_window_layers=1,
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "exaone_moe": moe(
        "exaone_moe",
        "ExaoneMoeForCausalLM",
        num_hidden_layers=4,
        sliding_window=6,
        layer_types=["sliding_attention"] * 3 + ["full_attention"],
        rope_theta=1e6,
    ),
    "exaone_moe-groups": moe(
        "exaone_moe",
        "ExaoneMoeForCausalLM",
        num_hidden_layers=3,
        n_group=3,
        topk_group=2,
        num_shared_experts=2,
        norm_topk_prob=False,
        mlp_layer_types=["sparse", "dense", "sparse"],
        sliding_window_pattern=2,
        sliding_window=7,
        tie_word_embeddings=True,
    ),
    "minimax_m2": case(
        "minimax_m2",
        "MiniMaxM2ForCausalLM",
        head_dim=12,
        num_local_experts=6,
        num_experts_per_tok=2,
        rotary_dim=6,
        rope_theta=5e6,
        use_qk_norm=True,
        qk_norm_type="per_layer",
    ),
    "minimax_m2-tied": case(
        "minimax_m2",
        "MiniMaxM2ForCausalLM",
        head_dim=8,
        num_local_experts=5,
        num_experts_per_tok=3,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    ),
    "llama4": llama4(num_hidden_layers=4, rope_scaling=LLAMA3, floor_scale=5),
    "llama4-dense-layers": llama4(
        num_hidden_layers=4,
        num_experts_per_tok=2,
        interleave_moe_layer_step=2,
        no_rope_layers=[1, 0, 1, 1],
        use_qk_norm=False,
        attn_temperature_tuning=False,
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "mistral4": latent(
        "mistral4",
        "Mistral4ForCausalLM",
        **{**EXPERTS, "n_shared_experts": 1},
        rope_parameters=GROWING,
    ),
    "mistral4-groups": latent(
        "mistral4",
        "Mistral4ForCausalLM",
        **{**EXPERTS, "first_k_dense_replace": 0},
        q_lora_rank=None,
        n_group=4,
        topk_group=2,
        norm_topk_prob=False,
        routed_scaling_factor=1.5,
        rope_interleave=False,
        attention_bias=True,
        rope_parameters={**GROWING, "partial_rotary_factor": 4 / 12, "mscale_all_dim": 0.5},
    ),
    "gemma4": gemma4(
        num_hidden_layers=4,
        num_kv_shared_layers=2,
        layer_types=["sliding_attention", "full_attention"] * 2,
        use_double_wide_mlp=True,
    ),
    "gemma4-keys-are-values": gemma4(
        num_key_value_heads=4,
        num_global_key_value_heads=1,
        attention_k_eq_v=True,
        hidden_size_per_layer_input=0,
        attention_bias=True,
        tie_word_embeddings=False,
    ),
    "gemma4-experts": gemma4(
        num_hidden_layers=3,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        global_head_dim=...,
        per_layer_config={"1": {"head_dim": 12}, "2": {"head_dim": 12}},
        hidden_size_per_layer_input=0,
        enable_moe_block=True,
        num_experts=5,
        top_k_experts=2,
        moe_intermediate_size=20,
        final_logit_softcapping=None,
    ),
    "gemma4-whole": whole(
        "gemma4",
        "Gemma4ForConditionalGeneration",
        gemma4(),
        vision=GEMMA4_VISION,
        audio_config=None,
    ),
    "ministral3-whole": whole(
        "mistral3",
        "Mistral3ForConditionalGeneration",
        case("ministral3", "Ministral3ForCausalLM", head_dim=12, rope_parameters=GROWING),
        vision={"model_type": "pixtral", "head_dim": 8},
        tie_word_embeddings=False,
    ),
    "llama4-whole": whole(
        "llama4", "Llama4ForConditionalGeneration", llama4(), vision=LLAMA4_VISION
    ),
    "phimoe": case(
        "phimoe",
        "PhiMoEForCausalLM",
        auto_map={"AutoModelForCausalLM": "modeling_phimoe.PhiMoEForCausalLM"},
        num_local_experts=6,
        attention_bias=True,
        lm_head_bias=True,
        sliding_window=128,
        router_jitter_noise=0.2,
        original_max_position_embeddings=96,
        rope_scaling={
            "type": "longrope",
            "short_factor": [1.0, 1.2, 1.5, 2.0],
            "long_factor": [1.0, 2.0, 3.0, 4.0],
            "short_mscale": 1.25,
            "long_mscale": 1.25,
            "original_max_position_embeddings": 96,
        },
    ),
    "phimoe-window": case(
        "phimoe",
        "PhimoeForCausalLM",
        num_local_experts=4,
        sliding_window=7,
        rope_theta=1e4,
        tie_word_embeddings=True,
    ),
    "granite_swa": case(
        "granite_swa",
        "GraniteSWAForCausalLM",
        num_hidden_layers=5,
        sliding_window=6,
        layer_rope_theta=[0, 1e4, 1e4, 5e5, 0],
        embedding_multiplier=2.0,
        attention_multiplier=0.25,
        logits_scaling=3.0,
    ),
    "qwen3_next": qwen3_next(
        full_attention_interval=2,
        partial_rotary_factor=0.25,
        rope_theta=1e7,
        rope_scaling=None,
        norm_topk_prob=True,
        output_router_logits=False,
    ),
    "qwen3_next-plain": qwen3_next(
        num_hidden_layers=3,
        layer_types=["full_attention", "linear_attention", "linear_attention"],
        attention_bias=True,
        mlp_only_layers=[1],
        norm_topk_prob=False,
        linear_num_value_heads=2,
        linear_conv_kernel_dim=3,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
        tie_word_embeddings=True,
    ),
    "qwen3_5": qwen3_5(
        layer_types=["linear_attention", "full_attention"],
        full_attention_interval=4,
        attn_output_gate=True,
        mamba_ssm_dtype="float32",
        mtp_num_hidden_layers=1,
        rope_parameters=MROPE,
        tie_word_embeddings=True,
    ),
    "qwen3_5-interval": qwen3_5(
        num_hidden_layers=4,
        linear_num_key_heads=1,
        linear_num_value_heads=6,
        linear_key_head_dim=10,
        linear_value_head_dim=16,
        attention_bias=True,
        rms_norm_eps=1e-5,
    ),
    "qwen3_5-whole": whole(
        "qwen3_5",
        "Qwen3_5ForConditionalGeneration",
        qwen3_5(full_attention_interval=2, rope_parameters=MROPE),
        vision=SMALL_VISION,
        tie_word_embeddings=True,
    ),
    "qwen3_5_moe": qwen3_5_moe(full_attention_interval=2),
    "qwen3_5_moe-stacked": qwen3_5_moe(full_attention_interval=2, tie_word_embeddings=True),
    "qwen3_5_moe-whole": whole(
        "qwen3_5_moe",
        "Qwen3_5MoeForConditionalGeneration",
        qwen3_5_moe(full_attention_interval=2, rope_parameters=MROPE),
        vision=SMALL_VISION,
        tie_word_embeddings=False,
    ),
    "olmo_hybrid": olmo_hybrid(rope_parameters={"rope_theta": None, "rope_type": "default"}),
    "olmo_hybrid-rope": olmo_hybrid(
        num_hidden_layers=3,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=10,
        linear_value_head_dim=6,
        linear_allow_neg_eigval=False,
        linear_conv_kernel_dim=5,
        attention_bias=True,
        rope_theta=5e5,
    ),
    "granitemoehybrid-mamba": granite4(
        num_hidden_layers=3,
        layer_types=["mamba", "attention", "mamba"],
        num_local_experts=4,
        num_experts_per_tok=2,
        shared_intermediate_size=28,
        time_step_limit=[0.0, {"__float__": "Infinity"}],
        **{**STATES, **LONG, "mamba_n_groups": 2, "mamba_d_conv": 3},
        mamba_proj_bias=True,
        mamba_conv_bias=False,
    ),
    "lfm2": lfm2(
        intermediate_size=66,
        block_multiple_of=8,
        layer_types=["conv", "full_attention", "conv"],
        rope_theta=1e6,
    ),
    "lfm2-old-keys": lfm2(
        block_ff_dim=96,
        block_multiple_of=16,
        block_ffn_dim_multiplier=1.2,
        full_attn_idxs=[1],
        conv_bias=True,
        conv_L_cache=5,
        tie_embedding=False,
        norm_eps=1e-3,
        rope_theta=1e4,
    ),
    "lfm2_moe": case(
        "lfm2_moe",
        "Lfm2MoeForCausalLM",
        **LONG,
        num_hidden_layers=4,
        num_dense_layers=1,
        layer_types=["conv", "full_attention", "conv", "conv"],
        moe_intermediate_size=24,
        num_experts=8,
        num_experts_per_tok=3,
        routed_scaling_factor=1.5,
    ),
    "lfm2_moe-plain": case(
        "lfm2_moe",
        "Lfm2MoeForCausalLM",
        **LONG,
        num_dense_layers=0,
        layer_types=["conv", "full_attention"],
        moe_intermediate_size=24,
        num_experts=4,
        num_experts_per_tok=2,
        use_expert_bias=False,
        norm_topk_prob=False,
        conv_bias=True,
        tie_word_embeddings=False,
    ),
    "mamba2": mamba2(time_step_limit=[0.0, {"__float__": "Infinity"}]),
    "mamba2-limits": mamba2(
        num_hidden_layers=3,
        n_groups=1,
        conv_kernel=2,
        use_bias=True,
        use_conv_bias=False,
        tie_word_embeddings=True,
        layer_norm_epsilon=1e-3,
        time_step_limit=[0.5, 0.75],
    ),
    "bamba": bamba(attn_layer_indices=[1], rope_theta=1e4),
    "bamba-biases": bamba(
        attn_layer_indices=[0],
        mamba_n_groups=2,
        mamba_d_head=16,
        mamba_proj_bias=True,
        mamba_conv_bias=False,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=True,
        time_step_limit=[0.25, 0.75],
        rms_norm_eps=1e-3,
        num_key_value_heads=1,
    ),
    "falcon_h1-norm-before-gate": bamba(
        "falcon_h1",
        "FalconH1ForCausalLM",
        num_hidden_layers=1,
        mamba_d_ssm=64,
        mamba_rms_norm=True,
        mamba_norm_before_gate=True,
        projectors_bias=True,
        mamba_conv_bias=False,
        time_step_limit=[0.25, 2.0],
    ),
    "falcon_h1": bamba(
        "falcon_h1",
        "FalconH1ForCausalLM",
        num_hidden_layers=2,
        mamba_d_ssm=40,
        mamba_d_head=10,
        attention_in_multiplier=0.75,
        attention_out_multiplier=0.375,
        key_multiplier=0.39,
        embedding_multiplier=0.75,
        lm_head_multiplier=0.039,
        mlp_multipliers=[0.88, 0.75],
        ssm_multipliers=[1.5, 2.5, 1.75, 1.25, 0.35],
        ssm_in_multiplier=1.25,
        ssm_out_multiplier=2.25,
        rope_theta=1e11,
    ),
    "falcon_h1-norm": bamba(
        "falcon_h1",
        "FalconH1ForCausalLM",
        num_hidden_layers=1,
        mamba_d_ssm=None,
        mamba_n_groups=2,
        mamba_rms_norm=True,
        mamba_norm_before_gate=False,
        rms_norm_eps=1e-3,
        mamba_proj_bias=True,
        projectors_bias=False,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=True,
    ),
    "nemotron_h": nemotron_h(
        num_hidden_layers=6,
        hybrid_override_pattern="MEM*-E",
        time_step_limit=[0.0, {"__float__": "Infinity"}],
        n_routed_experts=8,
        num_experts_per_tok=3,
        n_group=2,
        topk_group=1,
        moe_intermediate_size=20,
        moe_shared_expert_intermediate_size=28,
        routed_scaling_factor=2.5,
    ),
    "nemotron_h-latent": nemotron_h(
        num_hidden_layers=4,
        hybrid_override_pattern="ME*E",
        n_routed_experts=6,
        num_experts_per_tok=2,
        moe_intermediate_size=20,
        moe_shared_expert_intermediate_size=28,
        moe_latent_size=18,
        norm_topk_prob=False,
        mlp_bias=True,
    ),
    "nemotron_h-layer-types": nemotron_h(
        num_hidden_layers=3,
        layers_block_type=["linear_attention", "full_attention", "mlp"],
        mamba_head_dim=16,
        mlp_hidden_act="silu",
        mlp_bias=True,
        use_bias=True,
        use_conv_bias=False,
        time_step_min=0.25,
        conv_kernel=3,
        layer_norm_epsilon=1e-3,
    ),
    # Prompts of 24 tokens, beyond the original length of 20.
    "phi3-long-context": phi3(
        original_max_position_embeddings=20,
        partial_rotary_factor=0.75,
        rope_scaling={
            "type": "longrope",
            "short_factor": [1.0, 1.1, 1.25],
            "long_factor": [1.5, 4.0, 9.0],
        },
    ),
    "phimoe-long-context": case(
        "phimoe",
        "PhimoeForCausalLM",
        num_local_experts=4,
        sliding_window=128,
        original_max_position_embeddings=20,
        rope_scaling={
            "type": "longrope",
            "short_factor": [1.0, 1.2, 1.5, 2.0],
            "long_factor": [1.0, 2.0, 3.0, 4.0],
            "short_mscale": 1.25,
            "long_mscale": 1.125,
            "original_max_position_embeddings": 20,
        },
    ),
    "minicpm3-long-context": minicpm3(
        rope_scaling={
            "type": "longrope",
            "short_factor": [1.0591, 1.375],
            "long_factor": [2.0, 31.25],
            "original_max_position_embeddings": 20,
        }
    ),
    "gemma3n": gemma3n(rope_theta=1e6, rope_local_base_freq=1e4, query_pre_attn_scalar=256),
    "gemma3n-more-tokens": gemma3n(
        num_hidden_layers=2,
        layer_types=["full_attention", "sliding_attention"],
        activation_sparsity_pattern=[0.5, 0.0],
        vocab_size_per_layer_input=50,
        intermediate_size=[44, 40],
        altup_num_inputs=3,
        altup_active_idx=1,
        altup_correct_scale=False,
        num_kv_shared_layers=0,
        final_logit_softcapping=2.0,
        attention_bias=True,
        tie_word_embeddings=False,
        num_key_value_heads=1,
    ),
    "kimi_linear": kimi_linear(
        linear_attn_config=KDA,
        moe_renormalize=True,
        num_shared_experts=1,
        num_expert_group=1,
        topk_group=1,
        first_k_dense_replace=1,
        moe_layer_freq=1,
        mla_use_nope=True,
        moe_router_activation_func="sigmoid",
        use_grouped_topk=True,
        head_dim=72,
        rope_theta=1e4,
        rope_scaling=None,
        num_nextn_predict_layers=0,
    ),
    "kimi_linear-layer-types": kimi_linear(
        q_lora_rank=12,
        linear_num_heads=2,
        linear_head_dim=10,
        linear_conv_kernel_dim=3,
        layer_types=["linear_attention", "linear_attention", "full_attention"],
        mlp_layer_types=["sparse", "dense", "sparse"],
        num_expert_group=4,
        topk_group=2,
        moe_renormalize=False,
        num_shared_experts=2,
        routed_scaling_factor=1.5,
        tie_word_embeddings=True,
        rms_norm_eps=1e-6,
    ),
    "mamba": mamba(
        d_inner=64,
        d_model=32,
        expand=2,
        intermediate_size=64,
        n_layer=2,
        rms_norm=True,
        residual_in_fp32=True,
        fused_add_norm=True,
        ssm_cfg={},
        time_step_rank=2,
    ),
    "mamba-biases": mamba(
        num_hidden_layers=3,
        expand=1,
        time_step_rank=7,
        use_bias=True,
        use_conv_bias=False,
        conv_kernel=3,
        layer_norm_epsilon=1e-3,
        tie_word_embeddings=False,
    ),
    "falcon_mamba": mamba(
        "falcon_mamba", "FalconMambaForCausalLM", mixer_rms_eps=1e-3, tie_word_embeddings=False
    ),
    "jamba": jamba(num_experts=6, num_experts_per_tok=2),
    "jamba-dense": jamba(
        num_experts=1,
        num_experts_per_tok=1,
        attn_layer_period=3,
        attn_layer_offset=2,
        mamba_expand=1,
        mamba_dt_rank="auto",
        mamba_proj_bias=True,
        mamba_conv_bias=False,
        mamba_d_conv=2,
        tie_word_embeddings=True,
        rms_norm_eps=1e-3,
    ),
    "afmoe": afmoe(
        mup_enabled=True,
        num_hidden_layers=3,
        num_dense_layers=1,
        route_scale=2.448,
        route_norm=True,
        score_func="sigmoid",
        n_group=1,
        topk_group=1,
        global_attn_every_n_layers=3,
        rope_theta=1e4,
        rope_scaling=None,
        load_balance_coeff=0.001,
    ),
    "afmoe-plain": afmoe(
        num_hidden_layers=3,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
        num_dense_layers=0,
        num_shared_experts=2,
        attention_bias=True,
        tie_word_embeddings=True,
        rms_norm_eps=1e-4,
    ),
    "bitnet": case("bitnet", "BitNetForCausalLM", rope_theta=5e5, tie_word_embeddings=True),
    "hy_v3": case(
        "hy_v3",
        "HYV3ForCausalLM",
        head_dim=12,
        num_hidden_layers=3,
        num_experts=8,
        num_experts_per_tok=3,
        moe_intermediate_size=20,
        rope_parameters={"rope_type": "default", "rope_theta": 11158840.0},
    ),
    "hy_v3-biases": case(
        "hy_v3",
        "HYV3ForCausalLM",
        num_experts=6,
        num_experts_per_tok=2,
        moe_intermediate_size=20,
        num_shared_experts=2,
        router_scaling_factor=1.5,
        mlp_layer_types=["sparse", "dense"],
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=True,
    ),
    "mellum": case(
        "mellum",
        "MellumForCausalLM",
        head_dim=12,
        num_hidden_layers=3,
        num_experts=6,
        num_experts_per_tok=2,
        moe_intermediate_size=20,
        sliding_window=6,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
        mlp_layer_types=["sparse", "dense", "sparse"],
        rope_parameters={
            "full_attention": {
                "rope_type": "yarn",
                "rope_theta": 5e5,
                "factor": 4.0,
                "original_max_position_embeddings": 32,
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    ),
    "mellum-plain": case(
        "mellum",
        "MellumForCausalLM",
        head_dim=8,
        num_experts=4,
        num_experts_per_tok=3,
        moe_intermediate_size=20,
        norm_topk_prob=False,
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "gpt_bigcode": gpt("gpt_bigcode", "GPTBigCodeForCausalLM"),
    "gpt_bigcode-heads": gpt(
        "gpt_bigcode",
        "GPTBigCodeForCausalLM",
        multi_query=False,
        scale_attn_weights=False,
        activation_function="gelu",
        n_inner=40,
        tie_word_embeddings=False,
    ),
    "gpt_neo": case(
        "gpt_neo",
        "GPTNeoForCausalLM",
        num_hidden_layers=...,
        num_attention_heads=...,
        num_key_value_heads=...,
        intermediate_size=None,
        num_layers=4,
        num_heads=4,
        window_size=5,
        attention_types=[[["global", "local"], 2]],
        attention_layers=["global", "local", "global", "local"],
    ),
    "lfm3": case(
        "lfm3",
        "Lfm3ForCausalLM",
        **LONG,
        num_hidden_layers=4,
        head_dim=8,
        sliding_window=6,
        layer_types=["conv", "sliding_attention", "full_attention", "conv"],
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {
                "rope_type": "proportional",
                "rope_theta": 1e6,
                "partial_rotary_factor": 0.5,
            },
        },
    ),
    "lfm3-plain": case(
        "lfm3",
        "Lfm3ForCausalLM",
        **LONG,
        num_hidden_layers=3,
        head_dim=12,
        layer_types=["full_attention", "conv", "sliding_attention"],
        use_sandwich_norm=False,
        use_attention_gate=False,
        attention_bias=True,
        conv_bias=True,
        conv_L_cache=3,
        norm_eps=1e-3,
        tie_word_embeddings=False,
    ),
    "cohere2_moe": case(
        "cohere2_moe",
        "Cohere2MoeForCausalLM",
        head_dim=12,
        num_hidden_layers=6,
        num_experts=6,
        num_experts_per_tok=2,
        num_shared_experts=2,
        first_k_dense_replace=1,
        prefix_dense_intermediate_size=36,
        sliding_window=6,
        rope_theta=5e4,
        logit_scale=0.25,
        expert_selection_fn="sigmoid",
    ),
    "cohere2_moe-sum": case(
        "cohere2_moe",
        "Cohere2MoeForCausalLM",
        head_dim=8,
        num_hidden_layers=3,
        num_experts=4,
        num_experts_per_tok=3,
        num_shared_experts=1,
        shared_expert_combination_strategy="sum",
        mlp_layer_types=["sparse", "dense", "sparse"],
        layer_types=["full_attention", "full_attention", "sliding_attention"],
        sliding_window=5,
        rms_norm_eps=1e-5,
        attention_bias=True,
        logit_scale=0.5,
        tie_word_embeddings=False,
    ),
    "sarvam_moe": case(
        "sarvam_moe",
        "SarvamMoEForCausalLM",
        head_dim=12,
        num_hidden_layers=3,
        num_experts=8,
        num_experts_per_tok=3,
        moe_intermediate_size=20,
        rope_theta=8e6,
    ),
    "sarvam_moe-groups": case(
        "sarvam_moe",
        "SarvamMoEForCausalLM",
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=20,
        num_shared_experts=2,
        n_group=4,
        topk_group=2,
        first_k_dense_replace=0,
        norm_topk_prob=False,
        routed_scaling_factor=1.5,
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "sarvam_mla": latent(
        "sarvam_mla",
        "SarvamMLAForCausalLM",
        q_lora_rank=None,
        num_hidden_layers=2,
        num_experts=8,
        num_experts_per_tok=3,
        num_shared_experts=1,
        n_routed_experts=...,
        n_shared_experts=...,
        n_group=4,
        topk_group=2,
        moe_intermediate_size=20,
        rope_scaling={
            "type": "deepseek_yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 32,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "beta_fast": 32,
            "beta_slow": 1,
        },
    ),
    "granitemoe_swa": case(
        "granitemoe_swa",
        "GraniteMoeSWAForCausalLM",
        num_hidden_layers=5,
        num_local_experts=6,
        num_experts_per_tok=2,
        sliding_window=6,
        layer_rope_theta=[0, 1e4, 1e4, 5e5, 0],
        embedding_multiplier=2.0,
        attention_multiplier=0.25,
        residual_multiplier=0.5,
        logits_scaling=3.0,
    ),
    "granitemoe_swa-shared": case(
        "granitemoe_swa",
        "GraniteMoeSWAForCausalLM",
        num_local_experts=4,
        num_experts_per_tok=3,
        shared_intermediate_size=28,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention"],
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "laguna": case(
        "laguna",
        "LagunaForCausalLM",
        head_dim=12,
        num_hidden_layers=4,
        num_attention_heads_per_layer=[4, 6, 6, 2],
        layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
        sliding_window=6,
        num_experts=8,
        num_experts_per_tok=3,
        moe_intermediate_size=20,
        shared_expert_intermediate_size=24,
        moe_routed_scaling_factor=2.5,
        rope_parameters={
            "full_attention": {
                "rope_type": "yarn",
                "rope_theta": 5e5,
                "factor": 4.0,
                "original_max_position_embeddings": 32,
                "partial_rotary_factor": 0.5,
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    ),
    "laguna-softcap": case(
        "laguna",
        "LagunaForCausalLM",
        head_dim=8,
        mlp_layer_types=["sparse", "dense"],
        num_experts=6,
        num_experts_per_tok=2,
        moe_intermediate_size=20,
        moe_router_logit_softcapping=1.5,
        shared_expert_intermediate_size=24,
        gating="per-element",
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "mimo_v2_flash": case(
        "mimo_v2_flash",
        "MiMoV2FlashForCausalLM",
        num_hidden_layers=6,
        head_dim=12,
        v_head_dim=10,
        num_key_value_heads=1,
        sliding_window=6,
        n_routed_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=20,
        routed_scaling_factor=None,
    ),
    "mimo_v2_flash-groups": case(
        "mimo_v2_flash",
        "MiMoV2FlashForCausalLM",
        head_dim=8,
        v_head_dim=8,
        layer_types=["sliding_attention", "full_attention"],
        mlp_layer_types=["sparse", "dense"],
        sliding_window=5,
        n_routed_experts=8,
        num_experts_per_tok=2,
        n_group=4,
        topk_group=2,
        moe_intermediate_size=20,
        norm_topk_prob=False,
        routed_scaling_factor=1.5,
        attention_value_scale=None,
        attention_bias=True,
        tie_word_embeddings=True,
        rope_parameters={
            "full_attention": {"rope_theta": 5e6, "partial_rotary_factor": 0.5},
            "sliding_attention": {"rope_theta": 1e4, "partial_rotary_factor": 0.75},
        },
    ),
    "minimax": case(
        "minimax",
        "MiniMaxForCausalLM",
        **LONG,
        num_hidden_layers=3,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        num_local_experts=4,
        num_experts_per_tok=2,
        block_size=32,
        full_attn_alpha_factor=3.5565588200778455,
        linear_attn_alpha_factor=3.5565588200778455,
        mlp_alpha_factor=3.5565588200778455,
    ),
    "minimax-factors": case(
        "minimax",
        "MiniMaxForCausalLM",
        **LONG,
        num_hidden_layers=4,
        head_dim=12,
        num_local_experts=6,
        num_experts_per_tok=3,
        full_attn_alpha_factor=1.5,
        full_attn_beta_factor=0.75,
        linear_attn_alpha_factor=1.25,
        linear_attn_beta_factor=0.5,
        mlp_alpha_factor=2.0,
        mlp_beta_factor=1.75,
        sliding_window=40,
    ),
    "zamba2": zamba2(
        num_hidden_layers=4,
        layers_block_type=["mamba", "hybrid", "mamba", "hybrid"],
        num_mem_blocks=2,
        intermediate_size=40,
        adapter_rank=6,
        use_shared_attention_adapter=False,
        use_mem_rope=False,
    ),
    "zamba2-rope": zamba2(
        num_hidden_layers=2,
        layers_block_type=["mamba", "hybrid"],
        mamba_ngroups=2,
        num_mem_blocks=1,
        adapter_rank=4,
        use_shared_attention_adapter=True,
        use_mem_rope=True,
        rope_theta=5e4,
        num_key_value_heads=4,
    ),
    "gemma4_unified": gemma4_unified(
        num_key_value_heads=4,
        num_global_key_value_heads=1,
        attention_k_eq_v=True,
        num_hidden_layers=2,
        layer_types=["sliding_attention", "full_attention"],
        final_logit_softcapping=None,
    ),
    "gemma4_unified-shared": gemma4_unified(
        num_hidden_layers=4,
        layer_types=["sliding_attention", "full_attention"] * 2,
        num_kv_shared_layers=2,
        use_double_wide_mlp=True,
        attention_bias=True,
        tie_word_embeddings=False,
    ),
    "gemma4_unified-whole": whole(
        "gemma4_unified",
        "Gemma4UnifiedForConditionalGeneration",
        gemma4_unified(),
        vision={"model_type": "gemma4_unified_vision", "mm_embed_dim": 32, "mm_posemb_size": 4},
    ),
    "deepseek_v32": indexed(
        "deepseek_v32",
        "DeepseekV32ForCausalLM",
        rope_scaling={**MSCALE, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0},
        topk_method="noaux_tc",
        scoring_func="sigmoid",
        n_group=4,
        topk_group=2,
        num_nextn_predict_layers=1,
    ),
    "glm_moe_dsa": indexed(
        "glm_moe_dsa",
        "GlmMoeDsaForCausalLM",
        num_hidden_layers=4,
        rope_parameters={"rope_theta": 1000000, "rope_type": "default"},
        rope_interleave=True,
        indexer_rope_interleave=True,
        topk_method="noaux_tc",
        scoring_func="sigmoid",
        n_group=1,
        topk_group=1,
        moe_layer_freq=1,
        index_topk_freq=2,
        num_nextn_predict_layers=1,
    ),
    "glm_moe_dsa-types": indexed(
        "glm_moe_dsa",
        "GlmMoeDsaForCausalLM",
        num_hidden_layers=2,
        layer_types=["indexed_attention"] * 2,
        mlp_layer_types=["sparse", "dense"],
        norm_topk_prob=False,
        attention_bias=True,
        v_head_dim=8,
        tie_word_embeddings=True,
    ),
    "longcat_flash": longcat(),
    "longcat_flash-plain": longcat(
        num_layers=1,
        zero_expert_num=1,
        moe_topk=2,
        attention_bias=True,
        v_head_dim=8,
        rope_theta=5e4,
        tie_word_embeddings=True,
    ),
    "codegen": gpt("codegen", "CodeGenForCausalLM", rotary_dim=4),
    "codegen-whole": gpt(
        "codegen",
        "CodeGenForCausalLM",
        rotary_dim=8,
        n_inner=40,
        activation_function="relu",
        tie_word_embeddings=True,
    ),
    "openai-gpt": gpt("openai-gpt", "OpenAIGPTLMHeadModel", afn="gelu"),
    "openai-gpt-untied": gpt(
        "openai-gpt", "OpenAIGPTLMHeadModel", layer_norm_epsilon=1e-6, tie_word_embeddings=False
    ),
    "xglm": xglm(),
    "xglm-plain": xglm(
        scale_embedding=False, activation_function="relu", tie_word_embeddings=False
    ),
    "glm4v-whole": whole(
        "glm4v",
        "Glm4vForConditionalGeneration",
        case(
            "glm4v_text",
            "Glm4vTextModel",
            partial_rotary_factor=0.5,
            rope_scaling={"type": "default", "mrope_section": [1, 1]},
            attention_bias=True,
        ),
        vision={"depth": 1, "num_heads": 2, "out_hidden_size": 32},
    ),
    "glm4v_moe-whole": whole(
        "glm4v_moe",
        "Glm4vMoeForConditionalGeneration",
        moe(
            "glm4v_moe_text",
            "Glm4vMoeTextModel",
            num_experts=...,
            n_routed_experts=6,
            head_dim=12,
            rope_scaling={"type": "default", "mrope_section": [1, 2]},
        ),
        vision={"depth": 1, "num_heads": 2, "out_hidden_size": 32},
    ),
    "mllama-whole": whole(
        "mllama",
        "MllamaForConditionalGeneration",
        case(
            "mllama_text_model",
            "MllamaForCausalLM",
            num_hidden_layers=5,
            cross_attention_layers=[1, 3],
            rope_theta=5e5,
            rope_scaling=LLAMA3,
        ),
        vision={
            "model_type": "mllama_vision_model",
            "num_global_layers": 1,
            "attention_heads": 2,
            "vision_output_dim": 32,
            "max_num_tiles": 1,
            "supported_aspect_ratios": [[1, 1]],
            "intermediate_layers_indices": [0],
        },
    ),
    "recurrent_gemma": recurrent_gemma(block_types=["recurrent", "recurrent", "attention"]),
    "recurrent_gemma-narrow": recurrent_gemma(
        lru_width=48,
        num_key_value_heads=None,
        attention_window_size=100,
        conv1d_width=3,
        logits_soft_cap=5.0,
        block_types=["attention", "recurrent"],
        attention_bias=True,
        partial_rotary_factor=1.0,
        tie_word_embeddings=False,
    ),
    "internlm2": case(
        "internlm2",
        "InternLM2ForCausalLM",
        bias=False,
        rope_theta=1e6,
        rope_scaling={"type": "dynamic", "factor": 2.0},
        auto_map={"AutoModelForCausalLM": "modeling_internlm2.InternLM2ForCausalLM"},
    ),
    "internlm2-biases": case("internlm2", "InternLM2ForCausalLM", bias=True, num_key_value_heads=4),
    "minicpm": case(
        "minicpm", "MiniCPMForCausalLM", scale_emb=12, scale_depth=1.4, dim_model_base=16
    ),
    "minicpm-plain": case(
        "minicpm", "MiniCPMForCausalLM", attention_bias=True, tie_word_embeddings=False
    ),
    # Second configurations.
    "glm-plain": case(
        "glm",
        "GlmForCausalLM",
        head_dim=8,
        num_key_value_heads=4,
        attention_bias=False,
        partial_rotary_factor=1.0,
        rope_theta=5e4,
        tie_word_embeddings=True,
    ),
    "olmo-biases-tied": case(
        "olmo",
        "OlmoForCausalLM",
        num_key_value_heads=4,
        attention_bias=True,
        clip_qkv=None,
        tie_word_embeddings=True,
        rope_scaling=LLAMA3,
    ),
    "granitemoe-tied": case(
        "granitemoe",
        "GraniteMoeForCausalLM",
        num_local_experts=4,
        num_experts_per_tok=1,
        num_key_value_heads=4,
        tie_word_embeddings=True,
        rope_theta=1e6,
        rms_norm_eps=1e-5,
    ),
    "granitemoeshared-alone": case(
        "granitemoeshared",
        "GraniteMoeSharedForCausalLM",
        num_local_experts=5,
        num_experts_per_tok=5,
        shared_intermediate_size=0,
        embedding_multiplier=6.0,
        logits_scaling=4.0,
        attention_bias=True,
    ),
    "hunyuan_v1_moe-biases": case(
        "hunyuan_v1_moe",
        "HunYuanMoEV1ForCausalLM",
        head_dim=12,
        num_experts=5,
        moe_topk=1,
        num_key_value_heads=4,
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "iquestcoder-biases": case(
        "iquestcoder",
        "IQuestCoderForCausalLM",
        head_dim=8,
        num_key_value_heads=4,
        attention_bias=True,
        mlp_bias=True,
        rope_scaling={"rope_type": "linear", "factor": 3.0},
        tie_word_embeddings=True,
    ),
    "cwm-layer-types": case(
        "cwm",
        "CwmForCausalLM",
        num_hidden_layers=3,
        head_dim=8,
        sliding_window=9,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={"rope_type": "default", "rope_theta": 5e4},
        num_key_value_heads=1,
        tie_word_embeddings=True,
    ),
    "exaone-tied": case(
        "exaone",
        "ExaoneForCausalLM",
        num_key_value_heads=4,
        attention_bias=True,
        mlp_bias=True,
        rope_theta=1e5,
        tie_word_embeddings=True,
    ),
    "vaultgemma-windows": case(
        "vaultgemma",
        "VaultGemmaForCausalLM",
        num_hidden_layers=3,
        head_dim=8,
        query_pre_attn_scalar=16,
        sliding_window=9,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
        final_logit_softcapping=5.0,
        attn_logit_softcapping=None,
        attention_bias=True,
    ),
    "solar_open-plain": case(
        "solar_open",
        "SolarOpenForCausalLM",
        intermediate_size=...,
        head_dim=8,
        n_routed_experts=4,
        num_experts_per_tok=1,
        moe_intermediate_size=16,
        n_shared_experts=1,
        norm_topk_prob=False,
        rope_theta=1e4,
        tie_word_embeddings=True,
    ),
    "granite_swa-biases": case(
        "granite_swa",
        "GraniteSWAForCausalLM",
        num_hidden_layers=3,
        sliding_window=9,
        layer_types=["full_attention", "sliding_attention", "full_attention"],
        residual_multiplier=0.5,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=False,
    ),
    "falcon_mamba-biases": mamba(
        "falcon_mamba",
        "FalconMambaForCausalLM",
        use_bias=True,
        use_conv_bias=False,
        conv_kernel=3,
        expand=3,
        time_step_rank=5,
    ),
    "bitnet-biases": case(
        "bitnet",
        "BitNetForCausalLM",
        num_key_value_heads=4,
        attention_bias=True,
        rms_norm_eps=1e-6,
        hidden_act="silu",
        tie_word_embeddings=False,
    ),
    "gpt_neo-local": case(
        "gpt_neo",
        "GPTNeoForCausalLM",
        num_hidden_layers=...,
        num_attention_heads=...,
        num_key_value_heads=...,
        num_heads=4,
        num_layers=2,
        attention_types=[[["local"], 2]],
        intermediate_size=40,
        window_size=9,
        activation_function="relu",
        tie_word_embeddings=False,
    ),
    "sarvam_mla-queries": latent(
        "sarvam_mla",
        "SarvamMLAForCausalLM",
        num_experts=4,
        num_experts_per_tok=2,
        num_shared_experts=2,
        n_group=1,
        topk_group=1,
        moe_intermediate_size=16,
        first_k_dense_replace=0,
        routed_scaling_factor=1.5,
        rope_interleave=False,
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "deepseek_v32-plain": indexed(
        "deepseek_v32",
        "DeepseekV32ForCausalLM",
        n_group=1,
        topk_group=1,
        norm_topk_prob=False,
        routed_scaling_factor=1.0,
        v_head_dim=8,
        attention_bias=True,
        tie_word_embeddings=True,
    ),
}
