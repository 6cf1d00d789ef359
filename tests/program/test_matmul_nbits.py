"""MatMulNBits of com.microsoft (onnx.42): the bits of a product with (q - z) * s, and what ONNX
Runtime's host kernel computes."""

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import invar
from onnx import TensorProto, helper, numpy_helper

N, BLOCK = 5, 16


def save(path, nodes, constants, width, element):
    elements = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", elements, ["rows", width])],
        [helper.make_tensor_value_info("y", elements, ["rows", N])],
        [numpy_helper.from_array(v, n) for n, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def integers(packed, bits, count):
    """Those in the last dimension's bytes, the lowest bits first."""
    parts = [packed >> at & (1 << bits) - 1 for at in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)[..., :count]


def models(folder, k, bits, zeros, order, bias, element, block=BLOCK):
    """The node, and MatMul with the weights that it stands for."""
    rng = np.random.default_rng(bits + k)
    groups = -(-k // block)
    byte = lambda *shape: rng.integers(0, 256, shape, np.uint8)
    number = lambda *shape: rng.standard_normal(shape).astype(element)
    b, scales = byte(N, groups, block * bits // 8), number(N, groups)
    inputs, constants = ["x", "b", "scales", "", "", ""], {"b": b, "scales": scales}
    z = np.full((N, groups), 1 << bits - 1)
    if zeros == "integers":
        constants["zeros"] = byte(N, -(-groups * bits // 8))
        z = integers(constants["zeros"], bits, groups)
    elif zeros == "numbers":
        z = constants["zeros"] = number(N, groups)
    if order:
        constants["order"] = rng.permutation(np.arange(k) // block).astype(np.int32)
    if bias:
        constants["bias"] = number(N)
    for i, name in enumerate(("zeros", "order", "bias")):
        inputs[3 + i] = name if name in constants else ""
    node = helper.make_node(
        "MatMulNBits", inputs, ["y"], domain="com.microsoft",
        K=k, N=N, bits=bits, block_size=block, accuracy_level=1,
    )  # fmt: skip
    save(folder / "node.onnx", [node], constants, k, element)
    group = constants.get("order", np.arange(k) // block)
    q = integers(b.reshape(N, -1), bits, k).astype("f")
    w = (q - z.astype("f")[:, group]) * scales.astype("f")[:, group]
    weights = {"w": np.ascontiguousarray(w.T)}
    product = helper.make_node("MatMul", ["wide", "w"], ["p"])
    last = "p"
    nodes = [helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT), product]
    if bias:
        weights["bias"] = constants["bias"].astype("f")
        nodes.append(helper.make_node("Add", ["p", "bias"], ["sum"]))
        last = "sum"
    elements = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    nodes.append(helper.make_node("Cast", [last], ["y"], to=elements))
    save(folder / "product.onnx", nodes, weights, k, element)
    return number(3, k)


def ours(folder, name, x, *flags):
    np.save(folder / "x.npy", x)
    invar("infer", folder / f"{name}.onnx", "--input", f"x={folder / 'x.npy'}", *flags,
          "--tensors-output", folder / name)  # fmt: skip
    return np.load(folder / name / "y.npy")


def agree(folder, x, theirs_too=True):
    got, want = ours(folder, "node", x), ours(folder, "product", x)
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
    assert ours(folder, "node", x, "--threads", "1", "--isa", "scalar").tobytes() == got.tobytes()
    if not theirs_too:
        return
    session = onnxruntime.InferenceSession(folder / "node.onnx")
    (theirs,) = session.run(None, {"x": x})
    bound = 2e-6 if x.dtype == np.float32 else 5e-3
    assert np.abs(theirs.astype("f") - got).max() <= bound * np.abs(theirs).max()


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["", "integers", "numbers"])
@pytest.mark.parametrize("k", [64, 80, 96])
def test_weights_are_integers_less_zero_points_times_scales(tmp_path, bits, zeros, k):
    """ONNX Runtime's host kernel has no integers of 8 bits with zero points that are numbers."""
    x = models(tmp_path, k, bits, zeros, order=False, bias=k == 80, element="f4")
    agree(tmp_path, x, (bits, zeros) != (8, "numbers"))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["", "integers", "numbers"])
def test_numbers_of_16_bits(tmp_path, bits, zeros):
    x = models(tmp_path, 96, bits, zeros, order=False, bias=True, element="f2")
    agree(tmp_path, x, (bits, zeros) != (8, "numbers"))


@pytest.mark.parametrize("zeros", ["", "integers", "numbers"])
def test_an_order_of_groups(tmp_path, zeros):
    """ONNX Runtime's host kernel then takes 8 for every packed zero point."""
    x = models(tmp_path, 64, 4, zeros, order=True, bias=False, element="f4")
    agree(tmp_path, x, zeros != "integers")


@pytest.mark.parametrize("block", [32, 64, 128, 256])
def test_blocks(tmp_path, block):
    agree(tmp_path, models(tmp_path, 272, 4, "integers", False, False, "f4", block))
