"""Texts and files of standard input, receipts that stay, plans elsewhere than beside their
model."""

import json
import os
import stat
import subprocess

import numpy as np
import pytest
from conftest import BIN, MODEL, invar, refused
from onnx import TensorProto, helper, numpy_helper, save

SHORT = ["--model-name", MODEL, "--max-new-tokens", 4]


def fed(text, *args, cwd=None, code=0):
    done = subprocess.run(
        [BIN, *map(str, args)], input=text, capture_output=True, cwd=cwd, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize("text", [b"ROMEO:", b"ROMEO:\n", b"ROMEO:\r\n"])
def test_prompt_of_standard_input(tmp_path, text):
    expected = invar(
        "run", *SHORT, "--prompt-text", "ROMEO:", "--receipt-path", tmp_path / "a.json"
    )
    done = fed(text, "run", *SHORT, "--prompt-text", "-", "--receipt-path", tmp_path / "b.json")
    assert done.stdout == expected.out
    hashes = [json.loads((tmp_path / f).read_text())["receipt_hash"] for f in ("a.json", "b.json")]
    assert hashes[0] == hashes[1]
    ids = invar("encode", "--model-name", MODEL, "--prompt-text", "ROMEO:").out
    assert fed(text, "encode", "--model-name", MODEL, "--prompt-text", "-").stdout == ids


def test_files_of_standard_input(tmp_path):
    done = fed(
        b'"ROMEO:"\n"JULIET:"\n', "run", *SHORT, "--prompt-file", "-", "--json", cwd=tmp_path
    )
    assert len(done.stdout.splitlines()) == 2
    done = fed(b"[5, 7]", "decode", "--model-name", MODEL, "-")
    assert done.stdout == invar("decode", "--model-name", MODEL, "--tokens", "5,7").out
    done = fed(b"\xff\n", "run", *SHORT, "--prompt-text", "-", code=2, cwd=tmp_path)
    assert b"invar: " in done.stderr


def test_receipts_stay(tmp_path):
    run = ["run", *SHORT, "--prompt-text", "ROMEO:"]
    for name in ("receipt.json", "receipt-2.json", "receipt-3.json"):
        done = invar(*run, cwd=tmp_path)
        assert name.encode() in done.err
        assert (b"  kept      receipt.json was there" in done.err) == (name != "receipt.json")
        (tmp_path / name).write_text(name)  # never written again
    assert (tmp_path / "receipt.json").read_text() == "receipt.json"
    assert (tmp_path / "receipt-2.json").read_text() == "receipt-2.json"
    invar(*run, "--receipt-path", "receipt.json", cwd=tmp_path)  # asked for
    assert json.loads((tmp_path / "receipt.json").read_text())["receipt_hash"]


def test_receipts_of_a_prompt_file_stay(tmp_path):
    (tmp_path / "p.jsonl").write_text('"ROMEO:"\n"JULIET:"\n')
    (tmp_path / "receipt.2.json").write_text("mine")
    invar("run", *SHORT, "--prompt-file", "p.jsonl", cwd=tmp_path)
    assert {p.name for p in tmp_path.glob("receipt*")} == {
        "receipt.2.json",
        "receipt-2.1.json",
        "receipt-2.2.json",
    }
    assert (tmp_path / "receipt.2.json").read_text() == "mine"


@pytest.fixture
def onnx_model(tmp_path):
    """A model of one product whose weights are a file beside it."""
    folder = tmp_path / "model"
    folder.mkdir()
    weights = numpy_helper.from_array(np.arange(4096, dtype=np.float32).reshape(64, 64), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 64])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    save(model, folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    np.save(tmp_path / "x.npy", np.ones((2, 64), np.float32))
    return folder / "m.onnx"


def infer(plan, tmp_path):
    x = f"x={tmp_path / 'x.npy'}"
    done = invar("infer", plan, "--input", x, "--tensors-output", tmp_path / "a/new/folder")
    assert np.load(tmp_path / "a/new/folder/y.npy").shape == (2, 64)
    return done.json()["outputs"]


def test_compile_elsewhere(tmp_path, onnx_model):
    invar("compile", onnx_model)
    beside = infer(onnx_model.parent / "plan.invar", tmp_path)
    (tmp_path / "other").mkdir()
    for _ in range(2):  # again: the link is there
        done = invar("compile", onnx_model, "-o", tmp_path / "other/p.invar", "--json")
        assert done.json()["path"] == str(tmp_path / "other/p.invar")
        assert infer(tmp_path / "other/p.invar", tmp_path) == beside
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/w.bin").write_text("mine")
    refused(
        "compile", onnx_model, "-o", tmp_path / "taken/p.invar", names=["w.bin", "another file"]
    )
    assert (tmp_path / "taken/w.bin").read_text() == "mine"


def test_compile_beside_a_model_that_cannot_be_written(tmp_path, onnx_model):
    """As another user: root may write everywhere."""
    cache = tmp_path / "cache"
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    for file in onnx_model.parent.iterdir():
        file.chmod(0o644)
    onnx_model.parent.chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IROTH | stat.S_IXOTH)
    how = {}
    if os.getuid() == 0:
        for folder in [tmp_path, *tmp_path.parents]:
            if not folder.stat().st_mode & stat.S_IXOTH and folder != folder.parent:
                folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
        cache.mkdir()
        os.chown(cache, 65534, 65534)
        how = {"user": 65534, "group": 65534, "extra_groups": []}
    done = subprocess.run(
        [BIN, "compile", onnx_model], env=env, capture_output=True, timeout=120, check=False, **how
    )
    assert done.returncode == 0, done.stderr
    assert b"cannot be written: the plan goes to" in done.stderr
    (plan,) = cache.rglob("plan.invar")
    assert str(plan) in done.stdout.decode()
    assert infer(plan, tmp_path)
