"""Lists of tensors that a graph makes and takes apart again (spec/onnx.md onnx.26)."""

import json

import numpy as np
import pytest
from conftest import invar, refused
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
NUMBERS = {f"n{i}": np.int64(i) for i in range(-2, 5)} | {
    "two_one": np.array([2, 1]),
    "one": np.int64(1),
}
node, value = helper.make_node, helper.make_tensor_value_info


def compiled(folder, nodes, outputs, inputs=(("x", (3, 4)), ("y", (3, 4))), check=invar, **how):
    graph = helper.make_graph(
        nodes,
        "g",
        [value(n, F32, s) for n, s in inputs],
        [value(n, t, None) for n, t in outputs.items()],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in NUMBERS.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    check("compile", folder / "m.onnx", **how)
    return model


def agrees(folder, nodes, outputs, inputs=(("x", (3, 4)), ("y", (3, 4))), sizes=None, **how):
    """With ONNX's reference, byte for byte."""
    model = compiled(folder, nodes, outputs, inputs, **how)
    arrays = {
        n: (np.arange(np.prod(shape)) * 7 % 11 - 5).astype(np.float32).reshape(shape)
        for n, s in inputs
        for shape in [[(sizes or {}).get(d, d) for d in s]]
    }
    args = []
    for name, array in arrays.items():
        np.save(folder / f"in.{name}.npy", array)
        args += ["--input", f"{name}={folder / f'in.{name}.npy'}"]
    (folder / "out").mkdir(exist_ok=True)
    invar("infer", folder / "plan.invar", *args, "--tensors-output", folder / "out")
    for name, want in zip(outputs, ReferenceEvaluator(model).run(list(outputs), arrays)):
        found = np.load(folder / f"out/{name}.npy")
        assert (
            found.dtype == np.asarray(want).dtype
            and found.shape == np.shape(want)
            and found.tobytes() == np.asarray(want).tobytes()
        ), name


def test_made_and_taken_apart(tmp_path):
    agrees(
        tmp_path,
        [
            node("SequenceConstruct", ["x", "y"], ["s"]),
            node("Neg", ["x"], ["z"]),
            node("SequenceInsert", ["s", "z", "n1"], ["t"]),
            node("SequenceInsert", ["t", "x"], ["u"]),
            node("SequenceErase", ["u", "n0"], ["v"]),
            node("SequenceErase", ["u"], ["w"]),
            node("SequenceAt", ["u", "n-2"], ["a"]),
            node("SequenceAt", ["v", "n0"], ["b"]),
            node("SequenceLength", ["w"], ["c"]),
            node("ConcatFromSequence", ["v"], ["d"], axis=-1),
            node("ConcatFromSequence", ["u"], ["e"], axis=1, new_axis=1),
            node("SequenceEmpty", [], ["none"], dtype=F32),
            node("SequenceInsert", ["none", "y"], ["single"]),
            node("Identity", ["single"], ["same"]),
            node("SequenceAt", ["same", "n0"], ["f"]),
        ],
        {"a": F32, "b": F32, "c": I64, "d": F32, "e": F32, "f": F32},
    )


def test_split(tmp_path):
    agrees(
        tmp_path,
        [
            node("SplitToSequence", ["x", "two_one"], ["s"], axis=0),
            node("ConcatFromSequence", ["s"], ["a"], axis=0),
            node("SequenceAt", ["s", "n-1"], ["b"]),
            node("SplitToSequence", ["y", "n2"], ["t"], axis=1),
            node("SequenceAt", ["t", "n1"], ["c"]),
            node("SplitToSequence", ["y"], ["u"], axis=1, keepdims=0),
            node("SequenceAt", ["u", "n3"], ["d"]),
            node("SplitToSequence", ["y"], ["v"], axis=-1),
            node("SequenceAt", ["v", "n2"], ["e"]),
        ],
        {"a": F32, "b": F32, "c": F32, "d": F32, "e": F32},
        inputs=[("x", (3, 3)), ("y", ("rows", "columns"))],
        sizes={"rows": 3, "columns": 4},
    )


def mapped():
    """As torch's exporter writes atleast_2d: a graph with a branch, for each element."""
    branch = lambda op, out, *more: helper.make_graph(
        [node(op, ["e", *more], [out])], out, [], [value(out, F32, None)]
    )
    return helper.make_graph(
        [
            node("Constant", [], ["two"], value_int=2),
            node("Constant", [], ["m1"], value_ints=[1, -1]),
            node("Shape", ["e"], ["shape"]),
            node("Size", ["shape"], ["rank"]),
            node("Less", ["rank", "two"], ["low"]),
            node(
                "If",
                ["low"],
                ["r"],
                then_branch=branch("Reshape", "yes", "m1"),
                else_branch=branch("Identity", "no"),
            ),
        ],
        "body",
        [value("e", F32, None)],
        [value("r", F32, None)],
    )


def test_mapped(tmp_path):
    nodes = [
        node("SequenceConstruct", ["x", "y"], ["s"]),
        node("SequenceMap", ["s"], ["t"], body=mapped()),
        node("SequenceAt", ["t", "n0"], ["a"]),
        node("SequenceAt", ["t", "n1"], ["b"]),
        node("ConcatFromSequence", ["t"], ["c"], axis=0),
    ]
    agrees(tmp_path, nodes, {"a": F32, "b": F32, "c": F32}, inputs=[("x", (2, 4)), ("y", (4,))])


def test_mapped_with_more(tmp_path):
    """Of a second list and a tensor that each step sees whole; constants of the body; two
    results."""
    body = helper.make_graph(
        [
            node("Constant", [], ["at"], value_int=1),
            node("SequenceConstruct", ["p", "q"], ["l"]),
            node("SequenceAt", ["l", "at"], ["second"]),
            node("Mul", ["second", "w"], ["m"]),
            node("Add", ["m", "k"], ["sum"]),
        ],
        "body",
        [value(n, F32, None) for n in ("p", "q", "w")],
        [value("sum", F32, None), value("p", F32, None)],
        [numpy_helper.from_array(np.float32(3), "k")],
    )
    nodes = [
        node("Neg", ["x"], ["z"]),
        node("SequenceConstruct", ["x", "y"], ["s"]),
        node("SequenceConstruct", ["y", "z"], ["s2"]),
        node("SequenceMap", ["s", "s2", "x"], ["t", "u"], body=body),
        node("ConcatFromSequence", ["t"], ["a"], axis=0),
        node("SequenceAt", ["u", "n1"], ["b"]),
    ]
    compiled(tmp_path, nodes, {"a": F32, "b": F32})
    x, y = (np.arange(12) * k % 11 - 5.0 for k in (3, 7))
    x, y = (v.astype(np.float32).reshape(3, 4) for v in (x, y))
    np.save(tmp_path / "x.npy", x), np.save(tmp_path / "y.npy", y), (tmp_path / "out").mkdir()
    invar(
        "infer",
        tmp_path / "plan.invar",
        "--input",
        f"x={tmp_path / 'x.npy'}",
        "--input",
        f"y={tmp_path / 'y.npy'}",
        "--tensors-output",
        tmp_path / "out",
    )
    assert (
        np.load(tmp_path / "out/a.npy").tobytes()
        == np.concatenate([y * x + 3, -x * x + 3]).tobytes()
    )
    assert np.load(tmp_path / "out/b.npy").tobytes() == y.tobytes()


def test_within_branches(tmp_path):
    """A list that is made around a branch, taken apart within it; beside it another of its
    names."""
    first = helper.make_graph(
        [
            node("ConcatFromSequence", ["s"], ["p"], axis=0),
            node("SequenceConstruct", ["p", "x"], ["l"]),
            node("SequenceAt", ["l", "n0"], ["q"]),
        ],
        "yes",
        [],
        [value("q", F32, None)],
    )
    second = helper.make_graph(
        [
            node("ConcatFromSequence", ["s"], ["p2"], axis=1),
            node("SequenceConstruct", ["x", "p2"], ["l"]),
            node("SequenceAt", ["l", "n1"], ["q2"]),
        ],
        "no",
        [],
        [value("q2", F32, None)],
    )
    nodes = [
        node("SequenceConstruct", ["x", "y"], ["s"]),
        node("SequenceAt", ["s", "n0"], ["e"]),
        node("Shape", ["e"], ["shape"]),
        node("Size", ["shape"], ["rank"]),
        node("Equal", ["rank", "n1"], ["flat"]),
        node("If", ["flat"], ["a"], then_branch=first, else_branch=second),
    ]
    agrees(tmp_path, nodes, {"a": F32})
    agrees(tmp_path, nodes, {"a": F32}, inputs=[("x", (3,)), ("y", (5,))])


def test_loops_that_carry_lists(tmp_path):
    """torch's exporter writes unbind within a scripted function so. Constants give the
    iterations."""
    body = helper.make_graph(
        [
            node("Gather", ["starts", "i"], ["from"]),
            node("Add", ["from", "l1"], ["to"]),
            node("Slice", ["x", "from", "to", "l0"], ["cut"]),
            node("SequenceInsert", ["s", "cut"], ["t"]),
            node("Add", ["sum", "cut"], ["more"]),
            node("Identity", ["yes"], ["go"]),
        ],
        "body",
        [
            value("i", I64, []),
            value("go_in", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("s", F32, None),
            value("sum", F32, None),
        ],
        [
            value("go", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("t", F32, None),
            value("more", F32, None),
        ],
        [
            numpy_helper.from_array(np.array([[2], [0], [1]]), "starts"),
            numpy_helper.from_array(np.array([1]), "l1"),
            numpy_helper.from_array(np.array([0]), "l0"),
        ],
    )
    nodes = [
        node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True))),
        node("SequenceEmpty", [], ["none"], dtype=F32),
        node("Loop", ["n3", "yes", "none", "y"], ["all", "total"], body=body),
        node("SequenceInsert", ["all", "x"], ["l"]),
        node("SequenceAt", ["l", "n1"], ["a"]),
        node("ConcatFromSequence", ["l"], ["b"], axis=0),
        node("Neg", ["total"], ["c"]),
    ]
    compiled(tmp_path, nodes, {"a": F32, "b": F32, "c": F32})
    x, y = (np.arange(12, dtype=np.float32).reshape(3, 4) * k for k in (1, -3))
    np.save(tmp_path / "x.npy", x), np.save(tmp_path / "y.npy", y), (tmp_path / "out").mkdir()
    invar(
        "infer",
        tmp_path / "plan.invar",
        "--input",
        f"x={tmp_path / 'x.npy'}",
        "--input",
        f"y={tmp_path / 'y.npy'}",
        "--tensors-output",
        tmp_path / "out",
    )
    for name, want in {
        "a": x[0:1],
        "b": np.concatenate([x[2:], x[:1], x[1:2], x]),
        "c": -(((y + x[2:]) + x[:1]) + x[1:2]),
    }.items():
        assert (
            np.load(tmp_path / f"out/{name}.npy").tobytes() == np.ascontiguousarray(want).tobytes()
        ), name


def test_what_is_not_known(tmp_path):
    outputs = {"a": F32}
    made = node("SequenceConstruct", ["x", "y"], ["s"])
    chosen = [
        made,
        node("ReduceMax", ["x"], ["m"], keepdims=0),
        node("Cast", ["m"], ["i"], to=I64),
        node("SequenceAt", ["s", "i"], ["a"]),
    ]
    compiled(
        tmp_path,
        chosen,
        outputs,
        check=refused,
        code=3,
        names=["SequenceConstruct", "no reproducible kernel"],
    )
    compiled(
        tmp_path,
        [made, node("SequenceAt", ["s", "n2"], ["a"])],
        outputs,
        check=refused,
        code=3,
        names=["SequenceConstruct"],
    )
    compiled(
        tmp_path,
        [
            node("SplitToSequence", ["x", "n2"], ["s"], axis=1),
            node("ConcatFromSequence", ["s"], ["a"], axis=0),
        ],
        outputs,
        inputs=[("x", ("n", "d"))],
        check=refused,
        code=3,
        names=["SplitToSequence", "follows neither from the file nor from bound inputs"],
    )
    # Lists of lists of lists: what they would make is bounded.
    nodes, last = [made], "s"
    for i in range(40):
        nodes += [
            node("ConcatFromSequence", [last], [f"c{i}"], axis=0),
            node("SequenceInsert", [last, f"c{i}"], [f"s{i}"]),
        ]
        last = f"s{i}"
    twice = helper.make_graph(
        [node("Add", ["e", "e"], ["r"])], "b", [value("e", F32, None)], [value("r", F32, None)]
    )
    for i in range(4):
        nodes.append(node("SequenceMap", [last], [f"m{i}"], body=twice))
        last = f"m{i}"
    compiled(tmp_path, [*nodes, node("SequenceAt", [last, "n0"], ["a"])], outputs)


def test_a_part_that_is_not_there(tmp_path):
    at = [
        node("SplitToSequence", ["y", "n2"], ["t"], axis=1),
        node("SequenceAt", ["t", "n3"], ["c"]),
    ]
    compiled(
        tmp_path,
        at,
        {"c": F32},
        check=refused,
        code=2,
        names=["Gather", "index 6 is outside a dimension of 4"],
    )


def test_an_output_for_each_element(tmp_path):
    """As the converters of multi-output classifiers end their graphs."""
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("SequenceConstruct", ["r", "y"], ["s"]),
        node("SequenceInsert", ["s", "x"], ["all"]),
        node("Neg", ["y"], ["n"]),
    ]
    tensors = [value(n, F32, (3, 4)) for n in ("x", "y")]
    outputs = [helper.make_tensor_sequence_value_info("all", F32, None), value("n", F32, None)]
    receipt = gives_elements(tmp_path, nodes, tensors, outputs)
    names = [t["name"] for t in json.loads(receipt.read_text())["output"]["tensors"]]
    assert names == ["all.0", "all.1", "all.2", "n"]


def gives_elements(folder, nodes, inputs, outputs, weights=()):
    """The outputs of the model, each element of a list as one; the receipt verifies."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    given = {
        v.name: np.arange(-6 + i, 6 + i, dtype=np.float32).reshape(3, 4)
        for i, v in enumerate(inputs)
    }
    args = []
    for name, array in given.items():
        np.save(folder / f"{name}.npy", array)
        args += ["--input", f"{name}={folder / name}.npy"]
    out, receipt = folder / "out", folder / "r.json"
    invar("infer", folder / "m.onnx", *args, "--tensors-output", out, "--receipt-path", receipt)
    invar("verify", receipt, "--model", folder / "m.onnx", *args)
    wanted = {}
    for v, result in zip(outputs, ReferenceEvaluator(model).run(None, given)):
        if isinstance(result, list):
            wanted |= {f"{v.name}.{i}": element for i, element in enumerate(result)}
        else:
            wanted[v.name] = result
    assert {p.stem for p in out.iterdir()} == set(wanted)
    for name, want in wanted.items():
        found = np.load(out / f"{name}.npy")
        assert found.shape == want.shape and found.tobytes() == want.tobytes(), name
    return receipt


def test_a_split_that_an_input_says(tmp_path):
    nodes = [node("SplitToSequence", ["x", "parts"], ["s"])]
    inputs = [value("x", F32, (3, 4)), value("parts", I64, [])]
    outputs = [helper.make_tensor_sequence_value_info("s", F32, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    refused("compile", tmp_path / "m.onnx", code=3, names=["--bind parts=FILE.npy"])
    np.save(tmp_path / "parts.npy", np.int64(2))
    np.save(tmp_path / "x.npy", np.ones((3, 4), np.float32))
    args = [a for n in ("x", "parts") for a in ("--input", f"{n}={tmp_path / n}.npy")]
    invar("infer", tmp_path / "m.onnx", *args, "--tensors-output", tmp_path / "out")
    assert [np.load(tmp_path / f"out/s.{i}.npy").shape for i in (0, 1)] == [(2, 4), (1, 4)]


@pytest.mark.parametrize("rows", [3, "n"])
@pytest.mark.parametrize("keepdims, split", [(1, "n2"), (1, ""), (0, "")])
def test_parts_of_an_input(tmp_path, rows, keepdims, split):
    """Their number follows from the file, or from the call."""
    cut = node("SplitToSequence", ["x", split] if split else ["x"], ["s"], keepdims=keepdims)
    nodes = [cut, node("SequenceLength", ["s"], ["n"]), node("SequenceAt", ["s", "n-2"], ["a"])]
    outputs = [
        helper.make_tensor_sequence_value_info("s", F32, None),
        value("n", I64, None),
        value("a", F32, None),
    ]
    weights = [numpy_helper.from_array(NUMBERS[n], n) for n in ("n2", "n-2")]
    gives_elements(tmp_path, nodes, [value("x", F32, (rows, 4))], outputs, weights)


def list_model(folder, nodes, outputs, shape=("n", 4), others=()):
    inputs = [helper.make_tensor_sequence_value_info("s", F32, shape), *others]
    weights = [numpy_helper.from_array(np.asarray(v), n) for n, v in NUMBERS.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return model


def given(folder, arrays):
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return [a for n in arrays for a in ("--input", f"{n}={folder / n}.npy")]


def test_a_list_is_an_input_for_each_element(tmp_path):
    """Elements of several sizes, as many as the call gives; its receipt is verified."""
    nodes = [
        node("ConcatFromSequence", ["s"], ["y"], axis=0),
        node("SequenceLength", ["s"], ["n"]),
        node("SequenceInsert", ["s", "y", "n0"], ["longer"]),
    ]
    outputs = [
        value("y", F32, None),
        value("n", I64, None),
        helper.make_tensor_sequence_value_info("longer", F32, None),
    ]
    list_model(tmp_path, nodes, outputs)
    for length in (1, 3):
        arrays = {f"s.{i}": np.full((i + 1, 4), i, np.float32) for i in range(length)}
        out, receipt, model = tmp_path / str(length), tmp_path / "r.json", tmp_path / "m.onnx"
        args = given(tmp_path, arrays)
        invar("infer", model, *args, "--tensors-output", out, "--receipt-path", receipt)
        assert "VERIFIED" in invar("verify", receipt, "--model", model, *args).text
        whole = np.concatenate(list(arrays.values()))
        for name, want in {"y": whole, "n": np.int64(length), "longer.0": whole}.items():
            assert np.load(out / f"{name}.npy").tobytes() == want.tobytes()
        assert len(list(out.iterdir())) == length + 3


def test_the_length_of_a_list_is_a_dimension(tmp_path):
    list_model(tmp_path, [node("SequenceLength", ["s"], ["n"])], [value("n", I64, None)])
    model, plan = tmp_path / "m.onnx", tmp_path / "p.invar"
    told = "input 's': a list of tensors; give 's.0', 's.1' and so on, or say how many by --dim"
    refused("compile", model, code=3, names=[told])
    np.save(tmp_path / "s.npy", np.zeros((1, 4), np.float32))
    refused("compile", model, "--bind", f"s={tmp_path}/s.npy", code=3, names=[told])
    refused("infer", model, "--input", f"s={tmp_path}/s.npy", code=3, names=[told])
    refused("compile", model, "--dim", f"s={2**17 + 1}", code=2, names=["list 's': 131073 tensors"])
    invar("compile", model, "--dim", "s=0", "--output", plan)
    invar("infer", plan, "--tensors-output", tmp_path / "out")
    assert np.load(tmp_path / "out/n.npy") == 0
    one = given(tmp_path, {"s.0": np.zeros((1, 4), np.float32)})
    more = given(tmp_path, {"s.2": np.zeros((1, 4), np.float32)})
    refused("infer", model, *one, *more, code=2, names=["'s.2'"])
    wrong = given(tmp_path, {"s.0": np.zeros((1, 5), np.float32)})
    refused("infer", model, *wrong, code=2, names=["'s.0'"])


@pytest.mark.parametrize("lengths", [(1, 1), (2, 2), (1, 2)])
@pytest.mark.parametrize("yes", [True, False])
def test_lists_in_branches(tmp_path, lengths, yes):
    """Of one length, or where the condition is known."""
    lists = [helper.make_tensor_sequence_value_info(f"l{b}", F32, None) for b in range(2)]
    branches = [
        helper.make_graph(
            [
                node("Neg", ["x"], [f"x{b}"]),
                node("SequenceConstruct", ["x", f"x{b}"][-n:], [f"l{b}"]),
            ],
            f"b{b}",
            [],
            [lists[b]],
        )
        for b, n in enumerate(lengths)
    ]
    nodes = [
        node("If", ["c"], ["l"], then_branch=branches[0], else_branch=branches[1]),
        node("ConcatFromSequence", ["l"], ["y"], axis=0),
    ]
    inputs = [value("x", F32, (2, 3)), value("c", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", F32, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    arrays = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "c": np.array(yes)}
    args = given(tmp_path, arrays)
    invar("infer", tmp_path / "m.onnx", *args, "--tensors-output", tmp_path / "out")
    (want,) = ReferenceEvaluator(model).run(None, arrays)
    assert np.load(tmp_path / "out/y.npy").tobytes() == want.tobytes()
    if lengths[0] != lengths[1]:
        refused("compile", tmp_path / "m.onnx", code=3)
