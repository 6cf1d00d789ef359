"""Receipt of a training -> verdict, by executing steps again (spec/training.md training.15 to
training.18)."""

import contextlib
import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from invar import _native
from invar.training import digest
from invar.training.modules import files_of
from invar.training.receipt import NUMERICS, Receipt, number, printable, settings_of, shown
from invar.training.recorder import kept_state

# A function that makes the trainer, or the path of a script that has one.
Maker: TypeAlias = Callable[..., Any] | str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What executing steps again has shown.

    holds      whether every step that was looked at has the receipt's bits
    step       the first step that has not, or None
    difference what differs first there: "initial", "data", "settings", "loss" or "state"
    tensor     the first tensor of the state that differs, where it is known
    first, last  the steps that were looked at, without the last
    executed   how many steps were computed for it
    text       all of it in one line"""

    holds: bool
    step: int | None
    difference: str | None
    tensor: str | None
    first: int
    last: int
    executed: int
    text: str


class Replay:
    """A trainer that executes steps of a receipt: it knows which state it holds."""

    def __init__(self, receipt, make):
        self.receipt, self.trainer, self.at, self.executed = receipt, make(), 0, 0
        wanted = receipt.data["program"]["numerics"]
        if wanted != NUMERICS:
            raise _native.NotCovered(f"program.numerics {wanted!r}; this version has {NUMERICS!r}")

    def begins(self):
        """The first difference before step 0, as (difference, tensor, text), or None."""
        constants = digest.Digest(self.trainer.constants()).root
        if constants != self.receipt.data["model"]["constants"]:
            return "initial", None, "the tensors that are not trained are others"
        found = digest.Digest(self.trainer.state())
        return self._state_difference(0, found, "initial")

    def go_to(self, index, trusted=None):
        """Holds the state before step `index`: the state kept there, else it goes on from the last
        one before, without comparing."""
        kept = [i for i in self.receipt.data.get("states", []) if i <= index]
        kept = max(kept, default=0) if self.receipt.path is not None else 0
        if self.at > index or kept > self.at:
            if not kept:
                raise _native.BadInput(f"no state is kept before step {index}: start a new replay")
            self.load(kept, kept_state(self.receipt.path, kept, self.receipt.state(kept)))
        while self.at < index:
            self.step()

    def load(self, index, state):
        self.trainer.load_state(state)
        self.at = index

    def step(self):
        facts = self.trainer.step(self.at)
        self.at += 1
        self.executed += 1
        return facts

    def compare(self):
        """Computes the next step; the first difference as go_to's state makes it."""
        index = self.at
        facts, step = self.step(), self.receipt.data["steps"][index]
        if facts.data != step["data"]:
            return "data", None, f"data differ: {_both(step['data'], facts.data)}"
        settings = settings_of(facts.settings)
        if settings != step["settings"]:
            return "settings", None, _settings_text(step["settings"], settings)
        if number(facts.loss) != step["loss"]:
            found = shown(number(facts.loss))
            return (
                "loss",
                None,
                f"the loss differs: receipt {shown(step['loss'])}, computed {found}",
            )
        return self._state_difference(index + 1, digest.Digest(self.trainer.state()), "state")

    def digest(self):
        return digest.Digest(self.trainer.state()).root

    def _state_difference(self, index, found, what):
        wanted, where = (
            self.receipt.state(index),
            "the initial state" if index == 0 else "the state",
        )
        if found.root == wanted:
            return None
        leaves = self.receipt.leaves(index)
        if leaves is None:
            return what, None, f"{where} differs: {_both(wanted, found.root)}"
        if len(leaves) != len(found.leaves):
            text = f"{where} has {len(leaves)} tensors in the receipt, {len(found.leaves)} computed"
            return what, None, text
        pairs = zip(found.entries, leaves, found.leaves)
        name = next(entry["name"] for entry, theirs, ours in pairs if theirs != ours)
        return what, name, f"tensor {printable(name)} of {where} differs"


def _both(receipt, computed):
    return f"receipt {receipt[:16]}, computed {computed[:16]}"


def _settings_text(theirs, ours):
    for name in sorted(theirs.keys() | ours.keys()):
        if theirs.get(name) != ours.get(name):
            receipt, computed = theirs.get(name), ours.get(name)
            return printable(f"setting {name} differs: receipt {receipt}, computed {computed}")


def maker(receipt, program, path=None):
    """A function that makes the trainer of a receipt. program: such a function, or the path of the
    script whose `training` makes it; None: the script beside the receipt."""
    if callable(program):
        return program
    stated = receipt.data["program"]
    if program is None:
        if not stated["script"] or receipt.path is None:
            raise _native.BadInput("the receipt names no script: give one, or a function")
        program = receipt.path.parent / Path(stated["script"]).name
    program = Path(program)
    try:
        text = program.read_bytes()
    except OSError as e:
        where = printable(program)
        raise _native.BadInput(f"{where}: {e.strerror}: the script of the receipt") from None
    except ValueError:
        raise _native.BadInput(f"{printable(program)}: no name of a script") from None
    if hashlib.sha256(text).hexdigest() != stated["sha256"]:
        raise _native.BadInput(f"{program}: not the script of the receipt (its SHA-256 is another)")
    compare_modules(program, stated.get("modules", {}))
    settings = {name: _value(v) for name, v in stated["settings"].items()}

    def make(**execution):
        with beside(program):
            return script_of(program).training(**settings, **execution)

    return make


def compare_modules(program, stated):
    """Refuses modules beside a script that are not the receipt's."""
    found = files_of(program)
    for name in sorted(stated.keys() | found.keys()):
        file = printable(program.parent / name)
        if name not in found:
            raise _native.BadInput(f"{file}: a module of the receipt that is not there")
        if name not in stated:
            raise _native.BadInput(f"{file}: the script imports it, and the receipt has it not")
        if found[name] != stated[name]:
            raise _native.BadInput(
                f"{file}: not the module of the receipt (its SHA-256 is another)"
            )


@contextlib.contextmanager
def beside(path):
    """Modules are imported from the script's folder first, as Python runs a script: they are its
    own, whatever of their names this process has from elsewhere."""
    folder = Path(path).resolve().parent
    others = {}
    for file in files_of(path):
        name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if (known := sys.modules.get(name)) is not None:
            where = getattr(known, "__file__", None)
            if where is None or folder not in Path(where).resolve().parents:
                others[name] = sys.modules.pop(name)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.update(others)


def script_of(path):
    """The module that a script is."""
    name = f"invar_training_script_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "training", None)):
        raise _native.BadInput(f"{path}: it has no function training(**settings)")
    return module


def _value(setting):
    """A setting of a receipt as Python's value."""
    if isinstance(setting, str):
        try:
            return float.fromhex(setting) if setting.lstrip("-").startswith("0x") else setting
        except (OverflowError, ValueError):
            return setting
    return setting


def receipt_of(receipt):
    return receipt if isinstance(receipt, Receipt) else Receipt.read(receipt)


def steps_of(steps, count):
    """(first, last) of a range of steps: None for all, an int, "A:B" or a range."""
    if isinstance(steps, str):
        try:
            parts = [int(part) if part else None for part in steps.split(":")]
        except ValueError:
            parts = []
        if len(parts) not in (1, 2) or parts == [None]:
            raise _native.BadInput(f"steps: {steps!r} is neither A:B nor a number")
        first, last = parts if len(parts) == 2 else (parts[0], parts[0] + 1)
    elif isinstance(steps, range) and steps.step == 1:
        first, last = steps.start, steps.stop
    elif isinstance(steps, int) and not isinstance(steps, bool):
        first, last = steps, steps + 1
    elif steps is None:
        first, last = 0, count
    else:
        raise _native.BadInput(f"steps: {steps!r} is neither a number, A:B nor a range")
    first, last = first or 0, count if last is None else last
    if not 0 <= first <= last <= count or (first == last and count):
        raise _native.BadInput(f"steps: {first}:{last} is no range of the receipt's {count} steps")
    return first, last


def verify(
    receipt: Receipt | str | os.PathLike[str],
    program: Maker | None = None,
    steps: int | str | range | None = None,
    **execution: Any,
) -> Verdict:
    """Executes steps of a receipt again and compares batch, settings, loss and state of each.

    receipt    a path or a Receipt
    program    a function that makes the trainer, or the path of the script that has it; None: the
               script that the receipt names, beside it. The script is executed.
    steps      None (all), a step, range(A, B) or "A:B": from A up to, and without, B
    execution  keywords for the script's training(): where and how to compute

    The state before the first step comes from what is kept beside the receipt (compared with its
    digest), or from executing the steps before. Returns a Verdict."""
    receipt = receipt_of(receipt)
    first, last = steps_of(steps, len(receipt))
    make = maker(receipt, program)
    replay = Replay(receipt, lambda: make(**execution))
    found = replay.begins()
    if found is not None:
        return Verdict(False, 0, found[0], found[1], first, last, 0, f"before step 0: {found[2]}")
    replay.go_to(first)
    if replay.digest() != receipt.state(first):  # the steps up to here are compared, too
        replay = Replay(receipt, lambda: make(**execution))
        first = 0
    while replay.at < last:
        index, found = replay.at, replay.compare()
        if found is not None:
            text = f"step {index}: {found[2]}"
            return Verdict(False, index, found[0], found[1], first, last, replay.executed, text)
    text = f"steps {first} to {last - 1} hold" if last > first else "the initial state holds"
    return Verdict(True, None, None, None, first, last, replay.executed, text)
