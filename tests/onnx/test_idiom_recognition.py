"""What a module of plain torch is made of (src/ops/ROOM/torch.py): every operation has a spelling,
and where the operation is exact, torch says the same bytes as the reproducible kernel. Accuracy of
the others: test_idiom_recognition_accuracy.py."""

import decomposed_spellings as spelled
import pytest
import torch
from decomposed_spellings import OPSET

# Moves, integers, comparisons, choices and single operations of IEEE 754 round in one way only,
# wherever they run.
EXACT = ("none", "integer", "order", "convert-1", "ieee", "philox-1")
ROUNDED = {
    "batchnorm",
    "iota",
    "sqrt",
}  # several operations that torch orders in its own way; a root of SLEEF's
# Sums and products of a few bits are exact in every order.
SUMS_OF_FEW_BITS = (
    "average_pool",
    "conv",
    "conv_backward_weight",
    "conv_transpose",
    "cumsum",
    "matmul",
    "matmul_nbits",
    "reduce_l1",
    "reduce_mean",
    "reduce_sum",
    "reduce_sum_square",
    "rope",
)
FLOATS = {
    "cast": spelled.positive,  # torch does not say what becomes of numbers that the type has no room for
    "fmod": spelled.positive,  # x modulo infinity is NaN there
    "mod": spelled.positive,
    "max_pool_indices": spelled.ordinary,  # of several NaN torch takes the last
    "scatter_elements": spelled.eighths,  # of updates of one place torch does not say the order
    "scatter_nd": spelled.eighths,
    "sign": spelled.ordinary,  # of NaN it is 0 there
    **dict.fromkeys(SUMS_OF_FEW_BITS, spelled.eighths),
}
BYTES = sorted(
    {op for op, o in OPSET.items() if o.numerics in EXACT and op not in ROUNDED}
    | set(SUMS_OF_FEW_BITS)
)


@pytest.mark.parametrize("op", BYTES)
def test_bytes(op):
    moves = OPSET[op].numerics == "none" and op != "where"
    seen = spelled.raw if moves else spelled.canonical
    for case, text, got, want in spelled.pairs(op, FLOATS.get(op, spelled.special)):
        assert seen(got) == seen(want), (str(case), text)


@pytest.mark.parametrize("op", sorted(OPSET))
def test_results_lie_where_the_operands_do(op):
    """On torch's device without memory: nothing is made on another device, and no value decides a
    shape."""
    for case, text, operands in spelled.written(op, every=3):
        got = spelled.evaluated(text, [x.to("meta") for x in operands])
        assert got.device.type == "meta" and list(got.shape) == case.result[1], (str(case), text)


@pytest.mark.parametrize(
    "op, attributes, types, result, text",
    [
        ("add", {}, [("f32", [2]), ("f32", [2])], ("f32", [2]), "x0 + x1"),
        ("gelu", {}, [("f32", [2])], ("f32", [2]), "functional.gelu(x0)"),
        (
            "leakyrelu",
            {"alpha": float(torch.tensor(0.1))},
            [("f32", [2])],
            ("f32", [2]),
            "functional.leaky_relu(x0, 0.1)",
        ),
        (
            "clip",
            {"min": 0.0, "max": float("inf")},
            [("f32", [2])],
            ("f32", [2]),
            "torch.clamp(x0, min=0.0)",
        ),
        (
            "matmul",
            {"trans_b": 0},
            [("f32", [5, 3]), ("f32", [3, 4])],
            ("f32", [5, 4]),
            "torch.matmul(x0, x1)",
        ),
        (
            "matmul",
            {"trans_b": 1},
            [("f32", [5, 3]), ("bf16", [4, 3])],
            ("f32", [5, 4]),
            "functional.linear(x0, x1.float())",
        ),
        (
            "slice",
            {"starts": [0, 1], "steps": [1, 2]},
            [("f32", [5, 9])],
            ("f32", [5, 4]),
            "x0[:, 1::2]",
        ),
        (
            "gather",
            {"axis": 0},
            [("bf16", [9, 4]), ("i64", [5])],
            ("f32", [5, 4]),
            "x0[x1].float()",
        ),
        (
            "conv",
            {"strides": [2, 2], "dilations": [1, 1], "pads": [1, 1, 1, 1], "groups": 1},
            [("f32", [5, 3, 9, 9]), ("f32", [4, 3, 3, 3]), ("f32", [4])],
            ("f32", [5, 4, 5, 5]),
            "functional.conv2d(x0, x1, x2, stride=2, padding=1)",
        ),
        ("reshape", {}, [("f32", [5, 6])], ("f32", [5, 2, 3]), "x0.reshape((5, 2, 3))"),
        (
            "reduce_mean",
            {"axes": [1], "keepdims": 1},
            [("f32", [5, 6])],
            ("f32", [5, 1]),
            "torch.mean(x0, dim=(1,), keepdim=True)",
        ),
    ],
)
def test_texts_are_what_a_person_writes(op, attributes, types, result, text):
    assert spelled.text_of(op, attributes, types, result) == text
