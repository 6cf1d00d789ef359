"""python -m invar.training: receipts of trainings in files.

Exit codes as those of `invar`: 0 it holds, 1 it does not, 2 bad input, 3 not covered, 70 an error
of the script or of invar itself."""

import argparse
import sys
import traceback

import invar
from invar import training
from invar.training.receipt import printable


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m invar.training", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("receipt", metavar="RECEIPT")
        if name == "compare":
            command.add_argument("other", metavar="OTHER")
        if name in ("verify", "bisect"):
            command.add_argument(
                "--script",
                help="the script of the receipt; otherwise the one beside it. It is executed",
            )
            command.add_argument("--device", help="for the script's training(device=...)")
            command.add_argument("--micro-batch", type=int, help="units that are computed at once")
            command.add_argument("--threads", type=int, help="threads of the host")
        if name == "verify":
            command.add_argument("--steps", help="A:B: only the steps from A up to, and without, B")
    options = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):  # names may have characters that the terminal has not
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        return globals()[options.command](options)
    except invar.Error as e:
        print(f"invar: {printable(e)}", file=sys.stderr)
        return 3 if isinstance(e, invar.NotCovered) else 2
    except Exception as e:  # Python's own code, 1, would say that the receipt does not hold
        traceback.print_exc()
        print(f"invar: nothing is judged: {type(e).__name__}", file=sys.stderr)
        return 70


COMMANDS = {
    "verify": "executes steps again and says whether they hold",
    "bisect": "finds a wrong step by halves",
    "compare": "says in which step two receipts of one training differ first",
    "validate": "checks form and hashes alone",
}


def program(options, receipt):
    """The function that makes the trainer, with the options of execution."""
    from invar.training.script import refuse_device
    from invar.training.verification import maker

    if options.device:
        refuse_device(options.device)
    if options.threads is not None:
        invar.set_threads(options.threads)
    make = maker(receipt, options.script)

    def made():
        trainer = make(**({"device": options.device} if options.device else {}))
        if options.micro_batch is not None:
            trainer.micro_batch = options.micro_batch
        return trainer

    return made


def verify(options):
    receipt = training.Receipt.read(options.receipt)
    verdict = training.verify(receipt, program(options, receipt), options.steps)
    whole = verdict.holds and (verdict.first, verdict.last) == (0, len(receipt))
    word = "VERIFIED" if whole else "holds" if verdict.holds else "DIFFERS"
    print(f"{word}: {printable(verdict.text)}")
    return 0 if verdict.holds else 1


def bisect(options):
    receipt = training.Receipt.read(options.receipt)
    found = training.bisect(receipt, program(options, receipt))
    for first, last, same in found.ranges:
        print(f"state {first} to {last}: {'the same' if same else 'another'} state")
    print(f"{'holds' if found.step is None else 'DIFFERS'}: {printable(found.text)}")
    return 0 if found.step is None else 1


def compare(options):
    ours, theirs = map(training.Receipt.read, (options.receipt, options.other))
    step = training.first_difference(ours, theirs)
    if step is None:
        print("the same steps" if len(ours) == len(theirs) else "one receipt continues the other")
        return 0
    print("they begin differently" if step < 0 else f"step {step} differs first")
    return 1


def validate(options):
    receipt = training.Receipt.read(options.receipt)
    print(f"valid: {len(receipt)} steps, {receipt.hash}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
