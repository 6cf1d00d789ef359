"""GatherBlockQuantized of com.microsoft: the bits of ONNX Runtime's host kernel (onnx.34)."""

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import invar
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import matmul_nbits_quantizer

ROWS, BLOCK = 12, 16


def model(path, bits=4, blocks=3, zeros=False, columns=None, scales="f", **attributes):
    rng = np.random.default_rng(bits + blocks)
    columns = columns or blocks * BLOCK * bits // 8
    constants = {
        "table": rng.integers(0, 256, (ROWS, columns), np.uint8),
        "scales": rng.standard_normal((ROWS, blocks)).astype(scales),
    }
    if zeros:
        width = -(-blocks * bits // 8)
        constants["zeros"] = rng.integers(0, 256, (ROWS, width), np.uint8)
    attributes = {"bits": bits, "block_size": BLOCK, "quantize_axis": 1} | attributes
    node = helper.make_node(
        "GatherBlockQuantized", ["table", "ids", *list(constants)[1:]], ["y"],
        domain="com.microsoft", **attributes,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "embedding",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "seq"])],
        [
            helper.make_tensor_value_info(
                "y", helper.np_dtype_to_tensor_dtype(np.dtype(scales)), None
            )
        ],
        [numpy_helper.from_array(v, n) for n, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("blocks", [3, 4])
@pytest.mark.parametrize("scales", ["f4", "f2"])
def test_bits_are_those_of_onnxruntime(tmp_path, bits, zeros, blocks, scales):
    model(tmp_path / "m.onnx", bits, blocks, zeros, scales=scales)
    ids = np.array([[0, 11, 5], [7, 7, 2]])
    np.save(tmp_path / "ids.npy", ids)
    invar("compile", tmp_path / "m.onnx", "--stateless", "--output", tmp_path / "plan.invar")
    invar("infer", tmp_path / "plan.invar", "--input", f"ids={tmp_path / 'ids.npy'}",
          "--tensors-output", tmp_path)  # fmt: skip
    (want,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"ids": ids})
    got = np.load(tmp_path / "y.npy")
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("columns", [48, 40])
def test_tables_of_onnxruntimes_quantizer(tmp_path, symmetric, columns):
    """Tensors of int4 and uint4, of rows that the blocks divide or not."""
    rng = np.random.default_rng(columns)
    table = rng.standard_normal((ROWS, columns)).astype("f")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        "embedding",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "seq"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "seq", columns])],
        [numpy_helper.from_array(table, "table")],
    )
    opsets = [helper.make_opsetid("", 21)]
    plain = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
        plain, block_size=BLOCK, is_symmetric=symmetric, op_types_to_quantize=("Gather",),
        quant_axes=(("Gather", 1),),
    )  # fmt: skip
    quantizer.process()
    made = quantizer.model.model
    assert [n.op_type for n in made.graph.node] == ["GatherBlockQuantized"]
    onnx.save(made, tmp_path / "m.onnx")
    ids = np.array([[0, 11, 5], [7, 7, 2]])
    np.save(tmp_path / "ids.npy", ids)
    invar("infer", tmp_path / "m.onnx", "--input", f"ids={tmp_path / 'ids.npy'}",
          "--tensors-output", tmp_path)  # fmt: skip
    (want,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"ids": ids})
    assert np.load(tmp_path / "y.npy").tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "change, code, word",
    [
        ({"bits": 2}, 3, "bits"),
        ({"gather_axis": 1}, 3, "gather_axis"),
        ({"columns": 32}, 2, "scales"),
        ({"block_size": 24}, 2, "power of two"),
    ],
)
def test_what_is_not_covered_is_named(tmp_path, change, code, word):
    model(tmp_path / "m.onnx", **change)
    assert word in invar("compile", tmp_path / "m.onnx", code=code).text
