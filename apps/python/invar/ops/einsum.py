"""Contractions that an equation or a list of dimensions names."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from invar import primitives as p
from invar.errors import ArgumentTypeError, NotCovered, OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.elementwise import binary
from invar.ops.linalg import _ranks, product


@public
def einsum(equation: str, *operands: Any) -> Any:
    """The sum of products that an equation of Einstein's notation names, as torch.einsum: letters,
    "..." and an optional "->".

    Operands are contracted from left to right: the first with the second, their product with the
    third, and so on. Before that, a letter that no other operand and no result has is summed over
    the operand that has it (reduce.3). The letters that both have and nothing later has are one
    contraction, in the order in which they stand in the left operand (matmul.2). Operands without
    letters to contract are multiplied (elementwise.5). Elements are f32, bf16, f16 or f64, all of
    one type. Raises RuntimeError for equations and shapes that do not fit. Spec: matmul.2,
    reduce.3, elementwise.5."""
    if not isinstance(equation, str):
        raise ArgumentTypeError(
            f"einsum: argument 'equation': expected str, got {type(equation).__name__}"
        )
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    e = _element_type(operands)
    terms, result = _parsed(equation, operands)
    made = [_diagonals(x, letters) for x, letters in zip(operands, terms)]
    sizes = _sizes(made)
    x, letters = made[0]
    x, letters = _summed(x, letters, {*result, *(c for _, more in made[1:] for c in more)})
    for i, (y, others) in enumerate(made[1:], start=2):
        later = {*result, *(c for _, more in made[i:] for c in more)}
        x, letters = _contracted(x, letters, y, others, later, sizes, e)
    x = _aligned(x, letters, result)
    return arr.expand(x, [sizes[c] for c in result])


@public
def tensordot(a: Any, b: Any, dims: int | tuple[Sequence[int], Sequence[int]] = 2) -> Any:
    """The contraction of the last `dims` dimensions of a with the first of b, or of the pairs that
    two lists name, in their order. Types as einsum's. Raises RuntimeError for shapes that do not
    meet. Spec: matmul.2."""
    e = _element_type((a, b))
    if isinstance(dims, int):
        left, right = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        left = [arr.dim_of("tensordot", d, a.ndim, "dims") for d in dims[0]]
        right = [arr.dim_of("tensordot", d, b.ndim, "dims") for d in dims[1]]
    sizes = [a.shape[d] for d in left], [b.shape[d] for d in right]
    if sizes[0] != sizes[1] and all(m == n or 1 in (m, n) for m, n in zip(*sizes)):
        raise NotCovered(f"tensordot: argument 'dims': sizes {sizes} that broadcast")
    if sizes[0] != sizes[1]:
        raise OperandError(
            f"tensordot: argument 'dims': shapes {tuple(a.shape)} and {tuple(b.shape)} do not meet "
            f"at {left} and {right}"
        )
    rows = [d for d in range(a.ndim) if d not in left]
    columns = [d for d in range(b.ndim) if d not in right]
    shape = [a.shape[d] for d in rows], [b.shape[d] for d in columns]
    k = math.prod(a.shape[d] for d in left)
    x = arr.permute(a, rows + left).reshape(math.prod(shape[0]), k)
    y = arr.permute(b, right + columns).reshape(k, math.prod(shape[1]))
    return product(x, y, e).reshape((*shape[0], *shape[1]))


def _element_type(operands: Sequence[Any]) -> str:
    if not operands:
        raise OperandError("einsum: argument 'operands': expected at least one, got none")
    found = {t.real("einsum", x, "operands") for x in operands}
    if len(found) > 1:
        names = " and ".join(sorted(t.spelled(e) for e in found))
        raise OperandError(f"einsum: argument 'operands': expected one element type, got {names}")
    t.same_kind("einsum", **{f"operands[{i}]": x for i, x in enumerate(operands)})
    return found.pop()


def _parsed(equation: str, operands: Sequence[Any]) -> tuple[list[str], str]:
    """The letters of each operand and of the result. Dimensions of "..." get letters beyond
    Unicode's: 0xE000 and on, counted from the last."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise OperandError(
            f"einsum: argument 'equation': it names {len(terms)} operands, got {len(operands)}"
        )
    most, spelled = 0, []
    for term, x in zip(terms, operands):
        before, dots, after = term.partition("...")
        named = before + after
        free = x.ndim - len(named)
        if not all(c.isascii() and c.isalpha() for c in named) or free < 0 or free and not dots:
            raise OperandError(
                f"einsum: argument 'equation': {term!r} does not fit an operand of shape "
                f"{tuple(x.shape)}"
            )
        most = max(most, free)
        spelled.append(before + "".join(chr(0xE000 + i) for i in reversed(range(free))) + after)
    every = "".join(chr(0xE000 + i) for i in reversed(range(most)))
    if arrow:
        result = right.replace("...", every)
    else:
        once = [c for c in sorted(set(left) - {",", "."}) if left.count(c) == 1]
        result = every + "".join(once)
    known = set("".join(spelled))
    if any(c not in known for c in result) or len(set(result)) < len(result):
        raise OperandError(
            f"einsum: argument 'equation': expected a result of different letters of the operands, "
            f"got {right!r}"
        )
    return spelled, result


def _diagonals(x: Any, letters: str) -> tuple[Any, str]:
    """A letter that an operand has twice names its diagonal: a view."""
    for c in letters:
        while letters.count(c) > 1:
            first = letters.index(c)
            second = letters.index(c, first + 1)
            if x.shape[first] != x.shape[second]:
                raise OperandError(
                    f"einsum: the dimensions {x.shape[first]} and {x.shape[second]} of letter {c!r} "
                    "differ"
                )
            x = (
                np.diagonal(x, 0, first, second)
                if isinstance(x, np.ndarray)
                else x.diagonal(0, first, second)
            )
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + c
    return x, letters


def _sizes(made: Sequence[tuple[Any, str]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for x, letters in made:
        for c, n in zip(letters, x.shape):
            if sizes.setdefault(c, n) == 1:
                sizes[c] = n
            elif n not in (1, sizes[c]):
                raise OperandError(
                    f"einsum: letter {c if c.isascii() else '...'!r} has dimensions {sizes[c]} and {n}"
                )
    return sizes


def _summed(x: Any, letters: str, used: set[str]) -> tuple[Any, str]:
    axes = [i for i, c in enumerate(letters) if c not in used]
    if axes:
        e = t.NAMES[x.dtype]
        wide = t.COMPUTED.get(e, e)
        x = t.cast(p.reduce_sum(t.cast(x, wide), axes=axes, keepdims=0), e)
    return x, "".join(c for c in letters if c in used)


def _aligned(x: Any, letters: str, wanted: str) -> Any:
    """Dimensions in another order; those that x does not have are 1."""
    x = arr.permute(x, [letters.index(c) for c in wanted if c in letters])
    sizes = iter(x.shape)
    return x.reshape(tuple(next(sizes) if c in letters else 1 for c in wanted))


def _contracted(
    x: Any, a: str, y: Any, b: str, later: set[str], sizes: dict[str, int], e: str
) -> tuple[Any, str]:
    """The product of two operands, summed over the letters that nothing later has."""
    x, a = _summed(x, a, later | set(b))
    y, b = _summed(y, b, later | set(a))
    inner = "".join(c for c in a if c in b and c not in later)
    batch = "".join(c for c in a if c in b and c in later)
    rows = "".join(c for c in a if c not in b)
    columns = "".join(c for c in b if c not in a)
    if not inner:
        letters = batch + rows + columns
        z = binary("einsum", "mul", _aligned(x, a, letters), _aligned(y, b, letters))
        return z, letters
    full = lambda z, letters, ones: arr.expand(
        z, [sizes[c] if c in ones else n for c, n in zip(letters, z.shape)]
    )
    x = full(_aligned(x, a, batch + rows + inner), batch + rows + inner, inner)
    y = full(_aligned(y, b, batch + inner + columns), batch + inner + columns, inner)
    count = lambda letters: math.prod(sizes[c] for c in letters)
    nb, k = len(batch), count(inner)
    z = product(
        x.reshape((*x.shape[:nb], math.prod(x.shape[nb : nb + len(rows)]), k)),
        y.reshape((*y.shape[:nb], k, math.prod(y.shape[nb + len(inner) :]))),
        e,
    )
    return (
        z.reshape((*z.shape[:nb], *x.shape[nb : nb + len(rows)], *y.shape[nb + len(inner) :])),
        batch + rows + columns,
    )


@public
def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Array:
    """input1 · weight[n] · input2 for each n: [..., J], [..., K], weight [N, J, K], bias [N] ->
    [..., N]. The contraction over J comes first. Spec: matmul.2, elementwise.5."""
    _ranks("bilinear", weight=(weight, 3))
    y = einsum("...j,njk,...k->...n", input1, weight, input2)
    return cast(Array, y if bias is None else binary("bilinear", "add", y, bias))
