#!/usr/bin/env python3
"""Writes tests/families/saved_configs.jsonl: what transformers saves of the configuration of each
case of cases.py, and of each family's defaults. Needs transformers."""

import json
import tempfile
from pathlib import Path

import transformers
from cases import CASES

OUT = Path(__file__).resolve().parents[2] / "tests/families/saved_configs.jsonl"

# Defaults with which transformers runs no model.
UNUSABLE = {
    # tokens beyond the vocabulary
    "starcoder2": {"bos_token_id": None, "eos_token_id": None},
    "arcee": {"bos_token_id": None, "eos_token_id": None},
    # 96 heads do not divide 4096
    "glm4_moe": {"head_dim": 128},
    "glm4v_moe": {"text_config": {"head_dim": 128}},
    # no default layers
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16},
    # no numbers of experts
    "dots1": {"n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "deepseek_v2": {"num_experts_per_tok": 6},
}


def saved(config):
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        return json.loads((Path(folder) / "config.json").read_text())


def main():
    transformers.utils.logging.set_verbosity_error()
    lines = []
    for name, config in CASES.items():
        if config["model_type"] not in transformers.CONFIG_MAPPING:
            continue
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps(config))
            read = transformers.AutoConfig.from_pretrained(folder)
        lines.append({"case": name, "config": saved(read)})
    families = {c["model_type"]: c["architectures"] for c in CASES.values()}
    for name, architectures in families.items():
        if name not in transformers.CONFIG_MAPPING:
            continue
        changes = UNUSABLE.get(name, {})
        config = transformers.CONFIG_MAPPING[name](architectures=architectures, **changes)
        lines.append({"family": name, "config": saved(config)})
    OUT.write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))


if __name__ == "__main__":
    main()
