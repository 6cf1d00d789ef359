"""The Python package: attention whose keys and values are tensors of the graph: past and present,
masks, weights."""

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import BUILD, MODEL
from conftest import invar as program
from onnx import TensorProto, helper, numpy_helper

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import CompileOptions, primitives  # noqa: E402


def test_attention_under_a_mask():
    """What an operation with memory takes without one: a mask, and more keys than queries."""
    value = lambda n, shape: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
    graph = helper.make_graph(
        [helper.make_node("Attention", ["q", "k", "v", "m"], ["y"])],
        "g",
        [
            value("q", ["b", 2, 3, 8]),
            value("k", ["b", 2, 5, 8]),
            value("v", ["b", 2, 5, 8]),
            value("m", [3, 5]),
        ],
        [value("y", None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    rng = np.random.default_rng(3)
    inputs = [
        rng.standard_normal(s).astype("f")
        for s in [(2, 2, 3, 8), (2, 2, 5, 8), (2, 2, 5, 8), (3, 5)]
    ]
    want = invar.compile(model).run(dict(zip("qkvm", inputs)))["y"]
    assert invar.convert(model)(*map(torch.from_numpy, inputs)).numpy().tobytes() == want.tobytes()


def called(module, inputs):
    """A module's outputs by the names of a program's, from inputs by theirs."""
    got = module(*(torch.from_numpy(inputs[n]) for n in module.INPUTS))
    return [x.numpy() for x in (got if isinstance(got, tuple) else (got,))]


def test_past_and_present(tmp_path):
    """A language model in pieces, its past keys and values as tensors: the bytes of a session, of
    one call, and of the module."""
    program("export", "--model-name", MODEL, "--output", tmp_path)
    program("compile", tmp_path / "model.onnx")
    ids = np.random.default_rng(4).integers(0, 2048, 140)
    program(
        "infer",
        tmp_path / "plan.invar",
        "--tokens",
        ",".join(map(str, ids)),
        "--logits-output",
        tmp_path / "logits",
    )
    want = (tmp_path / "logits").read_bytes()
    made = invar.compile(tmp_path / "model.onnx")
    module = invar.convert(tmp_path / "model.onnx")
    plain = invar.convert(tmp_path / "model.onnx", CompileOptions(requires_reproducibility=False))
    kept = [t.name for t in made.inputs if t.name.startswith("past_key_values")]
    assert [t.name for t in made.outputs] == [
        "logits",
        *(n.replace("past_key_values", "present") for n in kept),
    ] and len(kept) > 1
    first = {
        t.name: np.zeros([{"batch": 1, "past": 0}.get(d, d) for d in t.shape], "f")
        for t in made.inputs
        if t.name in kept
    }
    for cuts in ([140], [5, 6, 128, 129, 140]):
        past, rows, at = first, [], 0
        for end in cuts:
            inputs = {
                "input_ids": ids[None, at:end],
                "position_ids": np.arange(at, end)[None],
                **past,
            }
            out = made.run(inputs)
            assert [x.tobytes() for x in called(module, inputs)] == [
                x.tobytes() for x in out.values()
            ]
            for near, exact in zip(called(plain, inputs), out.values(), strict=True):
                assert (
                    near.shape == exact.shape
                    and np.abs(near - exact).max() <= 1e-4 * np.abs(exact).max()
                )
            past, at = {n: out[n.replace("past_key_values", "present")] for n in kept}, end
            rows.append(out["logits"][0])
        assert np.concatenate(rows).tobytes() == want, cuts
    np.save(tmp_path / "input_ids.npy", ids[None])
    refused = program(
        "infer",
        tmp_path / "plan.invar",
        "--input",
        f"input_ids={tmp_path / 'input_ids.npy'}",
        code=3,
    )
    assert "--stateless" in refused.text
    assert (
        program(
            "compile",
            tmp_path / "model.onnx",
            "--stateless",
            "--output",
            tmp_path / "stateless.invar",
        ).text.split("\nplan ")[1][:64]
        == made.digest
    )


ATTENTION = {
    "mask": """<ir_version: 11, opset_import: ["": 23]>
        g (float[b, s, 16] q, float[b, s, 8] k, float[b, s, 8] v, bool[s, u] seen, float[b, 2, p, 4] pk, float[b, 2, p, 4] pv)
        => (float[b, s, 16] y, float[b, 2, t, 4] nk, float[b, 2, t, 4] nv)
        { y, nk, nv = Attention<q_num_heads=4, kv_num_heads=2>(q, k, v, seen, pk, pv) }""",
    "heads first": """<ir_version: 11, opset_import: ["": 23]>
        g (float[b, 4, s, 4] q, float[b, 2, s, 4] k, float[b, 2, s, 4] v, float[b, 2, p, 4] pk, float[b, 2, p, 4] pv)
        => (float[b, 4, s, 4] y, float[b, 2, t, 4] nk, float[b, 2, t, 4] nv) { y, nk, nv = Attention<is_causal=1>(q, k, v, , pk, pv) }""",
    "no memory": """<ir_version: 11, opset_import: ["": 23]>
        g (float[b, s, 16] q, float[b, s, 8] k, float[b, s, 8] v, float[b, 2, p, 4] pk, float[b, 2, p, 4] pv)
        => (float[b, s, 16] y, float[b, 2, t, 4] nk, float[b, 2, t, 4] nv)
        { y, nk, nv = Attention<q_num_heads=4, kv_num_heads=2, is_causal=1, scale=0.3>(q, k, v, , pk, pv) }""",
    "multi head": """<ir_version: 11, opset_import: ["": 23, "com.microsoft": 1]>
        g (float[b, s, 8] q, float[b, s, 8] k, float[b, s, 8] v, float[b, 2, p, 4] pk, float[b, 2, p, 4] pv)
        => (float[b, s, 8] y, float[b, 2, t, 4] nk, float[b, 2, t, 4] nv)
        { y, nk, nv = com.microsoft.MultiHeadAttention<num_heads=2, unidirectional=1>(q, k, v, , , , pk, pv) }""",
}


@pytest.mark.parametrize("name", ATTENTION)
def test_past_of_every_form(name):
    """Against the operation itself (attention.15) over the joined keys and values."""
    model = onnx.parser.parse_model(ATTENTION[name].replace("bool[s, u]", "bool[s, p_and_s]"))
    for i in model.graph.input:
        for d in i.type.tensor_type.shape.dim:
            if d.dim_param == "p_and_s":
                d.dim_param = "p + s"
    made, module = invar.compile(model), invar.convert(model)
    rng = np.random.default_rng(9)
    for b, s, p in ((2, 3, 5), (1, 1, 130), (3, 4, 0), (2, 0, 3)):
        sizes = {"b": b, "s": s, "p": p, "p+s": p + s}
        x = {
            t.name: rng.standard_normal([sizes.get(d, d) for d in t.shape]).astype("f")
            for t in made.inputs
        }
        if "seen" in x:
            x["seen"] = x["seen"] > -1
        got = made.run(x)
        first = lambda a: (
            a if a.ndim == 4 else a.reshape(b, s, a.shape[2] // 4, 4).transpose(0, 2, 1, 3)
        )
        k, v = (
            np.ascontiguousarray(np.concatenate([x[old], first(x[new])], 2))
            for old, new in (("pk", "k"), ("pv", "v"))
        )
        q = np.ascontiguousarray(first(x["q"]))
        more, also = (
            ([x["seen"]], {"mask": 1, "causal": 0})
            if "seen" in x
            else ([np.full(b, p + s)], {"lengths": 1, "causal": 1})
        )
        y = primitives.attention(
            q,
            k,
            v,
            *more,
            q_heads=q.shape[1],
            kv_heads=2,
            scale=0.3 if name == "no memory" else 0.5,
            heads_first=1,
            **also,
        )
        y = y if x["q"].ndim == 4 else y.transpose(0, 2, 1, 3).reshape(x["q"].shape)
        assert [a.tobytes() for a in got.values()] == [a.tobytes() for a in (y, k, v)], (b, s, p)
        assert [a.tobytes() for a in called(module, x)] == [a.tobytes() for a in got.values()], (
            b,
            s,
            p,
        )


def test_attention_over_more_keys_than_any_value_has_elements_along_an_axis():
    """The keys are weights: their positions need room though no activation is as long."""
    rng = np.random.default_rng(5)
    fed = {
        n: rng.standard_normal(s).astype("f")
        for n, s in [("q", (1, 2, 5, 8)), ("k", (1, 2, 300, 8)), ("v", (1, 2, 300, 8))]
    }
    value = lambda n, s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)

    def compiled(constants):
        graph = helper.make_graph(
            [helper.make_node("Attention", ["q", "k", "v"], ["y"])],
            "g",
            [value(n, x.shape) for n, x in fed.items() if n not in constants],
            [value("y", None)],
            [numpy_helper.from_array(fed[n], n) for n in constants],
        )
        return invar.compile(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
        )

    expected = compiled([]).run(fed)["y"]
    found = compiled(["k", "v"]).run(q=fed["q"])["y"]
    assert expected.shape == (1, 2, 5, 8) and found.tobytes() == expected.tobytes()


def linear_attention(sizes, update_rule, domain="", **attributes):
    """A model of one LinearAttention. sizes: the columns of its operands, of decay and beta
    last."""
    given = {"linear": 3, "gated": 4, "delta": 4, "gated_delta": 5}[update_rule]
    names = ["q", "k", "v", "", "g" if "gated" in update_rule else "", "b"]
    names = names[: 5 if "delta" not in update_rule else 6]
    inputs = [n for n in names if n]
    assert len(inputs) == given == len(sizes)
    info = lambda n, w: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", "seq", w])
    node = helper.make_node(
        "LinearAttention", names, ["y"], domain=domain, update_rule=update_rule, **attributes
    )
    graph = helper.make_graph([node], "g", list(map(info, inputs, sizes)), [info("y", None)])
    sets = [helper.make_opsetid("", 27)] + [helper.make_opsetid(domain, 1)] * bool(domain)
    return helper.make_model(graph, opset_imports=sets, ir_version=13)


def delta_operands(batch, seq, key_heads, heads, d, dv, channels=False, decay=0.8):
    """Unit queries and keys, values, logarithms of decays of this mean, rates, as float32."""
    rng = np.random.default_rng(seq)
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)
    q, k = (unit(rng.standard_normal((batch, seq, key_heads, d))) for _ in range(2))
    v = rng.standard_normal((batch, seq, heads * dv))
    g = -2 * decay * rng.random((batch, seq, heads * (d if channels else 1)))
    beta = rng.random((batch, seq, heads))
    return [x.reshape(batch, seq, -1).astype("f") for x in (q, k, v, g, beta)]


def recurrence(q, k, v, g, beta, key_heads, heads, scale):
    """The gated delta rule one row after another, in float64; without beta its kin."""
    batch, seq = q.shape[:2]
    split = lambda x, h: x.astype(np.float64).reshape(batch, seq, h, -1)
    q, k = (np.repeat(split(x, key_heads), heads // key_heads, 2) for x in (q, k))
    v, g = split(v, heads), split(g, heads)
    state, rows = np.zeros((batch, heads, q.shape[3], v.shape[3])), []
    for t in range(seq):
        state, u = state * np.exp(g[:, t, :, :, None]), v[:, t]
        if beta is not None:
            u = beta[:, t, :, None] * (u - np.einsum("bhd,bhdv->bhv", k[:, t], state))
        state = state + k[:, t, :, :, None] * u[:, :, None]
        rows.append(scale * np.einsum("bhd,bhdv->bhv", q[:, t], state))
    return np.stack(rows, 1).reshape(batch, seq, -1)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("decay", [0.008, 0.8, 5.0])
def test_linear_attention_is_as_accurate_as_its_recurrence(channels, decay):
    """The largest error over the largest result: at most 1e-6."""
    heads = dict(key_heads=1, value_heads=2)
    operands = delta_operands(1, 700, 1, 2, 32, 24, channels, decay)
    tensors = list(map(torch.from_numpy, operands))
    for beta in (operands[4], None):
        op = primitives.gated_linear_attention if beta is None else primitives.gated_delta_rule
        got = op(*tensors[: 4 if beta is None else 5], scale=0.25, **heads).numpy()
        want = recurrence(*operands[:4], beta, 1, 2, 0.25)
        assert np.abs(got - want).max() <= 1e-6 * np.abs(want).max()


@pytest.mark.parametrize("update_rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention_over_an_open_length(update_rule):
    """It is the operation of the room, and a rule without decay or rate that with 0 or without."""
    operands = delta_operands(2, 70, 2, 2, 8, 6)
    if "gated" not in update_rule:
        operands[3] = np.zeros_like(operands[3])
    delta = "delta" in update_rule
    op = primitives.gated_delta_rule if delta else primitives.gated_linear_attention
    tensors = list(map(torch.from_numpy, operands[: 5 if delta else 4]))
    want = op(*tensors, key_heads=2, value_heads=2, scale=8**-0.5).numpy().tobytes()
    inputs = dict(zip("qkvgb", operands))
    if "gated" not in update_rule:
        del inputs["g"]
    if not delta:
        del inputs["b"]
    sizes = [x.shape[2] for x in inputs.values()]
    model = linear_attention(sizes, update_rule, q_num_heads=2, kv_num_heads=2)
    assert invar.compile(model).run(inputs)["y"].tobytes() == want


@pytest.mark.parametrize(
    "domain, q_heads, heads, k_heads",
    [("", 4, 2, 2), ("invar", 1, 2, 1), ("com.microsoft", 1, 2, 2)],
)
def test_heads_of_linear_attention(domain, q_heads, heads, k_heads):
    """More heads of queries than of keys, or fewer than of values: as if each were repeated."""
    q, k, v, g, beta = delta_operands(1, 70, 4, 4, 8, 6, channels=True)
    q, k = q[..., : 8 * q_heads], k[..., : 8 * k_heads]
    v, g, beta = v[..., : 6 * heads], g[..., : 8 * heads], beta[..., :heads]
    model = linear_attention(
        [x.shape[2] for x in (q, k, v, g, beta)],
        "gated_delta",
        domain,
        q_num_heads=q_heads,
        kv_num_heads=heads,
        scale=0.5,
    )
    got = invar.compile(model).run(dict(zip("qkvgb", (q, k, v, g, beta))))["y"]
    most = max(q_heads, heads)

    def repeated(x, h):
        split = x.reshape(1, 70, h, -1)
        return torch.from_numpy(np.repeat(split, most // h, 2).reshape(1, 70, -1))

    all_heads = (q_heads, k_heads, heads, heads, heads)
    tensors = [repeated(x, h) for x, h in zip((q, k, v, g, beta), all_heads)]
    want = primitives.gated_delta_rule(*tensors, key_heads=most, value_heads=most, scale=0.5)
    assert got.tobytes() == want.numpy().tobytes()


def test_a_past_state_that_is_a_tensor_needs_a_fixed_length():
    model = linear_attention([8, 8, 6, 1, 1], "gated_delta", q_num_heads=1, kv_num_heads=1)
    model.graph.node[0].input[3] = "s"
    model.graph.input.append(
        helper.make_tensor_value_info("s", TensorProto.FLOAT, ["batch", 1, 8, 6])
    )
    with pytest.raises(invar.NotCovered, match="past_state and present_state"):
        invar.compile(model)
