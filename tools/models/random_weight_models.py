#!/usr/bin/env python3
"""ONNX models of common architectures with seeded random weights, and inputs for them: the same
bytes wherever they are made.

random_weight_models.py FOLDER [--model bert|vit|resnet]... [--size base|small] [--batches 1,3,64]
[--seed N] [--weights-only]

FOLDER/MODEL gets model.onnx, weights.bin and BATCH/INPUT.npy. base: a BERT encoder of base shape
with two layers, a ViT-Ti/16 that averages its patches, a ResNet-18 for 64x64 pixels; small: a few
channels of each. A weight is a 16-bit random number looked up in a table (random_llama.py). Needs
numpy, and onnx for the graph; --weights-only writes what a plan needs where there is no onnx."""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from random_llama import table  # noqa: E402

F32, I64 = 1, 7  # TensorProto.DataType
SIZES = {
    "bert": {
        "base": dict(
            vocab=8192, positions=512, hidden=768, heads=12, inner=3072, layers=2, length=64
        ),
        "small": dict(vocab=50, positions=16, hidden=24, heads=3, inner=40, layers=2, length=9),
    },
    "vit": {
        "base": dict(pixels=224, patch=16, hidden=192, heads=3, inner=768, layers=12, classes=1000),
        "small": dict(pixels=12, patch=4, hidden=20, heads=2, inner=36, layers=2, classes=7),
    },
    "resnet": {
        "base": dict(pixels=64, stem=7, channels=[64, 128, 256, 512], blocks=2, classes=1000),
        "small": dict(pixels=18, stem=3, channels=[6, 10], blocks=1, classes=5),
    },
}


def random_words(count, *seed):
    return (
        np.random.PCG64(np.random.SeedSequence(seed))
        .random_raw((count + 3) // 4)
        .view(np.uint16)[:count]
    )


class Graph:
    """Nodes and weights in the order in which they are named; a value is its name."""

    def __init__(self, seed):
        self.seed, self.nodes, self.weights, self.inputs, self.outputs, self.small = (
            seed,
            [],
            {},
            [],
            [],
            {},
        )

    def weight(self, name, shape, centre=0.0, scale=1.0):
        self.weights[name] = (shape, centre, scale)
        return name

    def constant(self, values, dtype):
        name = f"constant_{len(self.small)}"
        self.small[name] = np.array(values, dtype)
        return name

    def ints(self, *values):
        return self.constant(values, np.int64)

    def float(self, value):
        return self.constant(value, np.float32)

    def node(self, kind, *inputs, **attributes):
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append((kind, inputs, name, attributes))
        return name

    def result(self, value, name, shape):
        self.nodes.append(("Identity", (value,), name, {}))
        self.outputs.append((name, shape))

    def write_weights(self, path):
        with open(path, "wb") as f:
            for number, (shape, centre, scale) in enumerate(self.weights.values()):
                values = (
                    table(centre)[random_words(int(np.prod(shape)), self.seed, number)].astype(
                        np.uint32
                    )
                    << 16
                ).view(np.float32)
                f.write((values * np.float32(scale)).astype("<f4").tobytes())

    def write_model(self, path, weights):
        import onnx
        from onnx import helper, numpy_helper

        at, initializers = 0, [numpy_helper.from_array(v, name) for name, v in self.small.items()]
        for name, (shape, _, _) in self.weights.items():
            length = 4 * int(np.prod(shape))
            tensor = onnx.TensorProto(
                name=name, data_type=F32, dims=shape, data_location=onnx.TensorProto.EXTERNAL
            )
            for key, value in [("location", weights), ("offset", at), ("length", length)]:
                tensor.external_data.add(key=key, value=str(value))
            initializers.append(tensor)
            at += length
        graph = helper.make_graph(
            [
                helper.make_node(kind, inputs, [name], name=name, **a)
                for kind, inputs, name, a in self.nodes
            ],
            "model",
            [helper.make_tensor_value_info(*i) for i in self.inputs],
            [helper.make_tensor_value_info(name, F32, shape) for name, shape in self.outputs],
            initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        path.write_bytes(model.SerializeToString(deterministic=True))
        onnx.checker.check_model(str(path))

    # --- what two of the models share ---
    def linear(self, x, name, rows, columns):
        y = self.node("MatMul", x, self.weight(name + ".weight", [rows, columns]))
        return self.node("Add", y, self.weight(name + ".bias", [columns]))

    def norm(self, x, name, size):
        return self.node(
            "LayerNormalization",
            x,
            self.weight(name + ".weight", [size], 1.0),
            self.weight(name + ".bias", [size]),
            axis=-1,
            epsilon=1e-6,
        )

    def attention(self, x, name, hidden, heads, mask=None):
        size = hidden // heads

        def split(which, order):
            y = self.node(
                "Reshape",
                self.linear(x, f"{name}.{which}", hidden, hidden),
                self.ints(0, -1, heads, size),
            )
            return self.node("Transpose", y, perm=order)

        scores = self.node("MatMul", split("query", [0, 2, 1, 3]), split("key", [0, 2, 3, 1]))
        scores = self.node("Div", scores, self.float(size**0.5))
        if mask:
            scores = self.node("Add", scores, mask)
        y = self.node("MatMul", self.node("Softmax", scores, axis=-1), split("value", [0, 2, 1, 3]))
        y = self.node(
            "Reshape", self.node("Transpose", y, perm=[0, 2, 1, 3]), self.ints(0, -1, hidden)
        )
        return self.linear(y, name + ".output", hidden, hidden)

    def gelu(self, x):  # as exporters spell it
        y = self.node("Erf", self.node("Div", x, self.float(2**0.5)))
        return self.node(
            "Mul", self.node("Mul", x, self.node("Add", y, self.float(1.0))), self.float(0.5)
        )


def bert(g, vocab, positions, hidden, heads, inner, layers, length):
    words = ["batch", "seq"]
    for name in ("input_ids", "attention_mask", "token_type_ids", "position_ids"):
        g.inputs.append((name, I64, words))
    x = g.node("Gather", g.weight("words", [vocab, hidden]), "input_ids")
    x = g.node("Add", x, g.node("Gather", g.weight("types", [2, hidden]), "token_type_ids"))
    x = g.node(
        "Add", x, g.node("Gather", g.weight("positions", [positions, hidden]), "position_ids")
    )
    x = g.norm(x, "embedding", hidden)
    seen = g.node("Cast", g.node("Unsqueeze", "attention_mask", g.ints(1, 2)), to=F32)
    mask = g.node("Mul", g.node("Sub", g.float(1.0), seen), g.float(np.finfo(np.float32).min))
    for i in range(layers):
        x = g.norm(
            g.node("Add", x, g.attention(x, f"{i}.attention", hidden, heads, mask)),
            f"{i}.norm1",
            hidden,
        )
        y = g.linear(g.gelu(g.linear(x, f"{i}.up", hidden, inner)), f"{i}.down", inner, hidden)
        x = g.norm(g.node("Add", x, y), f"{i}.norm2", hidden)
    first = g.node("Gather", x, g.constant(0, np.int64), axis=1)
    pooled = g.node(
        "Tanh",
        g.node(
            "Gemm",
            first,
            g.weight("pool.weight", [hidden, hidden]),
            g.weight("pool.bias", [hidden]),
            transB=1,
        ),
    )
    g.result(x, "last_hidden_state", words + [hidden])
    g.result(pooled, "pooler_output", ["batch", hidden])

    def inputs(batch, draw):
        ids = draw(batch * length).reshape(batch, length).astype(np.int64)
        lengths = length - (np.arange(batch) * 5 % length)[:, None]
        at = np.broadcast_to(np.arange(length), ids.shape)
        return {
            "input_ids": ids % vocab,
            "attention_mask": (at < lengths).astype(np.int64),
            "token_type_ids": (at > length // 2).astype(np.int64),
            "position_ids": at.astype(np.int64),
        }

    return inputs


def pictures(pixels):
    return lambda batch, draw: {
        "pixel_values": (
            draw(batch * 3 * pixels**2).astype(np.float32) / np.float32(16384) - 2
        ).reshape(batch, 3, pixels, pixels)
    }


def vit(g, pixels, patch, hidden, heads, inner, layers, classes):
    count = (pixels // patch) ** 2
    g.inputs.append(("pixel_values", F32, ["batch", 3, pixels, pixels]))
    x = g.node(
        "Conv",
        "pixel_values",
        g.weight("patch.weight", [hidden, 3, patch, patch]),
        g.weight("patch.bias", [hidden]),
        kernel_shape=[patch, patch],
        strides=[patch, patch],
    )
    x = g.node("Transpose", g.node("Reshape", x, g.ints(0, hidden, count)), perm=[0, 2, 1])
    x = g.node("Add", x, g.weight("positions", [1, count, hidden]))
    for i in range(layers):
        x = g.node(
            "Add", x, g.attention(g.norm(x, f"{i}.norm1", hidden), f"{i}.attention", hidden, heads)
        )
        y = g.linear(g.norm(x, f"{i}.norm2", hidden), f"{i}.up", hidden, inner)
        x = g.node("Add", x, g.linear(g.gelu(y), f"{i}.down", inner, hidden))
    x = g.node("ReduceMean", g.norm(x, "norm", hidden), g.ints(1), keepdims=0)
    g.result(
        g.node(
            "Gemm",
            x,
            g.weight("head.weight", [classes, hidden]),
            g.weight("head.bias", [classes]),
            transB=1,
        ),
        "logits",
        ["batch", classes],
    )
    return pictures(pixels)


def resnet(g, pixels, stem, channels, blocks, classes):
    g.inputs.append(("pixel_values", F32, ["batch", 3, pixels, pixels]))

    def conv(x, name, before, after, size, stride):
        y = g.node(
            "Conv",
            x,
            g.weight(name + ".weight", [after, before, size, size], scale=2.0),
            kernel_shape=[size, size],
            strides=[stride, stride],
            pads=[size // 2] * 4,
        )
        return g.node(
            "BatchNormalization",
            y,
            g.weight(name + ".scale", [after], 1.0),
            g.weight(name + ".shift", [after]),
            g.weight(name + ".mean", [after]),
            g.weight(name + ".variance", [after], 1.0),
            epsilon=1e-5,
        )

    x = g.node("Relu", conv("pixel_values", "stem", 3, channels[0], stem, 2))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    before = channels[0]
    for stage, after in enumerate(channels):
        for block in range(blocks):
            name, stride = f"{stage}.{block}", 2 if stage and not block else 1
            y = g.node("Relu", conv(x, name + ".conv1", before, after, 3, stride))
            y = conv(y, name + ".conv2", after, after, 3, 1)
            if stride != 1 or before != after:
                x = conv(x, name + ".down", before, after, 1, stride)
            x, before = g.node("Relu", g.node("Add", x, y)), after
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    g.result(
        g.node(
            "Gemm",
            x,
            g.weight("head.weight", [classes, before]),
            g.weight("head.bias", [classes]),
            transB=1,
        ),
        "logits",
        ["batch", classes],
    )
    return pictures(pixels)


def make(folder, model, size="base", batches=(1, 3, 64), seed=0, weights_only=False):
    folder.mkdir(parents=True, exist_ok=True)
    g = Graph(seed)
    inputs = {"bert": bert, "vit": vit, "resnet": resnet}[model](g, **SIZES[model][size])
    g.write_weights(folder / "weights.bin")
    if not weights_only:
        g.write_model(folder / "model.onnx", "weights.bin")
    for batch in batches:
        (folder / str(batch)).mkdir(exist_ok=True)
        for number, (name, value) in enumerate(
            inputs(batch, lambda n: random_words(n, seed, 1 << 20, batch)).items()
        ):
            np.save(folder / str(batch) / f"{name}.npy", np.ascontiguousarray(value))
    return folder / "model.onnx"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", choices=SIZES, action="append")
    parser.add_argument("--size", choices=["base", "small"], default="base")
    parser.add_argument("--batches", default="1,3,64")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--weights-only", action="store_true")
    o = parser.parse_args()
    for model in o.model or SIZES:
        make(
            o.folder / model,
            model,
            o.size,
            [int(b) for b in o.batches.split(",")],
            o.seed,
            o.weights_only,
        )
        print(
            f"{o.folder / model}: {(o.folder / model / 'weights.bin').stat().st_size / 1e6:.1f} MB of weights"
        )


if __name__ == "__main__":
    main()
