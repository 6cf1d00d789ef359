"""Every key that transformers' configuration class of a family has (family_keys.json) changes what
is exported, or is refused by name, or has no effect for a reason that stands here."""

import json
import re
import sys
from pathlib import Path

import pytest
from conftest import execute

sys.path.insert(0, str(Path(__file__).parent))
from random_checkpoint import write  # noqa: E402

HERE = Path(__file__).parent
KEYS = json.loads((HERE / "family_keys.json").read_text())
# The first small checkpoint of each family.
FIRST = {}
for line in (HERE / "vectors.jsonl").read_text().splitlines():
    vector = json.loads(line)
    if vector["config"]["model_type"] in KEYS:  # a larger model's text model has the family's keys
        FIRST.setdefault(vector["config"]["model_type"], vector)

NO_EFFECT = {
    # Training, caches, and heads that this is not.
    "embedding_initializer_range",
    "initializer_range", "init_std", "use_cache", "layerdrop", "dropout", "attention_dropout",
    "hidden_dropout", "embedding_dropout", "residual_dropout", "classifier_dropout", "resid_pdrop",
    "embd_pdrop", "attn_pdrop", "summary_type", "summary_use_proj", "summary_activation",
    "summary_proj_to_labels", "summary_first_dropout", "pretraining_tp", "output_router_logits",
    "router_aux_loss_coef", "router_jitter_noise", "input_jitter_noise",
    "linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max", "linear_dt_init_floor",
    # Ids that the arithmetic does not read.
    "pad_token_id", "eod_token_id", "sep_token_id",
    # Layers behind the last one, which the logits do not need.
    "glm4_moe.num_nextn_predict_layers", "deepseek_v3.num_nextn_predict_layers",
    # The same result in another way.
    "reorder_and_upcast_attn", "is_decoder",
    # What the class writes beside the keys that it reads.
    "_sliding_window_pattern", "cohere2.head_dim",
    # For longrope alone.
    "phi3.original_max_position_embeddings",
    # Its longrope ends where the original length does.
    "phimoe.max_position_embeddings",
    # The same result in another way: tensor parallelism of the training.
    "slow_but_exact",
    # State-space layers, of which that checkpoint has none.
    "granitemoehybrid.mamba_conv_bias", "granitemoehybrid.mamba_d_conv",
    "granitemoehybrid.mamba_d_head", "granitemoehybrid.mamba_d_state",
    "granitemoehybrid.mamba_expand", "granitemoehybrid.mamba_n_groups",
    "granitemoehybrid.mamba_n_heads", "granitemoehybrid.mamba_proj_bias",
    "granitemoehybrid.time_step_limit",
    # How state-space layers start their training, and in which pieces and types they compute.
    "chunk_size", "mamba_chunk_size", "time_step_rank", "time_step_min", "time_step_max",
    "time_step_floor", "rescale_prenorm_residual", "residual_in_fp32", "use_mamba_kernels",
    "mamba_ssm_cache_dtype", "nemotron_h.time_step_limit", "nemotron_h.expand",
    # Losses, a number that generation asks for, and experts that are one in any case.
    "z_loss_coefficient", "num_logits_to_keep", "moe_shared_expert_overlap",
    "nemotron_h.n_shared_experts", "mtp_layers_block_type",
    # Limits of the training, how a scan is computed, a size that others give, and how time steps
    # start.
    "altup_coef_clip", "use_mambapy", "use_associative_scan", "mamba.intermediate_size",
    "falcon_mamba.intermediate_size", "time_step_scale", "time_step_init_scheme",
    "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "embed_dropout", "resid_dropout",
    "enable_moe_fp32_combine", "mtp_layer_types", "mtp_mlp_layer_types",
    "mellum.num_nextn_predict_layers", "nemotron_h.num_nextn_predict_layers",
    "gpt_bigcode.num_key_value_heads",
    # No part of a head is rotated, and linear_attn_config of that checkpoint says the others.
    "kimi_linear.head_dim", "kimi_linear.linear_num_heads", "kimi_linear.linear_head_dim",
    "kimi_linear.linear_conv_kernel_dim",
    # Sizes that others give, heads for more tokens that no file has, how a product is cut, and
    # layers of that checkpoint that use no keys of others.
    "attention_hidden_size", "hybrid_layer_ids", "kv_channels", "num_query_groups",
    "use_mem_eff_path", "sarvam_mla.head_dim", "sarvam_mla.num_nextn_predict_layers",
    "sarvam_moe.num_nextn_predict_layers", "minimax.block_size",
    "gemma4_unified_text.use_double_wide_mlp",
    # Of an indexer, which chooses all positions here.
    "index_head_dim", "index_n_heads", "indexer_types",
    # transformers ties nothing.
    "nemotron_h.tie_word_embeddings",
    # How much is dropped in training, and with what an answer begins that has a source.
    "activation_dropout", "xglm.decoder_start_token_id", "codegen.n_ctx",
    # How training starts, and what the sizes of heads follow from.
    "w_init_variance_scale", "final_w_init_variance_scale", "recurrent_gemma.head_dim",
    # transformers has no such positions, and asks nothing of the others.
    "learned_pos_emb", "embedding_fraction", "init_device", "emb_pdrop",
}  # fmt: skip
# Of some families they have one.
EFFECT = {"phimoe.router_jitter_noise", "nemotron_h.time_step_min", "zamba2.time_step_min"}
EFFECT |= {"mamba.time_step_rank", "falcon_mamba.time_step_rank", "xglm.pad_token_id"}
# Keys that need another one.
WINDOW = {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}
LIMITED = {"topk_method": "group_limited_greedy"}
WITH = {
    "deepseek_v2.n_group": {**LIMITED, "n_group": 1, "topk_group": 1},
    "deepseek_v2.topk_group": {**LIMITED, "n_group": 4, "topk_group": 2},
    "max_window_layers": WINDOW,
    "sliding_window": {"use_sliding_window": True, "max_window_layers": 1},
    "use_sliding_window": {"sliding_window": 6, "max_window_layers": 1},
    "qwen2_moe.max_window_layers": {**WINDOW, "max_window_layers": 2},
    "moe_layer_end_index": {"moe_layer_end_index": 1},
    "exaone4.sliding_window_pattern": {"layer_types": None, "sliding_window_pattern": 2},
    "exaone_moe.sliding_window_pattern": {"layer_types": None},
    "full_attn_idxs": {"layer_types": None},
    "lfm2.intermediate_size": {"block_auto_adjust_ff_dim": False},
    "mamba_expand": {"mamba_d_ssm": None, "mamba_d_head": "auto"},
    "attention_chunk_size": {"max_position_embeddings": 9000},
    "gemma4_text.num_experts": {"enable_moe_block": True},
    "gemma4_text.top_k_experts": {"enable_moe_block": True, "num_experts": 4},
    "gemma4_text.moe_intermediate_size": {
        "enable_moe_block": True,
        "num_experts": 4,
        "top_k_experts": 2,
    },
    "zamba2.rope_parameters": {"use_mem_rope": True},
    "deepseek_v32.max_position_embeddings": {"index_topk": 4096},
    "glm_moe_dsa.max_position_embeddings": {"index_topk": 4096},
    "num_kv_heads": {"new_decoder_architecture": True, "num_kv_heads": 4},
    "num_ln_in_parallel_attn": {"new_decoder_architecture": True, "num_kv_heads": 4},
}
# Objects whose own keys decide.
OBJECTS = {"attn_config": {"clip_qkv": 1.0}}


def other(value):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1 if value else 3
    if isinstance(value, float):
        return 2 * value + 0.125
    if isinstance(value, str):
        return "another"
    if isinstance(value, list):
        return [*value[:-1], "another"] if value else ["another"]
    return {"rope_type": "another"} if isinstance(value, dict) else 3


@pytest.fixture(scope="module", params=FIRST)
def family(request, tmp_path_factory):
    """-> (model_type, a function from changes of the config to what becomes of an export)."""
    vector = FIRST[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    write(folder / "model", vector["config"], vector["shapes"], vector["seed"])

    def exported(changes):
        config = {k: v for k, v in {**vector["config"], **changes}.items() if v is not ...}
        (folder / "model/config.json").write_text(json.dumps(config))
        done = execute(["export", "--model-name", folder / "model", "-o", folder / "out"])
        if done.code:
            assert done.code in (2, 3) and len(done.errors) == 1, done.text
            return done.errors[0]
        graph = (folder / "out/model.onnx").read_bytes()
        return re.sub(rb"(?<=invar.config_sha256).{2}[0-9a-f]{64}", b"", graph, flags=re.S)

    return request.param, exported


def test_every_key_is_used_or_refused(family):
    name, exported = family
    silent = []
    for key, default in KEYS[name].items():
        needed = WITH.get(f"{name}.{key}", WITH.get(key, {}))
        beside = {k: v for k, v in needed.items() if k in KEYS[name]}
        config = {**FIRST[name]["config"], **beside}
        value = OBJECTS.get(key, other(config.get(key, default)))
        changed = exported({**beside, key: value}) != exported(beside)
        listed = {key, f"{name}.{key}"} & NO_EFFECT and f"{name}.{key}" not in EFFECT
        if changed == bool(listed):
            silent.append(f"{key} = {value} " + ("has an effect" if changed else "has none"))
    assert silent == []


# Tokens are those of the files, and what follows from sizes is another number with other sizes.
OF_SIZES = {"bos_token_id", "eos_token_id", "hyperclovax.attention_multiplier"}
ROPE_BESIDE = {
    "rope_theta",
    "rope_scaling",
    "rope_local_base_freq",
    "rotary_emb_base",
    "rotary_pct",
}
ROPE_BESIDE |= {"partial_rotary_factor", "layer_rope_theta"}


def test_an_absent_key_is_the_default_of_transformers(family):
    """Where both forms of a config are covered, they are the same program."""
    name, exported = family
    different = []
    for key, default in KEYS[name].items():
        if default is None or {key, f"{name}.{key}"} & OF_SIZES:
            continue
        beside = ROPE_BESIDE if key == "rope_parameters" else set()
        absent = dict.fromkeys(beside | {key}, ...)
        made = [exported(absent), exported({**absent, key: default})]
        if all(isinstance(m, bytes) for m in made) and made[0] != made[1]:
            different.append(f"{key}, absent, is not {default}")
    assert different == []
