"""Dimensions of which it cannot be shown when compiling that they fit: each call asks it
(spec/onnx.md onnx.22, onnx.24)."""

import numpy as np
import pytest
from conftest import refused
from onnx import TensorProto, helper
from test_dimensions import CONSTANTS, F32, I64, SHAPE, compiled, numbers, run, same

node = helper.make_node


def test_blocks(tmp_path):
    plan = compiled(
        tmp_path,
        [
            node("Reshape", ["x", "blocks"], ["y"]),
            node("ReduceSum", ["y", "l2"], ["sums"], keepdims=0),
        ],
        [("y", F32), ("sums", F32)],
        [("blocks", [0, -1, 2, 4]), ("l2", [2])],
    )
    assert "[batch, (seq)/2, 2, 4]" in plan.read_text()
    for batch, seq in (1, 2), (3, 8), (2, 0):
        x = numbers(batch, seq, 4)
        same(run(plan, tmp_path, {"x": x})["y"], x.reshape(batch, seq // 2, 2, 4))
    run(plan, tmp_path, {"x": numbers(2, 7, 4)}, refused, code=2, names=["reshape"])


def test_names_that_differ(tmp_path):
    """As exporters write them where nobody names dimensions."""
    plan = compiled(
        tmp_path,
        [
            node("Add", ["a", "b"], ["sum"]),
            node("Concat", ["a", "b"], ["both"], axis=1),
            node("MatMul", ["a", "t"], ["product"]),
            node("Reshape", ["a", "flat"], ["six"]),
            node("Add", ["sum", "three"], ["more"]),
        ],
        [("sum", F32), ("both", F32), ("product", F32), ("six", F32), ("more", F32)],
        [("flat", [6]), ("three", numbers(3))],
        [("a", ["a_0", "a_1"]), ("b", ["b_0", "b_1"]), ("t", ["t_0", "t_1"])],
    )
    a, b, t = numbers(2, 3), numbers(2, 3) + 1, numbers(3, 5)
    y = run(plan, tmp_path, {"a": a, "b": b, "t": t})
    same(y["sum"], a + b)
    same(y["both"], np.concatenate([a, b], 1))
    same(y["product"], a @ t)
    same(y["six"], a.reshape(6))
    same(y["more"], a + b + numbers(3))
    for b_, t_ in ((3, 3), (3, 5)), ((2, 2), (3, 5)), ((2, 3), (4, 5)):
        run(
            plan,
            tmp_path,
            {"a": a, "b": numbers(*b_), "t": numbers(*t_)},
            refused,
            code=2,
            names=["requires"],
        )


def test_the_last_of_all(tmp_path):
    """A start that is minus a dimension: for a dimension of 0 it is the begin."""
    plan = compiled(
        tmp_path,
        SHAPE
        + [
            node("Neg", ["batch"], ["minus"]),
            node("Unsqueeze", ["minus", "l0"], ["back"]),
            node("Neg", ["seq"], ["all"]),
            node("Unsqueeze", ["all", "l0"], ["whole"]),
            node("Slice", ["y", "back", "far", "l1"], ["last"]),
            node("Slice", ["y", "l0", "back", "l1"], ["first"]),
            node("Slice", ["x", "whole", "far", "l1"], ["same"]),
        ],
        [("last", F32), ("first", F32), ("same", F32)],
        [*CONSTANTS, ("far", [2**63 - 1])],
        [("x", ["batch", "seq", 4]), ("y", [2, "length"])],
    )
    for batch, seq, length in (2, 3, 7), (1, 1, 1), (0, 3, 5), (4, 2, 3):
        x, y = numbers(batch, seq, 4), numbers(2, length)
        found = run(plan, tmp_path, {"x": x, "y": y})
        same(found["last"], y[:, -batch:])
        same(found["first"], y[:, :-batch])
        same(found["same"], x)


def test_pads_that_take_away(tmp_path):
    plan = compiled(
        tmp_path, [node("Pad", ["x", "pads"], ["y"])], [("y", F32)], [("pads", [0, 2, 0, 0, -1, 0])]
    )
    for seq in 1, 2, 6:
        x = numbers(2, seq, 4)
        same(run(plan, tmp_path, {"x": x})["y"], np.pad(x, ((0, 0), (2, 0), (0, 0)))[:, :-1])
    run(plan, tmp_path, {"x": numbers(2, 0, 4)}, refused, code=2, names=["-1"])


@pytest.mark.parametrize(
    "kernel,stride,pads", [(2, 2, (0, 0)), (3, 2, (1, 1)), (2, 3, (1, 1)), (2, 4, (0, 1))]
)
def test_windows_rounded_up(tmp_path, kernel, stride, pads):
    plan = compiled(
        tmp_path,
        [
            node(
                "MaxPool",
                ["x"],
                ["y"],
                kernel_shape=[kernel],
                strides=[stride],
                pads=pads,
                ceil_mode=1,
            )
        ],
        [("y", F32)],
        inputs=[("x", [2, 3, "length"])],
    )
    for length in range(kernel, 12):
        x = numbers(2, 3, length)
        padded = np.pad(x, ((0, 0), (0, 0), pads), constant_values=-np.inf)
        starts = [
            i
            for i in range(0, length + pads[0], stride)
            if i <= length + sum(pads) - kernel or i < length + sum(pads) - kernel + stride
        ]
        same(
            run(plan, tmp_path, {"x": x})["y"],
            np.stack([padded[:, :, i : i + kernel].max(2) for i in starts], 2),
        )


def test_einsum(tmp_path):
    plan = compiled(
        tmp_path,
        [
            node("Cast", ["x"], ["i"], to=I64),
            node("Einsum", ["x", "w"], ["heads"], equation="bsh,hnd->bsnd"),
            node("Einsum", ["i", "i"], ["pairs"], equation="bsh,bth->bst"),
            node("Einsum", ["i", "i"], ["all"], equation="bsh,bsk->bshk"),
            node("Cast", ["x"], ["small"], to=TensorProto.INT8),
            node("Einsum", ["small", "small"], ["bytes"], equation="bsh,bsh->bs"),
        ],
        [("heads", F32), ("pairs", I64), ("all", I64), ("bytes", TensorProto.INT8)],
        [("w", np.eye(4, 6, dtype=np.float32).reshape(4, 2, 3))],
    )
    for batch, seq in (2, 3), (1, 5):
        x = np.floor(numbers(batch, seq, 4))
        i, found = x.astype(np.int64), run(plan, tmp_path, {"x": x})
        same(found["heads"], (x @ np.eye(4, 6, dtype=np.float32)).reshape(batch, seq, 2, 3))
        same(found["pairs"], np.einsum("bsh,bth->bst", i, i))
        same(found["all"], np.einsum("bsh,bsk->bshk", i, i))
        same(found["bytes"], np.einsum("bsh,bsh->bs", i, i).astype(np.int8))


def test_numbers_of_one_size(tmp_path):
    """A traced model holds the sizes of its example where exporters lose a dimension: it runs for
    these."""
    plan = compiled(
        tmp_path,
        [node("Split", ["x", "parts"], ["a", "b"], axis=1), node("Add", ["x", "table"], ["y"])],
        [("a", F32), ("b", F32), ("y", F32)],
        [("parts", [2, 3]), ("table", numbers(5, 4))],
    )
    x = numbers(2, 5, 4)
    found = run(plan, tmp_path, {"x": x})
    same(found["a"], x[:, :2])
    same(found["b"], x[:, 2:])
    same(found["y"], x + numbers(5, 4))
    run(plan, tmp_path, {"x": numbers(2, 6, 4)}, refused, code=2, names=["requires"])


def test_infinities_of_binary64(tmp_path):
    """What transformers' T5 of f16 asks before it clamps."""
    plan = compiled(
        tmp_path,
        [
            node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE),
            node("IsInf", ["wide"], ["any"]),
            node("IsInf", ["wide"], ["above"], detect_negative=0),
            node("IsInf", ["wide"], ["below"], detect_positive=0),
        ],
        [(n, TensorProto.BOOL) for n in ("any", "above", "below")],
    )
    x = numbers(1, 2, 4)
    x[0, 0], x[0, 1, 0] = [np.inf, -np.inf, np.nan, np.finfo(np.float32).max], -np.inf
    found = run(plan, tmp_path, {"x": x})
    same(found["any"], np.isinf(x))
    same(found["above"], np.isposinf(x))
    same(found["below"], np.isneginf(x))


def test_sines_of_binary64(tmp_path):
    """Tables of positions that RT-DETR computes in f64, of constants: the nearest f64 (mpmath, 300
    bits)."""
    at = np.array(
        [
            0.0,
            -0.0,
            1.0,
            -2.5,
            100.25,
            100000.0,
            1048576.0,
            1e-09,
            0.7853981633974483,
            2.356194490192345,
            -3.1415929203539825,
        ]
    )
    plan = compiled(
        tmp_path,
        [
            node("Sin", ["at"], ["sine"]),
            node("Cos", ["at"], ["cosine"]),
            node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE),
            node("Mul", ["wide", "sine"], ["y"]),
            node("Mul", ["wide", "cosine"], ["z"]),
        ],
        [("y", TensorProto.DOUBLE), ("z", TensorProto.DOUBLE)],
        [("at", at)],
        [("x", [1])],
    )
    found = run(plan, tmp_path, {"x": np.ones(1, np.float32)})
    same(
        found["y"],
        np.array(
            [
                0.0,
                -0.0,
                0.8414709848078965,
                -0.5984721441039565,
                -0.2772828564548513,
                0.03574879797201651,
                0.3304931400217347,
                1e-09,
                0.7071067811865475,
                0.7071067811865476,
                2.6676418928249877e-07,
            ]
        ),
    )
    same(
        found["z"],
        np.array(
            [
                1.0,
                1.0,
                0.5403023058681398,
                -0.8011436155469337,
                0.9607883312760612,
                -0.9993608074382124,
                0.943808393901312,
                1.0,
                0.7071067811865476,
                -0.7071067811865475,
                -0.9999999999999645,
            ]
        ),
    )


def test_a_part_of_nothing_is_asked_too(tmp_path):
    plan = compiled(
        tmp_path,
        [
            node("Concat", ["none", "a"], ["both"], axis=0),
            node("Transpose", ["both"], ["t"], perm=[1, 0]),
            node("Cast", ["size"], ["count"], to=I64),
            node("Reshape", ["t", "count"], ["flat"]),
        ],
        [("both", F32), ("flat", F32)],
        [("none", numbers(0, 4))],
        [("a", ["n", "k"]), ("size", [])],
    )
    same(
        run(plan, tmp_path, {"a": numbers(3, 4), "size": np.float32(12)})["flat"],
        numbers(3, 4).T.reshape(12),
    )
    run(
        plan,
        tmp_path,
        {"a": numbers(3, 3), "size": np.float32(9)},
        refused,
        code=2,
        names=["concat"],
    )


def test_starts_before_the_operand(tmp_path):
    """Minus a sum is a place before the end, or the begin; a difference counts from the begin or,
    negative, from the end."""
    plan = compiled(
        tmp_path,
        [
            node("Shape", ["z"], ["n"]),
            node("Add", ["n", "l1"], ["more"]),
            node("Neg", ["more"], ["back"]),
            node("Sub", ["n", "l1"], ["less"]),
            node("Slice", ["x", "back", "far", "l0"], ["a"]),
            node("Slice", ["x", "less", "far", "l0"], ["b"]),
        ],
        [("a", F32), ("b", F32)],
        [*CONSTANTS, ("far", [2**62])],
        [("x", ["k"]), ("z", ["n"])],
    )
    for k, n in ((5, 3), (3, 3), (3, 4), (0, 1), (5, 0), (0, 0)):
        found = run(plan, tmp_path, {"x": numbers(k), "z": numbers(n)})
        same(found["a"], numbers(k)[-n - 1 :])
        same(found["b"], numbers(k)[n - 1 :])


def test_each_letter_is_asked(tmp_path):
    plan = compiled(
        tmp_path,
        [node("Einsum", ["a", "b"], ["y"], equation="aij,bij->ab")],
        [("y", F32)],
        inputs=[("a", [2, "p", "q"]), ("b", [2, "r", "s"])],
    )
    a, b = numbers(2, 3, 4), numbers(2, 3, 4) + 1
    assert run(plan, tmp_path, {"a": a, "b": b})["y"].shape == (2, 2)
    run(plan, tmp_path, {"a": a, "b": b.reshape(2, 4, 3)}, refused, code=2, names=["reshape"])


def test_expand_to_a_constant(tmp_path):
    plan = compiled(
        tmp_path,
        [node("Expand", ["a", "shape"], ["y"])],
        [("y", F32)],
        [("shape", [2, 3])],
        [("a", ["p", 3])],
    )
    for rows in (1, 2):
        same(
            run(plan, tmp_path, {"a": numbers(rows, 3)})["y"],
            np.broadcast_to(numbers(rows, 3), (2, 3)),
        )
    run(plan, tmp_path, {"a": numbers(4, 3)}, refused, code=2, names=["expand"])


def test_slices_keep_bits_of_narrow_floats(tmp_path):
    plan = compiled(
        tmp_path,
        [
            node("Cast", ["u"], ["h"], to=TensorProto.UINT16),
            node("BitCast", ["h"], ["f"], to=TensorProto.BFLOAT16),
            node("Shape", ["x"], ["n"]),
            node("Slice", ["f", "n", "far", "l0"], ["part"]),
            node("BitCast", ["part"], ["bits"], to=TensorProto.UINT16),
            node("Cast", ["bits"], ["y"], to=TensorProto.INT32),
        ],
        [("y", TensorProto.INT32)],
        [*CONSTANTS, ("far", [2**62])],
        [("u", ["k"]), ("x", ["n"])],
        opset=26,
    )
    every = np.arange(65536, dtype=np.float32)
    assert run(plan, tmp_path, {"u": every, "x": numbers(2)})["y"].tolist() == list(range(2, 65536))


def test_a_signal_has_a_frame(tmp_path):
    plan = compiled(
        tmp_path,
        [node("STFT", ["x", "step", "", "length"], ["y"])],
        [("y", F32)],
        [("step", np.array(4)), ("length", np.array(16))],
        [("x", [1, "n", 1])],
    )
    assert run(plan, tmp_path, {"x": numbers(1, 20, 1)})["y"].shape == (1, 2, 9, 2)
    run(plan, tmp_path, {"x": numbers(1, 15, 1)}, refused, code=2, names=["the plan's dimension"])
