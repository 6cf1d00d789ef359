#!/usr/bin/env python3
"""Compares Invar's Python package with torch, call by call: torch's own catalogue of operations
(OpInfo) and random calls. Each call agrees with torch, or is refused by name.

    build/venv/bin/python tools/parity.py                    all of the catalogue, 20,000 random
                                                             calls
    build/venv/bin/python tools/parity.py --random 100000 --seed 7
    build/venv/bin/python tools/parity.py --only cosine      operations whose name has this text

--build FOLDER: the build whose package is compared (default: build). --refusals: what is refused,
how often. Ends with 1 where a call is at fault. tests/package/parity has the parts and runs a
sample."""

import argparse
import collections
import re
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--random", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="of the catalogue")
    parser.add_argument("--only", default="", help="operations whose name has this text")
    parser.add_argument("--refusals", action="store_true")
    return parser.parse_args()


def every_call(given):
    import catalogue
    import fuzzer
    from compared import seeded

    for op, dtype in catalogue.pairs(given.seed, given.share):
        if given.only in op.name:
            yield from catalogue.calls(op, dtype, seed=given.seed)
    for op in catalogue.operations() if given.share else ():
        if given.only in op.name:
            yield from catalogue.wrong_calls(op)
    for call in fuzzer.calls(seeded("random", given.seed), given.random):
        if given.only in call.name:
            yield call


def main():
    given = arguments()
    sys.path[:0] = [str(Path(given.build) / "python"), str(ROOT / "tests/package/parity")]
    warnings.simplefilter("ignore")
    from compared import FAULTS, REFUSED, judged

    counts, refused, begun = collections.Counter(), collections.Counter(), time.monotonic()
    for call in every_call(given):
        verdict, why = judged(call)
        counts[verdict] += 1
        if verdict in FAULTS:
            print(f"{verdict}: {call}: {why}", flush=True)
        elif verdict == REFUSED:
            refused[re.sub(r"\(.*|\[.*?\]|\d+", "", why)[:110]] += 1
    if given.refusals:
        for why, n in refused.most_common():
            print(f"{n:6} {why}")
    print(f"{dict(counts)} in {time.monotonic() - begun:.0f} s")
    return 1 if any(counts[kind] for kind in FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
