"""ONNX -> IR -> plan through the command line: stages that read their own text, refusals by name,
time, sameness."""

import resource
import shutil

import numpy as np
import pytest
from conftest import BUILD, MODEL, SHARDS, execute, invar, refused
from onnx import TensorProto, helper, numpy_helper, save

OPT = [str(BUILD / "bin/invar-opt")]
PASSES = [
    "onnx-to-repro",
    "repro-recognize-idioms",
    "repro-fuse",
    "repro-canonicalize",
    "repro-evaluate",
    "repro-sink-transposes",
    "repro-prepare-plan",
    "repro-store-weights",
]
TO_REPRO = ",".join(PASSES[:-1])
F32 = TensorProto.FLOAT


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported model")
    invar("export", "--model-name", MODEL, "--output", folder)
    return folder


def program(done):
    return done.text.split("\nplan ")[1].split()[0]


def model(
    path,
    nodes,
    inputs=(("x", ["batch", "seq", 4]),),
    outputs=("y",),
    weights=(),
    opset=23,
    domains=(),
):
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info(n, F32, s) for n, s in inputs],
        [helper.make_tensor_value_info(n, F32, None) for n in outputs],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in weights],
    )
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    save(helper.make_model(graph, opset_imports=imports, ir_version=11), path)
    return path


def opt(text, *options, cwd=None, tmp_path=None):
    file = tmp_path / "in.mlir"
    file.write_bytes(text)
    done = execute([*options, file], program=OPT, cwd=cwd)
    assert done.code == 0, done.text
    return done.out


def pipeline(passes):
    """The first one is of the module, for it makes functions; the others are of functions."""
    names = passes.split(",")
    of_module = ["onnx-to-repro"] if names[0] == "onnx-to-repro" else []
    rest = [f"func.func({','.join(names[len(of_module) :])})"] if names[len(of_module) :] else []
    return f"--pass-pipeline=builtin.module({','.join(of_module + rest)})"


def test_every_stage_reads_its_own_text(exported, tmp_path):
    text = {
        stage: invar("compile", exported / "model.onnx", "--emit", stage).out
        for stage in ("onnx", "repro", PASSES[-1])
    }
    for stage, t in text.items():
        assert opt(t, tmp_path=tmp_path) == t, stage
        assert invar("compile", exported / "model.onnx", "--emit", stage).out == t
    assert opt(text["onnx"], pipeline(TO_REPRO), tmp_path=tmp_path) == text["repro"]
    stored = opt(text["repro"], pipeline(PASSES[-1]), cwd=exported, tmp_path=tmp_path)
    assert stored == text[PASSES[-1]] and stored.count(b"sha256") == stored.count(b"repro.weight ")
    assert b"onnx.node" not in text["repro"]
    # Weights never enter the IR: the text is far smaller than they are.
    assert max(map(len, text.values())) < 400_000 < sum((MODEL / s).stat().st_size for s in SHARDS)


def test_a_plan_is_the_same_wherever_it_is_made(exported, tmp_path):
    first = program(invar("compile", exported / "model.onnx"))
    plan = (exported / "plan.invar").read_bytes()
    assert program(invar("compile", exported / "model.onnx")) == first
    assert (exported / "plan.invar").read_bytes() == plan
    invar("export", "--model-name", MODEL, "--output", tmp_path / "copied", "--colocate-tensors")
    assert program(invar("compile", tmp_path / "copied/model.onnx")) == first
    assert (tmp_path / "copied/plan.invar").read_bytes() == plan


def test_the_plan_of_the_shipped_model(exported):
    invar("compile", exported / "model.onnx")
    text = (exported / "plan.invar").read_text()
    layers = 5
    for call, count in {
        "matmul.1(": 7 * layers + 1,
        "attention.1(": layers,
        "rope.1(": 2 * layers,
        "rmsnorm.1(": 2 * layers + 1,
        "silu.1(": layers,
        "gather.1(": 1,
        "cast.1(": 1,
    }.items():
        assert text.count(call) == count, call
    assert text.count("\nstate ") == layers and "sigmoid" not in text and "present" not in text
    assert text.split("\nplaces\n")[0].count(" bf16 [") == 9 * layers + 2, (
        "the embedding is tied: one weight, read in place"
    )


def test_time(exported):
    def cpu():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    spent = []
    for _ in range(3):
        before = cpu()
        invar("compile", exported / "model.onnx")
        spent.append(cpu() - before)
    assert min(spent) < 0.3, spent


def test_unknown_operators_are_listed(tmp_path):
    nodes = [
        helper.make_node("Bernoulli", ["x"], ["a"], name="first"),
        helper.make_node("Sin", ["a"], ["b"]),
        helper.make_node("Shrink", ["b"], ["c"], domain="com.example"),
        helper.make_node("Bernoulli", ["c"], ["y"]),
    ]
    path = model(tmp_path / "m.onnx", nodes, domains=["com.example"])
    done = refused(
        "compile",
        path,
        code=3,
        names=[
            'Bernoulli (domain ai.onnx opset 23, node "first" and 1 more)',
            "Shrink (domain com.example opset 1",
            "Bernoulli",
        ],
    )
    assert "3 nodes" in done.text and "Sin (" not in done.text
    assert not (tmp_path / "plan.invar").exists()
    assert b"com.example" in invar("compile", path, "--emit", "onnx").out


@pytest.mark.parametrize(
    "nodes,code,names",
    [
        ([helper.make_node("Add", ["x", "w3"], ["y"])], 2, ["do not broadcast", "Add"]),
        ([helper.make_node("MatMul", ["x", "w3x3"], ["y"])], 2, ["inner dimensions", "4 and 3"]),
        (
            [helper.make_node("Transpose", ["x"], ["y"], perm=[0, 2, 2])],
            2,
            ["Transpose", "not a permutation"],
        ),
        (
            [helper.make_node("Split", ["x"], ["y", "z"], axis=1)],
            3,
            ["Split", "cannot be shown to divide"],
        ),
        (
            [helper.make_node("Gather", ["x", "to"], ["y"], axis=2)],
            2,
            ["Gather", "index 4", "dimension of 4"],
        ),
        (
            [helper.make_node("ScatterND", ["w3x3", "twice", "w3"], ["y"], reduction="mean")],
            2,
            ["ScatterND", "reduction"],
        ),
        ([helper.make_node("Softmax", ["x"], ["y"], axis=5)], 2, ["Softmax", "axis 5"]),
        ([helper.make_node("ReduceSum", ["x", "x"], ["y"])], 3, ["ReduceSum", "not a constant"]),
        ([helper.make_node("ReduceMax", ["x", "twice"], ["y"])], 2, ["ReduceMax", "axis -1 twice"]),
        ([helper.make_node("Add", ["x", "d"], ["y"])], 2, ["f32 and f64", "Add"]),
        ([helper.make_node("Reshape", ["w3x3", "by5"], ["y"])], 2, ["do not divide"]),
    ],
    ids=[
        "shapes",
        "inner",
        "transpose",
        "split",
        "index",
        "reduction",
        "axis",
        "axes",
        "twice",
        "double",
        "reshape",
    ],
)
def test_refusals(tmp_path, nodes, code, names):
    weights = [
        ("w3", np.ones(3, np.float32)),
        ("w3x3", np.ones((3, 3), np.float32)),
        ("d", np.ones(4)),
        ("to", np.array([-1, 4])),
        ("by5", np.array([5, -1])),
        ("twice", np.array([2, -1])),
    ]
    refused("compile", model(tmp_path / "m.onnx", nodes, weights=weights), code=code, names=names)


def test_an_opset_too_new_is_refused(tmp_path):
    path = model(tmp_path / "m.onnx", [helper.make_node("Sin", ["x"], ["y"])], opset=99)
    refused("compile", path, code=3, names=["Sin", "opset 99"])


def test_constants_of_the_model_file_lie_beside_the_plan(tmp_path):
    nodes = [
        helper.make_node(
            "Constant", [], ["c"], value=numpy_helper.from_array(np.array([1, 2, 3, 4], np.float32))
        ),
        helper.make_node("Mul", ["x", "c"], ["a"]),
        helper.make_node("Add", ["a", "w"], ["y"]),
    ]
    path = model(tmp_path / "m.onnx", nodes, weights=[("w", np.array([5], np.float32))])
    invar("compile", path, "--output", tmp_path / "p.plan")
    bytes_beside = (tmp_path / "p.plan.constants").read_bytes()
    assert np.array([1, 2, 3, 4], np.float32).tobytes() in bytes_beside
    assert np.array([5], np.float32).tobytes() in bytes_beside


def test_large_constants_stay_in_the_model_file(tmp_path):
    """Used from there, wherever its bytes begin; where they change, the program refuses to run."""
    w = np.arange(20_000, dtype=np.float32)
    path = model(
        tmp_path / "m.onnx",
        [helper.make_node("Add", ["x", "w"], ["y"])],
        inputs=[("x", [1])],
        weights=[("w", w)],
    )
    content = path.read_bytes()
    place = content.index(w.tobytes())
    invar("compile", path)
    plan = tmp_path / "plan.invar"
    assert not (tmp_path / "plan.invar.constants").exists()
    assert f'"m.onnx" offset {place} length {w.nbytes}' in plan.read_text()
    np.save(tmp_path / "x.npy", np.ones(1, np.float32))
    command = ["infer", plan, "--input", f"x={tmp_path}/x.npy", "--tensors-output", tmp_path]
    invar(*command)
    assert np.array_equal(np.load(tmp_path / "y.npy"), w + 1)
    path.write_bytes(content[:place] + bytes([1]) + content[place + 1 :])
    refused(*command, code=1, names=["w"])


def test_ten_thousand_nodes(tmp_path):
    def seconds(count):
        nodes = [
            helper.make_node(
                "Add", [f"v{i}" if i else "x", "x"], [f"v{i + 1}" if i + 1 < count else "y"]
            )
            for i in range(count)
        ]
        path = model(tmp_path / f"{count}.onnx", nodes)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        invar("compile", path)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    small, large = seconds(2500), seconds(10_000)
    assert large < 10 * max(small, 0.02), (small, large)


def test_a_model_that_moved_keeps_its_program(exported, tmp_path):
    shutil.copytree(exported, tmp_path / "elsewhere", symlinks=True)
    assert program(invar("compile", tmp_path / "elsewhere/model.onnx")) == program(
        invar("compile", exported / "model.onnx")
    )


def logits(path, *nodes, weights):
    """Compiles input_ids -> logits and returns the bytes of the logits of a few tokens."""
    ids = [
        helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "seq"])
        for n in ("input_ids", "position_ids")
    ]
    graph = helper.make_graph(
        nodes,
        "made",
        ids,
        [helper.make_tensor_value_info("logits", F32, ["batch", "seq", None])],
        weights,
    )
    path.mkdir()
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11),
        path / "m.onnx",
    )
    invar("compile", path / "m.onnx", "--output", path / "p.plan")
    invar("infer", path / "p.plan", "--tokens", "0,7,63,31", "--logits-output", path / "out")
    return (path / "p.plan").read_text(), (path / "out").read_bytes()


def test_folding_weights_and_fusing_keep_the_bits(tmp_path):
    """bf16 read in place, read transposed, and one fused operation, against fp32 copies and the
    single operations."""
    random = np.random.default_rng(3)
    words = random.integers(0, 2**16, (64, 300), dtype=np.uint16)
    words = np.where(
        words >> 7 & 255 > 130, words & 0xC0FF, words
    )  # finite, all magnitudes below 16, subnormals
    words[7, :8] = [
        0x0001,
        0x8001,
        0x007F,
        0x0000,
        0x8000,
        0x7F80,
        0x7FC1,
        0xFF81,
    ]  # subnormals, zeros, inf, NaNs
    wide = (words.astype(np.uint32) << 16).view(np.float32)
    narrow = TensorProto(
        name="w", data_type=TensorProto.BFLOAT16, dims=words.shape, raw_data=words.tobytes()
    )
    node = helper.make_node
    folded, a = logits(
        tmp_path / "folded",
        node("Cast", ["w"], ["wide"], to=F32),
        node("Gather", ["wide", "input_ids"], ["x"]),
        node("Sigmoid", ["x"], ["s"]),
        node("Mul", ["x", "s"], ["g"]),
        node("Transpose", ["wide"], ["t"], perm=[1, 0]),
        node("MatMul", ["g", "t"], ["logits"]),
        weights=[narrow],
    )
    plain, b = logits(
        tmp_path / "plain",
        node("Gather", ["w", "input_ids"], ["x"]),
        node("Gather", ["w", "input_ids"], ["x again"]),
        node("Sigmoid", ["x"], ["s"]),
        node("Mul", ["x again", "s"], ["g"]),
        node("MatMul", ["g", "t"], ["logits"]),
        weights=[
            numpy_helper.from_array(wide, "w"),
            numpy_helper.from_array(np.ascontiguousarray(wide.T), "t"),
        ],
    )
    assert (
        " silu.1(" in folded
        and "cast.1(" not in folded
        and "trans_b=1" in folded
        and " bf16 " in folded
    )
    assert (
        " sigmoid.1(" in plain
        and "silu" not in plain
        and " bf16 " not in plain
        and "trans_b=1" not in plain
    )
    assert len(a) == 4 * 64 * 4 and a == b


def test_inputs_that_decide_shapes_are_bound(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "made",
        [
            helper.make_tensor_value_info("x", F32, [2, 6]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", F32, None)],
    )
    path = tmp_path / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    x, shape = np.arange(12, dtype=np.float32).reshape(2, 6), np.array([3, -1])
    (
        np.save(tmp_path / "x.npy", x),
        np.save(tmp_path / "shape.npy", shape),
        np.save(tmp_path / "narrow.npy", shape.astype(np.int32)),
    )
    invar("compile", path)  # the program computes what nobody gives (test_data_dependent_shapes.py)
    assert "\nbind reshape_0 = " in (tmp_path / "plan.invar").read_text()
    refused(
        "compile",
        path,
        "--bind",
        f"shape={tmp_path}/narrow.npy",
        names=["input 'shape'", "is not what the graph takes"],
    )
    refused(
        "compile",
        path,
        "--bind",
        f"size={tmp_path}/shape.npy",
        names=["input 'size'", "none of this name"],
    )
    refused("compile", path, "--bind", f"shape={tmp_path}/none.npy", names=["none.npy"])
    refused("compile", path, "--bind", "shape", names=["not NAME=FILE.npy"])
    invar("compile", path, "--bind", f"shape={tmp_path}/shape.npy")
    invar(
        "infer",
        tmp_path / "plan.invar",
        "--input",
        f"x={tmp_path}/x.npy",
        "--tensors-output",
        tmp_path,
    )
    assert np.array_equal(np.load(tmp_path / "y.npy"), x.reshape(3, 4))
    # Nothing is left to give: the plan is a constant.
    invar("compile", path, "--bind", f"shape={tmp_path}/shape.npy", "--bind", f"x={tmp_path}/x.npy")
    invar("infer", tmp_path / "plan.invar", "--tensors-output", tmp_path)
    assert np.array_equal(np.load(tmp_path / "y.npy"), x.reshape(3, 4))
