"""What a config asks for and its family does not know is refused by name; a value that transformers
would not take is bad input."""

import json
import sys
from pathlib import Path

import pytest
from conftest import invar

sys.path.insert(0, str(Path(__file__).parent))
from random_checkpoint import write  # noqa: E402

LINES = (Path(__file__).parent / "vectors.jsonl").read_text().splitlines()
VECTORS = {v["name"]: v for v in map(json.loads, LINES)}
LONG = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
ALPHA = {"type": "dynamic", "alpha": 1000.0}
REFUSED = [
    ("qwen3", "rope_scaling", LONG, "longrope"),
    ("phi3", "rope_scaling", {"rope_type": "yarn", "factor": 2.0}, "yarn"),
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
]
BAD = [
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
