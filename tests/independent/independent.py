#!/usr/bin/env python3
"""The independent implementation on the command line.

independent.py run MODEL --prompt-text TEXT --receipt-path FILE [--max-new-tokens N] ...
independent.py verify MODEL RECEIPT
Exit 0: done, or verified; 1: not verified, with the first finding.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from arithmetic.library import f32  # noqa: E402
from pages.model import Model  # noqa: E402
from pages.sampling import Parameters  # noqa: E402

EXECUTION = {"device": "cpu", "program": "tests/independent"}


def parameters_of(model, args):
    """Options, else the defaults of the checkpoint."""
    asked = [args.temperature, args.top_k, args.top_p]
    defaults = model.defaults
    if args.no_do_sample or not (
        defaults.get("do_sample") or any(option is not None for option in asked)
    ):
        return Parameters()  # a receipt of a greedy run states no seed
    temperature, top_k, top_p = (
        option if option is not None else defaults.get(name, otherwise)
        for option, (name, otherwise) in zip(
            asked, {"temperature": 1.0, "top_k": 50, "top_p": 1.0}.items()
        )
    )
    return Parameters(True, f32(temperature), top_k, f32(top_p), args.seed)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("model")
    run.add_argument("--prompt-text", required=True)
    run.add_argument("--receipt-path", required=True)
    run.add_argument("--max-new-tokens", type=int, default=128)
    run.add_argument("--temperature", type=float)
    run.add_argument("--top-k", type=int)
    run.add_argument("--top-p", type=float)
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--no-do-sample", action="store_true")
    verify = commands.add_parser("verify")
    verify.add_argument("model")
    verify.add_argument("receipt")
    args = parser.parse_args()
    model = Model(args.model)
    if args.command == "run":
        parameters = parameters_of(model, args)
        receipt = model.run(args.prompt_text, args.max_new_tokens, parameters, EXECUTION)
        Path(args.receipt_path).write_text(json.dumps(receipt, indent=1), encoding="utf-8")
        print(receipt["receipt_hash"])
        return 0
    finding = next(model.findings(json.loads(Path(args.receipt).read_bytes())), None)
    print(f"NOT VERIFIED: {finding}" if finding else "VERIFIED")
    return 1 if finding else 0


if __name__ == "__main__":
    sys.exit(main())
