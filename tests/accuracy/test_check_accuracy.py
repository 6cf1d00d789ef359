"""invar compile --numerics exact16 --check-accuracy."""

import json
import shutil

import pytest
from conftest import MODEL, invar, refused


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    invar("export", "--model-name", MODEL, "--output", folder)
    return folder / "model.onnx"


def test_check_accuracy(exported, tmp_path):
    check = ("compile", exported, "--numerics", "exact16", "--check-accuracy")
    texts = tmp_path / "prompts.txt"
    texts.write_text("ROMEO: But soft, what light?\n\nJULIET: O Romeo, Romeo\n")
    found = invar(*check, texts, "--json").json()
    assert found["prompts"] == 2 and found["holds"] and found["bound"] == -8
    assert -18 < found["log2_error"] < -12
    assert abs(found["loss"]["fp32"] - found["loss"]["exact16"]) < 1e-3
    assert 0 <= found["tokens"] - found["agreeing"] <= 2
    assert "2^" in invar(*check, texts).out.decode()
    # The same prompts as ids.
    ids = [
        invar("encode", "--model-name", MODEL, "--prompt-text", line).json()
        for line in texts.read_text().split("\n")
        if line
    ]
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps(ids))
    assert invar(*check, tokens, "--json").json() == found
    worse = invar(*check, tokens, "--accuracy-bound", "2^-20", code=1)
    assert len(worse.errors) == 1 and "2^-20" in worse.errors[0]
    one = invar(*check, tokens, "--accuracy-bound", "2^-20", "--json", code=1).json()
    assert (one["holds"], one["ok"], one["exit_code"], one["kind"]) == (False, False, 1, "failed")
    assert one["log2_error"] == found["log2_error"] and "2^-20" in one["error"]
    for wrong in ("0.01", "-8", "2^x", "2^", "1e-3"):
        refused(*check, texts, "--accuracy-bound", wrong, names=["--accuracy-bound", wrong, "2^-8"])
    for other in (("--output", tmp_path / "p.invar"), ("--emit", "repro"), ("--report",)):
        refused(*check, texts, *other, names=["--check-accuracy", other[0]])
    tokens.write_text("[1]")
    refused(*check, tokens, names=["prompt 1", "two"])
    tokens.write_text("[1, 99999]")
    refused(*check, tokens, names=["99999", "2048"])
    texts.write_text("\n")
    refused(*check, texts, names=["no prompt"])
    refused("compile", exported, "--check-accuracy", texts, names=["--numerics exact16"])
    assert not (exported.parent / "plan.invar").exists()


def test_nan_in_a_weight_holds_no_bound(tmp_path):
    """A NaN of the weights of a norm is in every logit under both profiles: no accuracy."""
    folder = tmp_path / "model"
    shutil.copytree(MODEL, folder)
    for path in folder.glob("*.safetensors"):
        data = bytearray(path.read_bytes())
        begin = 8 + int.from_bytes(data[:8], "little")
        norm = json.loads(data[8:begin]).get("model.norm.weight")
        if norm:
            at = begin + norm["data_offsets"][0]
            data[at : at + 2] = b"\xc0\x7f"
            path.unlink()
            path.write_bytes(data)
    invar("export", "--model-name", folder, "--output", tmp_path)
    tokens = tmp_path / "tokens.json"
    tokens.write_text("[1, 2, 3]")
    how = ("compile", tmp_path / "model.onnx", "--numerics", "exact16", "--check-accuracy", tokens)
    found = invar(*how, "--json", code=1).json()
    assert found["log2_error"] is None and found["holds"] is False
    assert found["kind"] == "failed" and "NaN" in found["error"]
