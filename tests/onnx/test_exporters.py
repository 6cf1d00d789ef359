"""Spellings of exporters and of ONNX Runtime that mean what ONNX means: one element as a scalar and
as a list, names that ONNX has not, operators of early opsets, one opset twice, dimensions of -1.
And what no spelling makes right: element types that differ."""

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import invar, refused
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def save(path, nodes, inputs, outputs, weights=(), opsets=(("", 17),)):
    graph = helper.make_graph(
        nodes, "g", inputs, outputs, [numpy_helper.from_array(a, name) for name, a in weights]
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], ir_version=9
    )
    path.write_bytes(model.SerializeToString())
    return model


def answers(folder, model, inputs):
    """What Invar computes, output by output."""
    invar("compile", model, "--output", folder / "plan.invar")
    given = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.in.npy", array)
        given += ["--input", f"{name}={folder / name}.in.npy"]
    invar("infer", folder / "plan.invar", "--tensors-output", folder, *given)
    return [np.load(folder / f"{o.name}.npy") for o in onnx.load(model).graph.output]


def of_runtime(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(
        None, inputs
    )


# --- quantisation ---------------------------------------------------------------------------------


class Sixteenths(CalibrationDataReader):
    """From -8 to 7.9375, so that the scale is 2^-4."""

    def __init__(self, rng):
        self.x = (rng.integers(-128, 128, (4, 1, 6, 6)) / 16).astype(np.float32)
        self.x.flat[:2] = -8, 127 / 16
        self.left = [{"x": self.x}]

    def get_next(self):
        return self.left.pop() if self.left else None


@pytest.mark.parametrize(
    "types",
    [
        {},
        {"activation_type": QuantType.QUInt8},
        {"activation_type": QuantType.QInt16, "per_channel": True},
    ],
    ids=["defaults", "uint8", "int16 by channel"],
)
def test_static_quantisation_of_onnx_runtime(tmp_path, types):
    """With scales that are powers of two every step is exact or one operation of IEEE 754, so the
    bytes are those of ONNX Runtime."""
    rng = np.random.default_rng(7)

    def weight(*shape):
        array = (rng.integers(-127, 128, shape) / 64).astype(np.float32)
        array.reshape(shape[0], -1)[:, 0] = 127 / 64
        return array

    nodes = [
        helper.make_node("Conv", ["x", "k", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    save(
        tmp_path / "float.onnx",
        nodes,
        [value("x", F32, ["n", 1, 6, 6])],
        [value("y", F32, ["n", 3])],
        [("k", weight(2, 1, 3, 3)), ("b", weight(2)), ("m", weight(32, 3))],
    )
    reader = Sixteenths(rng)
    quantize_static(
        tmp_path / "float.onnx", tmp_path / "m.onnx", reader, quant_format=QuantFormat.QDQ, **types
    )
    model = onnx.load(tmp_path / "m.onnx")
    shapes = {t.name: list(t.dims) for t in model.graph.initializer}
    pairs = {
        tuple(map(str, (shapes[n.input[1]], shapes[n.input[2]])))
        for n in model.graph.node
        if n.op_type == "DequantizeLinear"
    }
    assert "per_channel" in types or ("[1]", "[]") in pairs, (
        pairs
    )  # the bias, as ONNX Runtime writes it
    (found,) = answers(tmp_path, tmp_path / "m.onnx", {"x": reader.x})
    (wanted,) = of_runtime(tmp_path / "m.onnx", {"x": reader.x})
    assert len(np.unique(wanted)) > 5 and found.tobytes() == wanted.tobytes()


SHAPES = [((), (1,)), ((1,), ()), ((1,), (1,)), ((), ())]


@pytest.mark.parametrize("scale,zero", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_one_scale_and_one_zero_point(tmp_path, dtype, scale, zero):
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]

    def weights(scale, zero):
        return [("s", np.full(scale, 0.375, np.float32)), ("z", np.full(zero, 3, dtype))]

    x = np.random.default_rng(3).normal(0, 40, (3, 50)).astype(np.float32)
    x.flat[:4] = np.nan, np.inf, -np.inf, 1e30
    found = []
    for shapes in ((scale, zero), ((), ())):
        save(
            tmp_path / "m.onnx",
            nodes,
            [value("x", F32, ["n", 50])],
            [value("q", code, ["n", 50]), value("y", F32, ["n", 50])],
            weights(*shapes),
            opsets=[("", 21)],
        )
        found.append([a.tobytes() for a in answers(tmp_path, tmp_path / "m.onnx", {"x": x})])
    assert found[0] == found[1]


@pytest.mark.parametrize("scale,zero", SHAPES, ids=str)
def test_one_scale_and_one_zero_point_of_integer_products(tmp_path, scale, zero):
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 256, (4, 8), np.uint8), rng.integers(-128, 128, (8, 3), np.int8)
    x, k = (
        rng.integers(0, 256, (1, 2, 5, 5), np.uint8),
        rng.integers(-128, 128, (3, 2, 3, 3), np.int8),
    )

    def weights(scale, zero):
        return [
            ("b", b),
            ("k", k),
            *((f"s{i}", np.full(scale, s, np.float32)) for i, s in enumerate((0.5, 0.25, 8.0))),
            *(
                (f"z{i}", np.full(zero, z, t))
                for i, (z, t) in enumerate(((3, "uint8"), (-2, "int8"), (100, "uint8")))
            ),
        ]

    nodes = [
        helper.make_node(
            "QLinearMatMul", ["a", "s0", "z0", "b", "s1", "z1", "s2", "z2"], ["product"]
        ),
        helper.make_node("MatMulInteger", ["a", "b", "z0", "z1"], ["sums"]),
        helper.make_node("QLinearConv", ["x", "s0", "z0", "k", "s1", "z1", "s2", "z2"], ["conv"]),
        helper.make_node("ConvInteger", ["x", "k", "z0", "z1"], ["conv sums"]),
    ]
    outputs = [
        value("product", TensorProto.UINT8, None),
        value("sums", TensorProto.INT32, None),
        value("conv", TensorProto.UINT8, None),
        value("conv sums", TensorProto.INT32, None),
    ]
    found = []
    for shapes in ((scale, zero), ((), ())):
        save(
            tmp_path / "m.onnx",
            nodes,
            [value("a", TensorProto.UINT8, [4, 8]), value("x", TensorProto.UINT8, [1, 2, 5, 5])],
            outputs,
            weights(*shapes),
        )
        found.append(
            [y.tobytes() for y in answers(tmp_path, tmp_path / "m.onnx", {"a": a, "x": x})]
        )
    assert found[0] == found[1]
    assert found[0][1] == ((a.astype(np.int32) - 3) @ (b.astype(np.int32) + 2)).tobytes()


def test_zero_points_that_do_not_fit_are_refused(tmp_path):
    for scale, zero in [((2,), ()), ((), (2,)), ((1,), (2,)), ((1, 1), ())]:
        save(
            tmp_path / "m.onnx",
            [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])],
            [value("x", F32, [3, 2])],
            [value("y", TensorProto.INT8, [3, 2])],
            [("s", np.ones(scale, np.float32)), ("z", np.zeros(zero, np.int8))],
        )
        refused(
            "compile",
            tmp_path / "m.onnx",
            names=["QuantizeLinear", "zero points and scales differ in shape"],
        )


# --- names and early opsets -----------------------------------------------------------------------


def rows(*shape):
    return np.random.default_rng(11).normal(0, 3, shape).astype(np.float32)


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_simplified_layer_normalization(tmp_path, domain):
    """RMSNormalization by the name that ONNX Runtime has for it, in the default domain where its
    optimiser writes it."""
    opsets = [("", 23), ("com.microsoft", 1)]
    x, weight = rows(2, 5, 16), rows(16)
    found = []
    for node in (
        helper.make_node(
            "SimplifiedLayerNormalization",
            ["x", "w"],
            ["y"],
            domain=domain,
            axis=-1,
            epsilon=1e-6,
            stash_type=1,
        ),
        helper.make_node(
            "RMSNormalization", ["x", "w"], ["y"], axis=-1, epsilon=1e-6, stash_type=1
        ),
    ):
        save(
            tmp_path / "m.onnx",
            [node],
            [value("x", F32, [2, "n", 16])],
            [value("y", F32, [2, "n", 16])],
            [("w", weight)],
            opsets,
        )
        (y,) = answers(tmp_path, tmp_path / "m.onnx", {"x": x})
        found.append(y.tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize(
    "opset,axis", [(9, None), (11, None), (12, 0), (11, 2), (11, -2), (9, 3), (12, -1)]
)
def test_softmax_of_early_opsets(tmp_path, op, opset, axis):
    """Along all dimensions from the axis on: the same as of opset 13 between two reshapes."""
    shape = [2, 3, 4, 5]
    x = rows(*shape)
    attributes = {} if axis is None else {"axis": axis}
    places = [value("x", F32, ["n", 3, 4, 5])], [value("y", F32, ["n", 3, 4, 5])]
    save(
        tmp_path / "early.onnx",
        [helper.make_node(op, ["x"], ["y"], **attributes)],
        *places,
        opsets=[("", opset)],
    )
    (early,) = answers(tmp_path, tmp_path / "early.onnx", {"x": x})
    at = (1 if axis is None else axis) % 4
    flat = np.array([int(np.prod(shape[:at])), int(np.prod(shape[at:]))])
    save(
        tmp_path / "m.onnx",
        [
            helper.make_node("Reshape", ["x", "flat"], ["m"]),
            helper.make_node(op, ["m"], ["s"], axis=-1),
            helper.make_node("Reshape", ["s", "shape"], ["y"]),
        ],
        [value("x", F32, shape)],
        [value("y", F32, shape)],
        [("flat", flat), ("shape", np.array(shape))],
        [("", 17)],
    )
    assert early.tobytes() == answers(tmp_path, tmp_path / "m.onnx", {"x": x})[0].tobytes()
    if op == "Hardmax":  # exact
        assert early.tobytes() == of_runtime(tmp_path / "early.onnx", {"x": x})[0].tobytes()


# --- files ----------------------------------------------------------------------------------------


def test_an_opset_that_is_said_twice(tmp_path):
    node, places = (
        helper.make_node("Relu", ["x"], ["y"]),
        ([value("x", F32, [2, 3])], [value("y", F32, [2, 3])]),
    )
    for opsets in (
        [("", 17), ("", 17)],
        [("", 17), ("ai.onnx", 17)],
        [("com.microsoft", 1), ("", 17), ("com.microsoft", 1)],
    ):
        save(tmp_path / "m.onnx", [node], *places, opsets=opsets)
        (y,) = answers(tmp_path, tmp_path / "m.onnx", {"x": rows(2, 3)})
        assert y.tobytes() == np.maximum(rows(2, 3), 0).tobytes()
    for opsets in ([("", 17), ("", 18)], [("ai.onnx", 17), ("", 13)]):
        save(tmp_path / "m.onnx", [node], *places, opsets=opsets)
        refused("compile", tmp_path / "m.onnx", names=["opset", "17"])


def test_a_dimension_of_minus_one_is_open(tmp_path):
    """Each its own, as one without a name is."""
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["w"], ["z"])]
    save(
        tmp_path / "m.onnx",
        nodes,
        [value("x", F32, [-1, 3]), value("w", F32, [-1])],
        [value("y", F32, [-1, 3]), value("z", F32, [-1])],
    )
    for n in (1, 4):
        y, z = answers(tmp_path, tmp_path / "m.onnx", {"x": rows(n, 3), "w": rows(7)})
        assert (
            y.tobytes() == np.maximum(rows(n, 3), 0).tobytes()
            and z.tobytes() == np.abs(rows(7)).tobytes()
        )
    save(tmp_path / "m.onnx", nodes[:1], [value("x", F32, [-2, 3])], [value("y", F32, [-2, 3])])
    refused("compile", tmp_path / "m.onnx", names=["negative dimension"])


# --- element types --------------------------------------------------------------------------------

NARROW = {
    "Gather": ([("table", (50, 8))], ["table", "i"]),
    "MatMul": ([("w", (8, 3))], ["x", "w"]),
    "Add": ([("w", (8,))], ["x", "w"]),
    "LayerNormalization": ([("w", (8,)), ("b", (8,))], ["x", "w", "b"]),
}


@pytest.mark.parametrize("op", NARROW)
@pytest.mark.parametrize("declared", [True, False])
def test_results_of_half_are_of_half(tmp_path, op, declared):
    """With weights of fp16, which kernels read as they are."""
    weights, operands = NARROW[op]
    inputs = (
        [value("i", TensorProto.INT64, ["n"])] if op == "Gather" else [value("x", F16, ["n", 8])]
    )
    given = {"i": np.array([3, 0, 49])} if op == "Gather" else {"x": rows(4, 8).astype(np.float16)}
    arrays = [(name, rows(*shape).astype(np.float16)) for name, shape in weights]
    save(
        tmp_path / "m.onnx",
        [helper.make_node(op, operands, ["v"]), helper.make_node("Identity", ["v"], ["y"])],
        inputs,
        [value("y", F16, ["n", 3 if op == "MatMul" else 8] if declared else None)],
        arrays,
    )
    (y,) = answers(tmp_path, tmp_path / "m.onnx", given)
    assert y.dtype == np.float16
    if op == "Gather":
        assert y.tobytes() == arrays[0][1][given["i"]].tobytes()


@pytest.mark.parametrize("op", ["MatMul", "Add", "LayerNormalization"])
def test_element_types_that_onnx_does_not_mix(tmp_path, op):
    weights, operands = NARROW[op]
    arrays = [(name, rows(*shape).astype(np.float16)) for name, shape in weights]
    save(
        tmp_path / "m.onnx",
        [helper.make_node(op, operands, ["y"], name="mixed")],
        [value("x", F32, ["n", 8])],
        [value("y", F32, None)],
        arrays,
    )
    refused("compile", tmp_path / "m.onnx", names=[op, '"mixed"', "f32 and f16"])


@pytest.mark.parametrize(
    "op,opset,code",
    [("BatchNormalization", 9, 2), ("BatchNormalization", 15, 0), ("Pow", 7, 2), ("Pow", 12, 0)],
)
def test_what_onnx_mixes_from_an_opset_on(tmp_path, op, opset, code):
    names = ["b"] if op == "Pow" else ["a", "b", "mean", "variance"]
    arrays = [
        (
            name,
            np.abs(rows(8)).astype(np.float16 if name in ("b", "mean", "variance") else np.float32),
        )
        for name in names
    ]
    if op == "BatchNormalization":
        arrays[1] = "b", arrays[1][1].astype(np.float32)
    save(
        tmp_path / "m.onnx",
        [helper.make_node(op, ["x", *names], ["y"])],
        [value("x", F32, ["n", 8])],
        [value("y", F32, None)],
        arrays,
        [("", opset)],
    )
    invar("compile", tmp_path / "m.onnx", code=code)


def test_the_element_type_of_an_output_without_a_shape_is_checked(tmp_path):
    save(
        tmp_path / "m.onnx",
        [helper.make_node("Relu", ["x"], ["y"])],
        [value("x", F32, ["n"])],
        [value("y", F16, None)],
    )
    refused("compile", tmp_path / "m.onnx", names=['output "y"', "element type"])


def test_a_declared_shape_that_the_graph_does_not_compute_is_remarked_on(tmp_path):
    """PyTorch's exporter declares the shape of the traced example; ONNX Runtime warns and goes
    on."""
    node = helper.make_node("GlobalAveragePool", ["x"], ["y"])
    for declared in ([1, 3, 2, 2], [1, 3, 1]):
        save(
            tmp_path / "m.onnx",
            [node],
            [value("x", F32, [1, 3, 4, 4])],
            [value("y", F32, declared)],
        )
        done = invar("compile", tmp_path / "m.onnx", "--output", tmp_path / "plan.invar")
        text = done.err.decode()
        assert '"y"' in text and str(declared) in text and "[1, 3, 1, 1]" in text
        (y,) = answers(tmp_path, tmp_path / "m.onnx", {"x": rows(1, 3, 4, 4)})
        assert y.shape == (1, 3, 1, 1)
    save(
        tmp_path / "m.onnx",
        [node],
        [value("x", F32, [1, 3, 4, 4])],
        [value("y", F32, [1, 3, 1, 1])],
    )
    done = invar("compile", tmp_path / "m.onnx", "--output", tmp_path / "plan.invar")
    assert b"declared" not in done.err


@pytest.mark.parametrize("name", ["?", "None", "", " "])
def test_names_that_are_none(tmp_path, name):
    """Dimensions of these are not one, whatever other inputs have them."""
    save(
        tmp_path / "m.onnx",
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["w"], ["z"])],
        [value("x", F32, [name, name]), value("w", F32, [name])],
        [value("y", F32, [name, name]), value("z", F32, [name])],
    )
    y, z = answers(tmp_path, tmp_path / "m.onnx", {"x": rows(2, 3), "w": rows(7)})
    assert y.shape == (2, 3) and z.tobytes() == np.abs(rows(7)).tobytes()


def test_a_signal_of_rank_two(tmp_path):
    """As torch.stft is exported."""
    x, window = rows(2, 32), rows(8)
    nodes = [helper.make_node("STFT", ["x", "step", "w", "n"], ["y"], onesided=1)]
    weights = [("step", np.array(4)), ("w", window), ("n", np.array(8))]
    found = []
    for shape in ((2, 32), (2, 32, 1)):
        places = [value("x", F32, shape)], [value("y", F32, None)]
        save(tmp_path / "m.onnx", nodes, *places, weights)
        found += answers(tmp_path, tmp_path / "m.onnx", {"x": x.reshape(shape)})
    assert found[0].tobytes() == found[1].tobytes()
    wanted = of_runtime(tmp_path / "m.onnx", {"x": x[..., None]})[0]
    np.testing.assert_allclose(found[0], wanted, 1e-4, 1e-4)


@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride,kernel", [(2, 3), (3, 2), (1, 4)])
def test_transposed_convolution_of_an_open_size(tmp_path, pad, stride, kernel):
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], auto_pad=pad, strides=[stride])
    weights = [("w", rows(2, 3, kernel))]
    found = []
    for size in ("n", 5):
        save(
            tmp_path / "m.onnx", [node],
            [value("x", F32, [1, 2, size])], [value("y", F32, None)], weights,
        )  # fmt: skip
        found += answers(tmp_path, tmp_path / "m.onnx", {"x": rows(1, 2, 5)})
    assert found[0].shape == (1, 3, 5 * stride) and found[0].tobytes() == found[1].tobytes()
    if kernel >= stride:  # ONNX Runtime adds nothing where the kernel leaves gaps
        wanted = of_runtime(tmp_path / "m.onnx", {"x": rows(1, 2, 5)})[0]
        np.testing.assert_allclose(found[0], wanted, 1e-5, 1e-5)


def test_random_numbers_with_a_seed(tmp_path):
    """Those of onnx.35: the uniform ones bit by bit from the words of random.2."""
    nodes = [
        helper.make_node("RandomUniform", [], ["u"], shape=[4, 1000], seed=7.0),
        helper.make_node("RandomUniformLike", ["x"], ["l"], seed=7.0, low=-1.0, high=3.0),
        helper.make_node("RandomNormalLike", ["x"], ["n"], seed=7.0, mean=2.0, scale=0.5),
        helper.make_node("RandomNormal", [], ["h"], shape=[4, 1000], seed=7.0, dtype=F16),
        helper.make_node("RandomNormal", [], ["o"], shape=[4, 1000], seed=8.0),
    ]
    x = np.zeros((4, 1000), np.float32)
    outputs = [value(name, F16 if name == "h" else F32, None) for name in "ulnho"]
    save(tmp_path / "m.onnx", nodes, [value("x", F32, ["a", "b"])], outputs)
    u, like, n, h, other = answers(tmp_path, tmp_path / "m.onnx", {"x": x})
    assert (like == (u * np.float32(4) + np.float32(-1))).all()
    assert ((u >= 0) & (u < 1) & (u * 2**24 == np.floor(u * 2**24))).all()
    assert abs(u.mean() - 0.5) < 0.02 and abs(n.mean() - 2) < 0.03 and abs(n.std() - 0.5) < 0.02
    assert abs(np.mean((n - 2) ** 4) / 0.5**4 - 3) < 0.4  # as of a normal distribution
    assert h.dtype == np.float16 and (h == ((n - 2) * 2).astype(np.float16)).mean() > 0.98
    assert abs(np.corrcoef(h.ravel(), other.ravel())[0, 1]) < 0.06
    again = answers(tmp_path, tmp_path / "m.onnx", {"x": x})
    assert again[2].tobytes() == n.tobytes()
    nodes[2].attribute.remove(next(a for a in nodes[2].attribute if a.name == "seed"))
    save(tmp_path / "m.onnx", nodes[2:3], [value("x", F32, ["a", "b"])], outputs[2:3])
    refused("compile", tmp_path / "m.onnx", code=3, names=["RandomNormalLike", '"seed"'])


# --- ranks within branches and loops, as PaddlePaddle writes them ---------------------------------

X = np.array([1.5, -2, 3], np.float32)
I64, BOOL = TensorProto.INT64, TensorProto.BOOL


def body(nodes, inputs, outputs):
    return helper.make_graph(
        nodes, "b", inputs, [helper.make_empty_tensor_value_info(name) for name in outputs]
    )


@pytest.mark.parametrize("cond", [True, False])
@pytest.mark.parametrize("shown", [False, True])
def test_branches_of_one_element_whose_rank_nothing_shows(tmp_path, cond, shown):
    """A scalar, or a list of one element. What shows the rank is refused."""
    some = body([helper.make_node("And", ["c", "one"], ["t"])], [], ["t"])
    none = body([helper.make_node("Not", ["c"], ["t"])], [], ["t"])
    nodes = [
        helper.make_node("If", ["c"], ["r"], then_branch=some, else_branch=none),
        helper.make_node("Not", ["r"], ["n"]),
        helper.make_node("Cast", ["n"], ["f"], to=F32),
        helper.make_node("Add", ["f", "x"], ["y"]),
    ]
    outputs = [value("y", F32, [3])]
    if shown:
        nodes.append(helper.make_node("Shape", ["r"], ["z"]))
        outputs.append(value("z", I64, None))
    inputs = [value("c", BOOL, []), value("x", F32, [3])]
    save(tmp_path / "m.onnx", nodes, inputs, outputs, [("one", np.array([True]))])
    if shown:
        kinds = ["If", "bool [1]", "bool []"]
        refused("compile", tmp_path / "m.onnx", code=3, names=kinds)
        return
    (y,) = answers(tmp_path, tmp_path / "m.onnx", {"c": np.array(cond), "x": X})
    assert y.tobytes() == X.tobytes()


@pytest.mark.parametrize("limit,steps", [(0, 1), (3, 2), (6, 3), (1e9, 4)])
def test_a_loop_whose_first_step_gives_another_rank(tmp_path, limit, steps):
    """What a model declares before a loop and sets within it."""
    step = body(
        [
            helper.make_node("Cast", ["i"], ["number"], to=F32),
            helper.make_node("Add", ["v", "number"], ["next"]),
            helper.make_node("Concat", ["v", "next"], ["set"], axis=0),
            helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0),
            helper.make_node("Less", ["sum", "limit"], ["go"]),
        ],
        [
            value("i", I64, []), value("c", BOOL, []), value("v", F32, [3]),
            value("declared", F32, None),
        ],
        ["go", "next", "set"],
    )  # fmt: skip
    save(
        tmp_path / "m.onnx",
        [helper.make_node("Loop", ["n", "yes", "x", "scalar"], ["last", "pair"], body=step)],
        [value("x", F32, [3]), value("limit", F32, [])],
        [value("last", F32, [3]), value("pair", F32, None)],
        [("n", np.int64(4)), ("yes", np.bool_(True)), ("scalar", np.float32(0))],
    )
    given = {"x": X, "limit": np.array(limit, np.float32)}
    last, pair = answers(tmp_path, tmp_path / "m.onnx", given)
    rows_of_steps = [X]
    for number in range(steps):
        rows_of_steps.append(rows_of_steps[-1] + np.float32(number))
    assert last.tobytes() == rows_of_steps[-1].tobytes()
    assert pair.tobytes() == np.concatenate(rows_of_steps[-2:]).tobytes() and pair.shape == (6,)


# --- sizes of masks, as onnxruntime-genai's builder writes them -----------------------------------


def inferred(folder, inputs, **how):
    given = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.in.npy", array)
        given += ["--input", f"{name}={folder / name}.in.npy"]
    return invar("infer", folder / "plan.invar", "--tensors-output", folder, *given, **how)


@pytest.mark.parametrize(
    "new,past,whole,code", [(1, 3, 4, 0), (4, 0, 4, 0), (1, 3, 5, 2), (2, 3, 5, 2), (1, 0, 6, 0)]
)
def test_what_expand_gives_and_a_size_of_another_name(tmp_path, new, past, whole, code):
    """One token, or no past: the sizes fit, which each call shows."""
    nodes = [
        helper.make_node("Shape", ["x"], ["new"]),
        helper.make_node("Shape", ["p"], ["before"]),
        helper.make_node("Add", ["new", "before"], ["all"]),
        helper.make_node("Expand", ["x", "all"], ["e"]),
        helper.make_node("Add", ["e", "m"], ["y"]),
    ]
    inputs = [value("x", F32, ["seq"]), value("p", F32, ["past"]), value("m", F32, ["whole"])]
    save(tmp_path / "m.onnx", nodes, inputs, [value("y", F32, None)])
    invar("compile", tmp_path / "m.onnx", "--output", tmp_path / "plan.invar")
    x, m = np.arange(new, dtype=np.float32), np.arange(whole, dtype=np.float32)
    given = {"x": x, "p": np.zeros(past, np.float32), "m": m}
    inferred(tmp_path, given, code=code)
    if code == 0:
        assert np.load(tmp_path / "y.npy").tobytes() == (x + m).tobytes()


@pytest.mark.parametrize("keys,columns,code", [(5, 5, 0), (5, 4, 2)])
def test_a_mask_of_attention_whose_columns_have_another_name(tmp_path, keys, columns, code):
    nodes = [
        helper.make_node("Attention", ["q", "k", "k", "m"], ["y"], q_num_heads=2, kv_num_heads=2)
    ]
    inputs = [value("q", F32, [1, 3, 8]), value("k", F32, [1, "keys", 8])]
    inputs.append(value("m", F32, [3, "columns"]))
    save(tmp_path / "m.onnx", nodes, inputs, [value("y", F32, None)], opsets=(("", 23),))
    invar("compile", tmp_path / "m.onnx", "--output", tmp_path / "plan.invar")
    given = {"q": rows(1, 3, 8), "k": rows(1, keys, 8), "m": rows(3, columns)}
    inferred(tmp_path, given, code=code)
    if code == 0:
        open_sizes = np.load(tmp_path / "y.npy").tobytes()
        fixed = [value(n, F32, list(a.shape)) for n, a in given.items()]
        save(tmp_path / "m.onnx", nodes, fixed, [value("y", F32, None)], opsets=(("", 23),))
        assert answers(tmp_path, tmp_path / "m.onnx", given)[0].tobytes() == open_sizes
