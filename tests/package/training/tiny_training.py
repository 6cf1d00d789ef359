"""A tiny training whose steps take a millisecond: the script of the receipts in these tests. Its
optimiser is momentum in primitives."""

import torch
from invar import primitives as p
from invar import training as t


def drawn(seed, shape):
    """Numbers in [-1, 1) by a linear congruence, the same everywhere."""
    x, found = 12345 + seed * 7919, []
    for _ in range(torch.Size(shape).numel()):
        x = (x * 1103515245 + 12345) % 2**31
        found.append((x >> 7) / 2**23 - 1)
    return torch.tensor(found, dtype=torch.float32).reshape(shape)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(drawn(1, (4, 3)))
        self.bias = torch.nn.Parameter(drawn(2, (3,)))
        self.fixed = torch.nn.Parameter(drawn(3, (3,)), requires_grad=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        y = p.add(p.matmul(x, self.weight, trans_a=0, trans_b=0), self.bias)
        return p.mul(p.mul(y, y), self.fixed)


class Momentum(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr, "momentum": 0.5})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, momentum = (torch.tensor(group[name]) for name in ("lr", "momentum"))
            for x in group["params"]:
                state = self.state[x]
                buffer = state.get("buffer")
                state["buffer"] = (
                    x.grad if buffer is None else p.add(p.mul(buffer, momentum), x.grad)
                )
                state["step"] = state.get("step", 0) + 1
                x.copy_(p.sub(x, p.mul(state["buffer"], lr)))


def loss(model, x, y):
    difference = p.sub(model(x), y)
    return p.reduce_sum(p.mul(difference, difference), axes=[1, 2], keepdims=0)


def batches(step, units):
    return drawn(step + 10, (units, 2, 4)), drawn(step + 1000, (units, 2, 3))


def training(lr=0.01, wrong_at=-1, device="cpu", exact=True, units=6):
    """wrong_at: a step after which one weight is not what it should be."""
    model = Model().to(device)
    made = Wrong if wrong_at >= 0 else t.Trainer
    trainer = made(
        model,
        Momentum([model.weight, model.bias], lr),
        lambda step: tuple(x.to(device) for x in batches(step, units)),
        loss,
        schedule=lambda step: {"lr": lr / (1 + step // 100)},
        exact=exact,
    )
    trainer.wrong_at = wrong_at
    return trainer


class Wrong(t.Trainer):
    """One bit of a weight flips after step `wrong_at`."""

    def step(self, index):
        facts = super().step(index)
        if index == self.wrong_at:
            with torch.no_grad():
                self.model.bias.view(torch.int32)[1] ^= 1
        return facts
