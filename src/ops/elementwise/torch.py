import math

import torch
from invar import _native
from invar.modules.source import in_text

BOTH_SIGNS = {
    (1, 1): "torch.isinf({0})",
    (1, 0): "torch.isneginf({0})",
    (0, 1): "torch.isposinf({0})",
    (0, 0): "torch.zeros_like({0}, dtype=torch.bool)",
}
SIXTH = 0.1666666716337204  # 1 / 6 in f32


def cbrt(x):
    return torch.copysign(torch.abs(x).pow(1 / 3), x)


def sinpi(x):
    return torch.sin(torch.remainder(x, 2) * math.pi)


def cospi(x):
    return torch.cos(torch.remainder(x, 2) * math.pi)


def clip(c):
    low, high = c.get("min", -math.inf), c.get("max", math.inf)
    bounds = [
        f"{name}={c.text(name)}" for name, v in (("min", low), ("max", high)) if math.isfinite(v)
    ]
    return f"torch.clamp({', '.join([c[0], *bounds])})" if bounds else c[0]


def selu(c):
    if (c.alpha, c.gamma) == (1.6732631921768188, 1.0507010221481323):
        return f"functional.selu({c[0]})"
    return f"{c.text('gamma')} * functional.elu({c[0]}, {c.text('alpha')})"


def shrink(c):
    if c.lambd >= 0 and c.bias in (0, c.lambd):
        return f"functional.{'soft' if c.bias else 'hard'}shrink({c[0]}, {c.text('lambd')})"
    x, limit, bias = c[0], c.text("lambd"), c.text("bias")
    return (
        f"torch.where({x} < -({limit}), {x} + {bias}, torch.where({x} > {limit}, {x} - {bias}, "
        f"torch.where({x}.isnan(), {x}, 0.0)))"
    )


def hardsigmoid(c):
    if (c.alpha, c.beta) == (SIXTH, 0.5):
        return f"functional.hardsigmoid({c[0]})"
    return f"torch.clamp({c.text('alpha')} * {c[0]} + {c.text('beta')}, 0.0, 1.0)"


def div(c):
    floating = c.type[0] in ("f32", "f64")
    return f"{c[0]} / {c[1]}" if floating else f'torch.div({c[0]}, {c[1]}, rounding_mode="trunc")'


INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "equal": "==",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "shift_left": "<<",
    "shift_right": ">>",
}

# The others are functions of torch with the operation's name.
OTHERWISE = {
    **{op: f"{{0}} {sign} {{1}}" for op, sign in INFIX.items()},
    "bitwise_not": "~{0}",
    "cbrt": "rooms.elementwise.cbrt({0})",
    "celu": "functional.celu({0}, {alpha})",
    "clip": clip,
    "cospi": "rooms.elementwise.cospi({0})",
    "div": div,
    "elu": "functional.elu({0}, {alpha})",
    "exp10": "torch.pow(10.0, {0})",
    "exp_f64": "torch.exp({0})",
    "gelu_backward": "torch.ops.aten.gelu_backward(*torch.broadcast_tensors({0}, {1}))",
    "gelu_tanh": 'functional.gelu({0}, approximate="tanh")',
    "gelu_tanh_backward": 'torch.ops.aten.gelu_backward({0}, {1}, approximate="tanh")',
    "hardsigmoid": hardsigmoid,
    "isinf": lambda c: BOTH_SIGNS[c.get("negative", 1), c.get("positive", 1)].format(c[0]),
    "log_f64": "torch.log({0})",
    "leakyrelu": "functional.leaky_relu({0}, {alpha})",
    "max": "torch.maximum({0}, {1})",
    "min": "torch.minimum({0}, {1})",
    "mod": "torch.remainder({0}, {1})",
    "neg": "-{0}",
    "prelu": "torch.where({0} < 0, {1} * {0}, {0})",
    "relu_backward": "torch.ops.aten.threshold_backward({0}, {1}, 0.0)",
    "selu": selu,
    "shrink": shrink,
    "sigmoid_backward": "torch.ops.aten.sigmoid_backward({0}, {1})",
    "silu_backward": "torch.ops.aten.silu_backward({0}, {1})",
    "sinpi": "rooms.elementwise.sinpi({0})",
    "swish": "{0} * torch.sigmoid({alpha} * {0})",
    "tanh_backward": "torch.ops.aten.tanh_backward({0}, {1})",
    "thresholdedrelu": "functional.threshold({0}, {alpha}, 0.0)",
}


def by_name(op):
    """torch's function of this name, with the same operands; None: torch has none."""
    for name, module in (("torch", torch), ("functional", torch.nn.functional)):
        if hasattr(module, op):
            return lambda c: f"{name}.{op}({', '.join(c[i] for i in range(len(c)))})"


def shifted_down(x, places):
    """Of u64, of which torch has no shift: that of i64, without the copies of the top bit."""
    x, places = x.view(torch.int64), places.view(torch.int64)
    inside = (places >= 0) & (places < 64)
    places = torch.where(inside, places, 0)
    copied = torch.where(places > 0, -1 << (64 - places).clamp(max=63), 0)
    return torch.where(inside, x >> places & ~copied, 0).view(torch.uint64)


# Of u64 the same bits as of i64.
SAME_BITS = {
    "add",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "equal",
    "mul",
    "neg",
    "shift_left",
    "sub",
}


def of_any(op, spelled):
    def text(c):
        if op == "where" or all(t != "u64" for t, _ in c.operand_types):
            return in_text(spelled, c)
        if op == "shift_right":
            return f"rooms.elementwise.shifted_down({c[0]}, {c[1]})"
        if op not in SAME_BITS:
            raise c.refused("of u64")
        return c.as_signed(spelled)

    return text


SPELLED = {
    op: of_any(op, spelled)
    for op in _native.operations("elementwise")
    if (spelled := OTHERWISE.get(op) or by_name(op))
}
