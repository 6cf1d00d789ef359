"""Operators on quantised tensors: those of ONNX Runtime's format QOperator are the compositions
that quantize.7 gives, by bytes, on every instruction set, by one thread and by several."""

import numpy as np
import onnxruntime
import pytest
from conftest import cpu_isas, invar
from onnx import TensorProto, helper, numpy_helper

F32, U8, I8 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8
MICROSOFT = "com.microsoft"


def save(path, nodes, inputs, outputs, weights):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    )


def compiled(folder, model, *options):
    invar("compile", model, "--output", folder / "plan.invar", *options)
    return (folder / "plan.invar").read_text()


def answers(folder, names, inputs, *options):
    given = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.in.npy", array)
        given += ["--input", f"{name}={folder / name}.in.npy"]
    invar("infer", folder / "plan.invar", "--tensors-output", folder, *given, *options)
    return {name: np.load(folder / f"{name}.npy") for name in names}


def same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name


def ways():
    """Options of `infer` that change no byte."""
    return [("--isa", isa) for isa in cpu_isas()] + [("--threads", "1"), ("--threads", "3")]


def dequantised(q, s, z):
    return (q.astype(np.int64) - z).astype(np.float32) * np.float32(s)


def quantised(x, s, z, dtype=np.uint8):
    limits = np.iinfo(dtype)
    return np.clip(np.rint(x / np.float32(s)) + z, limits.min, limits.max).astype(dtype)


# operator, quantised operands (names of A), attributes, the ONNX operator's attributes
UNARY = [
    ("QLinearLeakyRelu", "LeakyRelu", {"alpha": 0.25}, {"alpha": 0.25}),
    ("QLinearSigmoid", "Sigmoid", {}, {}),
    ("QLinearSoftmax", "Softmax", {"axis": 1, "opset": 13}, {"axis": 1}),
    ("QLinearGlobalAveragePool", "GlobalAveragePool", {}, {}),
    (
        "QLinearAveragePool",
        "AveragePool",
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]},
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]},
    ),
]


def operators_and_compositions():
    """Two lists of nodes with the same results, and the names of these."""
    short, long, names = [], [], []

    def both(op, inputs, composition, **attributes):
        name = f"y{len(names)}"
        names.append(name)
        short.append(helper.make_node(op, inputs, [name], domain=MICROSOFT, **attributes))
        long.extend(composition(name))

    def parts(name, tensors, op, attributes, scale, before=()):
        dq = [
            helper.make_node("DequantizeLinear", list(t), [f"{name}.{i}"])
            for i, t in enumerate(tensors)
        ]
        operands = [*before, *(f"{name}.{i}" for i in range(len(tensors)))]
        return [
            *dq,
            helper.make_node(op, operands, [f"{name}.f"], **attributes),
            helper.make_node("QuantizeLinear", [f"{name}.f", *scale], [name]),
        ]

    a, b, out = ("a", "sa", "za"), ("b", "sb", "zb"), ("sy", "zy")
    for q, f in (("QLinearAdd", "Add"), ("QLinearMul", "Mul")):
        both(q, [*a, *b, *out], lambda n, f=f: parts(n, [a, b], f, {}, out))
    both(
        "QLinearConcat",
        [*out, *a, *b],
        lambda n: parts(n, [a, b], "Concat", {"axis": 1}, out),
        axis=1,
    )
    both("QLinearWhere", ["c", *a, *b, *out], lambda n: parts(n, [a, b], "Where", {}, out, ["c"]))
    for q, f, given, plain in UNARY:
        both(q, [*a, *out], lambda n, f=f, plain=plain: parts(n, [a], f, plain, out), **given)
    return short, long, names


def test_operators_are_their_compositions(tmp_path):
    rng = np.random.default_rng(1)
    short, long, names = operators_and_compositions()
    x = {k: rng.integers(0, 256, (2, 5, 9, 7), np.uint8) for k in "ab"}
    x["c"] = rng.integers(0, 2, (2, 5, 9, 7)).astype(bool)
    inputs = [
        ("a", U8, [2, 5, 9, 7]),
        ("b", U8, [2, 5, 9, 7]),
        ("c", TensorProto.BOOL, [2, 5, 9, 7]),
    ]
    scales = {"sa": 0.0375, "sb": 0.01, "sy": 0.02}
    weights = {k: np.float32(v) for k, v in scales.items()}
    weights |= {k: np.uint8(v) for k, v in {"za": 120, "zb": 7, "zy": 131}.items()}
    found = []
    for nodes in (short, long):
        save(tmp_path / "m.onnx", nodes, inputs, [(n, U8) for n in names], weights)
        compiled(tmp_path, tmp_path / "m.onnx")
        found.append(answers(tmp_path, names, x))
    same(*found)
    a, b = dequantised(x["a"], 0.0375, 120), dequantised(x["b"], 0.01, 7)
    assert found[0]["y0"].tobytes() == quantised(a + b, 0.02, 131).tobytes()
    assert found[0]["y1"].tobytes() == quantised(a * b, 0.02, 131).tobytes()
    for options in ways():
        same(answers(tmp_path, names, x, *options), found[0])


@pytest.mark.parametrize("trans", [0, 1])
def test_gemm(tmp_path, trans):
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 256, (5, 70), np.uint8), rng.integers(-128, 128, (70, 33), np.int8)
    c = rng.integers(-9999, 9999, 33, np.int32)
    sb = rng.uniform(0.001, 0.01, 33).astype(np.float32)
    weights = {
        "b": np.ascontiguousarray(b.T) if trans else b,
        "c": c,
        "sa": np.float32(0.02),
        "za": np.uint8(3),
        "sb": sb,
        "zb": np.zeros(33, np.int8),
        "sy": np.float32(0.5),
        "zy": np.uint8(128),
    }
    given = ["a", "sa", "za", "b", "sb", "zb", "c"]
    nodes = [
        helper.make_node("QGemm", given, ["f"], domain=MICROSOFT, transB=trans, alpha=1.0),
        helper.make_node("QGemm", [*given, "sy", "zy"], ["y"], domain=MICROSOFT, transB=trans),
    ]
    save(tmp_path / "m.onnx", nodes, [("a", U8, [5, 70])], [("f", F32), ("y", U8)], weights)
    compiled(tmp_path, tmp_path / "m.onnx")
    total = (a.astype(np.int64) - 3) @ b.astype(np.int64) + c
    f = total.astype(np.float32) * (np.float32(0.02) * sb)
    wanted = {"f": f, "y": quantised(f, 0.5, 128)}
    for options in [(), *ways()]:
        same(answers(tmp_path, ["f", "y"], {"a": a}, *options), wanted)


def test_operators_and_onnxruntime(tmp_path):
    """At most one step apart, and few: ONNX Runtime multiplies by reciprocals and rounds in
    between."""
    rng = np.random.default_rng(3)
    short, _, names = operators_and_compositions()
    x = {k: rng.integers(0, 256, (2, 5, 9, 7), np.uint8) for k in "ab"}
    x["c"] = rng.integers(0, 2, (2, 5, 9, 7)).astype(bool)
    inputs = [
        ("a", U8, [2, 5, 9, 7]),
        ("b", U8, [2, 5, 9, 7]),
        ("c", TensorProto.BOOL, [2, 5, 9, 7]),
    ]
    weights = {k: np.float32(v) for k, v in {"sa": 0.0375, "sb": 0.01, "sy": 0.02}.items()}
    weights |= {k: np.uint8(v) for k, v in {"za": 120, "zb": 7, "zy": 131}.items()}
    save(tmp_path / "m.onnx", short, inputs, [(n, U8) for n in names], weights)
    compiled(tmp_path, tmp_path / "m.onnx")
    found = answers(tmp_path, names, x)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    for name, wanted in zip(names, session.run(None, x)):
        apart = np.abs(found[name].astype(int) - wanted.astype(int))
        assert apart.max() <= 1 and (apart > 0).mean() < 0.05, name
