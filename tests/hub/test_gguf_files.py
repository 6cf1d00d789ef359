"""GGUF files of a hub: ORG/NAME:FILE.gguf is one of them with its other parts."""

import os
import sys
from pathlib import Path

import pytest
from conftest import MODEL, invar, refused

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "weights"))
import gguf_files
from fake_hub import COMMIT, FakeHub

LARGE = gguf_files.one_matrix(MODEL, "Q8_0", 2048, bytes(2048 * 256 // 32 * 34))
PARTS = {f"q-0000{i}-of-00002.gguf": bytes([i]) * 500 for i in (1, 2)}


@pytest.fixture
def hub():
    hub = FakeHub({"a/big.gguf": LARGE, "mmproj.gguf": b"x", "config.json": b"{}"})
    yield hub
    hub.close()


def test_files_by_name(hub, tmp_path):
    home = tmp_path / "home"
    env = {**os.environ, "HF_HOME": str(home), "HF_ENDPOINT": hub.url}
    env = {k: v for k, v in env.items() if k not in ("HF_HUB_OFFLINE", "HF_HUB_CACHE")}
    snapshot = home / "hub/models--org--tiny/snapshots" / COMMIT
    done = invar("download", "org/tiny", env=env)  # the only one
    assert done.out.decode().strip() == str(snapshot / "a/big.gguf")
    assert [f.name for f in snapshot.iterdir()] == ["a"]
    for name in ("org/tiny:a/big.gguf", "org/tiny"):
        done = invar("encode", "--model-name", name, "--prompt-text", "ROMEO:", env=env)
        assert done.out == invar("encode", "--model-name", MODEL, "--prompt-text", "ROMEO:").out
    hub.files |= PARTS
    sizes = "q-00001-of-00002.gguf (1.00 kB), a/big.gguf ("
    refused("download", "org/tiny", env=env, names=["several GGUF files", "org/tiny:FILE", sizes])
    refused("download", "org/tiny:none.gguf", env=env, names=["no file none.gguf", "a/big.gguf"])
    part = "org/tiny:q-00001-of-00002.gguf"
    refused("download", part, env=env, names=["q-00001-of-00002.gguf: not a GGUF file"])
    assert {f.name for f in snapshot.iterdir()} == {"a", *PARTS}
    del hub.files["q-00002-of-00002.gguf"]
    refused("download", part, env=env, names=["lacks q-00002-of-00002.gguf"])
    env["HF_HUB_OFFLINE"] = "1"
    invar("encode", "--model-name", f"org/tiny@{COMMIT}:a/big.gguf", "--prompt-text", "x", env=env)
    refused("encode", "--model-name", "org/tiny:b.gguf", "--prompt-text", "x", env=env)
    refused("download", "org/tiny:../b.gguf", env=env)
