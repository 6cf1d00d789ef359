"""Receipts of tensors (receipt.40 to receipt.42): made by `infer`, checked by `validate` and
`verify`, and every change found."""

import copy
import hashlib
import json
import subprocess
import sys

import jsonschema
import numpy as np
import onnx
import pytest
from conftest import ROOT, execute, invar
from node_models import F32, model, node, numbers
from onnx import TensorProto
from receipt_oracle import SECTIONS, put, reseal, seal


def build(folder, scale=0.5):
    folder.mkdir(exist_ok=True)
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node("Softmax", ["a"], ["soft"]),
        node("Mul", ["a", "s"], ["big"]),
        node("Shape", ["x"], ["size"]),
    ]
    weights = [("w", numbers(4, 6)), ("s", np.float32(scale))]
    outputs = [("soft", F32), ("big", F32), ("size", TensorProto.INT64)]
    model(folder / "model.onnx", nodes, [("x", F32, ["n", 4])], outputs, weights, opset=18)
    np.save(folder / "x.npy", numbers(3, 4, seed=1))
    return folder


@pytest.fixture
def made(tmp_path):
    """A folder with model, plan, input and receipt."""
    folder = build(tmp_path / "small")
    invar("compile", folder / "model.onnx")
    done = invar("infer", folder / "plan.invar", "--input", f"x={folder}/x.npy",
                 "--receipt-path", folder / "r.json")  # fmt: skip
    receipt = json.loads((folder / "r.json").read_text())
    assert done.json()["receipt_hash"] == receipt["receipt_hash"]
    assert {t["name"]: t["sha256"] for t in receipt["output"]["tensors"]} == {
        name: t["sha256"] for name, t in done.json()["outputs"].items()
    }
    return folder, receipt


def verify(folder, receipt, *how, code=0, given="x.npy"):
    path = folder / "claim.json"
    path.write_text(json.dumps(receipt))
    how = how or ("--model", folder / "model.onnx")
    return invar("verify", path, *how, "--input", f"x={folder / given}", "--json", code=code)


def fields(done):
    return [f["field"] for f in done.json()["findings"]]


def test_form_and_hashes(made):
    folder, receipt = made
    assert receipt["schema"] == "invar-tensor-receipt 1"
    assert receipt["model"]["name"] == "small" and receipt["program"]["recipe"] == "onnx-1"
    assert seal(copy.deepcopy(receipt)) == receipt
    schema = json.loads((ROOT / "docs/reference/receipt.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(receipt)
    for section in (*SECTIONS, "digests"):
        for key in receipt[section]:
            less = copy.deepcopy(receipt)
            del less[section][key]
            assert not validator.is_valid(less), key
    script = ROOT / "docs/reference/receipt.py"
    assert subprocess.run([sys.executable, script, folder / "r.json"]).returncode == 0
    assert invar("validate", folder / "r.json").out.startswith(b"VALID")
    assert invar("compile", folder / "model.onnx", "--emit", "program").out.count(
        b"constant"
    ) == len(receipt["model"]["tensors"])


def test_verified_by_model_and_by_plan(made):
    folder, receipt = made
    done = verify(folder, receipt)
    assert done.json()["verdict"] == "VERIFIED"
    assert "compiled from" in done.json()["compared"]["program"]
    done = verify(folder, receipt, "--plan", folder / "plan.invar")
    assert "as it was given" in done.json()["compared"]["program"]
    assert done.json()["verdict"] == "VERIFIED BY A GIVEN PLAN"
    for level in range(3):
        invar("compile", folder / "model.onnx", "--opt", level)
        assert verify(folder, receipt, "--plan", folder / "plan.invar").json()["ok"]
    external = folder / "elsewhere"
    external.mkdir()
    onnx.save(onnx.load(folder / "model.onnx"), external / "m.onnx", save_as_external_data=True,
              location="w.bin", size_threshold=40)  # fmt: skip
    assert verify(folder, receipt, "--model", external / "m.onnx").json()["ok"]


def test_a_plan_with_constants_that_are_computed_from_weights(tmp_path):
    """Nobody can compare them with the tensors of the receipt, but whoever has the model."""
    nodes = [node("Exp", ["w"], ["e"]), node("Add", ["x", "e"], ["y"])]
    weights = [("w", numbers(3, 4))]
    model(tmp_path / "model.onnx", nodes, [("x", F32, [3, 4])], [("y", F32)], weights, opset=18)
    np.save(tmp_path / "x.npy", numbers(3, 4, seed=1))
    invar("compile", tmp_path / "model.onnx")
    plan, receipt = tmp_path / "plan.invar", tmp_path / "r.json"
    given = ["--input", f"x={tmp_path}/x.npy"]
    done = invar("infer", plan, *given, "--receipt-path", receipt)
    assert "nothing shows that the one follows from the other" in done.text
    assert "VERIFIED" in invar("verify", receipt, "--model", tmp_path / "model.onnx", *given).text
    done = invar("verify", receipt, "--plan", plan, *given, code=3)
    assert "it computes with the constant f32 3x4" in done.text
    # A weight that is no such constant is a tensor, or it is refused.
    build(tmp_path / "small")
    invar("compile", tmp_path / "small/model.onnx")
    plan = tmp_path / "small/plan.invar"
    text, honest = plan.read_text(), hashlib.sha256(numbers(4, 6).tobytes()).hexdigest()
    assert text.count(honest) == 2
    plan.write_text(text.replace(honest, "0" * 64, 1))
    given = ["--input", f"x={tmp_path}/small/x.npy", "--receipt-path", receipt]
    assert "it computes with the weight w" in invar("infer", plan, *given, code=1).text


def test_what_differs_is_named(made):
    folder, receipt = made
    np.save(folder / "other.npy", numbers(3, 4, seed=2))
    done = verify(folder, receipt, code=1, given="other.npy")
    assert fields(done) == ["input.tensors[x].sha256"]
    for i, name in enumerate(["big", "size", "soft"]):
        forged = put(receipt, ("output", "tensors", i, "sha256"), "0" * 64)
        assert fields(verify(folder, forged, code=1))  # by its hashes alone
        done = verify(folder, reseal(forged), code=1)
        (found,) = done.json()["findings"]
        assert found["field"] == f"output.tensors[{name}].sha256" and found["found"] == "0" * 64
        assert found["expected"] == receipt["output"]["tensors"][i]["sha256"]
    other = build(folder / "two", scale=0.25)
    done = verify(folder, receipt, "--model", other / "model.onnx", code=1)
    assert any(f.startswith("model.tensors[v") for f in fields(done)), fields(done)
    assert "program.digest" in fields(done)
    done = verify(folder, receipt, "--model", folder / "model.onnx", "--dim", "n=3", code=1)
    assert fields(done) == ["program.digest"]


def test_two_receipts_are_compared(made):
    folder, _ = made
    np.save(folder / "other.npy", numbers(3, 4, seed=2))
    (folder / "a.gguf").write_bytes(b"GGUF"), (folder / "b.gguf").write_bytes(b"GGUF")
    for name in ("x", "other"):
        path = folder / f"{name}.json"
        given = ["--input", f"x={folder / name}.npy", "--receipt-path", path]
        invar("infer", folder / "model.onnx", *given)
    invar("diff", folder / "x.json", folder / "x.json")
    done = invar("diff", folder / "x.json", folder / "other.json", "--json", code=1)
    said = {f["what"]: f["how"] for f in done.json()["findings"]}
    assert said["inputs"] == "1 of 1 differ: x"
    assert said["outputs"] == "2 of 3 differ: big, soft"
    assert "another question" in done.json()["cause"]


def test_every_changed_field_is_found(made):
    folder, receipt = made
    assert invar_valid(folder, receipt)
    for section in SECTIONS:
        for key, value in receipt[section].items():
            other = "x" if isinstance(value, str) else []
            assert not invar_valid(folder, put(receipt, (section, key), other)), key
    for path in [("input", "tensors", 0, "shape"), ("output", "tensors", 0, "dtype")]:
        assert not invar_valid(folder, reseal(put(receipt, path, "f33"))), path
    twice = reseal(put(receipt, ("input", "tensors"), receipt["input"]["tensors"] * 2))
    assert not invar_valid(folder, twice)
    assert not invar_valid(folder, reseal(put(receipt, ("output", "tensors"), [])))


def invar_valid(folder, receipt):
    path = folder / "claim.json"
    path.write_text(json.dumps(receipt))
    done = execute(["validate", path, "--json"])
    assert done.code == (0 if done.json()["ok"] else 1)
    return done.json()["ok"]


def test_operation_sets(made):
    folder, _ = made
    for name, code, word in [("deterministic", 0, "REPEATED ON THIS MACHINE"), ("default", 3, "")]:
        invar("compile", folder / "model.onnx", "--operation-set", name)
        invar("infer", folder / "plan.invar", "--input", f"x={folder}/x.npy",
              "--receipt-path", folder / "set.json")  # fmt: skip
        receipt = json.loads((folder / "set.json").read_text())
        done = verify(folder, receipt, code=code)
        assert code == 3 or done.json()["verdict"] == word
        assert code == 0 or b"nobody can verify" in done.err
        if name == "deterministic":
            other = reseal(put(receipt, ("execution", "processor"), "another"))
            assert b"another" in verify(folder, other, code=3).err


def test_who_signed_is_asked(made, tmp_path):
    folder, receipt = made
    invar("keygen", tmp_path / "key")
    key = ("--model", folder / "model.onnx", "--require-key", tmp_path / "key.pub")
    assert fields(verify(folder, receipt, *key, code=1)) == ["signatures"]
    invar("sign", folder / "r.json", "--key", tmp_path / "key")
    signed = json.loads((folder / "r.json").read_text())
    assert "signed" in verify(folder, signed, *key).json()["compared"]


def test_bad_use(made, answer):
    folder, receipt = made
    assert b"--model FILE" in invar("verify", folder / "r.json", code=2).err
    how = ["--input", f"x={folder}/x.npy"]
    for given in ([], ["--model", folder / "model.onnx"], ["--plan", folder / "plan.invar"]):
        done = invar("verify", folder / "r.json", *given, code=2)
    assert "each input with --input NAME=FILE.npy: x;" in done.errors[0]
    both = ["--model", folder / "model.onnx", "--plan", folder / "plan.invar"]
    assert b"one of them" in invar("verify", folder / "r.json", *both, *how, code=2).err
    assert (
        b"no steps" in invar("verify", folder / "r.json", *both[:2], *how, "--spot", 1, code=2).err
    )
    assert b"leave --model" in invar("verify", answer["receipt"], *both[:2], code=2).err
    done = invar("infer", folder / "plan.invar", "--tokens", "1", "--receipt-path", folder / "n.json",
                 code=2)  # fmt: skip
    assert b"`invar run`" in done.err and not (folder / "n.json").exists()
    plain = (folder / "plan.invar").read_text()
    lines = [s for s in plain.splitlines(True) if not s.startswith(("program ", "tensor "))]
    (folder / "plan.invar").write_text("".join(lines))
    done = invar("infer", folder / "plan.invar", *how, "--receipt-path", folder / "n.json", code=2)
    assert b"compile the model again" in done.err
