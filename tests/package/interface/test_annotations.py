"""Type checkers know the package: what is public has types (py.typed), and inputs of a program may
be given in order."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import BUILD
from onnx import TensorProto, helper

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402

MODULES = [
    invar,
    invar.bitexact,
    invar.errors,
    invar.nn,
    invar.nn.init,
    invar.ops,
    invar.optim,
    invar.optim.lr_scheduler,
    invar.training,
]


def functions_of(owner):
    """(name, function) of what a module's __all__ names: functions, and the methods of classes."""
    for name in owner.__all__:
        found = getattr(owner, name)
        if inspect.isclass(found):
            for method, f in vars(found).items():
                f = getattr(f, "__func__", getattr(f, "fget", f))
                public = not method.startswith("_") or method == "__init__"
                if public and inspect.isfunction(f) and f.__module__.startswith("invar"):
                    yield f"{name}.{method}", f
        elif inspect.isfunction(found):
            yield name, found


def untyped(f):
    signature = inspect.signature(f)
    missing = [
        p.name
        for i, p in enumerate(signature.parameters.values())
        if p.annotation is p.empty and not (i == 0 and p.name in ("self", "cls", "args"))
    ]
    return missing + (["return"] if signature.return_annotation is signature.empty else [])


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_public_functions_have_types(module):
    found = list(functions_of(module))
    assert found
    assert {name: untyped(f) for name, f in found if untyped(f)} == {}


def test_public_functions_have_documentation():
    assert [
        f"{module.__name__}.{name}"
        for module in MODULES
        for name in module.__all__
        if callable(getattr(module, name)) and not inspect.getdoc(getattr(module, name))
    ] == []


def test_the_package_says_that_it_has_types():
    assert (BUILD / "python/invar/py.typed").is_file()
    stubs = (BUILD / "python/invar/_native.pyi").read_text()
    for name in ("BadInput", "NotCovered", "Failed", "Internal", "set_isa", "set_threads"):
        assert name in stubs and hasattr(invar._native, name)


def mypy(file, cache):
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    environment = {**os.environ, "MYPYPATH": str(BUILD / "python")}
    done = subprocess.run(
        [*command, "--cache-dir", cache, file], env=environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def test_a_program_is_clean_under_mypy(tmp_path):
    here = Path(__file__).parent / "typed_program.py"
    assert mypy(here, tmp_path / "cache")[0] == 0, mypy(here, tmp_path / "cache")[1]
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import invar\nfrom invar import optim\n"
        "a: int = invar.generate('m', 'x').text\n"
        "optim.SGD([], lr='fast')\n"
        "invar.compile('m', threads='two')\n"
    )
    code, text = mypy(wrong, tmp_path / "cache")
    assert code == 1 and [f"wrong.py:{n}:" in text for n in (3, 4, 5)] == [True] * 3, text


@pytest.fixture(scope="module")
def difference():
    """a - b"""
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"])
    graph = helper.make_graph(
        [helper.make_node("Sub", ["a", "b"], ["y"])], "g", [value("a"), value("b")], [value("y")]
    )
    opset = helper.make_opsetid("", 21)
    return invar.compile(helper.make_model(graph, opset_imports=[opset], ir_version=10))


def test_inputs_in_order_by_name_and_in_a_dict(difference):
    a, b = np.float32([3, 4]), np.float32([1, 1])
    for found in (
        difference.run(a, b),
        difference.run(a, b=b),
        difference.run(a=a, b=b),
        difference.run({"a": a, "b": b}),
        difference.run({"a": a}, b=b),
        difference.run(None, a=a, b=b),
    ):
        assert found["y"].tolist() == [2, 3]
    found = difference.run(torch.tensor([3.0, 4.0]), torch.tensor([1.0, 1.0]))
    assert isinstance(found["y"], torch.Tensor) and found["y"].tolist() == [2, 3]


@pytest.mark.parametrize(
    "inputs, named, text",
    [
        ("xyx", "", "3 inputs; the model takes 2: a, b"),
        ("x", "a", "input 'a': given in order and by name"),
        ("xd", "", "input 'b': dict is no array; a dict of all inputs stands alone"),
        ("xn", "", "input 'b': NoneType is no array; a dict of all inputs stands alone"),
        ("x", "", "input 'b'"),
    ],
)
def test_inputs_in_order_are_refused_by_name(difference, inputs, named, text):
    x = np.float32([1, 2])
    of = {"x": x, "y": x, "d": {"b": x}, "n": None}
    with pytest.raises(invar.BadInput, match=text):
        difference.run(*(of[i] for i in inputs), **{name: x for name in named})
