"""QuantizeLinear near ties, where a product by 1 / s would round to another integer than x / s
(quantize.3): kernels multiply, and must divide there."""

import numpy as np
import pytest
from conftest import BUILD
from onnx import TensorProto, helper, save

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402

SIZE = 1 << 14


@pytest.fixture(scope="module")
def quantize(tmp_path_factory):
    ports = [("x", TensorProto.FLOAT, [SIZE]), ("s", TensorProto.FLOAT, []), ("z", TensorProto.UINT8, [])]
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])],
        "ties",
        [helper.make_tensor_value_info(*port) for port in ports],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [SIZE])],
    )
    path = tmp_path_factory.mktemp("ties") / "ties.onnx"
    opsets = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return invar.compile(path, threads=1)


def test_ties_round_as_the_quotient(quantize):
    random = np.random.default_rng(5)
    edges = [0, 1e-45, 2.0**-120, 2.0**-100, 2.0**100, 2.0**120, np.inf, -0.3]
    scales = np.float32([*edges, *np.exp(random.uniform(-60, 60, 40)), *random.uniform(1e-3, 1, 40)])
    specials = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, -3.4e38, 1e-38])
    by_product_alone = 0
    for scale in scales:
        with np.errstate(all="ignore"):
            x = ((random.integers(-300, 300, SIZE) + 0.5) * np.float64(scale)).astype(np.float32)
            x = (x.view(np.int32) + random.integers(-4, 5, SIZE, dtype=np.int32)).view(np.float32)
            x[::500] = random.choice(specials, len(x[::500]))
            zero, quotient = np.uint8(random.integers(256)), x / scale
            rounded = np.where(np.isnan(quotient), 0, np.rint(quotient.clip(-1e4, 1e4)))
            by_product_alone += np.sum(np.rint(x * (np.float32(1) / scale)) != np.rint(quotient))
        y = quantize.run(x=x, s=np.array(scale), z=np.array(zero))
        y = next(iter(y.values())) if isinstance(y, dict) else y
        expected = (rounded + float(zero)).clip(0, 255).astype(np.uint8)
        assert np.array_equal(np.asarray(y).reshape(SIZE), expected), scale
    assert by_product_alone > 1000  # or this tests nothing
