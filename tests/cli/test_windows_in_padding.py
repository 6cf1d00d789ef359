"""Windows that lie wholly in the padding take neither time nor memory. If they did, these programs
could not run."""

import numpy as np
from conftest import invar
from node_models import F32, model, node, numbers


def outputs(path, tmp_path, array, *options):
    plan, out = tmp_path / "plan.invar", tmp_path / "out"
    out.mkdir(exist_ok=True)
    np.save(tmp_path / "x.npy", array)
    invar("compile", path, "--output", plan)
    invar(
        "infer",
        plan,
        "--input",
        f"x={tmp_path}/x.npy",
        "--tensors-output",
        out,
        *options,
        timeout=60,
    )
    return np.load(out / "y.npy")


def test_dilated_convolution(tmp_path):
    """A padded copy would take 250 GB. Only the middle tap is inside the operand, so the result is
    that of a convolution of 1 x 1."""
    w, x = (
        np.round(8 * numbers(*shape)) for shape in ((32, 40, 3, 3), (1, 40, 2, 2))
    )  # whose sums are exact
    far = 20000
    path = model(
        tmp_path / "far.onnx",
        [node("Conv", ["x", "w"], ["y"], dilations=[far, far], pads=[far] * 4)],
        [("x", F32, [1, 40, 2, 2])],
        [("y", F32)],
        [("w", w)],
    )
    y = outputs(path, tmp_path, x)
    path = model(
        tmp_path / "near.onnx",
        [node("Conv", ["x", "w"], ["y"])],
        [("x", F32, [1, 40, 2, 2])],
        [("y", F32)],
        [("w", w[:, :, 1:2, 1:2])],
    )
    assert outputs(path, tmp_path, x).tobytes() == y.tobytes()
    for isa in ("reference", "scalar"):
        assert outputs(tmp_path / "far.onnx", tmp_path, x, "--isa", isa).tobytes() == y.tobytes()


def test_windows_of_millions_of_places(tmp_path):
    """2 * 10^13 places, of which three in a window are elements."""
    x = np.array([[[3, -4, 0]]], np.float32)
    shape = {"kernel_shape": [4_000_000], "pads": [4_000_000, 4_000_000]}
    for op, expected in (
        ("MaxPool", 3),
        ("AveragePool", -np.float32(1) / np.float32(3)),
        ("LpPool", 5),
    ):
        path = model(
            tmp_path / "m.onnx",
            [node(op, ["x"], ["y"], **shape)],
            [("x", F32, [1, 1, 3])],
            [("y", F32)],
        )
        y = outputs(path, tmp_path, x)
        assert y.shape == (1, 1, 4_000_004)
        assert y[0, 0, 2_000_000].tobytes() == np.float32(expected).tobytes()
        assert outputs(path, tmp_path, x, "--isa", "reference").tobytes() == y.tobytes()
