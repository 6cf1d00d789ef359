"""Models of transformers and torch, exported here: a few for each kind of network and each exporter
(docs/reference/models.md has all). Tier 3 runs them: tests/requirements-all.txt has torch and
transformers."""

import sys
from importlib.util import find_spec

import pytest
from conftest import BUILD, ROOT

if not all(map(find_spec, ("torch", "transformers", "onnxscript", "onnxruntime"))):
    pytest.skip(
        "needs torch, transformers, onnxscript and onnxruntime (tests/requirements-all.txt)",
        allow_module_level=True,
    )
if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
sys.path.insert(0, str(ROOT / "tools"))
import check_exported_models  # noqa: E402


@pytest.mark.parametrize(
    "name,exporter",
    [
        ("gpt2", "dynamo"),
        ("llama", "legacy"),
        ("gemma2", "legacy"),
        ("qwen3-moe", "dynamo"),
        ("bert", "dynamo"),
        ("deberta", "dynamo"),
        ("deberta-v2", "legacy"),
        ("t5-decoder", "legacy"),
        ("whisper-encoder", "legacy"),
        ("clip", "legacy"),
        ("vit", "dynamo"),
        ("convnext", "legacy"),
        ("unet", "dynamo"),
        ("lstm", "legacy"),
    ],
)
def test_runs(tmp_path, name, exporter):
    model = check_exported_models.MODELS[name]()
    result = check_exported_models.judge(
        model, tmp_path, exporter, check_exported_models.exact(model)
    )
    assert (result["state"], result["kind"]) == ("runs", "dynamic"), result
