"""Results make the folders that they go to, and leave none behind that stays empty."""

import json

import numpy as np
import pytest
from conftest import MODEL, ROOT, execute, invar, refused

RUN = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", 2]


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("task")
    invar("export", "--model-name", MODEL, "-o", folder)
    invar("compile", folder / "model.onnx")
    return folder


def test_receipts(tmp_path):
    done = invar(*RUN, "--receipt-path", "a/b/r.json", cwd=tmp_path)
    assert json.loads((tmp_path / "a/b/r.json").read_text())["receipt_hash"] in done.text
    # A run that fails before it has a receipt leaves no folder.
    refused(
        "run",
        "--model-name",
        "none",
        "--prompt-text",
        "a",
        "--receipt-path",
        "c/d/r.json",
        cwd=tmp_path,
    )
    done = execute([*RUN, "--receipt-path", "a/b/r.json/r.json"], cwd=tmp_path)
    assert done.code == 2 and "--receipt-path a/b/r.json/r.json: the folder" in done.errors[0]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a"]


def test_what_is_there_is_said_when_the_new_receipt_is(tmp_path):
    (tmp_path / "receipt.json").write_text("mine")
    done = refused("run", "--model-name", "none", "--prompt-text", "a", cwd=tmp_path)
    assert "kept" not in done.text
    err = invar(*RUN, cwd=tmp_path).err.decode()
    assert err.index("hash") < err.index("  kept      receipt.json was there: the new receipt is")


def test_logits(tmp_path, task):
    args = ["infer", task / "plan.invar", "--tokens", "1,2,3", "--tokens", "4"]
    invar(*args, "--logits-output", tmp_path / "x/y/raw")
    invar(*args, "--logits-output", tmp_path / "x/y/z.npy")
    raw = np.fromfile(tmp_path / "x/y/raw", "<f4")
    array = np.load(tmp_path / "x/y/z.npy")
    assert array.dtype == np.float32 and array.shape == (4, 2048)
    assert array.astype("<f4").tobytes() == raw.tobytes()


def test_of_every_command(tmp_path, task, answer):
    receipt = answer["receipt"]
    cases = {
        "t/t.json": ["trace", receipt, "--model-name", MODEL, "-o"],
        "i/i.json": ["infer", task / "plan.invar", "--tokens", 1, "--max-new-tokens", 1, "-o"],
        "c/p.invar": ["compile", task / "model.onnx", "-o"],
        "e/f/model.onnx": ["export", "--model-name", MODEL, "-o"],
        "k/a.key": ["keygen"],
        "d/r.json": ["doctor", "--rooms", ROOT / "src/ops", "--report"],
        "m/n/invar.1": ["help", "--man-pages"],
    }
    for name, command in cases.items():
        target = tmp_path / name
        is_folder = command[0] in ("export", "help")
        if (
            command[0] == "doctor"
        ):  # not the minute of work: the folder alone, and what it says first
            (tmp_path / "d").write_text("a file")
            refused(*command, target, names=["--report", "cannot be made"])
            continue
        invar(*command, target.parent if is_folder else target)
        assert target.exists(), name
    salted = tmp_path / "salted.json"
    invar(*RUN, "--salt-prompt", "--receipt-path", salted)
    invar("redact", salted, "-o", tmp_path / "q/r/redacted.json")
    assert "VALID" in invar("validate", tmp_path / "q/r/redacted.json").text


def test_a_plan_elsewhere_than_beside_a_plan(tmp_path, task):
    """Constants lie beside each plan: those of a plan beside the model are no weights."""
    other = tmp_path / "n/plan.invar"
    for _ in range(2):
        invar("compile", task / "model.onnx", "-o", other)
    tokens = ["--tokens", "1,2", "--max-new-tokens", 3]
    assert invar("infer", other, *tokens).out == invar("infer", task / "plan.invar", *tokens).out
