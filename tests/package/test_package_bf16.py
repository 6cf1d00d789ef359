"""The Python package: elements that NumPy lacks."""

import sys

import numpy as np
import pytest
from conftest import BUILD
from onnx import TensorProto, helper

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import ml_dtypes  # noqa: E402
import torch  # noqa: E402
from invar import primitives  # noqa: E402

BITS = np.array(
    [[0x3F80, 0xBF80, 0x0080], [0x8000, 0x7F80, 0x7FC0]], np.uint16
)  # 1, -1, the smallest normal, -0, inf, NaN


def program(take, give):
    """Casts, and returns its input beside that."""
    kinds = {"bf16": TensorProto.BFLOAT16, "f32": TensorProto.FLOAT}
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["x"], ["y"], to=kinds[give]),
            helper.make_node("Identity", ["x"], ["same"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", kinds[take], ["n", 3])],
        [
            helper.make_tensor_value_info("y", kinds[give], ["n", 3]),
            helper.make_tensor_value_info("same", kinds[take], ["n", 3]),
        ],
    )
    return invar.compile(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    )


def wide(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def test_arrays_of_ml_dtypes():
    x = BITS.view(ml_dtypes.bfloat16)
    found = program("bf16", "f32").run(x=x)
    assert (
        found["y"].dtype == np.float32
        and found["y"].tobytes()
        == torch.from_numpy(BITS.view(np.int16)).view(torch.bfloat16).float().numpy().tobytes()
    )
    assert found["same"].dtype == ml_dtypes.bfloat16 and found["same"].tobytes() == BITS.tobytes()
    found = program("f32", "bf16").run(x=wide(BITS[:1]))
    assert (
        found["y"].dtype == ml_dtypes.bfloat16
        and found["y"].shape == (1, 3)
        and found["y"].tobytes() == BITS[:1].tobytes()
    )
    found["y"][0, 0] = 2  # it is the caller's
    every = np.arange(65536, dtype=np.uint16).repeat(3).reshape(-1, 3)
    assert (
        program("bf16", "f32").run(x=every.view(ml_dtypes.bfloat16))["same"].tobytes()
        == every.tobytes()
    )


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x[::-1, ::-1],
        lambda x: np.asfortranarray(x),
        lambda x: x[:0],
        lambda x: x.astype(x.dtype.newbyteorder("=")),
    ],
)
def test_arrays_that_lie_otherwise(form):
    x = form(BITS.view(ml_dtypes.bfloat16))
    x.flags.writeable = False
    assert program("bf16", "f32").run(x=x)["same"].tobytes() == x.tobytes()


def test_operations_on_arrays_of_ml_dtypes():
    x = BITS.view(ml_dtypes.bfloat16)
    made = primitives.cast(wide(BITS[:1]), dtype="bf16")
    assert made.dtype == ml_dtypes.bfloat16 and made.tobytes() == BITS[:1].tobytes()
    assert primitives.transpose(x, perm=[1, 0]).tobytes() == BITS.T.tobytes()
    assert primitives.cast(x[:1], dtype="f32").tobytes() == wide(BITS[:1]).tobytes()


def test_without_ml_dtypes(monkeypatch):
    made = program("f32", "bf16")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(invar.NotCovered) as said:
        made.run(x=wide(BITS))
    assert (
        str(said.value)
        == "output 'y': NumPy has no elements of bf16: install ml_dtypes, or give torch tensors"
    )
    with pytest.raises(invar.NotCovered) as said:
        primitives.cast(wide(BITS), dtype="bf16")
    assert (
        str(said.value)
        == "the result: NumPy has no elements of bf16: install ml_dtypes, or give torch tensors"
    )
    found = made.run(x=torch.from_numpy(wide(BITS[:1])))
    assert (
        found["y"].dtype == torch.bfloat16
        and found["y"].view(torch.int16).numpy().tobytes() == BITS[:1].tobytes()
    )
    assert program("f32", "f32").run(x=wide(BITS))["y"].tobytes() == wide(BITS).tobytes()


@pytest.mark.parametrize(
    "x",
    [
        np.ones((1, 3), ml_dtypes.float8_e4m3fn),
        np.ones((1, 3), ml_dtypes.int4),
        np.ones((1, 3), complex),
        np.array([["a", "b", "c"]]),
        np.ones((1, 3), object),
        np.ones((1, 3), np.longdouble),
        np.zeros((1, 3), "M8[s]"),
        np.zeros((1, 3), [("a", "f4")]),
    ],
)
def test_elements_that_nobody_takes(x):
    for call in (lambda: program("f32", "bf16").run(x=x), lambda: primitives.add(x, x)):
        with pytest.raises(
            invar.NotCovered,
            match="elements of NumPy's .*; covered are f32 .* and ml_dtypes.bfloat16$",
        ):
            call()


def test_wrong_types_are_named():
    with pytest.raises(invar.BadInput, match="'x'.*bf16"):
        program("f32", "f32").run(x=BITS.view(ml_dtypes.bfloat16))
    with pytest.raises(invar.BadInput, match="'x'.*bf16"):
        program("bf16", "f32").run(x=BITS)
