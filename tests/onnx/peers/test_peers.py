"""Operators that become compositions, and resampling, on the edges of their domains: what PyTorch
and ONNX Runtime compute. Where these two disagree, docs/reference/onnx-peers.md says whom Invar
follows."""

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from conftest import invar, refused
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(11)
TRANSFORMS = "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric".split()
ROUNDINGS = "round_prefer_floor round_prefer_ceil floor ceil".split()


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


class Model:
    """Nodes of one model, each with operands of its own."""

    def __init__(self):
        self.nodes, self.inputs, self.weights, self.results = [], {}, [], []
        self.types = {}  # of results that are not f32

    def add(self, op, attributes, x, *constants, results=1):
        """The names of the results. x is an input, the others are constants; None: absent."""
        tag = f"n{len(self.nodes)}"
        names = [f"{tag}_{i}" if a is not None else "" for i, a in enumerate((x, *constants))]
        self.inputs[names[0]] = x
        self.weights += [
            numpy_helper.from_array(np.asarray(a), n)
            for n, a in zip(names[1:], constants)
            if a is not None
        ]
        made = [f"{tag}_y{i}" for i in range(results)]
        self.nodes.append(helper.make_node(op, names, made, name=tag, **attributes))
        self.results += made
        return made

    def made(self, opset):
        ports = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in self.inputs.items()
        ]
        outputs = [
            helper.make_tensor_value_info(n, self.types.get(n, TensorProto.FLOAT), None)
            for n in self.results
        ]
        graph = helper.make_graph(self.nodes, "g", ports, outputs, self.weights)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9
        )

    def run(self, folder, opset=20):
        """Result -> what Invar computes, and what ONNX Runtime does."""
        model = self.made(opset)
        onnx.save(model, folder / "m.onnx")
        given = []
        for name, x in self.inputs.items():
            np.save(folder / f"{name}.in.npy", x)
            given += ["--input", f"{name}={folder}/{name}.in.npy"]
        invar("compile", folder / "m.onnx", "--output", folder / "plan.invar")
        invar("infer", folder / "plan.invar", "--tensors-output", folder, *given)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        theirs = session.run(self.results, self.inputs)
        return {n: np.load(folder / f"{n}.npy") for n in self.results}, dict(
            zip(self.results, theirs)
        )


def coordinates(how, n, m, scale):
    """Exact but for binary64."""
    i = np.arange(m, dtype=np.float64)
    if how == "align_corners":
        return i * (n - 1) / max(m - 1, 1)
    if how == "asymmetric":
        return i / scale
    moved = n / 2 * (1 - m / (scale * n)) if how == "half_pixel_symmetric" else 0
    return moved + (i + 0.5) / scale - 0.5


def test_nearest_by_scales_selects_what_onnx_runtime_selects(tmp_path):
    """In binary64 77 of 160 such cases select another element somewhere."""
    model, ties = Model(), {}
    for k, (how, rounding) in enumerate(itertools.product(TRANSFORMS, ROUNDINGS * 10)):
        n, scale = int(RNG.integers(2, 60)), np.float32(round(RNG.uniform(0.3, 3.5), 1 + k % 2))
        m = int(np.floor(np.float32(n) * scale))
        if m == n or m < 2:
            continue  # ONNX Runtime copies where no length changes
        attributes = {"coordinate_transformation_mode": how, "nearest_mode": rounding}
        x = np.arange(n, dtype=np.float32)[None, None]
        (y,) = model.add("Resize", attributes, x, None, np.array([1, 1, scale], np.float32))
        # It also takes what is almost a half for one.
        at = coordinates(how, n, m, float(scale))
        ties[y] = (abs(at - np.floor(at) - 0.5) < 4e-6) & ("prefer" in rounding)
    ours, theirs = model.run(tmp_path)
    assert len(ours) > 180
    for y, tie in ties.items():
        assert (tie | (ours[y][0, 0] == theirs[y][0, 0])).all(), y


def test_nearest_of_pytorch(tmp_path):
    """Scales by which PyTorch, which multiplies by a reciprocal, selects what a quotient does; 11 /
    2.2 is 5 in binary32, and below it in binary64."""
    model, wanted = Model(), {}
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for n, scale in [(20, 2.2), (7, 2.2), (30, 0.7), (12, 1.3), (9, 4.4)]:
        x = numbers(1, 2, n)
        (y,) = model.add("Resize", attributes, x, None, np.array([1, 1, scale], np.float32))
        wanted[y] = F.interpolate(
            torch.from_numpy(x), scale_factor=scale, mode="nearest", recompute_scale_factor=False
        ).numpy()
    ours, theirs = model.run(tmp_path)
    for y, array in wanted.items():
        assert ours[y].tobytes() == theirs[y].tobytes() == array.tobytes()


def test_plans_with_coordinates_in_binary64_still_run(tmp_path):
    """The plan of a model whose scale is 2.2 says coordinates 12; with 4 it is a plan of an earlier
    version and has that version's result."""
    model = Model()
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    x = np.arange(20, dtype=np.float32)[None, None]
    (y,) = model.add("Resize", attributes, x, None, np.array([1, 1, 2.2], np.float32))
    ours, _ = model.run(tmp_path)
    assert ours[y][0, 0, 11] == 5
    plan = tmp_path / "plan.invar"
    text = plan.read_text()
    (line,) = [part for part in text.split("\n") if "= resize.1(" in part]
    assert "coordinates=12" in line
    earlier = line.replace("coordinates=12", "coordinates=4")
    plan = tmp_path / "earlier.invar"
    plan.write_text(text.replace(line, earlier))
    invar("infer", plan, "--tensors-output", tmp_path, "--input", f"n0_0={tmp_path}/n0_0.in.npy")
    assert np.load(tmp_path / f"{y}.npy")[0, 0, 11] == 4


@pytest.mark.parametrize("mode,theirs_mode", [("linear", "bilinear"), ("cubic", "bicubic")])
def test_aligned_corners_by_fractional_scales(tmp_path, mode, theirs_mode):
    model, wanted = Model(), {}
    attributes = {"coordinate_transformation_mode": "align_corners", "mode": mode}
    for scale in (0.6, 1.3, 2.25, 1.7):
        x = numbers(1, 2, 7, 5)
        scales = np.array([1, 1, scale, scale], np.float32)
        (y,) = model.add("Resize", attributes, x, None, scales)
        size = [int(np.float32(n) * np.float32(scale)) for n in x.shape[2:]]
        wanted[y] = F.interpolate(
            torch.from_numpy(x), size=size, mode=theirs_mode, align_corners=True
        ).numpy()
    ours, theirs = model.run(tmp_path)
    for y, array in wanted.items():
        np.testing.assert_allclose(ours[y], array, 1e-5, 1e-5)
        np.testing.assert_allclose(ours[y], theirs[y], 1e-5, 1e-5)


def test_aligned_corners_of_an_open_size(tmp_path):
    node = helper.make_node(
        "Resize",
        ["x", "", "s"],
        ["y"],
        mode="linear",
        coordinate_transformation_mode="align_corners",
    )
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g",
        [info("x", TensorProto.FLOAT, [1, 1, "n"])], [info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([1, 1, 1.5], np.float32), "s")],
    )  # fmt: skip
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9),
        tmp_path / "m.onnx",
    )
    invar("compile", tmp_path / "m.onnx", "--output", tmp_path / "plan.invar")
    x = numbers(1, 1, 5)
    np.save(tmp_path / "x.npy", x)
    run = ["infer", tmp_path / "plan.invar", "--tensors-output", tmp_path / "out"]
    invar(*run, "--input", f"x={tmp_path}/x.npy")
    wanted = F.interpolate(torch.from_numpy(x), size=7, mode="linear", align_corners=True)
    np.testing.assert_allclose(np.load(tmp_path / "out/y.npy"), wanted.numpy(), 1e-5, 1e-6)


def test_grid_sample_beyond_the_picture(tmp_path):
    model, wanted = Model(), {}
    x, grid = numbers(2, 3, 5, 6), RNG.uniform(-2.5, 2.5, (2, 4, 7, 2)).astype(np.float32)
    grid[0, 0, :4] = [[-1, -1], [1, 1], [-1, 1], [0, 0]]
    names = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}
    for mode, padding, corners in itertools.product(
        names, ("zeros", "border", "reflection"), (0, 1)
    ):
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        (y,) = model.add("GridSample", attributes, x, grid)
        args = torch.from_numpy(x), torch.from_numpy(grid), names[mode], padding, bool(corners)
        wanted[y] = F.grid_sample(*args).numpy()
    ours, theirs = model.run(tmp_path)
    for y, array in wanted.items():
        np.testing.assert_allclose(ours[y], array, 1e-5, 2e-6)
        np.testing.assert_allclose(ours[y], theirs[y], 1e-5, 2e-6)


def test_compositions_equal_both_peers(tmp_path):
    model, wanted = Model(), {}

    def add(op, attributes, operands, value, results=1):
        names = model.add(op, attributes, *operands, results=results)
        wanted[names[0]] = value.numpy()

    of = torch.from_numpy
    pooled, at = F.max_pool2d(of(numbers(1, 2, 5, 7)), 2, return_indices=True)
    at = at + torch.arange(2).view(1, 2, 1, 1) * 35  # ONNX counts over all planes
    unpooled = F.max_unpool2d(
        pooled, at - torch.arange(2).view(1, 2, 1, 1) * 35, 2, output_size=(5, 7)
    )
    shape = np.array([1, 2, 5, 7])
    add("MaxUnpool", {"kernel_shape": [2, 2], "strides": [2, 2]}, [pooled.numpy(), at.numpy(), shape],
        unpooled)  # fmt: skip
    columns = numbers(1, 2 * 4, 12)
    add("Col2Im", {"pads": [0, 0, 0, 0]}, [columns, np.array([4, 5]), np.array([2, 2])],
        F.fold(of(columns), (4, 5), (2, 2)))  # fmt: skip
    square = numbers(3, 4, 4)
    add("Det", {}, [square], torch.linalg.det(of(square)))
    theta = numbers(2, 2, 3)
    for corners in (0, 1):
        grid = F.affine_grid(of(theta), (2, 3, 4, 5), align_corners=bool(corners))
        add("AffineGrid", {"align_corners": corners}, [theta, np.array([2, 3, 4, 5])], grid)
    for equation, shapes in [
        ("ab,bc->ac", [(3, 4), (4, 5)]),
        ("ab,bc->ac", [(3, 1), (4, 5)]),
        ("ab,ab->ab", [(3, 1), (3, 4)]),
        ("ab,ab->a", [(1, 4), (3, 4)]),
        ("bij,bjk", [(1, 2, 3), (5, 3, 4)]),
        ("...a,...a->...", [(2, 1, 3), (1, 4, 3)]),
        ("ii->i", [(3, 3)]),
    ]:
        arrays = [numbers(*s) for s in shapes]
        add("Einsum", {"equation": equation}, arrays, torch.einsum(equation, *map(of, arrays)))
    cell, x = torch.nn.LSTM(4, 3), numbers(5, 2, 4)
    gates = lambda w: np.concatenate([w[:3], w[9:], w[3:9]])[None]  # noqa: E731: i f g o -> i o f g
    w, r, *b = (gates(p.detach().numpy()) for p in cell.parameters())
    add("LSTM", {"hidden_size": 3}, [x, w, r, np.concatenate(b, 1)],
        cell(of(x))[0].detach().view(5, 1, 2, 3))  # fmt: skip
    ours, theirs = model.run(tmp_path)
    for y, array in wanted.items():
        np.testing.assert_allclose(ours[y], array, 2e-5, 2e-5, err_msg=y)
        np.testing.assert_allclose(ours[y], theirs[y], 2e-5, 2e-5, err_msg=y)


@pytest.mark.parametrize("op,gates", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_clip_of_recurrent_networks(tmp_path, op, gates):
    model = Model()
    operands = [3 * numbers(6, 2, 4), numbers(1, gates * 3, 4), numbers(1, gates * 3, 3)]
    for clip in (0.4, 2.5):
        model.add(op, {"hidden_size": 3, "clip": clip}, *operands, numbers(1, gates * 6))
    ours, theirs = model.run(tmp_path)
    for y in ours:
        np.testing.assert_allclose(ours[y], theirs[y], 1e-5, 1e-6)
    model = Model()
    model.add(op, {"hidden_size": 3, "clip": -1.0}, *operands)
    onnx.save(model.made(20), tmp_path / "m.onnx")
    refused("compile", tmp_path / "m.onnx", names=[op, "clip"])


def test_reductions_over_no_axes(tmp_path):
    """Each element alone (ONNX since 1.20)."""
    model, x = Model(), np.abs(numbers(2, 3)) + 0.1
    kept = {"noop_with_empty_axes": 1}
    wanted = {
        "ReduceSumSquare": x * x, "ReduceL1": x, "ReduceL2": x, "ReduceLogSum": np.log(x),
        "ReduceLogSumExp": x, "ReduceSum": x, "ReduceMax": x, "ReduceMean": x,
    }  # fmt: skip
    names = {op: model.add(op, kept, x)[0] for op in wanted}
    ours, theirs = model.run(tmp_path)
    for op, y in names.items():
        np.testing.assert_allclose(ours[y], theirs[y], 1e-6, err_msg=op)
        np.testing.assert_allclose(ours[y], wanted[op], 1e-6, err_msg=op)


def test_integer_products(tmp_path):
    """Modulo 2^n, as NumPy has them."""
    model, wanted = Model(), {}
    for dtype in (np.int32, np.int64, np.uint32, np.uint64):
        a = RNG.integers(0, 2**31 - 1, (2, 3, 4)).astype(dtype)
        b, c = (RNG.integers(0, 2**31 - 1, s).astype(dtype) for s in ((4, 5), (5,)))
        with np.errstate(over="ignore"):
            wanted[model.add("MatMul", {}, a, b)[0]] = a @ b
            wanted[model.add("MatMul", {}, a, b[:, 0].copy())[0]] = a @ b[:, 0]
            made = model.add("Gemm", {"transA": 1, "beta": 3.0}, a[0].T.copy(), b, c)
            wanted[made[0]] = a[0] @ b + 3 * c
    model.types = {y: helper.np_dtype_to_tensor_dtype(v.dtype) for y, v in wanted.items()}
    inputs = model.made(20)
    onnx.save(inputs, tmp_path / "m.onnx")
    given = []
    for name, x in model.inputs.items():
        np.save(tmp_path / f"{name}.in.npy", x)
        given += ["--input", f"{name}={tmp_path}/{name}.in.npy"]
    invar("compile", tmp_path / "m.onnx", "--output", tmp_path / "plan.invar")
    invar("infer", tmp_path / "plan.invar", "--tensors-output", tmp_path, *given)
    for y, array in wanted.items():
        assert np.load(tmp_path / f"{y}.npy").tobytes() == array.tobytes(), y


def test_types_are_refused_in_our_words(tmp_path):
    for op, operands in [
        ("MatMul", [numbers(2, 3) > 0, numbers(3, 2) > 0]),
        ("Conv", [np.ones((1, 1, 4, 4), np.int32), np.ones((1, 1, 2, 2), np.int32)]),
        ("Softplus", [np.ones(3)]),
    ]:
        model = Model()
        model.add(op, {}, *operands)
        onnx.save(model.made(20), tmp_path / "m.onnx")
        done = refused("compile", tmp_path / "m.onnx", code=3, names=[op, "not covered"])
        assert "repro." not in done.text and "tensor" not in done.text.replace("m.onnx", "")
