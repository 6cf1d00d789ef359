"""MoE and QMoE of com.microsoft (onnx.43): what ONNX Runtime's host kernels compute, and the bits of
the single operations."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import cpu_isas, invar
from onnx import helper, numpy_helper
from test_onnx_decoders import PROMPT, builder_decoder, folder, run

EXPERTS, HIDDEN, INNER, K = 5, 32, 64, 2
GPT_OSS = {
    "activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.702,
    "activation_beta": 1.0, "swiglu_limit": 7.0, "normalize_routing_weights": 1,
}  # fmt: skip


def save(path, op, constants, inputs, element, **attributes):
    elements = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    node = helper.make_node(op, inputs, ["y"], domain="com.microsoft", k=K, **attributes)
    shape = ["batch", "seq", HIDDEN]
    # The builder flattens the scores.
    flat = helper.make_node("Reshape", ["scores", "rows"], ["flat"])
    constants = constants | {"rows": np.array([-1, EXPERTS])}
    graph = helper.make_graph(
        [flat, node],
        "experts",
        [
            helper.make_tensor_value_info("x", elements, shape),
            helper.make_tensor_value_info("scores", elements, [*shape[:2], EXPERTS]),
        ],
        [helper.make_tensor_value_info("y", elements, shape)],
        [numpy_helper.from_array(v, n) for n, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def integers(packed, bits):
    parts = [packed >> at & (1 << bits) - 1 for at in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)


def models(folder, bits, block, zeros=False, element="f4", fusion=2, **attributes):
    """A QMoE, and the MoE with the numbers that its integers stand for."""
    rng = np.random.default_rng(bits + block)
    number = lambda *shape: (rng.standard_normal(shape) / 8).astype(element)
    packed, plain = {}, {}
    for fc, (columns, inner) in {"fc1": (fusion * INNER, HIDDEN), "fc2": (HIDDEN, INNER)}.items():
        q = rng.integers(0, 256, (EXPERTS, columns, inner * bits // 8), np.uint8)
        groups = inner // block if block else 1
        scales = np.abs(number(EXPERTS, columns, groups)) + np.array(0.01, element)
        z = np.full((EXPERTS, columns, groups), 1 << bits - 1)
        if zeros and block:
            packed[f"{fc}_zeros"] = rng.integers(
                0, 256, (EXPERTS, columns, -(-groups * bits // 8)), np.uint8
            )
            z = integers(packed[f"{fc}_zeros"], bits)[..., :groups]
        elif zeros:
            packed[f"{fc}_zeros"] = rng.integers(0, 256, (EXPERTS, columns * bits // 8), np.uint8)
            z = integers(packed[f"{fc}_zeros"], bits)[..., None]
        each = lambda v: np.repeat(v.astype("f"), inner // groups, -1)
        plain[fc] = (integers(q, bits).astype("f") - each(z)) * each(scales)
        packed |= {fc: q, f"{fc}_scales": scales if block else scales[..., 0]}
        packed[f"{fc}_bias"] = number(EXPERTS, columns)
        plain[f"{fc}_bias"] = packed[f"{fc}_bias"].astype("f")
    name = lambda n: n if n in packed else ""
    inputs = ["x", "flat", "fc1", "fc1_scales", "fc1_bias", "fc2", "fc2_scales", "fc2_bias"]
    inputs += ["", "", "", name("fc1_zeros"), name("fc2_zeros")]
    sizes = {"expert_weight_bits": bits} | ({"block_size": block} if block else {})
    save(folder / "packed.onnx", "QMoE", packed, inputs, element, **sizes, **attributes)
    inputs = ["x", "flat", "fc1", "fc1_bias", "fc2", "fc2_bias"]
    save(folder / "plain.onnx", "MoE", plain, inputs, "f4", **attributes)
    x = rng.standard_normal((2, 3, HIDDEN)).astype(element)
    return {"x": x, "scores": rng.standard_normal((2, 3, EXPERTS)).astype(element)}


def ours(folder, name, feed, *flags):
    for n, v in feed.items():
        np.save(folder / f"{n}.npy", v)
    given = [a for n in feed for a in ("--input", f"{n}={folder / n}.npy")]
    invar("infer", folder / f"{name}.onnx", *given, *flags, "--tensors-output", folder / name)
    return np.load(folder / name / "y.npy")


def near_onnxruntime(folder, name, feed, got, bound=3e-6):
    (want,) = onnxruntime.InferenceSession(folder / f"{name}.onnx").run(None, feed)
    assert got.dtype == want.dtype and got.shape == want.shape
    assert np.abs(got.astype("f") - want).max() <= bound * np.abs(want).max()


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [0, 16, 32])
@pytest.mark.parametrize("zeros", [False, True])
def test_experts_of_gpt_oss(tmp_path, bits, block, zeros):
    feed = models(tmp_path, bits, block, zeros, **GPT_OSS)
    got = ours(tmp_path, "packed", feed)
    assert got.tobytes() == ours(tmp_path, "plain", feed).tobytes()
    assert got.tobytes() == ours(tmp_path, "packed", feed, "--threads", "1", "--isa", "scalar").tobytes()
    near_onnxruntime(tmp_path, "plain", feed, got)


@pytest.mark.parametrize("tokens", [1, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_experts_that_no_token_has_rest(tmp_path, tokens, threads):
    """Whichever the others are."""
    feed = models(tmp_path, 4, 32, **GPT_OSS)
    feed = {n: v[:1, :tokens] for n, v in feed.items()}
    for turned in range(EXPERTS):
        feed["scores"] = np.roll(feed["scores"], 1, -1)
        got = ours(tmp_path, "packed", feed, "--threads", threads)
        assert got.tobytes() == ours(tmp_path, "plain", feed).tobytes(), turned


@pytest.mark.parametrize("activation", ["gpt-oss", "gelu"])
@pytest.mark.parametrize("numerics", ["fp32", "exact16"])
def test_experts_compute_the_rows_that_chose_them(tmp_path, activation, numerics):
    """Those of a token alone, of all tokens, and of some, with bits of the token alone."""
    way = GPT_OSS if activation == "gpt-oss" else {"activation_type": "gelu", "fusion": 1}
    feed = models(tmp_path, 4, 32, **way)
    rng, tokens = np.random.default_rng(7), 37
    feed = {n: rng.standard_normal((1, tokens, v.shape[-1])).astype("f") for n, v in feed.items()}
    feed["scores"][0, :, 0] += 9  # every token has chosen expert 0, one expert 4, and none expert 3
    feed["scores"][0, :, 3:] -= 9
    feed["scores"][0, 5, 4] += 19
    flags = ("--numerics", numerics)
    got = ours(tmp_path, "packed", feed, *flags)
    for way in (("--threads", "1"), ("--threads", "3", "--isa", "scalar")):
        assert got.tobytes() == ours(tmp_path, "packed", feed, *flags, *way).tobytes()
    for t in range(tokens):
        one = {n: v[:, t : t + 1] for n, v in feed.items()}
        assert got[:, t].tobytes() == ours(tmp_path, "packed", one, *flags).tobytes(), t


def test_packed_experts_are_near_onnxruntimes(tmp_path):
    """Its kernels of 4 bits compute in binary32; those of 8 bits round activations to 8 bits."""
    feed = models(tmp_path, 4, 32, **GPT_OSS)
    near_onnxruntime(tmp_path, "packed", feed, ours(tmp_path, "packed", feed), 1e-5)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("normalises", [0, 1])
def test_activations_and_weights(tmp_path, activation, normalises):
    attributes = {"activation_type": activation, "normalize_routing_weights": normalises}
    feed = models(tmp_path, 4, 0, fusion=1, **attributes)
    got = ours(tmp_path, "packed", feed)
    assert got.tobytes() == ours(tmp_path, "plain", feed).tobytes()
    near_onnxruntime(tmp_path, "plain", feed, got)


def test_numbers_of_16_bits(tmp_path):
    feed = models(tmp_path, 4, 32, element="f2", **GPT_OSS)
    near_onnxruntime(tmp_path, "packed", feed, ours(tmp_path, "packed", feed), 5e-3)


@pytest.mark.parametrize(
    "change, word",
    [
        ({"quant_type": "fp4"}, "quant_type"),
        ({"weights_prepacked": 1}, "weights_prepacked"),
        ({"use_sparse_mixer": 1}, "use_sparse_mixer"),
        ({"activation_type": "relu2"}, "relu2"),
    ],
)
def test_what_is_not_covered_is_named(tmp_path, change, word):
    models(tmp_path, 4, 32, fusion=1, **change)
    assert word in invar("compile", tmp_path / "packed.onnx", code=3).text


def test_a_decoder_with_packed_experts_keeps_its_keys(tmp_path):
    """What a token's experts give depends on that token alone (plan.20)."""
    models(tmp_path, 4, 32, **GPT_OSS)
    experts, model = onnx.load(tmp_path / "packed.onnx").graph, builder_decoder()
    graph, head = model.graph, model.graph.node.pop()
    router = np.random.default_rng(1).standard_normal((HIDDEN, EXPERTS)).astype("f")
    graph.initializer.append(numpy_helper.from_array(router, "router"))
    graph.initializer.extend(experts.initializer)
    graph.node.append(helper.make_node("MatMul", ["out", "router"], ["scores"]))
    for node in experts.node:
        for names in (node.input, node.output):
            names[:] = [{"x": "out"}.get(name, name) for name in names]
        graph.node.append(node)
    graph.node.append(helper.make_node("MatMul", ["y_experts", head.input[1]], ["logits"]))
    graph.node[-2].output[0] = "y_experts"
    path = folder(tmp_path / "decoder", config="genai_config.json", model=model)
    told = invar("run", "--model-name", path, "--prompt-text", PROMPT, "--max-new-tokens", 1,
                 "--receipt-path", tmp_path / "told.json")  # fmt: skip
    assert b"whole prefix" not in told.err
    _, receipt = run(path, tmp_path / "r.json")
    invar("compile", path / "model.onnx", "--stateless")
    for i, way in enumerate((("--plan", path / "plan.invar"), ("--prefill-chunk", 1))):
        assert run(path, tmp_path / f"{i}.json", *way)[1]["receipt_hash"] == receipt["receipt_hash"]
    assert "VERIFIED" in invar("verify", tmp_path / "r.json", "--model-name", path).text
    # Rows of a trace are tokens, also where the graph has flattened them, and a judge computes one.
    files, here = [], ("--model-name", path)
    for isa in ("reference", cpu_isas()[0]):
        files.append(tmp_path / f"{isa}.json")
        invar("trace", tmp_path / "r.json", *here, "--isa", isa, "-o", files[-1])
    assert invar("diff", *files).out == b"EQUAL\n"
    positions = len(receipt["input"]["tokens"]) + len(receipt["output"]["tokens"]) - 1
    values = json.loads(files[0].read_text())["values"]
    flat = [v for v in values if v["shape"][0] == positions]
    assert {v["operation"].split(".")[0] for v in flat} >= {"matmul_nbits", "gather_nd", "topk"}
    for operation in ("matmul_nbits.1", "gather_nd.1"):
        value = next(v["value"] for v in flat if v["operation"] == operation)
        honest, other = tmp_path / "honest.json", tmp_path / "other.json"
        invar("trace", tmp_path / "r.json", *here, "--values", f"{value}:3", "-o", honest)
        row = json.loads(honest.read_text())
        other.write_text(json.dumps(row | {"result": "0000803f" + row["result"][8:]}))
        told = invar("diff", honest, other, "--receipt", tmp_path / "r.json", *here, code=1).text
        assert f"cause     {other}: its element" in told and "by the reference kernel" in told
