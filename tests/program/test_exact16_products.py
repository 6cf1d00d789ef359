"""The profile exact16 in the compiler (spec/exact16.md exact16.7 to exact16.11): which products it
takes, the same at every level, with the values of the page; refusals."""

import re

import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT, invar, program_of, refused
from node_models import BOOL, F32, F64, cast, model, node, numbers, perm
from onnx import TensorProto, helper

I64 = TensorProto.INT64


def integers(x):
    """exact16.1, exact16.2 of the rows of x: scales and integers."""
    most = np.abs(x.astype(np.float64)).max(-1, keepdims=True)
    e = np.frexp(most)[1] - 15
    e += np.rint(np.ldexp(most, -e)) > 32639
    e[most == 0] = 0
    return e, np.rint(np.ldexp(x.astype(np.float64), -e)).astype(np.int64)


def product(a, b):
    """exact16.3, exact16.4 for results in the range of f32: rows of a times columns of b."""
    (ea, qa), (eb, qb) = integers(a), integers(np.swapaxes(b, -1, -2))
    total = (qa[..., :, None, :] * qb[..., None, :, :]).sum(-1)
    return np.ldexp(total.astype(np.float32), ea + np.swapaxes(eb, -1, -2))


def patches(x, kernel, stride, pad):
    """The patches [N, rows, columns, C, kernel, kernel] of a picture in a frame of zeros."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))
    return windows[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)


def convolution(x, w, stride=1, pad=0, groups=1):
    """conv_exact16.2."""
    found = patches(x, w.shape[2], stride, pad)
    n, high, wide = found.shape[:3]
    parts = zip(np.split(found, groups, 3), np.split(w, groups))
    rows = [product(a.reshape(n, high * wide, -1), b.reshape(len(b), -1).T) for a, b in parts]
    return np.concatenate(rows, -1).transpose(0, 2, 1).reshape(n, len(w), high, wide)


X, W, V = numbers(5, 300), numbers(300, 7, seed=1), numbers(300, 9, seed=2)
B = numbers(7, seed=3)
TABLE = numbers(3, 300, 7, seed=4)
INDEX = np.arange(10).reshape(5, 2) % 3
# Places of a picture differ in magnitude.
PICTURE = numbers(2, 6, 7, 8, seed=7) * np.exp2(numbers(2, 1, 7, 8, seed=8) * 4).astype(np.float32)
K3, K1, KB = numbers(4, 3, 3, 3, seed=9), numbers(5, 4, 1, 1, seed=10), numbers(4, seed=11)
FIRST = convolution(PICTURE, K3, 2, 1, 2) + KB[:, None, None]

# name -> nodes, inputs, weights, arrays, (exact16, fp32) products of the plan, the results.
GRAPHS = {
    "linear": (
        [node("MatMul", ["x", "w"], ["y"]), node("MatMul", ["y", "v"], ["z"])],
        [("x", F32, ["n", 300])],
        [("w", W), ("v", numbers(7, 9))],
        {"x": X},
        (2, 0),
        {"y": product(X, W), "z": product(product(X, W), numbers(7, 9))},
    ),
    "gemm": (
        [
            node("Gemm", ["x", "w", "b"], ["y"], transA=1, transB=1),
            cast("half", "wide", F32),
            perm("wide", "turned", 1, 0),
            node("MatMul", ["y", "turned"], ["z"]),
        ],
        [("x", F32, [300, "n"])],
        [
            ("w", np.ascontiguousarray(W.T)),
            ("b", B),
            ("half", numbers(4, 7).astype(ml_dtypes.bfloat16)),
        ],
        {"x": np.ascontiguousarray(X.T)},
        (2, 0),
        {
            "y": product(X, W) + B,
            "z": product(
                product(X, W) + B, numbers(4, 7).astype(ml_dtypes.bfloat16).astype(np.float32).T
            ),
        },
    ),
    "a vector, a stack of matrices and a computed constant": (
        [
            node("MatMul", ["x", "table"], ["y"]),
            node("Relu", ["w"], ["positive"]),
            node("MatMul", ["x", "positive"], ["z"]),
        ],
        [("x", F32, [300])],
        [("table", TABLE), ("w", W)],
        {"x": X[0]},
        (2, 0),
        {"y": product(X[:1], TABLE)[:, 0], "z": product(X[:1], np.maximum(W, 0))[0]},
    ),
    "experts": (
        [
            node("Gather", ["table", "index"], ["g"]),
            node("Unsqueeze", ["x", "middle"], ["a"]),
            node("MatMul", ["a", "g"], ["y"]),
        ],
        [("x", F32, ["n", 300]), ("index", I64, ["n", 2])],
        [("table", TABLE), ("middle", np.array([1, 2]))],
        {"x": X, "index": INDEX},
        (1, 0),
        {"y": product(X[:, None, None], TABLE[INDEX])},
    ),
    # An embedding is an activation, although it is chosen of a table; nothing else is taken.
    "others": (
        [
            node("Gather", ["rows", "index"], ["e"]),
            node("MatMul", ["e", "w"], ["y"]),
            perm("e", "t", 0, 2, 1),
            node("MatMul", ["e", "t"], ["z"]),
            node("Einsum", ["e", "w"], ["u"], equation="bnk,kj->bnj"),
        ],
        [("index", I64, ["n", 2])],
        [("rows", numbers(3, 300, seed=5)), ("w", W)],
        {"index": INDEX},
        (1, 2),
        {"y": product(numbers(3, 300, seed=5)[INDEX], W)},
    ),
    "control flow": (
        [
            node(
                "If",
                ["c"],
                ["y"],
                **{
                    f"{name}_branch": helper.make_graph(
                        [node("MatMul", ["x", weight], ["r"])],
                        name,
                        [],
                        [helper.make_tensor_value_info("r", F32, None)],
                    )
                    for name, weight in (("then", "w"), ("else", "v"))
                },
            ),
            node("MatMul", ["x", "w"], ["z"]),
        ],
        [("x", F32, ["n", 300]), ("c", BOOL, [])],
        [("w", W), ("v", numbers(300, 7, seed=6))],
        {"x": X, "c": np.array(True)},
        (1, 2),
        {"z": product(X, W)},
    ),
    "convolutions": (
        [
            node("Conv", ["x", "k3", "kb"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1], group=2),
            node("Relu", ["y"], ["r"]),
            node("Conv", ["r", "k1"], ["z"]),
            node("Conv", ["r", "deep"], ["u"], group=4),
            node("Conv", ["x", "x"], ["t"]),
        ],
        [("x", F32, [2, 6, 7, 8])],
        [("k3", K3), ("k1", K1), ("kb", KB), ("deep", numbers(4, 1, 2, 2))],
        {"x": PICTURE},
        (2, 2),
        {"y": FIRST, "z": convolution(np.maximum(FIRST, 0), K1)},
    ),
    "doubles": (
        [cast("x", "d", F64), node("MatMul", ["d", "w"], ["r"]), cast("r", "y", F32)],
        [("x", F32, ["n", 300])],
        [("w", W.astype(np.float64))],
        {"x": X},
        (0, 1),
        {},
    ),
}


def products_of(plan):
    text = program_of(plan)
    return tuple(
        len(re.findall(rf"= (?:(?:grouped_)?matmul|conv){suffix}\.", text))
        for suffix in ("_exact16", "")
    )


@pytest.mark.parametrize("name", GRAPHS)
def test_products_levels_and_values(tmp_path, name):
    nodes, inputs, weights, arrays, wanted, results = GRAPHS[name]
    made = {v for n in nodes for v in n.output} & {"y", "z", "u", "t"}
    outputs = [(v, F32) for v in sorted(made)]
    path = model(tmp_path / "m.onnx", nodes, inputs, outputs, weights)
    given = []
    for which, array in arrays.items():
        np.save(tmp_path / f"in.{which}.npy", array)
        given += ["--input", f"{which}={tmp_path}/in.{which}.npy"]
    found, programs = [], set()
    for level in range(4):
        out, plan = tmp_path / str(level), tmp_path / f"{level}.invar"
        done = invar(
            "compile", path, "--opt", level, "--numerics", "exact16", "--output", plan, "--json"
        )
        programs.add(done.json()["program"])
        assert products_of(plan) == wanted, level
        assert 'choice "exact16-1"\n' in program_of(plan)
        invar("infer", plan, *given, "--tensors-output", out)
        found.append({p.name: p.read_bytes() for p in out.iterdir()})
    assert all(f == found[0] for f in found) and len(programs) == 1
    for which, value in results.items():
        own = np.load(tmp_path / f"0/{which}.npy")
        assert own.tobytes() == value.astype(np.float32).tobytes(), which


def test_a_program_says_its_profile(tmp_path):
    path = model(tmp_path / "m.onnx", *graph_of("linear"))
    texts = {
        n: invar("compile", path, "--emit", "program", "--numerics", n).out.decode()
        for n in ("fp32", "exact16")
    }
    assert texts["exact16"] == texts["fp32"].replace('profile "fp32"', 'profile "exact16"')
    assert (
        "repro.matmul_exact16"
        in invar("compile", path, "--emit", "repro", "--numerics", "exact16").out.decode()
    )


def graph_of(name):
    nodes, inputs, weights, _, _, results = GRAPHS[name]
    return nodes, inputs, [(v, F32) for v in results], weights


def test_what_is_refused(tmp_path):
    path = model(tmp_path / "m.onnx", *graph_of("linear"))
    exact16 = ("compile", path, "--numerics", "exact16")
    for weaker in ("deterministic", "default"):
        refused(*exact16, "--operation-set", weaker, code=3, names=["exact16", weaker])
    refused("compile", path, "--numerics", "fp16", names=["--numerics", "fp16", "fp32, exact16"])
    refused("compile", path, "--choices", "exact16-1", names=["exact16-1"])
    plan = tmp_path / "plan.invar"
    invar(*exact16, "--output", plan)
    refused("infer", plan, "--numerics", "fp32", names=["exact16", "fp32", "--numerics"])
    long = model(
        tmp_path / "long.onnx",
        [node("MatMul", ["x", "w"], ["y"], name="wide")],
        [("x", F32, ["n", 2**22 + 1])],
        [("y", F32)],
        [("w", np.zeros((2**22 + 1, 1), np.float32))],
    )
    named = ["MatMul", "wide", "4194305", "4194304"]
    refused("compile", long, "--numerics", "exact16", code=3, names=named)
    invar("compile", long)


def test_the_page_names_the_oracle():
    """The reading of exact16 above is that of the room's oracle."""
    import sys

    sys.path[:0] = [str(ROOT / "tests/conformance"), str(ROOT / "src/ops/matmul/tests")]
    import importlib.util

    path = ROOT / "src/ops/matmul/tests/oracle.py"
    spec = importlib.util.spec_from_file_location("matmul_oracle", path)
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    own = product(X[:2], W)
    for i in range(2):
        for j in range(7):
            assert oracle.exact16_product(X[i].tolist(), W[:, j].tolist()) == own[i, j]
