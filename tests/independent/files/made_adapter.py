"""python3 -m files.made_adapter FOLDER: an adapter of PEFT for the model that ships. Equal names
give equal bytes."""

import json
import sys
from pathlib import Path

from make_checkpoint import Table, write_safetensors

CONFIG = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "bias": "none",
    "r": 4,
    "lora_alpha": 6,
    "use_rslora": True,
    "target_modules": r".*\.(q_proj|up_proj|down_proj)|lm_head",
    "exclude_modules": ["layers.2.mlp.up_proj"],
    "rank_pattern": {r"layers\.[13]\.mlp\.up_proj": 3, "up_proj": 6, "lm_head": 4},
    "alpha_pattern": {"down_proj": 2, r"model\.layers\.0\.self_attn\.q_proj": 11},
    "modules_to_save": ["model.norm"],
}
# part of a layer: rows of B, columns of A
PARTS = {"self_attn.q_proj": (256, 256), "mlp.up_proj": (704, 256), "mlp.down_proj": (256, 704)}


def rank_of(path):
    """What the pattern of CONFIG says."""
    if not path.endswith("up_proj"):
        return 4
    return 3 if path.split(".")[2] in "13" else 6


def tensors(layers=5, vocabulary=2048):
    modules = {
        f"model.layers.{i}.{part}": shape for i in range(layers) for part, shape in PARTS.items()
    }
    del modules["model.layers.2.mlp.up_proj"]
    modules["lm_head"] = (vocabulary, 256)
    found = {}
    for i, (path, (rows, columns)) in enumerate(modules.items()):
        dtype = ("F32", "BF16", "F16")[i % 3]
        for part, shape in (("A", (rank_of(path), columns)), ("B", (rows, rank_of(path)))):
            name = f"base_model.model.{path}.lora_{part}.weight"
            found[name] = Table(1, name, dtype, *shape)
    name = "base_model.model.model.norm.weight"
    t = found[name] = Table(1, name, "F32", 256)
    t.data[3::4] = bytes([0x3F] * 256)
    return found


def make(folder, **changed):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(CONFIG | changed), encoding="utf-8")
    write_safetensors(folder / "adapter_model.safetensors", tensors())


if __name__ == "__main__":
    make(sys.argv[1])
