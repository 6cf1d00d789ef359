"""Trainings whose bits never change, and receipts of them.

ExactGradients sums gradients over the units of a batch in integers: any micro-batches and any
number of workers give the same bits. Trainer computes steps with it; Recorder writes a receipt of
the steps; verify() executes any of them again, on any machine, and bisect() finds the one that is
wrong. `python -m invar.training` has the same for receipts in files. Clauses: spec/training.md."""

from invar.training.bisection import Bisection, bisect, first_difference
from invar.training.digest import load as load_tensors
from invar.training.digest import save as save_tensors
from invar.training.digest import state_digest
from invar.training.exact import Accumulator, ExactGradients
from invar.training.parallel import launch
from invar.training.receipt import Receipt
from invar.training.recorder import Recorder
from invar.training.script import main
from invar.training.trainer import Facts, Trainer
from invar.training.verification import Verdict, verify

__all__ = [
    "Accumulator",
    "Bisection",
    "ExactGradients",
    "Facts",
    "Receipt",
    "Recorder",
    "Trainer",
    "Verdict",
    "bisect",
    "first_difference",
    "launch",
    "load_tensors",
    "main",
    "save_tensors",
    "state_digest",
    "verify",
]
