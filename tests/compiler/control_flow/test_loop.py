"""Loop: unrolled or run, to the last byte."""

import numpy as np
import pytest
from conftest import invar, refused
from control_flow_graphs import BOOL, F32, I64, X, counting, graph, info, loop, model, run
from onnx import helper


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
