#!/usr/bin/env python3
"""Checks the laws of the house (docs/design/architecture.md) on this checkout.

check.py [LAW...] [--build FOLDER]   all of them by default; `check.py --help` lists them
check.py --self-test [LAW...]        shows that each law can fail: broken miniature trees must be
                                     found, good ones not
Exit 0: kept; 1: broken, one line per finding; 2: bad usage. A law prints what it allows by name as
`allowed`.
"""

import argparse
import importlib
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "style")]
import law  # noqa: E402

LAWS = [
    "names", "includes", "sums", "flags", "kernels", "bytes", "clean", "clauses", "proofs", "eval_used",
    "independence", "attributes", "messages",
    "folders", "functions", "columns", "imports", "local_names",
]  # fmt: skip


def self_test(name, module):
    failed = 0
    for title, files, expected in module.SELF_TEST:
        found = module.check(files)
        if len(found) != expected:
            failed += 1
            print(f"{name}: '{title}': {len(found)} findings, expected {expected}: {found}")
    if not any(expected for _, _, expected in module.SELF_TEST) or all(
        expected for _, _, expected in module.SELF_TEST
    ):
        failed += 1
        print(f"{name}: needs a case that fails and one that passes")
    print(f"{name}: {len(module.SELF_TEST) - failed} of {len(module.SELF_TEST)} cases as expected")
    return failed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("laws", nargs="*", metavar="LAW", help=", ".join(LAWS))
    parser.add_argument("--build", metavar="FOLDER", help="also check compile_commands.json there")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    for name in args.laws:
        if name not in LAWS:
            parser.error(f"no law '{name}'; there are {', '.join(LAWS)}")
    bad = 0
    files = {} if args.self_test else law.tree()
    built = (
        {"compile_commands.json": (Path(args.build) / "compile_commands.json").read_text()}
        if args.build
        else {}
    )
    for name in args.laws or LAWS:
        module = importlib.import_module(name)
        if args.self_test:
            bad += self_test(name, module)
        else:
            found = module.check({**files, **built} if name == "flags" else files)
            bad += len(found)
            for f in found:
                print(f)
            for note in module.notes(files) if hasattr(module, "notes") else []:
                print(note)
            print(
                f"{name}: {len(found)} findings in {len(files)} files"
                if found
                else f"{name}: kept, {len(files)} files"
            )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
