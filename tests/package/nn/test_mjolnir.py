"""gensyn_mjolnir: REE's import keeps working, and computes what invar.convert() does."""

import dataclasses
import importlib
import inspect
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from built import invar
from onnx import TensorProto, helper, numpy_helper

gensyn_mjolnir = importlib.import_module("gensyn_mjolnir")
X = torch.from_numpy(np.random.default_rng(2).standard_normal((3, 8)).astype("f"))


@pytest.fixture(scope="module")
def model():
    weight = np.random.default_rng(1).standard_normal((8, 4)).astype("f")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_signatures_are_those_of_ree():
    fields = {f.name: f.default for f in dataclasses.fields(gensyn_mjolnir.CompileOptions)}
    assert fields == {
        "artifacts_dir": None,
        "colocate_tensors": False,
        "requires_reproducibility": True,
    }
    assert [*inspect.signature(gensyn_mjolnir.convert).parameters] == [
        "onnx_model_or_path",
        "options",
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        gensyn_mjolnir.CompileOptions().artifacts_dir = "x"
    with pytest.raises(TypeError):
        gensyn_mjolnir.CompileOptions("positional")


def test_it_is_invars_convert(model, tmp_path):
    onnx.save(model, tmp_path / "model.onnx")
    want = invar.convert(model)(X)
    options = gensyn_mjolnir.CompileOptions(requires_reproducibility=True)
    for given in (model, tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        module = gensyn_mjolnir.convert(given, options=options)
        assert isinstance(module, torch.nn.Module) and torch.equal(module(X), want)
    plain = gensyn_mjolnir.convert(
        model, gensyn_mjolnir.CompileOptions(requires_reproducibility=False)
    )
    torch.testing.assert_close(plain(X), want)
    with pytest.raises(invar.BadInput, match="CompileOptions"):
        gensyn_mjolnir.convert(model, {"artifacts_dir": None})


def test_debugging_keeps_the_artifacts(model, monkeypatch, capfd):
    monkeypatch.delenv("INVAR_DEBUG", raising=False)
    monkeypatch.setenv("MJOLNIR_DEBUG", "1")
    gensyn_mjolnir.convert(model)
    folder = capfd.readouterr().err.strip().removeprefix("artifacts in ")
    assert (Path(folder) / "module.py").exists() and (Path(folder) / "0-onnx.mlir").exists()
    monkeypatch.delenv("MJOLNIR_DEBUG")
    gensyn_mjolnir.convert(model)
    assert capfd.readouterr().err == ""
