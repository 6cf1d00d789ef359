#!/usr/bin/env python3
"""docs/reference/speed-tables.md from the files of `invar bench --publish` in docs/reference/bench:
a table a device.

bench_page.py [--check]

--check writes nothing: exit code 1 where the page would be another."""

import argparse
import json
import re
import sys

from pages import ROOT

FOLDER = ROOT / "docs/reference/bench"
PAGE = ROOT / "docs/reference/speed-tables.md"
SCHEMA = "invar-bench 1"


def cell(text):
    return str(text).replace("|", "\\|")


def duration(seconds):
    """Three digits, in the unit in which they are read at once."""
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= scale or unit == "ns":
            digits = seconds / scale
            return f"{digits:.3g} {unit}" if digits < 1000 else f"{digits:.0f} {unit}"


def rate(row):
    for amount, unit in ((row["flops"], "FLOP/s"), (row["bytes"], "B/s")):
        if amount:
            per_second = amount / row["seconds"]
            return f"{per_second / 1e9:.3g} G{unit}"
    return "–"


def table(rows):
    peers = sorted({r["peer"] for r in rows if r.get("peer")})
    head = ["operation", "shape", "instruction set", "threads", "time", "rate", "of limit"]
    head += [f"{p} / ours" for p in peers]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for r in rows:
        cells = [f"`{r['op']}`", cell(r["shape"]), r["isa"], r["threads"] or "–", duration(r["seconds"]),
                 rate(r), f"{r['fraction_of_limit']:.0%}" if r.get("fraction_of_limit") else "–"]  # fmt: skip
        cells += [
            f"{r['ratio']:.2f}" if r.get("peer") == p and r.get("ratio") else "–" for p in peers
        ]
        yield "| " + " | ".join(map(str, cells)) + " |"


def page(reports):
    lines = [
        "# Speed by device",
        "",
        "`tools/docs/bench_page.py` writes this page from the files in `docs/reference/bench`, which",
        "`invar bench --publish FILE` makes. Add yours: run it on a quiet machine, with `--peer torch`",
        "where PyTorch is, and put the file there. [Benchmarks](bench.md) says how it is measured, and",
        "[Speed](performance.md) compares with other libraries.",
    ]
    for r in reports:
        device = r["cpu"] if r["device"] == "cpu" else f"{r['device']} ({r['cpu']})"
        lines += ["", f"## {cell(device)}, {r['day']}", ""]
        limits = "; ".join(
            f"{x['isa']}, {x['threads'] or 'all'} thread{'s' if x['threads'] != 1 else ''}: "
            f"{x['flops_per_second'] / 1e9:.3g} GFLOP/s, {x['read_bytes_per_second'] / 1e9:.3g} GB/s read"
            for x in r["limits"]
        )
        lines += [
            f"Invar {r['version']}. Limits of the machine, measured in the same run: {limits}. The process",
            f"had at most {r['most_memory_bytes'] / 2**20:,.0f} MiB of memory.",
        ]
        for suite in dict.fromkeys(row["suite"] for row in r["rows"]):
            lines += ["", f"### {suite}", ""]
            lines += table([row for row in r["rows"] if row["suite"] == suite])
    headings = [line for line in lines if line.startswith("## ")]
    if len(set(headings)) != len(headings):
        sys.exit("bench_page.py: two files of one device and one day: keep one of them")
    text = "\n".join(lines) + "\n"
    # Suites have the same names on each device: an anchor needs the device.
    return re.sub(r"^### (.*)$", numbered(), text, flags=re.M)


def numbered():
    seen = {}

    def heading(match):
        n = seen[match.group(1)] = seen.get(match.group(1), 0) + 1
        return match.group(0) if n == 1 else f"{match.group(0)} ({n})"

    return heading


def reports():
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        one = json.loads(path.read_text())
        if one.get("schema") != SCHEMA:
            sys.exit(f"{path}: no {SCHEMA!r}: invar bench --publish makes it")
        found.append(one)
    return found


def main():
    ask = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ask.add_argument("--check", action="store_true")
    given = ask.parse_args()
    text = page(reports())
    if given.check:
        return int(not PAGE.is_file() or PAGE.read_text() != text)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
