"""GroupQueryAttention of com.microsoft: what ONNX Runtime's host kernel computes, for prompts,
steps and padded batches."""

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import invar
from onnx import TensorProto, helper

Q_HEADS, KV_HEADS, SIZE, POSITIONS = 4, 2, 16, 32


def model(path, packed, norm="", **attributes):
    """norm: where each head of queries and new keys is normalised, "inside" the node or
    "outside"."""
    width = (Q_HEADS + 2 * KV_HEADS if packed else Q_HEADS) * SIZE
    floating = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    past = ["batch", KV_HEADS, "past", SIZE]
    inputs = [floating("q", ["batch", "seq", width])]
    if not packed:
        inputs += [floating(n, ["batch", "seq", KV_HEADS * SIZE]) for n in ("k", "v")]
    inputs += [floating("past.key", past), floating("past.value", past)]
    inputs += [
        helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, ["batch"]),
        helper.make_tensor_value_info("total", TensorProto.INT32, [1]),
    ]
    angles = np.outer(np.arange(POSITIONS), 1 / 100.0 ** np.linspace(0, 1, SIZE // 2))
    tables = [
        onnx.numpy_helper.from_array(f(angles).astype("f"), n)
        for n, f in (("cos", np.cos), ("sin", np.sin))
    ]
    names, before = {"q": "q", "k": "k"}, []
    weights = ["q_norm", "k_norm"] if norm else []
    tables += [
        onnx.numpy_helper.from_array(np.linspace(0.5, 1.5 + i, SIZE).astype("f"), n)
        for i, n in enumerate(weights)
    ]
    if norm == "outside":
        tables += [
            onnx.numpy_helper.from_array(np.array([0, 0, heads, SIZE]), f"{n}_heads")
            for n, heads in (("q", Q_HEADS), ("k", KV_HEADS))
        ]
        tables += [onnx.numpy_helper.from_array(np.array([0, 0, -1]), "flat")]
        for n in names:
            before += [
                helper.make_node("Reshape", [n, f"{n}_heads"], [f"{n}4"]),
                helper.make_node("SimplifiedLayerNormalization", [f"{n}4", f"{n}_norm"], [f"{n}n"],
                                 epsilon=1e-3),
                helper.make_node("Reshape", [f"{n}n", "flat"], [f"{n}_row"]),
            ]  # fmt: skip
            names[n] = f"{n}_row"
    if norm == "inside":
        attributes["qk_norm_epsilon"] = 1e-3
    node = helper.make_node(
        "GroupQueryAttention",
        [names["q"], *(("", "") if packed else (names["k"], "v")), "past.key", "past.value"]
        + ["seqlens_k", "total", "cos", "sin"]
        + (["", "", "", "", "", *weights] if norm == "inside" else []),
        ["y", "present.key", "present.value"],
        domain="com.microsoft",
        num_heads=Q_HEADS,
        kv_num_heads=KV_HEADS,
        do_rotary=1,
        **attributes,
    )
    outputs = [floating("y", None), floating("present.key", None), floating("present.value", None)]
    graph = helper.make_graph([*before, node], "gqa", inputs, outputs, tables)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def ours(folder, feed):
    for name, x in feed.items():
        np.save(folder / f"{name}.npy", x)
    args = [a for n in feed for a in ("--input", f"{n}={folder / n}.npy")]
    invar("infer", folder / "plan.invar", *args, "--tensors-output", folder)
    return [np.load(folder / f"{n}.npy") for n in ("y", "present.key", "present.value")]


def close(a, b):
    return np.abs(a - b).max() <= 2e-6 * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"rotary_interleaved": 1, "scale": 0.3},
        {"local_window_size": 3},
        {"softcap": 2.0},
        {"smooth_softmax": 1},
    ],
)
def test_prompts_steps_and_padding(tmp_path, packed, attributes):
    model(tmp_path / "m.onnx", packed, **attributes)
    invar("compile", tmp_path / "m.onnx", "--stateless", "--output", tmp_path / "plan.invar")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    rng = np.random.default_rng(3)
    lengths = np.array([6, 4, 1])  # of the three sequences of a prompt that ends in padding
    past = [np.zeros((3, KV_HEADS, 0, SIZE), "f")] * 2
    mine = past
    for step, tokens in enumerate((6, 1, 1, 1)):
        count = lengths + step
        feed = {"q": rng.standard_normal((3, tokens, Q_HEADS * SIZE)).astype("f")}
        kv = {n: rng.standard_normal((3, tokens, KV_HEADS * SIZE)).astype("f") for n in ("k", "v")}
        feed = {"q": np.concatenate([feed["q"], *kv.values()], -1)} if packed else {**feed, **kv}
        feed |= {"seqlens_k": (count - 1).astype("i4"), "total": np.array([6 + step], "i4")}
        want = session.run(None, feed | {"past.key": past[0], "past.value": past[1]})
        got = ours(tmp_path, feed | {"past.key": mine[0], "past.value": mine[1]})
        past, mine = want[1:], got[1:]
        for b, n in enumerate(count):
            rows = slice(0, n) if step == 0 else slice(None)
            assert close(got[0][b, rows], want[0][b, rows]), (step, b)
            assert all(close(m[b, :, :n], w[b, :, :n]) for m, w in zip(mine, past)), (step, b)


def test_heads_are_normalised(tmp_path):
    """ONNX Runtime's host kernel has no weights of heads: the bits are those of nodes before it."""
    rng = np.random.default_rng(4)
    sizes = {"q": Q_HEADS * SIZE, "k": KV_HEADS * SIZE, "v": KV_HEADS * SIZE}
    feed = {n: rng.standard_normal((2, 5, size)).astype("f") for n, size in sizes.items()}
    packed = {"q": np.concatenate(list(feed.values()), -1)}
    rest = {n: np.zeros((2, KV_HEADS, 0, SIZE), "f") for n in ("past.key", "past.value")}
    rest |= {"seqlens_k": np.array([4, 4], "i4"), "total": np.array([5], "i4")}
    answers = []
    for name, inputs, is_packed in (
        ("outside", feed, False), ("inside", feed, False), ("inside", packed, True), ("", feed, False)
    ):  # fmt: skip
        model(tmp_path / "m.onnx", is_packed, norm=name)
        invar("compile", tmp_path / "m.onnx", "--stateless", "--output", tmp_path / "plan.invar")
        answers.append([x.tobytes() for x in ours(tmp_path, inputs | rest)])
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][:2] != answers[3][:2] and answers[0][2] == answers[3][2]


def test_a_past_without_what_seqlens_counts_is_refused(tmp_path):
    model(tmp_path / "m.onnx", packed=False)
    invar("compile", tmp_path / "m.onnx", "--stateless", "--output", tmp_path / "plan.invar")
    zeros = lambda *shape: np.zeros(shape, "f")
    feed = {
        "q": zeros(1, 1, Q_HEADS * SIZE),
        "k": zeros(1, 1, KV_HEADS * SIZE),
        "v": zeros(1, 1, KV_HEADS * SIZE),
        "past.key": zeros(1, KV_HEADS, 2, SIZE),
        "past.value": zeros(1, KV_HEADS, 2, SIZE),
        "seqlens_k": np.array([7], "i4"),
        "total": np.array([8], "i4"),
    }
    for name, x in feed.items():
        np.save(tmp_path / f"{name}.npy", x)
    args = [a for n in feed for a in ("--input", f"{n}={tmp_path / n}.npy")]
    invar("infer", tmp_path / "plan.invar", *args, code=2)


@pytest.mark.parametrize(
    "attributes, word", [({"causal": 0}, "causal"), ({"qk_output": 1}, "qk_output")]
)
def test_what_is_not_covered_is_named(tmp_path, attributes, word):
    model(tmp_path / "m.onnx", packed=True, **attributes)
    done = invar("compile", tmp_path / "m.onnx", code=3)
    assert word in done.text
