"""BitNet with packed ternary matrices is the function of spec/decoder.md decoder.69."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import invar

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from random_checkpoint import values  # noqa: E402
from test_mxfp4 import write as write_tensors  # noqa: E402

HERE = Path(__file__).resolve().parents[1]
LINES = (HERE / "vectors.jsonl").read_text().splitlines()
VECTOR = next(v for v in map(json.loads, LINES) if v["name"] == "bitnet")
TOKENS = [1, 5, 9, 2, 33, 7]
SEED = 3


def packed(rows):
    """Ternary rows [out, in] -> bytes [out / 4, in]: two bits for each quarter of the rows."""
    quarters = np.split((rows + 1).astype(np.uint8), 4)
    return sum(q << np.uint8(2 * i) for i, q in enumerate(quarters)).astype(np.uint8)


def checkpoint():
    """-> (tensors as stored, float64 values by name)."""
    stored, numbers = {}, {}
    random = np.random.default_rng(SEED)
    for number, (name, shape) in enumerate(VECTOR["shapes"].items()):
        if name.endswith("_proj.weight"):
            matrix = random.integers(-1, 2, shape)
            scale = np.float32(0.02 + random.random() / 16)
            data = packed(matrix)
            stored[name] = ("U8", list(data.shape), data.tobytes())
            stored[name + "_scale"] = ("F32", [1], scale.tobytes())
            numbers[name], numbers[name + "_scale"] = matrix.astype(float), float(scale)
        else:
            data = values(name, shape, SEED, number).astype("<f4").reshape(shape)
            stored[name] = ("F32", shape, data.tobytes())
            numbers[name] = data.astype(float)
    return stored, numbers


def norm(x, weight, epsilon=1e-5):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def reference(w, divided):
    """Logits of TOKENS in float64, from the clauses."""
    c = VECTOR["config"]
    heads, groups = c["num_attention_heads"], c["num_key_value_heads"]
    size = c["hidden_size"] // heads

    def linear(x, name):
        step = 127 / np.maximum(np.abs(x).max(-1, keepdims=True), 1e-5)
        q = np.clip(np.round(x * step), -128, 127)
        scale = w[name + ".weight_scale"]
        y = (q if divided else q / step) @ w[name + ".weight"].T
        return y / (scale * step) if divided else y * scale

    at = np.arange(len(TOKENS))
    angles = np.outer(at, c["rope_theta"] ** (-np.arange(0, size, 2) / size))

    def rotate(x):
        a, b = np.split(x, 2, -1)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    x = w["model.embed_tokens.weight"][TOKENS]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        n = norm(x, w[p + "input_layernorm.weight"])
        q, k, v = (
            linear(n, p + f"self_attn.{m}_proj").reshape(len(at), -1, size) for m in ("q", "k", "v")
        )
        q, k = rotate(q), np.repeat(rotate(k), heads // groups, 1)
        scores = np.einsum("shd,thd->hst", q, k) / np.sqrt(size)
        scores = np.where(at[:, None] >= at, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        o = np.einsum("hst,thd->shd", weights, np.repeat(v, heads // groups, 1))
        o = norm(o.reshape(len(at), -1), w[p + "self_attn.attn_sub_norm.weight"])
        x = x + linear(o, p + "self_attn.o_proj")
        n = norm(x, w[p + "post_attention_layernorm.weight"])
        h = np.maximum(linear(n, p + "mlp.gate_proj"), 0) ** 2 * linear(n, p + "mlp.up_proj")
        x = x + linear(norm(h, w[p + "mlp.ffn_sub_norm.weight"]), p + "mlp.down_proj")
    return norm(x, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T


def run(folder, tensors, **settings):
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / "model", tensors, vector=VECTOR, **settings)
    invar("export", "--model-name", folder / "model", "-o", folder)
    invar("compile", folder / "model.onnx", "-o", folder / "plan.invar")
    return folder / "plan.invar"


@pytest.mark.parametrize("kind", ["bitlinear", "autobitlinear"])
def test_the_logits_are_those_of_the_clauses(kind, tmp_path):
    tensors, numbers = checkpoint()
    settings = {"quantization_config": {"quant_method": "bitnet", "linear_class": kind}}
    plan = run(tmp_path, tensors, **settings)
    answers = set()
    for options in ([], ["--isa", "scalar"], ["--prefill-chunk", 1], ["--threads", 3]):
        out = tmp_path / "logits.bin"
        tokens = ",".join(map(str, TOKENS))
        invar("infer", plan, "--tokens", tokens, "--logits-output", out, *options)
        answers.add(out.read_bytes())
    assert len(answers) == 1
    ours = np.frombuffer(answers.pop(), "<f4").reshape(len(TOKENS), -1)
    exact = reference(numbers, kind == "bitlinear")
    assert np.abs(ours - exact).max() / np.abs(exact).max() <= 1e-6


@pytest.mark.parametrize(
    "settings,named",
    [
        ({"quant_method": "awq"}, "quant_method"),
        ({"quant_method": "bitnet", "quantization_mode": "online"}, "quantization_mode"),
        ({"quant_method": "bitnet", "linear_class": "other"}, "linear_class"),
        ({"quant_method": "bitnet", "use_rms_norm": True}, "use_rms_norm"),
        ({"quant_method": "bitnet", "modules_to_not_convert": ["q_proj"]}, "modules_to_not"),
    ],
)
def test_other_settings_are_refused_by_name(settings, named, tmp_path):
    write_tensors(tmp_path / "model", checkpoint()[0], vector=VECTOR, quantization_config=settings)
    export = ["export", "--model-name", tmp_path / "model", "-o", tmp_path / "out"]
    assert named in invar(*export, code=3).errors[0]


def test_two_bits_that_are_no_element_are_bad_input(tmp_path):
    tensors, _ = checkpoint()
    name = "model.layers.0.mlp.up_proj.weight"
    dtype, shape, data = tensors[name]
    tensors[name] = (dtype, shape, b"\xff" + data[1:])
    settings = {"quantization_config": {"quant_method": "bitnet"}}
    write_tensors(tmp_path / "model", tensors, vector=VECTOR, **settings)
    export = ["export", "--model-name", tmp_path / "model", "-o", tmp_path / "out"]
    assert "ternary" in invar(*export, code=2).errors[0]
