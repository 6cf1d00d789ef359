"""Small random models of the causal types of transformers: a config of the type's own defaults
with sizes that a test can afford."""

import torch

VOCABULARY = 2048  # that of the shipped tokenizer
# Attribute -> its small value, wherever a config has it and no override says otherwise.
SIZES = {
    "vocab_size": VOCABULARY,
    **dict.fromkeys(
        ("hidden_size", "n_embd", "d_model", "dim", "embed_dim", "dim_model", "emb_dim"), 32
    ),
    **dict.fromkeys(
        (
            "num_hidden_layers",
            "n_layer",
            "n_layers",
            "num_layers",
            "decoder_layers",
            "encoder_layers",
            "num_blocks",
        ),
        2,
    ),
    **dict.fromkeys(
        (
            "num_attention_heads",
            "n_head",
            "n_heads",
            "num_heads",
            "decoder_attention_heads",
            "encoder_attention_heads",
        ),
        4,
    ),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads", "n_kv_heads"), 2),
    **dict.fromkeys(
        (
            "intermediate_size",
            "ffn_dim",
            "decoder_ffn_dim",
            "encoder_ffn_dim",
            "n_inner",
            "dff",
            "dim_ff",
            "ffn_hidden_size",
            "d_inner",
        ),
        48,
    ),
    **dict.fromkeys(
        ("moe_intermediate_size", "shared_expert_intermediate_size", "expert_ffn_hidden_size"), 24
    ),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx"), 256),
    **dict.fromkeys(
        ("head_dim", "attention_head_size", "global_head_dim", "kv_channels", "swa_head_dim"), 16
    ),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token", "moe_topk"), 2),
    **dict.fromkeys(("moe_k", "top_k_experts"), 2),
    **dict.fromkeys(("sliding_window", "attention_window", "window_size"), 24),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank"), 24),
    **dict.fromkeys(("qk_nope_head_dim", "v_head_dim", "qk_head_dim"), 16),
    "qk_rope_head_dim": 8,
    "first_k_dense_replace": 1,
    **dict.fromkeys(("n_group", "num_expert_group", "topk_group"), 1),
    **dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 16),
    **dict.fromkeys(("linear_num_key_heads",), 2),
    **dict.fromkeys(("linear_num_value_heads",), 4),
    **dict.fromkeys(("bos_token_id",), 1),
    **dict.fromkeys(("eos_token_id", "pad_token_id", "decoder_start_token_id"), 0),
}

DECODER = {"is_decoder": True}  # of types that are encoders too
# Settings of types whose defaults do not fit together when they are small, or ask for something
# else.
SETTINGS = {
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 24},
    "zamba2": {
        "num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid"] * 2, "layer_types": ...,
        "mamba_d_state": 8, "mamba_headdim": 8, "mamba_ngroups": 1, "num_mem_blocks": 1,
    },
    "zaya": {"num_experts_per_tok": 1, "moe_topk": 1},
    "zamba": {"num_hidden_layers": 4, "layers_block_type": ["linear_attention", "hybrid"] * 2},
    "codegen": {"rotary_dim": 8},
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}},
    },
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 48, "hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "roformer": DECODER | {"embedding_size": 32},
    "electra": DECODER | {"embedding_size": 32},
    "rembert": DECODER | {"input_embedding_size": 32, "output_embedding_size": 32},
    "big_bird": DECODER | {"attention_type": "original_full"},
    "xlm": {"causal": True, "is_encoder": False},
    "mimo_v2_flash": {"num_hidden_layers": 2},
    **dict.fromkeys(
        ("bert", "bert-generation", "camembert", "data2vec-text", "ernie", "megatron-bert", "roberta",
         "roberta-prelayernorm", "roc_bert", "xlm-roberta", "xlm-roberta-xl"),
        DECODER,
    ),
    "xmod": DECODER | {"default_language": "en_XX"},
}  # fmt: skip
# Causal types of transformers 5.24 without a recipe.
KINDS = """
persimmon apertus1p5_text aria_text beam biogpt cohere2_moe ctrl diffllama dory flint
gemma4_unified_text gpt-sw3 gpt_bigcode granitemoe_swa hy_v3 jetmoe kolibri1 laguna lara_mini lfm3
mellum modernbert-decoder openai-gpt codegen gpt_neox_japanese doge xglm bart blenderbot
blenderbot-small marian mbart pegasus plbart mvp trocr whisper bert bert-generation camembert
ernie data2vec-text megatron-bert electra roberta roberta-prelayernorm rembert roformer roc_bert
xlm-roberta xlm-roberta-xl xmod gpt_neo axk1 axk2 zamba zamba2 zaya sarvam_moe sarvam_mla minimax
mimo_v2_flash hy_v4 inkling_text minimax_m3_vl_text qwen4_exp_text bailing_hybrid deepseek_v4
dots3_note_text cohere_compass_text xlnet xlm bigbird_pegasus prophetnet rwkv recurrent_gemma
longcat_flash hrm_text cpmant big_bird deepseek_v32 glm_moe_dsa inkling2_text moshi musicgen xlstm
dbrx
""".split()


def config_of(kind, **settings):
    """The config of a model_type: `settings` are of its constructor."""
    from transformers import CONFIG_MAPPING

    cls = CONFIG_MAPPING[kind]
    default = cls()
    given = {k: v for k, v in SIZES.items() if vars(default).get(k) is not None}
    if (
        "qk_rope_head_dim" in given
    ):  # latent attention: its sizes are others, its heads have keys of their own
        given.pop("head_dim", None)
        given["num_key_value_heads"] = given["num_attention_heads"]
    layers = vars(default).get("layer_types")
    if isinstance(layers, list):
        kinds = sorted(set(layers))
        given["layer_types"] = (kinds * 2)[: max(2, len(kinds))]
        given["num_hidden_layers"] = len(given["layer_types"])
    given.update({"eos_token_id": None} | SETTINGS.get(kind, {}) | settings)
    return cls(**{k: v for k, v in given.items() if v is not ...})


def model_of(config, seed=0):
    """A model with random weights that lets its layers decide what comes next."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for name, p in model.named_parameters():
        if p.dim() >= 2 and "embed" not in name and "A_log" not in name:
            torch.nn.init.normal_(p.data, std=p.shape[-1] ** -0.5)
    return model
