"""Primitives as operators of torch.library: compiled, exported, transformed, watched."""

import os
import shutil
import subprocess
import sys

import gradients
import invar
import pytest
import torch
from conftest import BUILD
from gradients import first, random
from invar import nn, ops
from invar import primitives as p
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

X, W = random(3, 4, seed=1), random(5, 4, seed=2)


def model(x, w):
    y = p.sigmoid(p.matmul(x, w, trans_a=0, trans_b=1))
    y = p.clip(p.mul(y, y), min=-0.5, max=0.1 + 0.2)
    return p.reduce_sum(p.expand(y, shape=(2, *y.shape)), axes=[0, 2], keepdims=0)


def total(x, w):
    return p.reduce_sum(model(x, w), axes=[0], keepdims=0)


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(dynamic):
    made = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for x in (X, random(6, 4, seed=3)):
        assert torch.equal(made(x, W), model(x, W))
        assert same(first(made, [x, W]), first(model, [x, W]))


def test_compiled_by_inductor():
    if not shutil.which("g++"):
        pytest.skip("inductor needs a C++ compiler")
    made = torch.compile(model, fullgraph=True, backend="inductor")
    assert same(first(made, [X, W]), first(model, [X, W]))


FIRST = """
import torch
from invar import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))
x = torch.ones(4, 6)
made = torch.compile(model, backend="aot_eager", fullgraph=True)(x)
assert torch.equal(made, model(x))
"""


def test_the_first_call_of_a_process_is_compiled():
    done = subprocess.run(
        [sys.executable, "-c", FIRST],
        env={**os.environ, "PYTHONPATH": str(BUILD / "python")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("gradients_", [False, True])
def test_traced_by_jit(gradients_, tmp_path):
    """A graph of torch.jit.trace has the operators, not what they gave when it was made."""
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(8, 2, dim_feedforward=8, batch_first=True).eval()
    module = torch.nn.Sequential(nn.Linear(4, 8), nn.GELU(), block, nn.LayerNorm(8), nn.Softmax(-1))
    x, other = random(2, 3, 4, seed=5), random(2, 3, 4, seed=6)
    with torch.set_grad_enabled(gradients_):
        made = torch.jit.trace(module, x)
        for given in (x, other, other):
            assert torch.equal(made(given), module(given))
        made.save(tmp_path / "traced.pt")
        assert torch.equal(torch.jit.load(tmp_path / "traced.pt")(other), module(other))
    if gradients_:
        of = lambda f: torch.autograd.grad(f(other).square().sum(), list(module.parameters()))
        assert same(of(made), of(module))


def test_a_drawing_is_not_traced_by_jit():
    with pytest.raises(invar.NotCovered, match=r"torch\.jit\.trace"):
        torch.jit.trace(nn.Dropout(0.5), X)


def test_one_graph_serves_all_sizes():
    made = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    first(made, [X, W])
    with torch._dynamo.config.patch(error_on_recompile=True):
        for n in (5, 8, 13):
            x, w = random(n, 2 * n, seed=n), random(n + 2, 2 * n, seed=n)
            assert same(first(made, [x, w]), first(model, [x, w]))


SIZES = {
    "add": ({}, [(2, 1, 4), (3, 1)], {}),
    "where": ({}, [(2, 1, 4), (3, 1), ()], {}),
    "reduce_sum": (dict(axes=[1], keepdims=0), [(2, 3, 4)], {}),
    "reduce_max": (dict(axes=[0, 2], keepdims=1), [(2, 3, 4)], {}),
    "argmax": (dict(axis=1, select_last=0), [(2, 3, 4)], {}),
    "transpose": (dict(perm=[2, 0, 1]), [(2, 3, 4)], {}),
    "concat": (dict(axis=1), [(2, 3, 4), (2, 5, 4)], {}),
    "gather": (dict(axis=1), [(2, 3, 4), (5, 6)], {1: "i64"}),
    "gather_elements": (dict(axis=1), [(2, 3, 4), (2, 5, 4)], {1: "i64"}),
    "softmax": (dict(axis=1), [(2, 3, 4)], {}),
    "attention": (
        dict(q_heads=4, kv_heads=2, scale=0.5, causal=1),
        [(2, 3, 24), (2, 3, 12), (2, 3, 10)],
        {},
    ),
    "cumsum": (dict(axis=1, exclusive=0, reverse=0), [(2, 3, 4)], {}),
}


@pytest.mark.parametrize("op", SIZES)
def test_shapes_of_symbols_are_those_of_the_operations(op):
    from invar.autograd import symbolic

    attributes, shapes, kinds = SIZES[op]
    kinds = {0: "bool"} if op == "where" else kinds
    types = tuple((kinds.get(i, "f32"), shape) for i, shape in enumerate(shapes))
    expected = p.Call(op, attributes).type_of(types)[1]
    sizes = {f"n{n}": n for shape in shapes for n in shape if n > 1}
    constant = -1 if op == "attention" else None  # a head has a constant size
    named = lambda shape: [f"n{n}" if n > 1 else n for n in shape[:constant]]
    open_sizes = [(t, [*named(s), *(s[constant:] if constant else ())]) for t, s in types]
    assert symbolic.shape_of(op, attributes, open_sizes, sizes) == tuple(expected)


@pytest.mark.parametrize("strict", [False, True])
def test_exported(strict):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(W.clone())

        def forward(self, x):
            return model(x, self.w)

    made = torch.export.export(Model(), (X,), strict=strict)
    calls = [str(n.target) for n in made.graph.nodes if n.op == "call_function"]
    assert [c for c in calls if c.startswith("invar.")] == [
        f"invar.{op}.default" for op in ("matmul", "sigmoid", "mul", "clip", "expand", "reduce_sum")
    ]
    assert torch.equal(made.module()(X), model(X, W))


def through(transform, compiled):
    return torch.compile(transform, fullgraph=True, backend="aot_eager") if compiled else transform


@pytest.mark.parametrize("compiled", [False, True])
def test_transforms(compiled):
    x, w = X.clone().requires_grad_(), W.clone().requires_grad_()
    expected = torch.autograd.grad(total(x, w), (x, w), create_graph=True)
    found = through(lambda x, w: torch.func.grad(total, argnums=(0, 1))(x, w), compiled)(X, W)
    assert same(found, expected)
    y, back = torch.func.vjp(model, X, W)
    assert same(back(torch.arange(1.0, 4.0)), first(model, [X, W]))
    square = lambda g: p.reduce_sum(p.mul(g, g), axes=[0, 1], keepdims=0)
    twice = lambda x, w: torch.func.grad(lambda x: square(torch.func.grad(total)(x, w)))(x)
    assert same([through(twice, compiled)(X, W)], torch.autograd.grad(square(expected[0]), x))


@pytest.mark.parametrize("compiled", [False, True])
def test_vmap(compiled):
    batch = random(4, 3, 4, seed=5)
    rows = torch.stack([model(x, W) for x in batch])
    assert torch.equal(
        through(lambda b: torch.func.vmap(lambda x: model(x, W))(b), compiled)(batch), rows
    )
    weights = random(5, 4, 2, seed=6)
    found = torch.func.vmap(model, in_dims=(None, 2), out_dims=1)(X, weights)
    assert torch.equal(found, torch.stack([model(X, weights[..., i]) for i in range(2)], 1))
    each = lambda w, b: torch.func.vmap(torch.func.grad(lambda w, x: total(x, w)), (None, 0))(w, b)
    expected = torch.stack(
        [torch.autograd.grad(total(x, w := W.clone().requires_grad_()), w)[0] for x in batch]
    )
    assert torch.equal(through(each, compiled)(W, batch), expected)
    pad = lambda x: p.pad(x, begins=[1], shape=(6,))  # no axes of batches: row by row
    assert torch.equal(torch.func.vmap(pad)(X), p.pad(X, begins=[0, 1], shape=(3, 6)))


def test_fake_tensors():
    mode = FakeTensorMode()
    x, w = (mode.from_tensor(t.clone().requires_grad_()) for t in (X, W))
    with mode:
        y = model(x, w)
        assert y.shape == (3,)
        y.sum().backward()
    assert x.grad.shape == X.shape and w.grad.shape == W.shape
    y = model(X.to("meta"), W.to("meta"))
    assert y.is_meta and y.shape == (3,)
    with pytest.raises(ValueError, match="matmul: inner dim"), mode:
        p.matmul(x, x, trans_a=0, trans_b=0)


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.ops.append(str(function))
        return function(*args, **(kwargs or {}))


def test_modes_see_calls_and_nothing_below_them():
    expected = first(total, [X, W], torch.ones(()))
    with Seen() as seen:
        found = first(total, [X, W], torch.ones(()))
    assert same(found, expected)
    kinds = {op.split(".")[0] for op in seen.ops}
    assert kinds == {"invar", "aten"} and "invar.matmul.default" in seen.ops
    moving = {"detach", "clone", "view", "full", "ones", "expand"}
    summing = {"add"}  # the two gradients of an operand that is used twice, by torch's engine
    assert {op.split(".")[1] for op in seen.ops if op.startswith("aten")} <= moving | summing


def test_autocast_leaves_operands_as_they_are():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(X, W)
        assert y.dtype == torch.float32 and torch.equal(y, model(X, W))
        assert same(first(model, [X, W]), first(model, [X, W]))


def test_compiled_checkpoints():
    made = torch.compile(
        lambda x, w: checkpoint(model, x, w, use_reentrant=False),
        fullgraph=True,
        backend="aot_eager",
    )
    assert same(first(made, [X, W]), first(model, [X, W]))


def test_the_operators_hold_what_torch_asks_of_them():
    x, w = X.clone().requires_grad_(), W.clone().requires_grad_()
    for operator, args in (
        (torch.ops.invar.matmul.default, ([x, w], "trans_a=0 trans_b=1")),
        (torch.ops.invar.expand.default, ([x], "", [2, 3, 4])),
        (torch.ops.invar.reduce_sum.default, ([x], "axes=0, keepdims=1")),
        (torch.ops.invar.argmax.default, ([x], "axis=-1 select_last=0")),
    ):
        torch.library.opcheck(operator, args)


def test_attributes_as_text():
    from invar.autograd.operators import attributes_of, text_of

    given = {
        "axes": [0, 2],
        "epsilon": 1e-5,
        "axis": -1,
        "none": [],
        "alpha": float("-inf"),
        "n": True,
    }
    assert text_of(given) == "alpha=-inf axes=0,2, axis=-1 epsilon=1e-05 n=1 none=,"
    assert attributes_of(text_of(given)) == {**given, "n": 1}
    assert gradients.UNIT == 2**-24


Q = random(2, 4, 6, 8, seed=7)
FUNCTIONS = {
    "linear": (ops.linear, [random(2, 6, 8, seed=8), random(5, 8, seed=9), random(5, seed=10)]),
    "rms_norm": (lambda x, w: ops.rms_norm(x, (8,), w), [Q, random(8, seed=11)]),
    "softmax": (lambda x: ops.softmax(x, -1), [Q]),
    "attention": (lambda q: ops.scaled_dot_product_attention(q, q, q, is_causal=True), [Q]),
    "cross_entropy": (lambda x: ops.cross_entropy(x, torch.arange(3) % 2), [X]),
    "conv2d": (lambda x, w: ops.conv2d(x, w, padding=1), [Q, random(3, 4, 3, 3, seed=12)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_compile_to_one_graph(name):
    function, operands = FUNCTIONS[name]
    made = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert same(first(made, operands), first(function, operands))
