#!/usr/bin/env python3
"""Programs of many small steps, recurrent networks and loops, against ONNX Runtime on as many
threads, in turns.

    steps.py [--threads N] [--only TEXT] [--seconds S] [--package BUILD/python]

A row each: best and median milliseconds of a call for ours and for the peer, and the peer's time
over ours by each. "open": the number of steps is an input's dimension, and a loop runs; "fixed": it
is a constant of the model, and Invar unrolls. "loop" and "scan" are ONNX's nodes with five small
operations in each step; there "us" is what a step takes."""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, save

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, shape, kind=F32):
    return helper.make_tensor_value_info(name, kind, shape)


def recurrent(op, hidden, steps, batch, is_open):
    random = np.random.default_rng(0)
    weights = {
        n: (random.standard_normal(shape) / hidden**0.5).astype(np.float32)
        for n, shape in (
            ("w", (1, GATES[op] * hidden, hidden)),
            ("r", (1, GATES[op] * hidden, hidden)),
            ("b", (1, 2 * GATES[op] * hidden)),
        )
    }
    nodes = [helper.make_node(op, ["x", "w", "r", "b"], ["y", "h"], hidden_size=hidden)]
    made = helper.make_graph(
        nodes,
        "g",
        [info("x", ["steps" if is_open else steps, batch, hidden])],
        [info("y", None), info("h", None)],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    return made, {"x": random.standard_normal((steps, batch, hidden)).astype(np.float32)}


def small(state, x, to):
    """h <- tanh(h * a + x) * h + x"""
    return [
        helper.make_node("Mul", [state, "a"], ["s0"]),
        helper.make_node("Add", ["s0", x], ["s1"]),
        helper.make_node("Tanh", ["s1"], ["s2"]),
        helper.make_node("Mul", ["s2", state], ["s3"]),
        helper.make_node("Add", ["s3", x], [to]),
    ]


def flow(op, hidden, steps):
    random = np.random.default_rng(0)
    a = numpy_helper.from_array(random.standard_normal(hidden).astype(np.float32), "a")
    x = random.standard_normal((steps, hidden)).astype(np.float32)
    if op == "scan":
        body = helper.make_graph(
            small("h", "row", "next") + [helper.make_node("Identity", ["next"], ["shown"])],
            "b",
            [info("h", [hidden]), info("row", [hidden])],
            [info("next", [hidden]), info("shown", [hidden])],
        )
        node = helper.make_node("Scan", ["h0", "x"], ["h1", "y"], num_scan_inputs=1, body=body)
    else:
        body = helper.make_graph(
            [helper.make_node("Gather", ["x", "i"], ["row"])]
            + small("h", "row", "next")
            + [
                helper.make_node("Identity", ["go"], ["on"]),
                helper.make_node("Identity", ["next"], ["shown"]),
            ],
            "b",
            [info("i", [], I64), info("go", [], BOOL), info("h", [hidden])],
            [info("on", [], BOOL), info("next", [hidden]), info("shown", [hidden])],
        )
        node = helper.make_node("Loop", ["trips", "", "h0"], ["h1", "y"], body=body)
    inputs = [info("x", ["steps", hidden]), info("h0", [hidden])] + (
        [info("trips", [], I64)] if op == "loop" else []
    )
    given = {"x": x, "h0": x[0]} | ({"trips": np.array(steps)} if op == "loop" else {})
    return helper.make_graph(
        [node], "g", inputs, [info("h1", [hidden]), info("y", None)], [a]
    ), given


def cases():
    for op in GATES:
        for hidden, steps, batch in (
            (128, 64, 1),
            (128, 64, 8),
            (512, 64, 1),
            (512, 256, 1),
            (512, 64, 8),
        ):
            for is_open in (True, False):
                if is_open or steps == 64:
                    name = f"{op} {hidden}, {steps} steps, batch {batch}, {'open' if is_open else 'fixed'}"
                    yield (
                        name,
                        steps,
                        lambda op=op, h=hidden, s=steps, b=batch, o=is_open: recurrent(
                            op, h, s, b, o
                        ),
                    )
    for op in ("loop", "scan"):
        yield f"{op} of small operations, 256 steps", 256, lambda op=op: flow(op, 64, 256)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=1, help="for each of the two")
    parser.add_argument(
        "--package", default=str(Path(__file__).resolve().parents[2] / "build/python")
    )
    options = parser.parse_args()
    sys.path.insert(0, options.package)
    import invar

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = options.threads, 3
    print(
        f"{options.threads} threads, ONNX Runtime {onnxruntime.__version__}; ms, best (median)\n"
        f"| | ours | us a step | ONNX Runtime | ratio |\n|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, steps, make in cases():
            if options.only not in name:
                continue
            top, given = make()
            path = f"{folder}/m.onnx"
            save(
                helper.make_model(top, opset_imports=[helper.make_opsetid("", 20)], ir_version=9),
                path,
            )
            program = invar.compile(path, threads=options.threads)
            session = onnxruntime.InferenceSession(
                path, settings, providers=["CPUExecutionProvider"]
            )
            results = [t.name for t in program.outputs]
            calls = [
                lambda: program.run(given),
                lambda: dict(zip(results, session.run(results, given))),
            ]
            ours, theirs = (call() for call in calls)
            for n in ours:
                assert np.abs(ours[n] - theirs[n]).max() < 1e-3 * max(1, np.abs(theirs[n]).max()), n
            times = [[], []]
            end = time.perf_counter() + 2 * options.seconds
            while time.perf_counter() < end:
                for all_times, call in zip(times, calls):
                    for i in range(6):  # the first after a turn finds the caches of the other
                        start = time.perf_counter()
                        call()
                        if i:
                            all_times.append(1e3 * (time.perf_counter() - start))
            (a, b), (am, bm) = (min(t) for t in times), (statistics.median(t) for t in times)
            print(
                f"| {name} | {a:.3f} ({am:.3f}) | {1e3 * a / steps:.2f} | {b:.3f} ({bm:.3f}) | "
                f"{b / a:.2f} ({bm / am:.2f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
