#!/usr/bin/env python3
"""docs/reference/speed-tables.md from the files of `invar bench --publish` in docs/reference/bench:
tables by device, with a column for each peer.

bench_page.py [--check]

--check writes nothing: exit code 1 where the page would be another."""

import argparse
import json
import statistics
import sys
import textwrap

from pages import ROOT

FOLDER = ROOT / "docs/reference/bench"
PAGE = ROOT / "docs/reference/speed-tables.md"
SCHEMA = "invar-bench 1"
SUITES = {
    "gemm": "matrix products of many rows: prompts, batches",
    "decode": "products of one to four rows: an answer, token by token",
    "attention": "attention and its relatives",
    "conv": "convolutions and pooling",
    "norm": "normalisations, softmax, reductions, sorting",
    "math": "functions of elements, casts, look-ups",
    "move": "transposes, slices, copies",
    "model": "a whole model, a token of it",
}
INTRODUCTION = """
`tools/docs/bench_page.py` writes this page from the files in `docs/reference/bench`, which
`invar bench --publish FILE` makes. Add yours: run it on a quiet machine, beside a peer
(`--peer torch`, `--peer onnxruntime`, a file for each), and put the file there. A run that was
interrupted goes on when it is started again. [Benchmarks](bench.md) says how it is measured, and
[Speed](performance.md) has whole models and other libraries.
"""
READING = """
A ratio is the peer's time over ours: above 1 Invar is faster. The peers compute with other bits:
they may add in any order. `~` marks a ratio that something else on the machine disturbed, and the
summaries leave it out. *Of limit* is the share of what this processor can do: the multiply-adds
that it computes in registers, or the bytes that it moves, whichever takes longer. A shape lists the
operands, then the attributes; a type other than f32 stands before it. `–` says that the peer has no
such call.
"""


def cell(text):
    return str(text).replace("|", "\\|")


def duration(seconds):
    """Three digits, in the unit in which they are read at once."""
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= scale or unit == "ns":
            digits = seconds / scale
            return f"{digits:.3g} {unit}" if digits < 1000 else f"{digits:.0f} {unit}"


def markdown(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"


def unsteady(row):
    """As bench/run.h says: something else had the cores."""
    return any(
        row[name] > 1.5 * row[best]
        for name, best in (("seconds", "best_seconds"), ("peer_seconds", "peer_best_seconds"))
    )


def name_of(report):
    return cell(
        report["cpu"] if report["device"] == "cpu" else f"{report['device']} ({report['cpu']})"
    )


def library(report):
    """A peer's name without what it says of the machine."""
    return cell(report["peer"].split(" (")[0])


def steady(report, suite=None):
    return [
        row["ratio"]
        for row in report["rows"]
        if row.get("peer") and not unsteady(row) and suite in (None, row["suite"])
    ]


def quartiles(ratios):
    if len(ratios) < 2:
        return [f"{x:.2f}" for x in ratios * 3] or ["–"] * 3
    return [f"{x:.2f}" for x in statistics.quantiles(ratios, n=4, method="inclusive")]


def compared(ratios):
    """The median, and how often Invar is at least as fast."""
    if not ratios:
        return "–"
    faster = sum(x >= 1 for x in ratios)
    return f"{statistics.median(ratios):.2f}, {faster} of {len(ratios)}"


def overview(reports):
    """A row a report: which device, beside what, and how the ratios lie."""
    head = ["device", "day", "peer", "calls", "first quartile", "median", "third quartile"]
    rows = (
        [name_of(r), r["day"], cell(r.get("peer") or "–"), len(r["rows"]), *quartiles(steady(r))]
        for r in reports
    )
    return markdown(head, rows)


def summary(reports):
    """Of one device: a row a suite."""
    beside = [r for r in reports if r.get("peer")]
    head = ["suite", "what", "of limit, median"]
    head += [f"{library(r)} / ours: median, as fast or faster" for r in beside]
    suites = {row["suite"]: [] for r in reports for row in r["rows"]}
    for row in reports[0]["rows"]:
        suites[row["suite"]].append(row.get("fraction_of_limit") or 0)
    rows = (
        [f"[{suite}](#{anchor(reports[0], suite)})", SUITES.get(suite, "")]
        + [f"{statistics.median(shares):.0%}" if shares else "–"]
        + [compared(steady(r, suite)) for r in beside]
        for suite, shares in suites.items()
    )
    return markdown(head, rows)


def anchor(report, suite):
    return f"{suite}-on-" + "".join(
        c for c in name_of(report).lower().replace(" ", "-") if c.isalnum() or c in "-_"
    )


def joined(reports, suite):
    """{(operation, shape, instruction set): {threads: [a report's row or None]}}"""
    calls = {}
    for i, report in enumerate(reports):
        for row in report["rows"]:
            if row["suite"] == suite:
                call = calls.setdefault((row["op"], row["shape"], row["isa"]), {})
                call.setdefault(row["threads"], [None] * len(reports))[i] = row
    return calls


def table(reports, suite):
    """A row a call; for each number of threads the time, the share of the limit, the ratios."""
    calls = joined(reports, suite)
    threads = sorted({t for call in calls.values() for t in call})
    beside = [i for i, r in enumerate(reports) if r.get("peer")]
    head = ["operation", "shape"]
    isas = len({isa for _, _, isa in calls}) > 1
    head += ["instruction set"] if isas else []
    for t in threads:
        many = {0: "", 1: ", 1 thread"}.get(t, f", {t} threads")
        head += [f"time{many}", "of limit", *(f"{library(reports[i])} / ours" for i in beside)]
    rows = []
    for (op, shape, isa), call in calls.items():
        cells = [f"`{op}`", cell(shape)] + ([isa] if isas else [])
        for t in threads:
            measured = call.get(t, [None] * len(reports))
            ours = next((row for row in measured if row), None)
            share = ours and ours.get("fraction_of_limit")
            cells += [duration(ours["seconds"]) if ours else "–", f"{share:.0%}" if share else "–"]
            for row in (measured[i] for i in beside):
                known = row and row.get("peer")
                cells.append(f"{row['ratio']:.2f}{' ~' * unsteady(row)}" if known else "–")
        rows.append(cells)
    return markdown(head, rows)


def circumstances(report):
    """When and beside what, the machine's limits, and who else was there."""
    limits = "; ".join(
        f"{x['isa']}, {x['threads'] or 'all'} thread{'s' if x['threads'] != 1 else ''}: "
        f"{x['flops_per_second'] / 1e9:.3g} GFLOP/s, {x['read_bytes_per_second'] / 1e9:.3g} GB/s read"
        for x in report["limits"]
    )
    peer = f" beside {cell(report['peer'])}" if report.get("peer") else ""
    text = f"Invar {report['version']}{peer}, {report['day']}."
    text += f" Limits of the machine in this run: {limits}." if limits else ""
    text += f" The process had at most {report['most_memory_bytes'] / 2**20:,.0f} MiB of memory."
    if report.get("seconds"):
        share = report["seconds_of_others"] / report["seconds"]
        of = f" of {report['processors']}" if report.get("processors") else ""
        text += f" On average other programs kept {share:.2f}{of} processors busy."
    return textwrap.wrap(text, 100, break_on_hyphens=False)


def section(reports):
    yield from ("", f"## {name_of(reports[0])}")
    for report in reports:
        yield from ("", *circumstances(report))
    yield from ("", *summary(reports))
    for suite in dict.fromkeys(row["suite"] for r in reports for row in r["rows"]):
        # Suites have the same names on each device: an anchor needs the device.
        yield from ("", f"### {suite} on {name_of(reports[0])}", "")
        yield from table(reports, suite)


def page(reports):
    lines = ["# Speed by device", *INTRODUCTION.rstrip().split("\n")]
    if not reports:
        return "\n".join([*lines, "", "No machine has a file there yet."]) + "\n"
    devices = {}
    for report in reports:
        devices.setdefault(name_of(report), {}).setdefault(report.get("peer"), []).append(report)
    if any(len(files) > 1 for peers in devices.values() for files in peers.values()):
        sys.exit("bench_page.py: two files of one device and one peer: keep one of them")
    lines += [*READING.rstrip().split("\n"), "", *overview(reports)]
    for peers in devices.values():
        lines += section([report for (report,) in peers.values()])
    return "\n".join(lines) + "\n"


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
