"""One refusal says all that is missing: no node hides another, each reason stands there once with
the number of nodes that have it, and what only Invar limits is outside the guarantee (exit code 3),
not wrong (exit code 2)."""

import re

import numpy as np
import onnx
import pytest
from conftest import execute, refused
from onnx import TensorProto, helper, numpy_helper
from test_types import FLOATS, examples

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, shape, dtype=F32):
    return helper.make_tensor_value_info(name, dtype, shape)


def save(path, nodes, inputs, outputs, weights=(), opset=23):
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        outputs,
        [numpy_helper.from_array(np.asarray(a), name) for name, a in weights],
    )
    opsets = [
        helper.make_opsetid(*o) for o in (("", opset), ("com.microsoft", 1), ("com.example", 1))
    ]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    )


def listed(path, code=3):
    """Operator and first node -> how many nodes."""
    text = refused("compile", path, code=code).err.decode()
    return {
        (op, node): 1 + int(more or 0)
        for op, node, more in re.findall(
            r"(\w+) \(domain [^,]*, node \"([^\"]*)\"(?: and (\d+) more)?\): ", text
        )
    }, text


def mystery(x, y, name="unknown"):
    return helper.make_node("Mystery", [x], [y], name=name, domain="com.example")


def attention(x, y, name):
    return helper.make_node(
        "GroupQueryAttention",
        [x, "k", "k", "", "", "lengths", "total"],
        [y],
        name=name,
        domain="com.microsoft",
        num_heads=2,
        kv_num_heads=2,
        qk_output=1,
    )


def test_nodes_behind_an_unknown_one_are_judged(tmp_path):
    """Operators, attributes, and numbers of operands and results are known without types; shapes
    are not, and nobody guesses."""
    save(
        tmp_path / "m.onnx",
        [
            mystery("x", "a"),
            attention("a", "b", "first"),
            mystery("b", "c", "another"),
            attention("c", "d", "second"),
            helper.make_node("Sin", ["d"], ["e"], name="strange", speed=1),
            helper.make_node("Relu", ["e"], ["f"], name="fine"),
            helper.make_node("RMSNormalization", ["f", "k"], ["g"], name="rounded", stash_type=10),
            helper.make_node(
                "MatMulNBits",
                ["g", "quantized", "s"],
                ["h"],
                name="bits",
                domain="com.microsoft",
                K=8,
                N=4,
                bits=3,
                block_size=16,
            ),
            helper.make_node("Softmax", ["h"], ["y"], name="beyond", axis=7),
        ],
        [
            value("x", [1, 4, 8]),
            value("k", [1, 4, 8]),
            value("lengths", [1], TensorProto.INT32),
            value("total", [], TensorProto.INT32),
            value("quantized", [4, 1, 4], TensorProto.UINT8),
            value("s", [4]),
        ],
        [value("y", None)],
    )
    found, text = listed(tmp_path / "m.onnx")
    assert found == {
        ("Mystery", "unknown"): 2,
        ("GroupQueryAttention", "first"): 2,
        ("Sin", "strange"): 1,
        ("RMSNormalization", "rounded"): 1,
        ("MatMulNBits", "bits"): 1,
    }
    assert (
        "7 nodes are outside the guarantee" in text
        and "qk_output" in text
        and 'attribute "speed"' in text
    )


def test_nodes_of_graphs_behind_an_unknown_one_are_judged(tmp_path):
    def branch(name):
        nodes = [
            helper.make_node("Sin", ["x"], [f"{name} s"], name=f"{name} strange", speed=1),
            mystery(f"{name} s", f"{name} y", f"{name} unknown"),
        ]
        return helper.make_graph(nodes, name, [], [value(f"{name} y", None)])

    save(
        tmp_path / "m.onnx",
        [
            mystery("x", "a"),
            helper.make_node("Cast", ["a"], ["c"], to=TensorProto.BOOL),
            helper.make_node(
                "If",
                ["c"],
                ["y"],
                name="if",
                then_branch=branch("then"),
                else_branch=branch("else"),
            ),
        ],
        [value("x", [1])],
        [value("y", None)],
    )
    found, text = listed(tmp_path / "m.onnx")
    assert set(found) == {("Mystery", "unknown"), ("If", "if")} | {
        (op, f"{b} {n}")
        for b in ("then", "else")
        for op, n in (("Sin", "strange"), ("Mystery", "unknown"))
    }, text


def test_a_reason_stands_once(tmp_path):
    nodes = [mystery("x", "y0", "n0")] + [
        mystery(f"y{i}", f"y{i + 1}", f"n{i + 1}") for i in range(99)
    ]
    save(tmp_path / "m.onnx", nodes, [value("x", [1])], [value("y99", None)])
    found, text = listed(tmp_path / "m.onnx")
    assert found == {("Mystery", "n0"): 100} and len(text.strip().splitlines()) == 1
    assert 'node "n0" and 99 more): no reproducible kernel' in text


@pytest.fixture(scope="module")
def sound():
    return {op: e for op, e in examples().items() if e.types[0] in FLOATS}


def test_nothing_is_said_of_what_nobody_knows(tmp_path, sound):
    """Behind an unknown operator, a node that would be compiled is never refused."""
    wrong, seen = {}, 0
    for op, example in sound.items():
        model = example.model(example.types, ["none"], example.results(example.types))
        onnx.save(model, tmp_path / "m.onnx")
        if execute(["compile", tmp_path / "m.onnx"]).code != 0:
            continue
        first = model.graph.node[0].input[0]
        model.graph.node.insert(
            0, helper.make_node("Mystery", [first], ["unknown"], domain="com.example")
        )
        model.graph.node[1].input[:] = [
            "unknown" if name == first else name for name in model.graph.node[1].input
        ]
        model.opset_import.append(helper.make_opsetid("com.example", 1))
        onnx.save(model, tmp_path / "m.onnx")
        found, text = listed(tmp_path / "m.onnx")
        seen += 1
        if list(found) != [("Mystery", "unknown")]:
            wrong[op] = text
    assert not wrong and seen > 100


# A node and its inputs' shapes: with open dimensions that may be equal, or 1 in front, outside the
# guarantee; and where no sizes fit, wrong.
SHAPES = {
    "SwiGLU": (
        helper.make_node("SwiGLU", ["x", "z"], ["y"]),
        (["n", 4], ["m", 4]),
        ([3, 4], [4, 4]),
    ),
    "PRelu": (helper.make_node("PRelu", ["x", "z"], ["y"]), ([4], [1, 4]), ([4], [3, 4])),
    "TensorScatter": (
        helper.make_node("TensorScatter", ["x", "z"], ["y"], axis=1),
        ([2, 4, 8], ["n", 2, 8]),
        ([2, 4, 8], [3, 2, 8]),
    ),
    "Det": (helper.make_node("Det", ["x"], ["y"]), (["b", 3, "n"], [1]), (["b", 3, 2], [1])),
    "Scan": (
        helper.make_node(
            "Scan",
            ["x", "z"],
            ["y"],
            num_scan_inputs=2,
            body=helper.make_graph(
                [helper.make_node("Add", ["a", "b"], ["c"])],
                "body",
                [value("a", []), value("b", [])],
                [value("c", [])],
            ),
        ),
        (["n"], ["m"]),
        ([3], [4]),
    ),
    "RoiAlign": (
        helper.make_node("RoiAlign", ["x", "z", "i"], ["y"], sampling_ratio=1),
        ([1, 1, 4, 4], ["n", "four"]),
        ([1, 1, 4, 4], [2, 5]),
    ),
}


@pytest.mark.parametrize("op", SHAPES)
def test_only_shapes_that_never_fit_are_mistakes(tmp_path, op):
    node, *cases = SHAPES[op]
    for shapes, code in zip(cases, (3, 2)):
        save(
            tmp_path / "m.onnx",
            [node],
            [value("x", shapes[0]), value("z", shapes[1]), value("i", [2], I64)],
            [value("y", None)],
            opset=28,
        )
        refused("compile", tmp_path / "m.onnx", code=code, names=[op])


BIG = 2**62
LIMITS = {
    "Tile": (
        [helper.make_node("Tile", ["x", "n"], ["y"])],
        [("n", np.array([1, BIG]))],
        "can be counted",
    ),
    "Concat": (
        [
            helper.make_node("Expand", ["x", "n"], ["e"]),
            helper.make_node("Concat", ["e", "e"], ["y"], axis=0),
        ],
        [("n", np.array([BIG, 3]))],
        "can be counted",
    ),
    "Pad": (
        [helper.make_node("Expand", ["x", "n"], ["e"]), helper.make_node("Pad", ["e", "p"], ["y"])],
        [("n", np.array([BIG, 3])), ("p", np.array([BIG, 0, 0, 0]))],
        "can be counted",
    ),
    "DepthToSpace": (
        [
            helper.make_node("Reshape", ["x", "n"], ["r"]),
            helper.make_node("DepthToSpace", ["r"], ["y"], blocksize=2**31),
        ],
        [("n", np.array([1, 3, 1, 1]))],
        "blocksize",
    ),
    "OneHot": (
        [
            helper.make_node("Cast", ["x"], ["i"], to=I64),
            helper.make_node("OneHot", ["i", "n", "v"], ["y"]),
        ],
        [("n", np.array(2**50)), ("v", np.array([0, 1], np.float32))],
        "2^40",
    ),
    "Range": (
        [
            helper.make_node("Range", ["a", "n", "d"], ["r"]),
            helper.make_node("Cast", ["r"], ["f"], to=F32),
            helper.make_node("Add", ["x", "f"], ["y"]),
        ],
        [("a", np.array(0)), ("n", np.array(2**50)), ("d", np.array(1))],
        "2^40",
    ),
    "HannWindow": (
        [helper.make_node("HannWindow", ["n"], ["y"])],
        [("n", np.array(2**25))],
        "2^24",
    ),
    "Resize": (
        [helper.make_node("Resize", ["x", "", "", "n"], ["y"])],
        [("n", np.array([2**40, 3]))],
        "size",
    ),
}


@pytest.mark.parametrize("op", LIMITS)
def test_limits_of_invar_are_not_mistakes_of_the_model(tmp_path, op):
    nodes, weights, name = LIMITS[op]
    save(tmp_path / "m.onnx", nodes, [value("x", [1, 3])], [value("y", None)], weights)
    refused("compile", tmp_path / "m.onnx", code=3, names=[op, name])


@pytest.mark.parametrize(
    "nodes,weights",
    [
        ([helper.make_node("Tile", ["x", "n"], ["y"])], [("n", np.array([-1, 1]))]),
        (
            [helper.make_node("OneHot", ["i", "n", "v"], ["y"])],
            [("i", np.array([0])), ("n", np.array(-1.0)), ("v", np.array([0, 1], np.float32))],
        ),
        ([helper.make_node("Resize", ["x", "", "", "n"], ["y"])], [("n", np.array([-1, 3]))]),
    ],
    ids=["Tile", "OneHot", "Resize"],
)
def test_mistakes_stay_mistakes(tmp_path, nodes, weights):
    save(tmp_path / "m.onnx", nodes, [value("x", [1, 3])], [value("y", None)], weights)
    refused("compile", tmp_path / "m.onnx", code=2, names=[nodes[0].op_type])
