"""Graphs of the tests of control flow."""

import numpy as np
from conftest import invar
from onnx import TensorProto, helper, numpy_helper, save

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, kind=F32, shape=(3,)):
    return helper.make_tensor_value_info(name, kind, shape)


def graph(nodes, inputs=(), outputs=(), weights=()):
    named = [
        v if not isinstance(v, str) else helper.make_empty_tensor_value_info(v) for v in outputs
    ]
    return helper.make_graph(
        nodes,
        "g",
        list(inputs),
        named,
        [numpy_helper.from_array(np.asarray(v), n) for n, v in weights],
    )


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


def counting(extra=(), outputs=("go", "next", "next")):
    """A body that doubles what it carries; extra nodes compute its condition."""
    return graph(
        [
            helper.make_node("Add", ["v", "v"], ["next"]),
            *(extra or [helper.make_node("Identity", ["c"], ["go"])]),
        ],
        [info("i", I64, []), info("c", BOOL, []), info("v", shape=None)],
        list(outputs),
    )


def loop(*inputs, body, n=None, outputs=("y",)):
    return graph(
        [helper.make_node("Loop", list(inputs), list(outputs), name="again", body=body)],
        [info("x"), info("k", I64, []), info("q", BOOL, [])],
        [info(outputs[-1], shape=None)],
        [("n", np.int64(n or 1)), ("yes", np.bool_(True))],
    )
