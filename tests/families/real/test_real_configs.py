"""config.json of repositories of the field with small sizes and every other key kept
(tools/families/real_configs.py): each runs as transformers does, or is refused by name."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import invar

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from random_checkpoint import write  # noqa: E402
from tensor_names import unpacked  # noqa: E402

LINES = (Path(__file__).parent / "real_configs.jsonl").read_text().splitlines()
MODELS = {m["repository"]: m for m in map(json.loads, LINES)}
TOKENS, SEED = "1,7,33,12,50", 7
# Of the largest logit: models this narrow err by more than those of test_families.py, but a key
# that is read otherwise changes the first digits.
ALLOWED = 5e-6


def quantized(model):
    return "quantization_config" in model.get("refused", "")


@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if "shapes" in m])
def test_a_config_runs(name, tmp_path):
    model = MODELS[name]
    config = json.loads(json.dumps(model["config"]))
    if quantized(model):  # the other keys
        for part in (config, config.get("text_config", {})):
            part.pop("quantization_config", None)
    shapes = unpacked(model["shapes"])
    write(tmp_path / "model", config, shapes, SEED, like=config.get("text_config", config))
    invar("export", "--model-name", tmp_path / "model", "-o", tmp_path)
    invar("compile", tmp_path / "model.onnx", "-o", tmp_path / "plan.invar")
    out = tmp_path / "logits.bin"
    invar("infer", tmp_path / "plan.invar", "--tokens", TOKENS, "--logits-output", out)
    ours = np.fromfile(out, "<f4").reshape(5, -1)[-1]
    exact = np.array(model["row"])
    assert np.abs(ours - exact).max() / np.abs(exact).max() <= ALLOWED


@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if "refused" in m])
def test_a_config_is_refused_by_name(name, tmp_path):
    model = MODELS[name]
    write(tmp_path / "model", model["config"], {"none": [1]}, SEED)
    export = ["export", "--model-name", tmp_path / "model", "-o", tmp_path / "out"]
    assert model["refused"] in invar(*export, code=3).errors[0]


def test_the_table_has_the_field():
    ran = [m for m in MODELS.values() if "shapes" in m]
    kinds = {m["config"]["model_type"] for m in ran}
    assert len(ran) >= 40 and len(kinds) >= 20
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+", name) for name in MODELS)
