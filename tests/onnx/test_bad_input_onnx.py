"""Checkpoints and ONNX files that are wrong or hostile: one line that names the thing, the right
exit code, nothing lost."""

import json
import os
from random import Random

import numpy as np
import onnx.defs
import pytest
from checkpoints import SMALL, header_bytes, shapes, write_small
from conftest import MODEL, SHARDS, execute, invar, refused
from onnx import TensorProto, helper, numpy_helper

INDEX = "model.safetensors.index.json"


def refuses_export(model, out, code=2, names=(), keeps=True):
    refused("export", "--model-name", model, "--output", out, code=code, names=names)
    if keeps:
        assert not out.exists()


def change_json(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "change,names",
    [
        (
            lambda m: m.update({"model.norm.weight": SHARDS[0]}),
            ["model.norm.weight", SHARDS[0], SHARDS[2]],
        ),
        (lambda m: m.update({"ghost": SHARDS[0]}), ["ghost", SHARDS[0]]),
        (lambda m: m.pop("model.norm.weight"), ["model.norm.weight"]),
        (
            lambda m: m.update({"ghost": "model-00004-of-00004.safetensors"}),
            ["model-00004-of-00004.safetensors"],
        ),
        (
            lambda m: m.update({"model.norm.weight": "../model.safetensors"}),
            ["model.norm.weight", "plain file name"],
        ),
        (
            lambda m: m.update({"model.norm.weight": "/etc/passwd"}),
            ["model.norm.weight", "plain file name"],
        ),
    ],
    ids=[
        "wrong shard",
        "no such tensor",
        "not in the index",
        "missing shard",
        "above the folder",
        "absolute",
    ],
)
def test_index(model, tmp_path, change, names):
    home = json.loads((model / INDEX).read_text())["weight_map"]["model.norm.weight"]
    change_json(model / INDEX, lambda index: change(index["weight_map"]))
    refuses_export(
        model,
        tmp_path / "out",
        names=[n for n in names if n != SHARDS[2]] + [home] * (SHARDS[2] in names),
    )


@pytest.mark.parametrize(
    "code,names,tensors",
    [
        (
            3,
            ["model.layers.0.self_attn.q_norm.weight"],
            {"model.layers.0.self_attn.q_norm.weight": [6]},
        ),
        (
            3,
            ["model.layers.0.self_attn.q_proj.bias"],
            {"model.layers.0.self_attn.q_proj.bias": [24]},
        ),
        (2, ["model.norm.weight", "[25]", "[24]"], {"model.norm.weight": [25]}),
        (2, ["model.norm.weight", "missing"], {"model.norm.weight": None}),
        (2, ["lm_head.weight", "missing"], {"lm_head.weight": None}),
    ],
    ids=["unknown tensor", "bias", "shape", "missing", "no head"],
)
def test_tensors_that_do_not_fit_the_config(tmp_path, code, names, tensors):
    write_small(tmp_path / "in")
    all_of_them = {k: v for k, v in {**shapes(SMALL), **tensors}.items() if v}
    head, size = header_bytes(all_of_them, "BF16", 2)
    (tmp_path / "in/model.safetensors").write_bytes(head + bytes(size))
    refuses_export(tmp_path / "in", tmp_path / "out", code=code, names=names)


@pytest.mark.parametrize(
    "where,names",
    [
        ("node", ['node "turn"', "rank is 9"]),
        ("input", ['input "x"', "rank is 9"]),
        ("weight", ['weight "w"', "rank is 9"]),
    ],
)
def test_too_many_dimensions(tmp_path, where, names):
    """Eight are covered: a value, an input and a weight of nine are refused by name, with the
    limit."""

    def compiled(rank):
        shape, deep = [2] * 3, [1] * (rank - 3) + [2] * 3
        nodes = [
            helper.make_node("Reshape", ["x", "deep"], ["a"], name="lift"),
            helper.make_node("Transpose", ["a"], ["b"], name="turn"),
            helper.make_node("Add", ["b", "w"], ["c"], name="add"),
        ]
        given = deep if where == "input" else shape
        w = helper.make_tensor(
            "w",
            TensorProto.FLOAT,
            deep if where == "weight" else [],
            [1.0] * (8 if where == "weight" else 1),
        )
        if where == "weight":
            nodes = [
                helper.make_node("Flatten", ["w"], ["flat"], axis=0),
                helper.make_node("MatMul", ["x", "flat"], ["c"]),
            ]
            given = [2, 1]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, given)],
            [helper.make_tensor_value_info("c", TensorProto.FLOAT, None)],
            [w, helper.make_tensor("deep", TensorProto.INT64, [rank], deep)],
        )
        (tmp_path / "m.onnx").write_bytes(
            helper.make_model(
                graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
            ).SerializeToString()
        )

    compiled(8)
    invar("compile", tmp_path / "m.onnx")
    compiled(9)
    refused("compile", tmp_path / "m.onnx", code=3, names=[*names, "8 dimensions at most"])


def test_tensor_types(tmp_path):
    write_small(tmp_path / "in")
    for dtype, width in [("F64", 8), ("F8_E4M3", 1), ("I8", 1)]:
        head, size = header_bytes(shapes(SMALL), dtype, width)
        (tmp_path / "in/model.safetensors").write_bytes(head + bytes(size))
        refuses_export(tmp_path / "in", tmp_path / "out", code=3, names=[dtype])


@pytest.mark.parametrize(
    "code,name,change",
    [
        (3, "sliding_window", {"sliding_window": 4096}),
        (3, "attn_logit_softcapping", {"attn_logit_softcapping": 30.0}),
        (3, "num_local_experts", {"num_local_experts": 8}),
        (3, "partial_rotary_factor", {"partial_rotary_factor": 0.5}),
        (3, "longrope", {"rope_scaling": {"type": "longrope", "factor": 2.0}}),
        (3, "float8_e4m3fn", {"torch_dtype": "float8_e4m3fn"}),
        (
            2,
            "disagree",
            {
                "rope_scaling": {"type": "linear", "factor": 2.0},
                "rope_parameters": {"rope_type": "default"},
            },
        ),
        (
            2,
            "rope_theta",
            {"rope_theta": 1e4, "rope_parameters": {"rope_type": "default", "rope_theta": 1e5}},
        ),
        (2, "factor", {"rope_scaling": {"type": "linear"}}),
        (2, "head_dim", {"head_dim": 5}),
        (2, "num_hidden_layers", {"num_hidden_layers": 1e9}),
        (2, "eos_token_id", {"eos_token_id": 99999}),
    ],
)
def test_config(tmp_path, code, name, change):
    write_small(tmp_path / "in")
    change_json(tmp_path / "in/config.json", lambda c: c.update(change))
    refuses_export(tmp_path / "in", tmp_path / "out", code=code, names=[name])


def test_export_takes_nothing_away(model, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / SHARDS[0]).write_text("precious")
    refuses_export(model, out, names=[SHARDS[0]], keeps=False)
    (out / "model.onnx").write_text("precious")
    refuses_export(model, out, names=["model.onnx"], keeps=False)
    assert (out / SHARDS[0]).read_text() == (out / "model.onnx").read_text() == "precious"
    (tmp_path / "file").write_text("")
    refuses_export(model, tmp_path / "file", names=["file"], keeps=False)


# --- ONNX -----------------------------------------------------------------------------------------


def onnx_file(path, nodes, initializers=(), opset=23):
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)
    path.write_bytes(model.SerializeToString())
    return path


def weight(location, offset="0", length="8"):
    w = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL
    )
    for key, value in {"location": location, "offset": offset, "length": length}.items():
        w.external_data.add(key=key, value=value)
    return w


@pytest.mark.parametrize(
    "offset,length,name",
    [
        ("1", "8", "only 8"),
        ("9223372036854775800", "8", "only 8"),
        ("18446744073709551608", "8", "offset"),
        ("-8", "8", "offset"),
        ("0", "4", "bytes of data"),
        ("0", "2147483648", "bytes of data"),
        ("zero", "8", "offset"),
    ],
)
def test_external_places(tmp_path, offset, length, name):
    (tmp_path / "w.bin").write_bytes(bytes(8))
    path = onnx_file(
        tmp_path / "m.onnx",
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [weight("w.bin", offset, length)],
    )
    refused("compile", path, names=["'w'", name])


def test_links_are_followed_only_beside_the_model(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(8))
    folder = tmp_path / "m"
    (folder / "sub").mkdir(parents=True)
    os.symlink(tmp_path / "secret", folder / "sub/w.bin")
    os.symlink(tmp_path, folder / "up")
    for location in ("sub/w.bin", "up/secret"):
        path = onnx_file(
            folder / "m.onnx", [helper.make_node("Add", ["x", "w"], ["y"])], [weight(location)]
        )
        refused("compile", path, names=["'w'", "link"])
    os.symlink(tmp_path / "secret", folder / "w.bin")
    invar(
        "compile",
        onnx_file(
            folder / "m.onnx", [helper.make_node("Add", ["x", "w"], ["y"])], [weight("w.bin")]
        ),
    )


@pytest.mark.parametrize("damage", range(12))
def test_flipped_bytes_never_crash(model, tmp_path, damage):
    path = tmp_path / "out/model.onnx"
    invar("export", "--model-name", model, "--output", tmp_path / "out")
    data, random = bytearray(path.read_bytes()), Random(damage)
    for _ in range(8):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)
    done = execute(["compile", path, "--emit", "onnx"])
    assert done.code in (0, 2, 3) and len(done.errors) == (done.code != 0), done.text


@pytest.mark.parametrize(
    "inputs",
    [[], ["", "", ""], ["", "x", "", "x"], ["x"] * 12, ["t", "", "t"]],
    ids=["none", "absent", "some", "too many", "tensors"],
)
def test_operands_that_are_not_there(tmp_path, inputs):
    """Every operator of ONNX with operands that are missing, absent or too many: refused or
    compiled, never a crash."""
    ops = sorted(
        {(s.name, s.since_version) for s in onnx.defs.get_all_schemas() if not s.deprecated}
    )
    nodes = [helper.make_node(op, inputs, [f"y{i}"], name=f"n{i}") for i, (op, _) in enumerate(ops)]
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, []),
        helper.make_tensor_value_info("t", TensorProto.FLOAT, [2, "n", 3]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        values,
        [
            helper.make_value_info(f"y{i}", helper.make_tensor_type_proto(1, None))
            for i in range(len(nodes))
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    done = execute(["compile", tmp_path / "model.onnx", "--output", tmp_path / "plan.invar"])
    assert done.code in (2, 3) and len(done.errors) == 1, done.text[-2000:]
    assert "Relu" in done.text and "contradicts" not in done.text


def onnx_model(nodes, inputs=("x",), outputs=("y",), initializers=()):
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 2]) for n in inputs]
    out = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 2]) for n in outputs]
    graph = helper.make_graph(nodes, "g", info, out, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def test_onnx_with_a_cycle(tmp_path):
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="first"),
        helper.make_node("Mul", ["a", "x"], ["b"], name="second"),
        helper.make_node("Mul", ["b", "x"], ["y"], name="third"),
    ]
    path = tmp_path / "cycle.onnx"
    path.write_bytes(onnx_model(nodes).SerializeToString())
    done = refused("compile", path, names=[str(path)])
    assert "cycle" in done.text and "first" in done.text and "second" in done.text


def test_onnx_with_unknown_operators(tmp_path):
    nodes = [
        helper.make_node("Frobnicate", ["x"], ["a"], domain="com.example"),
        helper.make_node("Bernoulli", ["a"], ["y"]),
    ]
    path = tmp_path / "unknown.onnx"
    path.write_bytes(onnx_model(nodes).SerializeToString())
    done = refused("compile", path, code=3, names=["Frobnicate", "Bernoulli"])
    assert not (tmp_path / "plan.invar").exists(), done.text


def test_onnx_that_is_not_one(tmp_path):
    path = tmp_path / "m.onnx"
    good = onnx_model([helper.make_node("Add", ["x", "x"], ["y"])]).SerializeToString()
    for data in [b"", b"\x00" * 100, b"hello", good[: len(good) // 2], b"\xff" * 1000]:
        path.write_bytes(data)
        refused("compile", path, names=[str(path)])
    refused("compile", tmp_path / "nowhere.onnx", names=["nowhere.onnx"])
    refused("compile", tmp_path, names=[str(tmp_path), "a folder", "invar export --model-name"])
    (tmp_path / "model.onnx").write_bytes(b"")
    refused("compile", tmp_path, names=[str(tmp_path / "model.onnx")])


def test_onnx_undefined_and_doubled_values(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(
        onnx_model([helper.make_node("Add", ["x", "ghost"], ["y"])]).SerializeToString()
    )
    refused("compile", path, names=["ghost"])
    path.write_bytes(
        onnx_model(
            [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Mul", ["x", "x"], ["y"])]
        ).SerializeToString()
    )
    refused("compile", path, names=["y"])


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "missing.bin", "short.bin"])
def test_onnx_external_data(tmp_path, location):
    folder = tmp_path / "m"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    (folder / "short.bin").write_bytes(bytes(15))
    w = numpy_helper.from_array(np.zeros((2, 2), np.float32), "w")
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    for k, v in {"location": location, "offset": "0", "length": "16"}.items():
        entry = w.external_data.add()
        entry.key, entry.value = k, v
    path = folder / "m.onnx"
    path.write_bytes(
        onnx_model(
            [helper.make_node("Add", ["x", "w"], ["y"])], initializers=[w]
        ).SerializeToString()
    )
    refused("compile", path, names=[location])


def test_exported_model_passes_the_newest_checker(tmp_path):
    invar("export", "--model-name", MODEL, "-o", tmp_path / "out")
    copied = tmp_path / "copied"
    invar("export", "--model-name", MODEL, "-o", copied, "--colocate-tensors")
    onnx.checker.check_model(str(copied / "model.onnx"), full_check=True)
    linked = onnx.load(str(tmp_path / "out/model.onnx"), load_external_data=False)
    assert linked.opset_import[0].version == 23
    assert {"Attention", "RMSNormalization", "RotaryEmbedding"} <= {
        n.op_type for n in linked.graph.node
    }
    # By reference: the model file holds no weights.
    assert os.path.getsize(tmp_path / "out/model.onnx") < 200_000
