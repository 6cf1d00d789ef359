#!/usr/bin/env python3
"""Writes tests/families/real/real_configs.jsonl: for each config.json of a folder, which has the
name ORG--NAME.json of its repository, its keys with small sizes, the tensors that it then asks for,
and what transformers computes; or why it is refused. Needs transformers, torch and the built
program.

INVAR_BIN=build/bin/invar real_configs.py FOLDER [ORG/NAME ...]: these, else all"""

import copy
import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from make_vectors import ROOT, Float64, as_known, auto_class, respell, shapes_of, stored

sys.path[:0] = [str(ROOT / "tests/families"), str(ROOT / "tests/families/real")]
from random_checkpoint import write  # noqa: E402
from tensor_names import packed  # noqa: E402

OUT = ROOT / "tests/families/real/real_configs.jsonl"
VOCABULARY, TOKENS, SEED = 64, [1, 7, 33, 12, 50], 7
# Text models under the names that transformers has for them alone.
TEXT_MODELS = {
    "qwen3_vl_text": ("qwen3", "Qwen3ForCausalLM"),
    "qwen3_vl_moe_text": ("qwen3_moe", "Qwen3MoeForCausalLM"),
    "exaone4_5_text": ("exaone4", "Exaone4ForCausalLM"),
    "kimi_k2": ("deepseek_v3", "DeepseekV3ForCausalLM"),
    "mimo": ("qwen2", "Qwen2ForCausalLM"),
}
# New sizes of keys, whatever they were.
SIZES = {
    "vocab_size": VOCABULARY,
    "vocab_size_per_layer_input": VOCABULARY,
    "intermediate_size": 48,
    "ffn_dim": 48,
    "n_inner": 48,
    "block_ff_dim": 48,
    "intermediate_size_mlp": 40,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 24,
    "shared_intermediate_size": 24,
    "moe_shared_expert_intermediate_size": 24,
    "moe_latent_size": 16,
    "kv_lora_rank": 16,
    "q_lora_rank": 12,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "qk_head_dim": 12,
    "global_head_dim": 24,
    "hidden_size_per_layer_input": 6,
    "laurel_rank": 6,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "mamba_head_dim": 16,
    "mamba_d_head": 16,
    "mamba_d_ssm": 64,
    "mamba_n_heads": 4,
    "mamba_num_heads": 4,
    "ssm_state_size": 8,
    "mamba_d_state": 8,
}
# Largest sizes of keys.
LIMITS = {
    "num_experts": 8,
    "num_local_experts": 8,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "num_experts_per_token": 3,
    "top_k_experts": 3,
    "n_shared_experts": 1,
    "n_group": 4,
    "topk_group": 2,
    "n_groups": 2,
    "mamba_n_groups": 2,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "num_global_key_value_heads": 1,
    "first_k_dense_replace": 1,
    "num_dense_layers": 1,
}
# Of text models that say no sizes.
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
SMALL |= {"num_attention_heads": 4}
LAYER_LISTS = (
    "layer_types", "mlp_layer_types", "indexer_types", "no_rope_layers", "activation_sparsity_pattern"
)  # fmt: skip
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
HIDDEN = ("hidden_size", "n_embd", "d_model", "block_dim", "conv_dim", "conv_dim_out")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def first_of(config, keys):
    return next((config[k] for k in keys if config.get(k)), None)


def layers_with_all_kinds(config):
    """The length of the shortest beginning that has each kind of layer, at least 2."""
    kinds = config.get("hybrid_override_pattern") or config.get("layer_types")
    if config.get("num_kv_shared_layers"):
        return 12
    if "linear_attn_config" in config:
        return config["linear_attn_config"]["full_attn_layers"][0]
    if not kinds:
        pattern = config.get("sliding_window_pattern") or config.get("interleave_moe_layer_step")
        return max(2, pattern if isinstance(pattern, int) else 2)
    return max(2, max(kinds.index(k) for k in set(kinds)) + 1)


def shrink(config):
    """A model's own keys, without those of images, with small sizes. Every other key stays."""
    c = copy.deepcopy(config)
    heads = first_of(c, HEADS) or 4
    kv = c.get("num_key_value_heads") or c.get("n_head_kv") or heads
    layers = layers_with_all_kinds(c)
    latent = "kv_lora_rank" in c
    small_kv = 4 if kv == heads else min(kv, 2)
    small_heads = small_kv if latent else small_kv * min(heads // kv, 3)
    width = 16
    for key, value in config.items():
        if key in SIZES and isinstance(value, int) and value:
            c[key] = SIZES[key]
        elif key in LIMITS and isinstance(value, int):
            c[key] = min(value, LIMITS[key])
        elif key in HEADS and value:
            c[key] = small_heads
        elif key in ("num_key_value_heads", "n_head_kv") and value:
            c[key] = small_heads if latent else small_kv
        elif key in HIDDEN and value:
            c[key] = 8 * small_heads if "head_dim" in c or latent else small_heads * width
        elif key == "head_dim" and value:
            c[key] = SIZES["qk_rope_head_dim"] if latent else width
        elif key == "rotary_dim" and value:
            head = config.get("head_dim") or first_of(config, HIDDEN) // heads
            c[key] = value * width // head
        elif key in LAYERS:
            c[key] = layers
        elif key in LAYER_LISTS and isinstance(value, list):
            c[key] = value[:layers]
        elif key == "hybrid_override_pattern":
            c[key] = value[:layers]
        elif key == "num_kv_shared_layers" and value:
            c[key] = layers // 2
        elif key in ("attn_layer_indices", "full_attn_idxs", "mlp_only_layers", "moe_layers"):
            c[key] = [n for n in value if n < layers] if isinstance(value, list) else value
        elif key.endswith(("_token_id", "_token_index")):
            ids = value if isinstance(value, list) else [value]
            small = [n % VOCABULARY if isinstance(n, int) and n >= 0 else n for n in ids]
            c[key] = small if isinstance(value, list) else small[0]
        elif key == "rope_scaling" and isinstance(value, dict):
            pairs = int(width * config.get("partial_rotary_factor", 1)) // 2
            lists = {k: v[:pairs] for k, v in value.items() if isinstance(v, list)}
            c[key] = {**value, **lists}
        elif key in ("vision_config", "audio_config") and isinstance(value, dict):
            c[key] = {k: v for k, v in value.items() if k == "model_type"}
        elif key == "linear_attn_config":
            small = {"num_heads": 3, "head_dim": 8}
            lists = {
                k: [n for n in v if n <= layers] for k, v in value.items() if isinstance(v, list)
            }
            c[key] = {**value, **small, **lists}
        elif key == "_name_or_path" and str(value).startswith("/"):
            del c[key]  # of the machine that saved it
        elif key == "text_config":
            c[key] = {**SMALL, **shrink(value)} if "hidden_size" not in value else shrink(value)
    return c


def text_of(config):
    """The config of the text model, with the names of transformers."""
    text = copy.deepcopy(config.get("text_config", config))
    if "text_config" in config:
        text.setdefault("tie_word_embeddings", config.get("tie_word_embeddings", False))
    if text["model_type"] in TEXT_MODELS:
        text["model_type"], name = TEXT_MODELS[text["model_type"]]
        text["architectures"] = [name]
    for key in ("auto_map", "quantization_config"):
        text.pop(key, None)
    text.setdefault("pad_token_id", 0)  # some classes have one beyond the small vocabulary
    for key in ("rope_scaling", "rope_parameters"):
        for dropped in ("mrope_section", "mrope_interleaved"):
            (text.get(key) or {}).pop(dropped, None)
    return text


@torch.no_grad()
def computed(name, config):
    """-> what transformers says of a small checkpoint of this config."""
    text = text_of(config)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        known = as_known(text)
        shapes = stored(name, text, shapes_of(known, folder, auto_class(known)))
        shapes = dict(sorted(shapes.items()))  # as unpacked() has them
        own = shapes
        if "text_config" in config:
            own = {n.replace("model.", "model.language_model.", 1): s for n, s in shapes.items()}
        write(folder / "model", text, shapes, SEED, like=config.get("text_config", config))
        if known is not text:
            respell(folder / "model", text, known)
        model = auto_class(known).from_pretrained(
            folder / "model",
            dtype=torch.float64,
            attn_implementation="eager",
            experts_implementation="eager",
        )
        with Float64():
            logits = model.eval()(torch.tensor([TOKENS]), use_cache=False).logits[0, -1]
    return {"shapes": packed(own), "row": [float(f"{x:.8g}") for x in logits.tolist()]}


def refusal(config):
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "model", config, {"none": [1]}, SEED)
        command = [os.environ.get("INVAR_BIN", ROOT / "build/bin/invar"), "export"]
        command += ["--model-name", Path(folder) / "model", "-o", Path(folder) / "out"]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stderr.strip().split("config.json: ")[-1]


def main():
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    known = {json.loads(text)["repository"]: text for text in OUT.read_text().splitlines()}
    for file in sorted(Path(sys.argv[1]).glob("*.json")):
        repository, config = file.stem.replace("--", "/"), shrink(json.loads(file.read_text()))
        if sys.argv[2:] and repository not in sys.argv[2:]:
            continue
        line = {"repository": repository, "config": config}
        code, why = refusal(config)
        if code == 3:
            line["refused"] = why.split("; ")[0]
        # Of quantised weights the other keys are tried, too.
        if code != 3 or why.startswith("'quantization_config'"):
            try:
                line |= computed(repository, config)
            except Exception as error:  # a class that transformers does not have
                print(f"{repository}: without transformers: {str(error)[:300]}")
                if code != 3:
                    continue
        print(repository, line.get("refused", ""), len(line.get("shapes", {})), flush=True)
        known[repository] = json.dumps(line, sort_keys=True, separators=(",", ":"))
    OUT.write_text("".join(known[name] + "\n" for name in sorted(known)))


if __name__ == "__main__":
    main()
