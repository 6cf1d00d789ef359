"""What users of REE write: its spellings are accepted, its receipts are named."""

import json
from pathlib import Path

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


def test_a_gpu_that_is_idle_is_mentioned(tmp_path):
    """REE uses a GPU unless it is told not to."""
    run = ["run", *SHORT, "--receipt-path", tmp_path / "r.json"]
    assert (b"NVIDIA GPU is here" in invar(*run).err) == Path("/dev/nvidia0").exists()
    assert b"NVIDIA GPU" not in invar(*run, "--cpu-only").err


def test_do_sample(tmp_path):
    drawn, sampled = tmp_path / "a.json", tmp_path / "b.json"
    invar("run", *SHORT, "--do-sample", "--seed", 3, "--receipt-path", drawn)
    settings = json.loads(drawn.read_text())["input"]
    assert settings["do_sample"] is True and settings["seed"] == "3"
    invar("run", *SHORT, "--temperature", settings["temperature"], "--seed", 3, "--top-k",
          settings["top_k"], "--receipt-path", sampled)  # fmt: skip
    assert hash_of(drawn) == hash_of(sampled)
    refused("run", *SHORT, "--do-sample", "--no-do-sample", names=["--no-do-sample", "--do-sample"])


def test_short_circuit(tmp_path):
    """sampling.21: the token comes behind so many tokens, and what follows is computed with it."""
    plain, forced, early = (tmp_path / f"{n}.json" for n in "abc")
    invar("run", *SHORT, "--receipt-path", plain)
    tokens = json.loads(plain.read_text())["output"]["tokens"]
    token = next(t for t in range(100) if t not in tokens)
    option = ["--short-circuit-length", 3, "--short-circuit-token"]
    invar("run", *SHORT, *option, token, "--receipt-path", forced)
    receipt = json.loads(forced.read_text())
    assert receipt["output"]["tokens"][:4] == [*tokens[:3], token]
    assert receipt["input"]["short_circuit_length"] == 3
    assert receipt["input"]["short_circuit_token"] == token
    assert invar("verify", forced, "--model-name", MODEL).out.startswith(b"VERIFIED")
    invar("run", *SHORT, *option, tokens[1], "--receipt-path", early)  # it came before
    assert json.loads(early.read_text())["output"]["tokens"] == tokens
    for other in ({"short_circuit_token": token + 1}, {"short_circuit_length": 9}):
        changed = json.loads(forced.read_text())
        changed["input"].update(other)
        (tmp_path / "bad.json").write_text(json.dumps(changed))
        assert b"short_circuit" in invar("validate", tmp_path / "bad.json", code=1).out
    invar("run", *SHORT, "--short-circuit-length", 8, "--short-circuit-token", token,
          "--receipt-path", early)  # fmt: skip
    assert hash_of(early) == hash_of(plain)  # no effect: one computation, one receipt
    refused("run", *SHORT, "--short-circuit-length", 3, names=["--short-circuit-token"])
    refused("run", *SHORT, *option, 10**6, "--receipt-path", early, names=["short_circuit_token"])


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
