"""Training steps of a Llama with exact gradients by one process, and by several that share each
batch: seconds a step, and whether the weights have the bits of one.

    python bench/programs/parallel_training.py --device cuda --workers 1,2

On GPUs each process has one of its own (NCCL); processes of a CPU share its threads (gloo). The
shape is some 110 million weights; --small is for a trial. Exit code 1: some bit differs."""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from invar import optim
from invar import training as t
from invar.training.digest import state_digest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
from llama import Config, Llama, initialise, loss  # noqa: E402

LARGE = Config(
    vocab_size=32768,
    hidden_size=768,
    intermediate_size=2048,
    num_hidden_layers=12,
    num_attention_heads=12,
    num_key_value_heads=4,
)


def train(rank, options):
    """(digest of the trained weights, losses, seconds of each step)"""
    device = f"cuda:{rank}" if options.device == "cuda" else "cpu"
    model = Llama(Config() if options.small else LARGE)
    initialise(model)
    model.to(device)

    def batch(step):
        made = torch.Generator().manual_seed(step)
        size = (options.units, options.length + 1)
        return (torch.randint(model.config.vocab_size, size, generator=made).to(device),)

    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    trainer = t.Trainer(model, optimizer, batch, loss, micro_batch=options.micro_batch)
    losses, seconds = [], []
    for step in range(options.steps):
        begin = time.perf_counter()
        losses.append(trainer.step(step).loss)
        if device != "cpu":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - begin)
    weights = {name: p.detach().cpu() for name, p in model.named_parameters()}
    return state_digest(weights), losses, seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--workers", default="1,2", help="numbers of processes; the first is 1")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--units", type=int, default=64, help="sequences of a batch")
    parser.add_argument("--length", type=int, default=512, help="tokens of a sequence")
    parser.add_argument("--micro-batch", type=int, default=8)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    backend = "nccl" if options.device == "cuda" else "gloo"
    first, differ = None, False
    print("workers | seconds a step | tokens/s | faster | weights | losses")
    for workers in map(int, options.workers.split(",")):
        digest, losses, seconds = t.launch(train, workers, options, backend=backend)
        took = statistics.median(seconds[1:] or seconds)
        first = first or (digest, losses, took)
        same = (digest, losses) == first[:2]
        differ |= not same
        print(
            f"{workers} | {took:.4f} | {options.units * options.length / took:.0f} | "
            f"{first[2] / took:.2f} | {digest[:16]}{'' if same else ' DIFFERS'} | "
            f"{losses[0]:.5f} to {losses[-1]:.5f}",
            flush=True,
        )
    sys.exit(differ)


if __name__ == "__main__":
    main()
