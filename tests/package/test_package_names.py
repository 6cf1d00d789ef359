"""The Python package: no name of a model becomes code."""

import ast
import builtins
import keyword
import sys

import numpy as np
import pytest
from conftest import BUILD
from onnx import TensorProto, helper, numpy_helper

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import CompileOptions  # noqa: E402
from invar.modules.emitted import Module  # noqa: E402

# What the source of a module reads.
READ = {"Model", "Module", "float", "functional", "max", "min", "primitives", "rooms", "torch"}
STRUCK = "__import__('sys').modules.__setitem__('invar_struck', 1)"
HOSTILE = [
    "'",
    '"',
    "'''",
    '"""',
    "\\",
    "\n",
    "\r\n",
    "\t",
    "\x1b[2J",
    "é",
    "名",
    "a b",
    "a(b)",
    "a)",
    "x=1",
    "x: int = 1",
    "*x",
    "{0}",
    "{",
    "%s",
    "",
    "0",
    "7x",
    "__import__",
    "__class__",
    "__dict__",
    "_parameters",
    "_buffers",
    "training",
    "forward",
    "load",
    "self",
    "Model",
    "Module",
    "torch",
    "functional",
    "primitives",
    "rooms",
    "min",
    "max",
    "float",
    "None",
    "True",
    "lambda",
    "in",
    "match",
    "_",
    "__debug__",
    "INPUTS",
    STRUCK,
    f"'+{STRUCK}+'",
    f'"""\n{STRUCK}\n"""',
    f"x):\n        {STRUCK}\n    def f(self",
    f"x\n{STRUCK}",
    f"{{{STRUCK}}}",
    f"\\\n{STRUCK}#",
]
X = np.arange(12, dtype="f").reshape(3, 4)


def model(name, dim, weight):
    """Its names become arguments, dimensions, attributes of a module, and what is computed from
    them."""
    nodes = [
        helper.make_node("Add", [name, weight], [f"{name} sum"], name=name),
        helper.make_node("Slice", [f"{name} sum", "0", "far", "0", "two"], ["half"]),
        helper.make_node("Concat", ["half", "half"], ["more"], axis=0),
        helper.make_node("ReduceMax", ["more"], ["y"], keepdims=0),
    ]
    constants = [("0 at", [0]), ("far at", [2**62]), ("two at", [2])]
    nodes[1].input[1:] = [n for n, _ in (constants[0], constants[1], constants[0], constants[2])]
    weights = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in constants] + [
        numpy_helper.from_array(np.ones(4, "f"), weight)
    ]
    graph = helper.make_graph(
        nodes,
        name or "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [dim, 4])],
        [
            helper.make_tensor_value_info("more", TensorProto.FLOAT, None),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, []),
        ],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def free_names(source):
    """What an emitted source reads without defining it."""
    tree = ast.parse(source)
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    defined = {n.id for n in names if isinstance(n.ctx, ast.Store)} | {
        a.arg for n in ast.walk(tree) if isinstance(n, ast.arguments) for a in n.args
    }
    return {n.id for n in names if isinstance(n.ctx, ast.Load)} - defined


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("reproducible", [True, False])
def test_hostile_names(name, reproducible):
    made = model(name or "x", name, (name or "w") + " ")
    module = invar.convert(made, CompileOptions(requires_reproducibility=reproducible))
    source = sys.modules[type(module).__module__].SOURCE
    assert free_names(source) <= READ
    (body,) = [n for n in ast.parse(source).body if isinstance(n, ast.ClassDef)]
    assert [type(n) for n in body.body] == [ast.Assign, ast.Assign, ast.FunctionDef] and body.body[
        2
    ].name == "forward"
    more, y = module(torch.from_numpy(X))
    half = (X + 1)[::2]
    assert more.numpy().tobytes() == np.concatenate([half, half]).tobytes() and y.item() == 12
    assert "invar_struck" not in sys.modules


@pytest.mark.parametrize(
    "dim",
    [
        "max",
        "id",
        "min",
        "sum",
        "exit",
        "lambda",
        "in",
        "is",
        "float",
        "None",
        "__import__",
        "copyright",
    ],
)
def test_a_dimension_that_python_knows(dim):
    made = model("x", dim, "w")
    for reproducible in True, False:
        module = invar.convert(made, CompileOptions(requires_reproducibility=reproducible))
        for rows in 1, 3:
            assert module(torch.from_numpy(X[:rows].copy()))[0].shape == (2 * ((rows + 1) // 2), 4)
        with pytest.raises(invar.BadInput, match="input 'x'"):
            module(torch.zeros(3, 5))


def test_names_of_a_module():
    """Weights do not take the place of what torch.nn.Module has, whatever version torch is of, nor
    of what Python knows."""
    names = sorted(
        {*dir(torch.nn.Module()), *dir(Module), *dir(builtins), *keyword.kwlist, *READ, "self"}
    )
    weights = [numpy_helper.from_array(np.full(2, i, "f"), n) for i, n in enumerate(names)]
    nodes = [helper.make_node("Sum", ["x 0", *names], ["y 0"])]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("x 0", "y 0")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    module = invar.convert(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    )
    assert not set(module.state_dict()) & {*dir(Module), *keyword.kwlist, *READ}
    assert module(torch.zeros(2)).tolist() == [sum(range(len(names)))] * 2


def test_an_emitted_module_shows_its_lines():
    import inspect

    module = invar.convert(model("x", "n", "w"))
    assert "self.sizes(x)" in inspect.getsource(type(module).forward)


def test_names_of_a_model_become_names_of_python():
    names = ["a.b", "a_b", "class", "1st", "forward", "Ωmega", "torch"]
    constants = [numpy_helper.from_array(np.full((2,), i, "f"), n) for i, n in enumerate(names)]
    nodes, last = [], "self"
    for i, n in enumerate(names):
        nodes.append(helper.make_node("Add", [last, n], [f"ops.{i}"]))
        last = f"ops.{i}"
    value = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [2])
    graph = helper.make_graph(nodes, 'a "quoted" name', [value("self")], [value(last)], constants)
    module = invar.convert(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    )
    assert module(torch.zeros(2)).tolist() == [21.0, 21.0]
