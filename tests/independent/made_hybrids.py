"""Small models with layers that are no attention: their config.json, and the shapes of tensors
(decoder.md, families.md). make_checkpoint.py fills them."""

from made_tokenizer import NAMES

VOCABULARY = len(NAMES)
CONFIGS = {
    "qwen3_next": {
        "architectures": ["Qwen3NextForCausalLM"],
        "head_dim": 16,
        "hidden_act": "silu",
        "hidden_size": 260,
        "intermediate_size": 44,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 24,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_value_head_dim": 20,
        "max_position_embeddings": 640,
        "mlp_only_layers": [1],
        "moe_intermediate_size": 12,
        "norm_topk_prob": True,
        "num_attention_heads": 4,
        "num_experts": 6,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 4,
        "num_key_value_heads": 2,
        "partial_rotary_factor": 0.25,
        "rope_theta": 10000000.0,
        "shared_expert_intermediate_size": 10,
        "vocab_size": VOCABULARY,
    },
    "falcon_h1": {
        "architectures": ["FalconH1ForCausalLM"],
        "attention_in_multiplier": 0.75,
        "attention_out_multiplier": 0.375,
        "embedding_multiplier": 5.75,
        "head_dim": 18,
        "hidden_size": 260,
        "intermediate_size": 44,
        "key_multiplier": 0.39,
        "lm_head_multiplier": 0.39,
        "mamba_d_head": 10,
        "mamba_d_ssm": 40,
        "mamba_d_state": 18,
        "mamba_n_groups": 2,
        "mamba_n_heads": 4,
        "mamba_norm_before_gate": True,
        "mamba_rms_norm": True,
        "max_position_embeddings": 640,
        "mlp_multipliers": [0.88, 0.75],
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "projectors_bias": True,
        "rope_theta": 100000000000.0,
        "ssm_in_multiplier": 1.25,
        "ssm_multipliers": [1.5, 2.5, 1.75, 1.25, 0.35],
        "ssm_out_multiplier": 2.25,
        "time_step_limit": [0.25, 0.75],
        "vocab_size": VOCABULARY,
    },
    "mamba2": {
        "architectures": ["Mamba2ForCausalLM"],
        "conv_kernel": 3,
        "head_dim": 44,
        "hidden_size": 264,
        "n_groups": 3,
        "num_heads": 12,
        "num_hidden_layers": 2,
        "state_size": 20,
        "tie_word_embeddings": True,
        "vocab_size": VOCABULARY,
    },
}


def attention_shapes(config, at):
    heads, kv = (config[f"num_{n}_heads"] for n in ("attention", "key_value"))
    d, hidden = config.get("head_dim", config["hidden_size"] // heads), config["hidden_size"]
    yield f"{at}.q_proj.weight", heads * d * (2 if "linear_key_head_dim" in config else 1), hidden
    for part in "kv":
        yield f"{at}.{part}_proj.weight", kv * d, hidden
    yield f"{at}.o_proj.weight", hidden, heads * d


def mlp_shapes(hidden, inner, at):
    for part in ("gate", "up"):
        yield f"{at}.{part}_proj.weight", inner, hidden
    yield f"{at}.down_proj.weight", hidden, inner


def qwen_shapes(config):
    """families.12 and families.8, qwen3_next"""
    hidden, experts = config["hidden_size"], config["num_experts"]
    heads, values = (config[f"linear_num_{n}_heads"] for n in ("key", "value"))
    keys, width = (config[f"linear_{n}_head_dim"] for n in ("key", "value"))
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", hidden
        yield f"{at}.post_attention_layernorm.weight", hidden
        if layer % 4 == 3:
            yield from attention_shapes(config, f"{at}.self_attn")
            for part in "qk":
                yield f"{at}.self_attn.{part}_norm.weight", config["head_dim"]
        else:
            of, channels = f"{at}.linear_attn", 2 * heads * keys + values * width
            yield f"{of}.in_proj_qkvz.weight", channels + values * width, hidden
            yield f"{of}.in_proj_ba.weight", 2 * values, hidden
            yield f"{of}.conv1d.weight", channels, 1, config["linear_conv_kernel_dim"]
            yield from ((f"{of}.{name}", values) for name in ("A_log", "dt_bias"))
            yield f"{of}.norm.weight", width
            yield f"{of}.out_proj.weight", hidden, values * width
        if layer in config["mlp_only_layers"]:
            yield from mlp_shapes(hidden, config["intermediate_size"], f"{at}.mlp")
            continue
        yield f"{at}.mlp.gate.weight", experts, hidden
        yield f"{at}.mlp.shared_expert_gate.weight", 1, hidden
        shared = config["shared_expert_intermediate_size"]
        yield from mlp_shapes(hidden, shared, f"{at}.mlp.shared_expert")
        for e in range(experts):
            inner = config["moe_intermediate_size"]
            yield from mlp_shapes(hidden, inner, f"{at}.mlp.experts.{e}")
    yield "model.norm.weight", hidden
    yield from (
        (f"{name}.weight", VOCABULARY, hidden) for name in ("model.embed_tokens", "lm_head")
    )


def mixer_shapes(hidden, heads, width, groups, state, taps, at):
    """decoder.62"""
    inner = heads * width
    channels = inner + 2 * groups * state
    yield f"{at}.in_proj.weight", inner + channels + heads, hidden
    yield f"{at}.conv1d.weight", channels, 1, taps
    yield f"{at}.conv1d.bias", channels
    yield from ((f"{at}.{name}", heads) for name in ("A_log", "dt_bias", "D"))
    yield f"{at}.norm.weight", inner
    yield f"{at}.out_proj.weight", hidden, inner


def falcon_shapes(config):
    hidden = config["hidden_size"]
    sizes = (config[f"mamba_{n}"] for n in ("n_heads", "d_head", "n_groups", "d_state"))
    sizes = [hidden, *sizes, 4]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", hidden
        yield f"{at}.pre_ff_layernorm.weight", hidden
        yield from attention_shapes(config, f"{at}.self_attn")
        yield from mixer_shapes(*sizes, f"{at}.mamba")
        yield f"{at}.mamba.out_proj.bias", hidden
        yield from mlp_shapes(hidden, config["intermediate_size"], f"{at}.feed_forward")
    yield "model.final_layernorm.weight", hidden
    yield from (
        (f"{name}.weight", VOCABULARY, hidden) for name in ("model.embed_tokens", "lm_head")
    )


def mamba_shapes(config):
    hidden = config["hidden_size"]
    sizes = (config[n] for n in ("num_heads", "head_dim", "n_groups", "state_size", "conv_kernel"))
    sizes = [hidden, *sizes]
    for layer in range(config["num_hidden_layers"]):
        at = f"backbone.layers.{layer}"
        yield f"{at}.norm.weight", hidden
        yield from mixer_shapes(*sizes, f"{at}.mixer")
    yield "backbone.norm_f.weight", hidden
    yield "backbone.embeddings.weight", VOCABULARY, hidden


def shapes_of(config):
    """The name of each tensor, and the sizes of its dimensions."""
    shapes = {"qwen3_next": qwen_shapes, "falcon_h1": falcon_shapes, "mamba2": mamba_shapes}
    return shapes[config["model_type"]](config)
