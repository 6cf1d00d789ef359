"""The source of a torch module as the compiler prints it: how it reads, what the command line says
of it, and the bits of models that are loaded from it."""

import ast
import re
import sys

import numpy as np
import onnx
import onnx.parser
import pytest
from checkpoints import write_small
from conftest import BUILD, ROOT, refused
from conftest import invar as program

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import CompileOptions  # noqa: E402

GOLDEN = ROOT / "tests/package/convert/module_source.txt"
HEAD = '<ir_version: 10, opset_import: ["": 21]> g '
# Nodes with the names that torch's exporter gives them, a dimension that is computed from others,
# and a weight with the name of a function of Python.
SMALL = (
    HEAD
    + """(float[batch, seq, 4] x, float[past, 4] old, float[past_and_seq, 4] bias) => (float[k, 2] y, float[m, 4] z)
    <float[4, 2] fc_weight = {1, 2, 3, 4, 5, 6, 7, 8}, float[2] max = {0.5, -1}, int64[2] rows = {-1, 2},
     int64[1] first = {0}, float half = {0.5}> {
    ["/encoder/fc/MatMul"] a = MatMul(x, fc_weight)
    ["/encoder/fc/Add"] b = Add(a, max)
    ["/encoder/act/Relu"] c = Relu(b)
    y = Reshape(c, rows)
    ["/memory/Squeeze"] d = ReduceMax<keepdims = 0>(x, first)
    ["/memory/Concat"] e = Concat<axis = 0>(old, d)
    ["/memory/Mul"] f = Mul(e, half)
    ["/memory/Add"] z = Add(f, bias) }"""
)
MLP = (
    HEAD
    + """(float[n, 3] x) => (float[n, 2] y)
    <float[3, 4] w1 = {1, -2, 3, -4, 5, -6, 7, -8, 9, -1, 2, -3}, float[4] b1 = {1, 2, 3, 4},
     float[4, 2] w2 = {1, -1, 2, -2, 3, -3, 4, -4}, float[2] b2 = {0.25, 0.125}> {
    a = Gemm(x, w1, b1)
    b = Gelu<approximate = "tanh">(a)
    c = Gemm(b, w2, b2)
    y = Softmax<axis = -1>(c) }"""
)
COUNTED = (
    HEAD
    + """(float[n, 3] x, int64 trips, bool go) => (float[n, 3] y, float[t, n, 3] all) {
    y, all = Loop<body = step (int64 i, bool on, float[n, 3] s) => (bool again, float[n, 3] next, float[n, 3] row)
        <float two = {2}> {
        again = Identity(on)
        next = Mul(s, two)
        row = Neg(s) }>(trips, go, x) }"""
)


def parsed(text):
    model = onnx.parser.parse_model(text)
    for port in model.graph.input:
        for dim in port.type.tensor_type.shape.dim:
            if dim.dim_param == "past_and_seq":  # the parser has no sums
                dim.dim_param = "past + seq"
    return model


def source_of(module):
    return sys.modules[type(module).__module__].SOURCE


def without_digest(source):
    return re.sub(r"invar \S+ of program [0-9a-f]{64}", "invar VERSION of program DIGEST", source)


def values(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


@pytest.mark.parametrize("plain", [False, True])
def test_how_a_source_reads(plain):
    """The file has both, Invar's operations first. A wanted change of the text: copy what
    differs."""
    golden = GOLDEN.read_text().split("\n=====\n")[plain]
    module = invar.convert(parsed(SMALL), CompileOptions(requires_reproducibility=not plain))
    assert without_digest(source_of(module)).strip() == golden.strip()
    # So few bits that every order of sums gives the same.
    x, old, bias = (np.round(values(s, len(s))) for s in ((2, 3, 4), (5, 4), (8, 4)))
    y, z = module(*map(torch.from_numpy, (x, old, bias)))
    want = invar.compile(parsed(SMALL)).run(x, old, bias)
    assert y.numpy().tobytes() == want["y"].tobytes() and z.numpy().tobytes() == want["z"].tobytes()
    with pytest.raises(invar.BadInput, match=r"input 'bias'.*past\+seq = 8, 4"):
        module(*map(torch.from_numpy, (x, old, bias[1:])))
    with pytest.raises(invar.BadInput, match=r"input 'old'.*past, 4"):
        module(*map(torch.from_numpy, (x, old[0], bias)))


def test_the_command_line_prints_what_is_loaded(tmp_path):
    onnx.save(parsed(SMALL), tmp_path / "model.onnx")
    for plain, options in ((False, []), (True, ["--operation-set", "default"])):
        made = invar.convert(
            tmp_path / "model.onnx",
            CompileOptions(artifacts_dir=tmp_path / str(plain), requires_reproducibility=not plain),
        )
        printed = program(
            "compile", tmp_path / "model.onnx", "--emit", "torch-module", *options
        ).out.decode()
        assert without_digest(printed) == without_digest(source_of(made))
        assert (tmp_path / str(plain) / "module.py").read_text() == source_of(made)
        ir = program("compile", tmp_path / "model.onnx", "--emit", "torch", *options).out.decode()
        kind = "expression" if plain else "primitive"
        assert f'torch.{kind} "matmul"' in ir and "repro.weight" not in ir
    refused("compile", tmp_path / "model.onnx", "--emit", "torches", names=["torch-module"])


def test_a_module_of_the_profile_exact16():
    x = torch.from_numpy(values((5, 3), 1))
    module = invar.convert(parsed(MLP), numerics="exact16")
    assert "primitives.matmul_exact16(" in source_of(module)
    (expected,) = invar.compile(parsed(MLP), numerics="exact16").run({"x": x.numpy()}).values()
    assert module(x).numpy().tobytes() == expected.tobytes()
    assert invar.convert(parsed(MLP))(x).numpy().tobytes() != expected.tobytes()
    with pytest.raises(invar.BadInput, match="numerics: 'bf16' is not known; use one of fp32"):
        invar.convert(parsed(MLP), numerics="bf16")
    plain = CompileOptions(requires_reproducibility=False)
    with pytest.raises(invar.NotCovered, match="matmul_exact16: torch has no spelling"):
        invar.convert(parsed(MLP), plain, numerics="exact16")


def test_stages_of_a_module(tmp_path):
    """With INVAR_DEBUG the text of the torch dialect lies beside the others."""
    from invar.modules.convert import converted

    converted(parsed(MLP), CompileOptions(artifacts_dir=tmp_path), None, True)
    (text,) = tmp_path.glob("*-repro-to-torch.mlir")
    assert "torch.primitive" in text.read_text()


@pytest.mark.parametrize(
    "text, inputs",
    [
        (MLP, [values((5, 3), 1)]),
        (COUNTED, [values((2, 3), 2), np.array(3), np.array(True)]),
        (COUNTED, [values((2, 3), 2), np.array(3), np.array(False)]),
    ],
)
def test_bits(text, inputs):
    want = invar.compile(parsed(text)).run(*inputs)
    found = invar.convert(parsed(text))(*map(torch.from_numpy, map(np.asarray, inputs)))
    found = found if isinstance(found, tuple) else (found,)
    assert [(t.numpy().shape, t.numpy().tobytes()) for t in found] == [
        (a.shape, a.tobytes()) for a in want.values()
    ]
    if text == MLP:
        return
    plain = invar.convert(parsed(text), CompileOptions(requires_reproducibility=False))
    found = plain(*map(torch.from_numpy, map(np.asarray, inputs)))  # a loop of exact arithmetic
    assert [t.numpy().tobytes() for t in found] == [a.tobytes() for a in want.values()]


def test_a_llama(tmp_path):
    """A decoder's keys and values are inputs and outputs of the module."""
    write_small(tmp_path / "llama")
    program("export", "--model-name", tmp_path / "llama", "-o", tmp_path / "made")
    made = invar.compile(tmp_path / "made/model.onnx")
    module = invar.convert(tmp_path / "made/model.onnx")
    fed = {}
    for port in made.inputs:
        shape = [{"batch": 1, "seq": 3, "past": 2, "past+seq": 5}.get(d, d) for d in port.shape]
        fed[port.name] = (
            values(shape, len(fed)) if port.dtype == "f32" else np.arange(3)[None] % 2 + 2
        )
        if port.dtype != "f32":
            fed[port.name] = np.resize(fed[port.name], shape).astype(np.int64)
    want = made.run(fed)
    found = module(*(torch.from_numpy(fed[name]) for name in module.INPUTS))
    assert [t.numpy().tobytes() for t in found] == [a.tobytes() for a in want.values()]
    tree = ast.parse(source_of(module))
    assert ast.get_docstring(tree.body[-1].body[-1]).startswith("Args:")
