"""A program of torch that knows nothing of Invar."""

import contextlib

# An unmodified program: model, loss, clipping and optimiser are torch's.
TRAINING = """
import contextlib, sys
import numpy as np, torch
import torch.nn.functional as F
from torch import nn

def run(context, threads=1):
    torch.set_num_threads(threads)
    rng = np.random.default_rng(0)
    values = lambda *s: torch.from_numpy(rng.standard_normal(s).astype("f"))
    model = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(values(*p.shape) * 0.1)
    x, target = values(96, 40), torch.from_numpy(rng.integers(0, 5, 96))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    with context:
        for _ in range(4):
            optimizer.zero_grad()
            loss = F.nll_loss(F.log_softmax(model(x), -1), target)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
    return [loss, *model.parameters()]
"""


def trained(context=None):
    """Its loss and weights, run under a context."""
    found = {}
    exec(TRAINING, found)
    return found["run"](context or contextlib.nullcontext())
