"""Dimensions under different names broadcast in each call as ONNX says, 0 and 1 among them, or the
call is refused (spec/onnx.md onnx.24)."""

import itertools

import numpy as np
import pytest
from conftest import refused
from onnx import helper
from test_dimensions import CONSTANTS, F32, I64, compiled, numbers, run, same

node = helper.make_node
SIZES = (0, 1, 2, 3)


def agree(plan, folder, feed, want):
    """`want` computes the results by name, or raises where shapes do not broadcast."""
    try:
        wanted = want()
    except ValueError:
        run(plan, folder, feed, refused, code=2, names=["requires"])
        return
    found = run(plan, folder, feed)
    for name, array in wanted.items():
        same(found[name], np.ascontiguousarray(array))


def test_elements(tmp_path):
    plan = compiled(
        tmp_path,
        [
            node("Add", ["a", "b"], ["sum"]),
            node("Mul", ["sum", "a"], ["again"]),
            node("Sub", ["b", "again"], ["more"]),
        ],
        [("sum", F32), ("again", F32), ("more", F32)],
        inputs=[("a", ["p", 3]), ("b", ["q", 3])],
    )
    for p, q in itertools.product(SIZES, SIZES):
        a, b = numbers(p, 3), numbers(q, 3) + 1
        agree(
            plan,
            tmp_path,
            {"a": a, "b": b},
            lambda: {"sum": a + b, "again": (a + b) * a, "more": b - (a + b) * a},
        )


def test_three_names(tmp_path):
    plan = compiled(
        tmp_path,
        [
            node("Add", ["a", "b"], ["ab"]),
            node("Add", ["b", "c"], ["bc"]),
            node("Add", ["ab", "bc"], ["y"]),
            node("Greater", ["a", "b"], ["less"]),
            node("Where", ["less", "y", "c"], ["z"]),
        ],
        [("y", F32), ("z", F32)],
        inputs=[(n, [n.upper(), 2]) for n in "abc"],
    )
    for sizes in [
        (1, 2, 2),
        (2, 1, 1),
        (1, 1, 0),
        (0, 1, 1),
        (3, 3, 3),
        (0, 0, 1),
        (2, 3, 1),
        (1, 0, 2),
        (1, 1, 4),
    ]:
        a, b, c = (numbers(n, 2) + i for i, n in enumerate(sizes))
        agree(
            plan,
            tmp_path,
            {"a": a, "b": b, "c": c},
            lambda: {"y": (a + b) + (b + c), "z": np.where(a > b, (a + b) + (b + c), c)},
        )


def test_expand(tmp_path):
    """To the shape of another input, and to numbers that values decide."""
    plan = compiled(
        tmp_path,
        [
            node("Shape", ["b"], ["shape"]),
            node("Expand", ["a", "shape"], ["y"]),
            node("Add", ["y", "b"], ["sum"]),
            node("Cast", ["size"], ["n"], to=I64),
            node("Expand", ["a", "n"], ["z"]),
        ],
        [("y", F32), ("z", F32), ("sum", F32)],
        CONSTANTS,
        [("a", ["p"]), ("b", ["q"]), ("size", [1])],
    )
    for p, q in itertools.product(SIZES, SIZES):
        a, b = numbers(p), numbers(q)
        agree(
            plan,
            tmp_path,
            {"a": a, "b": b, "size": np.array([q], np.float32)},
            lambda: {n: a + 0 * b for n in "yz"} | {"sum": a + 0 * b + b},
        )


def test_expand_of_a_constant_number(tmp_path):
    plan = compiled(
        tmp_path,
        [
            node("Shape", ["b"], ["shape"]),
            node("Expand", ["three", "shape"], ["y"]),
            node("Expand", ["none", "shape"], ["z"]),
        ],
        [("y", F32), ("z", F32)],
        [("three", numbers(3)), ("none", numbers(0))],
        [("b", ["q"])],
    )
    for q in SIZES:
        agree(
            plan,
            tmp_path,
            {"b": numbers(q)},
            lambda: {"y": numbers(3) + 0 * numbers(q), "z": numbers(0) + 0 * numbers(q)},
        )


@pytest.mark.parametrize("more", [[], [1, "r"]])
def test_products(tmp_path, more):
    plan = compiled(
        tmp_path,
        [node("MatMul", ["a", "b"], ["y"]), node("Add", ["y", "a"], ["z"])],
        [("y", F32), ("z", F32)],
        inputs=[("a", ["p", 2, 3]), ("b", [*more, "q", 3, 3])],
    )
    shape = [d if d == 1 else 2 for d in more]
    for p, q in itertools.product(SIZES, SIZES):
        a, b = numbers(p, 2, 3), numbers(*shape, q, 3, 3)
        agree(plan, tmp_path, {"a": a, "b": b}, lambda: {"y": a @ b, "z": a @ b + a})


@pytest.mark.parametrize("cell", ["LSTM", "GRU", "RNN"])
def test_initial_states_of_another_name(tmp_path, cell):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[cell]
    states = ["h", "c"] if cell == "LSTM" else ["h"]
    constants = [("w", numbers(1, gates * 2, 3) / 8), ("r", numbers(1, gates * 2, 2) / 8)]
    wanted = None
    for folder, name in ("named", "rows"), ("other", "rows_of_state"):
        (tmp_path / folder).mkdir()
        plan = compiled(
            tmp_path / folder,
            [node(cell, ["x", "w", "r", "", "", *states], ["y", "last"], hidden_size=2)],
            [("y", F32), ("last", F32)],
            constants,
            [("x", [4, "rows", 3]), *((s, [1, name, 2]) for s in states)],
        )
        feed = {"x": numbers(4, 2, 3) / 8, **{s: numbers(1, 2, 2) / 8 for s in states}}
        found = run(plan, tmp_path / folder, feed)
        wanted = wanted or found
        same(found["y"], wanted["y"])
        same(found["last"], wanted["last"])
        run(plan, tmp_path / folder, {**feed, "h": numbers(1, 3, 2)}, refused, code=2)


def test_initial_states_that_cannot_fit(tmp_path):
    from conftest import invar
    from onnx import numpy_helper

    for wrong, code in (["rows", 4, "h"], 2), ([1, "rows + more", 2], 3), ([1, 5, 2], 2):
        graph = helper.make_graph(
            [node("RNN", ["x", "w", "r", "", "", "h"], ["y"], hidden_size=2)],
            "g",
            [
                helper.make_tensor_value_info(n, F32, s)
                for n, s in (
                    ("x", [4, 5 if wrong[0] == "rows" else "rows" if wrong[1] != 5 else 3, 3]),
                    ("h", wrong),
                    ("m", ["more"]),
                )
            ],
            [helper.make_tensor_value_info("y", F32, None)],
            [
                numpy_helper.from_array(numbers(1, 2, 3), "w"),
                numpy_helper.from_array(numbers(1, 2, 2), "r"),
            ],
        )
        path = tmp_path / "m.onnx"
        path.write_bytes(
            helper.make_model(
                graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
            ).SerializeToString()
        )
        refused("compile", path, code=code, names=["operand 5"]) if code == 2 else invar(
            "compile", path, code=3
        )


def test_an_expansion_of_an_expansion_asks_both(tmp_path):
    """Elements expanded to a size and from there to another, constant or open: in two steps it is
    refused where in one it would not be."""
    plan = compiled(
        tmp_path,
        [
            node("Shape", ["z"], ["s"]),
            node("Expand", ["x", "s"], ["wide"]),
            node("Expand", ["wide", "three"], ["y"]),
            node("Add", ["wide", "w"], ["sum"]),
        ],
        [("y", F32), ("sum", F32)],
        [("three", [3])],
        [("x", [1]), ("z", ["n"]), ("w", ["k"])],
    )
    for n, k in itertools.product((0, 1, 3, 4), repeat=2):
        x, w = numbers(1) + 1, numbers(k)
        agree(
            plan,
            tmp_path,
            {"x": x, "z": numbers(n), "w": w},
            lambda: {
                "y": np.broadcast_to(np.broadcast_to(x, n), np.broadcast_shapes((n,), (3,))),
                "sum": np.broadcast_to(x, n) + w,
            },
        )
