#!/usr/bin/env python3
"""docs/reference/speed-tables.md from the files of `invar bench --publish` in docs/reference/bench:
a table a device.

bench_page.py [--check]

--check writes nothing: exit code 1 where the page would be another."""

import argparse
import json
import re
import statistics
import sys
import textwrap

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


def size(amount):
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount >= scale:
            return f"{amount / scale:.3g} {unit}"
    return f"{amount:.0f} B"


def unsteady(row):
    """As bench/run.h says: something else had the cores."""
    return any(
        row[name] > 1.5 * row[best]
        for name, best in (("seconds", "best_seconds"), ("peer_seconds", "peer_best_seconds"))
    )


def comparison(row):
    """[the peer's time over ours, what the peer called]"""
    if not row.get("peer"):
        return ["–", "–"]
    return [f"{row['ratio']:.2f}{' ~' if unsteady(row) else ''}", cell(row["peer"])]


def table(rows, compared):
    head = ["operation", "shape", "instruction set", "threads", "time", "moves", "rate", "of limit"]
    head += ["peer / ours", "peer's call"] if compared else []
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for r in rows:
        share = f"{r['fraction_of_limit']:.0%}" if r.get("fraction_of_limit") else "–"
        cells = [f"`{r['op']}`", cell(r["shape"]), r["isa"], r["threads"] or "–"]
        cells += [duration(r["seconds"]), size(r["bytes"]) if r["bytes"] else "–", rate(r), share]
        cells += comparison(r) if compared else []
        yield "| " + " | ".join(map(str, cells)) + " |"


def name_of(report):
    return cell(
        report["cpu"] if report["device"] == "cpu" else f"{report['device']} ({report['cpu']})"
    )


def ratios(report):
    """Quartiles of the peer's time over ours, of the rows that are steady."""
    found = sorted(r["ratio"] for r in report["rows"] if r.get("peer") and not unsteady(r))
    if len(found) < 2:
        return [f"{x:.2f}" for x in found * 3] or ["–"] * 3
    return [f"{x:.2f}" for x in statistics.quantiles(found, n=4, method="inclusive")]


def overview(reports):
    """A row a report: which device, against what, and how the ratios lie."""
    head = ["device", "day", "peer", "measurements", "first quartile", "median", "third quartile"]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for r in reports:
        low, middle, high = ratios(r)
        row = [name_of(r), r["day"], cell(r.get("peer") or "–"), len(r["rows"]), low, middle, high]
        yield "| " + " | ".join(map(str, row)) + " |"


def page(reports):
    lines = [
        "# Speed by device",
        "",
        "`tools/docs/bench_page.py` writes this page from the files in `docs/reference/bench`, which",
        "`invar bench --publish FILE` makes. Add yours: run it on a quiet machine, with `--peer torch`",
        "where PyTorch is, and put the file there. [Benchmarks](bench.md) says how it is measured, and",
        "[Speed](performance.md) compares with other libraries.",
    ]
    if not reports:
        lines += ["", "No machine has a file there yet."]
    else:
        lines += [
            "",
            "The ratio is the peer's time over ours: above 1 Invar is faster. `~` marks one that",
            "something else on the machine disturbed. The quartiles of a device leave those out. A call",
            "moves its operands, its memory and its results once each.",
            "",
            *overview(reports),
        ]
    for r in reports:
        lines += ["", f"## {name_of(r)}, {r['day']}", ""]
        limits = "; ".join(
            f"{x['isa']}, {x['threads'] or 'all'} thread{'s' if x['threads'] != 1 else ''}: "
            f"{x['flops_per_second'] / 1e9:.3g} GFLOP/s, {x['read_bytes_per_second'] / 1e9:.3g} GB/s read"
            for x in r["limits"]
        )
        against = f" against {cell(r['peer'])}" if r.get("peer") else ""
        prose = (
            f"Invar {r['version']}{against}. Limits of the machine, measured in the same run: {limits}. "
            f"The process had at most {r['most_memory_bytes'] / 2**20:,.0f} MiB of memory."
        )
        lines += textwrap.wrap(prose, 100, break_on_hyphens=False)
        for suite in dict.fromkeys(row["suite"] for row in r["rows"]):
            lines += ["", f"### {suite}", ""]
            rows = [row for row in r["rows"] if row["suite"] == suite]
            lines += table(rows, any(row.get("peer") for row in rows))
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
