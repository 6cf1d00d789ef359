"""Names of dimensions that must be something (spec/onnx.md onnx.25): the model runs as if its file
said so."""

import numpy as np
import pytest
from conftest import invar, refused
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def without_source(plan):
    """A plan's text but for the lines of plan.18: the graphs have dimensions of other names."""
    lines = plan.read_text().splitlines()
    return [line for line in lines if not line.startswith(("program ", "tensor "))]


def written(folder, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, F32, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, F32, None) for n in outputs],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants],
    )
    folder.mkdir(exist_ok=True)
    (folder / "m.onnx").write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
        ).SerializeToString()
    )
    return folder / "m.onnx"


def run(plan, arrays, check=invar, **how):
    args = []
    for name, array in arrays.items():
        np.save(plan.parent / f"in.{name}.npy", array)
        args += ["--input", f"{name}={plan.parent / f'in.{name}.npy'}"]
    done = check("infer", plan, *args, **how)
    return None if how else {n: o["sha256"] for n, o in done.json()["outputs"].items()}


def numbers(*shape):
    return (np.arange(np.prod(shape)) * 37 % 101 - 50).astype(np.float32).reshape(shape) / 8


W = numbers(6, 3, 3, 3)
SETTLED = (
    "channels",
    "groups",
    "transposed",
    "squeezed",
    "grid",
)  # of the others each call is asked (onnx.24)
NETS = {
    # As exporters name the dimensions of pictures: all of them open.
    "channels": (
        [
            helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
            helper.make_node("Relu", ["c"], ["y"]),
        ],
        {"x": ["batch", "num_channels", "height", "width"]},
        {"num_channels": 3},
        {"w": W},
        {"batch": 2, "height": 5, "width": 4},
    ),
    "groups": (
        [helper.make_node("Conv", ["x", "w"], ["y"], group=2)],
        {"x": ["batch", "c", "n"]},
        {"c": 6},
        {"w": numbers(4, 3, 2)},
        {"batch": 1, "n": 5},
    ),
    "transposed": (
        [helper.make_node("ConvTranspose", ["x", "w"], ["y"])],
        {"x": ["batch", "c", "n"]},
        {"c": 4},
        {"w": numbers(4, 3, 2)},
        {"batch": 1, "n": 5},
    ),
    "features": (
        [helper.make_node("Gemm", ["x", "w"], ["y"])],
        {"x": ["n", "features"]},
        {"features": 4},
        {"w": numbers(4, 3)},
        {"n": 3},
    ),
    "through": (
        [
            helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
            helper.make_node("MatMul", ["t", "w"], ["y"]),
        ],
        {"x": ["features", "n"]},
        {"features": 4},
        {"w": numbers(4, 3)},
        {"n": 3},
    ),
    "norm": (
        [helper.make_node("LayerNormalization", ["x", "w"], ["y"])],
        {"x": ["n", "hidden"]},
        {"hidden": 4},
        {"w": numbers(4)},
        {"n": 3},
    ),
    # One settles another, in a second attempt.
    "chain": (
        [
            helper.make_node("MatMul", ["x", "z"], ["m"]),
            helper.make_node("MatMul", ["m", "w"], ["y"]),
        ],
        {"x": ["n", "k"], "z": ["j", "p"]},
        {"j": "k", "p": 4},
        {"w": numbers(4, 3)},
        {"n": 3, "k": 5},
    ),
    # A length that an exporter wrote as the constant it saw.
    "baked": (
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        {"x": ["seq", 3, 8]},
        {"seq": 5},
        {"shape": np.array([5, 6, 4])},
        {},
    ),
    "squeezed": (
        [helper.make_node("Squeeze", ["x", "axes"], ["y"])],
        {"x": ["batch", "one", 8]},
        {"one": 1},
        {"axes": np.array([1])},
        {"batch": 3},
    ),
    "grid": (
        [helper.make_node("GridSample", ["x", "g"], ["y"])],
        {"x": ["batch", 2, 4, 5], "g": ["b", 3, 3, "xy"]},
        {"b": "batch", "xy": 2},
        {},
        {"batch": 2},
    ),
    "parts": (
        [helper.make_node("Split", ["x", "sizes"], ["a", "y"], axis=1)],
        {"x": ["n", "both"]},
        {"both": 5},
        {"sizes": np.array([2, 3])},
        {"n": 3},
    ),
    "sums": (
        [helper.make_node("MatMul", ["x", "z"], ["y"])],
        {"x": ["past", "past + seq"], "z": ["total", "seq"]},
        {"total": "past + seq"},
        {},
        {"past": 2, "seq": 3},
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_a_name_that_must_be_something(tmp_path, name):
    nodes, inputs, settled, constants, sizes = NETS[name]
    said = {n: [settled.get(d, d) for d in s] for n, s in inputs.items()}
    while any(d in settled for s in said.values() for d in s):
        said = {n: [settled.get(d, d) for d in s] for n, s in said.items()}
    found = written(tmp_path / "open", nodes, inputs, ["y"], constants.items())
    want = written(tmp_path / "said", nodes, said, ["y"], constants.items())
    for path in found, want:
        invar("compile", path)
    found, want = found.parent / "plan.invar", want.parent / "plan.invar"
    program = lambda plan: plan.read_text().split("\nplaces")[0]
    if name in SETTLED:
        assert program(found) == program(want)  # one program, one digest
    value = lambda d: d if isinstance(d, int) else eval(d, {}, sizes)
    arrays = {n: numbers(*map(value, s)) for n, s in said.items()}
    assert run(found, arrays) == run(want, arrays)
    if name != "sums":
        first = next(iter(arrays))
        axis = next((i for i, d in enumerate(inputs[first]) if d in settled), None)
        if axis is not None:  # another size is named, and not computed with
            run(
                found,
                {**arrays, first: np.repeat(arrays[first], 2, axis)},
                refused,
                code=2,
                names=[first] if name in SETTLED else ["requires"],
            )


def test_what_no_size_fits(tmp_path):
    two = [helper.make_node("Conv", ["x", "v"], ["a"]), helper.make_node("Conv", ["x", "w"], ["y"])]
    refused(
        "compile",
        written(
            tmp_path / "2",
            two,
            {"x": ["n", "c", "k"]},
            ["a", "y"],
            [("v", numbers(2, 4, 3)), ("w", numbers(2, 5, 3))],
        ),
        code=3,
        names=["Conv", "channels"],
    )


def test_what_no_dimension_is(tmp_path):
    """A name that leaves another dimension none is not settled; the refusal says so."""
    grid = helper.make_node("GridSample", ["x", "g"], ["y"])
    for batch, other in ((2**40, "n*n*n"), (2, "n - 5")):
        path = written(
            tmp_path,
            [grid, helper.make_node("Relu", ["z"], ["r"])],
            {"x": [batch, 2, 4, 5], "g": ["n", 4, 5, 2], "z": [other]},
            ["y", "r"],
        )
        refused(
            "compile",
            path,
            code=3,
            names=["GridSample", "equal", f"dimension {other.replace(' ', '')} is none"],
        )
    path = written(tmp_path, [helper.make_node("Relu", ["z"], ["r"])], {"z": [2**40, 2**40]}, ["r"])
    refused("compile", path, code=3, names=['input "z"', "more elements than can be counted"])


def test_places_beside_an_axis(tmp_path):
    """Indices that are no longer than the operand, beside the axis: known when they come."""
    nodes = [
        helper.make_node("Cast", ["at"], ["i"], to=I64),
        helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1),
        helper.make_node("ScatterElements", ["x", "i", "u"], ["z"], axis=1),
    ]
    path = written(
        tmp_path, nodes, {"x": ["rows", "n"], "at": ["few", "k"], "u": ["several", "k"]}, ["y", "z"]
    )
    invar("compile", path)
    x, at, u = numbers(4, 5), np.array([[1, 4, 0], [2, 3, 1]], np.float32), numbers(2, 3)
    z = x.copy()
    np.put_along_axis(z[:2], at.astype(int), u, 1)
    (tmp_path / "out").mkdir()
    for name, v in {
        "x": x,
        "at": at,
        "u": u,
        "long": np.zeros((5, 3), np.float32),
        "short": numbers(1, 3),
    }.items():
        np.save(tmp_path / f"in.{name}.npy", v)
    given = lambda **names: [
        a for n, v in names.items() for a in ("--input", f"{n}={tmp_path}/in.{v}.npy")
    ]
    invar(
        "infer",
        tmp_path / "plan.invar",
        *given(x="x", at="at", u="u"),
        "--tensors-output",
        tmp_path / "out",
    )
    assert (
        np.load(tmp_path / "out/y.npy").tobytes()
        == np.take_along_axis(x[:2], at.astype(int), 1).tobytes()
    )
    assert np.load(tmp_path / "out/z.npy").tobytes() == z.tobytes()
    refused(
        "infer",
        tmp_path / "plan.invar",
        *given(x="x", at="at", u="short"),
        code=2,
        names=["an update for each index"],
    )  # one update for each index
    refused(
        "infer",
        tmp_path / "plan.invar",
        *given(x="x", at="long", u="long"),
        code=2,
        names=["indices no longer than the operand"],
    )


def body(nodes, inputs, outputs):
    return helper.make_graph(
        nodes,
        "b",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        [helper.make_empty_tensor_value_info(n) for n in outputs],
    )


def test_what_steps_need(tmp_path):
    """A name that the graph of a loop, and of a scan, needs to be something: of all calls."""
    step = body(
        [
            helper.make_node("Squeeze", ["z", "first"], ["s"]),
            helper.make_node("Add", ["v", "s"], ["w"]),
            helper.make_node("Identity", ["c"], ["go"]),
        ],
        [("i", I64, []), ("c", TensorProto.BOOL, []), ("v", F32, None)],
        ["go", "w"],
    )
    row = body(
        [
            helper.make_node("Unsqueeze", ["r", "first"], ["one"]),
            helper.make_node("Conv", ["one", "kernel"], ["conv"]),
        ],
        [("r", F32, None)],
        ["conv"],
    )
    nodes = [
        helper.make_node("Cast", ["k"], ["trips"], to=I64),
        helper.make_node("Loop", ["trips", "yes", "x"], ["y"], body=step),
        helper.make_node("Scan", ["p"], ["q"], body=row, num_scan_inputs=1),
    ]
    inputs = {"x": [4], "z": ["one", 4], "k": [], "p": ["rows", "channels", 5]}
    constants = [("first", np.array([0])), ("yes", np.bool_(True)), ("kernel", numbers(2, 3, 1))]
    found = written(tmp_path / "open", nodes, inputs, ["y", "q"], constants)
    want = written(
        tmp_path / "said",
        nodes,
        {**inputs, "z": [1, 4], "p": ["rows", 3, 5]},
        ["y", "q"],
        constants,
    )
    for path in found, want:
        invar("compile", path)
    found, want = found.parent / "plan.invar", want.parent / "plan.invar"
    assert without_source(found) == without_source(want)
    arrays = {"x": numbers(4), "z": numbers(1, 4), "k": np.float32(3), "p": numbers(6, 3, 5)}
    assert run(found, arrays) == run(want, arrays)
    run(found, {**arrays, "z": numbers(2, 4)}, refused, code=2, names=["z"])


def test_what_a_branch_needs(tmp_path):
    """Needed of calls that run the branch alone, in branches within it too."""
    outer, inner = (
        [
            (
                "then_branch",
                body(
                    [
                        helper.make_node("Squeeze", ["x", "first"], [f"{n}s"]),
                        helper.make_node("Exp", [f"{n}s"], [f"{n}r"]),
                    ],
                    [],
                    [f"{n}r"],
                ),
            ),
            (
                "else_branch",
                body(
                    [helper.make_node("ReduceSum", ["x", "first"], [f"{n}t"], keepdims=0)],
                    [],
                    [f"{n}t"],
                ),
            ),
        ]
        for n in "ab"
    )
    outer[1] = (
        "else_branch",
        body(
            [
                helper.make_node("If", ["d"], ["y2"], **dict(inner)),
                helper.make_node("Neg", ["y2"], ["y3"]),
            ],
            [],
            ["y3"],
        ),
    )
    nodes = [
        helper.make_node("Cast", ["f"], ["c"], to=TensorProto.BOOL),
        helper.make_node("Cast", ["g"], ["d"], to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], **dict(outer)),
    ]
    path = written(
        tmp_path, nodes, {"x": ["n", "m"], "f": [], "g": []}, ["y"], [("first", np.array([0]))]
    )
    for level in range(4):
        invar("compile", path, "--opt", level)
        few, many = numbers(1, 4), numbers(5, 4)
        give = lambda x, f, g, *how, **named: run(
            path.parent / "plan.invar",
            {"x": x, "f": np.float32(f), "g": np.float32(g)},
            *how,
            **named,
        )
        np.save(tmp_path / "exp.npy", few)
        assert give(many, 0, 0) != give(few, 0, 0)
        (first,) = give(few, 1, 0).values()
        assert give(few, 1, 1) == {"y": first} and give(few, 0, 1) != {"y": first}
        for f, g in ((1, 0), (0, 1)):
            give(many, f, g, refused, code=2, names=["if", "shape"])


def test_names_one_behind_the_other(tmp_path):
    """Each node reads the result of the one before, which has a type where its own names are
    settled."""
    nodes, inputs, said, last = [], {"x": ["n", 2, 4, 5]}, {"x": ["n", 2, 4, 5]}, "x"
    for i in range(30):
        inputs[f"g{i}"], said[f"g{i}"] = [f"b{i}", 4, 5, f"xy{i}"], ["n", 4, 5, 2]
        nodes.append(helper.make_node("GridSample", [last, f"g{i}"], [f"r{i}"]))
        last = f"r{i}"
    found, want = (
        written(tmp_path / "open", nodes, inputs, [last]),
        written(tmp_path / "said", nodes, said, [last]),
    )
    for path in found, want:
        invar("compile", path)
    found, want = found.parent / "plan.invar", want.parent / "plan.invar"
    assert without_source(found) == without_source(want)
    # A name that must be two things is what no node says before.
    inputs["g7"] = inputs["g3"] = ["same", 4, 5, 2]
    nodes.append(helper.make_node("Conv", ["g7", "w"], ["y"]))
    nodes.append(helper.make_node("GridSample", ["three", "g3"], ["z"]))
    refused(
        "compile",
        written(
            tmp_path / "two",
            nodes,
            {**inputs, "three": [3, 2, 4, 5], "x": [4, 2, 4, 5]},
            ["y", "z"],
            [("w", numbers(6, 4, 3, 1))],
        ),
        code=3,
        names=["GridSample", "same"],
    )
