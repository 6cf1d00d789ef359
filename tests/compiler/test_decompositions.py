"""Operators that are compositions, on numbers with few bits, where every order of operations gives
the exact result: the bytes of ONNX's reference. What rounds is in test_onnx_nodes.py."""

import numpy as np
import pytest
import torch
from conftest import invar, refused
from onnx import TensorProto, helper, save
from onnx.helper import make_node, make_opsetid, make_tensor_value_info, np_dtype_to_tensor_dtype
from onnx.reference import ReferenceEvaluator


def draw(shape, seed=0, step=0.5, limit=8):
    """Multiples of `step`."""
    return (np.random.default_rng(seed).integers(-limit, limit + 1, shape) * step).astype(
        np.float32
    )


def made(node, inputs, opset, outputs=None):
    ports = [
        make_tensor_value_info(n, np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in inputs.items()
    ]
    results = [
        make_tensor_value_info(n, (outputs or {}).get(n, TensorProto.FLOAT), None)
        for n in node.output
    ]
    graph = helper.make_graph([node], "g", ports, results)
    return helper.make_model(graph, opset_imports=[make_opsetid("", opset)], ir_version=10)


def run(folder, model, inputs, bound=()):
    save(model, folder / "m.onnx")
    given = {}
    for name, value in inputs.items():
        given[name] = folder / f"in.{name}.npy"
        np.save(given[name], value)
    invar("compile", folder / "m.onnx", *[a for n in bound for a in ("--bind", f"{n}={given[n]}")])
    invar(
        "infer",
        folder / "plan.invar",
        "--tensors-output",
        folder,
        *[a for n in inputs if n not in bound for a in ("--input", f"{n}={given[n]}")],
    )
    return [np.load(folder / f"{v.name}.npy") for v in model.graph.output]


def agrees(folder, op, attributes, inputs, opset=22, bound=(), outputs=("y",), types=None):
    node = make_node(op, list(inputs), list(outputs), **attributes)
    model = made(node, inputs, opset, types)
    expected = ReferenceEvaluator(model).run(None, inputs)
    found = run(folder, model, inputs, bound)
    for f, e in zip(found, expected):
        e = np.asarray(e)
        assert f.shape == e.shape
        assert (f + np.zeros((), f.dtype)).tobytes() == (
            e.astype(f.dtype) + np.zeros((), f.dtype)
        ).tobytes()  # -0 is 0


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample(tmp_path, mode, corners, padding):
    side = 5 if corners else 4  # where the steps between pixels are powers of two
    # Nearest is tried off the middle between pixels: there, reflected coordinates end at pixels
    # that differ in ONNX's own tests.
    grid = draw(
        (2, 3, 4, 2), 1, 1 / 8 if mode != "nearest" else 5 / 16, 15 if mode != "nearest" else 5
    )
    attributes = {"mode": mode, "align_corners": corners, "padding_mode": padding}
    inputs = {"x": draw((2, 3, side, side)), "g": grid}
    if (mode, padding) != ("cubic", "border"):
        return agrees(tmp_path, "GridSample", attributes, inputs)
    # The reference clamps the coordinate, PyTorch and ONNX Runtime the taps.
    model = made(make_node("GridSample", list(inputs), ["y"], **attributes), inputs, 22)
    (y,) = run(tmp_path, model, inputs)
    operands = map(torch.from_numpy, inputs.values())
    wanted = torch.nn.functional.grid_sample(*operands, "bicubic", padding, bool(corners))
    assert y.tobytes() == wanted.numpy().tobytes()


def test_grid_sample_of_volumes(tmp_path):
    agrees(
        tmp_path,
        "GridSample",
        {"mode": "linear", "padding_mode": "border"},
        {"x": draw((1, 2, 4, 2, 8)), "g": draw((1, 2, 3, 2, 3), 1, 1 / 4, 6)},
    )


@pytest.mark.parametrize("size", [[2, 1, 4, 8], [2, 1, 2, 4, 8]])
def test_affine_grid(tmp_path, size):
    k = len(size) - 2
    inputs = {"theta": draw((2, k, k + 1)), "size": np.array(size, np.int64)}
    agrees(tmp_path, "AffineGrid", {}, inputs, bound=["size"])


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("shift", ["half_pixel", "output_half_pixel"])
def test_roi_align(tmp_path, mode, shift):
    rois = np.array([[0, 0, 8, 8], [-6, 2, 2, 10], [4, 4, 12, 20], [3, 3, 3, 3]], np.float32)
    agrees(
        tmp_path,
        "RoiAlign",
        {
            "mode": mode,
            "coordinate_transformation_mode": shift,
            "output_height": 4,
            "output_width": 2,
            "sampling_ratio": 2,
            "spatial_scale": 0.5,
        },
        {"x": draw((2, 3, 8, 9)), "rois": rois, "which": np.array([1, 0, 1, 0])},
    )


@pytest.mark.parametrize("groups,offsets", [(1, 1), (2, 1), (1, 2), (2, 4)])
def test_deform_conv(tmp_path, groups, offsets):
    inputs = {
        "x": draw((2, 4, 5, 5)),
        "w": draw((2, 4 // groups, 2, 3), 1),
        "o": draw((2, offsets * 12, 5, 2), 2, 1 / 4, 6),
        "b": draw(2, 3),
        "m": draw((2, offsets * 6, 5, 2), 4),
    }
    agrees(
        tmp_path,
        "DeformConv",
        {
            "group": groups,
            "offset_group": offsets,
            "kernel_shape": [2, 3],
            "pads": [1, 0, 1, 0],
            "dilations": [2, 1],
            "strides": [1, 2],
        },
        inputs,
    )


@pytest.mark.parametrize(
    "image,block,attributes",
    [
        ([5, 5], [1, 5], {}),
        ([6, 7], [2, 3], {"strides": [2, 1], "pads": [0, 1, 2, 1]}),
        ([6, 6], [2, 2], {"dilations": [1, 5]}),
        ([3, 4, 5], [1, 1, 5], {}),
    ],
)
def test_col2im(tmp_path, image, block, attributes):
    k = len(image)
    pads, strides, dilations = (
        attributes.get("pads", [0] * 2 * k),
        attributes.get("strides", [1] * k),
        attributes.get("dilations", [1] * k),
    )
    windows = np.prod(
        [
            (n + pads[d] + pads[k + d] - (block[d] - 1) * dilations[d] - 1) // strides[d] + 1
            for d, n in enumerate(image)
        ]
    )
    inputs = {
        "x": draw((2, 3 * np.prod(block), windows)),
        "image": np.array(image),
        "block": np.array(block),
    }
    agrees(tmp_path, "Col2Im", attributes, inputs, bound=["image", "block"])


def test_what_is_outside_an_image_stays_there(tmp_path):
    """An infinity in the pads reaches no pixel."""
    x = np.ones((1, 3, 3), np.float32)
    x[0, 0, 0] = np.inf  # the first element of the first window
    inputs = {"x": x, "image": np.array([1, 3]), "block": np.array([1, 3])}
    node = make_node("Col2Im", list(inputs), ["y"], pads=[0, 1, 0, 1])
    (y,) = run(tmp_path, made(node, inputs, 22), inputs, ["image", "block"])
    assert y.ravel().tolist() == [2, 3, 2]


def test_max_unpool(tmp_path):
    inputs = {
        "x": draw((1, 2, 2, 2)),
        "i": np.array([0, 3, 9, 14, 17, 20, 26, 31]).reshape(1, 2, 2, 2),
    }
    agrees(tmp_path, "MaxUnpool", {"kernel_shape": [2, 2], "strides": [2, 2]}, inputs)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_det(tmp_path, n):
    # NumPy eliminates, which rounds; permutations of signed powers of two it does not.
    eye = np.eye(n, dtype=np.float32)[np.random.default_rng(n).permutation(n)] * np.float32(
        [-2, 4, 0.5, -1, 8][:n]
    )
    agrees(tmp_path, "Det", {}, {"x": np.stack([eye, -eye, 2 * eye])})


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12, 400])
@pytest.mark.parametrize("inverse", [0, 1])
def test_tables_of_dft(tmp_path, n, inverse):
    """The transform of an impulse at 1 is a column of the table; the last bits of an inverse are
    those of a division."""
    x = np.zeros((1, n, 2), np.float32)
    x[0, 1 % n, 0] = n if inverse else 1
    inputs = {"x": x}
    (y,) = run(tmp_path, made(make_node("DFT", ["x"], ["y"], inverse=inverse), inputs, 20), inputs)
    angle = 2 * np.pi * np.arange(n) / n * (1 % n)
    expected = (
        np.stack([np.cos(angle), (1 if inverse else -1) * np.sin(angle)], -1)
        .round(15)
        .astype(np.float32)
    )
    if not inverse:
        assert (y[0] + 0).tobytes() == (expected + 0).tobytes()
    else:
        column = run(tmp_path, made(make_node("DFT", ["x"], ["y"]), inputs, 20), inputs)[0][0]
        assert (y[0, :, 0] + 0).tobytes() == (column[:, 0] / np.float32(n) + 0).tobytes()


def test_transforms_of_an_open_length(tmp_path):
    """Of integers, where tables hold 1, 0 and -1, the numbers themselves; elsewhere an element of
    the table is off by 1.2e-7 at most."""
    constants = [
        helper.make_tensor("l", TensorProto.INT64, [1], [1]),
        helper.make_tensor("one", TensorProto.INT64, [], [1]),
    ]
    nodes = [
        make_node("Shape", ["x"], ["s"]),
        make_node("Gather", ["s", "one"], ["n"]),
        make_node("DFT", ["x", "n", "one"], ["y"]),
        make_node("DFT", ["y", "", "one"], ["back"], inverse=1),
        make_node("DFT", ["x", "", "one"], ["half"], onesided=1),
        make_node("DFT", ["y", "n", "one"], ["twice"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "n", 1])],
        [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, None)
            for n in ("y", "back", "half", "twice")
        ],
        constants,
    )
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9),
        tmp_path / "m.onnx",
    )
    invar("compile", tmp_path / "m.onnx")

    def transforms(x):
        np.save(tmp_path / "x.npy", x)
        invar(
            "infer",
            tmp_path / "plan.invar",
            "--tensors-output",
            tmp_path,
            "--input",
            f"x={tmp_path / 'x.npy'}",
        )
        return [np.load(tmp_path / f"{n}.npy") for n in ("y", "back", "half", "twice")]

    def parts(z):
        return np.stack([z.real, z.imag], -1).round(9).astype(np.float32) + 0

    for n in 1, 2, 4:
        x = np.random.default_rng(n).integers(-9, 9, (3, n, 1)).astype(np.float32)
        y, back, half, twice = transforms(x)
        z = np.fft.fft(x[..., 0].astype(np.float64), axis=1)
        assert (y + 0).tobytes() == parts(z).tobytes() and (half + 0).tobytes() == parts(
            z[:, : n // 2 + 1]
        ).tobytes()
        assert (back + 0).tobytes() == parts(x[..., 0].astype(complex)).tobytes()
        assert (twice + 0).tobytes() == parts(np.fft.fft(z, axis=1)).tobytes()
    for n in 3, 5, 7, 12, 100, 400:
        x = np.zeros((1, n, 1), np.float32)
        x[0, 1] = 1
        angle = 2 * np.pi * np.arange(n) / n
        assert (
            np.abs(transforms(x)[0][0] - np.stack([np.cos(angle), -np.sin(angle)], -1)).max()
            <= 1.2e-7
        )


def test_real_transforms_are_halves(tmp_path):
    """Of integers: one side is the front of both, and back again with a power of two."""
    x = np.random.default_rng(0).integers(-9, 9, (2, 4, 3, 1)).astype(np.float32)
    axis = {"length": np.int64(4), "axis": np.int64(1)}
    inputs = {"x": x, **{k: np.array(v) for k, v in axis.items()}}
    (full,) = run(
        tmp_path, made(make_node("DFT", list(inputs), ["y"]), inputs, 20), inputs, list(axis)
    )
    (half,) = run(
        tmp_path,
        made(make_node("DFT", list(inputs), ["y"], onesided=1), inputs, 20),
        inputs,
        list(axis),
    )
    assert half.tobytes() == np.ascontiguousarray(full[:, :3]).tobytes()
    inputs["x"] = half
    (back,) = run(
        tmp_path,
        made(make_node("DFT", list(inputs), ["y"], onesided=1, inverse=1), inputs, 20),
        inputs,
        list(axis),
    )
    assert back.tobytes() == x.tobytes()


def test_stft_is_dft_of_frames(tmp_path):
    inputs = {"x": draw((2, 20, 1)), "step": np.array(3), "window": draw(8, 1)}
    (y,) = run(tmp_path, made(make_node("STFT", list(inputs), ["y"]), inputs, 17), inputs, ["step"])
    frames = np.stack(
        [inputs["x"][:, i : i + 8] * inputs["window"][:, None] for i in range(0, 13, 3)], 1
    )
    again = {"x": frames}
    (z,) = run(tmp_path, made(make_node("DFT", ["x"], ["y"], axis=2, onesided=1), again, 17), again)
    assert y.shape == (2, 5, 5, 2) and y.tobytes() == z.tobytes()


GRAMS = {
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 5, 6, 9],
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    "max_gram_length": 2,
}


@pytest.mark.parametrize("mode,least,skips", [("TF", 1, 5), ("IDF", 2, 0), ("TFIDF", 1, 1)])
def test_ngrams(tmp_path, mode, least, skips):
    """Every window of a row, with every skip, against the pool."""
    x = np.random.default_rng(3).integers(1, 9, (3, 12)).astype(np.int32)
    weights = [0.5, 2.0, 1.0, 3.0, 4.0, 8.0, 0.25]
    attributes = {
        **GRAMS,
        "mode": mode,
        "min_gram_length": least,
        "max_skip_count": skips,
        **({"weights": weights} if mode != "TF" else {}),
    }
    pool = [(2,), (3,), (5,), (4,), (5, 6), (7, 8), (6, 7)]
    expected = np.zeros((3, 10), np.float32)
    for row, out in zip(x.tolist(), expected):
        for gram, column, weight in zip(pool, GRAMS["ngram_indexes"], weights):
            steps = [1] if len(gram) == 1 else range(1, skips + 2)
            count = (
                sum(tuple(row[i::s][: len(gram)]) == gram for s in steps for i in range(12))
                if len(gram) >= least
                else 0
            )
            out[column] = {"TF": count, "IDF": (count > 0) * weight, "TFIDF": count * weight}[mode]
    inputs = {"x": x}
    (y,) = run(
        tmp_path, made(make_node("TfIdfVectorizer", ["x"], ["y"], **attributes), inputs, 9), inputs
    )
    assert expected.any() and y.tobytes() == expected.tobytes()


I64 = TensorProto.INT64


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.bool_, np.int8])
def test_non_zero(tmp_path, kind):
    x = np.random.default_rng(1).integers(-1, 2, (3, 4, 2)).astype(kind)
    agrees(tmp_path, "NonZero", {}, {"x": x}, bound=["x"], types={"y": I64})


@pytest.mark.parametrize(
    "attributes", [{}, {"sorted": 0}, {"axis": 0}, {"axis": 1}, {"axis": -1, "sorted": 1}]
)
def test_unique(tmp_path, attributes):
    x = (
        np.random.default_rng(1)
        .integers(-1, 2, (5, 3) if "axis" in attributes else (9,))
        .astype(np.float32)
    )
    agrees(
        tmp_path,
        "Unique",
        attributes,
        {"x": x},
        bound=["x"],
        outputs=("y", "i", "j", "n"),
        types={"i": I64, "j": I64, "n": I64},
    )


def test_unique_nans_and_zeros(tmp_path):
    x = np.array([np.nan, -0.0, 1, 0.0, np.nan, -np.inf], np.float32)
    node = make_node("Unique", ["x"], ["y", "i", "j", "n"])
    y, i, j, n = run(
        tmp_path, made(node, {"x": x}, 11, {"i": I64, "j": I64, "n": I64}), {"x": x}, ["x"]
    )
    assert (
        i.tolist() == [5, 1, 2, 0]
        and j.tolist() == [3, 1, 2, 1, 3, 0]
        and n.tolist() == [1, 2, 1, 2]
        and y.tobytes() == x[i].tobytes()
    )


@pytest.mark.parametrize("threshold,most", [(0.5, 3), (0.25, 2), (0.0, 9), (0.5, 0)])
@pytest.mark.parametrize("attributes", [{}, {"center_point_box": 1}])
def test_non_max_suppression(tmp_path, threshold, most, attributes):
    boxes = np.random.default_rng(2).integers(0, 12, (2, 9, 4)).astype(np.float32)
    scores = np.random.default_rng(3).integers(0, 6, (2, 3, 9)).astype(np.float32)  # many are equal
    inputs = {
        "b": boxes,
        "s": scores,
        "m": np.array([most]),
        "o": np.array([threshold], np.float32),
        "l": np.array([1.0], np.float32),
    }
    agrees(
        tmp_path,
        "NonMaxSuppression",
        attributes,
        inputs,
        bound=list(inputs),
        types={"y": I64},
        opset=11,
    )


@pytest.mark.parametrize(
    "equation,shapes",
    [
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,jk", [(2, 1, 3, 4), (4, 5)]),
        ("...i,...i->...", [(3, 1, 4), (1, 2, 4)]),
        ("...ii->...i", [(3, 5, 5)]),
        ("ii", [(4, 4)]),
        ("iij,jkk->ik", [(3, 3, 2), (2, 4, 4)]),
        ("i...->...", [(3, 2, 2)]),
    ],
)
def test_einsum(tmp_path, equation, shapes):
    inputs = {f"x{i}": draw(s, i) for i, s in enumerate(shapes)}
    (y,) = run(
        tmp_path,
        made(make_node("Einsum", list(inputs), ["y"], equation=equation), inputs, 12),
        inputs,
    )
    expected = np.einsum(equation, *inputs.values())
    assert (
        y.shape == expected.shape
        and (y + 0).tobytes() == (expected.astype(np.float32) + 0).tobytes()
    )


@pytest.mark.parametrize(
    "op,attributes,inputs,opset,code,name",
    [
        (
            "RoiAlign",
            {},
            {"x": draw((1, 1, 4, 4)), "r": draw((1, 4)), "b": np.array([0])},
            16,
            3,
            "sampling_ratio",
        ),
        (
            "RoiAlign",
            {"sampling_ratio": 2, "output_height": 2**40},
            {"x": draw((1, 1, 4, 4)), "r": draw((1, 4)), "b": np.array([0])},
            16,
            3,
            "4096",
        ),
        (
            "NonMaxSuppression",
            {},
            {"b": draw((1, 5, 4)), "s": draw((1, 2, 6))},
            11,
            2,
            "numbers of boxes and scores",
        ),
        ("Unique", {"axis": 0}, {"x": draw((3, 2))}, 13, 3, "--bind x=FILE.npy"),
        (
            "Attention",
            {"qk_matmul_output_mode": 256, "softcap": 2.0},
            {n: draw((1, 2, 3, 4)) for n in "qkv"},
            23,
            2,
            "qk_matmul_output_mode",
        ),
        ("Det", {}, {"x": draw((6, 6))}, 11, 3, "6 rows"),
        ("Det", {}, {"x": draw((2, 3))}, 11, 2, "as many rows"),
        (
            "GridSample",
            {},
            {"x": draw((1, 1, 4, 4)), "g": draw((1, 2, 2, 3))},
            20,
            2,
            "[1, 2, 2, 3]",
        ),
        (
            "GridSample",
            {"mode": "cubic"},
            {"x": draw((1, 1, 4, 4, 4)), "g": draw((1, 2, 2, 2, 3))},
            20,
            3,
            "cubic",
        ),
        ("DFT", {}, {"x": draw((1, 8192, 1))}, 20, 3, "length 8192"),
        ("DFT", {}, {"x": draw((1, 4, 3))}, 20, 2, "instead of 1 or 2"),
        (
            "TfIdfVectorizer",
            {**GRAMS, "mode": "TF", "min_gram_length": 1, "max_skip_count": 2**40},
            {"x": np.zeros(12, np.int32)},
            9,
            3,
            "32 skips",
        ),
        (
            "Einsum",
            {"equation": "...i,...j->ij"},
            {"x": draw((2, 3))},
            12,
            2,
            "operand 1 is missing",
        ),
        (
            "DeformConv",
            {},
            {
                "x": draw((1, 1, 3, 3)),
                "w": draw((1, 1, 2, 2)).astype(np.complex64),
                "o": draw((1, 8, 2, 2)),
            },
            19,
            3,
            "complex<f32>",
        ),
        (
            "MaxUnpool",
            {"kernel_shape": [2, 2], "strides": [2**40, 1]},
            {"x": draw((1, 1, 2, 2)), "i": np.zeros((1, 1, 2, 2), np.int64)},
            11,
            3,
            "strides",
        ),
    ],
)
def test_refusals(tmp_path, op, attributes, inputs, opset, code, name):
    save(made(make_node(op, list(inputs), ["y"], **attributes), inputs, opset), tmp_path / "m.onnx")
    refused("compile", tmp_path / "m.onnx", code=code, names=[op, name])


def test_lengths_that_are_no_list(tmp_path):
    inputs = {**{n: draw((1, 2, 3, 4)) for n in "qkv"}, "n": np.array(3)}
    save(
        made(
            make_node("Attention", [*"qkv", "", "", "", "n"], ["y"], softmax_precision=11),
            inputs,
            24,
        ),
        tmp_path / "m.onnx",
    )
    refused("compile", tmp_path / "m.onnx", code=2, names=["Attention", "lengths"])
