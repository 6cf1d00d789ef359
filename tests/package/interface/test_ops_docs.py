"""Every function of invar.ops is described: a row of the reference, a docstring with its clauses,
annotations, and torch's arguments in torch's order."""

import doctest
import inspect
import re

import numpy as np
import pytest
from conftest import BUILD, ROOT

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402
import torch  # noqa: E402
from invar import bitexact, nn, ops, optim  # noqa: E402

PAGE = (ROOT / "docs/reference/python-ops.md").read_text()
CLAUSES = {
    name
    for folder in ("spec", "src/ops")
    for page in (ROOT / folder).rglob("*.md")
    for name in re.findall(r"^\*\*([a-z0-9_]+\.\d+)", page.read_text(), re.M)
}
OF_OTHERS = {"dropout", "rand", "randn"}  # invar.Generator's
OURS = {"grouped_matmul", "matmul_integer", "matmul_nbits", "rope", "to"}
# Names of invar itself.
OWN = """
Generator InferenceSession compile convert from_torch_module generate manual_seed reproducible
synchronize validate verify CompileOptions Program
""".split()
MADE = {"arange", "eye", "full", "linspace", "ones", "zeros"}  # torch has no signature of them
# Names of arguments in torch's own tests that are not those of its documentation.
OTHERWISE = {
    "bmm": {"out_dtype"},
    "broadcast_to": {"self"},
    **dict.fromkeys(
        ("full_like", "ones_like", "zeros_like"), {"layout", "device", "requires_grad"}
    ),
    "permute": {"self", "dim"},
    "swapaxes": {"dim0", "dim1"},
    "dot": {"other"},
    "isfinite": {"tensor"},
    "isinf": {"tensor"},
    "logsumexp": {"names"},
    "mm": {"out_dtype"},
    "topk": {"descending"},
    "vector_norm": {"input"},
    "where": {"x", "y"},
}
KEYWORDS = {"baddbmm"}  # whose order of keywords is another there


def test_the_page_has_every_function():
    found = set(
        re.findall(
            r"`([a-z0-9_]+)`",
            "\n".join(line for line in PAGE.splitlines() if line.startswith("| `")),
        )
    )
    assert set(ops.__all__) <= found
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`([a-z0-9_]+)`", " ".join(rows))) <= set(ops.__all__)


def test_the_page_names_clauses_that_exist():
    named = set(re.findall(r"\b([a-z_]+\.\d+)\b", PAGE))
    assert named and named <= CLAUSES, named - CLAUSES


@pytest.mark.parametrize("name", sorted(set(ops.__all__) - OF_OTHERS))
def test_a_function_is_described(name):
    function = getattr(ops, name)
    text = " ".join(function.__doc__.split())
    clauses = set(re.findall(r"\b([a-z_]+\.\d+)\b", text.split("Spec: ", 1)[1]))
    assert clauses <= CLAUSES, clauses - CLAUSES
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    assert callable(function) and function.__module__.startswith("invar.ops")


def signature_of_torch(name):
    """By torch.nn.functional's Python, or by what torch tests itself with."""
    known = torch.overrides.get_testing_overrides()
    for module in (torch.nn.functional, torch, torch.linalg, torch.special):
        function = getattr(module, name, None)
        for what in (function, known.get(function)):
            try:
                return inspect.signature(what)
            except (TypeError, ValueError):
                continue
    raise AssertionError(name)


@pytest.mark.parametrize("name", sorted(set(ops.__all__) - OF_OTHERS - OURS - MADE - {"einsum"}))
def test_arguments_are_those_of_torch(name):
    theirs, ours = signature_of_torch(name), inspect.signature(getattr(ops, name))
    if "kwargs" in theirs.parameters:
        theirs = inspect.signature(getattr(torch.nn.functional, f"_{name}"))
    left_out = OTHERWISE.get(name, set()) | {"out"}
    wanted = {n: p for n, p in theirs.parameters.items() if n not in left_out}
    found = [n for n in ours.parameters if n in wanted]
    assert found == list(wanted) or name in KEYWORDS and set(found) == set(wanted)
    for n, p in wanted.items() if hasattr(torch.nn.functional, name) else ():
        if p.default is not inspect.Parameter.empty:
            assert ours.parameters[n].default == p.default, n


def test_bitexact_is_described():
    for name in bitexact.__all__:
        assert "(spec: " in getattr(bitexact, name).__doc__.replace("\n    ", " ")


def test_the_parts_of_the_package_need_no_import():
    for name in ("bitexact", "nn", "optim", "training", "reproducibility"):
        assert name in invar.__all__
        assert getattr(invar, name).__name__ == f"invar.{name}"


OF_TORCH = {
    "Optimizer",
    "lr_scheduler",
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
} | {
    name for name in nn.__all__ if getattr(getattr(nn, name), "__module__", "").startswith("torch.")
}
DESCRIBED = {
    **{f"ops.{name}": getattr(ops, name) for name in ops.__all__},
    **{f"bitexact.{name}": getattr(bitexact, name) for name in bitexact.__all__},
    **{f"nn.{name}": getattr(nn, name) for name in set(nn.__all__) - OF_TORCH - {"functional", "init"}},
    **{f"optim.{name}": getattr(optim, name) for name in set(optim.__all__) - OF_TORCH},
    **{f"invar.{name}": getattr(invar, name) for name in OWN},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_a_docstring_says_what_is_raised_and_has_an_example_that_runs(name):
    what = DESCRIBED[name]
    text = inspect.getdoc(what)
    assert re.search(r"\b(Raises|Errors)\b", text), text
    names = {"np": np, "torch": torch, "invar": invar, "ops": ops, "nn": nn, "optim": optim}
    found = doctest.DocTestFinder(recurse=False).find(
        what, name, globs={**names, "bitexact": bitexact}
    )
    assert sum(len(test.examples) for test in found) > 0
    torch.manual_seed(0)
    said = []
    for test in found:
        doctest.DocTestRunner().run(test, out=said.append)
    assert not said, "".join(said)
