"""A detector's end: candidates above a threshold, the best of them, non-maximum suppression, what
is left; none of its sizes is known before it runs. The same bytes on every instruction set, the
results of ONNX's reference."""

import numpy as np
import onnx
import pytest
from conftest import invar, refused
from onnx import TensorProto, helper

BOXES, KEPT = 500, 40


def constant(name, value, dtype):
    return onnx.numpy_helper.from_array(np.array(value, dtype), name)


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    node = helper.make_node
    nothing = helper.make_graph(
        [node("Identity", ["no_places"], ["none"])],
        "none",
        [],
        [helper.make_tensor_value_info("none", TensorProto.INT64, None)],
    )
    some = helper.make_graph(
        [
            node("Unsqueeze", ["best_boxes", "zero"], ["b"]),
            node("Unsqueeze", ["best", "two"], ["s"]),
            node("NonMaxSuppression", ["b", "s", "most", "overlap"], ["rows"]),
            node("Gather", ["rows", "place"], ["column"], axis=1),
            node("Squeeze", ["column", "one"], ["some"]),
        ],
        "some",
        [],
        [helper.make_tensor_value_info("some", TensorProto.INT64, None)],
    )
    nodes = [
        node("Greater", ["scores", "threshold"], ["above"]),
        node("NonZero", ["above"], ["found"]),
        node("Transpose", ["found"], ["places"]),
        node("GatherND", ["scores", "places"], ["s0"]),
        node("GatherND", ["boxes", "places"], ["b0"]),
        node("Shape", ["s0"], ["n"]),
        node("Min", ["n", "kept"], ["k"]),
        node("TopK", ["s0", "k"], ["best", "order"]),
        node("Gather", ["b0", "order"], ["best_boxes"]),
        node("Size", ["best"], ["count"]),
        node("Equal", ["count", "none_at_all"], ["empty"]),
        node("If", ["empty"], ["left"], then_branch=nothing, else_branch=some),
        node("Gather", ["best_boxes", "left"], ["out_boxes"]),
        node("Gather", ["best", "left"], ["out_scores"]),
        node("Slice", ["out_scores", "zero", "three"], ["first"]),
    ]
    graph = helper.make_graph(
        nodes,
        "detector",
        [
            helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["boxes", 4]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["boxes"]),
        ],
        [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, None)
            for n in ("out_boxes", "out_scores", "first")
        ],
        [
            constant("threshold", 0.5, "f4"),
            constant("kept", [KEPT], "i8"),
            constant("none_at_all", 0, "i8"),
            constant("no_places", [], "i8"),
            constant("zero", [0], "i8"),
            constant("one", [1], "i8"),
            constant("two", [0, 1], "i8"),
            constant("three", [3], "i8"),
            constant("place", [2], "i8"),
            constant("most", [KEPT], "i8"),
            constant("overlap", [0.4], "f4"),
        ],
    )
    folder = tmp_path_factory.mktemp("detector")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, folder / "model.onnx")
    assert invar("compile", folder / "model.onnx", "--output", folder / "plan.invar").code == 0
    return folder


def pictures(seed, above):
    """Boxes of which `above` have scores over the threshold."""
    random = np.random.default_rng(seed)
    corner, size = random.random((BOXES, 2)) * 90, random.random((BOXES, 2)) * 20
    scores = random.random(BOXES) * 0.5
    scores[random.permutation(BOXES)[:above]] += 0.5
    return np.concatenate([corner, corner + size], 1).astype("f4"), scores.astype("f4")


def detect(folder, boxes, scores, *options):
    out = folder / "out"
    out.mkdir(exist_ok=True)
    for name, value in (("boxes", boxes), ("scores", scores)):
        np.save(folder / f"{name}.npy", value)
    done = invar(
        "infer",
        folder / "plan.invar",
        "--input",
        f"boxes={folder}/boxes.npy",
        "--input",
        f"scores={folder}/scores.npy",
        "--tensors-output",
        out,
        *options,
    )
    assert done.code == 0, done.text
    return [np.load(out / f"{n}.npy") for n in ("out_boxes", "out_scores", "first")]


def expected(boxes, scores):
    """By the definition, in binary32."""
    places = np.flatnonzero(scores > np.float32(0.5))
    places = places[np.argsort(-scores[places], kind="stable")][:KEPT]
    kept = []
    for i in places:
        a = boxes[i]

        def hides(j):
            b = boxes[j]
            width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            if not (width > 0 and height > 0):
                return False
            common = width * height
            return common / (
                (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
            ) > np.float32(0.4)

        if not any(hides(j) for j in kept):
            kept.append(i)
    return boxes[kept], scores[kept], scores[kept][:3]


@pytest.mark.parametrize("above", [0, 1, 2, 39, 40, 41, 300, 500])
def test_detections(plan, above):
    boxes, scores = pictures(above, above)
    found = detect(plan, boxes, scores, "--threads", 1)
    for got, want in zip(found, expected(boxes, scores)):
        assert got.shape == want.shape and got.tobytes() == want.tobytes()
    for options in (["--threads", 3], ["--isa", "scalar"], ["--isa", "reference"]):
        assert [x.tobytes() for x in detect(plan, boxes, scores, *options)] == [
            x.tobytes() for x in found
        ], options


def test_other_numbers_of_boxes(plan):
    boxes, scores = pictures(7, 300)
    for n in (0, 1, 250):
        for got, want in zip(detect(plan, boxes[:n], scores[:n]), expected(boxes[:n], scores[:n])):
            assert got.tobytes() == want.tobytes()


def test_it_tells_its_memory_and_sizes(plan):
    done = invar(
        "compile", plan / "model.onnx", "--output", plan / "again.invar", "--size", "nonzero_0=10"
    )
    assert done.code == 0 and "nonzero_0=10" in done.text
    refused(
        "infer", plan / "plan.invar", "--tokens", "1,2", code=3, names=["a session feeds input_ids"]
    )
