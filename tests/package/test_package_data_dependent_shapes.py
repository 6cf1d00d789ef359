"""The Python package: sizes that a program computes, from dimensions or from values."""

import copy
import io
import sys

import numpy as np
import onnx.parser
import pytest
from conftest import BUILD, cpu_isas
from onnx import TensorProto, helper, numpy_helper

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import CompileOptions  # noqa: E402

X = np.random.default_rng(1).standard_normal((7, 3)).astype("f")
MASKS = [
    np.array([c == "1" for c in text])
    for text in ("0110100", "0000000", "1111111", "0000001", "0110100")
]
HEAD = '<ir_version: 10, opset_import: ["": 21]> g '
# Behind the size stands what reads values from before it; both are asked for.
MASKED = (
    HEAD
    + """(float[n, 3] x, bool[n] keep) => (float[k, 3] y, float[n, 3] twice, float[j, 3] kept) {
    twice = Add(x, x)
    at = NonZero(keep)
    rows = Transpose<perm = [1, 0]>(at)
    y = GatherND(twice, rows)
    kept = Compress<axis = 0>(x, keep) }"""
)
TWICE = (
    HEAD
    + """(float[n, 3] x, bool[n] keep) => (float[j] y) <float zero = {0}, int64[1] row = {-1}> {
    kept = Compress<axis = 0>(x, keep)
    positive = Greater(kept, zero)
    flags = Reshape(positive, row)
    y = Compress(kept, flags) }"""
)
SHAPED = (
    HEAD
    + """(float[n, 3] x, int64[2] to) => (float[a, b] y) {
    r = Reshape(x, to)
    y = Add(r, r) }"""
)
CUT = (
    HEAD
    + """(float[n, 3] x, int64[1] at) => (float[a, 3] y, float[b, 3] z) <int64[1] zero = {0}, int64[1] four = {4}> {
    y = Slice(x, zero, at, zero)
    z = Slice(x, at, four, zero) }"""
)


def modules(text):
    model = onnx.parser.parse_model(text)
    return [invar.convert(model, CompileOptions(requires_reproducibility=r)) for r in (True, False)]


def called(module, *inputs):
    got = module(*map(torch.from_numpy, inputs))
    return [t.numpy() for t in (got if isinstance(got, tuple) else (got,))]


def same(found, wanted):
    found = list(found.values()) if isinstance(found, dict) else found
    assert [(a.dtype, a.shape, a.tobytes()) for a in found] == [
        (a.dtype, a.shape, a.tobytes()) for a in wanted
    ]


@pytest.mark.parametrize("isa", cpu_isas())
def test_what_a_mask_keeps(isa):
    first, second = (
        invar.compile(onnx.parser.parse_model(text), isa=isa) for text in (MASKED, TWICE)
    )
    made, made_twice = modules(MASKED), modules(TWICE)
    for keep in MASKS:
        kept = X[keep]
        same(first.run(x=X, keep=keep), [kept + kept, X + X, kept])
        same(second.run(x=X, keep=keep), [kept[kept > 0]])
        for module, other in zip(made, made_twice):
            same(called(module, X, keep), [kept + kept, X + X, kept])
            same(called(other, X, keep), [kept[kept > 0]])
    for rows in (2, 0, 7):  # of other sizes, too
        same(
            first.run(x=X[:rows], keep=MASKS[0][:rows]),
            [2 * X[:rows][MASKS[0][:rows]], 2 * X[:rows], X[:rows][MASKS[0][:rows]]],
        )
    got = first.run(x=torch.from_numpy(X), keep=torch.from_numpy(MASKS[0]))
    assert all(isinstance(t, torch.Tensor) for t in got.values())


def test_a_shape_that_is_computed():
    program, made = invar.compile(onnx.parser.parse_model(SHAPED)), modules(SHAPED)
    for to, shape in [
        ((3, 7), (3, 7)),
        ((21, 1), (21, 1)),
        ((0, -1), (7, 3)),
        ((-1, 7), (3, 7)),
        ((1, -1), (1, 21)),
    ]:
        to = np.array(to)
        for found in (program.run(x=X, to=to), *(called(m, X, to) for m in made)):
            same(found, [(X + X).reshape(shape)])


def test_sizes_below_0_are_named_alike():
    program, wrong = invar.compile(onnx.parser.parse_model(SHAPED)), np.array((-3, -7))
    with pytest.raises(invar.BadInput, match="dimension .* none") as native:
        program.run({"x": X, "to": wrong})
    for module in modules(SHAPED):
        with pytest.raises(invar.BadInput) as e:
            called(module, X, wrong)
        assert str(native.value).startswith(str(e.value))  # and names the node


def test_slices_at_computed_places_are_clamped():
    program = invar.compile(onnx.parser.parse_model(CUT))
    for at in (3, 0, 5, 9, -1, -9):
        for found in (
            program.run(x=X, at=np.array([at])),
            *(called(m, X, np.array([at])) for m in modules(CUT)),
        ):
            same(found, [X[:at], X[at:4]])


def test_such_a_module_is_a_module():
    for module in modules(MASKED):
        file = io.BytesIO()
        torch.save(module, file)
        file.seek(0)
        for one in (copy.deepcopy(module), torch.load(file, weights_only=False), module.to("cpu")):
            for keep in MASKS:
                same(called(one, X, keep), [2 * X[keep], X + X, X[keep]])
    source = sys.modules[type(module).__module__].SOURCE
    assert "self.size(" in source and "nonzero_0" in source


def test_quotients_are_whole():
    """Of 9 times (n + 1) / 2 rounded down, the quotient comes first."""
    model = onnx.parser.parse_model(
        HEAD
        + """(float[n, 3] x) => (float[k] y) <int64[1] zero = {0}, int64[1] far = {9223372036854775807}, int64[1] two = {2}, int64[1] row = {-1}> {
        half = Slice(x, zero, far, zero, two)
        more = Concat<axis = 0>(half, half, half)
        y = Reshape(more, row) }"""
    )
    module = invar.convert(model, CompileOptions(requires_reproducibility=True))
    for n in range(1, 7):
        x = torch.from_numpy(X[:n].copy())
        assert module(x).numpy().tobytes() == torch.cat([x[::2]] * 3).flatten().numpy().tobytes()


def test_a_name_that_an_input_has_twice():
    for module in modules(HEAD + "(float[n, n] x) => (float[n, n] y) { y = Add(x, x) }"):
        x = X[:3, :3].copy()
        same(called(module, x), [x + x])
        with pytest.raises(invar.BadInput):
            module(torch.from_numpy(X))


def test_computed_dimensions():
    """Exporters' y = reshape(x, [batch * seq, 8]) beside an input of past + seq."""
    value = lambda n, shape: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s", "zero", "two"], ["ends"]),
        helper.make_node("ReduceProd", ["ends"], ["rows"], keepdims=1),
        helper.make_node("Concat", ["rows", "eight"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["y"]),
        helper.make_node("Concat", ["old", "x"], ["z"], axis=1),
        helper.make_node("Add", ["z", "m"], ["w"]),
    ]
    constants = [
        numpy_helper.from_array(np.array([v], np.int64), n)
        for n, v in [("zero", 0), ("two", 2), ("eight", 8)]
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            value("x", ["batch", "seq", 8]),
            value("old", ["batch", "past", 8]),
            value("m", ["batch", "past + seq", 8]),
        ],
        [value("y", None), value("w", None)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = np.random.default_rng(2).standard_normal((2, 3, 8)).astype("f")
    old, m = np.ones((2, 4, 8), "f"), np.full((2, 7, 8), 2, "f")
    want = invar.compile(model).run(x=x, old=old, m=m)
    assert want["y"].shape == (6, 8) and want["w"].shape == (2, 7, 8)
    for reproducible in (True, False):
        module = invar.convert(model, CompileOptions(requires_reproducibility=reproducible))
        got = module(*map(torch.from_numpy, (x, old, m)))
        assert [t.numpy().tobytes() for t in got] == [want["y"].tobytes(), want["w"].tobytes()]
        with pytest.raises(invar.BadInput, match="past.*= 7"):
            module(*map(torch.from_numpy, (x, old, m[:, :6])))


def test_the_smaller_of_two_dimensions():
    """table[: min(seq, 5)], beside a dimension that is called min."""
    value = lambda n, shape: helper.make_tensor_value_info(n, TensorProto.FLOAT, shape)
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=0, end=1),
        helper.make_node("Min", ["five", "s"], ["end"]),
        helper.make_node("Slice", ["table", "zero", "end"], ["y"]),
        helper.make_node("Concat", ["y", "u"], ["z"], axis=0),
    ]
    table = np.arange(24, dtype="f").reshape(8, 3)
    constants = [
        numpy_helper.from_array(np.array([v], np.int64), n) for n, v in [("zero", 0), ("five", 5)]
    ] + [numpy_helper.from_array(table, "table")]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", ["seq", 2]), value("u", ["min", 3])],
        [value("y", None), value("z", None)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    modules = [
        invar.convert(model, CompileOptions(requires_reproducibility=r)) for r in (True, False)
    ]
    program = invar.compile(model)
    u = np.ones((2, 3), "f")
    for seq in 1, 5, 7:
        x, y = np.zeros((seq, 2), "f"), table[: min(seq, 5)]
        found = program.run(x=x, u=u)
        for got in [[found["y"], found["z"]]] + [
            [t.numpy() for t in m(torch.from_numpy(x), torch.from_numpy(u))] for m in modules
        ]:
            assert np.array_equal(got[0], y) and np.array_equal(got[1], np.concatenate([y, u]))
