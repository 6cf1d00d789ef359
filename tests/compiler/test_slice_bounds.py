"""Slices of open dimensions mean what ONNX says for every size: bounds are clamped when a call
comes (spec/onnx.md onnx.15)."""

import numpy as np
import pytest
from conftest import refused
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from test_dimensions import CONSTANTS, F32, I64, SHAPE, compiled, numbers, run, same

node = helper.make_node
FAR = 2**63 - 1


def meant(n, start, end, step):
    """The places that ONNX's text selects in a dimension of n."""
    start, end = (b + n if b < 0 else b for b in (start, end))
    start, end = (
        (min(max(start, 0), n), min(max(end, 0), n))
        if step > 0
        else (min(max(start, 0), n - 1), min(max(end, -1), n - 1))
    )
    return range(start, end, step)


def sliced(bounds):
    """Nodes y0, y1 ... of x [n, 3] and t [2, n] by turns, and the constants they read."""
    nodes, constants = [], []
    for i, (start, end, step) in enumerate(bounds):
        nodes.append(
            node(
                "Slice",
                ["t" if i % 2 else "x", f"s{i}", f"e{i}", "l1" if i % 2 else "l0", f"d{i}"],
                [f"y{i}"],
            )
        )
        constants += [(f"s{i}", [start]), (f"e{i}", [end]), (f"d{i}", [step])]
    return nodes, [*constants, ("l0", [0]), ("l1", [1])]


@pytest.mark.parametrize("step", [1, 2, -1, -2])
def test_bounds_that_are_constants(tmp_path, step):
    ends = [-FAR, -7, -3, -1, 0, 2, 4, 9, FAR]
    bounds = [(s, e, step) for s in (0, 1, 4, 7, FAR, -1, -2, -6) for e in ends]
    nodes, constants = sliced(bounds)
    plan = compiled(
        tmp_path,
        nodes,
        [(f"y{i}", F32) for i in range(len(bounds))],
        constants,
        [("x", ["n", 3]), ("t", [2, "n"])],
    )
    for n in (0, 1, 2, 3, 5, 8, 11):
        x, t = numbers(n, 3), numbers(2, n)
        found = run(plan, tmp_path, {"x": x, "t": t})
        for i, b in enumerate(bounds):
            at = list(meant(n, *b))
            same(found[f"y{i}"], t[:, at] if i % 2 else x[at])
            if step > 0:
                assert at == list(range(n)[slice(*b)]), b  # NumPy's, too


def test_of_a_dimension_that_values_decide(tmp_path):
    """The same of a list as long as there are numbers above 0."""
    bounds = [
        (0, 100, 1),
        (-100, FAR, 1),
        (2, -2, 1),
        (-3, -1, 1),
        (1, 4, 2),
        (-2, -FAR, -1),
        (3, 0, -2),
    ]
    nodes, constants = sliced(bounds)
    nodes = [
        node("Greater", ["z", "zero"], ["more"]),
        node("Compress", ["z", "more"], ["x"], axis=0),
        node("Transpose", ["x"], ["t"]),
    ] + [node(n.op_type, ["x", *n.input[1:3], "l0", n.input[4]], n.output) for n in nodes]
    plan = compiled(
        tmp_path,
        nodes,
        [(f"y{i}", F32) for i in range(len(bounds))],
        [*constants, ("zero", np.zeros((), np.float32))],
        [("z", ["n"])],
    )
    for n in (0, 1, 2, 3, 6):
        z = np.arange(-2, n + 1, dtype=np.float32)
        found = run(plan, tmp_path, {"z": z})
        for i, b in enumerate(bounds):
            same(found[f"y{i}"], z[z > 0][list(meant(n, *b))])


def test_bounds_that_are_sizes(tmp_path):
    """From a size, up to it, the last of it, and all but these, of a longer and a shorter
    dimension."""
    pairs = [
        ("l0", "b"),
        ("b", "far"),
        ("b", "more"),
        ("back", "far"),
        ("l0", "back"),
        ("back", "m1"),
        ("below", "more"),
        ("b", "back"),
    ]
    prepare = [
        node("Shape", ["z"], ["b"]),
        node("Add", ["b", "l2"], ["more"]),
        node("Neg", ["more"], ["back"]),
    ]
    nodes = prepare + [
        node("Slice", ["x", s, e, "l0"], [f"y{i}"]) for i, (s, e) in enumerate(pairs)
    ]
    constants = [*CONSTANTS, ("far", [FAR]), ("below", [-2])]
    plan = compiled(
        tmp_path,
        nodes,
        [(f"y{i}", F32) for i in range(len(pairs))],
        constants,
        [("x", ["n"]), ("z", ["k"])],
    )
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(n, F32, [d]) for n, d in (("x", "n"), ("z", "k"))],
            [helper.make_tensor_value_info(f"y{i}", F32, None) for i in range(len(pairs))],
            [numpy_helper.from_array(np.array(v), n) for n, v in constants],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
    )
    for n, k in (0, 0), (5, 0), (5, 2), (5, 5), (5, 9), (1, 1), (0, 3), (12, 4):
        feed = {"x": numbers(n), "z": numbers(k)}
        found = run(plan, tmp_path, feed)
        for i, want in enumerate(ReferenceEvaluator(model).run(None, feed)):
            same(found[f"y{i}"], want)


def test_tables_by_length_stay_simple(tmp_path):
    """What is added to a dimension has as many elements, or the call fails: no minimum in the text,
    no copy."""
    plan = compiled(
        tmp_path,
        SHAPE
        + [
            node("Unsqueeze", ["seq", "l0"], ["s"]),
            node("Slice", ["table", "l0", "s", "l1"], ["part"]),
            node("Add", ["x", "part"], ["sum"]),
            node("Slice", ["mask", "zz", "ss", "a12"], ["square"]),
            node("Concat", ["s", "s"], ["ss"], axis=0),
            node("MatMul", ["sum", "w"], ["h"]),
            node("Transpose", ["h"], ["t"], perm=[0, 2, 1]),
            node("MatMul", ["h", "t"], ["scores"]),
            node("Where", ["square", "scores", "low"], ["y"]),
        ],
        [("y", F32), ("sum", F32)],
        [
            *CONSTANTS,
            ("table", numbers(1, 8, 4)),
            ("mask", np.tri(9, dtype=bool)[None]),
            ("zz", [0, 0]),
            ("a12", [1, 2]),
            ("w", np.eye(4, dtype=np.float32)),
            ("low", np.array(-9, np.float32)),
        ],
    )
    text = plan.read_text()
    assert "min(" not in text and "expand" not in text
    for seq in 0, 1, 5, 8:
        x = numbers(2, seq, 4)
        found = run(plan, tmp_path, {"x": x})
        total = x + numbers(1, 8, 4)[:, :seq]
        same(found["sum"], total)
        h = total
        same(
            found["y"], np.where(np.tri(seq, dtype=bool), h @ h.transpose(0, 2, 1), np.float32(-9))
        )
    run(
        plan,
        tmp_path,
        {"x": numbers(2, 9, 4)},
        refused,
        code=2,
        names=["slices inside the operand"],
    )


def test_a_table_by_length_that_is_a_result(tmp_path):
    plan = compiled(
        tmp_path,
        SHAPE
        + [
            node("Unsqueeze", ["seq", "l0"], ["s"]),
            node("Slice", ["table", "l0", "s", "l0"], ["y"]),
        ],
        [("y", F32)],
        [*CONSTANTS, ("table", numbers(8, 2))],
    )
    for seq in 0, 1, 8, 9, 40:
        same(run(plan, tmp_path, {"x": numbers(1, seq, 4)})["y"], numbers(8, 2)[:seq])


def test_one_row_repeats(tmp_path):
    """A mask of one row cut to a length is repeated, as ONNX does it; so is the last element of a
    row, if there is one."""
    plan = compiled(
        tmp_path,
        SHAPE
        + [
            node("Unsqueeze", ["seq", "l0"], ["s"]),
            node("Slice", ["row", "l0", "s", "l1"], ["part"]),
            node("Add", ["x", "part"], ["y"]),
            node("Slice", ["x", "m1", "far", "l1"], ["last"]),
            node("Sub", ["x", "last"], ["z"]),
            node("Mul", ["last", "five"], ["w"]),
        ],
        [("y", F32), ("z", F32), ("w", F32)],
        [*CONSTANTS, ("row", numbers(1, 1, 4)), ("far", [FAR]), ("five", numbers(5, 4))],
    )
    for seq in 1, 2, 7:
        x = numbers(2, seq, 4)
        found = run(plan, tmp_path, {"x": x})
        same(found["y"], x + numbers(1, 1, 4))
        same(found["z"], x - x[:, -1:])
        same(found["w"], x[:, -1:] * numbers(5, 4))
    run(plan, tmp_path, {"x": numbers(2, 0, 4)}, refused, code=2, names=["slice"])


def test_the_only_element_of_an_open_dimension_repeats(tmp_path):
    plan = compiled(
        tmp_path,
        [
            node("Shape", ["z"], ["k"]),
            node("Slice", ["x", "l0", "k", "l0"], ["part"]),
            node("Mul", ["part", "z"], ["y"]),
            node("Add", ["y", "z"], ["w"]),
        ],
        [("w", F32)],
        CONSTANTS,
        [("x", ["n"]), ("z", ["k"])],
    )
    for n, k in (1, 4), (1, 1), (4, 4), (9, 4), (5, 1), (0, 0), (3, 0):
        x, z = numbers(n), numbers(k)
        same(run(plan, tmp_path, {"x": x, "z": z})["w"], x[:k] * z + z)
    run(plan, tmp_path, {"x": numbers(3), "z": numbers(4)}, refused, code=2, names=["expand"])


def test_parts_of_a_row_make_it(tmp_path):
    plan = compiled(
        tmp_path,
        [
            node("Slice", ["x", "l2", "far", "l1"], ["b"]),
            node("Slice", ["x", "l0", "l2", "l1"], ["a"]),
            node("Concat", ["b", "a"], ["rolled"], axis=1),
            node("Add", ["rolled", "x"], ["y"]),
            node("Slice", ["x", "l0", "m1", "l1"], ["front"]),
            node("Pad", ["front", "pads"], ["shifted"]),
            node("Mul", ["shifted", "x"], ["z"]),
        ],
        [("y", F32), ("z", F32)],
        [*CONSTANTS, ("far", [FAR]), ("pads", [0, 1, 0, 0, 0, 0])],
    )
    for seq in 0, 1, 2, 3, 9:
        x = numbers(2, seq, 4)
        found = run(plan, tmp_path, {"x": x})
        same(found["y"], np.concatenate([x[:, 2:], x[:, :2]], 1) + x)
        same(found["z"], np.pad(x[:, :-1], ((0, 0), (1, 0), (0, 0))) * x)


def test_a_bound_that_may_be_below_0(tmp_path):
    """A difference means a place from the begin or from the end: that is decided when the call
    comes."""
    plan = compiled(
        tmp_path,
        [
            node("Shape", ["z"], ["k"]),
            node("Sub", ["k", "l3"], ["less"]),
            node("Slice", ["x", "l0", "less", "l0"], ["a"]),
            node("Slice", ["x", "less", "far", "l0", "l2"], ["b"]),
        ],
        [("a", F32), ("b", F32)],
        [*CONSTANTS, ("l3", [3]), ("far", [FAR])],
        [("x", ["n"]), ("z", ["k"])],
    )
    for n, k in (5, 3), (5, 4), (5, 9), (0, 7), (5, 2), (5, 0), (2, 0):
        x = numbers(n)
        found = run(plan, tmp_path, {"x": x, "z": numbers(k)})
        same(found["a"], x[: k - 3])
        same(found["b"], x[k - 3 :: 2])


def test_lengths_alone(tmp_path):
    """Of slices of which nothing else is read, by bounds that may count from the end."""
    nodes = [
        node("Shape", ["z"], ["k"]),
        node("Sub", ["k", "l3"], ["less"]),
        node("Sub", ["k", "l2"], ["two"]),
    ]
    slices = {
        "a": ("l0", "less"),
        "b": ("less", "far"),
        "c": ("l3", "two"),
        "d": ("l0", "e"),
        "f": ("e", "far"),
        "g": ("e", "less"),
    }
    nodes += [
        n
        for name, (start, end) in slices.items()
        for n in (
            node("Slice", ["x", start, end, "l0"], [name]),
            node("Shape" if name != "g" else "Size", [name], ["len." + name]),
        )
    ]
    plan = compiled(
        tmp_path,
        nodes,
        [("len." + name, I64) for name in slices],
        [*CONSTANTS, ("l3", [3]), ("far", [FAR])],
        [("x", ["n"]), ("z", ["k"]), ("e", [1], I64)],
    )
    for n, k, e in (5, 2, -1), (5, 4, -9), (5, 9, 2), (0, 0, 0), (7, 1, 7), (3, 5, 9):
        x = numbers(n)
        found = run(plan, tmp_path, {"x": x, "z": numbers(k), "e": np.array([e])})
        bounds = {"l0": 0, "far": FAR, "less": k - 3, "two": k - 2, "l3": 3, "e": e}
        for name, (start, end) in slices.items():
            assert found["len." + name].reshape(-1).tolist() == [
                len(x[bounds[start] : bounds[end]])
            ], (n, k, e, name)


def test_the_length_of_a_range_alone(tmp_path):
    """A size that is below 0 is refused if all that is read of it is how large it is."""
    plan = compiled(
        tmp_path,
        [
            node("Squeeze", ["e"], ["s"]),
            node("Range", ["zero", "s", "one"], ["r"]),
            node("Shape", ["r"], ["y"]),
        ],
        [("y", I64)],
        [("zero", np.array(0)), ("one", np.array(1))],
        [("e", [1], I64)],
    )
    assert run(plan, tmp_path, {"e": np.array([4])})["y"].tolist() == [4]
    run(plan, tmp_path, {"e": np.array([-2])}, refused, code=2, names=["a dimension"])


@pytest.mark.parametrize("step", [FAR, 1 - FAR, -FAR - 1, 2**41])
def test_steps_and_bounds_as_far_as_they_go(tmp_path, step):
    bounds = {
        "a": (0, FAR),
        "b": (1, 3),
        "c": (-1, -FAR),
        "d": (FAR, 0),
        "f": (-FAR, FAR),
        "g": (3, -FAR - 1),
    }
    nodes, constants = [], [("l0", [0]), ("step", [step])]
    for name, (start, end) in bounds.items():
        constants += [("s" + name, [start]), ("e" + name, [end])]
        nodes += [
            node("Slice", ["x", "s" + name, "e" + name, "l0", "step"], [name]),
            node("Slice", ["x", "s", "e" + name, "l0", "step"], [name + "1"]),
            node("Slice", ["x", "s" + name, "s", "l0", "step"], [name + "2"]),
        ]
    plan = compiled(
        tmp_path,
        nodes,
        [(name + end, F32) for name in bounds for end in ("", "1", "2")],
        constants,
        [("x", ["n"]), ("s", [1], I64)],
    )
    for n in 4, 0, 1:
        for s in 0, -2, 3, FAR, -FAR - 1:
            x = numbers(n)
            found = run(plan, tmp_path, {"x": x, "s": np.array([s])})
            for name, (start, end) in bounds.items():
                for key, b in ("", (start, end)), ("1", (s, end)), ("2", (start, s)):
                    same(found[name + key], x[list(meant(n, *b, step))])
