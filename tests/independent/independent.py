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
    """Options, else the defaults of the checkpoint; sampling.md says what a greedy run states."""
    if args.no_do_sample:
        return Parameters()
    options = {"temperature": args.temperature, "top_k": args.top_k, "top_p": args.top_p}
    asked = {name: value for name, value in options.items() if value is not None}
    do_sample = bool(asked) or model.defaults.get("do_sample", False)
    found = {"temperature": 1, "top_k": 50 if do_sample else 0, "top_p": 1}
    found |= {name: model.defaults[name] for name in found if name in model.defaults} | asked
    return Parameters(
        do_sample, f32(found["temperature"]), found["top_k"], f32(found["top_p"]), args.seed
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("model")
    run.add_argument("--numerics", default="fp32", choices=["fp32", "exact16"])
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
    for command in (run, verify):
        command.add_argument("--adapter")
    verify.add_argument("--audio-path")
    args = parser.parse_args()
    if args.command == "run":
        profile = args.numerics
    else:
        receipt = json.loads(Path(args.receipt).read_bytes())
        profile = receipt["program"]["profile"]
    model = Model(args.model, profile, args.adapter, getattr(args, "audio_path", None))
    if args.command == "run":
        parameters = parameters_of(model, args)
        receipt = model.run(args.prompt_text, args.max_new_tokens, parameters, EXECUTION)
        Path(args.receipt_path).write_text(json.dumps(receipt, indent=1), encoding="utf-8")
        print(receipt["receipt_hash"])
        return 0
    finding = next(model.findings(receipt), None)
    print(f"NOT VERIFIED: {finding}" if finding else "VERIFIED")
    return 1 if finding else 0


if __name__ == "__main__":
    sys.exit(main())
