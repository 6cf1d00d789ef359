"""A folder with an ONNX decoder in the place of a checkpoint: `run` feeds the mask and empty past
keys, the tokens are those of onnxruntime with its cache, and the receipt is verified (plan.19)."""

import hashlib
import json
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import MODEL, invar, refused
from node_models import F32, node
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

I64, WIDTH, VOCAB, NEW = TensorProto.INT64, 16, 2048, 8
PAST = ["past_key_values.0.key", "past_key_values.0.value"]
PROMPT = "ROMEO:"


def heads(x, y):
    return [
        node("Reshape", [x, "split"], [x + "_4"]),
        node("Transpose", [x + "_4"], [y], perm=[0, 2, 1, 3]),
    ]


def nodes():
    """One head of attention with past keys, a causal mask and the caller's mask."""
    return [
        node("Gather", ["embed", "input_ids"], ["e"]),
        node("Gather", ["places", "position_ids"], ["at"]),
        node("Add", ["e", "at"], ["h"]),
        *(node("MatMul", ["h", "w" + x], [x]) for x in "qkv"),
        *heads("q", "q4"), *heads("k", "k_new"), *heads("v", "v_new"),
        node("Concat", [PAST[0], "k_new"], ["present.0.key"], axis=2),
        node("Concat", [PAST[1], "v_new"], ["present.0.value"], axis=2),
        node("Transpose", ["present.0.key"], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q4", "kt"], ["s"]),
        node("Shape", ["attention_mask"], ["all1"], start=1),
        node("Squeeze", ["all1"], ["all"]),
        node("Shape", ["input_ids"], ["seq1"], start=1),
        node("Squeeze", ["seq1"], ["seq"]),
        node("Sub", ["all", "seq"], ["old"]),
        node("Range", ["zero", "all", "one"], ["kp"]),
        node("Range", ["old", "all", "one"], ["qp"]),
        node("Unsqueeze", ["qp", "one1"], ["qp1"]),
        node("LessOrEqual", ["kp", "qp1"], ["causal"]),
        node("Cast", ["attention_mask"], ["given"], to=TensorProto.BOOL),
        node("Unsqueeze", ["given", "one_two"], ["given4"]),
        node("And", ["causal", "given4"], ["seen"]),
        node("Where", ["seen", "none", "hidden"], ["bias"]),
        node("Add", ["s", "bias"], ["sb"]),
        node("Softmax", ["sb"], ["p"], axis=-1),
        node("MatMul", ["p", "present.0.value"], ["y4"]),
        node("Transpose", ["y4"], ["yt"], perm=[0, 2, 1, 3]),
        node("Reshape", ["yt", "join"], ["y"]),
        node("Add", ["y", "h"], ["out"]),
        node("MatMul", ["out", "head"], ["logits"]),
    ]  # fmt: skip


def decoder(total="total", compare="LessOrEqual", hidden=-1e9):
    """`total`: the length of the mask. The compiler shows that the mask is causal where it knows
    that this is the number of all keys."""
    rng = np.random.default_rng(3)
    weights = {
        "embed": (VOCAB, WIDTH), "places": (64, WIDTH), "head": (WIDTH, VOCAB),
        **{"w" + x: (WIDTH, WIDTH) for x in "qkv"},
    }  # fmt: skip
    constants = {n: rng.standard_normal(s).astype(np.float32) for n, s in weights.items()}
    constants |= {
        "split": np.array([0, 0, 1, WIDTH]), "join": np.array([0, 0, WIDTH]), "zero": np.int64(0),
        "one": np.int64(1), "one1": np.array([1]), "one_two": np.array([1, 2]),
        "none": np.float32(0), "hidden": np.float32(hidden),
    }  # fmt: skip
    info = helper.make_tensor_value_info
    made = nodes()
    for n in made:
        n.op_type = compare if n.op_type == "LessOrEqual" else n.op_type
    graph = helper.make_graph(
        made,
        "decoder",
        [
            info("input_ids", I64, ["batch", "seq"]),
            info("attention_mask", I64, ["batch", total]),
            info("position_ids", I64, ["batch", "seq"]),
            *(info(name, F32, ["batch", 1, "past", WIDTH]) for name in PAST),
        ],
        [info("logits", F32, None)] + [info(f"present.0.{x}", F32, None) for x in ("key", "value")],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def convolving():
    """The decoder with a short causal convolution of its embeddings before attention."""
    model, rng = decoder("past + seq"), np.random.default_rng(7)
    at = [n.output[0] for n in model.graph.node].index("h")
    model.graph.node[at].output[0] = "plain"
    after = list(model.graph.node[at + 1 :])
    del model.graph.node[at + 1 :]
    model.graph.node.extend([
        node("Transpose", ["plain"], ["by_channel"], perm=[0, 2, 1]),
        node("CausalConvWithState", ["by_channel", "taps", "taps_bias"], ["convolved"], activation="silu"),
        node("Transpose", ["convolved"], ["by_token"], perm=[0, 2, 1]),
        node("Add", ["plain", "by_token"], ["h"]),
        *after,
    ])  # fmt: skip
    for name, shape in (("taps", (WIDTH, 1, 4)), ("taps_bias", (WIDTH,))):
        value = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    model.opset_import[0].version = 27
    return model


def builder_decoder(dtype=F32, window=-1):
    """As onnxruntime-genai's builder writes it: packed projections, keys normalised with two heads
    along the axis of tokens, lengths counted from the mask, past keys of a symbolic size."""
    rng = np.random.default_rng(5)
    size, half = 16, 8
    angles = np.outer(np.arange(64), 1 / 100.0 ** np.linspace(0, 1, half))
    floats = {
        "embed": rng.standard_normal((VOCAB, 2 * size)),
        "wq": rng.standard_normal((2 * size, 2 * size)) / 6,
        "wkv": rng.standard_normal((2 * size, size)) / 6,
        "norm": np.ones(size), "head": rng.standard_normal((2 * size, VOCAB)),
        "cos": np.cos(angles), "sin": np.sin(angles),
    }  # fmt: skip
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    constants = {n: v.astype(kind) for n, v in floats.items()}
    constants |= {
        "one": np.array([1]), "axis": np.int64(1),
        "apart": np.array([0, -1, size]), "joined": np.array([0, -1, 2 * size]),
    }  # fmt: skip
    genai = {"domain": "com.microsoft"}
    made = [
        node("ReduceSum", ["attention_mask", "one"], ["count"], keepdims=0),
        node("Sub", ["count", "one"], ["last"]),
        node("Cast", ["last"], ["seqlens_k"], to=TensorProto.INT32),
        node("Shape", ["attention_mask"], ["shape"]),
        node("Gather", ["shape", "axis"], ["all"], axis=0),
        node("Cast", ["all"], ["total"], to=TensorProto.INT32),
        node("Gather", ["embed", "input_ids"], ["h"]),
        node("MatMul", ["h", "wq"], ["q"]),
        node("Reshape", ["q", "apart"], ["q_heads"]),
        helper.make_node("SimplifiedLayerNormalization", ["q_heads", "norm"], ["q_normed"], epsilon=1e-6),
        node("Reshape", ["q_normed", "joined"], ["q_rows"]),
        node("MatMul", ["h", "wkv"], ["k"]),
        node("MatMul", ["h", "wkv"], ["v"]),
        helper.make_node(
            "GroupQueryAttention",
            ["q_rows", "k", "v", *PAST, "seqlens_k", "total", "cos", "sin"],
            ["y", "present.0.key", "present.0.value"],
            num_heads=2, kv_num_heads=1, do_rotary=1, local_window_size=window, **genai,
        ),
        node("Add", ["y", "h"], ["out"]),
        node("MatMul", ["out", "head"], ["logits"]),
    ]  # fmt: skip
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        made,
        "decoder",
        [
            info("input_ids", I64, ["batch", "seq"]),
            info("attention_mask", I64, ["batch", "total_seq"]),
            *(info(name, dtype, ["batch", 1, "past_seq", "cache_size"]) for name in PAST),
        ],
        [info("logits", dtype, None)]
        + [info(f"present.0.{x}", dtype, None) for x in ("key", "value")],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def merged():
    """As Optimum merges a decoder with past keys and one without: branches of one If, of which the
    latter has its own attention."""
    whole = decoder("past + seq").graph
    empty = [helper.make_node("ConstantOfShape", ["no_keys"], [f"no.{name}"]) for name in PAST]
    without = helper.make_graph([*empty, *whole.node], "no_past", [], list(whole.output))
    for n in without.node[len(PAST) :]:
        n.input[:] = [f"no.{i}" if i in PAST else i for i in n.input]
    with_past = helper.make_graph(list(whole.node), "with_past", [], list(whole.output))
    choice = helper.make_node(
        "If", ["use_cache_branch"], [o.name for o in whole.output],
        then_branch=with_past, else_branch=without,
    )  # fmt: skip
    inputs = [
        *whole.input,
        helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]),
    ]
    constants = [*whole.initializer, numpy_helper.from_array(np.array([1, 1, 0, WIDTH]), "no_keys")]
    graph = helper.make_graph([choice], "merged", inputs, list(whole.output), constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def tokens_alone():
    """As torch.export writes a decoder that is given its tokens and no mask: where the tokens of
    several texts may be packed, the first position, a slice of min(seq, 1), is compared with the
    others."""
    rng = np.random.default_rng(9)
    floats = {
        "embed": (VOCAB, WIDTH),
        "head": (WIDTH, VOCAB),
        **{"w" + x: (WIDTH, WIDTH) for x in "qkv"},
    }
    constants = {n: rng.standard_normal(s).astype(np.float32) for n, s in floats.items()}
    constants |= {
        "zero": np.int64(0), "one": np.int64(1), "start": np.array([0]), "first": np.array([1]),
        "last": np.array([2**63 - 1]), "column": np.array([-1, 1]), "row": np.array([1, -1]),
        "none": np.float32(0), "hidden": np.float32(-np.inf),
    }  # fmt: skip
    made = [
        node("Gather", ["embed", "input_ids"], ["h"]),
        node("Shape", ["input_ids"], ["seq1"], start=1),
        node("Squeeze", ["seq1"], ["seq"]),
        node("Range", ["zero", "seq", "one"], ["at"]),
        node("Slice", ["at", "start", "first"], ["begin"]),
        node("Sub", ["begin", "one"], ["before"]),
        node("Concat", ["before", "at"], ["joined"], axis=0),
        node("Slice", ["joined", "first", "last"], ["next"]),
        node("Slice", ["joined", "start", "seq1"], ["previous"]),
        node("Sub", ["next", "previous"], ["step"]),
        node("Equal", ["step", "one"], ["goes_on"]),
        node("Not", ["goes_on"], ["breaks"]),
        node("Cast", ["breaks"], ["broken"], to=I64),
        node("CumSum", ["broken", "zero"], ["text"]),
        node("Reshape", ["text", "column"], ["of_query"]),
        node("Reshape", ["text", "row"], ["of_key"]),
        node("Equal", ["of_query", "of_key"], ["same"]),
        node("Reshape", ["at", "column"], ["query"]),
        node("LessOrEqual", ["at", "query"], ["causal"]),
        node("And", ["same", "causal"], ["both"]),
        node("Concat", ["first", "seq1", "seq1"], ["square"], axis=0),
        node("Reshape", ["both", "square"], ["seen"]),
        node("Where", ["seen", "none", "hidden"], ["bias"]),
        *(node("MatMul", ["h", "w" + x], [x]) for x in "qkv"),
        node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        node("MatMul", ["q", "kt"], ["s"]),
        node("Add", ["s", "bias"], ["sb"]),
        node("Softmax", ["sb"], ["p"], axis=-1),
        node("MatMul", ["p", "v"], ["y"]),
        node("Add", ["y", "h"], ["out"]),
        node("MatMul", ["out", "head"], ["logits"]),
    ]  # fmt: skip
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        made, "decoder", [info("input_ids", I64, [1, "seq"])], [info("logits", F32, None)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def linear_decoder(channels):
    """Two layers of linear attention by the gated delta rule, two heads of values to one of queries
    and keys. Weights are [out, in]."""
    rng = np.random.default_rng(11)
    widths = {"q": WIDTH, "k": WIDTH, "v": 2 * WIDTH, "g": 2 * WIDTH if channels else 2, "b": 2}
    weights = {
        "embed": rng.standard_normal((VOCAB, WIDTH)),
        "head": rng.standard_normal((VOCAB, WIDTH)),
    }
    made = [node("Gather", ["embed", "input_ids"], ["h0"])]

    def linear(x, name, out, shape=None):
        if shape:
            weights[name] = rng.standard_normal(shape) / 8
        return [
            node("Transpose", [name], [name + "_t"], perm=[1, 0]),
            node("MatMul", [x, name + "_t"], [out]),
        ]

    for i in ("0", "1"):
        for n, width in widths.items():
            made += linear("h" + i, n + i, n + i + "_h", (width, WIDTH))
        made += [
            node("Softplus", [f"g{i}_h"], ["rise" + i]),
            node("Neg", ["rise" + i], ["decay" + i]),
            node("Sigmoid", [f"b{i}_h"], ["beta" + i]),
            node("LinearAttention", [f"q{i}_h", f"k{i}_h", f"v{i}_h", "", "decay" + i, "beta" + i],
                 ["y" + i, "present" + i], domain="com.microsoft", q_num_heads=1, kv_num_heads=2,
                 update_rule="gated_delta"),
            *linear("y" + i, "o" + i, "out" + i, (WIDTH, 2 * WIDTH)),
            node("Add", ["h" + i, "out" + i], [f"h{int(i) + 1}"]),
        ]  # fmt: skip
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        made + linear("h2", "head", "logits"), "decoder",
        [info("input_ids", I64, ["batch", "seq"])], [info("logits", F32, None)],
        [numpy_helper.from_array(v.astype(np.float32), n) for n, v in weights.items()],
    )  # fmt: skip
    sets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10)


def folder(path, file="model.onnx", config="config.json", model=None):
    path.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODEL / name, path / name)
    settings = {"max_position_embeddings": 64, "eos_token_id": 1}
    if config != "config.json":
        decoder_file = {"decoder": {"filename": file}}
        settings = {"model": {"context_length": 64, "eos_token_id": 1, **decoder_file}}
    (path / config).write_text(json.dumps(settings))
    (path / file).parent.mkdir(exist_ok=True)
    onnx.save(model or decoder(), path / file)
    return path


def run(path, out, *options):
    done = invar("run", "--model-name", path, "--prompt-text", PROMPT, "--max-new-tokens", NEW,
                 "--receipt-path", out, "--json", *options)  # fmt: skip
    return done.json(), json.loads(out.read_text())


def by_onnxruntime(path, tokens):
    """Greedy tokens, one a step, with onnxruntime's past keys."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = [i.name for i in session.get_inputs()]
    past = {name: np.zeros((1, 1, 0, WIDTH), np.float32) for name in PAST}
    made, step, seen = [], list(tokens), 0
    while len(made) < NEW:
        feed = {
            "input_ids": np.array([step], np.int64),
            "attention_mask": np.ones((1, seen + len(step)), np.int64),
            "position_ids": np.arange(seen, seen + len(step), dtype=np.int64)[None],
            **past,
        }
        feed = {name: feed[name] for name in inputs}
        logits, *present = session.run(None, feed)
        seen += len(step)
        past, step = dict(zip(PAST, present)), [int(logits[0, -1].argmax())]
        made += step
    return made


def by_onnx(path, tokens):
    """Greedy tokens by onnx's reference, each over the whole sequence."""
    session, made = ReferenceEvaluator(str(path)), []
    while len(made) < NEW:
        step = np.array([list(tokens) + made], np.int64)
        feed = {
            "input_ids": step,
            "attention_mask": np.ones_like(step),
            "position_ids": np.arange(step.size)[None],
            **{name: np.zeros((1, 1, 0, WIDTH), np.float32) for name in PAST},
        }
        made.append(int(session.run(["logits"], feed)[0][0, -1].argmax()))
    return made


def test_a_causal_convolution_keeps_its_last_inputs(tmp_path):
    path = folder(tmp_path / "tiny", model=convolving())
    _, receipt = run(path, tmp_path / "r.json")
    assert receipt["output"]["tokens"] == by_onnx(path / "model.onnx", receipt["input"]["tokens"])
    for i, options in enumerate(
        (
            ("--threads", 1),
            ("--prefill-chunk", 1),
            ("--prefill-chunk", 3),
            ("--n-partitions", 2),
            ("--no-kv-cache",),
        )
    ):
        _, other = run(path, tmp_path / f"{i}.json", *options)
        assert other["receipt_hash"] == receipt["receipt_hash"], options
    told = invar("verify", tmp_path / "r.json", "--model-name", path)
    assert told.out.startswith(b"VERIFIED") and b"whole prefix" not in told.err
    plan = path / "plan.invar"
    invar("compile", path / "model.onnx", "--stateless")
    _, whole = run(path, tmp_path / "w.json", "--plan", plan)
    assert whole["receipt_hash"] == receipt["receipt_hash"]


@pytest.mark.parametrize("channels", [False, True])
def test_linear_attention_keeps_its_state(tmp_path, channels):
    """Rows on both sides of a chunk's end (linear_attention.2), by steps of every kind."""
    path = folder(tmp_path / "tiny", model=linear_decoder(channels))
    (path / "config.json").write_text('{"max_position_embeddings": 256, "eos_token_id": 1}')

    def answer(name, *options):
        out = tmp_path / name
        invar("run", "--model-name", path, "--prompt-text", 30 * PROMPT, "--max-new-tokens", 70,
              "--receipt-path", out, *options)  # fmt: skip
        return json.loads(out.read_text())

    receipt = answer("r.json")
    prompt, tokens = receipt["input"]["tokens"], receipt["output"]["tokens"]
    assert len(prompt) < 64 < 128 < len(prompt) + len(tokens)
    session = onnxruntime.InferenceSession(path / "model.onnx", providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"input_ids": np.array([prompt + tokens], np.int64)})
    assert list(logits[0, len(prompt) - 1 : -1].argmax(-1)) == tokens
    invar("compile", path / "model.onnx", "--stateless")
    pieces = (("--prefill-chunk", n) for n in (1, 7, 63, 64, 65))
    others = (
        ("--threads", 1),
        ("--no-kv-cache",),
        ("--plan", path / "plan.invar"),
        ("--n-partitions", 2),
        ("--tensor-parallel", 2),
    )
    for i, options in enumerate([*pieces, *others]):
        assert answer(f"{i}.json", *options)["receipt_hash"] == receipt["receipt_hash"], options
    told = invar("verify", tmp_path / "r.json", "--model-name", path)
    assert told.out.startswith(b"VERIFIED") and b"whole prefix" not in told.err


def test_the_answer_and_its_receipt(tmp_path):
    path = folder(tmp_path / "tiny")
    _, receipt = run(path, tmp_path / "r.json")
    assert receipt["output"]["tokens"] == by_onnxruntime(
        path / "model.onnx", receipt["input"]["tokens"]
    )
    assert receipt["program"]["recipe"] == "onnx-1" and receipt["model"]["name"] == "tiny"
    text = invar("compile", path / "model.onnx", "--emit", "program").out
    assert receipt["program"]["digest"] == hashlib.sha256(text).hexdigest()
    done = invar("verify", tmp_path / "r.json", "--model-name", path, "--json")
    assert done.json()["verdict"] == "VERIFIED"
    assert f"{NEW} of {NEW}" in done.json()["compared"]["steps"]
    invar("compile", path / "model.onnx", "--stateless")
    plan = path / "plan.invar"
    _, by_plan = run(path, tmp_path / "p.json", "--plan", plan)
    assert by_plan["receipt_hash"] == receipt["receipt_hash"]
    done = invar("verify", tmp_path / "r.json", "--model-name", path, "--plan", plan, "--json")
    assert "as it was given" in done.json()["compared"]["program"]


@pytest.mark.parametrize("hidden", [-np.inf, np.finfo(np.float32).min, -1e9])
def test_kept_keys_give_the_bits_of_the_whole_sequence(tmp_path, hidden):
    """plan.20: a plan of `compile --stateless` is computed over each prefix."""
    path = folder(tmp_path / "tiny", model=decoder("past + seq", hidden=hidden))
    done, receipt = run(path, tmp_path / "r.json")
    assert receipt["output"]["tokens"] == by_onnxruntime(
        path / "model.onnx", receipt["input"]["tokens"]
    )
    told = invar("run", "--model-name", path, "--prompt-text", PROMPT, "--max-new-tokens", 1,
                 "--receipt-path", tmp_path / "one.json")  # fmt: skip
    assert b"whole prefix" not in told.err
    invar("compile", path / "model.onnx", "--stateless")
    _, whole = run(path, tmp_path / "w.json", "--plan", path / "plan.invar")
    assert whole["receipt_hash"] == receipt["receipt_hash"]
    assert invar("verify", tmp_path / "r.json", "--model-name", path).out.startswith(b"VERIFIED")


def test_a_batch_is_refused_by_the_option(tmp_path):
    path = folder(tmp_path / "tiny", model=decoder())
    prompts = tmp_path / "p.jsonl"
    prompts.write_text('"A"\n"B"\n')
    refused("run", "--model-name", path, "--prompt-file", prompts, "--batch-size", 2,
            "--max-new-tokens", 2, "--receipt-path", tmp_path / "r.json", code=3,
            names=["--batch-size 2: ", "leave --batch-size out"])  # fmt: skip


@pytest.mark.parametrize("window", [-1, 3])
def test_a_decoder_of_the_genai_builder_keeps_its_keys(tmp_path, window):
    path = folder(
        tmp_path / "built", config="genai_config.json", model=builder_decoder(window=window)
    )
    _, receipt = run(path, tmp_path / "r.json")
    assert receipt["output"]["tokens"] == by_onnxruntime(
        path / "model.onnx", receipt["input"]["tokens"]
    )
    told = invar("run", "--model-name", path, "--prompt-text", PROMPT, "--max-new-tokens", 1,
                 "--receipt-path", tmp_path / "one.json")  # fmt: skip
    assert b"whole prefix" not in told.err
    invar("compile", path / "model.onnx", "--stateless")
    _, whole = run(path, tmp_path / "w.json", "--plan", path / "plan.invar")
    assert whole["receipt_hash"] == receipt["receipt_hash"]


def test_a_merged_decoder_of_optimum(tmp_path):
    plain = folder(tmp_path / "plain", model=decoder("past + seq"))
    path = folder(tmp_path / "merged", file="decoder_model_merged.onnx", model=merged())
    answers = [run(p, tmp_path / "r.json")[1]["output"] for p in (plain, path)]
    assert answers[0]["tokens"] == answers[1]["tokens"]
    assert answers[0]["logits"] == answers[1]["logits"]
    assert invar("verify", tmp_path / "r.json", "--model-name", path).out.startswith(b"VERIFIED")


def test_a_decoder_of_tokens_alone(tmp_path):
    path = folder(tmp_path / "alone", model=tokens_alone())
    _, receipt = run(path, tmp_path / "r.json")
    session = onnxruntime.InferenceSession(path / "model.onnx", providers=["CPUExecutionProvider"])
    tokens = list(receipt["input"]["tokens"])
    for made in receipt["output"]["tokens"]:
        (logits,) = session.run(None, {"input_ids": np.array([tokens], np.int64)})
        assert made == int(logits[0, -1].argmax())
        tokens.append(made)
    assert invar("verify", tmp_path / "r.json", "--model-name", path).out.startswith(b"VERIFIED")


def test_logits_of_half_precision_are_read_as_they_are(tmp_path):
    path = folder(tmp_path / "half", model=builder_decoder(TensorProto.FLOAT16))
    _, receipt = run(path, tmp_path / "r.json")
    assert len(receipt["output"]["tokens"]) == NEW
    assert invar("verify", tmp_path / "r.json", "--model-name", path).out.startswith(b"VERIFIED")


@pytest.mark.parametrize(
    "change, why",
    [
        ({}, "computes one token from others"),  # the mask may have other columns than keys
        ({"total": "past + seq", "compare": "GreaterOrEqual"}, "not known to be causal"),
        ({"total": "past + seq", "hidden": -5.0}, "not known to be causal"),
    ],
)
def test_what_is_not_shown_to_be_causal_is_computed_anew(tmp_path, change, why):
    path = folder(tmp_path / "tiny", model=decoder(**change))
    told = invar("run", "--model-name", path, "--prompt-text", PROMPT, "--max-new-tokens", 2,
                 "--receipt-path", tmp_path / "r.json")  # fmt: skip
    assert b"whole prefix" in told.err and why.encode() in told.err, told.text
    assert invar("verify", tmp_path / "r.json", "--model-name", path).out.startswith(b"VERIFIED")


def test_the_task_folder_of_a_model(tmp_path):
    """Compiled once, and again where the model, a file of its weights or the folder changed."""
    path, tasks = folder(tmp_path / "tiny", model=decoder("past + seq")), tmp_path / "tasks"

    def told(*options):
        out = tmp_path / "r.json"
        done = invar("run", "--model-name", path, "--prompt-text", PROMPT, "--max-new-tokens", NEW,
                     "--receipt-path", out, "--tasks-root", tasks, *options)  # fmt: skip
        return done.err, json.loads(out.read_text())["receipt_hash"]

    first, wanted = told()
    assert b"ready in" not in first and b"compile" in first
    second, receipt = told()
    assert b"ready in" in second and b"compile" not in second and receipt == wanted
    (task,) = tasks.iterdir()
    constants = task / "invar.constants"
    data = bytearray(constants.read_bytes())
    data[0] ^= 1
    constants.write_bytes(data)
    damaged, receipt = told()
    assert b"made anew" in damaged and receipt == wanted
    assert b"ready in" in told()[0]
    onnx.save(decoder("past + seq", hidden=-2e9), path / "model.onnx")
    assert b"ready in" not in told()[0]
    model = decoder("past + seq")
    onnx.save(model, path / "model.onnx", save_as_external_data=True, location="w.bin",
              size_threshold=1024)  # fmt: skip
    assert b"ready in" not in told()[0] and b"ready in" in told()[0]
    data = bytearray((path / "w.bin").read_bytes())
    data[0] ^= 1
    (path / "w.bin").write_bytes(data)
    changed, receipt = told()
    assert b"ready in" not in changed and receipt != wanted


def test_other_weights(tmp_path):
    path = folder(tmp_path / "tiny")
    run(path, tmp_path / "r.json")
    model = decoder()
    data = bytearray(model.graph.initializer[0].raw_data)
    data[0] ^= 1
    model.graph.initializer[0].raw_data = bytes(data)
    other = folder(tmp_path / "other", model=model)
    done = invar("verify", tmp_path / "r.json", "--model-name", other, "--json", code=1)
    assert any(f["field"].startswith("model.tensors[v") for f in done.json()["findings"])


@pytest.mark.parametrize(
    "file, config",
    [
        ("onnx/model.onnx", "config.json"),
        ("decoder_model.onnx", "config.json"),
        ("any.onnx", "genai_config.json"),
    ],
)
def test_names_of_exporters(tmp_path, file, config):
    _, wanted = run(folder(tmp_path / "tiny"), tmp_path / "r.json")
    _, receipt = run(folder(tmp_path / "another", file, config), tmp_path / "s.json")
    for field in ("output", "program"):
        assert receipt[field] == wanted[field]
    assert receipt["model"]["tensors"] == wanted["model"]["tensors"]
    assert invar("verify", tmp_path / "s.json").out.startswith(b"VERIFIED")


def test_refusals(tmp_path):
    def refused(model, name, *words):
        path = folder(tmp_path / name, model=model)
        done = invar("run", "--model-name", path, "--prompt-text", PROMPT, "--max-new-tokens", 2,
                     "--receipt-path", tmp_path / "no.json", code=words[0])  # fmt: skip
        assert all(w.encode() in done.err for w in words[1:]), done.text
        assert not (tmp_path / "no.json").exists()

    model = decoder()
    model.graph.input.append(
        helper.make_tensor_value_info("inputs_embeds", F32, ["batch", "seq", WIDTH])
    )
    refused(model, "embeds", 3, "'inputs_embeds'", "cannot be fed")
    model = decoder()
    for v in model.graph.input[3:]:
        v.type.tensor_type.shape.dim[0].dim_value = 1
        v.type.tensor_type.shape.dim[2].dim_value = 4
    refused(model, "fixed", 3, "its dimensions are fixed")
    model = decoder()
    model.graph.output[0].name = model.graph.node[-1].output[0] = "scores"
    refused(model, "unnamed", 2, "no output 'logits'")
    path = folder(tmp_path / "genai", "a.onnx", "genai_config.json")
    (path / "a.onnx").unlink()
    assert (
        b"names no file" in invar("run", "--model-name", path, "--prompt-text", PROMPT, code=2).err
    )


def test_a_folder_of_a_model_alone_takes_ids(tmp_path):
    """Neither settings nor a tokenizer: ids in, ids out, and the receipt is verified."""
    path = folder(tmp_path / "bare")
    _, whole = run(path, tmp_path / "whole.json")
    ids = whole["input"]["tokens"]
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json"):
        (path / name).unlink()
    (path / "model.onnx").rename(path / "other.onnx")
    for given in (path / "other.onnx", path):
        done = invar("run", "--model-name", given, "--prompt-text", " ".join(map(str, ids)),
                     "--max-new-tokens", NEW, "--receipt-path", tmp_path / "r.json")  # fmt: skip
        receipt = json.loads((tmp_path / "r.json").read_text())
        answer = receipt["output"]["tokens"]
        assert receipt["input"]["tokens"] == ids
        assert answer == by_onnxruntime(next(path.glob("*.onnx")), ids)
        assert done.out.decode() == " ".join(map(str, answer)) + "\n"
        assert b"no tokenizer" in done.err and b"no end token" in done.err
        assert invar("verify", tmp_path / "r.json").out.startswith(b"VERIFIED")
        (path / "other.onnx").exists() and (path / "other.onnx").rename(path / "model.onnx")
    refused("run", "--model-name", path, "--prompt-text", "1 x",
            names=['a prompt is token ids, as "1 15 300"; "x" is none'])  # fmt: skip
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": answer[1]}))
    _, ended = run_ids(path, tmp_path / "e.json", ids)
    assert ended["output"]["tokens"] == answer[:2] and ended["output"]["finish_reason"] == "stop"


def test_an_onnx_file_beside_a_tokenizer_takes_text(tmp_path):
    path = folder(tmp_path / "tiny")
    _, receipt = run(path, tmp_path / "r.json")
    _, named = run(path / "model.onnx", tmp_path / "n.json")
    assert named["receipt_hash"] == receipt["receipt_hash"]


def run_ids(path, out, ids):
    done = invar("run", "--model-name", path, "--prompt-text", " ".join(map(str, ids)),
                 "--max-new-tokens", NEW, "--receipt-path", out, "--json")  # fmt: skip
    return done.json(), json.loads(out.read_text())
