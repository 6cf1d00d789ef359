#!/usr/bin/env python3
"""Writes tests/families/family_keys.json: for each family the keys that its configuration class of
transformers has beyond those of every class, with their defaults. Needs transformers."""

import json
from pathlib import Path

import transformers
from cases import CASES

OUT = Path(__file__).resolve().parents[2] / "tests/families/family_keys.json"


def main():
    transformers.utils.logging.set_verbosity_error()
    every = set(transformers.PretrainedConfig().to_dict())
    types = dict.fromkeys(c["model_type"] for c in CASES.values() if "text_config" not in c)
    types = [name for name in types if name in transformers.CONFIG_MAPPING]
    keys = {
        name: {
            k: v for k, v in transformers.CONFIG_MAPPING[name]().to_dict().items() if k not in every
        }
        for name in types
    }
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in keys.items())
    OUT.write_text("{\n" + rows + "\n}\n")


if __name__ == "__main__":
    main()
