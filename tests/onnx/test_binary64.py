"""Models of f64: every operation rounds once to binary64 (spec/formats.md formats.12), the
functions are sequences of such operations (functions.40, functions.41), what other functions there
are is refused by name."""

import itertools
import runpy
import sys

import numpy as np
import pytest
from conftest import ROOT, refused
from onnx import helper, save
from test_integers import BOOL, answers, compare, made

sys.path.insert(0, str(ROOT / "tests/conformance"))
import oracle  # noqa: E402

F64 = np.dtype(np.float64)
EDGES = np.array(
    [
        0.0,
        -0.0,
        5e-324,
        -5e-324,
        2.2250738585072014e-308,
        1.0,
        -1.5,
        2.5,
        -3.5,
        7.0,
        0.1,
        1e308,
        -1e308,
        2.0**53 + 2,
        3.0,
        np.inf,
        -np.inf,
        np.nan,
    ]
)


def canonical(x):
    return np.where(np.isnan(x), np.float64(np.nan), x)


@pytest.fixture
def functions(monkeypatch):
    """The functions of functions.40 and functions.41, from the specification."""
    monkeypatch.setattr(oracle, "ARITHMETIC", ["f64"])
    room = runpy.run_path(str(ROOT / "src/ops/elementwise/tests/oracle.py"))
    return np.vectorize(room["exp_f64"], [F64]), np.vectorize(room["log_f64"], [F64])


@pytest.mark.filterwarnings("ignore")
def test_elements(tmp_path):
    a, b = (np.array(x) for x in zip(*itertools.product(EDGES, repeat=2)))
    larger, smaller = np.maximum(a, b), np.minimum(a, b)  # of zeros NumPy takes either
    zeros = (a == 0) & (b == 0)
    larger[zeros] = np.where(np.signbit(a) & np.signbit(b), -0.0, 0.0)[zeros]
    smaller[zeros] = np.where(np.signbit(a) | np.signbit(b), -0.0, 0.0)[zeros]
    two = {
        "Add": a + b,
        "Sub": a - b,
        "Mul": a * b,
        "Div": a / b,
        "Max": larger,
        "Min": smaller,
        "Mod": np.mod(a, b),
    }
    one = {
        "Abs": np.abs(a),
        "Neg": -a,
        "Sqrt": np.sqrt(a),
        "Reciprocal": 1 / a,
        "Floor": np.floor(a),
        "Ceil": np.ceil(a),
        "Round": np.rint(a),
    }
    truth = {
        "Equal": a == b,
        "Less": a < b,
        "LessOrEqual": a <= b,
        "Greater": a > b,
        "GreaterOrEqual": a >= b,
    }
    nodes = [helper.make_node(n, ["a", "b"], [n]) for n in [*two, *truth]] + [
        helper.make_node(n, ["a"], [n]) for n in one
    ]
    nodes += [
        helper.make_node("Mod", ["a", "b"], ["fmod"], fmod=1),
        helper.make_node("Where", ["Less", "a", "b"], ["Where"]),
        helper.make_node("Sum", ["a", "b", "a"], ["Sum"]),
        helper.make_node("IsNaN", ["a"], ["IsNaN"]),
    ]
    infinite = {
        (1, 1): np.isinf(a),
        (1, 0): np.isneginf(a),
        (0, 1): np.isposinf(a),
        (0, 0): np.zeros_like(a, np.bool_),
    }
    nodes += [
        helper.make_node("IsInf", ["a"], [f"IsInf{n}{p}"], detect_negative=n, detect_positive=p)
        for n, p in infinite
    ]
    truth |= {"IsNaN": np.isnan(a), **{f"IsInf{n}{p}": v for (n, p), v in infinite.items()}}
    wanted = {
        n: canonical(v)
        for n, v in {
            **two,
            **one,
            "fmod": np.fmod(a, b),
            "Where": np.where(a < b, a, b),
            "Sum": (a + b) + a,
        }.items()
    } | truth
    outputs = {n: v.dtype for n, v in wanted.items()}
    compare(answers(made(nodes, {"a": a, "b": b}, outputs, {}), {"a": a, "b": b}, tmp_path), wanted)
    assert outputs["Less"] == BOOL


def test_sums(tmp_path):
    """Integers below 2^53, whose sums are exact in any order."""
    r = np.random.default_rng(3)
    x, y = (
        r.integers(-(2**20), 2**20, (5, 300)).astype(F64),
        r.integers(-(2**20), 2**20, (300, 7)).astype(F64),
    )
    nodes = [
        helper.make_node("ReduceSum", ["x", "one"], ["sum"], keepdims=0),
        helper.make_node("ReduceMean", ["x", "one"], ["mean"]),
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("ReduceL1", ["x", "one"], ["l1"]),
        helper.make_node("CumSum", ["x", "one"], ["running"], exclusive=1, reverse=1),
        helper.make_node("MatMul", ["x", "y"], ["product"]),
        helper.make_node("Gemm", ["x", "y", "c"], ["gemm"], alpha=2.0, beta=0.5),
        helper.make_node("Einsum", ["x", "y"], ["einsum"], equation="ij,jk->ki"),
    ]
    c = np.arange(7, dtype=F64)
    tail = np.cumsum(x[:, ::-1], axis=1)[:, ::-1]
    wanted = {
        "sum": x.sum(1),
        "mean": x.sum(1, keepdims=True) / 300,
        "most": x.max(),
        "l1": np.abs(x).sum(1, keepdims=True),
        "running": tail - x,
        "product": x @ y,
        "gemm": 2 * (x @ y) + c / 2,
        "einsum": np.ascontiguousarray((x @ y).T),
    }
    wanted = {n: np.asarray(v) + 0.0 for n, v in wanted.items()}
    model = made(
        nodes, {"x": x, "y": y}, dict.fromkeys(wanted, F64), {"one": np.array([1]), "c": c}
    )
    compare(answers(model, {"x": x, "y": y}, tmp_path), wanted)


@pytest.mark.filterwarnings("ignore")
def test_functions(tmp_path, functions):
    exp, log = functions
    x = np.concatenate([EDGES, np.linspace(-746, 711, 97), 1 + np.arange(-8, 9) * 2.0**-50])
    pairs = np.array(
        [
            [0.3, 0.7],
            [1000, 999.5],
            [-np.inf, 2],
            [np.inf, 1],
            [-np.inf, -np.inf],
            [np.nan, 0],
            [-740, 3],
        ]
    )
    nodes = [
        helper.make_node("Exp", ["x"], ["exp"]),
        helper.make_node("Log", ["x"], ["log"]),
        helper.make_node("Softmax", ["p"], ["softmax"], axis=1),
        helper.make_node("LogSoftmax", ["p"], ["log_softmax"], axis=1),
        helper.make_node("ReduceLogSumExp", ["p", "one"], ["log_sum_exp"], keepdims=0),
        helper.make_node("ReduceLogSum", ["p", "one"], ["log_sum"], keepdims=0),
    ]
    most = pairs.max(1, keepdims=True)
    d = pairs - most
    total = exp(d).sum(1, keepdims=True)
    centre = np.where(np.isfinite(most), most, 0.0)
    wanted = {
        "exp": exp(x),
        "log": log(x),
        "softmax": exp(d) / total,
        "log_softmax": d - log(total),
        "log_sum_exp": (centre + log(exp(pairs - centre).sum(1, keepdims=True)))[:, 0],
        "log_sum": log(pairs.sum(1)),
    }
    wanted = {n: canonical(v) for n, v in wanted.items()}
    model = made(nodes, {"x": x, "p": pairs}, dict.fromkeys(wanted, F64), {"one": np.array([1])})
    compare(answers(model, {"x": x, "p": pairs}, tmp_path), wanted)


@pytest.mark.parametrize("name", ["Sin", "Tanh", "Erf", "Sigmoid"])
def test_refused(name, tmp_path):
    save(
        made([helper.make_node(name, ["x"], ["y"])], {"x": EDGES}, {"y": F64}, {}),
        tmp_path / "model.onnx",
    )
    refused("compile", tmp_path / "model.onnx", code=3, names=[name])
