"""Programs of torch that know nothing of Invar: model, loss, clipping and optimiser are torch's."""

import contextlib

# Weights and data are the same on every machine; torch draws nothing.
_HEAD = """
import numpy as np, torch
import torch.nn.functional as F
from torch import nn

rng = np.random.default_rng(0)

def values(*shape, scale=2**-11):
    return torch.from_numpy(rng.integers(-1000, 1000, shape).astype("f")) * scale

def run(context, threads=1):
    torch.set_num_threads(threads)
    model = Model()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(values(*p.shape, scale=2**-12) + (p.ndim == 1))
    with context:
        losses = train(model)
    return [*losses, *model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]

def steps(model, optimizer, loss_of, n=3):
    for _ in range(n):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        yield loss.detach()
"""
_MLP = """
def Model():
    return nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5))

def train(model):
    x, target = values(96, 40), torch.from_numpy(rng.integers(0, 5, 96))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    return list(steps(model, optimizer, lambda: F.nll_loss(F.log_softmax(model(x), -1), target)))
"""
_CNN = """
def Model():
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(8, 10),
    )

def train(model):
    x, target = values(16, 1, 12, 12), torch.from_numpy(rng.integers(0, 10, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    found = []
    for loss in steps(model, optimizer, lambda: criterion(model(x), target)):
        schedule.step()
        found.append(loss)
    return found
"""
_LLAMA = """
class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width, False), nn.Linear(width, width, False)
        self.gate, self.up = nn.Linear(width, 2 * width, False), nn.Linear(width, 2 * width, False)
        self.down = nn.Linear(2 * width, width, False)

    def forward(self, x, cos, sin):
        n, length, width = x.shape
        split = lambda t: t.view(n, length, self.heads, -1).transpose(1, 2)
        q, k, v = map(split, self.qkv(self.norm1(x)).chunk(3, -1))
        half = lambda t: torch.cat((-t[..., t.shape[-1] // 2 :], t[..., : t.shape[-1] // 2]), -1)
        q, k = (t * cos + half(t) * sin for t in (q, k))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(n, length, width))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.layers = nn.ModuleList(Layer(32, 4) for _ in range(2))
        self.norm = nn.RMSNorm(32, eps=1e-6)

    def forward(self, ids):
        frequency = 1.0 / (10000.0 ** (torch.arange(0, 8, 2).float() / 8))
        angle = torch.arange(ids.shape[1]).float()[:, None] * frequency
        angle = torch.cat((angle, angle), -1)
        x, cos, sin = self.embed(ids), angle.cos(), angle.sin()
        for layer in self.layers:
            x = layer(x, cos, sin)
        return F.linear(self.norm(x), self.embed.weight)

def train(model):
    ids = torch.from_numpy(rng.integers(0, 50, (2, 17)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loss = lambda: F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    return list(steps(model, optimizer, loss))
"""
PROGRAMS = {"mlp": _HEAD + _MLP, "cnn": _HEAD + _CNN, "llama": _HEAD + _LLAMA}


def trained(name, context=None):
    """Losses, weights and buffers of a program, run under a context."""
    found = {}
    exec(PROGRAMS[name], found)
    return found["run"](context or contextlib.nullcontext())
