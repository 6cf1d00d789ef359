"""Control flow and functions of ONNX: what they compute, to the last byte, and what is refused by name."""

from random import Random

import numpy as np
import pytest
from conftest import execute, invar, refused
from onnx import TensorProto, helper, numpy_helper, save

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, kind=F32, shape=(3,)):
    return helper.make_tensor_value_info(name, kind, shape)


def graph(nodes, inputs=(), outputs=(), weights=()):
    named = [v if not isinstance(v, str) else helper.make_empty_tensor_value_info(v) for v in outputs]
    return helper.make_graph(nodes, "g", list(inputs), named, [numpy_helper.from_array(np.asarray(v), n) for n, v in weights])


def model(path, top, functions=(), opset=23):
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    save(helper.make_model(top, opset_imports=sets, ir_version=11, functions=functions), path)
    return path


def run(folder, top, given, **how):
    path = model(folder / "m.onnx", top, **how)
    invar("compile", path)
    args = ["infer", folder / "plan.invar", "--tensors-output", folder]
    for name, value in given.items():
        np.save(folder / f"in.{name}.npy", value)
        args += ["--input", f"{name}={folder / f'in.{name}.npy'}"]
    invar(*args)
    return [np.load(folder / f"{v.name}.npy") for v in top.output]


X = np.array([1.5, -2, 3], np.float32)


@pytest.mark.parametrize("cond", [True, False])
def test_if_decided_at_run_time(tmp_path, cond):
    branches = [graph([helper.make_node(op, ["x"], ["t"])], outputs=["t"]) for op in ("Exp", "Neg")]
    top = graph([helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]), helper.make_node("Exp", ["x"], ["e"])],
                [info("c", BOOL, []), info("x")], [info("y"), info("e")])
    y, e = run(tmp_path, top, {"c": np.array(cond), "x": X})
    assert y.tobytes() == (e if cond else -X).tobytes()


def test_branches_that_differ(tmp_path):
    top = graph([helper.make_node("If", ["c"], ["y"], then_branch=graph([helper.make_node("Neg", ["x"], ["t"])], outputs=["t"]),
                                  else_branch=graph([helper.make_node("Flatten", ["x"], ["t"], axis=0)], outputs=["t"]))],
                [info("c", BOOL, []), info("x")], [info("y", shape=None)])
    path = model(tmp_path / "m.onnx", top)
    refused("compile", path, code=3, names=["If", "tensor<3xf32>", "tensor<1x3xf32>", "--bind c=FILE.npy"])
    np.save(tmp_path / "c.npy", np.array(False))
    invar("compile", path, "--bind", f"c={tmp_path / 'c.npy'}")


def counting(extra=(), outputs=("go", "next", "next")):
    """A body that doubles what it carries; extra nodes compute its condition."""
    return graph([helper.make_node("Add", ["v", "v"], ["next"]), *(extra or [helper.make_node("Identity", ["c"], ["go"])])],
                 [info("i", I64, []), info("c", BOOL, []), info("v", shape=None)], list(outputs))


def test_loop_is_unrolled(tmp_path):
    top = graph([helper.make_node("Loop", ["n", "", "x"], ["y", "all"], body=counting([helper.make_node("Identity", ["yes"], ["go"])]))],
                [info("x")], [info("y"), info("all", shape=None)], [("n", np.int64(5)), ("yes", np.bool_(True))])
    y, rows = run(tmp_path, top, {"x": X})
    assert y.tobytes() == (32 * X).tobytes() and rows.tobytes() == np.stack([X * 2**k for k in range(1, 6)]).tobytes()


def test_loop_ends_by_a_condition_known_when_compiling(tmp_path):
    top = graph([helper.make_node("Loop", ["", "yes", "x"], ["y", "all"], body=counting([helper.make_node("Less", ["i", "last"], ["go"])]))],
                [info("x")], [info("y"), info("all", shape=None)], [("last", np.int64(3)), ("yes", np.bool_(True))])
    y, rows = run(tmp_path, top, {"x": X})
    assert y.tobytes() == (16 * X).tobytes() and rows.shape == (4, 3)


@pytest.mark.parametrize("limit,times", [(1.0, 1), (20.0, 3), (1e9, 6)])
def test_loop_ends_by_a_condition_decided_at_run_time(tmp_path, limit, times):
    body = counting([helper.make_node("ReduceMax", ["next"], ["m"], keepdims=0), helper.make_node("Less", ["m", "limit"], ["go"])], ("go", "next"))
    top = graph([helper.make_node("Loop", ["n", "yes", "x"], ["y"], body=body)], [info("x"), info("limit", shape=[])], [info("y")],
                [("n", np.int64(6)), ("yes", np.bool_(True))])
    y, = run(tmp_path, top, {"x": X, "limit": np.float32(limit)})
    assert y.tobytes() == (X * 2**times).tobytes()


@pytest.mark.parametrize("n", [0, -1])
def test_loop_without_a_step(tmp_path, n):
    top = graph([helper.make_node("Loop", ["n", "yes", "x"], ["y", "all"], body=counting())], [info("x")],
                [info("y"), info("all", shape=None)], [("n", np.int64(n)), ("yes", np.bool_(True))])
    y, rows = run(tmp_path, top, {"x": X})
    assert y.tobytes() == X.tobytes() and rows.shape == (0, 3)


def test_scan_along_axes_backwards(tmp_path):
    body = graph([helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["u"])], [info("s", shape=[2]), info("e", shape=[2])],
                 ["t", "u"])
    scan = helper.make_node("Scan", ["s0", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_axes=[-1], scan_input_directions=[1],
                            scan_output_axes=[1], scan_output_directions=[1])
    x = np.array([[1, 2, 4], [8, 16, 32]], np.float32)
    last, rows = run(tmp_path, graph([scan], [info("s0", shape=[2]), info("x", shape=[2, 3])], [info("last", shape=[2]), info("all", shape=None)]),
                     {"s0": np.zeros(2, np.float32), "x": x})
    assert last.tobytes() == x.sum(1).tobytes()
    assert rows.tobytes() == np.ascontiguousarray(np.cumsum(x[:, ::-1], 1)[:, ::-1]).tobytes()


def test_functions_take_precedence(tmp_path):
    add = helper.make_function("", "Add", ["a", "b"], ["c"], [helper.make_node("Mul", ["a", "b"], ["c"])], [helper.make_opsetid("", 23)])
    y, = run(tmp_path, graph([helper.make_node("Add", ["x", "x"], ["y"])], [info("x")], [info("y")]), {"x": X}, functions=[add])
    assert y.tobytes() == (X * X).tobytes()


def calls():
    """A function whose graphs capture its inputs, called within a graph."""
    branches = {f"{b}_branch": graph([helper.make_node(op, ["a"], ["r"])], outputs=["r"]) for b, op in (("then", "Neg"), ("else", "Abs"))}
    f = helper.make_function("own", "Choose", ["c", "a"], ["y"], [helper.make_node("If", ["c"], ["y"], **branches)], [helper.make_opsetid("", 23)])
    body = graph([helper.make_node("Choose", ["flag", "v"], ["next"], domain="own"), helper.make_node("Identity", ["c"], ["go"])],
                 [info("i", I64, []), info("c", BOOL, []), info("v")], ["go", "next"])
    top = graph([helper.make_node("Loop", ["n", "yes", "x"], ["y"], body=body)], [info("x"), info("flag", BOOL, [])], [info("y")],
                [("n", np.int64(3)), ("yes", np.bool_(True))])
    return top, [f]


def test_graphs_of_calls(tmp_path):
    top, functions = calls()
    for flag, expected in ((True, -X), (False, abs(X))):
        y, = run(tmp_path, top, {"x": X, "flag": np.array(flag)}, functions=functions)
        assert y.tobytes() == expected.tobytes()


# --- refused ---------------------------------------------------------------------------------------------------------

def loop(*inputs, body, n=None, outputs=("y",)):
    return graph([helper.make_node("Loop", list(inputs), list(outputs), name="again", body=body)], [info("x"), info("k", I64, []), info("q", BOOL, [])],
                 [info(outputs[-1], shape=None)], [("n", np.int64(n or 1)), ("yes", np.bool_(True))])


@pytest.mark.parametrize("top,code,names", [
    (loop("n", "yes", "x", n=2**62, body=counting(outputs=("go", "next"))), 3, ["again", "131072"]),
    (loop("", "yes", "x", body=counting(outputs=("go", "next"))), 3, ["again", "131072"]),
    (loop("", "q", "x", body=counting(outputs=("go", "next"))), 3, ["again", "trip count", "--bind q=FILE.npy"]),
    (loop("k", "yes", "x", body=counting(outputs=("go", "next"))), 3, ["again", "--bind k=FILE.npy"]),
    (loop("n", "q", "x", body=counting(), outputs=("last", "y")), 3, ["again", "the length of its results"]),
    (loop("n", "", "x", body=counting([helper.make_node("Identity", ["q"], ["go"])], ("go", "next"))), 3, ["again", "condition"]),
    (loop("n", "yes", "x", body=counting(outputs=("go",))), 2, ["again", "results"]),
    (loop("n", "yes", body=counting(outputs=("go", "next")), outputs=("y",)), 2, ["again", "takes 3 inputs instead of 2"]),
    (loop("n", "yes", "k", body=counting([helper.make_node("NoSuch", ["v"], ["go"])], ("go", "next"))), 3, ["again", "NoSuch"]),
], ids=["huge count", "for ever", "condition", "count", "rows", "ignored condition", "results", "inputs", "operator"])
def test_refusals(tmp_path, top, code, names):
    refused("compile", model(tmp_path / "m.onnx", top), code=code, names=names)


def test_nested_loops_end(tmp_path):
    """Ten loops of a thousand steps, one in the other."""
    body = counting(outputs=("go", "next"))
    for d in range(10):
        inner = helper.make_node("Loop", ["n", "yes", f"v{d}"], [f"r{d}"], body=body)
        body = graph([inner, helper.make_node("Identity", [f"c{d}"], [f"go{d}"])],
                     [info(f"i{d}", I64, []), info(f"c{d}", BOOL, []), info(f"v{d}", shape=None)], [f"go{d}", f"r{d}"])
    refused("compile", model(tmp_path / "m.onnx", loop("n", "yes", "x", n=1000, body=body)), code=3, names=["again", "131072"], timeout=60)


@pytest.mark.parametrize("damage", range(16))
def test_flipped_bytes_never_crash(tmp_path, damage):
    top, functions = calls()
    path = model(tmp_path / "m.onnx", top, functions=functions)
    whole, random = path.read_bytes(), Random(damage)
    for _ in range(10):
        data = bytearray(whole)
        for _ in range(1 + damage % 4):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data)
        done = execute(["compile", path], timeout=60)
        assert done.code in (0, 2, 3) and len(done.errors) == (done.code != 0), done.text
