"""A training step of a small Llama: plain torch in f32 (no TF32) beside invar.ops and invar.optim.

    python bench/programs/training_step.py cpu|cuda

Four layers of width 256, 8 sequences of 256 tokens, AdamW. Rotary embeddings are invar.ops.rope,
and in torch what models spell. Prints the median of a step and the mean of its parts in
milliseconds, and torch's time divided by Invar's; on a GPU the same with the forward and backward
pass as a CUDA graph, and steps that are queued without waiting for each part."""

import statistics
import sys
import time

import torch
import torch.nn.functional as F
from invar import ops
from invar import optim as exact_optim

LAYERS, WIDTH, HEADS, VOCABULARY, BATCH, TOKENS = 4, 256, 8, 2048, 8, 256
SIZE = WIDTH // HEADS


def parameters(device):
    made = torch.Generator().manual_seed(0)
    matrix = lambda *shape: (torch.randn(shape, generator=made) * 0.02).to(device).requires_grad_()
    ones = lambda: torch.ones(WIDTH, device=device).requires_grad_()
    layer = lambda: {
        "norm": ones(),
        "mlp_norm": ones(),
        **{name: matrix(WIDTH, WIDTH) for name in "qkvo"},
        "gate": matrix(4 * WIDTH, WIDTH),
        "up": matrix(4 * WIDTH, WIDTH),
        "down": matrix(WIDTH, 4 * WIDTH),
    }
    return {
        "embedding": matrix(VOCABULARY, WIDTH),
        "norm": ones(),
        "layers": [layer() for _ in range(LAYERS)],
    }


def flat(p):
    return [p["embedding"], p["norm"], *(w for layer in p["layers"] for w in layer.values())]


class Library:
    """The functions of a step. `nn`: torch.nn.functional or invar.ops; `math`: torch or
    invar.ops."""

    def __init__(self, nn, math, optimizer, device):
        self.nn, self.math, self.optimizer = nn, math, optimizer
        rates = 1 / 10000 ** (torch.arange(0, SIZE, 2) / SIZE)
        angles = torch.arange(TOKENS)[:, None] * rates[None]
        self.cos, self.sin = angles.cos().to(device), angles.sin().to(device)

    def rope(self, x):
        if self.nn is ops:
            return ops.rope(x, self.cos, self.sin)
        m, (a, b) = self.math, x.chunk(2, -1)
        first = m.sub(m.mul(a, self.cos), m.mul(b, self.sin))
        return m.cat((first, m.add(m.mul(b, self.cos), m.mul(a, self.sin))), -1)

    def loss(self, p, ids):
        nn, m = self.nn, self.math
        x = nn.embedding(ids[:, :-1], p["embedding"])
        for layer in p["layers"]:
            h = nn.rms_norm(x, (WIDTH,), layer["norm"], 1e-6)
            heads = lambda name: (
                nn.linear(h, layer[name]).view(BATCH, TOKENS, HEADS, SIZE).transpose(1, 2)
            )
            y = nn.scaled_dot_product_attention(
                self.rope(heads("q")), self.rope(heads("k")), heads("v"), is_causal=True
            )
            x = m.add(x, nn.linear(y.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH), layer["o"]))
            h = nn.rms_norm(x, (WIDTH,), layer["mlp_norm"], 1e-6)
            h = m.mul(nn.silu(nn.linear(h, layer["gate"])), nn.linear(h, layer["up"]))
            x = m.add(x, nn.linear(h, layer["down"]))
        logits = nn.linear(nn.rms_norm(x, (WIDTH,), p["norm"], 1e-6), p["embedding"])
        return nn.cross_entropy(logits.view(-1, VOCABULARY), ids[:, 1:].reshape(-1))


def passes(library, p, ids):
    """The forward and the backward pass, each as a function."""
    made = {}

    def forward():
        made["loss"] = library.loss(p, ids)

    return forward, lambda: made["loss"].backward(), made


def captured(forward, backward, p):
    """Both passes as one CUDA graph, which leaves gradients at the same place each time."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            forward()
            backward()
            for x in flat(p):
                x.grad = None
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        forward()
        backward()
    return graph.replay


def measure(name, library, device, steps, graph=False, parts=True):
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    p = parameters(device)
    optimizer = library.optimizer(flat(p), lr=1e-3)
    ids = torch.randint(
        0, VOCABULARY, (BATCH, TOKENS + 1), generator=torch.Generator().manual_seed(1)
    ).to(device)
    forward, backward, made = passes(library, p, ids)
    work = [captured(forward, backward, p)] if graph else [forward, backward]

    def update():
        optimizer.step()
        if not graph:
            optimizer.zero_grad()

    times = []
    for _ in range(steps):
        clock = [time.perf_counter()]
        for part in (*work, update):
            part()
            if parts or part is update:
                wait()
                clock.append(time.perf_counter())
        times.append([1e3 * (b - a) for a, b in zip(clock, clock[1:])])
    times = times[steps // 3 :]
    step = statistics.median(map(sum, times))
    means = ", ".join(f"{statistics.mean(part):.2f}" for part in zip(*times))
    print(f"{name}: {step:.2f} ms (parts: {means}), loss {made['loss'].item():.6f}")
    return step


def compare(device, steps, what, **how):
    plain = measure(
        f"torch{what}", Library(F, torch, torch.optim.AdamW, device), device, steps, **how
    )
    ours = measure(
        f"invar{what}", Library(ops, ops, exact_optim.AdamW, device), device, steps, **how
    )
    print(f"speed{what} {plain / ours:.2f}")


def main(device):
    torch.backends.cuda.matmul.allow_tf32 = False
    if device == "cpu":
        return compare(device, 6, "")
    for _ in range(2):  # the first round warms the machine
        compare(device, 45, "")
    compare(device, 45, ", queued", parts=False)
    compare(device, 45, ", graph", graph=True)


if __name__ == "__main__":
    main(sys.argv[1])
