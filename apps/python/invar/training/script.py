"""The command line of a training script, and what it prints: hashes that are the same
everywhere."""

import argparse
import functools
import hashlib
import inspect
import os
import struct
import sys
from collections.abc import Callable, Sequence

import torch

from invar import _native
from invar.training import digest
from invar.training.parallel import launch
from invar.training.recorder import Recorder
from invar.training.trainer import Trainer


def main(
    training: Callable[..., Trainer],
    outputs: Callable[[Trainer], torch.Tensor] | None = None,
    *,
    script: str | os.PathLike[str],
    steps: int,
    short: int | None = None,
    summary: Callable[[torch.Tensor], str] | None = None,
    arguments: Sequence[str] | None = None,
) -> dict[str, str]:
    """Runs a training script: training(device=..., **settings) -> Trainer, then prints the digests
    of initial weights, trained weights, outputs(trainer) (a tensor) and losses, and the receipt's
    hash.

    script    the script's __file__
    steps     how many, unless --steps says it; short: with --short
    summary   outputs -> a line about them
    arguments of the command line; None: those of the process

    The other settings of training() are options, too, if their defaults are numbers or texts; they
    stand in the receipt. Options of execution reach no bit: --device, --micro-batch, --workers,
    --threads, --isa."""
    options = parsed(training, steps, short, arguments)
    settings = {name: getattr(options, name) for name in settings_of(training)}
    job = functools.partial(run, training, outputs, script, settings, options)
    try:
        refuse_options(options)
        backend = "nccl" if options.device.startswith("cuda") else "gloo"
        lines, found = launch(job, options.workers, backend=backend)
    except _native.Error as e:
        print(f"invar: {e}", file=sys.stderr)
        sys.exit(3 if isinstance(e, _native.NotCovered) else 2)
    for name, value in lines.items():
        print(f"{name:15} {value}")
    if summary is not None and found is not None:
        print(f"{'':15} {summary(found)}")
    return lines


def settings_of(training):
    """The settings of a script's function: its parameters but `device`, and their defaults."""
    parameters = inspect.signature(training).parameters
    return {n: p.default for n, p in parameters.items() if n != "device"}


def parsed(training, steps, short, arguments):
    parser = argparse.ArgumentParser(description=inspect.getdoc(training))
    parser.add_argument("--steps", type=int, default=steps, help=f"of the training ({steps})")
    if short is not None:
        text = f"only {short} steps"
        parser.add_argument("--short", dest="steps", action="store_const", const=short, help=text)
    parser.add_argument(
        "--save", metavar="RECEIPT", help="writes the receipt, and states beside it"
    )
    parser.add_argument("--resume", action="store_true", help="goes on from the receipt at --save")
    parser.add_argument("--every", type=int, default=100, help="steps between kept states (100)")
    for name, default in settings_of(training).items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            how = argparse.BooleanOptionalAction
            parser.add_argument(option, action=how, default=default)
            continue
        parser.add_argument(option, type=type(default), default=default, help=f"({default})")
    how = parser.add_argument_group("execution, which reaches no bit")
    how.add_argument("--device", default="cpu", help="cpu or cuda")
    how.add_argument("--micro-batch", type=int, help="units that are computed at once (all)")
    how.add_argument("--workers", type=int, default=1, help="processes that share each batch (1)")
    how.add_argument("--threads", type=int, help="of each process")
    how.add_argument("--isa", default="", help="instruction set of the host: scalar, avx2, ...")
    return parser.parse_args(arguments)


def refuse_options(options):
    for name, least in (("steps", 1), ("every", 0)):
        if (value := getattr(options, name)) < least:
            raise _native.BadInput(f"--{name}: {value}, expected a whole number from {least} on")
    refuse_device(options.device)


def refuse_device(device):
    """Refuses a text that names no device, and a device that is not here."""
    try:
        kind = torch.device(device).type
    except RuntimeError:
        kind = None
    if kind not in ("cpu", "cuda"):
        raise _native.BadInput(f"--device: {device!r}, expected cpu or cuda")
    if kind == "cuda" and not torch.cuda.is_available():
        raise _native.BadInput("--device: there is no CUDA device here; use --device cpu")


def run(training, outputs, script, settings, options, rank):
    """One worker's training: (lines to print, outputs)."""
    if options.threads is not None:
        _native.set_threads(options.threads)
    if options.isa:
        _native.set_isa(options.isa)
    device = f"cuda:{rank}" if options.device == "cuda" else options.device
    trainer = training(device=device, **settings)
    trainer.micro_batch = options.micro_batch
    if options.resume and not options.save:
        raise _native.BadInput("--resume: --save names no receipt to go on from")
    weights = lambda: digest.state_digest(dict(trainer.model.named_parameters()))
    lines = {"initial weights": weights()}
    recorder = Recorder(
        trainer, options.save, script=script, settings=settings,
        every=options.every, resume=options.resume,
    )  # fmt: skip
    receipt = recorder.run(options.steps)
    if receipt is None:
        return None
    lines["trained weights"] = weights()
    found = None
    if outputs is not None:
        with torch.no_grad():
            found = outputs(trainer).cpu()
        lines["logits"] = hashlib.sha256(digest.bytes_of(found.contiguous())).hexdigest()
    losses = struct.pack(f"<{len(receipt)}f", *receipt.losses)
    lines["loss curve"] = hashlib.sha256(losses).hexdigest()
    lines["receipt"] = receipt.hash
    first, last = receipt.losses[0], receipt.losses[-1]
    lines["loss"] = f"{first:.6f} to {last:.6f} in {len(receipt)} steps"
    return lines, found
