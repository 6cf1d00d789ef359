"""Graphs of 16-bit floats in the manner of onnxruntime-genai's builder: the mask is a sum of two
masks of halves, tiled for each head, and keys behind past ones are repeated for groups of heads.
Keys are kept between steps where the mask is shown to be causal (plan.20)."""

import numpy as np
import onnxruntime
import pytest
from conftest import invar
from node_models import BOOL, F16, F32, cast, node, perm
from onnx import TensorProto, helper, numpy_helper
from test_onnx_decoders import PAST, PROMPT, VOCAB, folder, run

I64 = TensorProto.INT64
HEADS, KV_HEADS, SIZE, LOWEST = 4, 2, 8, -65504.0


def mask(compare):
    """[batch, HEADS, seq, past + seq]"""
    return [
        node("Shape", ["input_ids"], ["seq1"], start=1),
        node("Shape", ["attention_mask"], ["total1"], start=1),
        node("Shape", ["input_ids"], ["batch1"], end=1),
        node("Squeeze", ["total1"], ["total"]),
        node("Sub", ["total1", "seq1"], ["old1"]),
        node("Squeeze", ["old1"], ["old"]),
        node("Concat", ["seq1", "total1"], ["of_triangle"], axis=0),
        node("Expand", ["hidden", "of_triangle"], ["all_hidden"]),
        node("Range", ["i", "total", "step"], ["key"]),
        node("Range", ["old", "total", "step"], ["at"]),
        node("Add", ["at", "step"], ["next"]),
        node("Unsqueeze", ["next", "i1"], ["query"]),
        node(compare, ["key", "query"], ["causal"]),
        node("Where", ["causal", "none", "all_hidden"], ["triangle"]),
        node("Unsqueeze", ["triangle", "i01"], ["new"]),
        node("Unsqueeze", ["attention_mask", "i12"], ["given4"]),
        node("Concat", ["batch1", "i1", "seq1", "total1"], ["shape"], axis=0),
        node("Expand", ["given4", "shape"], ["given"]),
        cast("given", "given_half", F16),
        node("Sub", ["one", "given_half"], ["missing"]),
        cast("missing", "is_missing", BOOL),
        node("Where", ["is_missing", "hidden", "missing"], ["padding"]),
        node("Add", ["padding", "new"], ["both"]),
        node("Tile", ["both", "each_head"], ["bias"]),
    ]  # fmt: skip


def keys(name, past, groups_last):
    """Rows [batch, seq, KV_HEADS * SIZE] -> NAME_all [batch, past + seq, HEADS * SIZE]."""
    return [
        node("Reshape", [name, "apart"], [name + "_4"]),
        perm(name + "_4", name + "_heads", 0, 2, 1, 3),
        node("Concat", [past, name + "_heads"], [past.replace("past_key_values", "present")], axis=2),
        node("Unsqueeze", [past.replace("past_key_values", "present"), "group"], [name + "_5"]),
        node("Expand", [name + "_5", "groups"], [name + "_each"]),
        node("Reshape", [name + "_each", "of_queries"], [name + "_q"]),
        perm(name + "_q", name + "_rows", 0, 2, 1, 3),
        node("Reshape", [name + "_rows", "joined"], [name + "_all"]),
    ]  # fmt: skip


def half_decoder(compare="Less", hidden=LOWEST, groups_last=True):
    """groups_last: each head of keys HEADS / KV_HEADS times in a row; else all of them in turn."""
    rng = np.random.default_rng(13)
    width, kv, times = HEADS * SIZE, KV_HEADS * SIZE, HEADS // KV_HEADS
    floats = {
        "embed": rng.standard_normal((VOCAB, width)), "head": rng.standard_normal((width, VOCAB)),
        "wq": rng.standard_normal((width, width)) / 6, "wk": rng.standard_normal((width, kv)) / 6,
        "wv": rng.standard_normal((width, kv)) / 6, "hidden": hidden, "none": 0, "one": 1,
    }  # fmt: skip
    constants = {n: np.asarray(v, np.float16) for n, v in floats.items()}
    constants |= {
        "i": np.int64(0), "step": np.int64(1), "i1": np.array([1]), "i01": np.array([0, 1]),
        "i12": np.array([1, 2]), "each_head": np.array([1, HEADS, 1, 1]),
        "apart": np.array([0, 0, KV_HEADS, SIZE]), "joined": np.array([0, 0, width]),
        "group": np.array([2 if groups_last else 1]),
        "groups": np.array([1, 1, times, 1, 1] if groups_last else [1, times, 1, 1, 1]),
        "heads": np.array([HEADS]), "size": np.array([SIZE]),
    }  # fmt: skip
    made = [
        *mask(compare),
        node("Gather", ["embed", "input_ids"], ["h"]),
        *(node("MatMul", ["h", "w" + x], [x]) for x in "qkv"),
        node("Concat", ["batch1", "heads", "total1", "size"], ["of_queries"], axis=0),
        *keys("k", PAST[0], groups_last), *keys("v", PAST[1], groups_last),
        node("MultiHeadAttention", ["q", "k_all", "v_all", "", "", "bias"], ["y"],
             domain="com.microsoft", num_heads=HEADS, scale=0.3),
        node("Add", ["y", "h"], ["out"]),
        node("MatMul", ["out", "head"], ["logits_half"]),
        cast("logits_half", "logits", F32),
    ]  # fmt: skip
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        made, "decoder",
        [
            info("input_ids", I64, ["batch", "seq"]), info("attention_mask", I64, ["batch", "past + seq"]),
            *(info(name, F16, ["batch", KV_HEADS, "past", SIZE]) for name in PAST),
        ],
        [info("logits", F32, None)] + [info(f"present.0.{x}", F16, None) for x in ("key", "value")],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )  # fmt: skip
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10)


def by_onnxruntime(path, tokens):
    """The most likely token behind each prefix."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, len(tokens)), np.int64)}
    feed |= {name: np.zeros((1, KV_HEADS, 0, SIZE), np.float16) for name in PAST}
    return session.run(["logits"], feed)[0][0].argmax(-1).tolist()


def told(path, folder_of_receipt, *options):
    done = invar("run", "--model-name", path, "--prompt-text", PROMPT, "--max-new-tokens", 1,
                 "--receipt-path", folder_of_receipt / "told.json", *options)  # fmt: skip
    return done.err


@pytest.mark.parametrize("groups_last", [True, False])
def test_keys_of_halves_are_kept(tmp_path, groups_last):
    path = folder(tmp_path / "half", model=half_decoder(groups_last=groups_last))
    assert b"whole prefix" not in told(path, tmp_path, "--tasks-root", tmp_path / "tasks")
    (plan,) = (tmp_path / "tasks").glob("*/plan.invar")
    kept = KV_HEADS if groups_last else HEADS  # heads that are kept
    assert f"kv_heads={kept}," in plan.read_text(errors="replace")
    _, receipt = run(path, tmp_path / "r.json")
    prompt, made = receipt["input"]["tokens"], receipt["output"]["tokens"]
    assert by_onnxruntime(path / "model.onnx", prompt + made)[len(prompt) - 1 : -1] == made
    for i, way in enumerate((("--prefill-chunk", 3), ("--isa", "scalar"), ("--no-kv-cache",))):
        assert run(path, tmp_path / f"{i}.json", *way)[1]["receipt_hash"] == receipt["receipt_hash"]
    invar("compile", path / "model.onnx", "--stateless")
    _, whole = run(path, tmp_path / "w.json", "--plan", path / "plan.invar")
    assert whole["receipt_hash"] == receipt["receipt_hash"]


@pytest.mark.parametrize(
    "change",
    [{"compare": "LessOrEqual"}, {"compare": "Greater"}, {"hidden": -60000.0}, {"hidden": 1.0}],
)
def test_masks_of_halves_that_show_more(tmp_path, change):
    """The next token, later ones, or hidden ones a little."""
    path = folder(tmp_path / "half", model=half_decoder(**change))
    assert b"whole prefix: the mask of its attention is not known" in told(path, tmp_path)
