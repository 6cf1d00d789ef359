"""Models of which no plan serves all calls are compiled when a call comes, for its sizes and the
values of few integers (spec/onnx.md onnx.40). Bytes are those of a plan with the sizes fixed, the
program is that of the file, and a stranger verifies the receipt."""

import json

import numpy as np
import pytest
from conftest import cpu_isas, invar, refused
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
node, value = helper.make_node, helper.make_tensor_value_info


def ramp(*shape):
    return (np.arange(np.prod(shape)) * 7 % 11 - 5).astype(np.float32).reshape(shape)


def save(folder, nodes, inputs, outputs, weights=None, body=()):
    weights = [numpy_helper.from_array(np.asarray(v), n) for n, v in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return model


def pyramid(folder):
    """A picture's half, doubled again, and the picture: they fit where both sizes are even."""
    return save(
        folder,
        [
            node("Conv", ["x", "w"], ["half"], strides=[2, 2], auto_pad="SAME_UPPER", name="down"),
            node("Resize", ["half", "", "twice"], ["whole"], mode="nearest", name="up"),
            node("Concat", ["x", "whole"], ["both"], axis=1, name="join"),
            node("Add", ["both", "both"], ["y"]),
        ],
        [value("x", F32, ["n", 1, "h", "w"])],
        [value("y", F32, None)],
        {"w": ramp(1, 1, 3, 3), "twice": np.array([1, 1, 2, 2], np.float32)},
    )


def two_rates(folder):
    """As a voice detector: the rate chooses a branch when the program runs, the other branch's
    numbers do not fit these sizes, and results differ in rank."""

    def branch(name, window, axes):
        nodes = [
            node("Reshape", ["x", f"{name}_shape"], [f"{name}_rows"]),
            node("MatMul", [f"{name}_rows", f"{name}_w"], [f"{name}_v"], name=f"{name}_matmul"),
        ]
        weights = {f"{name}_shape": np.array([-1, 2, window]), f"{name}_w": ramp(window, 3)}
        last = f"{name}_v"
        if axes:
            nodes.append(node("ReduceSum", [last, f"{name}_axes"], [f"{name}_sum"], keepdims=0))
            weights[f"{name}_axes"] = np.array(axes)
            last = f"{name}_sum"
        return helper.make_graph(
            nodes,
            name,
            [],
            [value(last, F32, None)],
            [numpy_helper.from_array(v, n) for n, v in weights.items()],
        )

    return save(
        folder,
        [
            node("Equal", ["rate", "fast"], ["is_fast"]),
            node(
                "If",
                ["is_fast"],
                ["y"],
                name="rates",
                then_branch=branch("f", 4, []),
                else_branch=branch("s", 3, [1]),
            ),
        ],
        [value("x", F32, ["n", "samples"]), value("rate", I64, [])],
        [value("y", F32, None)],
        {"fast": np.array(16000)},
    )


def call(folder, inputs, *options, check=invar, **how):
    arguments = []
    for name, array in inputs.items():
        np.save(folder / f"in.{name}.npy", array)
        arguments += ["--input", f"{name}={folder / f'in.{name}.npy'}"]
    return check("infer", folder / "m.onnx", *arguments, *options, **how), arguments


def outputs_of(folder, model, inputs):
    """Of a call that every way gives the same bytes, which are ONNX's reference's."""
    out = folder / "out"
    done, arguments = call(
        folder, inputs, "--tensors-output", out, "--receipt-path", folder / "r.json"
    )
    for options in (["--threads", "1"], *(["--isa", isa] for isa in cpu_isas())):
        again, _ = call(folder, inputs, *options)
        assert again.json()["outputs"] == done.json()["outputs"]
    for name, want in zip(
        (o.name for o in model.graph.output), ReferenceEvaluator(model).run(None, inputs)
    ):
        found = np.load(out / f"{name}.npy")
        assert found.shape == want.shape and found.tobytes() == want.tobytes(), name
    invar("verify", folder / "r.json", "--model", folder / "m.onnx", *arguments)
    return json.loads((folder / "r.json").read_text())


def test_a_pyramid_has_the_sizes_of_the_call(tmp_path):
    model = pyramid(tmp_path)
    assert 'node "down"' in refused("compile", tmp_path / "m.onnx", code=3).text
    receipts = [
        outputs_of(tmp_path, model, {"x": ramp(n, 1, h, w)})
        for n, h, w in ((1, 4, 6), (2, 8, 2), (1, 4, 6))
    ]
    assert len({r["program"]["digest"] for r in receipts}) == 1
    # A plan for these sizes has the same bytes, and is another program.
    fixed = [f"--dim={name}={size}" for name, size in (("n", 1), ("h", 4), ("w", 6))]
    invar("compile", tmp_path / "m.onnx", *fixed)
    planned = invar(
        "infer", tmp_path / "plan.invar", "--input", f"x={tmp_path / 'in.x.npy'}"
    ).json()["outputs"]
    assert planned == call(tmp_path, {"x": ramp(1, 1, 4, 6)})[0].json()["outputs"]


def test_sizes_that_do_not_fit_are_named(tmp_path):
    pyramid(tmp_path)
    done, _ = call(tmp_path, {"x": ramp(1, 1, 5, 4)}, check=refused)
    assert (
        'node "join"' in done.text and "[1, 1, 5, 4]" in done.text and "[1, 1, 6, 4]" in done.text
    )
    for given, text in (
        (
            {"x": ramp(1, 2, 4, 4)},
            "input 'x': it is f32 [1, 2, 4, 4], the model takes f32 [n, 1, h, w]",
        ),
        ({"x": ramp(1, 4, 4)}, "input 'x': it is f32 [1, 4, 4], the model takes f32 [n, 1, h, w]"),
        (
            {"x": ramp(1, 1, 4, 4).astype(np.float64)},
            "input 'x': it is f64 [1, 1, 4, 4], the model",
        ),
        ({"z": ramp(1, 1, 4, 4)}, "input 'x' is missing"),
        ({"x": ramp(1, 1, 4, 4), "z": ramp(1)}, "input 'z': the model has none of this name"),
    ):
        assert text in call(tmp_path, given, check=refused)[0].text


@pytest.mark.parametrize("rate, samples", [(16000, 16), (8000, 18)])
def test_a_rate_chooses_the_branch(tmp_path, rate, samples):
    model = two_rates(tmp_path)
    refused("compile", tmp_path / "m.onnx", code=3)
    outputs_of(tmp_path, model, {"x": ramp(1, samples), "rate": np.array(rate)})


def test_another_rate_is_another_call(tmp_path):
    """Values in a plan are part of what keeps it: the cache gives no plan of another rate."""
    two_rates(tmp_path)
    x = ramp(1, 24)  # fits both
    shapes = [
        call(tmp_path, {"x": x, "rate": np.array(rate)})[0].json()["outputs"]["y"]["shape"]
        for rate in (16000, 8000, 16000)
    ]
    assert shapes == [[3, 2, 3], [4, 3], [3, 2, 3]]


def test_an_input_without_a_shape(tmp_path):
    model = save(
        tmp_path,
        [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        [value("x", F32, None)],
        [value("y", F32, None)],
        {"axes": np.array([-1])},
    )
    for shape in ((3,), (2, 3), (2, 2, 2, 3)):
        outputs_of(tmp_path, model, {"x": ramp(*shape)})


def test_nine_dimensions_between_reshapes(tmp_path):
    """As windows of pictures and volumes are cut: most stay side by side, or have size 1."""
    x = ramp(2, 4, 9, 4, 2)
    split, joined = np.array([2, 2, 2, 3, 3, 2, 2, 1, 2]), np.array([-1, 4])
    for perm in ([0, 2, 4, 6, 8, 1, 3, 5, 7], [8, 7, 6, 0, 1, 2, 3, 4, 5], list(range(9))):
        model = save(
            tmp_path,
            [
                node("Reshape", ["x", "split"], ["a"]),
                node("Transpose", ["a"], ["b"], perm=perm),
                node("Reshape", ["b", "joined"], ["y"]),
            ],
            [value("x", F32, [2, 4, "h", 4, 2])],
            [value("y", F32, None)],
            {"split": split, "joined": joined},
        )
        outputs_of(tmp_path, model, {"x": x})


def test_states_of_the_call_fit_or_are_named(tmp_path):
    weights = {"w": ramp(1, 12, 2) / 8, "r": ramp(1, 12, 3) / 8}
    save(
        tmp_path,
        [node("LSTM", ["x", "w", "r", "", "", "h", "c"], ["y"], hidden_size=3, name="memory")],
        [
            value("x", F32, ["time", "batch", 2]),
            value("h", F32, [1, "rows", 3]),
            value("c", F32, [1, "columns", 3]),
        ],
        [value("y", F32, None)],
        weights,
    )
    state, x = ramp(1, 2, 3), ramp(4, 2, 2)
    found = call(tmp_path, {"x": x, "h": state, "c": state})[0].json()["outputs"]["y"]
    assert found["shape"] == [4, 1, 2, 3]
    text = call(tmp_path, {"x": x, "h": ramp(1, 3, 3), "c": state}, check=refused)[0].text
    assert 'node "memory"' in text and "[1, 3, 3]" in text and "[2, 3]" in text


def test_a_condition_of_either_rank(tmp_path):
    """As Paddle's exporter ends a loop: one branch gives a boolean, the other a list of one."""
    B = TensorProto.BOOL
    more = helper.make_graph(
        [node("Less", ["i", "stop"], ["more"])], "more", [], [value("more", B, [])]
    )
    some = helper.make_graph(
        [node("Unsqueeze", ["going", "first"], ["some"])], "some", [], [value("some", B, [1])]
    )
    body = helper.make_graph(
        [
            node("If", ["going"], ["on"], then_branch=more, else_branch=some),
            node("Add", ["v", "v"], ["next"]),
        ],
        "body",
        [value("i", I64, []), value("going", B, []), value("v", F32, [2])],
        [value("on", B, []), value("next", F32, [2])],
    )
    save(
        tmp_path,
        [node("Loop", ["", "start", "x"], ["y"], body=body)],
        [value("x", F32, [2]), value("start", B, []), value("stop", I64, [])],
        [value("y", F32, None)],
        {"first": np.array([0])},
    )
    inputs = {"x": ramp(2), "start": np.array(True), "stop": np.array(2)}
    call(tmp_path, inputs, "--tensors-output", tmp_path / "out")
    assert (np.load(tmp_path / "out/y.npy") == ramp(2) * 8).all()


def test_a_call_for_the_branch_that_fits_nothing(tmp_path):
    """Where branches differ in rank, and the model compiles with one."""
    flat = helper.make_graph([node("Neg", ["x"], ["a"])], "flat", [], [value("a", F32, None)])
    cube = helper.make_graph(
        [node("Unsqueeze", ["x", "first"], ["b"])], "cube", [], [value("b", F32, None)]
    )
    save(
        tmp_path,
        [
            node("If", ["c"], ["t"], name="choice", then_branch=flat, else_branch=cube),
            node("Transpose", ["t"], ["y"], perm=[1, 0]),
        ],
        [value("x", F32, ["n", 3]), value("c", TensorProto.BOOL, [])],
        [value("y", F32, None)],
        {"first": np.array([0])},
    )
    x = ramp(2, 3)
    call(tmp_path, {"x": x, "c": np.array(True)}, "--tensors-output", tmp_path / "out")
    assert (np.load(tmp_path / "out/y.npy") == -x.T).all()
    text = call(tmp_path, {"x": x, "c": np.array(False)}, check=refused)[0].text
    assert 'If (node "choice")' in text and "another rank" in text and "gather" not in text


def test_a_plan_for_a_call_is_kept(tmp_path):
    pyramid(tmp_path)
    first, _ = call(tmp_path, {"x": ramp(1, 1, 2, 4)})
    lines = ("--verbose", "--progress", "lines")
    second, _ = call(tmp_path, {"x": ramp(1, 1, 2, 4)}, *lines)
    other, _ = call(tmp_path, {"x": ramp(1, 1, 4, 2)}, *lines)
    assert "ready in" in second.text and "ready in" not in other.text
    assert first.json()["outputs"] == second.json()["outputs"]


def test_a_receipt_is_of_its_sizes(tmp_path):
    pyramid(tmp_path)
    call(tmp_path, {"x": ramp(1, 1, 4, 4)}, "--receipt-path", tmp_path / "r.json")
    np.save(tmp_path / "in.x.npy", ramp(1, 1, 2, 8))
    text = refused(
        "verify", tmp_path / "r.json", "--model", tmp_path / "m.onnx",
        "--input", f"x={tmp_path / 'in.x.npy'}", code=1,
    ).text  # fmt: skip
    assert "input" in text and "NOT VERIFIED" in text


def test_tokens_want_a_plan(tmp_path):
    pyramid(tmp_path)
    assert "--input" in refused("infer", tmp_path / "m.onnx", "--tokens", "1").text


def test_the_package_compiles_for_calls(tmp_path):
    import invar as package

    pyramid(tmp_path)
    with pytest.raises(package.NotCovered):
        package.compile(tmp_path / "m.onnx")
    program = package.compile(tmp_path / "m.onnx", dims="call")
    assert [t.shape for t in program.inputs] == [("n", 1, "h", "w")]
    with pytest.raises(package.BadInput, match="no call yet"):
        program.digest  # noqa: B018
    for shape in ((1, 1, 4, 6), (2, 1, 2, 2), (1, 1, 4, 6)):
        call(tmp_path, {"x": ramp(*shape)}, "--tensors-output", tmp_path / "out")
        found = program.run(ramp(*shape))["y"]
        assert found.tobytes() == np.load(tmp_path / "out/y.npy").tobytes()
    assert len(program.digest) == 64
    with pytest.raises(package.BadInput, match="join"):
        program.run(ramp(1, 1, 5, 4))
    two_rates(tmp_path)
    program = package.compile(tmp_path / "m.onnx", dims="call")
    for rate, shape in ((16000, (3, 2, 3)), (8000, (4, 3)), (16000, (3, 2, 3))):
        assert program.run(x=ramp(1, 24), rate=np.array(rate))["y"].shape == shape
