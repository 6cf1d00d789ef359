"""Writes the adapters that finetune_lora.py trained as a folder of PEFT, for `invar run --adapter`.

python examples/finetune_lora.py --save RECEIPT
python examples/save_lora.py RECEIPT FOLDER"""

import argparse
import json
from pathlib import Path

from finetune_lora import RANK, SCALE
from invar import training as t


def save(receipt, folder):
    """The last state that lies beside the receipt -> adapter_config.json and
    adapter_model.safetensors."""
    state = t.load_tensors(max(Path(f"{receipt}.states").glob("*.safetensors")))
    tensors, modules = {}, set()
    for name, tensor in state.items():
        module, _, matrix = name.rpartition(".")
        if name.startswith("model.layers.") and matrix in ("a", "b"):
            tensors[f"base_model.model.{module}.lora_{matrix.upper()}.weight"] = tensor
            modules.add(module.rpartition(".")[2])
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": RANK * SCALE,
        "target_modules": sorted(modules),
        "bias": "none",
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    t.save_tensors(folder / "adapter_model.safetensors", tensors)
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("receipt", help="that finetune_lora.py wrote")
    parser.add_argument("folder")
    options = parser.parse_args(arguments)
    save(options.receipt, options.folder)


if __name__ == "__main__":
    main()
