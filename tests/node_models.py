"""Small ONNX models from nodes, and arrays for them, as several tests make them."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

F32, F16, BF16, F64, I8, I32, BOOL = (
    getattr(TensorProto, n) for n in "FLOAT FLOAT16 BFLOAT16 DOUBLE INT8 INT32 BOOL".split()
)
node = helper.make_node


def model(path, nodes, inputs, outputs, weights=(), opset=23):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in weights],
    )
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11),
        path,
    )
    return path


def words(bits, shape, seed=0):
    """Every kind of float: subnormals, zeros, infinities and NaNs with payloads are frequent."""
    rng = np.random.default_rng(seed)
    mantissa, exponents = {16: (10, 5), 32: (23, 8), 64: (52, 11)}[bits]
    type = {16: np.uint16, 32: np.uint32, 64: np.uint64}[bits]
    random = (
        rng.integers(0, 2**bits, shape, type, endpoint=False)
        if bits < 64
        else rng.integers(0, 2**63, shape, np.uint64) * np.uint64(2)
    )
    special = (
        (rng.integers(0, 2, shape, np.uint64) << np.uint64(bits - 1))
        | (rng.integers(0, 2, shape, np.uint64) * np.uint64((2**exponents - 1) << mantissa))
        | rng.integers(0, 2**mantissa, shape, np.uint64) * rng.integers(0, 2, shape, np.uint64)
    )
    return np.where(rng.integers(0, 2, shape) > 0, random, special.astype(type)).view(
        {16: np.float16, 32: np.float32, 64: np.float64}[bits]
    )


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def perm(x, y, *order):
    return node("Transpose", [x], [y], perm=list(order))


def cast(x, y, to):
    return node("Cast", [x], [y], to=to)
