"""The table of handlers, and the dtypes in which they compute."""

import torch

from invar.autograd.refusal import refused
from invar.autograd.rules import constant
from invar.modules.emitted import TYPES
from invar.ops import binary64

NAMES = {dtype: name for name, dtype in TYPES.items()}
HANDLERS = {}
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))


def handler(*names):
    """Registers the function for these operations of aten."""

    def register(function):
        for name in names:
            assert name not in HANDLERS, name
            HANDLERS[name] = function
        return function

    return register


def p(op, *operands, **attributes):
    """A primitive, outside of the graph of gradients; of f64 its composition where there is no
    other."""
    return binary64.call(op, *operands, **attributes)


def cast(x, dtype):
    """x in another dtype, rounded once (spec: cast)."""
    if x.dtype == dtype:
        return x
    if dtype not in NAMES or x.dtype not in NAMES:
        raise refused(f"conversion from {x.dtype} to {dtype}", "it has no reproducible kernel")
    if torch.bool not in (dtype, x.dtype) and not (
        dtype.is_floating_point or x.is_floating_point()
    ):
        return x.to(dtype)
    return p("cast", x, dtype=NAMES[dtype])


def type_of(*operands):
    """The dtype that torch gives the result, and the dtype in which it is computed."""
    found = None
    for x in operands:
        if x is not None:
            found = x if found is None else torch.empty(0, dtype=torch.result_type(found, x))
    dtype = found.dtype if isinstance(found, torch.Tensor) else torch.get_default_dtype()
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    return dtype, torch.float64 if dtype == torch.float64 else torch.float32


def device_of(operands):
    """The device of the tensors; torch lets a number that is a tensor lie on the host."""
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    return next((x.device for x in tensors if x.ndim), tensors[0].device)


def all_f32(operands):
    """The operands as `computed` has them where the first is a tensor of f32 and the others are so,
    numbers or None: the common case. None: they are not."""
    first, made = operands[0], []
    for x in operands:
        if type(x) in _PLAIN:
            if x.dtype is not torch.float32 or x.device != first.device:
                return None
            made.append(x)
        elif made and (x is None or type(x) in (int, float)):
            made.append(x if x is None else constant(first, x))
        else:
            return None
    return made


def computed(function, *operands):
    """function(operands), all of one dtype as `type_of` says; the result rounded to torch's."""
    if (given := all_f32(operands)) is not None:
        return cast(function(*given), torch.float32)
    dtype, wide = type_of(*operands)
    device = device_of(operands)

    def widened(x):
        if isinstance(x, torch.Tensor):
            return cast(x if x.device == device or x.ndim else x.to(device), wide)
        return x if x is None else torch.full((), x, dtype=wide, device=device)

    return cast(function(*map(widened, operands)), dtype)


def number(value, like):
    return torch.full((), value, dtype=like.dtype, device=like.device)


def scaled(x, alpha):
    return x if alpha == 1 else p("mul", x, number(alpha, x))
