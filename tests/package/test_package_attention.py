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
