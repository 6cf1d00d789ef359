"""Control flow and functions of ONNX: what they compute, to the last byte, and what is refused by
name."""

from random import Random

import numpy as np
import pytest
from conftest import execute, invar, refused
from onnx import TensorProto, helper, numpy_helper, save

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, kind=F32, shape=(3,)):
    return helper.make_tensor_value_info(name, kind, shape)


def graph(nodes, inputs=(), outputs=(), weights=()):
    named = [
        v if not isinstance(v, str) else helper.make_empty_tensor_value_info(v) for v in outputs
    ]
    return helper.make_graph(
        nodes,
        "g",
        list(inputs),
        named,
        [numpy_helper.from_array(np.asarray(v), n) for n, v in weights],
    )


def model(path, top, functions=(), opset=23):
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    save(helper.make_model(top, opset_imports=sets, ir_version=11, functions=functions), path)
    return path


def run(folder, top, given, **how):
    path = model(folder / "m.onnx", top, **how)
    invar("compile", path)
    args = ["infer", folder / "plan.invar", "--tensors-output", folder]
    for name, value in given.items():
        np.save(folder / f"in.{name}.npy", value)
        args += ["--input", f"{name}={folder / f'in.{name}.npy'}"]
    invar(*args)
    return [np.load(folder / f"{v.name}.npy") for v in top.output]


X = np.array([1.5, -2, 3], np.float32)


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
    refused("infer", tmp_path / "plan.invar", *args, names=['If (node "choose")', "index 1"])


def counting(extra=(), outputs=("go", "next", "next")):
    """A body that doubles what it carries; extra nodes compute its condition."""
    return graph(
        [
            helper.make_node("Add", ["v", "v"], ["next"]),
            *(extra or [helper.make_node("Identity", ["c"], ["go"])]),
        ],
        [info("i", I64, []), info("c", BOOL, []), info("v", shape=None)],
        list(outputs),
    )


def test_loop_is_unrolled(tmp_path):
    top = graph(
        [
            helper.make_node(
                "Loop",
                ["n", "", "x"],
                ["y", "all"],
                body=counting([helper.make_node("Identity", ["yes"], ["go"])]),
            )
        ],
        [info("x")],
        [info("y"), info("all", shape=None)],
        [("n", np.int64(5)), ("yes", np.bool_(True))],
    )
    y, rows = run(tmp_path, top, {"x": X})
    assert (
        y.tobytes() == (32 * X).tobytes()
        and rows.tobytes() == np.stack([X * 2**k for k in range(1, 6)]).tobytes()
    )


@pytest.mark.parametrize("go,steps", [(True, 5), (False, 1)])
def test_loop_with_a_condition_that_no_step_changes(tmp_path, go, steps):
    top = graph(
        [
            helper.make_node(
                "Loop",
                ["n", "yes", "x"],
                ["y", "all"],
                body=counting([helper.make_node("Identity", ["on"], ["go"])]),
            )
        ],
        [info("x"), info("n", I64, [])],
        [info("y"), info("all", shape=None)],
        [("yes", np.bool_(True)), ("on", np.bool_(go))],
    )
    y, rows = run(tmp_path, top, {"x": X, "n": np.array(5)})
    assert y.tobytes() == (2**steps * X).tobytes() and rows.shape == (steps, 3)
    assert "loop.1" in (tmp_path / "plan.invar").read_text()


def test_loop_ends_by_a_condition_known_when_compiling(tmp_path):
    top = graph(
        [
            helper.make_node(
                "Loop",
                ["", "yes", "x"],
                ["y", "all"],
                body=counting([helper.make_node("Less", ["i", "last"], ["go"])]),
            )
        ],
        [info("x")],
        [info("y"), info("all", shape=None)],
        [("last", np.int64(3)), ("yes", np.bool_(True))],
    )
    y, rows = run(tmp_path, top, {"x": X})
    assert y.tobytes() == (16 * X).tobytes() and rows.shape == (4, 3)


@pytest.mark.parametrize("limit,times", [(1.0, 1), (20.0, 3), (1e9, 6)])
@pytest.mark.parametrize("trips", ["n", "k", ""])
def test_loop_ends_by_a_condition_decided_at_run_time(tmp_path, limit, times, trips):
    """By its condition, or by a trip count of 6 that is a constant or an input, or not there."""
    body = counting(
        [
            helper.make_node("ReduceMax", ["next"], ["m"], keepdims=0),
            helper.make_node("Less", ["m", "limit"], ["go"]),
        ]
    )
    top = graph(
        [helper.make_node("Loop", [trips, "yes", "x"], ["y", "all"], body=body)],
        [info("x"), info("limit", shape=[]), info("k", I64, [])],
        [info("y"), info("all", shape=None)],
        [("n", np.int64(6)), ("yes", np.bool_(True))],
    )
    limit, times = (limit, times) if trips or times < 6 else (150.0, 6)
    y, rows = run(tmp_path, top, {"x": X, "limit": np.float32(limit), "k": np.array(6)})
    assert y.tobytes() == (X * 2**times).tobytes()
    assert rows.tobytes() == np.stack([X * 2**k for k in range(1, times + 1)]).tobytes()


def grow():
    """A body that appends twice the sum of a list and the step to it, and gives the sum."""
    return graph(
        [
            helper.make_node("ReduceSum", ["v"], ["sum"], keepdims=1),
            helper.make_node("Cast", ["i"], ["step"], to=F32),
            helper.make_node("Add", ["sum", "step"], ["more"]),
            helper.make_node("Add", ["more", "more"], ["twice"]),
            helper.make_node("Concat", ["v", "twice"], ["next"], axis=0),
            helper.make_node("ReduceSum", ["next"], ["total"], keepdims=0),
            helper.make_node("Less", ["total", "limit"], ["go"]),
        ],
        [info("i", I64, []), info("c", BOOL, []), info("v", shape=None)],
        ["go", "next", "total"],
    )


@pytest.mark.parametrize(
    "given,trips,limit",
    [([1, 2], 9, 1e9), ([], 3, 1e9), ([1, 2], 9, 500), ([4], 0, 1e9), ([4], -3, 1e9)],
)
def test_loop_carries_a_list_that_grows(tmp_path, given, trips, limit):
    top = graph(
        [
            helper.make_node("Loop", ["k", "yes", "list"], ["y", "all"], body=grow()),
            helper.make_node("Neg", ["y"], ["z"]),
            helper.make_node("Shape", ["y"], ["s"]),
        ],
        [info("list", shape=["n"]), info("limit", shape=[]), info("k", I64, [])],
        [info("z", shape=None), info("all", shape=None), info("s", I64, None)],
        [("yes", np.bool_(True))],
    )
    found = run(
        tmp_path,
        top,
        {"list": np.array(given, np.float32), "limit": np.float32(limit), "k": np.array(trips)},
    )
    values, totals = list(map(float, given)), []
    while len(totals) < trips and (not totals or totals[-1] < limit):
        values.append(2 * (sum(values) + len(totals)))
        totals.append(sum(values))
    for tensor, expected in zip(found, ([-v for v in values], totals, [len(values)])):
        assert tensor.tolist() == expected


def test_loops_of_rows_whose_number_values_decide(tmp_path):
    """For each place that is not 0, a row from there to the end is summed: sizes within a step,
    steps by a size, a loop in a loop."""
    inner = graph(
        [
            helper.make_node("Gather", ["tail", "j"], ["one"]),
            helper.make_node("Add", ["acc", "one"], ["acc2"]),
            helper.make_node("Identity", ["d"], ["go2"]),
        ],
        [info("j", I64, []), info("d", BOOL, []), info("acc", shape=[])],
        ["go2", "acc2"],
    )
    body = graph(
        [
            helper.make_node("Gather", ["flat", "i"], ["place"]),
            helper.make_node("Unsqueeze", ["place", "axis"], ["from"]),
            helper.make_node("Slice", ["x", "from", "last"], ["tail"]),
            helper.make_node("Size", ["tail"], ["size"]),
            helper.make_node("Loop", ["size", "yes", "none"], ["total"], body=inner),
            helper.make_node("Identity", ["c"], ["go"]),
        ],
        [info("i", I64, []), info("c", BOOL, [])],
        ["go", "total"],
    )
    top = graph(
        [
            helper.make_node("NonZero", ["x"], ["places"]),
            helper.make_node("Squeeze", ["places", "axis"], ["flat"]),
            helper.make_node("Size", ["flat"], ["count"]),
            helper.make_node("Loop", ["count", "yes"], ["y"], body=body),
        ],
        [info("x", shape=["n"])],
        [info("y", shape=None)],
        [
            ("yes", np.bool_(True)),
            ("axis", np.array([0])),
            ("last", np.array([2**40])),
            ("none", np.float32(0)),
        ],
    )
    for x in ([0, 1, 2, 0, 4], [0, 0], [], [3]):
        x = np.array(x, np.float32)
        (y,) = run(tmp_path, top, {"x": x})
        assert y.tolist() == [float(x[i:].sum()) for i in np.flatnonzero(x)]


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


@pytest.mark.parametrize("before", [True, False])
def test_bounds_of_what_steps_change_are_clamped(tmp_path, before):
    """Whatever else the model decides by values, before the loop or behind it."""
    body = graph(
        [
            helper.make_node("Slice", ["v", "one", "four"], ["next"]),
            helper.make_node("Identity", ["c"], ["go"]),
        ],
        [info("i", I64, []), info("c", BOOL, []), info("v", shape=None)],
        ["go", "next"],
    )
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Loop", ["k", "yes", "x"], ["y"], body=body),
    ]
    top = graph(
        nodes if before else nodes[::-1],
        [info("x", shape=["n"]), info("k", I64, [])],
        [info("y", shape=None), info("places", I64, None)],
        [("yes", np.bool_(True)), ("one", np.array([1])), ("four", np.array([4]))],
    )
    x = np.arange(5, dtype=np.float32)
    for steps in range(5):
        y, _ = run(tmp_path, top, {"x": x, "k": np.array(steps)})
        wanted = x
        for _ in range(steps):
            wanted = wanted[1:4]
        assert y.tolist() == wanted.tolist()


@pytest.mark.parametrize("n", [0, -1])
def test_loop_without_a_step(tmp_path, n):
    top = graph(
        [helper.make_node("Loop", ["n", "yes", "x"], ["y", "all"], body=counting())],
        [info("x")],
        [info("y"), info("all", shape=None)],
        [("n", np.int64(n)), ("yes", np.bool_(True))],
    )
    y, rows = run(tmp_path, top, {"x": X})
    assert y.tobytes() == X.tobytes() and rows.shape == (0, 3)


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


def loop(*inputs, body, n=None, outputs=("y",)):
    return graph(
        [helper.make_node("Loop", list(inputs), list(outputs), name="again", body=body)],
        [info("x"), info("k", I64, []), info("q", BOOL, [])],
        [info(outputs[-1], shape=None)],
        [("n", np.int64(n or 1)), ("yes", np.bool_(True))],
    )


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


def test_nested_loops_end(tmp_path):
    """Ten loops of a thousand steps, one in the other, are not unrolled but for the innermost."""
    body = counting(outputs=("go", "next"))
    for d in range(10):
        inner = helper.make_node("Loop", ["n", "yes", f"v{d}"], [f"r{d}"], body=body)
        body = graph(
            [inner, helper.make_node("Identity", [f"c{d}"], [f"go{d}"])],
            [info(f"i{d}", I64, []), info(f"c{d}", BOOL, []), info(f"v{d}", shape=None)],
            [f"go{d}", f"r{d}"],
        )
    invar(
        "compile",
        model(tmp_path / "m.onnx", loop("n", "yes", "x", n=1000, body=body)),
        "--output",
        tmp_path / "plan.invar",
        timeout=60,
    )
    assert (tmp_path / "plan.invar").read_text().count("loop.1") == 10


@pytest.mark.parametrize("op", ["Neg", "NoSuch"])
def test_what_nobody_reads_is_gone(tmp_path, op):
    """Loops within loops, what they could not do included."""
    inner = counting([helper.make_node("Less", ["i", "k"], ["go"])], ("go", "next"))
    body = graph(
        [
            helper.make_node("Loop", ["k", "yes", "w"], ["r"], body=inner),
            helper.make_node(op, ["r"], ["s"]),
            helper.make_node("Identity", ["d"], ["go2"]),
        ],
        [info("j", I64, []), info("d", BOOL, []), info("w", shape=None)],
        ["go2", "s"],
    )
    top = graph(
        [
            helper.make_node("Loop", ["k", "yes", "x"], ["lost"], body=body),
            helper.make_node("Exp", ["lost"], ["too"]),
            helper.make_node("Neg", ["x"], ["y"]),
        ],
        [info("x"), info("k", I64, [])],
        [info("y")],
        [("yes", np.bool_(True))],
    )
    (y,) = run(tmp_path, top, {"x": X, "k": np.array(3)})
    assert y.tobytes() == (-X).tobytes()
    assert "loop.1" not in (tmp_path / "plan.invar").read_text()


def test_steps_that_are_too_many_to_unroll(tmp_path):
    """As many as a machine counts, ended by the condition; the same bytes as unrolled."""
    body = counting([helper.make_node("Less", ["i", "k"], ["go"])], ("go", "next"))
    top = loop("n", "yes", "x", n=2**62, body=body)
    (y,) = run(tmp_path, top, {"x": X, "k": np.array(9), "q": np.array(True)})
    assert y.tobytes() == (X * 2**10).tobytes()


def test_steps_of_other_shapes_are_errors_of_the_call(tmp_path):
    body = graph(
        [
            helper.make_node("Concat", ["v", "v"], ["next"], axis=0),
            helper.make_node("Identity", ["next"], ["row"]),
            helper.make_node("Identity", ["c"], ["go"]),
        ],
        [info("i", I64, []), info("c", BOOL, []), info("v", shape=None)],
        ["go", "next", "row"],
    )
    top = graph(
        [helper.make_node("Loop", ["k", "yes", "x"], ["y", "all"], body=body)],
        [info("x"), info("k", I64, [])],
        [info("y", shape=None), info("all", shape=None)],
        [("yes", np.bool_(True))],
    )
    y, rows = run(tmp_path, top, {"x": X, "k": np.array(1)})
    assert rows.tobytes() == y.tobytes() == np.tile(X, 2).tobytes()
    np.save(tmp_path / "k.npy", np.array(2))
    refused(
        "infer",
        tmp_path / "plan.invar",
        "--input",
        f"x={tmp_path / 'in.x.npy'}",
        "--input",
        f"k={tmp_path / 'k.npy'}",
        code=2,
        names=["loop", "step 1", "[12]", "[6]"],
    )


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
