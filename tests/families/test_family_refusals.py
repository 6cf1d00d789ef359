"""What a config asks for and its family does not know is refused by name; a value that transformers
would not take is bad input."""

import json
import re
import sys
from pathlib import Path

import pytest
from conftest import ROOT, invar

sys.path.insert(0, str(Path(__file__).parent))
from random_checkpoint import write  # noqa: E402

LINES = (Path(__file__).parent / "vectors.jsonl").read_text().splitlines()
VECTORS = {v["name"]: v for v in map(json.loads, LINES)}
UNTRUNCATED = {"rope_type": "yarn", "factor": 2.0, "truncate": False}
LONG = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
ALPHA = {"type": "dynamic", "alpha": 1000.0}
GROWING = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 9}
GROWING |= {"llama_4_scaling_beta": 0.1, "rope_theta": 1e4}
MLLAMA = VECTORS["mllama-whole"]["config"]["text_config"]
REFUSED = [
    ("deepseek_v3", "quantization_config", {"quant_method": "hqq"}, "bfloat16"),
    ("deepseek_v32", "layer_types", ["full_attention"] * 3, "indexed_attention"),
    ("glm_moe_dsa", "rope_interleave", False, "rope_interleave"),
    ("glm_moe_dsa", "mlp_bias", True, "mlp_bias"),
    ("glm_moe_dsa", "scoring_func", "softmax", "scoring_func"),
    ("longcat_flash", "zero_expert_type", "copy", "zero_expert_type"),
    ("longcat_flash", "zero_expert_num", 513, "zero_expert_num"),
    ("longcat_flash", "mla_scale_q_lora", False, "mla_scale_q_lora"),
    ("longcat_flash", "attention_method", "GQA", "attention_method"),
    ("longcat_flash", "router_bias", True, "router_bias"),
    ("openai-gpt", "afn", "swish", "afn"),
    ("xglm", "pad_token_id", 5, "pad_token_id"),
    ("xglm", "add_cross_attention", True, "add_cross_attention"),
    ("recurrent_gemma", "block_types", ["recurrent", "global"], "global"),
    ("recurrent_gemma", "conv1d_width", 9, "conv1d_width"),
    ("qwen3_5", "attn_output_gate", False, "attn_output_gate"),
    ("qwen3_5", "mamba_ssm_dtype", "bfloat16", "mamba_ssm_dtype"),
    ("qwen3_5", "hidden_act", "gelu", "hidden_act"),
    ("qwen3_5", "linear_conv_kernel_dim", 9, "linear_conv_kernel_dim"),
    ("qwen3_5", "layer_types", ["linear_attention"] * 2, "recurrent"),
    ("qwen3_5", "layer_types", ["linear_attention", "sliding_attention"], "sliding_attention"),
    ("llama", "model_type", "zamba", "several layers share"),
    ("zamba2", "add_bias_linear", True, "add_bias_linear"),
    ("zamba2", "use_long_context", True, "use_long_context"),
    ("zamba2", "rms_norm_eps", 1e-6, "rms_norm_eps"),
    ("zamba2", "layers_block_type", ["mamba", "attention", "mamba", "hybrid"], "attention"),
    ("minimax", "layer_types", ["sliding_attention"] * 3, "sliding_attention"),
    ("laguna", "gating", False, "gating"),
    ("laguna", "moe_apply_router_weight_on_input", True, "moe_apply_router_weight_on_input"),
    ("cohere2_moe", "expert_selection_fn", "sparsemax", "sparsemax"),
    ("cohere2_moe", "shared_expert_combination_strategy", "product", "product"),
    ("sarvam_moe", "use_bias", True, "use_bias"),
    ("llama", "model_type", "deepseek_v4", "compressed keys"),
    ("gemma3n", "altup_num_inputs", 65, "altup_num_inputs"),
    ("kimi_linear", "mla_use_nope", False, "mla_use_nope"),
    ("kimi_linear", "moe_router_activation_func", "softmax", "moe_router_activation_func"),
    ("kimi_linear", "attn_res_block_size", 12, "attn_res_block_size"),
    ("kimi_linear", "linear_attn_config", {"gate_lower_bound": -5.0}, "gate_lower_bound"),
    ("afmoe", "score_func", "softmax", "score_func"),
    ("afmoe", "route_norm", False, "route_norm"),
    ("afmoe", "n_group", 2, "n_group"),
    ("mamba", "hidden_act", "gelu", "hidden_act"),
    ("mamba", "conv_kernel", 9, "conv_kernel"),
    ("deepseek_v3", "topk_method", "greedy", "topk_method"),
    ("deepseek_v3", "scoring_func", "softmax", "scoring_func"),
    ("deepseek_v3", "num_key_value_heads", 2, "num_key_value_heads"),
    ("deepseek_v3", "moe_layer_freq", 2, "moe_layer_freq"),
    ("deepseek_v3", "head_dim", 8, "head_dim"),
    ("deepseek_v3", "qk_head_dim", 8, "qk_head_dim"),
    ("deepseek_v2", "norm_topk_prob", True, "norm_topk_prob"),
    ("deepseek_v2", "mlp_bias", True, "mlp_bias"),
    ("deepseek_v2", "topk_method", "noaux_tc", "noaux_tc"),
    ("deepseek_v2", "scoring_func", "sigmoid", "scoring_func"),
    ("glm4_moe_lite", "first_k_dense_replace", 2, "first_k_dense_replace"),
    ("qwen3", "rope_scaling", LONG, "longrope"),
    ("phi3", "rope_scaling", {"rope_type": "yarn", "factor": 2.0}, "yarn"),
    ("gemma4", "rope_parameters", {"full_attention": UNTRUNCATED}, "truncate"),
    ("qwen2", "rope_scaling", {**ALPHA, "factor": 2.0}, "alpha"),
    ("gemma3", "attn_logit_softcapping", 50.0, "attn_logit_softcapping"),
    ("gemma", "use_bidirectional_attention", True, "use_bidirectional_attention"),
    ("gemma2", "hidden_activation", "quick_gelu", "quick_gelu"),
    ("mistral-window", "layer_types", ["full_attention"] * 2, "layer_types"),
    ("qwen2", "layer_types", ["chunked_attention"] * 2, "chunked_attention"),
    ("qwen3", "partial_rotary_factor", 0.5, "partial_rotary_factor"),
    ("stablelm", "partial_rotary_factor", 0.2, "pairs"),
    ("stablelm", "partial_rotary_factor", 1e30, "pairs"),
    ("cohere2", "use_qk_norm", True, "use_qk_norm"),
    ("bloom", "apply_residual_connection_post_layernorm", True, "apply_residual"),
    ("mpt", "attn_config", {"prefix_lm": True}, "prefix_lm"),
    ("mpt", "attn_config", {"alibi": False}, "alibi"),
    ("mpt", "attn_config", {"alibi_bias_max": 4}, "alibi_bias_max"),
    ("mpt", "attn_config", {"attn_type": "multiquery_attention"}, "multiquery_attention"),
    ("mpt", "no_bias", False, "no_bias"),
    ("mpt", "logit_scale", 2.0, "logit_scale"),
    ("mpt", "expansion_ratio", 2, "expansion_ratio"),
    ("gemma3-whole", "quantization_config", {"bits": 4}, "quantization_config"),
    ("gemma3-whole", "text_config", {"model_type": "llama"}, "llama"),
    ("qwen3", "auto_map", {"AutoModelForCausalLM": "modeling.Other"}, "auto_map"),
    ("granite", "num_local_experts", 4, "num_local_experts"),
    ("starcoder2", "hidden_act", "mish", "mish"),
    ("olmo2", "clip_qkv", 8.0, "clip_qkv"),
    ("olmoe", "clip_qkv", 8.0, "clip_qkv"),
    ("qwen3_moe", "num_experts", 513, "512"),
    ("hunyuan_v1_moe", "moe_topk", [2, 2], "moe_topk"),
    ("granitemoe", "mlp_bias", True, "mlp_bias"),
    ("mixtral", "n_routed_experts", 4, "n_routed_experts"),
    ("granitemoehybrid", "layer_types", ["mamba", "window"], "window"),
    ("lfm2", "conv_L_cache", 9, "conv_L_cache"),
    ("lfm2", "layer_types", ["conv", "sliding_attention", "conv"], "sliding_attention"),
    ("mamba2", "hidden_act", "gelu", "hidden_act"),
    ("nemotron_h", "hybrid_override_pattern", "MEM*-X", '"X"'),
    ("nemotron_h", "attention_bias", True, "attention_bias"),
    ("nemotron_h", "sliding_window", 6, "sliding_window"),
    ("granitemoehybrid", "position_embedding_type", "alibi", "position_embedding_type"),
    ("mixtral", "quantization_config", {"quant_method": "awq"}, "quantization_config"),
    ("internlm3", "qkv_bias", True, "qkv_bias"),
    ("cwm", "rope_scaling", None, "rope_scaling"),
    ("ministral3", "rope_parameters", None, "rope_parameters"),
    ("arcee", "hidden_act", "xielu", "xielu"),
    ("exaone4-pattern", "sliding_window_pattern", "LG", "sliding_window_pattern"),
    ("llama4", "layer_types", ["sliding_attention"] * 4, "chunked_attention"),
    ("mistral4-groups", "rope_parameters", {**GROWING, "partial_rotary_factor": 0.5}, "partial"),
    ("qwen2", "rope_parameters", GROWING, "llama_4_scaling_beta"),
    ("gemma4", "use_bidirectional_attention", "all", "use_bidirectional_attention"),
    ("gemma4", "vocab_size_per_layer_input", 60, "vocab_size_per_layer_input"),
    ("gemma4-experts", "per_layer_config", {"1": {"head_dim": 12}}, "per_layer_config"),
    ("gemma4-experts", "per_layer_config", {"1": {}, "2": {"rope": 1}}, "rope"),
]
BAD = [
    ("laguna", "num_attention_heads_per_layer", [4, 6, 6], "num_attention_heads_per_layer"),
    ("laguna", "num_attention_heads_per_layer", [4, 5, 6, 2], "num_attention_heads_per_layer"),
    ("gemma3n", "altup_active_idx", 4, "altup_active_idx"),
    ("gemma3n", "activation_sparsity_pattern", [0.5, 0.5, 0.5, 1.0], "activation_sparsity_pattern"),
    ("gemma3n", "intermediate_size", [44, 44], "intermediate_size"),
    ("gemma3n", "num_kv_shared_layers", 4, "num_kv_shared_layers"),
    ("kimi_linear", "linear_attn_config", {"kda_layers": [1, 2, 3]}, "full_attn_layers"),
    ("kimi_linear", "n_shared_experts", 2, "num_shared_experts"),
    ("jamba", "attn_layer_offset", 2, "attn_layer_offset"),
    ("jamba", "mamba_dt_rank", 0, "mamba_dt_rank"),
    ("mamba", "time_step_rank", 3, "x_proj"),
    ("gpt_neo", "attention_types", [[["global"], 2]], "attention_types"),
    ("gpt_neo", "attention_layers", ["local"] * 4, "attention_layers"),
    ("qwen3_5", "linear_num_value_heads", 3, "linear_num_value_heads"),
    ("qwen3_5", "layer_types", ["full_attention"], "layer_types"),
    ("qwen3_5", "linear_key_head_dim", 9, "in_proj_qkv"),
    ("deepseek_v3", "qk_rope_head_dim", 3, "odd"),
    ("deepseek_v3", "kv_lora_rank", 0, "kv_lora_rank"),
    ("deepseek_v3", "v_head_dim", 11, "kv_b_proj"),
    ("deepseek_v2", "n_group", 3, "n_group"),
    ("deepseek_v2", "num_experts_per_tok", None, "num_experts_per_tok"),
    ("glm4_moe_lite", "mlp_layer_types", ["dense"], "mlp_layer_types"),
    ("codegen", "n_embd", 30, "n_embd"),
    ("recurrent_gemma", "intermediate_size", 45, "intermediate_size"),
    ("recurrent_gemma", "block_types", [], "block_types"),
    ("recurrent_gemma", "lru_width", 33, "lru_width"),
    (
        "mllama-whole",
        "text_config",
        {**MLLAMA, "cross_attention_layers": [1, 9]},
        "cross_attention_layers",
    ),
    ("mllama-whole", "text_config", {**MLLAMA, "cross_attention_layers": []}, "layers.1.self_attn"),
    ("minicpm3", "scale_depth", 0, "scale_depth"),
    ("minicpm3", "dim_model_base", -1, "dim_model_base"),
    ("mistral-window", "sliding_window", 0, "sliding_window"),
    ("qwen2", "layer_types", ["sliding_attention"] * 2, "sliding_window"),
    ("qwen2", "layer_types", ["full_attention"], "layer_types"),
    ("smollm3", "no_rope_layers", [1], "no_rope_layers"),
    ("granite", "logits_scaling", 0, "logits_scaling"),
    ("gptj", "rotary_dim", 3, "rotary_dim"),
    ("phi3", "rope_scaling", {**LONG, "short_factor": [1.0] * 3}, "short_factor"),
    ("phi3", "rope_scaling", {**LONG, "long_factor": [1.0, 1.0, 1.0, 0.0]}, "long_factor"),
    ("qwen2", "rope_scaling", {"type": "dynamic"}, "factor"),
    ("gemma3-whole", "text_config", [], "text_config"),
    ("opt", "word_embed_proj_dim", 16, "embed_tokens"),
    ("gpt2", "hidden_size", 64, "n_embd"),
    ("gpt2", "n_head", 5, "n_head"),
    ("nemotron", "intermediate_size", 45, "mlp.up_proj.weight"),
    ("gemma2", "query_pre_attn_scalar", 0, "query_pre_attn_scalar"),
    ("qwen3_moe", "num_experts_per_tok", 9, "num_experts_per_tok"),
    ("qwen3_moe", "num_experts", 9, "mlp.gate.weight"),
    ("qwen3_moe", "num_experts", 0, "num_experts"),
    ("qwen3_moe", "mlp_only_layers", ["0"], "mlp_only_layers"),
    ("qwen3_moe", "decoder_sparse_step", 0, "decoder_sparse_step"),
    ("mixtral", "num_experts", 3, "num_local_experts"),
    ("longcat_flash", "num_hidden_layers", 3, "num_hidden_layers"),
    ("longcat_flash", "intermediate_size", 45, "ffn_hidden_size"),
    ("longcat_flash", "zero_expert_num", 4, "mlp.router.classifier"),
    ("glm4_moe", "n_group", 3, "n_group"),
    ("glm4_moe", "topk_group", 1, "topk_group"),
    ("glm4_moe", "n_group", 8, "n_group"),
    ("ernie4_5_moe", "moe_layer_end_index", "last", "moe_layer_end_index"),
    ("ministral3", "rope_parameters", {"rope_type": "default"}, "llama_4_scaling_beta"),
    ("llama4", "moe_layers", 3, "moe_layers"),
    ("exaone", "num_hidden_layers", 3, "num_hidden_layers"),
    ("gemma4", "num_kv_shared_layers", 8, "num_kv_shared_layers"),
    ("gemma4", "global_head_dim", 7, "7 elements"),
    ("dots1", "n_routed_experts", None, "n_routed_experts"),
    ("granitemoehybrid", "layer_types", None, "mamba.in_proj"),
    ("lfm2", "layer_types", ["conv"], "layer_types"),
    ("lfm2_moe", "layer_types", None, "layer_types"),
    ("lfm2-old-keys", "full_attn_idxs", 1, "full_attn_idxs"),
    ("lfm2-old-keys", "block_ffn_dim_multiplier", 1e9, "block_ffn_dim_multiplier"),
    ("mamba2", "n_groups", 3, "n_groups"),
    ("mamba2", "num_heads", 5, "num_heads"),
    ("mamba2", "time_step_limit", [1.0, 0.5], "time_step_limit"),
    ("mamba2", "time_step_limit", [0.0, "Infinity"], "time_step_limit"),
    ("bamba", "attn_layer_indices", "1", "attn_layer_indices"),
    ("falcon_h1", "ssm_multipliers", [1.0] * 4, "ssm_multipliers"),
    ("falcon_h1", "mamba_d_head", 12, "mamba_d_head"),
    ("nemotron_h", "hybrid_override_pattern", "", "layers_block_type"),
]


@pytest.mark.parametrize(
    "name,key,value,named,code", [(*r, 3) for r in REFUSED] + [(*b, 2) for b in BAD]
)
def test_a_setting_is_refused_by_name(name, key, value, named, code, tmp_path):
    vector = VECTORS[name]
    config = {**vector["config"], key: value}
    write(tmp_path / "model", config, vector["shapes"], vector["seed"])
    done = invar("export", "--model-name", tmp_path / "model", "-o", tmp_path, code=code)
    assert named in done.errors[0], done.text
    assert not (tmp_path / "model.onnx").exists()


UNCOVERED = re.findall(
    r'^    {"(\w+)", "',
    (ROOT / "src/checkpoint/architecture.h").read_text().split("kUncovered")[1],
    re.M,
)


def test_a_refused_family_says_what_to_do(tmp_path):
    assert len(UNCOVERED) > 3
    configs = [{"model_type": t, "architectures": ["Other"]} for t in (*UNCOVERED, "other")]
    configs += [{"model_type": "other"}, {"architectures": ["Other"]}]
    for config in configs:
        (tmp_path / "config.json").write_text(json.dumps(config))
        done = invar("export", "--model-name", tmp_path, "-o", tmp_path / "out", code=3)
        assert "docs/reference/families.md" in done.errors[0], done.text
        assert "docs/guide/models.md" in done.errors[0], done.text


def test_layers_for_predicting_more_tokens_are_not_read(tmp_path):
    """Of num_nextn_predict_layers behind the last layer, and no others."""
    vector = VECTORS["glm4_moe"]
    layers = vector["config"]["num_hidden_layers"]
    for number, code in ((layers, 0), (layers + 1, 3)):
        shapes = {**vector["shapes"], f"model.layers.{number}.eh_proj.weight": [32, 64]}
        folder = tmp_path / str(number)
        write(folder, vector["config"], shapes, vector["seed"])
        done = invar("export", "--model-name", folder, "-o", tmp_path / "out", code=code)
        assert code == 0 or f"layers.{number}.eh_proj" in done.errors[0]


@pytest.mark.parametrize("name", ["qwen3_5", "qwen3_next", "nemotron_h", "exaone4", "mellum"])
def test_heads_for_more_tokens_are_not_read(name, tmp_path):
    vector = VECTORS[name]
    shapes = {**vector["shapes"], "mtp.fc.weight": [32, 64]}
    config = {**vector["config"], "num_nextn_predict_layers": 1}
    write(tmp_path / "model", config, shapes, vector["seed"])
    invar("export", "--model-name", tmp_path / "model", "-o", tmp_path / "out")


def test_an_infinite_number_is_read_as_python_writes_it(tmp_path):
    vector = VECTORS["mamba2"]
    write(tmp_path / "model", vector["config"], vector["shapes"], vector["seed"])
    export = ["export", "--model-name", tmp_path / "model", "-o", tmp_path / "out"]
    sizes = set()
    for limit, code in (('{"__float__": "Infinity"}', 0), ("Infinity", 0), ("NaN", 2)):
        config = json.dumps({**vector["config"], "time_step_limit": [0.0, "LIMIT"]})
        (tmp_path / "model/config.json").write_text(config.replace('"LIMIT"', limit))
        done = invar(*export, code=code)
        assert code == 0 or "config.json" in done.errors[0]
        sizes.add((tmp_path / "out/model.onnx").stat().st_size)
    assert len(sizes) == 1  # a limit would be a node
