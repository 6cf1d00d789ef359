"""Trains the model that ships in models/tale-7m: the same weights on every machine, with a receipt.

python examples/tale/train.py --device cuda --save run.json [--steps 400] [--resume] [--export
FOLDER] python -m invar.training verify models/tale-7m/training.json --script examples/tale/train.py
--steps 0:1

A step of the receipt is ROUND steps of the optimiser. The first EASY steps are one small step each,
so that anyone can execute them again in seconds. The last but one rounds the weights to bf16 and
forgets the state of the optimiser: its state is the model that ships. The last is small, too, and
goes on from there: from the files of the model alone it can be executed again."""

import argparse
import hashlib
import json
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from invar import optim
from invar import training as t
from model import CONFIG, LENGTH, Llama, initialise, loss
from text import Tokenizer, sequence

HERE = Path(__file__).resolve().parent
TOKENIZER = HERE.parent.parent / "models/tale-7m/tokenizer.json"
EASY, FEW, ROUND, WARM_UP = 4, 1, 10, 200


class Rounds(t.Trainer):
    """A Trainer whose steps are several of the optimiser's (see above)."""

    def __init__(self, *given, steps, **named):
        super().__init__(*given, **named)
        self.steps = steps

    def step(self, index):
        if index == self.steps - 2:
            return self.round_weights()
        if index < EASY or index == self.steps - 1:
            return super().step(inner(index, self.steps).start)
        facts = [super(Rounds, self).step(i) for i in inner(index, self.steps)]
        data = hashlib.sha256("".join(f.data for f in facts).encode()).hexdigest()
        return t.Facts(data, facts[-1].settings, sum(f.loss for f in facts) / len(facts))

    @torch.no_grad()
    def round_weights(self):
        for p in self.model.parameters():
            p.copy_(p.to(torch.bfloat16).to(torch.float32))
        self.optimizer.state.clear()
        return t.Facts(hashlib.sha256(b"rounded to bf16").hexdigest(), self._settings(0), 0.0)


def inner(index, steps):
    """The steps of the optimiser that are step `index` of the receipt."""
    if index < EASY:
        return range(index, index + 1)
    begin = EASY + (index - EASY) * ROUND
    return range(begin, begin + (1 if index == steps - 1 else ROUND))


def units_of(step, steps, units):
    return FEW if step < EASY or step >= inner(steps - 1, steps).start else units


_tokenizers = {}


def rows(seed, first, count):
    """Sequences `first` to `first` + `count`, as lists of tokens."""
    if TOKENIZER not in _tokenizers:
        _tokenizers[TOKENIZER] = Tokenizer(TOKENIZER)
    return [
        sequence(_tokenizers[TOKENIZER], seed, i, LENGTH + 1) for i in range(first, first + count)
    ]


def training(device="cpu", steps=400, units=32, lr=1.5e-3, seed=1, exact=True):
    model = Llama()
    initialise(model, seed)
    model.to(device)
    last = inner(steps - 2, steps).start

    def batches(step):
        count = units_of(step, steps, units)
        return (torch.tensor(rows(seed, step * units, count)).to(device),)

    def schedule(step):  # binary64, operations that are the same everywhere: up, then down to 0
        up, down = (step + 1) / WARM_UP, (last - step) / (last - WARM_UP)
        return {"lr": lr * max(0.01, min(1.0, up, down))}

    decayed = [p for p in model.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim != 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = optim.AdamW(groups, lr=lr, betas=(0.9, 0.98))
    return Rounds(model, optimizer, batches, loss, schedule=schedule, exact=exact, steps=steps)


def ahead(trainer, pool, settings, device):
    """batches() of a trainer, whose text other processes make while the steps before compute."""
    seed, units, steps, waiting, parts = (
        settings["seed"],
        settings["units"],
        settings["steps"],
        {},
        4,
    )

    def ask(step):
        if step not in waiting:
            count = units_of(step, steps, units)
            size = -(-count // parts)
            waiting[step] = [
                pool.submit(rows, seed, step * units + i, min(size, count - i))
                for i in range(0, count, size)
            ]

    def batches(step):
        for later in range(step, step + 12):
            ask(later)
        return (
            torch.tensor([row for part in waiting.pop(step) for row in part.result()]).to(device),
        )

    trainer.batches = batches


def export(trainer, folder):
    """The weights as a checkpoint in bf16, beside the tokenizer."""
    folder = Path(folder)
    tensors = {
        f"model.{n}": p.detach().to(torch.bfloat16) for n, p in trainer.model.named_parameters()
    }
    t.save_tensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")


def measure(device):
    """Prints milliseconds of a step of the optimiser, by units and kind of gradients."""
    few = device == "cpu"
    for exact, units in [(e, u) for e in (True, False) for u in ((1, 2) if few else (16, 32, 64))]:
        trainer = training(device=device, units=units, exact=exact)
        batch, times = trainer.batches(EASY), []
        trainer.batches = lambda step: batch
        for step in range(2 if few else 8):
            begin = time.perf_counter()
            t.Trainer.step(trainer, EASY + step)  # its loss is read, so it has ended
            times.append(time.perf_counter() - begin)
        took = min(times[len(times) // 2 :])
        most = 0 if few else torch.cuda.max_memory_allocated() / 2**30
        print(
            f"exact={exact} units={units}: {1e3 * took:.1f} ms, "
            f"{units * LENGTH / took:,.0f} tokens/s, {most:.1f} GiB",
            flush=True,
        )


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("steps", 400), ("units", 32), ("lr", 1.5e-3), ("seed", 1)):
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"({default})")
    parser.add_argument(
        "--ordinary", action="store_true", help="gradients that are not exact sums over units"
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument(
        "--save", metavar="RECEIPT", help="writes the receipt, and states beside it"
    )
    parser.add_argument("--resume", action="store_true", help="goes on from the receipt at --save")
    parser.add_argument("--every", type=int, default=50, help="steps between kept states (50)")
    parser.add_argument(
        "--export", metavar="FOLDER", help="writes the weights in bf16 every --every steps"
    )
    parser.add_argument("--makers", type=int, default=0, help="processes that make the text")
    parser.add_argument(
        "--stop", type=int, default=0, help="ends after this step; --resume goes on"
    )
    parser.add_argument("--measure", action="store_true", help="only times steps")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parsed(arguments)
    if options.measure:
        return measure(options.device)
    settings = {
        "steps": options.steps,
        "units": options.units,
        "lr": options.lr,
        "seed": options.seed,
        "exact": not options.ordinary,
    }
    pool = ProcessPoolExecutor(options.makers, get_context("spawn")) if options.makers else None
    trainer = training(device=options.device, **settings)
    if pool:
        ahead(trainer, pool, settings, options.device)
    recorder = t.Recorder(
        trainer,
        options.save,
        script=__file__,
        settings=settings,
        every=options.every,
        tensors=False,
        resume=options.resume,
    )
    begin, first, end = time.time(), recorder.index, options.stop or options.steps
    while recorder.index < end:
        found, index = recorder.step(), recorder.index
        print(
            f"step {index}/{options.steps} loss {found:.4f} {time.time() - begin:.1f} s "
            f"state {recorder.state[:16]}",
            flush=True,
        )
        if options.export and (index % options.every == 0 or index in (end, options.steps - 1)):
            if index < options.steps:  # the last step only shows that one can go on
                export(trainer, options.export)
            if options.save and Path(options.save).exists():
                shutil.copy(options.save, Path(options.export) / "training.json")
    if options.save:
        receipt = recorder.run(end)
        print("receipt", receipt.hash)
        if options.export:
            shutil.copy(options.save, Path(options.export) / "training.json")
    print(f"{recorder.index - first} steps in {time.time() - begin:.1f} s")
    if pool:
        pool.shutdown(cancel_futures=True)
    return recorder


if __name__ == "__main__":
    main(sys.argv[1:])
