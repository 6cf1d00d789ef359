"""Export: the model is standard ONNX, computes what the literature's model computes, and points at
the checkpoint's bytes."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from checkpoints import LLAMA_8B, float64_logits, head_dim, rope_of, write_holes, write_small
from conftest import BIN, BUILD, MODEL, SHARDS, invar
from onnx.reference import ReferenceEvaluator

VARIANTS = {
    "grouped": {},
    "multi-head": {"num_key_value_heads": 4},
    "multi-query": {"num_key_value_heads": 1},
    "absent defaults": {"head_dim": ..., "num_key_value_heads": 4, "rms_norm_eps": 1e-6},
    "tied": {"tie_word_embeddings": True},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "fp16": {"dtype": "F16"},
    "fp32": {"dtype": "F32"},
    "shards": {"shards": 3},
    "theta": {"rope_theta": 500000},
    "linear, old": {"rope_scaling": {"type": "linear", "factor": 4.0}},
    "linear, new": {
        "rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 5000.0}
    },
    "llama3": {
        "head_dim": 16,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    },
    "yarn": {
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
    },
    "yarn, factors": {
        "head_dim": 16,
        "rope_parameters": {
            "rope_type": "yarn",
            "factor": 40.0,
            "original_max_position_embeddings": 512,
            "beta_fast": 16,
            "beta_slow": 2,
            "truncate": False,
            "mscale": 0.707,
            "mscale_all_dim": 0.5,
            "rope_theta": 5000.0,
        },
    },
}


def export(model, out, *options):
    printed = invar("export", "--model-name", model, "--output", out, *options).out.decode()
    assert printed == f"{out}/model.onnx\n"
    return out / "model.onnx"


def external(model, folder):
    """name -> bytes of every external initialiser, read by this test rather than by onnx."""
    found = {}
    for t in model.graph.initializer:
        place = {e.key: e.value for e in t.external_data}
        if place:
            with open(folder / place["location"], "rb") as f:
                f.seek(int(place["offset"]))
                found[t.name] = f.read(int(place["length"]))
    return found


def embedded(path):
    """The model with its weights inside, for tools that do not follow links."""
    model = onnx.load(path, load_external_data=False)
    data = external(model, path.parent)
    for t in model.graph.initializer:
        if t.name in data:
            t.ClearField("external_data")
            t.ClearField("data_location")
            t.raw_data = data[t.name]
    return model


def logits(model, config, ids, cuts):
    """Runs the ONNX model over ids in pieces that end at `cuts`, each on the memory that the piece
    before returned."""
    evaluator = ReferenceEvaluator(model)
    kinds = [f"{i}.{k}" for i in range(config["num_hidden_layers"]) for k in ("key", "value")]
    shape = (1, config["num_key_value_heads"], 0, head_dim(config))
    past = {f"past_key_values.{k}": np.zeros(shape, np.float32) for k in kinds}
    rows, at = [], 0
    for end in cuts:
        feed = {"input_ids": ids[None, at:end], "position_ids": np.arange(at, end)[None], **past}
        out = dict(zip(evaluator.output_names, evaluator.run(None, feed)))
        past = {f"past_key_values.{k}": out[f"present.{k}"] for k in kinds}
        assert past["past_key_values.0.key"].shape == (
            1,
            config["num_key_value_heads"],
            end,
            head_dim(config),
        )
        rows.append(out["logits"][0])
        at = end
    return np.concatenate(rows)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kind_of_checkpoint(tmp_path, variant):
    config, weights = write_small(tmp_path / "in", **VARIANTS[variant])
    path = export(tmp_path / "in", tmp_path / "out")
    model = embedded(path)
    onnx.checker.check_model(model, full_check=True)
    initializers = {t.name: t for t in model.graph.initializer}
    frequencies, scale = rope_of(config)
    assert initializers["inv_freq"].raw_data == frequencies.astype("<f4").tobytes()
    scaled = (
        [initializers["attention_factor"].raw_data] if "attention_factor" in initializers else []
    )
    assert scaled == ([scale.astype("<f4").tobytes()] if scale != 1 else [])

    # Accuracy, apart from the tests of bytes: against float64, all at once and in pieces.
    ids = np.random.default_rng(7).integers(0, config["vocab_size"], 12)
    exact = float64_logits(config, weights, ids)
    for cuts in ([12], [5, 6, 7, 12], range(1, 13)):
        error = np.abs(logits(model, config, ids, cuts) - exact).max()
        assert error < 1e-5, f"{variant} {list(cuts)}: {error}"


def test_the_shipped_model_is_standard_onnx(tmp_path):
    path = export(MODEL, tmp_path / "copied", "--colocate-tensors")
    onnx.checker.check_model(str(path), full_check=True)
    linked = export(MODEL, tmp_path / "linked")
    assert linked.read_bytes() == path.read_bytes()
    model = onnx.load(linked, load_external_data=False)
    assert model.ir_version == 11 and [(o.domain, o.version) for o in model.opset_import] == [
        ("", 23)
    ]
    assert {"Attention", "RMSNormalization", "RotaryEmbedding"} <= {
        n.op_type for n in model.graph.node
    }
    # The checker and onnx.load refuse links; with the weights inside, the linked model passes too.
    onnx.checker.check_model(embedded(linked), full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    known = {
        v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
        for v in inferred.graph.value_info
    }
    assert known["model.layers.4.output"] == ["batch", "seq", 256]
    unknown = [
        n.name
        for n in model.graph.node
        for o in n.output
        if o not in known and o not in {v.name for v in model.graph.output}
    ]
    assert unknown == []


def test_weights_are_the_checkpoints_bytes(tmp_path):
    path = export(MODEL, tmp_path / "out")
    model = onnx.load(path, load_external_data=False)
    data, stored = external(model, path.parent), {}
    for shard in SHARDS:
        assert (tmp_path / "out" / shard).is_symlink()
        raw = (MODEL / shard).read_bytes()
        size = int.from_bytes(raw[:8], "little")
        for name, entry in json.loads(raw[8 : 8 + size]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                stored[name] = raw[8 + size + begin : 8 + size + end]
    assert data == stored
    assert path.stat().st_size < 100_000


def test_export_again_gives_the_same_bytes(tmp_path):
    first = export(MODEL, tmp_path / "out").read_bytes()
    assert export(MODEL, tmp_path / "out", "--colocate-tensors").read_bytes() == first
    assert not (tmp_path / "out" / SHARDS[0]).is_symlink()
    assert (tmp_path / "out" / SHARDS[0]).read_bytes() == (MODEL / SHARDS[0]).read_bytes()
    assert export(MODEL, tmp_path / "out").read_bytes() == first
    assert (tmp_path / "out" / SHARDS[0]).is_symlink()


# A process that imports nothing, so that the peak it reports is the child's and not its own at the
# time of the fork.
MEASURE = """import os, sys, time
begin = time.monotonic()
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), time.monotonic() - begin, usage.ru_maxrss * 1024)"""


def test_a_checkpoint_of_8b_shape_is_exported_without_reading_it(tmp_path):
    write_holes(tmp_path / "in", LLAMA_8B, shards=4)
    total = sum(f.stat().st_size for f in (tmp_path / "in").glob("*.safetensors"))
    assert total > 16_060_000_000
    command = [
        sys.executable,
        "-S",
        "-c",
        MEASURE,
        BIN,
        "export",
        "--model-name",
        tmp_path / "in",
        "--output",
        tmp_path / "out",
    ]
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=300
    ).stdout.split()
    code, seconds, peak = int(printed[-3]), float(printed[-2]), int(printed[-1])
    assert code == 0
    model = onnx.load(tmp_path / "out/model.onnx", load_external_data=False)
    assert len([t for t in model.graph.initializer if t.external_data]) == 291
    cache = BUILD / "CMakeCache.txt"
    if not (
        cache.exists() and "INVAR_SANITIZE:STRING=\n" not in cache.read_text()
    ):  # sanitizers have their own costs
        assert seconds < 2 and peak < 200e6, f"{seconds} s, {peak} bytes"
    print(f"{total} bytes of weights: {seconds:.3f} s, {peak / 1e6:.1f} MB")
