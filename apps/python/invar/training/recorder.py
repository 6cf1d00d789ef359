"""Trainings that leave a receipt."""

import hashlib
import os
import platform
from pathlib import Path
from typing import Any

import torch

from invar import _native
from invar.training import digest
from invar.training.modules import files_of
from invar.training.parallel import joined
from invar.training.receipt import (
    NUMERICS,
    SCHEMA,
    Receipt,
    chained,
    header_hash,
    number,
    settings_of,
)
from invar.training.trainer import Trainer


def states_folder(path):
    """Where the states of a receipt's steps lie."""
    return Path(f"{path}.states")


def state_file(path, index):
    return states_folder(path) / f"{index:08}.safetensors"


class Recorder:
    """Runs the steps of a Trainer and writes their receipt.

        recorder = invar.training.Recorder(trainer, "run.json", script=__file__, every=100)
        receipt = recorder.run(1000)

    path       of the receipt; None: it is only returned
    script     the file whose function training(**settings) makes the trainer, so that others can
               execute steps again; the receipt binds it and the modules that it imports from beside
               it (training.21)
    settings   of that function: numbers, texts, truth values
    every      steps between states that are kept beside the receipt (0: only the last)
    tensors    whether each step has the leaves of its tensors, so that a difference is named
    resume     goes on from the receipt at `path`, if there is one, and its last state

    Of several workers all compute, and the first writes."""

    def __init__(
        self,
        trainer: Trainer,
        path: str | os.PathLike[str] | None = None,
        *,
        script: str | os.PathLike[str] | None = None,
        settings: dict[str, Any] | None = None,
        every: int = 100,
        tensors: bool = True,
        resume: bool = False,
    ) -> None:
        self.trainer, self.path, self.every, self.tensors = trainer, path, every, tensors
        self.writes = not joined(trainer.group) or torch.distributed.get_rank(trainer.group) == 0
        self.index = 0
        head = self._head(script, settings or {})
        if resume and path is not None and Path(path).exists():
            self._resume(Receipt.read(path), head)
        else:
            head["receipt_hash"] = header_hash(head)
            self.data = head

    def _head(self, script, settings):
        initial = digest.Digest(self.trainer.state())
        program = {
            "numerics": NUMERICS,
            "script": Path(script).name if script is not None else "",
            "sha256": hashlib.sha256(Path(script).read_bytes() if script else b"").hexdigest(),
            "settings": settings_of(settings),
        }
        if script is not None and (modules := files_of(script)):
            program["modules"] = modules
        return {
            "schema": SCHEMA,
            "program": program,
            "model": {"constants": digest.Digest(self.trainer.constants()).root},
            "initial": {"state": initial.root, "tensors": initial.entries},
            "steps": [],
            "receipt_hash": "",
            "states": [],
            "execution": execution(),
        }

    def _resume(self, receipt, head):
        for member in ("program", "model", "initial"):
            if receipt.data[member] != head[member]:
                raise _native.BadInput(
                    f"{self.path}: {member} is not that of this training; it cannot go on from there"
                )
        self.data, self.index = receipt.data, len(receipt)
        kept = self.data.setdefault("states", [])
        if not kept:
            raise _native.BadInput(f"{self.path}: no state is kept beside it to go on from")
        self.index = max(kept)
        del self.data["steps"][self.index :]
        self.trainer.load_state(kept_state(self.path, self.index, self.state))

    @property
    def state(self) -> str:
        """The digest of the state after the last step."""
        steps = self.data["steps"]
        return steps[-1]["state"] if steps else self.data["initial"]["state"]

    def step(self) -> float:
        """Computes one step and adds it to the receipt; returns its loss."""
        facts = self.trainer.step(self.index)
        self.index += 1
        if self.writes:
            after = digest.Digest(self.trainer.state())
            step = {
                "data": facts.data,
                "settings": settings_of(facts.settings),
                "loss": number(facts.loss),
                "state": after.root,
            }
            if self.tensors:
                step["tensors"] = after.leaves
            steps = self.data["steps"]
            step["chain"] = chained(steps[-1]["chain"] if steps else header_hash(self.data), step)
            steps.append(step)
            if self.every and self.index % self.every == 0:
                self._keep()
        return facts.loss

    def run(self, steps: int) -> Receipt | None:
        """Computes steps until there are `steps` in all; returns the Receipt (None on workers but
        the first)."""
        while self.index < steps:
            self.step()
        if not self.writes:
            return None
        self._keep()
        return Receipt(self.data, self.path)

    def _keep(self):
        """Writes the state that is reached, and the receipt up to it."""
        steps = self.data["steps"]
        if steps:
            self.data["receipt_hash"] = steps[-1]["chain"]
        if self.path is None or not self.writes or not steps:
            return
        if self.index not in self.data["states"]:
            digest.save(state_file(self.path, self.index), self.trainer.state())
            self.data["states"].append(self.index)
        Receipt(self.data, self.path).write(self.path)


def kept_state(path, index, expected):
    """The state before step `index` that lies beside a receipt; refused where it is another."""
    file = state_file(path, index)
    try:
        state = digest.load(file)
    except OSError as e:
        raise _native.BadInput(f"{file}: {e.strerror}") from None
    if digest.Digest(state).root != expected:
        raise _native.BadInput(f"{file}: not the receipt's state before step {index}")
    return state


def execution():
    """What computed it: outside of the hash."""
    return {
        "invar": _native.__version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
