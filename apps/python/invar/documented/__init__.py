"""Docstrings of the package: what a function raises, and an example, where its own text has none.

The examples are data (operations.py, modules.py, and those below); a test runs them all."""

import re
from collections.abc import Mapping
from typing import Any

RAISES = (
    "Raises invar.errors.OperandError, ArgumentTypeError or DimensionError (torch's RuntimeError, "
    "TypeError or IndexError) for what does not fit, invar.NotCovered for what has no reproducible "
    "kernel."
)
RAISES_OF_MODULES = (
    "Raises invar.NotCovered for what is not covered: at construction, or where the forward pass "
    "meets it."
)
RAISES_OF_OPTIMISERS = (
    "Raises invar.NotCovered for parameters that are not float32, and ValueError for settings out of "
    "range, as torch does."
)
# A step of each class of invar.optim; w is 1, its gradient 2.
PREPARED = "w = torch.nn.Parameter(torch.ones(1)); w.grad = torch.tensor([2.0])"
STEP = "optim.{name}([w], lr=0.5).step(); w.tolist()"
STEPPED = {
    "SGD": "[0.0]",
    "Adadelta": "[0.9984188675880432]",
    "Adagrad": "[0.5]",
    "Adam": "[0.5000000596046448]",
    "AdamW": "[0.49500006437301636]",
    "Adamax": "[0.5]",
    "Lion": "[0.5]",
    "NAdam": "[0.4717741012573242]",
    "RAdam": "[0.0]",
    "RMSprop": "[-3.999999523162842]",
}


# Of invar itself: what a name raises, the steps of its example, and the result; "": it needs a
# model, and nothing runs it.
REFUSES = "Raises invar.BadInput for what is not what it should be, invar.NotCovered for what is not covered."  # fmt: skip
OWN: dict[str, tuple[str, list[str], str]] = {
    "Generator": (
        "Raises invar.errors.OperandError or ArgumentTypeError for what is no seed or state.",
        ["g = invar.Generator(7)", "invar.ops.rand(8, generator=g).shape[0], g.get_state()"],
        "(8, (7, 8))",
    ),
    "manual_seed": (
        "Raises invar.errors.ArgumentTypeError for what is no integer.",
        ["invar.manual_seed(7)"],
        "invar.Generator(seed=7, offset=0)",
    ),
    "synchronize": (
        "Raises invar.BadInput for an index that was out of bounds on a GPU.",
        ["invar.synchronize()"],
        "",
    ),
    "CompileOptions": (
        REFUSES,
        ["invar.CompileOptions(artifacts_dir='artifacts').choices"],
        "'all'",
    ),
    "compile": (REFUSES, ["program = invar.compile('model.onnx')  # doctest: +SKIP"], ""),
    "Program": (REFUSES, ["outputs = program.run(x=array)  # doctest: +SKIP"], ""),
    "convert": (REFUSES, ["module = invar.convert('model.onnx')  # doctest: +SKIP"], ""),
    "generate": (REFUSES, ["invar.generate('org/name', 'Once').text  # doctest: +SKIP"], ""),
    "validate": (REFUSES, ["bool(invar.validate('receipt.json'))  # doctest: +SKIP"], ""),
    "verify": (REFUSES, ["invar.verify('receipt.json').report  # doctest: +SKIP"], ""),
}


def of_invar(names: Mapping[str, Any]) -> None:
    """Completes the docstrings of invar."""
    for name, (raises, steps, result) in OWN.items():
        complete(names[name], raises, steps, result)


def of_operations(functions: Mapping[str, Any], space: str = "ops") -> None:
    """Completes the docstrings of invar.ops, or of invar.bitexact."""
    from invar.documented.operations import EXAMPLES, OF_BITEXACT, OPERANDS

    for call, result in pairs_of(EXAMPLES if space == "ops" else OF_BITEXACT):
        function = functions[called(call, space)]
        names = set(re.findall(r"\w+", call)) & set(OPERANDS)
        complete(function, RAISES, [*(f"{n} = {OPERANDS[n]}" for n in sorted(names)), call], result)


def of_modules(classes: Mapping[str, Any]) -> None:
    """Completes the docstrings of invar.nn."""
    from invar.documented.modules import EXAMPLES

    for call, result in pairs_of(EXAMPLES):
        complete(classes[called(call, "nn")], RAISES_OF_MODULES, [call], result)


def of_optimisers(classes: Mapping[str, Any]) -> None:
    """Completes the docstrings of invar.optim."""
    for name, result in STEPPED.items():
        steps = [PREPARED, STEP.format(name=name)]
        complete(classes[name], RAISES_OF_OPTIMISERS, steps, result)


def called(call: str, space: str) -> str:
    """The name of the first function of a module that an example calls."""
    return re.findall(rf"\b{space}\.(\w+)", call)[0]


def pairs_of(text: str) -> list[tuple[str, str]]:
    lines = text.strip().splitlines()
    return [(call, result.strip()) for call, result in zip(lines[::2], lines[1::2])]


def complete(documented: Any, raises: str, steps: list[str], result: str) -> None:
    """Adds to a docstring what it lacks."""
    text = documented.__doc__ or ""
    if "Raises " not in text and "Errors: " not in text:
        text += f"\n\n    {raises}"
    if "Example:" not in text:
        lines = "".join(f"\n        >>> {step}" for step in steps)
        text += f"\n\n    Example:{lines}" + (f"\n        {result}" if result else "") + "\n    "
    documented.__doc__ = text
