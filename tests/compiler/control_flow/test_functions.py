"""Functions of ONNX, and what of control flow is refused by name."""

from random import Random

import numpy as np
import pytest
from conftest import execute, refused
from control_flow_graphs import BOOL, I64, X, counting, graph, info, loop, model, run
from onnx import helper


def test_functions_take_precedence(tmp_path):
    add = helper.make_function(
        "",
        "Add",
        ["a", "b"],
        ["c"],
        [helper.make_node("Mul", ["a", "b"], ["c"])],
        [helper.make_opsetid("", 23)],
    )
    (y,) = run(
        tmp_path,
        graph([helper.make_node("Add", ["x", "x"], ["y"])], [info("x")], [info("y")]),
        {"x": X},
        functions=[add],
    )
    assert y.tobytes() == (X * X).tobytes()


def calls():
    """A function whose graphs capture its inputs, called within a graph."""
    branches = {
        f"{b}_branch": graph([helper.make_node(op, ["a"], ["r"])], outputs=["r"])
        for b, op in (("then", "Neg"), ("else", "Abs"))
    }
    f = helper.make_function(
        "own",
        "Choose",
        ["c", "a"],
        ["y"],
        [helper.make_node("If", ["c"], ["y"], **branches)],
        [helper.make_opsetid("", 23)],
    )
    body = graph(
        [
            helper.make_node("Choose", ["flag", "v"], ["next"], domain="own"),
            helper.make_node("Identity", ["c"], ["go"]),
        ],
        [info("i", I64, []), info("c", BOOL, []), info("v")],
        ["go", "next"],
    )
    top = graph(
        [helper.make_node("Loop", ["n", "yes", "x"], ["y"], body=body)],
        [info("x"), info("flag", BOOL, [])],
        [info("y")],
        [("n", np.int64(3)), ("yes", np.bool_(True))],
    )
    return top, [f]


def test_graphs_of_calls(tmp_path):
    top, functions = calls()
    for flag, expected in ((True, -X), (False, abs(X))):
        (y,) = run(tmp_path, top, {"x": X, "flag": np.array(flag)}, functions=functions)
        assert y.tobytes() == expected.tobytes()


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "top,code,names",
    [
        (
            loop("", "yes", "x", body=counting(outputs=("go", "next"))),
            3,
            ["again", "nothing ends it"],
        ),
        (
            loop(
                "n",
                "yes",
                "x",
                n=2**63 - 1,
                body=counting(
                    [
                        helper.make_node("Identity", ["c"], ["d"]),
                        helper.make_node("Identity", ["d"], ["go"]),
                    ],
                    ("go", "next"),
                ),
            ),
            3,
            ["again", "nothing ends it"],
        ),
        (
            loop(
                "",
                "",
                "x",
                body=counting([helper.make_node("Identity", ["yes"], ["go"])], ("go", "next")),
            ),
            3,
            ["again", "nothing ends it"],
        ),
        (
            loop(
                "k",
                "yes",
                "x",
                body=counting(
                    [helper.make_node("Flatten", ["v"], ["flat"], axis=0)], ("c", "flat")
                ),
            ),
            3,
            ["again", "before and after a step"],
        ),
        (
            loop(
                "k",
                "yes",
                "x",
                body=counting([helper.make_node("Cast", ["v"], ["whole"], to=I64)], ("c", "whole")),
            ),
            3,
            ["again", "before and after a step"],
        ),
        (
            loop(
                "k",
                "yes",
                "x",
                body=counting(
                    [
                        helper.make_node("Concat", ["c3", "c3"], ["c2"], axis=0),
                        helper.make_node("Unsqueeze", ["c", "zero"], ["c3"]),
                    ],
                    ("c2", "next"),
                ),
            ),
            2,
            ["zero"],
        ),
        (
            loop("k", "yes", "x", body=counting(outputs=("next", "next"))),
            2,
            ["again", "condition", "f32"],
        ),
        (
            loop(
                "n",
                "",
                "x",
                body=counting([helper.make_node("Identity", ["q"], ["go"])], ("go", "next")),
            ),
            3,
            ["again", "condition"],
        ),
        (loop("n", "yes", "x", body=counting(outputs=("go",))), 2, ["again", "results"]),
        (
            loop("n", "yes", body=counting(outputs=("go", "next")), outputs=("y",)),
            2,
            ["again", "takes 3 inputs instead of 2"],
        ),
        (
            loop(
                "n",
                "yes",
                "k",
                body=counting([helper.make_node("NoSuch", ["v"], ["go"])], ("go", "next")),
            ),
            3,
            ["again", "NoSuch"],
        ),
    ],
    ids=[
        "for ever",
        "2^63 - 1 steps",
        "without a condition",
        "rank",
        "element type",
        "name",
        "no condition",
        "ignored condition",
        "results",
        "inputs",
        "operator",
    ],
)
def test_refusals(tmp_path, top, code, names):
    refused("compile", model(tmp_path / "m.onnx", top), code=code, names=names)


@pytest.mark.parametrize("damage", range(16))
def test_flipped_bytes_never_crash(tmp_path, damage):
    top, functions = calls()
    path = model(tmp_path / "m.onnx", top, functions=functions)
    whole, random = path.read_bytes(), Random(damage)
    for _ in range(10):
        data = bytearray(whole)
        for _ in range(1 + damage % 4):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data)
        done = execute(["compile", path], timeout=60)
        assert done.code in (0, 2, 3) and len(done.errors) == (done.code != 0), done.text
