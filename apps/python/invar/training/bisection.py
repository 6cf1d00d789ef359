"""Where a training went wrong: the first step that differs, by halves (spec/training.md
training.17, training.18)."""

import os
from dataclasses import dataclass
from typing import Any

from invar.training.receipt import Receipt
from invar.training.verification import Maker, Replay, Verdict, maker, receipt_of


@dataclass(frozen=True, slots=True)
class Bisection:
    """step: a step whose state before is the verifier's and whose state after is not, or None;
    verdict: what executing that step alone showed; ranges: (from, to, whether the state at `to` is
    the receipt's) of each execution of a range; executed: the number of steps in all."""

    step: int | None
    verdict: Verdict | None
    ranges: tuple[tuple[int, int, bool], ...]
    executed: int
    text: str


def bisect(
    receipt: Receipt | str | os.PathLike[str], program: Maker | None = None, **execution: Any
) -> Bisection:
    """Finds a wrong step of a receipt whose last state is not what its program makes of it: log2 of
    the number of steps executions of ranges, each from a state that was confirmed. Arguments as of
    verify()."""
    receipt = receipt_of(receipt)
    make = maker(receipt, program)
    replay = Replay(receipt, lambda: make(**execution))
    found = replay.begins()
    if found is not None:
        text = f"before step 0: {found[2]}"
        verdict = Verdict(False, 0, found[0], found[1], 0, 0, 0, text)
        return Bisection(0, verdict, (), 0, text)
    low, high, ranges = 0, len(receipt), []
    confirmed = _copy(replay.trainer.state())
    wrong = False
    while high > low:
        to = high if not ranges else (low + high) // 2  # first the whole: is there a difference?
        if ranges and to == low:
            break
        replay.load(low, confirmed)
        while replay.at < to:
            replay.step()
        same = replay.digest() == receipt.state(to)
        ranges.append((low, to, same))
        if same:
            low, confirmed = to, _copy(replay.trainer.state())
        else:
            high, wrong = to, True
    if not wrong:
        text = f"the state after the last of {len(receipt)} steps holds"
        return Bisection(None, None, tuple(ranges), replay.executed, text)
    replay.load(low, confirmed)
    difference, tensor, why = replay.compare()
    text = f"step {low}: {why}"
    verdict = Verdict(False, low, difference, tensor, low, low + 1, replay.executed, text)
    return Bisection(low, verdict, tuple(ranges), replay.executed, text)


def _copy(state):
    return {name: x.detach().clone() if hasattr(x, "detach") else x for name, x in state.items()}


def first_difference(
    ours: Receipt | str | os.PathLike[str], theirs: Receipt | str | os.PathLike[str]
) -> int | None:
    """The first step in which two receipts of one training differ, from their chains alone: None
    where one continues the other, -1 where they begin differently. A judge has to execute that
    step alone."""
    ours, theirs = receipt_of(ours), receipt_of(theirs)
    if ours.chain(0) != theirs.chain(0):
        return -1
    low, high = 0, min(len(ours), len(theirs))
    if ours.chain(high) == theirs.chain(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if ours.chain(middle) == theirs.chain(middle):
            low = middle
        else:
            high = middle
    return low
