#!/usr/bin/env python3
"""Quantised graphs against ONNX Runtime on as many threads, in turns.

    quantised.py [--threads N] [--only TEXT] [--seconds S] [--package BUILD/python] [--keep FOLDER]

The graphs have the layers of ResNet-18, MobileNetV3, a U-Net and a small BERT, with random weights,
quantised by ONNX Runtime (weights per channel). A row each: processor milliseconds of a call, the
median, for ours and for the peer, and ours over the peer's. "fp32": before quantisation; "qdq": the
quantised graph as it is; "integer": the same with the choice integer-1; "qoperator": the other
format."""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, load, numpy_helper, save, shape_inference
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static


class Graph:
    """A graph of one input x that grows node by node."""

    def __init__(self, shape):
        self.shape, self.nodes, self.weights = shape, [], []
        self.random = np.random.default_rng(7)

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, scale=None):
        scale = scale or (2 / max(1, int(np.prod(shape[1:])))) ** 0.5
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def op(self, kind, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def conv(self, x, channels, rows, kernel=3, stride=1, groups=1):
        w = self.weight(rows, channels // groups, kernel, kernel)
        return self.op(
            "Conv",
            x,
            w,
            self.weight(rows, scale=0.1),
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[kernel // 2] * 4,
            group=groups,
        )

    def gemm(self, x, k, n):
        return self.op("Gemm", x, self.weight(n, k), self.weight(n, scale=0.1), transB=1)

    def save(self, y, path):
        made = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)],
            self.weights,
        )
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        save(shape_inference.infer_shapes(model), path)


def resnet18(path):
    g = Graph([1, 3, 224, 224])
    x = g.op("Relu", g.conv("x", 3, 64, 7, 2))
    x, c = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64
    for stage, rows in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = g.conv(g.op("Relu", g.conv(x, c, rows, 3, stride)), rows, rows)
            skipped = g.conv(x, c, rows, 1, stride) if stride > 1 else x
            x, c = g.op("Relu", g.op("Add", y, skipped)), rows
    x = g.op("Flatten", g.op("GlobalAveragePool", x))
    g.save(g.gemm(x, c, 1000), path)


def mobilenet(path):
    g = Graph([1, 3, 224, 224])
    x, c = g.op("HardSwish", g.conv("x", 3, 16, 3, 2)), 16
    for rows, stride, more, kernel in (
        (16, 2, 1, 3),
        (24, 2, 4, 3),
        (24, 1, 4, 3),
        (40, 2, 4, 5),
        (40, 1, 6, 5),
        (40, 1, 6, 5),
        (48, 1, 3, 5),
        (96, 2, 6, 5),
        (96, 1, 6, 5),
    ):
        wide, narrow = c * more, max(8, c * more // 4)
        y = g.op("HardSwish", g.conv(x, c, wide, 1))
        y = g.op("HardSwish", g.conv(y, wide, wide, kernel, stride, wide))
        s = g.op("Relu", g.conv(g.op("GlobalAveragePool", y), wide, narrow, 1))
        y = g.conv(g.op("Mul", y, g.op("HardSigmoid", g.conv(s, narrow, wide, 1))), wide, rows, 1)
        x, c = g.op("Add", x, y) if stride == 1 and c == rows else y, rows
    x = g.op("Flatten", g.op("GlobalAveragePool", g.op("HardSwish", g.conv(x, c, 576, 1))))
    g.save(g.gemm(g.op("HardSwish", g.gemm(x, 576, 1024)), 1024, 1000), path)


def unet(path):
    g = Graph([1, 3, 128, 128])
    x, c, skipped = "x", 3, []
    for rows in (32, 64, 128):
        x = g.op("Relu", g.conv(g.op("Relu", g.conv(x, c, rows)), rows, rows))
        skipped.append((x, rows))
        x, c = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), rows
    x, c = g.op("Relu", g.conv(x, c, 2 * c)), 2 * c
    for skip, rows in reversed(skipped):
        scales = g.constant(np.array([1, 1, 2, 2], np.float32))
        x = g.op(
            "Resize",
            x,
            "",
            scales,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
        x = g.op("Relu", g.conv(g.op("Concat", x, skip, axis=1), c + rows, rows))
        x, c = g.op("Relu", g.conv(x, rows, rows)), rows
    g.save(g.op("Sigmoid", g.conv(x, c, 1, 1)), path)


def bert(path, layers=6, width=384, length=128, heads=12):
    g, x = Graph([1, length, width]), "x"

    def linear(v, k, n):
        product = g.op("MatMul", v, g.weight(k, n, scale=k**-0.5))
        return g.op("Add", product, g.weight(n, scale=0.1))

    def norm(v):
        scale, bias = g.weight(width, scale=0.1), g.weight(width, scale=0.1)
        return g.op("LayerNormalization", v, scale, bias, axis=-1)

    def number(v):
        return g.constant(np.float32(v))

    for _ in range(layers):
        split = g.constant(np.array([1, length, heads, width // heads]))
        q, k, v = (
            g.op("Transpose", g.op("Reshape", linear(x, width, width), split), perm=perm)
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = g.op("Div", g.op("MatMul", q, k), number((width // heads) ** 0.5))
        a = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores), v), perm=[0, 2, 1, 3])
        a = g.op("Reshape", a, g.constant(np.array([1, length, width])))
        x = norm(g.op("Add", x, linear(a, width, width)))
        h = linear(x, width, 4 * width)
        erf = g.op("Erf", g.op("Div", h, number(2**0.5)))
        h = g.op("Mul", g.op("Mul", h, g.op("Add", erf, number(1))), number(0.5))
        x = norm(g.op("Add", x, linear(h, 4 * width, width)))
    g.save(x, path)


GRAPHS = {"resnet18": resnet18, "mobilenet_v3": mobilenet, "unet": unet, "bert": bert}


class Samples(CalibrationDataReader):
    def __init__(self, shape):
        random = np.random.default_rng(1)
        self.left = [{"x": random.standard_normal(shape).astype(np.float32)} for _ in range(2)]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantised(path, form, shape):
    made = path.with_suffix(f".{form.name.lower()}.onnx")
    if not made.exists():
        quantize_static(
            path,
            made,
            Samples(shape),
            quant_format=form,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    return made


def peer(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def timed(calls, x, seconds):
    """The median processor time of each call, in milliseconds, in turns."""
    found = [[] for _ in calls]
    for call in calls:
        call(x)
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(found[0]) < 5:
        for call, times in zip(calls, found):
            start = time.process_time()
            call(x)
            times.append((time.process_time() - start) * 1e3)
    return [statistics.median(times) for times in found]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--seconds", type=float, default=5)
    arguments.add_argument("--package", default="build/python")
    arguments.add_argument("--keep", type=Path)
    given = arguments.parse_args()
    sys.path.insert(0, given.package)
    import invar

    folder = given.keep or Path(tempfile.mkdtemp())
    print(f"{'graph':14} {'form':10} {'ours':>8} {'peer':>8}  ours / peer")
    for name, make in GRAPHS.items():
        path = folder / f"{name}.onnx"
        if not path.exists():
            make(path)
        shape = [d.dim_value for d in load(path).graph.input[0].type.tensor_type.shape.dim]
        x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        qdq = quantised(path, QuantFormat.QDQ, shape)
        rows = [
            ("fp32", path, "all"),
            ("qdq", qdq, "all"),
            ("integer", qdq, "all,integer-1"),
            ("qoperator", quantised(path, QuantFormat.QOperator, shape), "all"),
        ]
        for form, model, choices in rows:
            if given.only not in f"{name} {form}":
                continue
            ours = invar.compile(model, choices=choices, threads=given.threads)
            ms = timed([lambda x: ours.run(x=x), peer(model, given.threads)], x, given.seconds)
            print(f"{name:14} {form:10} {ms[0]:8.2f} {ms[1]:8.2f}  {ms[0] / ms[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
