"""Integers of every width, signed and unsigned, at their extremes. Each expected value is the low
bits of the result in unbounded integers (spec/onnx.md onnx.14), whatever type computes the node."""

import itertools
import operator

import numpy as np
import pytest
from conftest import invar
from onnx import helper, numpy_helper, save

TYPES = [np.dtype(t) for t in "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()]
BOOL = np.dtype(bool)
I64 = np.dtype(np.int64)
OPSET = 27


def edges(dtype):
    info = np.iinfo(dtype)
    around = [
        0,
        info.min,
        info.max,
        *(s << b for s in (1, -1) for b in (7, 8, 15, 16, 24, 31, 32, 53, 62, 63)),
    ]
    near = {n + d for n in around for d in (-1, 0, 1)} | {
        2,
        3,
        7,
        -7,
        10,
        0x123456789ABCDEF,
        0xFEDCBA9876543210,
    }
    return sorted(n for n in near if info.min <= n <= info.max)


def low_bits(values, dtype):
    if dtype == BOOL:
        return np.array(values, bool)
    bits = 8 * dtype.itemsize
    unsigned = np.array([int(v) % (1 << bits) for v in values], f"u{dtype.itemsize}")
    return unsigned.view(dtype)


def quotient(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shift(left, bits):
    def f(a, b):
        n = b % (1 << bits)
        if left:
            return a << n if n < bits else 0
        return a >> min(n, bits)

    return f


def answers(model, feeds, folder):
    """Compiles and runs; output name -> array."""
    out = folder / "out"
    out.mkdir()
    save(model, folder / "model.onnx")
    invar("compile", folder / "model.onnx")
    args = []
    for name, value in feeds.items():
        np.save(folder / f"{name}.npy", value)
        args += ["--input", f"{name}={folder / name}.npy"]
    invar("infer", folder / "plan.invar", *args, "--tensors-output", out)
    return {path.stem: np.load(path) for path in out.iterdir()}


def made(nodes, inputs, outputs, weights):
    code = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info(n, code(v.dtype), v.shape) for n, v in inputs.items()],
        [helper.make_tensor_value_info(n, code(t), None) for n, t in outputs.items()],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)


def compare(found, wanted):
    assert found.keys() == wanted.keys()
    for name, want in wanted.items():
        assert found[name].dtype == want.dtype and found[name].shape == want.shape, name
        if found[name].tobytes() != want.tobytes():
            i = np.flatnonzero(found[name].ravel() != want.ravel())[0]
            raise AssertionError(
                f"{name}: element {i} is {found[name].ravel()[i]}, not {want.ravel()[i]}"
            )


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_elements(dtype, tmp_path):
    bits = 8 * dtype.itemsize
    a, b = (np.array(x, dtype) for x in zip(*itertools.product(edges(dtype), repeat=2)))
    low, high = np.array(2, dtype), np.array(np.iinfo(dtype).max - 1, dtype)
    two = {
        "Add": operator.add,
        "Sub": operator.sub,
        "Mul": operator.mul,
        "Div": quotient,
        "Max": max,
        "Min": min,
        "Mod": lambda x, y: x % y if y else 0,
        "BitwiseAnd": operator.and_,
        "BitwiseOr": operator.or_,
        "BitwiseXor": operator.xor,
    }
    truth = {
        "Equal": operator.eq,
        "Less": operator.lt,
        "LessOrEqual": operator.le,
        "Greater": operator.gt,
        "GreaterOrEqual": operator.ge,
    }
    one = {
        "Abs": abs,
        "Sign": lambda x: (x > 0) - (x < 0),
        "BitwiseNot": operator.invert,
        "Relu": lambda x: max(x, 0),
    }
    if dtype.kind == "i":
        one["Neg"] = operator.neg
    nodes, outputs, wanted = [], {}, {}

    def add(name, node, f, operands, result=dtype):
        node.output[0] = name
        nodes.append(node)
        outputs[name] = result
        wanted[name] = low_bits([f(*map(int, x)) for x in zip(*operands)], result)

    for name, f in two.items():
        add(name, helper.make_node(name, ["a", "b"], [""]), f, (a, b))
    for name, f in truth.items():
        add(name, helper.make_node(name, ["a", "b"], [""]), f, (a, b), BOOL)
    for name, f in one.items():
        add(name, helper.make_node(name, ["a"], [""]), f, (a,))
    add(
        "fmod",
        helper.make_node("Mod", ["a", "b"], [""], fmod=1),
        lambda x, y: x - y * quotient(x, y) if y else 0,
        (a, b),
    )
    for way in ("LEFT", "RIGHT"):
        add(
            way,
            helper.make_node("BitShift", ["a", "b"], [""], direction=way),
            shift(way == "LEFT", bits),
            (a, b),
        )
    add(
        "Clip",
        helper.make_node("Clip", ["a", "low", "high"], [""]),
        lambda x: min(max(x, 2), int(high)),
        (a,),
    )
    add("Sum", helper.make_node("Sum", ["a", "b", "a"], [""]), lambda x, y: 2 * x + y, (a, b))
    add("Where", helper.make_node("Where", ["Less", "a", "b"], [""]), min, (a, b))
    for to in TYPES:
        if to != dtype:
            code = helper.np_dtype_to_tensor_dtype(to)
            add(f"to_{to}", helper.make_node("Cast", ["a"], [""], to=code), lambda x: x, (a,), to)
    compare(
        answers(
            made(nodes, {"a": a, "b": b}, outputs, {"low": low, "high": high}),
            {"a": a, "b": b},
            tmp_path,
        ),
        wanted,
    )


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_rows(dtype, tmp_path):
    values = edges(dtype)
    x = np.array([values[(i * 7 + i // 5) % len(values)] for i in range(6 * 40)], dtype).reshape(
        6, 40
    )
    rows = [[int(v) for v in row] for row in x]
    nodes, outputs, wanted = [], {}, {}

    def add(name, node, value, result=dtype):
        nodes.append(node)
        outputs[name] = result
        wanted[name] = value

    def product(row):
        total = 1
        for v in row:
            total *= v
        return total

    reductions = {
        "ReduceSum": sum,
        "ReduceProd": product,
        "ReduceSumSquare": lambda r: sum(v * v for v in r),
        "ReduceMax": max,
        "ReduceMin": min,
    }
    if dtype != np.uint64:
        reductions["ReduceL1"] = lambda r: sum(map(abs, r))
    for name, f in reductions.items():
        add(
            name,
            helper.make_node(name, ["x", "one"], [name], keepdims=0),
            low_bits([f(r) for r in rows], dtype),
        )
    for name, best in (("ArgMax", max), ("ArgMin", min)):
        for last in (0, 1):
            at = [len(r) - 1 - r[::-1].index(best(r)) if last else r.index(best(r)) for r in rows]
            add(
                f"{name}{last}",
                helper.make_node(
                    name, ["x"], [f"{name}{last}"], axis=1, keepdims=0, select_last_index=last
                ),
                np.array(at, np.int64),
                I64,
            )
    for largest in (0, 1):
        order = [
            sorted(range(40), key=lambda i, r=r: -r[i] if largest else r[i])[:23] for r in rows
        ]
        top = np.array(order, np.int64)
        nodes.append(
            helper.make_node(
                "TopK", ["x", "k"], [f"top{largest}", f"place{largest}"], axis=1, largest=largest
            )
        )
        outputs |= {f"top{largest}": dtype, f"place{largest}": I64}
        wanted |= {f"top{largest}": np.take_along_axis(x, top, 1), f"place{largest}": top}
    for name, f in (("CumSum", operator.add), ("CumProd", operator.mul)):
        running = [v for r in rows for v in itertools.accumulate(r, f)]
        add(
            name,
            helper.make_node(name, ["x", "axis"], [name]),
            low_bits(running, dtype).reshape(x.shape),
        )
    add("Transpose", helper.make_node("Transpose", ["x"], ["Transpose"]), np.ascontiguousarray(x.T))
    add("Gather", helper.make_node("Gather", ["x", "k"], ["Gather"], axis=1), x[:, 23:24])
    add(
        "Concat", helper.make_node("Concat", ["x", "x"], ["Concat"], axis=0), np.concatenate([x, x])
    )
    weights = {"one": np.array([1]), "k": np.array([23]), "axis": np.array(1)}
    compare(answers(made(nodes, {"x": x}, outputs, weights), {"x": x}, tmp_path), wanted)


def test_convolution_of_extremes(tmp_path):
    """Channels whose products reach 255 * 255 each, enough of them for several parts; groups, pads
    and zero points."""
    r = np.random.default_rng(1)
    x = r.choice(np.array([0, 255, 254], np.uint8), (2, 122, 5, 6))
    w = r.choice(np.array([-128, 127], np.int8), (4, 61, 3, 3))
    x_zero, w_zero = np.array(255, np.uint8), np.array([-128, 127, 0, 5], np.int8)
    nodes = [
        helper.make_node(
            "ConvInteger",
            ["x", "w", "x_zero", "w_zero"],
            ["y"],
            pads=[1, 0, 1, 2],
            strides=[1, 2],
            group=2,
        )
    ]
    padded = np.zeros((2, 122, 7, 8), np.int64)
    padded[:, :, 1:6, :6] = x.astype(np.int64) - 255
    centred = w.astype(np.int64) - w_zero.astype(np.int64)[:, None, None, None]
    want = np.zeros((2, 4, 5, 3), np.int64)
    for m, i, j in itertools.product(range(4), range(5), range(3)):
        group = padded[:, m // 2 * 61 : m // 2 * 61 + 61, i : i + 3, 2 * j : 2 * j + 3]
        want[:, m, i, j] = (group * centred[m]).sum((1, 2, 3))
    model = made(
        nodes, {"x": x}, {"y": np.dtype(np.int32)}, {"w": w, "x_zero": x_zero, "w_zero": w_zero}
    )
    compare(answers(model, {"x": x}, tmp_path), {"y": want.astype(np.int32)})


def test_powers_of_large_exponents(tmp_path):
    base = np.array([3, -3, 2, -2, 5, -1, 0, 1, 7], np.int64)
    exponent = np.array(
        [2**64 - 1, 2**63, 2**63, 2**64 - 1, 2**63 + 12345, 2**64 - 1, 2**63, 2**64 - 1, 2**63 - 1],
        np.uint64,
    )
    model = made(
        [helper.make_node("Pow", ["x", "e"], ["y"])], {"x": base, "e": exponent}, {"y": I64}, {}
    )
    want = low_bits([pow(int(b), int(e), 1 << 64) for b, e in zip(base, exponent)], I64)
    compare(answers(model, {"x": base, "e": exponent}, tmp_path), {"y": want})


@pytest.mark.parametrize("dtype", [np.int16, np.uint16])
def test_words_quantised(dtype, tmp_path):
    """Ties, saturation on both sides, NaN and infinities, a scale for each index of the axis."""
    info = np.iinfo(dtype)
    x = np.array(
        [
            [0.5, 1.5, -2.5, 1e9, -1e9, np.inf, -np.inf, np.nan, 3e5],
            [1, 3, -5, 65535, -32769, 2**24, -(2**24), 0, 7],
        ],
        np.float32,
    )
    scale, zero = np.array([1, 2], np.float32), np.array([info.max // 2, info.min + 7], dtype)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=0),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=0),
    ]
    model = made(
        nodes, {"x": x}, {"q": np.dtype(dtype), "d": np.dtype(np.float32)}, {"s": scale, "z": zero}
    )
    steps = np.round(
        np.nan_to_num(x / scale[:, None], nan=0.0, posinf=1e30, neginf=-1e30).astype(np.float64)
    )
    q = np.clip(steps + zero[:, None], info.min, info.max).astype(dtype)
    d = (q.astype(np.float32) - zero[:, None].astype(np.float32)) * scale[:, None]
    compare(answers(model, {"x": x}, tmp_path), {"q": q, "d": d})
