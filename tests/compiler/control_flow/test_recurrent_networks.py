"""Recurrent networks, scans and loops along an open dimension: a loop that runs gives the bytes of
the same steps unrolled."""

import numpy as np
import pytest
from control_flow_graphs import BOOL, I64, graph, info, run
from onnx import TensorProto, helper


@pytest.mark.parametrize("backwards", [0, 1])
def test_scan_over_an_open_dimension(tmp_path, backwards):
    body = graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Mul", ["t", "w"], ["u"])],
        [info("s", shape=[2]), info("e", shape=[2])],
        ["t", "u"],
    )
    scan = helper.make_node(
        "Scan",
        ["s0", "x"],
        ["last", "all"],
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[-1],
        scan_input_directions=[backwards],
        scan_output_axes=[1],
        scan_output_directions=[backwards],
    )
    top = graph(
        [scan, helper.make_node("Add", ["all", "x"], ["y"])],
        [info("s0", shape=[2]), info("x", shape=[2, "n"])],
        [info("last", shape=[2]), info("y", shape=None)],
        [("w", np.array([2, 3], np.float32))],
    )
    for n in (3, 1, 0, 200):
        x = np.arange(2 * n, dtype=np.float32).reshape(2, n)
        last, y = run(tmp_path, top, {"s0": np.zeros(2, np.float32), "x": x})
        there = x[:, ::-1] if backwards else x
        sums = np.cumsum(there, 1) * np.array([[2], [3]], np.float32)
        assert last.tobytes() == x.sum(1).tobytes()
        assert (
            y.tobytes()
            == np.ascontiguousarray((sums[:, ::-1] if backwards else sums) + x).tobytes()
        )


def test_recurrent_steps_of_an_open_sequence(tmp_path):
    """An Elman cell as a Scan has the bytes of the same cell unrolled."""
    random = np.random.default_rng(7)
    weights = [
        (n, (random.standard_normal(shape) / 4).astype(np.float32))
        for n, shape in (("wi", (5, 8)), ("wh", (8, 8)), ("b", (8,)))
    ]

    def top(length):
        cell = graph(
            [
                helper.make_node("MatMul", ["e", "wi"], ["p"]),
                helper.make_node("MatMul", ["h", "wh"], ["q"]),
                helper.make_node("Add", ["p", "q"], ["r"]),
                helper.make_node("Add", ["r", "b"], ["u"]),
                helper.make_node("Tanh", ["u"], ["t"]),
                helper.make_node("Identity", ["t"], ["o"]),
            ],
            [info("h", shape=None), info("e", shape=None)],
            ["t", "o"],
        )
        return graph(
            [helper.make_node("Scan", ["h0", "x"], ["last", "all"], body=cell, num_scan_inputs=1)],
            [info("h0", shape=[3, 8]), info("x", shape=[length, 3, 5])],
            [info("last", shape=[3, 8]), info("all", shape=None)],
            weights,
        )

    given = {
        "h0": np.zeros((3, 8), np.float32),
        "x": random.standard_normal((17, 3, 5)).astype(np.float32),
    }
    (tmp_path / "open").mkdir(), (tmp_path / "fixed").mkdir()
    found, expected = (
        run(tmp_path / "open", top("n"), given),
        run(tmp_path / "fixed", top(17), given),
    )
    assert (
        "loop.1" in (tmp_path / "open/plan.invar").read_text()
        and "loop.1" not in (tmp_path / "fixed/plan.invar").read_text()
    )
    assert [t.tobytes() for t in found] == [t.tobytes() for t in expected]


@pytest.mark.parametrize(
    "op,gates,more",
    [("RNN", 1, {}), ("GRU", 3, {}), ("GRU", 3, {"linear_before_reset": 1}), ("LSTM", 4, {})],
)
@pytest.mark.parametrize(
    "direction,layout,lengths",
    [
        ("forward", 0, False),
        ("reverse", 1, True),
        ("bidirectional", 0, True),
        ("bidirectional", 1, False),
    ],
)
def test_recurrent_networks_of_an_open_sequence(
    tmp_path, op, gates, more, direction, layout, lengths
):
    """The bytes of the same network unrolled; of no step, the states that were given."""
    random, both = np.random.default_rng(3), 2 if direction == "bidirectional" else 1
    weights = [
        (n, (random.standard_normal(shape) / 2).astype(np.float32))
        for n, shape in (
            ("w", (both, 4 * gates, 5)),
            ("r", (both, 4 * gates, 4)),
            ("b", (both, 8 * gates)),
        )
    ]
    names = ["y", "h", "c"] if op == "LSTM" else ["y", "h"]
    kept = [3, both, 4] if layout else [both, 3, 4]

    def top(length):
        nodes = [
            helper.make_node(
                op,
                ["x", "w", "r", "b", "lengths" if lengths else "", *(f"{n}0" for n in names[1:])],
                names,
                hidden_size=4,
                direction=direction,
                layout=layout,
                **more,
            )
        ]
        inputs = [
            info("x", shape=[3, length, 5] if layout else [length, 3, 5]),
            *(info(f"{n}0", shape=kept) for n in names[1:]),
        ]
        return graph(
            nodes,
            inputs + [info("lengths", TensorProto.INT32, [3])] * lengths,
            [info(n, shape=None) for n in names],
            weights,
        )

    (tmp_path / "open").mkdir(), (tmp_path / "fixed").mkdir()
    for steps in (6, 1, 0):
        given = {
            "x": random.standard_normal((3, steps, 5) if layout else (steps, 3, 5)).astype(
                np.float32
            )
        }
        given |= {f"{n}0": random.standard_normal(kept).astype(np.float32) for n in names[1:]}
        given |= (
            {"lengths": np.array([min(steps, k) for k in (6, 2, 4)], np.int32)} if lengths else {}
        )
        found = run(tmp_path / "open", top("n"), given)
        if steps:
            assert [t.tobytes() for t in found] == [
                t.tobytes() for t in run(tmp_path / "fixed", top(steps), given)
            ]
        else:
            assert found[0].size == 0 and [t.tobytes() for t in found[1:]] == [
                given[f"{n}0"].tobytes() for n in names[1:]
            ]
    assert (tmp_path / "open/plan.invar").read_text().count("loop.1") == both


def test_scan_along_axes_backwards(tmp_path):
    body = graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["u"])],
        [info("s", shape=[2]), info("e", shape=[2])],
        ["t", "u"],
    )
    scan = helper.make_node(
        "Scan",
        ["s0", "x"],
        ["last", "all"],
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[-1],
        scan_input_directions=[1],
        scan_output_axes=[1],
        scan_output_directions=[1],
    )
    x = np.array([[1, 2, 4], [8, 16, 32]], np.float32)
    last, rows = run(
        tmp_path,
        graph(
            [scan],
            [info("s0", shape=[2]), info("x", shape=[2, 3])],
            [info("last", shape=[2]), info("all", shape=None)],
        ),
        {"s0": np.zeros(2, np.float32), "x": x},
    )
    assert last.tobytes() == x.sum(1).tobytes()
    assert rows.tobytes() == np.ascontiguousarray(np.cumsum(x[:, ::-1], 1)[:, ::-1]).tobytes()


def test_steps_that_dimensions_decide(tmp_path):
    """A step for each row, whose results are as many as there are rows: they go with what has as
    many."""
    body = graph(
        [
            helper.make_node("Gather", ["x", "i"], ["row"]),
            helper.make_node("Exp", ["row"], ["e"]),
            helper.make_node("Identity", ["c"], ["go"]),
        ],
        [info("i", I64, []), info("c", BOOL, [])],
        ["go", "e"],
    )
    top = graph(
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Gather", ["shape", "zero"], ["rows"]),
            helper.make_node("Loop", ["rows", "yes"], ["all"], body=body),
            helper.make_node("Sub", ["all", "x"], ["y"]),
            helper.make_node("Exp", ["x"], ["exp"]),
            helper.make_node("Sub", ["exp", "x"], ["expected"]),
        ],
        [info("x", shape=["n", 3])],
        [info("y", shape=["n", 3]), info("expected", shape=["n", 3])],
        [("yes", np.bool_(True)), ("zero", np.int64(0))],
    )
    for rows in (5, 1, 0):
        y, expected = run(
            tmp_path, top, {"x": np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)}
        )
        assert y.shape == (rows, 3) and y.tobytes() == expected.tobytes()
    assert "symbol loop" not in (tmp_path / "plan.invar").read_text()
