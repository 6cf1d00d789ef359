"""What invar.generate(), validate() and verify() add to receipts and ask of them, beside the same
of the command line."""

import json

import numpy as np
import pytest
from conftest import BUILD, MODEL
from conftest import invar as program
from node_models import F32, model, node
from receipt_oracle import put, reseal

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402

ASK = {"prompt": "JULIET:", "max_new_tokens": 12, "temperature": 0.8, "seed": 3}


@pytest.fixture(scope="module")
def receipt(tasks):
    return invar.generate(MODEL, **ASK, tasks_root=tasks).receipt


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "key"
    return path, program("keygen", path).out.decode().strip()


def test_some_steps(receipt):
    forged = reseal(put(receipt, ("output", "logits", 7), "0" * 64))
    verdict = invar.verify(receipt, MODEL, spot=4, salt="pepper")
    assert verdict and verdict.verdict == "SPOT CHECKED" and "pepper" in verdict.compared["missed"]
    assert "4 of 12" in verdict.compared["steps"]
    salts = {invar.verify(receipt, MODEL, spot=1).compared["missed"] for _ in range(2)}
    assert len(salts) == 2
    assert invar.verify(forged, MODEL, steps=(0, 7)).verdict == "SPOT CHECKED"
    found = invar.verify(forged, MODEL, steps=[5, 9])
    assert found.verdict == "NOT VERIFIED" and found.findings[0].field == "output.logits[7]"
    for wrong in (
        {"spot": 0},
        {"spot": 13},
        {"spot": 2.5},
        {"salt": "x"},
        {"spot": 1, "salt": ""},
        {"inputs": {"x": np.zeros(1, np.float32)}},
        {"inputs": 3},
        {"spot": 1, "steps": (0, 1)},
        {"steps": 3},
        {"steps": (3, 1)},
        {"steps": (0, 13)},
        {"steps": (-1, 2)},
    ):
        with pytest.raises(invar.BadInput):
            invar.verify(receipt, MODEL, **wrong)


def test_receipts_of_tensors(tmp_path):
    onnx_model, plan, path = (tmp_path / name for name in ("m.onnx", "m.invar", "r.json"))
    model(onnx_model, [node("Add", ["x", "w"], ["y"])], [("x", F32, ["n"])], [("y", F32)],
          [("w", np.float32([3]))], opset=18)  # fmt: skip
    x = np.arange(5, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    program("compile", onnx_model, "-o", plan)
    program("infer", plan, "--input", f"x={tmp_path}/x.npy", "--receipt-path", path)
    made = json.loads(path.read_text())
    verdict = invar.verify(path, onnx_model, inputs={"x": x})
    assert verdict and verdict.verdict == "VERIFIED" and "1 tensors" in verdict.compared["outputs"]
    assert verdict.receipt_hash == made["receipt_hash"]
    assert "as it was given" in invar.verify(made, plan=plan, inputs={"x": x}).compared["program"]
    (found,) = invar.verify(made, onnx_model, inputs={"x": x + 1}).findings
    assert found.field == "input.tensors[x].sha256"
    forged = reseal(put(made, ("output", "tensors", 0, "sha256"), "0" * 64))
    assert not invar.verify(forged, onnx_model, inputs={"x": x})
    assert "program" in invar.verify(made, onnx_model, inputs={"x": x}, dims={"n": 5}).report
    for wrong in (
        {},
        {"model": onnx_model},
        {"inputs": {"x": x}},
        {"model": onnx_model, "plan": plan, "inputs": {"x": x}},
        {"model": onnx_model, "inputs": {"x": x}, "steps": (0, 1)},
        {"model": onnx_model, "inputs": [x]},
    ):
        with pytest.raises(invar.BadInput):
            invar.verify(made, **wrong)


def test_many_receipts(receipt, tmp_path):
    path, junk = tmp_path / "r.json", tmp_path / "junk.json"
    path.write_text(json.dumps(receipt))
    junk.write_text("{}")
    forged = reseal(put(receipt, ("output", "logits", 2), "0" * 64))
    verdicts = invar.verify([path, forged, junk, receipt], MODEL)
    assert [v.verdict for v in verdicts] == ["VERIFIED", "NOT VERIFIED", "REFUSED", "VERIFIED"]
    assert [bool(v) for v in verdicts] == [True, False, False, True]
    assert "not a receipt" in verdicts[2].report and verdicts[0].receipt == str(path)
    assert [v.verdict for v in invar.validate([path])] == ["VALID"]
    program("seal", path, "-o", tmp_path / "batch.json")
    assert [v.verdict for v in invar.verify(tmp_path / "batch.json", MODEL)] == [
        "VALID",
        "VERIFIED",
    ]


def test_signatures(receipt, key, tasks):
    path, key_id = key
    answer = invar.generate(MODEL, **ASK, tasks_root=tasks, sign=path)
    assert answer.receipt_hash == receipt["receipt_hash"]
    assert [s["key"] for s in answer.receipt["signatures"]] == [key_id]
    public = path.with_name("key.pub")
    for verdict in (
        invar.validate(answer, require_key=public),
        invar.verify(answer, MODEL, require_key=[key_id, public]),
    ):
        assert verdict and key_id in verdict.compared["signed"]
    assert not invar.validate(receipt, require_key=public)
    assert not invar.verify(answer, MODEL, require_key="0" * 64)
    with pytest.raises(invar.BadInput, match="a private key, where a public one"):
        invar.validate(receipt, require_key=path)
    with pytest.raises(invar.BadInput, match="absent"):
        invar.generate(MODEL, **ASK, sign=[path, "absent"])


def test_a_salt_and_the_turn_before(receipt, tasks, tmp_path):
    full = invar.generate(
        MODEL,
        **ASK,
        tasks_root=tasks,
        salt_prompt=True,
        previous=receipt,
        receipt_path=tmp_path / "r",
    )
    assert full.receipt["input"]["previous"] == receipt["receipt_hash"]
    verdicts = invar.verify([receipt, full], MODEL)
    assert all(verdicts) and "do not begin" in verdicts[1].compared["previous"]
    program("redact", tmp_path / "r", "-o", tmp_path / "public.json")
    public = invar.validate(tmp_path / "public.json")
    assert public and public.receipt_hash == full.receipt_hash and "withheld" in public.compared
    with pytest.raises(invar.NotCovered, match="withheld"):
        invar.verify(tmp_path / "public.json", MODEL)
    with pytest.raises(invar.BadInput, match="previous: not a valid receipt"):
        invar.generate(MODEL, **ASK, previous=put(receipt, ("output", "text"), "x"))
