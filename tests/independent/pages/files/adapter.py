"""weights.23 to weights.25: an adapter of PEFT, unmerged."""

import hashlib
import json
import math
import re
from pathlib import Path

from arithmetic.library import f32
from arithmetic.mutation import active
from pages.files.safetensors import read_safetensors

PREFIX = "base_model.model."


def path_of(name):
    """weights.25: the path of the module that a tensor is of."""
    return name.removeprefix(PREFIX).removesuffix(".weight").rsplit(".lora_", 1)[0]


def fits(pattern, path):
    """Whether the path ends so; a name is a pattern, too."""
    return re.fullmatch(rf"(?:.*\.)?(?:{pattern})", path) is not None


def by_pattern(patterns, path, usual):
    for pattern, value in (patterns or {}).items():
        if fits(pattern, path) and not active("patterns_are_ignored"):
            return value
    return usual


class Adapter:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.config = json.loads((self.folder / "adapter_config.json").read_bytes())
        tensors = dict(read_safetensors(self.folder / "adapter_model.safetensors"))
        paths = sorted({path_of(name) for name in tensors if ".lora_" in name})
        self.modules = {path: self.scale(path) for path in paths}
        # Tensors of modules_to_save have the model's names.
        self.stored = {
            name if ".lora_" in name else name.removeprefix(PREFIX): t
            for name, t in tensors.items()
        }

    def scale(self, path):
        """weights.24"""
        rank = by_pattern(self.config.get("rank_pattern"), path, self.config["r"])
        alpha = by_pattern(self.config.get("alpha_pattern"), path, self.config["lora_alpha"])
        root = self.config.get("use_rslora") and not active("rank_without_root")
        if active("scale_divides_in_binary32"):
            return f32(f32(alpha) / f32(math.sqrt(rank) if root else rank))
        return f32(alpha / (math.sqrt(rank) if root else rank))

    def parameters(self):
        """weights.24: one scale, or that of each module"""
        scales = list(self.modules.values())
        return {"lora_scale": scales[0] if len(set(scales)) == 1 else scales}

    def bound(self):
        """receipt.44"""
        files = ("adapter_config.json", "adapter_model.safetensors")
        if active("adapter_files_change_places"):
            files = files[::-1]
        both = b"".join(hashlib.sha256((self.folder / f).read_bytes()).digest() for f in files)
        return {"adapter_name": self.folder.name, "adapter": hashlib.sha256(both).hexdigest()}
