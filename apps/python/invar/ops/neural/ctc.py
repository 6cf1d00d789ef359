"""Connectionist temporal classification: the sum over alignments of labels with steps."""

import math
from typing import Any, cast

from invar.errors import OperandError, public
from invar.ops import _arrays as arr
from invar.ops import _types as t
from invar.ops._types import Array
from invar.ops.binary64 import operations as op
from invar.ops.indexing.indices import index_of
from invar.ops.loss import _checked, _reduced, _sum

_NONE = -1e30  # the logarithm of what cannot be: finite, so that gradients are


def _at(value: float, like: Any) -> Any:
    return t.beside(value, like)


@public
def ctc_loss(
    log_probs: Array,
    targets: Array,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Array:
    """-log of the probability of the labels over all alignments: log_probs [T, N, C] of logarithms,
    targets [N, S] (or joined end to end, [sum of lengths]), lengths [N] -> [N]; without N all have
    a dimension less. "mean" divides by the lengths of targets, at least 1, and takes the mean.

    A step joins at most three ways by logsumexp. Labels that no alignment fits give infinity, or 0
    with zero_infinity, and no gradient. Lengths are read on the host. Raises RuntimeError for
    shapes and types that do not fit. Spec: reduce.9, gather.5, elementwise.5, reduce.3."""
    name = "ctc_loss"
    _checked(name, reduction)
    e = t.real(name, log_probs, "log_probs")
    x: Any = t.wide(name, log_probs, "log_probs")
    single = x.ndim == 2
    x = arr.insert(x, 1) if single else x
    if x.ndim != 3 or not 0 <= blank < x.shape[2]:
        raise OperandError(
            f"{name}: argument 'log_probs': expected [T, N, C] with the blank {blank} among C, got "
            f"{tuple(log_probs.shape)}"
        )
    steps, n, _ = x.shape
    ins, outs = (
        _lengths(name, "input", input_lengths, n),
        _lengths(name, "target", target_lengths, n),
    )
    if max(ins, default=0) > steps:
        raise OperandError(
            f"{name}: argument 'input_lengths': expected at most {steps}, got {max(ins)}"
        )
    labels = _padded(name, targets, outs, x, blank)  # [N, S]
    states, skips = _states(labels, blank, x)  # [N, 2 S + 1], and where a blank may be left out
    loss = _alignments(x, states, skips, ins, outs)
    infinite = op.greater(loss, _at(-_NONE / 2, loss))
    loss = op.where(infinite, _at(0 if zero_infinity else math.inf, loss), loss)
    if reduction == "mean":
        lengths = arr.numbers([max(v, 1) for v in outs], loss)
        return cast(
            Array,
            t.cast(
                op.div(_sum(op.div(loss, t.cast(lengths, t.NAMES[loss.dtype]))), _at(n, loss)), e
            ),
        )
    loss = loss.reshape(()) if single and reduction == "none" else loss
    return cast(Array, _reduced(loss, reduction, e))


def _lengths(name: str, what: str, given: Any, n: int) -> list[int]:
    found = given.reshape(-1).tolist() if hasattr(given, "tolist") else given
    found = [int(v) for v in (found if isinstance(found, list | tuple) else [found])]
    if len(found) != n or any(v < 0 for v in found):
        raise OperandError(
            f"{name}: argument '{what}_lengths': expected {n} lengths of 0 or more, got {found}"
        )
    return found


def _padded(name: str, targets: Any, lengths: list[int], like: Any, blank: int) -> Any:
    """Targets as [N, longest]; what is behind their ends is no matter."""
    index = index_of(name, targets, "targets")
    longest = max(lengths, default=0)
    if index.ndim == 2 or len(lengths) == 1:
        index = index.reshape(len(lengths), -1)
        if index.shape[1] < longest:
            raise OperandError(
                f"{name}: argument 'targets': expected {longest} labels a row, got {index.shape[1]}"
            )
        return index[:, :longest]
    if index.ndim != 1 or index.shape[0] != sum(lengths):
        raise OperandError(
            f"{name}: argument 'targets': expected [N, S] or [{sum(lengths)}], got {tuple(targets.shape)}"
        )
    begins = [sum(lengths[:i]) for i in range(len(lengths))]
    rows = [min(b + k, max(sum(lengths) - 1, 0)) for b in begins for k in range(longest)]
    if not rows or not sum(lengths):
        return arr.full((len(lengths), longest), blank, "i64", index)
    return op.gather(index, arr.numbers(rows, index), axis=0).reshape(len(lengths), longest)


def _states(labels: Any, blank: int, like: Any) -> tuple[Any, Any]:
    n, length = labels.shape
    blanks = arr.full((n, length, 1), blank, "i64", labels)
    pairs = op.concat(blanks, arr.insert(labels, 2), axis=2).reshape(n, 2 * length)
    states = op.concat(pairs, arr.full((n, 1), blank, "i64", labels), axis=1)
    before = op.concat(arr.full((n, 2), blank, "i64", labels), states[:, :-2], axis=1)
    b = t.number(blank, "i64", labels)
    before = before[:, : 2 * length + 1]
    other = op.logical_not(op.logical_or(op.equal(states, b), op.equal(states, before)))
    first = op.less(arr.iota(2 * length + 1, labels), t.number(2, "i64", labels))
    return states, op.logical_and(other, op.logical_not(first))


def _alignments(x: Any, states: Any, skips: Any, ins: list[int], outs: list[int]) -> Any:
    """-log of the sums over alignments, [N]; -_NONE and more where there are none."""
    steps, n, _ = x.shape
    count = states.shape[1]
    none = _at(_NONE, x)
    place = arr.insert(arr.iota(count, states), 0)
    end = arr.insert(arr.numbers([2 * v for v in outs], states), 1)  # the last blank
    of = lambda s: op.gather_elements(x[s], states, axis=1)
    start = op.less(place, t.number(2, "i64", states))
    alpha = arr.expand(none, (n, count))
    if steps:
        alpha = op.where(start, of(0), none)
    begun = arr.full((n, 1), _NONE, t.NAMES[x.dtype], x)
    for s in range(1, max(ins, default=0)):
        once = op.concat(begun, alpha[:, :-1], axis=1)
        twice = op.concat(begun, begun, alpha[:, :-2], axis=1)[:, :count]
        ways = [alpha, once, op.where(skips, twice, none)]
        ways = op.concat(*(arr.insert(w, 0) for w in ways), axis=0)
        joined = op.reduce_log_sum_exp(ways, axes=[0], keepdims=0)
        made = op.max(op.add(joined, of(s)), none)
        runs = op.less(t.number(s, "i64", states), arr.insert(arr.numbers(ins, states), 1))
        alpha = op.where(runs, made, alpha)
    last = op.logical_or(
        op.equal(place, end), op.equal(op.add(place, t.number(1, "i64", place)), end)
    )
    if min(ins, default=1) == 0:  # nothing was read: only the empty target fits
        empty = op.logical_and(op.equal(place, end), op.equal(end, t.number(0, "i64", end)))
        unread = arr.insert(op.equal(arr.numbers(ins, states), t.number(0, "i64", states)), 1)
        alpha = op.where(unread, op.where(empty, _at(0, x), none), alpha)
    kept = op.where(last, alpha, none)
    return op.neg(op.reduce_log_sum_exp(kept, axes=[1], keepdims=0))
