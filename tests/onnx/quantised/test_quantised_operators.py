"""Operators on quantised tensors: those of ONNX Runtime's format QOperator are the compositions
that quantize.7 gives, by bytes; products of dequantised integers under the choice integer-1 are
what NumPy computes of choices.13. On every instruction set, by one thread and by several."""

import re

import ml_dtypes
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


def integer_conv(x, w, stride, pad):
    """Sums of a convolution in two dimensions, [N, M, O, P]."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    windows = windows[:, :, ::stride, ::stride]
    groups = x.shape[1] // w.shape[1]
    n = w.shape[0] // groups
    return np.concatenate(
        [
            np.einsum(
                "bcijrs,mcrs->bmij",
                windows[:, g * w.shape[1] : (g + 1) * w.shape[1]],
                w[g * n : (g + 1) * n],
            )
            for g in range(groups)
        ],
        axis=1,
    )


CONVS = [(3, 12, 3, 1, 1), (8, 8, 3, 2, 8), (20, 40, 1, 1, 1), (6, 9, 5, 2, 3)]


@pytest.mark.parametrize("channels,rows,kernel,stride,groups", CONVS)
def test_convolution_by_choice(tmp_path, channels, rows, kernel, stride, groups):
    """The integers' sum, the bias in it where its scale is the product of theirs, times the scale;
    relu; requantised."""
    rng = np.random.default_rng(rows)
    x = rng.integers(0, 256, (2, channels, 11, 19), np.uint8)
    w = rng.integers(-127, 128, (rows, channels // groups, kernel, kernel), np.int8)
    sx, sw = np.float32(0.03), rng.uniform(0.001, 0.01, rows).astype(np.float32)
    bias = rng.integers(-5000, 5000, rows, np.int32)
    weights = {
        "w": w,
        "sx": sx,
        "zx": np.uint8(113),
        "sw": sw,
        "zw": np.zeros(rows, np.int8),
        "bias": bias,
        "sbias": sx * sw,
        "sy": np.float32(0.11),
        "zy": np.uint8(0),
        "other": rng.normal(size=rows).astype(np.float32),
    }
    pads = [kernel // 2] * 4
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wf"], axis=0),
        helper.make_node("DequantizeLinear", ["bias", "sbias"], ["bf"], axis=0),
        helper.make_node(
            "Conv", ["xf", "wf", "bf"], ["c"], pads=pads, strides=[stride] * 2, group=groups
        ),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "sy", "zy"], ["y"]),
        helper.make_node(
            "Conv", ["xf", "wf", "other"], ["f"], pads=pads, strides=[stride] * 2, group=groups
        ),
    ]
    save(tmp_path / "m.onnx", nodes, [("x", U8, x.shape)], [("y", U8), ("f", F32)], weights)
    assert "integer-1" not in compiled(tmp_path, tmp_path / "m.onnx")
    plan = compiled(tmp_path, tmp_path / "m.onnx", "--choices", "all,integer-1")
    assert "integer-1" in plan and plan.count(" conv_integer.1(") == 2
    total = integer_conv(x.astype(np.int64) - 113, w.astype(np.int64), stride, kernel // 2)
    scale = (sx * sw)[:, None, None]
    y = (total + bias[:, None, None]).astype(np.float32) * scale
    f = total.astype(np.float32) * scale + weights["other"][:, None, None]
    wanted = {"y": quantised(np.maximum(y, 0), 0.11, 0), "f": f.astype(np.float32)}
    for options in [(), *ways()]:
        same(answers(tmp_path, ["y", "f"], {"x": x}, *options), wanted)


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_product_by_choice(tmp_path, op):
    rng = np.random.default_rng(4)
    a = rng.integers(-128, 128, (7, 90), np.int8)
    b = rng.integers(-128, 128, (33, 90) if op == "Gemm" else (90, 33), np.int8)
    sb = rng.uniform(0.001, 0.01, 33).astype(np.float32)
    weights = {
        "b": b,
        "sa": np.float32(0.02),
        "za": np.int8(-3),
        "sb": sb,
        "zb": rng.integers(-5, 5, 33, np.int8),
        "c": rng.normal(size=33).astype(np.float32),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["a", "sa", "za"], ["af"]),
        helper.make_node(
            "DequantizeLinear", ["b", "sb", "zb"], ["bf"], axis=0 if op == "Gemm" else 1
        ),
        helper.make_node("Gemm", ["af", "bf", "c"], ["y"], transB=1)
        if op == "Gemm"
        else helper.make_node("MatMul", ["af", "bf"], ["y"]),
    ]
    save(tmp_path / "m.onnx", nodes, [("a", I8, a.shape)], [("y", F32)], weights)
    assert " matmul_integer.1(" in compiled(tmp_path, tmp_path / "m.onnx", "--choices", "integer-1")
    right = (b.T if op == "Gemm" else b).astype(np.int64) - weights["zb"]
    y = ((a.astype(np.int64) + 3) @ right).astype(np.float32) * (np.float32(0.02) * sb)
    wanted = {"y": y + weights["c"] if op == "Gemm" else y}
    for options in [(), *ways()]:
        same(answers(tmp_path, ["y"], {"a": a}, *options), wanted)


def test_elements_are_quantised_before_they_move(tmp_path):
    """Resize, Concat, Transpose and Reshape between DequantizeLinear and QuantizeLinear move bytes."""
    rng = np.random.default_rng(6)
    x = rng.integers(0, 256, (1, 4, 5, 6), np.uint8)
    weights = {
        "s": np.float32(0.03), "z": np.uint8(9), "t": np.float32(0.05), "zt": np.uint8(4),
        "scales": np.array([1, 1, 2, 2], np.float32), "flat": np.array([0, -1]),
        "w": rng.integers(-128, 128, (4, 4, 3, 3), np.int8), "sw": np.float32(0.01),
        "b": rng.integers(-999, 999, 4).astype(np.int32), "sb": np.float32(0.03) * np.float32(0.01),
    }  # fmt: skip
    resize = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"]),
        helper.make_node("Resize", ["xf", "", "scales"], ["large"], nearest_mode="floor", **resize),
        helper.make_node("QuantizeLinear", ["large", "s", "z"], ["large_q"]),
        helper.make_node("DequantizeLinear", ["large_q", "s", "z"], ["large_f"]),
        helper.make_node("DequantizeLinear", ["w", "sw"], ["wf"]),
        helper.make_node("DequantizeLinear", ["b", "sb"], ["bf"]),
        helper.make_node("Conv", ["large_f", "wf", "bf"], ["c"], pads=[1] * 4),
        helper.make_node("QuantizeLinear", ["c", "t", "zt"], ["cq"]),
        helper.make_node("DequantizeLinear", ["cq", "t", "zt"], ["cf"]),
        helper.make_node("Concat", ["large_f", "cf"], ["both"], axis=1),
        helper.make_node("Transpose", ["both"], ["turned"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["turned", "flat"], ["line"]),
        helper.make_node("QuantizeLinear", ["line", "t", "zt"], ["y"]),
    ]
    save(tmp_path / "m.onnx", nodes, [("x", U8, x.shape)], [("y", U8)], weights)
    for choice in ("all", "integer-1"):
        compiled(tmp_path, tmp_path / "m.onnx", "--opt", "0", "--choices", choice)
        wanted = answers(tmp_path, ["y"], {"x": x}, "--isa", "reference")
        text = compiled(tmp_path, tmp_path / "m.onnx", "--choices", choice)
        moves = [line for line in text.splitlines() if re.search(r" (resize|concat|transpose)\.", line)]
        assert len(moves) == 3 and all("u8" in line for line in moves), moves
        for options in [(), *ways()]:
            same(answers(tmp_path, ["y"], {"x": x}, *options), wanted)


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
@pytest.mark.parametrize("shape,axis,block", [((7, 9), 1, 0), ((6, 34), 0, 2), ((3, 5, 100), 2, 0)])
def test_constants_of_4_bits(tmp_path, kind, shape, axis, block):
    rng = np.random.default_rng(6)
    low = -8 if kind == "INT4" else 0
    code = getattr(TensorProto, kind)
    grid = (
        tuple(-(-n // block) if i == axis else n for i, n in enumerate(shape))
        if block
        else shape[axis]
    )
    q, z = rng.integers(low, low + 16, shape), rng.integers(low, low + 16, grid)
    s = rng.uniform(0.01, 1, grid).astype(np.float32)

    def packed(name, v):
        flat = np.append(v.ravel() & 15, 0)[: (v.size + 1) // 2 * 2].astype(np.uint8)
        raw = (flat[::2] | flat[1::2] << 4).tobytes()
        return helper.make_tensor(name, code, v.shape, raw, raw=True)

    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=axis, block_size=block),
        helper.make_node("Mul", ["w", "x"], ["y"]),
    ]
    x = rng.normal(size=shape).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", F32, shape)],
        [helper.make_tensor_value_info("y", F32, shape)],
        [packed("q", q), packed("z", z), numpy_helper.from_array(s, "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    compiled(tmp_path, tmp_path / "m.onnx")
    if block:
        s, z = (np.repeat(v, block, axis).take(range(shape[axis]), axis) for v in (s, z))
    else:
        s, z = (v.reshape([-1 if i == axis else 1 for i in range(len(shape))]) for v in (s, z))
    same(answers(tmp_path, ["y"], {"x": x}), {"y": (q - z).astype(np.float32) * s * x})


FLOAT8 = {"E4M3FN": "float8_e4m3fn", "E4M3FNUZ": "float8_e4m3fnuz", "E5M2": "float8_e5m2"}
FLOAT8["E5M2FNUZ"] = "float8_e5m2fnuz"


@pytest.mark.parametrize("kind", FLOAT8)
def test_constants_of_float8(tmp_path, kind):
    every = np.arange(256, dtype=np.uint8)
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["q", "s"], ["w"]),
            helper.make_node("Max", ["w", "x"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", F32, [1])],
        [helper.make_tensor_value_info("y", F32, [256])],
        [
            helper.make_tensor(
                "q", getattr(TensorProto, "FLOAT8" + kind), [256], every.tobytes(), raw=True
            ),
            numpy_helper.from_array(np.float32(1), "s"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    compiled(tmp_path, tmp_path / "m.onnx")
    wanted = every.view(getattr(ml_dtypes, FLOAT8[kind])).astype(np.float32)
    wanted[np.isnan(wanted)] = np.nan
    wanted.view(np.uint32)[np.isnan(wanted)] = 0x7FC00000
    same(answers(tmp_path, ["y"], {"x": np.array([-np.inf], np.float32)}), {"y": wanted})


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
