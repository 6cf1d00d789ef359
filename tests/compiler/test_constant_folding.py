"""Arithmetic on weights alone is done when a model is compiled
(src/compiler/passes/weight_evaluation.cc): the program has no such nodes, and its bytes are those
of the program that computes them in every call."""

import re

import ml_dtypes
import numpy as np
import pytest
from conftest import invar, program_of
from node_models import F32, model, node, numbers, perm, words
from onnx import TensorProto, helper, load, save

AXES = ("axes", np.array([1, 2, 3]))


def standardised(w, to):
    """(w - mean) / sqrt(variance + eps) * gain, as exporters write weight standardisation."""
    return [
        node("ReduceMean", [w, "axes"], [f"{to}m"]),
        node("Sub", [w, f"{to}m"], [f"{to}d"]),
        node("Mul", [f"{to}d", f"{to}d"], [f"{to}q"]),
        node("ReduceMean", [f"{to}q", "axes"], [f"{to}v"]),
        node("Add", [f"{to}v", "eps"], [f"{to}e"]),
        node("Sqrt", [f"{to}e"], [f"{to}r"]),
        node("Div", [f"{to}d", f"{to}r"], [f"{to}n"]),
        node("Mul", [f"{to}n", "gain"], [to]),
    ]


def operations(plan):
    return re.findall(r"= (\w+)\.\d+\(", program_of(plan))


def compiled(path, tmp_path, level, *options):
    plan = tmp_path / f"{level}.invar"
    invar("compile", path, "--opt", level, "--output", plan, *options)
    return plan


def outputs(plan, tmp_path, array, *options):
    np.save(tmp_path / "x.npy", array)
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    invar("infer", plan, "--input", f"x={tmp_path}/x.npy", "--tensors-output", out, *options)
    return {p.name: p.read_bytes() for p in out.iterdir()}


def scale(a):
    return np.exp2(np.random.default_rng(7).integers(-30, 30, a.shape)).astype(np.float32) * a


@pytest.mark.parametrize("place,choices", [("model", "all"), ("beside", "none")])
def test_weights_are_standardised_once(tmp_path, place, choices):
    nodes = [
        *standardised("w0", "a"),
        node("Conv", ["x", "a"], ["h"], pads=[1, 1, 1, 1]),
        *standardised("w1", "b"),
        node("Conv", ["h", "b"], ["y"]),
    ]
    path = model(
        tmp_path / "m.onnx",
        nodes,
        [("x", F32, [1, 64, 6, 5])],
        [("y", F32)],
        [
            ("w0", scale(numbers(64, 64, 3, 3))),
            ("w1", scale(numbers(64, 64, 2, 3, seed=1))),
            ("gain", numbers(64, 1, 1, 1, seed=2)),
            AXES,
            ("eps", np.float32(1e-6)),
        ],
    )
    if place == "beside":
        save(
            load(path),
            path,
            save_as_external_data=True,
            location="weights.bin",
            size_threshold=1024,
        )
    plain, plan = (compiled(path, tmp_path, level, "--choices", choices) for level in (0, 3))
    assert operations(plan) == ["conv", "conv"] and len(operations(plain)) >= (
        6 if choices == "all" else 18
    )
    x = numbers(1, 64, 6, 5, seed=3)
    expected = outputs(plain, tmp_path, x)
    for isa in (
        "reference",
        "scalar",
        None,
    ):  # what folded on this machine's rows is what any row computes
        assert outputs(plain, tmp_path, x, *(["--isa", isa] if isa else [])) == expected
    assert outputs(plan, tmp_path, x) == expected


def test_every_kind_of_float(tmp_path):
    """Infinities, NaNs with payloads, subnormals, -0; of f32 and of bf16, whose conversion is part
    of what is computed."""
    half = words(32, (160, 200), 5).view(np.uint16)[:, ::2].copy().view(ml_dtypes.bfloat16)
    nodes = [
        node("Mul", ["w", "w"], ["p"]),
        node("Sub", ["p", "row"], ["q"]),
        node("Exp", ["q"], ["r"]),
        node("Add", ["x", "r"], ["y"]),
        node("Cast", ["half"], ["c"], to=F32),
        node("Sqrt", ["c"], ["s"]),
        node("ReduceSum", ["s", "last"], ["t"], keepdims=0),
        node("Add", ["x", "t"], ["z"]),
    ]
    path = model(
        tmp_path / "m.onnx",
        nodes,
        [("x", F32, [1, 160])],
        [("y", F32), ("z", F32)],
        [
            ("w", words(32, (160, 160))),
            ("row", words(32, (160,), 1)),
            ("last", np.array([1])),
            ("half", half),
        ],
    )
    plain, plan = compiled(path, tmp_path, 0), compiled(path, tmp_path, 2)
    assert operations(plan) == ["add", "add"]
    x = words(32, (1, 160), 2)
    assert outputs(plan, tmp_path, x) == outputs(plain, tmp_path, x)


def test_what_stays(tmp_path):
    """Moves and conversions of weights, results larger than what they are made of, and what needs
    an input."""
    cases = {
        "transpose": ([perm("w", "a", 1, 0), node("Add", ["x", "a"], ["y"])], ["transpose", "add"]),
        "cast": (
            [node("Cast", ["half"], ["a"], to=F32), node("Add", ["x", "a"], ["y"])],
            ["add"],
        ),  # read as it is stored
        "larger": (
            [
                node("Cast", ["half"], ["a"], to=F32),
                node("Neg", ["a"], ["b"]),
                node("Add", ["x", "b"], ["y"]),
            ],
            ["cast", "neg", "add"],
        ),
        "an outer product": (
            [node("Mul", ["row", "column"], ["a"]), node("Add", ["x", "a"], ["y"])],
            ["mul", "add"],
        ),
        "an input": (
            [node("Mul", ["x", "w"], ["a"]), node("Add", ["a", "w"], ["y"])],
            ["mul", "add"],
        ),
    }
    weights = [
        ("w", numbers(200, 200)),
        ("half", numbers(200, 200, seed=1).astype(ml_dtypes.bfloat16)),
        ("row", numbers(1, 200, seed=2)),
        ("column", numbers(200, 1, seed=3)),
    ]
    for name, (nodes, left) in cases.items():
        path = model(tmp_path / "m.onnx", nodes, [("x", F32, [200, 200])], [("y", F32)], weights)
        plain, plan = compiled(path, tmp_path, 0), compiled(path, tmp_path, 3)
        assert operations(plan) == left, name
        x = numbers(200, 200, seed=4)
        assert outputs(plan, tmp_path, x) == outputs(plain, tmp_path, x), name


def test_results_of_one_weight_do_not_add_up(tmp_path):
    """All results together have at most the bytes of the program's weights."""
    names = [f"a{i}" for i in range(5)]
    nodes = [node("Mul", ["w", f"s{i}"], [a]) for i, a in enumerate(names)]
    for i, a in enumerate(names):
        nodes.append(node("Mul", ["x" if i == 0 else f"b{i - 1}", a], ["y" if i == 4 else f"b{i}"]))
    path = model(
        tmp_path / "m.onnx",
        nodes,
        [("x", F32, [200, 200])],
        [("y", F32)],
        [("w", numbers(200, 200)), *((f"s{i}", np.float32(i + 2)) for i in range(5))],
    )
    plain, plan = compiled(path, tmp_path, 0), compiled(path, tmp_path, 3)
    assert len(operations(plain)) == 10 and len(operations(plan)) == 9
    assert (tmp_path / "3.invar.constants").stat().st_size <= 2 * 200 * 200 * 4
    x = numbers(200, 200, seed=4)
    assert outputs(plan, tmp_path, x) == outputs(plain, tmp_path, x)


def test_bodies_of_loops(tmp_path):
    """What a body computes of weights alone is not done again in every step."""
    body = helper.make_graph(
        [
            node("Mul", ["w", "w"], ["q"]),
            node("MatMul", ["h", "q"], ["m"]),
            node("Tanh", ["m"], ["next"]),
            node("Identity", ["go"], ["on"]),
        ],
        "b",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("h", F32, [1, 160]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", F32, [1, 160]),
        ],
    )
    nodes = [
        node("Shape", ["x"], ["n"], start=0, end=1),
        node("Squeeze", ["n"], ["trips"]),
        node("ReduceMax", ["x", "first"], ["h0"]),
        node("Loop", ["trips", "", "h0"], ["y"], body=body),
    ]
    path = model(
        tmp_path / "m.onnx",
        nodes,
        [("x", F32, ["steps", 160])],
        [("y", F32)],
        [("w", numbers(160, 160) / 5), ("first", np.array([0]))],
    )
    plain, plan = compiled(path, tmp_path, 0), compiled(path, tmp_path, 3)
    assert "mul" in operations(plain) and "mul" not in operations(plan)
    x = numbers(7, 160, seed=4)
    assert outputs(plan, tmp_path, x) == outputs(plain, tmp_path, x)
