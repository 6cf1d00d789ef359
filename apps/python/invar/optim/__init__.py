"""Optimisers with the names, arguments and state of torch.optim, whose steps compute the same bits
on every machine (spec: spec/ops/optim.md).

    optimizer = invar.optim.AdamW(model.parameters(), lr=3e-4)

A state dict of torch.optim's class of the same name loads into these, and theirs into torch's. The
schedulers of torch.optim.lr_scheduler work on them; invar.optim.lr_scheduler has those whose rates
are the same numbers on every machine."""

from invar import documented as _documented
from invar.optim import lr_scheduler
from invar.optim.adam import Adam, AdamW
from invar.optim.adaptive import Adadelta, Adagrad, RMSprop
from invar.optim.clip import clip_grad_norm_, clip_grad_value_, get_total_norm
from invar.optim.lion import Lion
from invar.optim.moments import Adamax, NAdam, RAdam
from invar.optim.optimizer import Optimizer
from invar.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "lr_scheduler",
]

_documented.of_optimisers(globals())
