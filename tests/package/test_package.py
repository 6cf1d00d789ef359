"""The Python package: what it computes is, byte for byte, what the command line computes; what it
refuses, it names."""

import copy
import hashlib
import io
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
from conftest import BUILD, ROOT, cpu_isas
from conftest import invar as program
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(ROOT / "tools/models"))
sys.path.insert(0, str(ROOT / "tests/compiler"))
import random_weight_models  # noqa: E402

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import CompileOptions, primitives  # noqa: E402

MODELS = list(random_weight_models.SIZES)
STAGES = [
    f"{s}.mlir"
    for s in (
        "onnx",
        "onnx-to-repro",
        "repro-recognize-idioms",
        "repro-fuse",
        "repro-canonicalize",
        "repro-evaluate",
        "repro-sink-transposes",
        "repro-prepare-plan",
        "repro-store-weights",
    )
]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in MODELS:
        random_weight_models.make(folder / name, name, "small", batches=(1, 3))
        program("compile", folder / name / "model.onnx")
    return folder


def fed(model, batch):
    return {path.stem: np.load(path) for path in sorted((model / str(batch)).glob("*.npy"))}


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def of_command_line(model, batch):
    inputs = [
        x
        for name in fed(model, batch)
        for x in ("--input", f"{name}={model / str(batch) / name}.npy")
    ]
    return {
        n: o["sha256"]
        for n, o in program("infer", model / "plan.invar", *inputs).json()["outputs"].items()
    }


def small(weight=True):
    """y = softmax(x w + b), x [n, k, 8]."""
    rng = np.random.default_rng(1)
    constants = [
        numpy_helper.from_array(rng.standard_normal(s).astype("f"), n)
        for n, s in [("w", (8, 4)), ("b", (4,))]
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    value = lambda name, last: helper.make_tensor_value_info(
        name, TensorProto.FLOAT, ["n", "k", last]
    )
    graph = helper.make_graph(nodes, "small", [value("x", 8)], [value("y", 4)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


X = np.random.default_rng(2).standard_normal((2, 3, 8)).astype("f")


@pytest.mark.parametrize("name", MODELS)
def test_programs_compute_what_the_command_line_does(models, name):
    want = {batch: of_command_line(models / name, batch) for batch in (1, 3)}
    for options in [{}, *({"isa": isa, "threads": 1} for isa in cpu_isas()), {"threads": 5}]:
        made = invar.compile(models / name / "model.onnx", **options)
        for batch in (3, 1):
            got = made.run(fed(models / name, batch))
            assert {n: digest(v) for n, v in got.items()} == want[batch], options
        assert made.isa == options.get("isa", cpu_isas_best())
        assert any(made.isa in k for k in made.kernels)


def cpu_isas_best():
    return next(i for i in ("avx512", "avx2", "neon", "scalar") if i in cpu_isas())


@pytest.mark.parametrize("name", MODELS)
def test_modules_compute_what_programs_do(models, name, tmp_path):
    module = invar.convert(
        models / name / "model.onnx", CompileOptions(artifacts_dir=str(tmp_path))
    )
    for batch in (1, 3):
        inputs = fed(models / name, batch)
        order = list(module.INPUTS)
        got = module(*(torch.from_numpy(inputs[n]) for n in order))
        got = got if isinstance(got, tuple) else (got,)
        assert [digest(t.numpy()) for t in got] == list(
            of_command_line(models / name, batch).values()
        )
    text = (tmp_path / "module.py").read_text()
    assert "primitives." in text and "torch." not in text.split("forward")[1]


def test_operation_sets():
    made = {
        name: invar.compile(small(), operation_set=name)
        for name in ("default", "deterministic", "reproducible")
    }
    for name, program_ in made.items():
        assert program_.operation_set == name and f'operations "{name}"' in program_.plan
        assert program_.run(x=X)["y"].tobytes() == program_.run(x=X)["y"].tobytes()
    assert len({p.digest for p in made.values()}) == 3 and made["reproducible"].libraries == []
    assert invar.compile(small()).digest == made["reproducible"].digest
    assert all(not p.libraries or "matmul onednn" in p.kernels for p in made.values())
    # Rows enough for a library, if there is one: what it may change is told from what it may not.
    rows = np.random.default_rng(3).integers(-4, 5, (1, 64, 8)).astype("f")
    assert (
        made["reproducible"].run(x=rows)["y"].tobytes()
        == invar.compile(small(), threads=1).run(x=rows)["y"].tobytes()
    )
    assert invar.compile(small(), operation_set="default", isa=cpu_isas_best()).libraries == []
    for wrong in ("fast", "", None):
        with pytest.raises(invar.BadInput, match="operation_set"):
            invar.compile(small(), operation_set=wrong)


def test_arrays_of_every_kind():
    made = invar.compile(small())
    want = made.run(x=X)["y"]
    assert want.dtype == np.float32 and want.shape == (2, 3, 4)
    backwards = np.ascontiguousarray(X[:, :, ::-1])[:, :, ::-1]
    for x in (np.asfortranarray(X), backwards, X.astype(">f4"), X.copy()):
        got = made.run({"x": x})["y"]
        assert isinstance(got, np.ndarray) and got.tobytes() == want.tobytes()
    for x in (
        torch.from_numpy(X),
        torch.from_numpy(X).permute(2, 1, 0).contiguous().permute(2, 1, 0),
        torch.nn.Parameter(torch.from_numpy(X)),
    ):
        got = made.run(x=x)["y"]
        assert isinstance(got, torch.Tensor) and got.numpy().tobytes() == want.tobytes()
    empty = made.run(x=X[:0])["y"]
    assert empty.shape == (0, 3, 4)
    want[...] = 0  # a result is the caller's own
    assert made.run(x=X)["y"].any()


def test_what_a_program_says():
    made = invar.compile(small())
    assert made.inputs == (invar.Tensor("x", "f32", ("n", "k", 8)),) and made.outputs[0].shape == (
        "n",
        "k",
        4,
    )
    head = made.plan.split("places\n")[0]
    assert hashlib.sha256(head.encode()).hexdigest() == made.digest
    made.run(x=X)
    assert made.peak_bytes > 0 and "x: f32[n, k, 8]" in repr(made)


def test_bind():
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "s"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6]),
            helper.make_tensor_value_info("s", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    bound = invar.compile(model, bind={"s": np.array([3, 4])})
    assert bound.run(x=np.ones((2, 6), "f"))["y"].shape == bound.outputs[0].shape == (3, 4)
    assert invar.compile(model).run(x=np.ones((2, 6), "f"), s=np.array([4, 3]))["y"].shape == (4, 3)


@pytest.mark.parametrize(
    "call, kind, names",
    [
        (lambda m: m.run(x=X.astype("d")), invar.BadInput, ["x", "f64", "f32"]),
        (lambda m: m.run(x=X[0]), invar.BadInput, ["x", "[3, 8]"]),
        (lambda m: m.run(), invar.BadInput, ["x", "missing"]),
        (lambda m: m.run(x=X, z=X), invar.BadInput, ["z"]),
        (lambda m: m.run(X, X), invar.BadInput, ["2 inputs", "takes 1", "x"]),
        (lambda m: m.run(x=np.array(["a"])), invar.NotCovered, ["x", "U1"]),
        (lambda m: invar.compile("absent.onnx"), invar.BadInput, ["absent.onnx"]),
        (lambda m: invar.compile(7), invar.BadInput, ["int"]),
        (lambda m: invar.compile(small(), isa="mmx"), invar.BadInput, ["mmx"]),
        (lambda m: invar.compile(small(), threads=-1), invar.BadInput, ["threads"]),
        (lambda m: invar.compile(small(), bind={"q": X}), invar.BadInput, ["q"]),
        (lambda m: invar.convert(small(), "fast"), invar.BadInput, ["str"]),
        (lambda m: primitives.gather(X, np.array([7]), axis=0), invar.BadInput, ["gather", "7"]),
        (lambda m: primitives.matmul(X, X), invar.BadInput, ["matmul", "trans_b"]),
        (lambda m: primitives.matmul(X, X, trans_b=0), invar.BadInput, ["matmul", "3", "8"]),
        (lambda m: primitives.matmul(X, X, trans_b=1, turn=1), invar.BadInput, ["turn"]),
        (lambda m: primitives.softmax(X, axis=0.5), invar.BadInput, ["axis"]),
        (lambda m: primitives.softmax(X), invar.BadInput, ["softmax: requires attribute 'axis'"]),
        (lambda m: primitives.neg(X, X), invar.BadInput, ["neg: requires a single operand"]),
        (lambda m: primitives.add(X), invar.BadInput, ["add: expected 2 operands, but found 1"]),
        (lambda m: primitives.reshape(X), invar.NotCovered, ["reshape"]),
        (lambda m: primitives.reshape(X, shape=(5,)), invar.NotCovered, ["reshape"]),
        (lambda m: primitives.cast(X, dtype="f17"), invar.BadInput, ["f17"]),
        (lambda m: primitives.exp(X, isa="mmx"), invar.BadInput, ["mmx"]),
    ],
)
def test_refusals(call, kind, names):
    with pytest.raises(kind) as e:
        call(invar.compile(small()))
    text = str(e.value)
    assert "\n" not in text and all(n in text for n in names), text
    assert (
        isinstance(e.value, invar.Error)
        and e.value.exit_code == {invar.BadInput: 2, invar.NotCovered: 3}[kind]
    )


def test_every_node_that_is_not_covered_is_named():
    graph = helper.make_graph(
        [
            helper.make_node("Bernoulli", ["x"], ["a"], name="first"),
            helper.make_node("RandomNormalLike", ["a"], ["y"], name="second"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    with pytest.raises(invar.NotCovered) as e:
        invar.compile(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        )
    assert "first" in str(e.value) and "second" in str(e.value)


def test_options_are_those_of_the_seed():
    assert CompileOptions() == CompileOptions(
        artifacts_dir=None, colocate_tensors=False, requires_reproducibility=True
    )
    with pytest.raises(TypeError):
        CompileOptions("folder")
    with pytest.raises(AttributeError):
        CompileOptions().colocate_tensors = True
    assert not hasattr(CompileOptions(), "__dict__")
    for wrong in (
        {"artifacts_dir": 7},
        {"colocate_tensors": 1},
        {"requires_reproducibility": None},
    ):
        with pytest.raises(invar.BadInput, match=next(iter(wrong))):
            CompileOptions(**wrong)


@pytest.mark.parametrize("colocate", [False, True])
def test_artifacts(models, tmp_path, colocate):
    module = invar.convert(
        models / "vit/model.onnx",
        CompileOptions(artifacts_dir=str(tmp_path / "a"), colocate_tensors=colocate),
    )
    assert {"plan.invar", "module.py", "weights.bin"} <= {
        p.name for p in (tmp_path / "a").iterdir()
    }
    weights = tmp_path / "a/weights.bin"
    assert (
        weights.is_symlink() != colocate
        and weights.read_bytes() == (models / "vit/weights.bin").read_bytes()
    )
    again = invar.compile(
        models / "vit/model.onnx", artifacts_dir=tmp_path / "a", colocate_tensors=colocate
    )  # over what is there
    x = fed(models / "vit", 1)
    assert digest(next(iter(again.run(x).values()))) == digest(
        module(*map(torch.from_numpy, x.values())).numpy()
    )


def test_temporary_artifacts_go_unless_asked_for(models, tmp_path):
    script = (
        f"import sys; sys.path.insert(0, {str(BUILD / 'python')!r}); import invar; "
        f"invar.compile({str(models / 'vit/model.onnx')!r})"
    )
    for debug in ("", "1"):
        environment = {**os.environ, "TMPDIR": str(tmp_path), "INVAR_DEBUG": debug}
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        kept = list(tmp_path.glob("invar-*/plan.invar"))
        assert len(kept) == (1 if debug else 0)
        assert (str(kept[0].parent) in done.stderr) if debug else not done.stderr
        # The text of every stage, in their order, beside the plan.
        texts = sorted(p.name for p in kept[0].parent.glob("*.mlir")) if debug else []
        assert [t.split("-", 1)[1] for t in texts] == (STAGES if debug else [])


def test_levels_give_the_same_bytes(models):
    x = fed(models / "bert", 3)
    programs = [
        invar.compile(models / "bert/model.onnx", opt=level) for level in (0, 1, 2, 3, None)
    ]
    assert programs[0].digest != programs[3].digest == programs[4].digest
    found = [{n: digest(y) for n, y in p.run(x).items()} for p in programs]
    assert all(f == found[0] for f in found)
    for wrong in (4, -1, True, "3"):
        with pytest.raises(invar.BadInput, match="opt"):
            invar.compile(models / "bert/model.onnx", opt=wrong)


def test_modules_are_modules():
    module, x = invar.convert(small()), torch.from_numpy(X)
    want = module(x)
    assert want.numpy().tobytes() == invar.compile(small()).run(x=X)["y"].tobytes()
    assert set(module.state_dict()) == {"w", "b"} and not any(
        p.requires_grad for p in module.parameters()
    )
    for one in (copy.deepcopy(module), saved(module)):
        assert torch.equal(one(x), want)
        with torch.no_grad():
            one.b += 1
        assert torch.equal(module(x), want)
    fresh = invar.convert(small())
    with torch.no_grad():
        fresh.w.zero_()
    fresh.load_state_dict(module.state_dict())
    assert torch.equal(fresh(x), want) and torch.equal(module(x=x), want)
    for wrong, names in [
        ((x.double(),), ["x", "float64"]),
        ((x[..., :7],), ["x", "8"]),
        ((), ["1"]),
        ((X,), ["ndarray"]),
    ]:
        with pytest.raises((invar.BadInput, TypeError)) as e:
            module(*wrong)
        assert all(n in str(e.value) for n in names), str(e.value)
    with pytest.raises(invar.NotCovered, match="matmul"):
        module.to(torch.float64)(x)


def saved(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def test_a_saved_module_loads_in_another_process(tmp_path):
    module, x = invar.convert(small()), torch.from_numpy(X)
    torch.save((module, x, module(x)), tmp_path / "all.pt")
    script = (
        f"import sys; sys.path.insert(0, {str(BUILD / 'python')!r}); import torch; "
        f"m, x, y = torch.load({str(tmp_path / 'all.pt')!r}, weights_only=False); assert torch.equal(m(x), y)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_operations_one_by_one():
    a, b = X[0], X[1].T.copy()
    want = primitives.matmul(a, b, trans_b=0)
    for isa in cpu_isas():
        assert primitives.matmul(a, b, trans_b=0, isa=isa).tobytes() == want.tobytes()
    assert (
        primitives.matmul(torch.from_numpy(a), torch.from_numpy(X[1]), trans_b=1).numpy().tobytes()
        == want.tobytes()
    )
    assert primitives.softmax(X, axis=-2).tobytes() == primitives.softmax(X, axis=1).tobytes()
    assert primitives.cast(torch.from_numpy(X), dtype="bf16").dtype == torch.bfloat16
    assert primitives.reshape(X, shape=(6, 8)).tobytes() == X.tobytes()
    assert primitives.add(X.T, X.T).tobytes() == (X.T + X.T).tobytes()
    grown = primitives.call("add", torch.nn.Parameter(torch.from_numpy(X)), torch.from_numpy(X))
    assert grown.requires_grad and grown.detach().numpy().tobytes() == (X + X).tobytes()
    assert set(dir(primitives)) >= {"add", "attention", "call"}
    with pytest.raises(AttributeError, match="frobnicate"):
        primitives.frobnicate


def test_weights_that_changed_after_they_were_hashed(models, tmp_path):
    """A program that is compiled and opened in one process hashes once; what was changed between is
    noticed all the same."""
    shutil.copytree(models / "vit", tmp_path / "vit")
    weights = tmp_path / "vit/weights.bin"
    time.sleep(2.1)  # at rest
    artifacts = invar.compiler.Artifacts()
    described = artifacts.compile(tmp_path / "vit/model.onnx", None, False)
    opened = lambda: invar.Program(artifacts, described, "cpu", "", 1)
    opened()
    before, changed = weights.stat(), bytearray(weights.read_bytes())
    changed[len(changed) // 2] ^= 1
    weights.write_bytes(changed)
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(invar.Failed, match="SHA-256"):
        opened()


def test_inputs_are_read_where_they_lie():
    """Whether or not they do: in place, or copied from an address that no kernel reads."""
    made = invar.compile(small())
    want = made.run(x=X)["y"].tobytes()
    memory = np.zeros(X.nbytes + 64, np.uint8)
    for skew in (0, 4, 1, 0):
        x = (
            memory[skew : skew + X.nbytes].view("f")
            if skew % 4 == 0
            else np.frombuffer(memory, "f", X.size, skew)
        )
        memory[skew : skew + X.nbytes] = X.view(np.uint8).reshape(-1)
        x = x.reshape(X.shape)
        assert made.run(x=x)["y"].tobytes() == want and x.tobytes() == X.tobytes()
    other = made.run(x=X + 1)["y"].tobytes()
    assert other != want and made.run(x=X)["y"].tobytes() == want


def test_narrow_weights():
    """Weights of bf16 stay so in a module, and are operands that kernels widen."""
    w = torch.randn(256, 256, generator=torch.Generator().manual_seed(5)).bfloat16()
    narrow = onnx.TensorProto(
        name="w",
        data_type=TensorProto.BFLOAT16,
        dims=[256, 256],
        raw_data=w.view(torch.int16).numpy().tobytes(),
    )
    nodes = [
        helper.make_node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["wide"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    value = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", "k", None])
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "k", 256])],
        [value("y")],
        [narrow],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = np.random.default_rng(6).standard_normal((2, 3, 256)).astype("f")
    module = invar.convert(model)
    assert module.w.dtype == torch.bfloat16
    want = primitives.matmul(torch.from_numpy(x), w.float(), trans_b=1).numpy().tobytes()
    assert (
        invar.compile(model).run(x=x)["y"].tobytes()
        == want
        == module(torch.from_numpy(x)).numpy().tobytes()
    )
    assert primitives.matmul(torch.from_numpy(x), w, trans_b=1).numpy().tobytes() == want


def test_numerics_choices():
    import test_choices

    model, inputs = test_choices.layer(), test_choices.inputs(40)
    program = invar.compile(model)
    assert list(program.choices) == test_choices.CHOICES
    assert invar.compile(model, choices="none").choices == () and invar.compile(
        model, choices=["rope-1"]
    ).choices == ("rope-1",)
    want = program.run(inputs)["y"]
    tensors = [torch.from_numpy(a) for a in inputs.values()]
    assert invar.convert(model)(*tensors).numpy().tobytes() == want.tobytes()
    plain = invar.convert(model, CompileOptions(requires_reproducibility=False))(*tensors).numpy()
    assert np.abs(plain - want).max() < 1e-5
    assert (
        invar.convert(model, CompileOptions(choices="none"))(*tensors).numpy().tobytes()
        != want.tobytes()
    )
    for wrong in ("sdpa-99", ["sdpa-99"], 3, [3]):
        with pytest.raises(invar.BadInput, match="choice"):
            invar.compile(model, choices=wrong)
