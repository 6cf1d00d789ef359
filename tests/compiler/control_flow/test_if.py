"""If: the branch that a condition chooses, to the last byte."""

import numpy as np
import pytest
from conftest import invar, refused
from control_flow_graphs import BOOL, X, graph, info, model, run
from onnx import helper


@pytest.mark.parametrize("cond", [True, False])
def test_if_decided_at_run_time(tmp_path, cond):
    branches = [graph([helper.make_node(op, ["x"], ["t"])], outputs=["t"]) for op in ("Exp", "Neg")]
    top = graph(
        [
            helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
            helper.make_node("Exp", ["x"], ["e"]),
        ],
        [info("c", BOOL, []), info("x")],
        [info("y"), info("e")],
    )
    y, e = run(tmp_path, top, {"c": np.array(cond), "x": X})
    assert y.tobytes() == (e if cond else -X).tobytes()


def test_branches_that_differ(tmp_path):
    top = graph(
        [
            helper.make_node(
                "If",
                ["c"],
                ["y"],
                then_branch=graph([helper.make_node("Neg", ["x"], ["t"])], outputs=["t"]),
                else_branch=graph(
                    [helper.make_node("Flatten", ["x"], ["t"], axis=0)], outputs=["t"]
                ),
            )
        ],
        [info("c", BOOL, []), info("x")],
        [info("y", shape=None)],
    )
    path = model(tmp_path / "m.onnx", top)
    refused(
        "compile",
        path,
        code=3,
        names=["If", "f32 [3]", "f32 [1, 3]", "--bind c=FILE.npy"],
    )
    np.save(tmp_path / "c.npy", np.array(False))
    invar("compile", path, "--bind", f"c={tmp_path / 'c.npy'}")


@pytest.mark.parametrize("good", ["then_branch", "else_branch"])
def test_branches_of_which_one_alone_compiles(tmp_path, good):
    """skl2onnx writes KNNImputer so: with the other branch the product does not fit."""
    other = {"then_branch": "else_branch", "else_branch": "then_branch"}[good]
    reshape = helper.make_node("Flatten", ["x"], ["t"], axis=0)
    branches = {
        good: graph([reshape], outputs=["t"]),
        other: graph([helper.make_node("Neg", ["x"], ["t"])], outputs=["t"]),
    }
    nodes = [
        helper.make_node("If", ["c"], ["r"], name="choose", **branches),
        helper.make_node("Transpose", ["r"], ["y"], perm=[1, 0]),
    ]
    top = graph(nodes, [info("c", BOOL, []), info("x")], [info("y", shape=None)])
    (y,) = run(tmp_path, top, {"c": np.array(good == "then_branch"), "x": X})
    assert y.tobytes() == X.tobytes() and y.shape == (3, 1)
    args = [a for n in ("c", "x") for a in ("--input", f"{n}={tmp_path / n}.npy")]
    np.save(tmp_path / "c.npy", np.array(good != "then_branch")), np.save(tmp_path / "x.npy", X)
    refused("infer", tmp_path / "plan.invar", *args, names=['If (node "choose")', "another rank"])


def test_one_branch_is_computed(tmp_path):
    """The other one could not be, and has other dimensions."""
    top = graph(
        [
            helper.make_node("Size", ["x"], ["n"]),
            helper.make_node("Greater", ["n", "four"], ["many"]),
            helper.make_node(
                "If",
                ["many"],
                ["y"],
                then_branch=graph(
                    [helper.make_node("Gather", ["x", "places"], ["a"])], outputs=["a"]
                ),
                else_branch=graph(
                    [helper.make_node("Concat", ["x", "x"], ["b"], axis=0)], outputs=["b"]
                ),
            ),
            helper.make_node("Neg", ["y"], ["z"]),
        ],
        [info("x", shape=["n"])],
        [info("z", shape=None)],
        [("four", np.int64(4)), ("places", np.array([4, 0]))],
    )
    for n in (7, 5, 3, 0):
        x = np.arange(n, dtype=np.float32) + 1
        (z,) = run(tmp_path, top, {"x": x})
        assert z.tolist() == (-x[[4, 0]] if n > 4 else -np.tile(x, 2)).tolist()


@pytest.mark.parametrize(
    "op,operands,fits",
    [
        ("Slice", ["x", "zero", "two"], lambda x: x[:2]),
        ("Reshape", ["x", "two"], lambda x: x),
        ("Add", ["x", "pair"], lambda x: x + 1),
    ],
)
def test_a_branch_that_a_condition_guards(tmp_path, op, operands, fits):
    """What can fail for some sizes is not computed beside the other branch."""
    top = graph(
        [
            helper.make_node("Size", ["x"], ["n"]),
            helper.make_node("Equal", ["n", "number"], ["fits"]),
            helper.make_node(
                "If",
                ["fits"],
                ["y"],
                then_branch=graph([helper.make_node(op, operands, ["a"])], outputs=["a"]),
                else_branch=graph([helper.make_node("Neg", ["pair"], ["b"])], outputs=["b"]),
            ),
        ],
        [info("x", shape=["n"])],
        [info("y", shape=[2])],
        [
            ("number", np.int64(2)),
            ("zero", np.array([0])),
            ("two", np.array([2])),
            ("pair", np.ones(2, np.float32)),
        ],
    )
    for x in (X[:2], X[:1], X[:0]):
        (y,) = run(tmp_path, top, {"x": x})
        assert y.tolist() == (fits(x) if len(x) == 2 else -np.ones(2)).tolist()
