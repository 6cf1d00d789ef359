"""Operators that onnxruntime's optimizers fuse are what they were made of (spec/onnx.md onnx.41):
within rounding onnxruntime's results, and the bytes of the standard operators, sizes open or not.
Also what older and optimised files have otherwise: sparse initialisers, and inputs of a graph that
hide a value around it."""

import numpy as np
import onnxruntime
import pytest
from conftest import cpu_isas, invar, refused
from onnx import TensorProto, helper, numpy_helper

F32, I32, I64, U8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8
node, value = helper.make_node, helper.make_tensor_value_info
RANDOM = np.random.default_rng(44)


def fused(op, inputs, outputs, name="fused", **attributes):
    return node(op, inputs, outputs, domain="com.microsoft", name=name, **attributes)


def weights(**shapes):
    return {n: RANDOM.standard_normal(s).astype(np.float32) / 4 for n, s in shapes.items()}


def save(path, nodes, inputs, outputs, constants, ir_version=8):
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        [value(n, t, None) for n, t in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)
    path.write_bytes(model.SerializeToString())
    return model


def run(folder, inputs, names, name="m.onnx", ways=True):
    arguments = []
    for n, array in inputs.items():
        np.save(folder / f"in.{n}.npy", array)
        arguments += ["--input", f"{n}={folder / f'in.{n}.npy'}"]
    call = ["infer", folder / name, *arguments]
    done = invar(*call, "--tensors-output", folder / "out", "--receipt-path", folder / "r.json")
    if ways:
        invar("verify", folder / "r.json", "--model", folder / name, *arguments)
        for options in (["--threads", "1"], *(["--isa", isa] for isa in cpu_isas())):
            assert invar(*call, *options).json()["outputs"] == done.json()["outputs"]
    return [np.load(folder / f"out/{n}.npy") for n in names]


def agrees(folder, nodes, ports, outputs, constants, inputs, tolerance=2e-6):
    """With onnxruntime, within the rounding of other sums."""
    save(folder / "m.onnx", nodes, ports, outputs, constants)
    session = onnxruntime.InferenceSession(
        str(folder / "m.onnx"), providers=["CPUExecutionProvider"]
    )
    names = [n for n, _ in outputs]
    for found, want in zip(run(folder, inputs, names), session.run(names, inputs)):
        assert found.shape == want.shape and found.dtype == want.dtype
        np.testing.assert_allclose(found, want, rtol=0, atol=tolerance * max(1, np.abs(want).max()))


CONVS = [
    ("Relu", []),
    ("Tanh", []),
    ("LeakyRelu", [0.3]),
    ("Clip", [0.0, 0.5]),
    ("HardSigmoid", [0.2, 0.4]),
]


@pytest.mark.parametrize("activation, by", CONVS, ids=[a for a, _ in CONVS])
def test_convolution_with_an_activation(tmp_path, activation, by):
    how = {"activation": activation} | ({"activation_params": by} if by else {})
    summed = activation == "Relu"
    agrees(
        tmp_path,
        [
            fused(
                "FusedConv",
                ["x", "w", "b", "z"] if summed else ["x", "w", "b"],
                ["y"],
                pads=[1, 1, 1, 1],
                **how,
            )
        ],
        [value("x", F32, ["n", 2, "h", "h"]), value("z", F32, ["n", 3, "h", "h"])],
        [("y", F32)],
        weights(w=(3, 2, 3, 3), b=(3,)),
        weights(x=(2, 2, 5, 5), z=(2, 3, 5, 5)),
    )


def test_product_with_an_activation(tmp_path):
    agrees(
        tmp_path,
        [
            fused(
                "FusedGemm", ["x", "w", "b"], ["y"], transB=1, activation="LeakyRelu",
                activation_alpha=0.1,
            )
        ],
        [value("x", F32, ["n", 4])],
        [("y", F32)],
        weights(w=(3, 4), b=(3,)),
        weights(x=(5, 4)),
    )  # fmt: skip


def test_embeddings(tmp_path):
    ids = np.array([[3, 1, 4, 0], [1, 5, 0, 0]], np.int32)
    agrees(
        tmp_path,
        [
            fused(
                "EmbedLayerNormalization",
                ["ids", "kinds", "words", "positions", "segments", "gamma", "beta", "mask"],
                ["y", "lengths", "sum"],
                epsilon=1e-5,
            )
        ],
        [value(n, I32, ["batch", "length"]) for n in ("ids", "kinds", "mask")],
        [("y", F32), ("lengths", I32), ("sum", F32)],
        weights(words=(7, 8), positions=(6, 8), segments=(2, 8), gamma=(8,), beta=(8,)),
        {"ids": ids, "kinds": ids % 2, "mask": (ids > 0).astype(np.int32)},
    )


ATTENTIONS = {
    "lengths": (np.array([4, 2], np.int32), {}),
    "mask": (np.array([[1, 1, 0, 1], [1, 0, 0, 0]], np.int32), {}),
    "mask of queries": (np.tril(np.ones((2, 4, 4), np.int32)), {"scale": 0.3}),
    "causal": (None, {"unidirectional": 1}),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(tmp_path, name):
    mask, how = ATTENTIONS[name]
    ports = [value("x", F32, ["batch", "length", 8])]
    inputs = weights(x=(2, 4, 8))
    if mask is not None:
        ports.append(value("mask", I32, ["batch", "length", "length"][: mask.ndim]))
        inputs["mask"] = mask
    agrees(
        tmp_path,
        [
            fused(
                "Attention", ["x", "w", "b", "mask" if mask is not None else ""], ["y"],
                num_heads=2, **how,
            )
        ],
        ports,
        [("y", F32)],
        weights(w=(8, 24), b=(24,)),
        inputs,
    )  # fmt: skip


def test_lengths_from_embeddings_and_sums(tmp_path):
    """A mask of which the file says no rank: lengths of EmbedLayerNormalization, or sums."""
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.int32)
    nodes = [
        fused(
            "EmbedLayerNormalization",
            ["ids", "", "words", "positions", "", "gamma", "beta", "mask"],
            ["x", "lengths"],
            name="embed",
        ),
        fused("Attention", ["x", "w", "b", "lengths"], ["y"], name="first", num_heads=2),
        node("ReduceSum", ["mask", "last"], ["sums"], keepdims=0),
        node("Cast", ["sums"], ["sums32"], to=I32),
        fused("Attention", ["x", "w", "b", "sums32"], ["z"], name="second", num_heads=2),
    ]
    constants = weights(words=(7, 8), positions=(6, 8), gamma=(8,), beta=(8,), w=(8, 24), b=(24,))
    agrees(
        tmp_path,
        nodes,
        [value(n, I32, ["batch", "length"]) for n in ("ids", "mask")],
        [("y", F32), ("z", F32)],
        constants | {"last": np.array([1])},
        {"ids": np.array([[3, 1, 4, 0], [1, 5, 0, 0]], np.int32), "mask": mask},
    )


def test_attention_with_a_past(tmp_path):
    agrees(
        tmp_path,
        [fused("Attention", ["x", "w", "b", "", "past"], ["y", "present"], num_heads=2, unidirectional=1)],
        [value("x", F32, ["batch", "length", 8]), value("past", F32, [2, "batch", 2, "before", 4])],
        [("y", F32), ("present", F32)],
        weights(w=(8, 24), b=(24,)),
        weights(x=(2, 3, 8), past=(2, 2, 2, 5, 4)),
    )  # fmt: skip


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("mask", [None, np.array([4, 2], np.int32)])
def test_attention_of_bytes(tmp_path, columns, mask):
    """QAttention: one scale and zero point of the weights, or one for each column."""
    rng = np.random.default_rng(3)
    constants = weights(b=(24,)) | {
        "w": rng.integers(-127, 128, (8, 24)).astype(np.int8),
        "xs": np.array(0.02, np.float32),
        "ws": np.linspace(0.005, 0.01, 24 if columns else 1).astype(np.float32),
        "xz": np.array(120, np.uint8),
        "wz": rng.integers(-3, 4, 24 if columns else 1).astype(np.int8),
    }
    if not columns:
        constants |= {n: constants[n].reshape(()) for n in ("ws", "wz")}
    ports = [value("x", U8, ["batch", "length", 8]), value("past", F32, [2, "batch", 2, "before", 4])]
    feed = {"x": rng.integers(0, 256, (2, 4, 8), np.uint8)} | weights(past=(2, 2, 2, 0, 4))
    if mask is not None:
        ports.append(value("mask", I32, ["batch"]))
        feed["mask"] = mask
    agrees(
        tmp_path,
        [
            fused(
                "QAttention",
                ["x", "w", "b", "xs", "ws", "" if mask is None else "mask", "xz", "wz", "past"],
                ["y", "present"],
                num_heads=2,
            )
        ],
        ports,
        [("y", F32), ("present", F32)],
        constants,
        feed,
    )


@pytest.mark.parametrize("masked", [False, True])
def test_heads_with_a_bias(tmp_path, masked):
    inputs = weights(q=(2, 3, 8), k=(2, 4, 8), v=(2, 4, 8))
    ports = [value(n, F32, list(a.shape)) for n, a in inputs.items()]
    if masked:
        inputs["mask"] = np.array([[1, 1, 0, 1], [1, 0, 0, 0]], np.int32)
        ports.append(value("mask", I32, [2, "keys"]))
    agrees(
        tmp_path,
        [
            fused(
                "MultiHeadAttention", ["q", "k", "v", "b", *(["mask"] if masked else [])], ["y"],
                num_heads=2,
            )
        ],
        ports,
        [("y", F32)],
        weights(b=(24,)),
        inputs,
    )  # fmt: skip


def test_what_onnxruntime_has_for_gpus_alone(tmp_path):
    """The bytes of the standard operators that they stand for."""
    x, constants = weights(x=(2, 4, 4, 6)), weights(w=(5, 3, 3, 6), c=(6,), d=(6,), b=(5,))
    perm = {"first": [0, 3, 1, 2], "last": [0, 2, 3, 1]}

    def to(kind, a, b):
        return node("Transpose", [a], [b], perm=perm[kind])

    spelled = [
        fused("NhwcConv", ["x", "w", "b"], ["conv"], strides=[2, 2]),
        fused("GroupNorm", ["x", "c", "d"], ["norm"], groups=2, activation=1, epsilon=1e-5),
        fused("BiasSplitGelu", ["x", "c"], ["gelu"]),
        fused("BiasAdd", ["x", "c", "x"], ["sum"]),
    ]
    names = ["conv", "norm", "gelu", "sum"]
    ports, outputs = [value("x", F32, ["n", "h", "w", 6])], [(n, F32) for n in names]
    save(tmp_path / "m.onnx", spelled, ports, outputs, constants)
    found = run(tmp_path, x, names)
    standard = [
        to("first", "x", "x1"),
        to("first", "w", "w1"),
        node("Conv", ["x1", "w1", "b"], ["conv1"], strides=[2, 2]),
        to("last", "conv1", "conv"),
        node("GroupNormalization", ["x1", "c", "d"], ["n1"], num_groups=2, epsilon=1e-5),
        node("Sigmoid", ["n1"], ["n2"]),
        node("Mul", ["n1", "n2"], ["n3"]),
        to("last", "n3", "norm"),
        node("Add", ["x", "c"], ["xc"]),
        node("Split", ["xc"], ["left", "right"], axis=-1, num_outputs=2),
        node("Gelu", ["right"], ["right1"]),
        node("Mul", ["left", "right1"], ["gelu"]),
        node("Add", ["xc", "x"], ["sum"]),
    ]
    model = save(tmp_path / "s.onnx", standard, ports, outputs, constants)
    model.opset_import[0].version = 21
    (tmp_path / "s.onnx").write_bytes(model.SerializeToString())
    for a, b in zip(found, run(tmp_path, x, names, "s.onnx", ways=False)):
        assert a.tobytes() == b.tobytes()


def test_forms_that_are_not_covered_are_named(tmp_path):
    save(
        tmp_path / "m.onnx",
        [fused("Attention", ["x", "w", "b"], ["y"], num_heads=2, do_rotary=1)],
        [value("x", F32, ["batch", "length", 8])],
        [("y", F32)],
        weights(w=(8, 24), b=(24,)),
    )
    assert (
        'Attention (domain com.microsoft opset 1, node "fused")'
        in refused("compile", tmp_path / "m.onnx", code=3).text
    )


def sparse(values, indices, shape):
    tensor = numpy_helper.from_array(np.array(values, np.float32), "w")
    where = numpy_helper.from_array(np.array(indices, np.int64), "where")
    return helper.make_sparse_tensor(tensor, where, shape)


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_a_sparse_initializer_is_dense(tmp_path, indices):
    model = save(
        tmp_path / "m.onnx",
        [node("Add", ["x", "w"], ["a/b"])],
        [value("x", F32, ["n", 2, 3])],
        [("a/b", F32)],
        {},
        ir_version=4,
    )
    model.graph.sparse_initializer.append(sparse([2.5, -1], indices, [2, 3]))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    dense = np.array([[0, 2.5, 0], [0, 0, -1]], np.float32)
    x = np.ones((1, 2, 3), np.float32)
    assert (run(tmp_path, {"x": x}, ["a%2Fb"])[0] == x + dense).all()


@pytest.mark.parametrize(
    "indices, shape", [([5, 1], [2, 3]), ([1, 6], [2, 3]), ([[0, 1]], [2, 3]), ([-1, 2], [2, 3])]
)
def test_wrong_indices_of_a_sparse_initializer(tmp_path, indices, shape):
    model = save(
        tmp_path / "m.onnx",
        [node("Add", ["x", "w"], ["y"])],
        [value("x", F32, [2, 3])],
        [("y", F32)],
        {},
    )
    model.graph.sparse_initializer.append(sparse([1, 2], indices, shape))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert "sparse initialiser 'w'" in refused("compile", tmp_path / "m.onnx").text


def test_an_input_of_a_graph_hides_what_is_around_it(tmp_path):
    """As Paddle's exporter writes loops."""
    body = helper.make_graph(
        [node("Add", ["w", "w"], ["next"]), node("Identity", ["go"], ["on"])],
        "body",
        [value("i", I64, []), value("go", TensorProto.BOOL, []), value("w", F32, [2])],
        [value("on", TensorProto.BOOL, []), value("next", F32, [2])],
    )
    save(
        tmp_path / "m.onnx",
        [
            node("Loop", ["count", "", "x"], ["last"], body=body),
            node("Mul", ["last", "w"], ["y"]),
        ],
        [value("x", F32, [2]), value("count", I64, [])],
        [("y", F32)],
        {"w": np.array([1, 10], np.float32)},
    )
    inputs = {"x": np.array([1, 2], np.float32), "count": np.array(3)}
    assert run(tmp_path, inputs, ["y"])[0].tolist() == [8, 160]
