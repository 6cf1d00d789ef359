#!/usr/bin/env python3
"""Draws a lie that is caught, docs/images/dispute.svg: two parties and a judge, from the files that
`invar trace` and `invar dispute` write.

dispute_drawing.py [--check]

Party b changes one element of one result of the shipped model and every commitment to it, so that
no file of b contradicts another. The judge's questions lead to that element. --check writes
nothing: exit code 1 where the file would be another. INVAR_BUILD, INVAR_BIN: as for
screenshots.py."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from pages import ROOT

sys.path[:0] = [str(ROOT / "tests")]
os.environ.setdefault("INVAR_BUILD", str(ROOT / "build"))
from conftest import BIN  # noqa: E402
from receipt_oracle import merkle_root  # noqa: E402

DRAWING = ROOT / "docs/images/dispute.svg"
MODEL = ROOT / "models/shakespeare-4m"
RECEIPT = ROOT / "tests/golden/romeo.receipt.json"
ROW, LIE = 40, "0000c03f"  # the row, and what b says that its last element is: 1.5

GREY, EQUAL, OTHER, INK, PAPER = "#8a9199", "#3d9a5f", "#cc4444", "#d3d7cf", "#16191d"
WIDTH, LEFT, STRIP = 900, 24, 852


def invar(*arguments):
    done = subprocess.run([BIN, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return done.stdout


def traced(folder, *selection):
    path = folder / ("-".join(map(str, selection)).strip("-").replace(":", "-") or "all")
    invar("trace", RECEIPT, "--model-name", MODEL, *selection, "-o", path)
    return json.loads(path.read_text())


def sha(text):
    return hashlib.sha256(bytes.fromhex(text)).hexdigest()


def files(folder):
    """([the truth's trace, rows and values], the same of the liar, the result's place)."""
    trace = traced(folder)
    place = next(i for i, v in enumerate(trace["values"]) if "layers.2" in v["origin"]
                 and v["operation"].startswith("matmul"))  # fmt: skip
    value = trace["values"][place]["value"]
    rows = traced(folder, "--rows", value)
    values = traced(folder, "--values", f"{value}:{ROW}")
    lies = [json.loads(json.dumps(one)) for one in (trace, rows, values)]
    lies[2]["result"] = values["result"][:-8] + LIE
    lies[1]["rows"][ROW] = sha(lies[2]["result"])
    root = merkle_root([bytes.fromhex(r) for r in lies[1]["rows"]]).hex()
    for one in lies[0]["values"]:
        if one["value"] == value:
            one["root"] = root
    return [trace, rows, values], lies, place


def ruling_of(folder, truth, lies):
    """The judge's verdict, after as many rounds as it asks for."""
    case = folder / "case"
    judge = ("dispute", case, "--receipt", RECEIPT, "--model-name", MODEL, "--json")
    for party in "ab":
        (case / party).mkdir(parents=True)
    for number, answers in enumerate(zip(truth, lies), 1):
        json.loads(invar(*judge))
        for party, answer in zip("ab", answers):
            (case / party / f"{number}.json").write_text(json.dumps(answer))
    return json.loads(invar(*judge))


def text(x, y, said, colour=INK, size=14, bold=False):
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" fill="{colour}" font-size="{size}"{weight}>{escape(said)}</text>'


def strip(y, count, at):
    """Cells of one round: equal ones, and the one that differs."""
    wide = STRIP / count
    cells = []
    for i in range(count):
        colour = OTHER if i == at else EQUAL if i < at else GREY
        cells.append(
            f'<rect x="{LEFT + i * wide:.2f}" y="{y}" width="{max(wide * 0.8, 0.8):.2f}" '
            f'height="16" fill="{colour}"/>'
        )
    return "".join(cells), LEFT + (at + 0.4) * wide


def funnel(x, y):
    """From the cell that differs to the whole width of the next round."""
    return (
        f'<path d="M{x:.1f} {y} L{LEFT} {y + 34} L{LEFT + STRIP} {y + 34} Z" fill="{OTHER}" '
        'fill-opacity="0.10"/>'
    )


def drawing():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth, lies, place = files(folder)
        ruling = ruling_of(folder, truth, lies)
    value = truth[0]["values"][place]
    width = len(truth[2]["result"]) // 8
    rounds = (
        (f"1  Which operation?  {len(truth[0]['values'])} results, a digest each",
         len(truth[0]["values"]), place, f"{value['operation']} of {value['origin']}"),
        (f"2  Which position?  {len(truth[1]['rows'])} rows, a digest each",
         len(truth[1]["rows"]), ROW, f"row {ROW}"),
        (f"3  Which element?  {width} numbers, and what they are computed from",
         width, width - 1, f"element {ruling['details']['element']}"),
    )  # fmt: skip
    out, y = [text(LEFT, 34, "A lie that is caught", bold=True, size=18)], 66
    out.append(text(LEFT + 240, 34, "party a says what it computed, party b lies", GREY))
    for title, count, at, found in rounds:
        cells, x = strip(y + 10, count, at)
        out += [text(LEFT, y, title), text(LEFT + STRIP - 8.43 * len(found), y, found, OTHER)]
        out += [cells, funnel(x, y + 28)]
        y += 88
    details = ruling["details"]
    cost = f"{ruling['multiply_adds']:,} multiply-adds of {ruling['run_multiply_adds']:,}"
    out += [
        text(LEFT, y, f"The judge computes this element alone: {cost}"),
        text(LEFT, y + 26, f"party a  {details['a']}", EQUAL),
        text(LEFT + 300, y + 26, f"party b  {details['b']}", OTHER),
        text(LEFT + 560, y + 26, f"party {ruling['winner']} is right", EQUAL, bold=True),
    ]
    body = "\n".join(out)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 46}" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">\n'
        f'<rect width="100%" height="100%" rx="6" fill="{PAPER}"/>\n{body}\n</svg>\n'
    )


def main():
    ask = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ask.add_argument("--check", action="store_true")
    given = ask.parse_args()
    made = drawing()
    if given.check:
        return int(not DRAWING.is_file() or DRAWING.read_text() != made)
    DRAWING.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
