"""Dimensions that are fixed when compiling: `--dim NAME=N`, and `dims=` in Python. The bytes are
those of the open plan at that size."""

import sys

import numpy as np
import pytest
from conftest import BUILD, invar, refused
from onnx import helper
from test_dimensions import F32, numbers, run, same


def saved(folder, nodes, inputs, outputs, values=(), opset=21):
    info = lambda all: [helper.make_tensor_value_info(n, F32, s) for n, s in all]
    graph = helper.make_graph(nodes, "g", info(inputs), info(outputs), value_info=info(values))
    path = folder / "m.onnx"
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9
        ).SerializeToString()
    )
    return path


def network(folder):
    """[batch, seq] named twice and in what is declared between, an axis without a name."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Softmax", ["h"], ["p"], axis=1),
        helper.make_node("Add", ["p", "mask"], ["y"]),
    ]
    return saved(
        folder,
        nodes,
        [("x", ["batch", "seq", 8]), ("mask", ["batch", "seq", 1]), ("w", [8, None])],
        [("y", ["batch", "seq", None])],
        [("h", ["batch", "seq", None])],
    )


def inputs(batch, seq, width):
    return {"x": numbers(batch, seq, 8), "mask": numbers(batch, seq, 1), "w": numbers(8, width)}


def strided(folder):
    """Pads that only a known size says."""
    nodes = [
        helper.make_node(
            "MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"
        )
    ]
    return saved(
        folder, nodes, [("x", ["batch", 2, "height", None])], [("y", ["batch", 2, None, None])]
    )


def test_the_bytes_of_the_open_plan(tmp_path):
    want = None
    for size in (
        {},
        {"batch": 2},
        {"batch": 2, "seq": 5},
        {"batch": 2, "x.1": 5, "w.1": 3, "x.2": 8},
    ):
        folder = tmp_path / str(len(size))
        folder.mkdir()
        invar(
            "compile", network(folder), *(a for n, s in size.items() for a in ("--dim", f"{n}={s}"))
        )
        text = (folder / "plan.invar").read_text()
        assert ("symbol batch" in text, "symbol seq" in text) == (
            "batch" not in size,
            len(size) < 2,
        ), text
        found = run(folder / "plan.invar", folder, inputs(2, 5, 3))
        want = want or found
        same(found["y"], want["y"])
    run(folder / "plan.invar", folder, inputs(3, 5, 3), check=refused, code=2)  # another size


def test_a_refusal_goes(tmp_path):
    path = strided(tmp_path)
    refused("compile", path, code=3)
    refused("compile", path, "--dim", "height=5", code=3)
    invar("compile", path, "--dim", "height=5", "--dim", "x.3=8")
    x = numbers(3, 2, 5, 8)
    y = run(tmp_path / "plan.invar", tmp_path, {"x": x})["y"]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 1)), constant_values=-np.inf)
    same(
        y,
        np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2].max(
            (4, 5)
        ),
    )


WRONG = [
    (["sequence=5"], "there are 'batch', 'seq', 'w.1'"),
    (["seq"], "not NAME=N"),
    (["=3"], "not NAME=N"),
    (["seq=-1"], "not NAME=N"),
    (["seq=1.5"], "not NAME=N"),
    (["seq="], "not NAME=N"),
    (["seq=99999999999999999999"], "not NAME=N"),
    ([f"seq={2**31 + 1}"], "outside 0 to 2147483648"),
    (["x.2=9"], "is 8 and cannot be 9"),
    (["seq=5", "seq=6"], "is to be 5 and 6"),
    (["seq=5", "mask.1=6"], "is to be 5 and 6"),
]


@pytest.mark.parametrize("given,said", WRONG)
def test_what_is_wrong_is_said(tmp_path, given, said):
    done = refused("compile", network(tmp_path), *(a for g in given for a in ("--dim", g)), code=2)
    assert said in done.errors[0], done.errors
    assert not (tmp_path / "plan.invar").exists()


def test_twice_the_same_and_no_elements(tmp_path):
    path = network(tmp_path)
    invar("compile", path, "--dim", "seq=5", "--dim", "seq=5", "--dim", "x.2=8")
    invar("compile", strided(tmp_path), "--dim", "height=5", "--dim", "x.3=8", "--dim", "batch=0")
    assert run(tmp_path / "plan.invar", tmp_path, {"x": numbers(0, 2, 5, 8)})["y"].shape == (
        0,
        2,
        3,
        4,
    )


def test_python(tmp_path):
    if not (BUILD / "python/invar").is_dir():
        pytest.skip("this build has no Python package (INVAR_PACKAGE)")
    sys.path.insert(0, str(BUILD / "python"))
    import invar as package
    import torch

    given = inputs(2, 5, 3)
    path = network(tmp_path)
    (want,) = package.compile(path).run(given).values()
    fixed = package.compile(path, dims={"batch": 2, "seq": np.int64(5), "w.1": 3})
    assert [t.shape for t in fixed.inputs] == [(2, 5, 8), (2, 5, 1), (8, 3)]
    same(next(iter(fixed.run(given).values())), want)
    same(
        package.convert(path, dims={"seq": 5})(*map(torch.from_numpy, given.values())).numpy(), want
    )
    for dims, said in (
        ({"sequence": 5}, "'batch', 'seq', 'w.1'"),
        ({"seq": -1}, "dims: 'seq': -1"),
        ({"seq": True}, "dims"),
        ({"seq": 5.0}, "dims"),
        ({1: 5}, "dims"),
        ({"seq": 2**31 + 1}, "dims"),
        (["seq"], "dims: list"),
        ({"x.2": 9}, "is 8"),
        ({"seq": 5, "x.1": 6}, "is to be 5 and 6"),
    ):
        for make in (package.compile, package.convert):
            with pytest.raises(package.BadInput, match=said.replace(".", r"\.")):
                make(path, dims=dims)
