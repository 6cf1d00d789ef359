"""What users of REE write: its spellings are accepted, its receipts are named."""

import json

import pytest
from conftest import MODEL, execute, invar, refused

SHORT = ["--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", 8]


def hash_of(path):
    return json.loads(path.read_text())["receipt_hash"]


def test_run_all(tmp_path):
    plain, ree = tmp_path / "a.json", tmp_path / "b.json"
    invar("run", *SHORT, "--no-do-sample", "--receipt-path", plain)
    invar(
        *["run-all", *SHORT, "--no-do-sample", "--receipt-path", ree, "--cpu-only"],
        *["--operation-set", "reproducible", "--tasks-root", tmp_path / "tasks"],
    )
    assert hash_of(plain) == hash_of(ree)
    assert list((tmp_path / "tasks").iterdir())
    invar("run-all", *SHORT, "--task-dir", tmp_path / "task", "--receipt-path", ree)
    assert (tmp_path / "task").is_dir()


def test_do_sample(tmp_path):
    drawn, sampled = tmp_path / "a.json", tmp_path / "b.json"
    invar("run", *SHORT, "--do-sample", "--seed", 3, "--receipt-path", drawn)
    settings = json.loads(drawn.read_text())["input"]
    assert settings["do_sample"] is True and settings["seed"] == "3"
    invar("run", *SHORT, "--temperature", settings["temperature"], "--seed", 3, "--top-k",
          settings["top_k"], "--receipt-path", sampled)  # fmt: skip
    assert hash_of(drawn) == hash_of(sampled)
    refused("run", *SHORT, "--do-sample", "--no-do-sample", names=["--no-do-sample", "--do-sample"])


@pytest.mark.parametrize("command", ["validate", "verify"])
def test_receipt_path(command, answer):
    receipt = answer["receipt"]
    model = ["--model-name", MODEL] if command == "verify" else []
    done = invar(command, "--receipt-path", receipt, *model)
    assert done.out == invar(command, receipt, *model).out
    if command == "verify":
        invar(command, "--receipt-path", receipt, "--cpu-only", "--tasks-root", "none", *model)
    both = invar(command, receipt, "--receipt-path", receipt, "--receipt-path", receipt, *model)
    assert b"3 of 3 hold" in both.out


@pytest.mark.parametrize(
    "receipt",
    [
        {"receipt_hash": "00", "tokens_hash": "11", "prompt_hash": "22", "model_name": "org/name"},
        {"model": {"name": "org/name"}, "output": {"tokens_hash": "11"}, "hashes": {}},
        {"execution": {"ree_version": "0.4.0"}},
    ],
)
def test_a_receipt_of_ree_is_named(receipt, tmp_path):
    path = tmp_path / "receipt_1.json"
    path.write_text(json.dumps(receipt))
    for command in ("validate", "verify"):
        refused(command, path, code=3, names=["REE", "invar run"])
    done = execute(["validate", path, "--json"])
    assert done.code == 3 and "REE" in done.json()["error"]
