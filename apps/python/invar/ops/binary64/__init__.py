"""Functions of f64 elements. Few operations exist in binary64; others are compositions of these
(spec: functions.42, functions.43). `operations.NAME` and `call` are those of invar.primitives for
operands of any type, and have a composition where they are f64: of one element with the derivatives
of slopes.py, of several with the gradients of its steps."""

import functools
from typing import Any

from invar import arrays
from invar import primitives as p
from invar.ops import _types as t
from invar.ops.binary64 import reductions, windows
from invar.ops.binary64.values import VALUES, value

OWN = {"exp": "exp_f64", "log": "log_f64"}  # operations of another name
STEPS: dict[str, Any] = {
    name: getattr(module, name)
    for module, names in (
        (reductions, "softmax log_softmax reduce_log_sum_exp reduce_var reduce_std prelu"),
        (reductions, "batchnorm groupnorm"),
        (windows, "conv conv_transpose average_pool max_pool max_pool_indices lp_pool"),
    )
    for name in names.split()
}
NAMES = frozenset({*OWN, *VALUES, *STEPS, "pow"})


def call(op: str, *operands: Any, **attributes: Any) -> Any:
    """primitives.call, of f64 by composition where there is no such operation."""
    if op not in NAMES or t.NAMES[operands[0].dtype] != "f64":
        return p.call(op, *operands, **attributes)
    if op in OWN:
        return p.call(OWN[op], *operands)
    if op in STEPS:
        return STEPS[op](*operands, **attributes)
    if arrays.is_tensor(operands[0]):
        from invar.ops.binary64.slopes import Composed

        return Composed.apply(op, tuple(sorted(attributes.items())), *operands)
    return value(op, operands, attributes)


class Operations:
    """invar.primitives, of f64, too."""

    call = staticmethod(call)

    def __getattr__(self, op: str) -> Any:
        made = functools.partial(call, op) if op in NAMES else getattr(p, op)
        self.__dict__[op] = made
        return made


operations = Operations()
