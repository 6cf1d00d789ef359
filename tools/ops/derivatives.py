"""`gradient` of an entry of ops.toml as Python: the derivative of an operation of one operand.

It is an expression of x, the operand, or of y, the result, in operations and numbers. + - * / are
add, sub, mul and div, and a sign is neg. A part without x and y is a number: log, sqrt and pi are
those of mathematics there. `0`: the result depends on x by steps. `none`: the result is no number
that depends on an operand."""

import ast
import math

BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
NUMBERS = {
    "add": float.__add__,
    "sub": float.__sub__,
    "mul": float.__mul__,
    "div": float.__truediv__,
}
FUNCTIONS = {"log": math.log, "sqrt": math.sqrt}


def number(node):
    """The value of a part without x and y; None of another."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id="pi"):
            return math.pi
        case ast.UnaryOp(op=ast.USub(), operand=part) if (value := number(part)) is not None:
            return -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            parts = number(left), number(right)
            return None if None in parts else NUMBERS[BINARY[type(op)]](*parts)
        case ast.Call(func=ast.Name(id=name), args=[part]) if name in FUNCTIONS:
            value = number(part)
            return None if value is None else FUNCTIONS[name](value)
    return None


def calls(node, operations):
    """The part as calls of primitives."""
    if (value := number(node)) is not None:
        return f"v.constant({value!r})"
    match node:
        case ast.Name(id="x" | "y" as name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=part):
            return f"p.neg({calls(part, operations)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            return f"p.{BINARY[type(op)]}({calls(left, operations)}, {calls(right, operations)})"
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in operations:
            return f"p.{name}({', '.join(calls(part, operations) for part in parts)})"
    raise ValueError(f'not understood: "{ast.unparse(node)}"')


def module(operations):
    """invar/derivatives.py, which the package's rules read."""
    names = {op.name for op in operations}
    rules, steps, none = "", [], []
    for op in operations:
        text = op.keys.get("gradient")
        if text == "none":
            none.append(op.name)
        elif text == "0":
            steps.append(op.name)
        elif text is not None:
            try:
                tree = ast.parse(text, mode="eval").body
                read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} & {"x", "y"}
                if len(read) != 1 or len(op.operands) != 1:
                    raise ValueError(f'not of one operand x or its result y: "{text}"')
                written = calls(tree, names)
            except (SyntaxError, ValueError) as wrong:
                raise ValueError(
                    f"src/ops/{op.room}/ops.toml: [{op.name}]: gradient: {wrong}"
                ) from None
            saves, name = ("result", "y") if read == {"y"} else ("operands", "x")
            rules += f'    "{op.name}": ("{saves}", lambda v, {name}: {written}),\n'
    return (
        '"""The derivatives that the rooms\' ops.toml have (tools/ops/derivatives.py): what the rule of\n'
        'an operation saves, and the derivative of a call v."""\n\n'
        "from invar import primitives as p\n\n"
        f"DERIVATIVES = {{\n{rules}}}\nSTEPS = {steps!r}\nNONE = {none!r}\n"
    )
