"""Clients from PyPI against a running server: each is a program of tests/serve/clients that ends
with an error where the client does. INVAR_CLIENT_PYTHON: the Python that has them
(tests/serve/clients/requirements.txt)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MODEL, ROOT
from scripted import write_scripted
from server import Server
from test_forms import SCRIPTS, prompt, said

sys.path.insert(0, str(ROOT / "tests/families"))
from encoder_folder import write_encoder  # noqa: E402

sys.path[:0] = [str(ROOT / "tests/families/speech")]
from log_mel import sound, wav  # noqa: E402
from timestamp_model import write_timed  # noqa: E402

PYTHON = os.environ.get("INVAR_CLIENT_PYTHON")
PROGRAMS = sorted((Path(__file__).parent / "clients").glob("with_*.py"))
if not PYTHON:
    pytest.skip("no clients: tests/serve/clients/requirements.txt", allow_module_level=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clients")
    models = [
        write_scripted(folder / "scripted", list(SCRIPTS.values())),
        folder / "shakespeare-4m",
    ]
    shutil.copytree(MODEL, models[1])
    lines = (ROOT / "tests/families/encoder_vectors.jsonl").read_text().splitlines()
    vectors = {v["name"]: v for v in map(json.loads, lines)}
    for name in ("bert", "bert-reranker"):
        write_encoder(folder / name, vectors[name])
        models.append(folder / name)
    models.append(write_timed(folder / "hears"))
    (folder / "talk.wav").write_bytes(wav(sound(8, 40000).tobytes()))
    more = [option for model in models[1:] for option in ("--model-name", model)]
    made = Server(models[0], folder / "tasks", folder / "receipts", *more)
    made.facts = folder / "facts.json"
    made.facts.write_text(
        json.dumps(
            {
                "prompts": {name: prompt(name) for name in SCRIPTS},
                "said": {name: said(name) for name in SCRIPTS},
                "folder": str(models[1]),
                "recording": str(folder / "talk.wav"),
            }
        )
    )
    yield made
    assert made.stop() == 0


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem.removeprefix("with_"))
def test_client(server, program, tmp_path):
    url = f"http://127.0.0.1:{server.port}"
    done = subprocess.run(
        [PYTHON, "-B", program, url, server.facts], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-20000:]
    assert server.ask("/ready") == {"status": "ready"}
