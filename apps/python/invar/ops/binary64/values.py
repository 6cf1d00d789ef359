"""The functions of one element of binary64, by the names of their operations: without gradients,
which slopes.py has."""

from typing import Any

from invar.ops.binary64 import activations, functions

VALUES: dict[str, Any] = {
    name: getattr(module, name)
    for module, names in (
        (functions, "expm1 log1p exp2 log2 log10 rsqrt sigmoid tanh sinh cosh asinh acosh atanh"),
        (functions, "softplus logsigmoid erf erfc"),
        (
            activations,
            "clip leakyrelu elu celu selu hardsigmoid hardswish silu mish softsign shrink",
        ),
        (activations, "thresholdedrelu gelu gelu_tanh"),
    )
    for name in names.split()
}


def value(op: str, operands: Any, attributes: dict[str, Any]) -> Any:
    """The result of a function of one element, or of pow."""
    if op == "pow":
        return functions.power(*operands)
    return VALUES[op](*operands, **attributes)
