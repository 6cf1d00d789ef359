"""Attention with linear biases (attention.19): a mask of slopes times distances becomes slopes of
the operation, and its bytes are those of the mask."""

import numpy as np
import onnx
import pytest
from conftest import cpu_isas, invar
from onnx import numpy_helper, parser

HEADS, SIZE = 6, 8
SLOPES = np.array([0.25, 2**-0.5, 0.1, 3e-39, -0.7, 0.0], np.float32).reshape(HEADS, 1, 1)
TEXT = """<ir_version: 11, opset_import: ["" : 23]>
g (float[batch, seq, 48] q, float[batch, seq, 48] k, float[batch, seq, 48] v{given}) => (float[batch, seq, 48] y) {{
  one = Constant<value_int: int = 1>()   zero = Constant<value_int: int = 0>()   last = Constant<value_ints: ints = [-1]>()
  sizes = Shape<start=1, end=2>(q)   n = Squeeze(sizes)   keys = Range(zero, n, one)   queries = Range({start}, n, one)
  column = Unsqueeze(queries, last)   distances = Sub({distance})   numbers = Cast<to=1>(distances)   biases = Mul({product})
  y = Attention<is_causal={causal}, q_num_heads=6, kv_num_heads=6>(q, k, v, biases)
}}"""


def model(folder, constant=True, slopes=SLOPES, **parts):
    given = "" if constant else ", float[6, 1, 1] slopes"
    usual = {"start": "zero", "distance": "keys, column", "product": "slopes, numbers", "causal": 1}
    made = parser.parse_model(TEXT.format(given=given, **{**usual, **parts}))
    if constant:
        made.graph.initializer.append(numpy_helper.from_array(slopes, "slopes"))
    folder.mkdir()
    onnx.save(made, folder / "model.onnx")
    invar("compile", folder / "model.onnx")
    return folder / "plan.invar"


def inputs(folder, seq):
    rng = np.random.default_rng(seq)
    out = []
    for name in "qkv":
        np.save(folder / f"{name}.npy", rng.normal(size=(2, seq, HEADS * SIZE)).astype(np.float32))
        out += ["--input", f"{name}={folder / name}.npy"]
    return out


def result(plan, given, *options):
    invar("infer", plan, *given, "--tensors-output", plan.parent, *options)
    return np.load(plan.parent / "y.npy").tobytes()


def test_slopes_have_the_bytes_of_the_mask(tmp_path):
    found, mask = model(tmp_path / "found"), model(tmp_path / "mask", constant=False)
    swapped = model(tmp_path / "swapped", product="numbers, slopes")
    assert "slopes=" in found.read_text() and "mask=" not in found.read_text()
    assert "slopes=" in swapped.read_text()
    assert "slopes=" not in mask.read_text() and "mask=" in mask.read_text()
    np.save(tmp_path / "slopes.npy", SLOPES)
    for seq in (1, 5, 140):
        given = inputs(tmp_path, seq)
        expected = result(mask, [*given, "--input", f"slopes={tmp_path / 'slopes.npy'}"])
        assert result(swapped, given) == expected
        for isa in cpu_isas():
            assert result(found, given, "--isa", isa) == expected, (seq, isa)


@pytest.mark.parametrize(
    "name,parts",
    [
        ("not causal", {"causal": 0}),
        ("of the other sign", {"distance": "column, keys"}),
        ("infinite", {"slopes": np.where(SLOPES == 0, np.float32(-np.inf), SLOPES)}),
    ],
)
def test_another_mask_stays_a_mask(name, parts, tmp_path):
    text = model(tmp_path / "m", **parts).read_text()
    assert "mask=" in text and "slopes=" not in text
