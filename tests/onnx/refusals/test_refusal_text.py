"""What is wrong with a file or a call is one clear line: what, where, and what to do."""

import numpy as np
import pytest
from conftest import refused
from onnx import TensorProto, helper, numpy_helper

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
node, value = helper.make_node, helper.make_tensor_value_info


def save(path, nodes, inputs, outputs=("y",), weights=(), domains=(), **how):
    outputs = [v if not isinstance(v, str) else value(v, F32, None) for v in outputs]
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights), **how)
    opsets = [helper.make_opsetid("", 18), *(helper.make_opsetid(d, 1) for d in domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def refuses_call(model, names, **given):
    """The model, compiled for the call."""
    args = []
    for name, array in given.items():
        np.save(model.parent / f"{name}.npy", array)
        args += ["--input", f"{name}={model.parent / name}.npy"]
    done = refused("infer", model, *args, names=names)
    assert len(done.errors) == 1


ONES = np.ones((2, 4), np.float32)


def test_all_missing_inputs_are_named(tmp_path):
    nodes = [node("Sum", ["a", "b", "c"], ["y"], name="sum")]
    path = save(tmp_path / "m.onnx", nodes, [value(n, F32, ["n", 4]) for n in "abc"])
    refuses_call(path, ["inputs 'a', 'c' are missing"], b=ONES)
    refuses_call(
        path, ["input 'c' is missing", "input 'd': the plan has none"], a=ONES, b=ONES, d=ONES
    )
    refuses_call(path, ["'d': the plan has none of this name; there are 'a', 'b', 'c'"],
                 a=ONES, b=ONES, c=ONES, d=ONES)  # fmt: skip


def test_sizes_that_values_decide(tmp_path):
    nodes = [node("ConstantOfShape", ["s"], ["y"], name="zeros")]
    path = save(tmp_path / "m.onnx", nodes, [value("s", I64, [2])])
    refuses_call(path, ['node "zeros"', "= -1"], s=np.array([-1, 2]))
    refuses_call(path, ['node "zeros"', "too large for any memory"], s=np.array([1 << 31, 1 << 31]))


def test_bound_inputs(tmp_path):
    path = save(tmp_path / "m.onnx", [node("Relu", ["x"], ["y"])], [value("x", F32, ["n", 4])])
    np.save(tmp_path / "x.npy", np.ones((2, 5), np.float32))
    for name, said in (
        ("x", "a value of f32 [2, 5] is not what the graph takes, f32 [n, 4]"),
        ("z", "none of this name left to bind; there are 'x'"),
    ):
        refused(
            "compile", path, "--bind", f"{name}={tmp_path / 'x.npy'}", names=[f"'{name}'", said]
        )


def branch(*results):
    return helper.make_graph(
        [node("Identity", ["x"], [r]) for r in results],
        "b",
        [],
        [value(r, F32, None) for r in results],
    )


@pytest.mark.parametrize(
    "branches, said",
    [
        ({"then_branch": ["t"]}, ['attribute "else_branch" is missing']),
        (
            {"then_branch": ["t"], "else_branch": ["e", "f"]},
            ["its branches give 1 and 2 results, and it has 1"],
        ),
    ],
)
def test_branches(tmp_path, branches, said):
    graphs = {name: branch(*results) for name, results in branches.items()}
    nodes = [node("If", ["c"], ["y"], name="choose", **graphs)]
    path = save(tmp_path / "m.onnx", nodes, [value("c", BOOL, []), value("x", F32, [3])])
    refused("compile", path, names=['node "choose"', *said])


@pytest.mark.parametrize(
    "indices, said",
    [
        ([3, 12], "index 1, 12, is outside of its shape [4, 3]"),
        ([-1, 2], "index 0, -1, is outside"),
        ([[0, 0], [4, 1]], "index 1, 4, 1, is outside of its shape [4, 3]"),
        ([5, 2], "index 1, 2, does not ascend"),
        ([5, 5], "index 1, 5, does not ascend"),
        ([5], "values [2] and indices [1] of shape [4, 3]"),
    ],
)
def test_sparse_weights(tmp_path, indices, said):
    numbers = numpy_helper.from_array(np.array([1, 2], np.float32), "w")
    places = numpy_helper.from_array(np.array(indices, np.int64), "i")
    path = save(
        tmp_path / "m.onnx",
        [node("MatMul", ["x", "w"], ["y"])],
        [value("x", F32, ["n", 4])],
        sparse_initializer=[helper.make_sparse_tensor(numbers, places, [4, 3])],
    )
    refused("compile", path, names=["sparse initialiser 'w'", said])


def test_all_missing_external_files_are_named(tmp_path):
    weights = []
    for name in "uvw":
        t = TensorProto(name=name, data_type=F32, dims=[4], data_location=TensorProto.EXTERNAL)
        t.external_data.add(key="location", value=f"{name}.bin")
        weights.append(t)
    (tmp_path / "v.bin").write_bytes(bytes(16))
    nodes = [node("Sum", ["x", "u", "v", "w"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [value("x", F32, [4])], weights=weights)
    said = "initialiser 'u': external files are missing beside the model: 'u.bin', 'w.bin'"
    refused("compile", path, names=[said])


@pytest.mark.parametrize("content, said", [(b"", "an empty file"), (LFS, "git lfs pull")])
def test_files_that_are_no_model(tmp_path, content, said):
    (tmp_path / "m.onnx").write_bytes(content)
    refused("compile", tmp_path / "m.onnx", names=[str(tmp_path / "m.onnx"), said])


def test_three_unknown_operators(tmp_path):
    nodes = [
        node("Foo", ["x"], ["a"], name="first", domain="com.acme"),
        node("Bar", ["a"], ["b"], name="second", domain="com.acme"),
        node("Baz", ["b"], ["y"], name="third", domain="org.example"),
    ]
    domains = ["com.acme", "org.example"]
    path = save(tmp_path / "m.onnx", nodes, [value("x", F32, [2])], domains=domains)
    done = refused("compile", path, code=3, names=["3 nodes", "first", "second", "third"])
    assert done.text.count("a function in the file") == 3


@pytest.mark.parametrize(
    "kind, said",
    [
        (
            helper.make_sequence_type_proto(
                helper.make_sequence_type_proto(helper.make_tensor_type_proto(F32, None))
            ),
            "not a tensor but a list of no tensors",
        ),
        (
            helper.make_optional_type_proto(helper.make_tensor_type_proto(F32, None)),
            "not a tensor but an optional",
        ),
    ],
)
def test_inputs_that_are_no_tensors(tmp_path, kind, said):
    nodes = [node("Identity", ["s"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [helper.make_value_info("s", kind)])
    refused("compile", path, code=3, names=["graph input 's'", said])
