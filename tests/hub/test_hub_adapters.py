"""Adapters of a hub: --adapter org/name."""

import json
import os
import shutil
import sys
from pathlib import Path

from conftest import MODEL, invar, refused

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "weights"))
from fake_hub import COMMIT, FakeHub
from test_adapters import layers, matrices, write_adapter


def test_an_adapter_of_the_hub(tmp_path):
    hub, home = FakeHub({}), tmp_path / "home"
    env = {**os.environ, "HF_HOME": str(home), "HF_ENDPOINT": hub.url}
    env = {k: v for k, v in env.items() if k not in ("HF_HUB_OFFLINE", "HF_HUB_CACHE")}
    snapshot = home / "hub/models--org--tiny/snapshots" / COMMIT
    tensors = matrices(1, layers("self_attn.q_proj"))
    folder = write_adapter(tmp_path / "adapter", tensors, target_modules=["q_proj"])
    hub.files = {f.name: f.read_bytes() for f in folder.iterdir()} | {"README.md": b"#"}
    run = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", 2]
    hashes = []
    for name in (folder, "org/tiny"):
        receipt = tmp_path / "r.json"
        invar(*run, "--adapter", name, "--receipt-path", receipt, env=env)
        model = json.loads(receipt.read_text())["model"]
        hashes.append((model["adapter"], model["tensors"]))
    assert model["adapter_name"] == "org/tiny" and hashes[0] == hashes[1]
    assert {f.name for f in snapshot.iterdir()} == {f.name for f in folder.iterdir()}
    asked = len(hub.log)
    invar("verify", receipt, "--model-name", MODEL, "--adapter", "org/tiny", env=env)
    assert len(hub.log) == asked
    refused(*run, "--adapter", "org/other", "--offline", env=env, names=["org/other", "--offline"])
    shutil.rmtree(home)
    del hub.files["adapter_config.json"]
    refused(*run, "--adapter", "org/tiny", env=env, names=["org/tiny", "no adapter_config.json"])
    hub.close()
