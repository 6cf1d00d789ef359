#!/usr/bin/env python3
"""Draws the terminal interface for the documentation, docs/images/tui-*.svg, and what `verify` says
of a forged receipt, docs/images/lie.svg.

screenshots.py [--check]

Runs build/bin/invar-tui with the shipped model in a terminal of tmux, presses keys, and writes what
the terminal shows as text in SVG. Times and speeds come from steady_invar.py; the time of a run and
dates, which the terminal interface itself reads, are replaced by fixed ones. --check writes
nothing: exit code 1 where a file would be another. INVAR_BUILD: the build folder (default build);
INVAR_BIN: the program (default build/bin/invar)."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from pages import ROOT

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/tui")]
os.environ.setdefault("INVAR_BUILD", str(ROOT / "build"))
from conftest import BIN  # noqa: E402
from receipt_oracle import put, reseal  # noqa: E402
from terminal import Terminal, missing  # noqa: E402

WIDTH, HEIGHT = 8.4, 17  # of a cell
COLOURS = dict(enumerate("#2e3436 #cc4444 #4e9a06 #c4a000 #3465a4 #75507b #06989a #d3d7cf".split()))
BACKGROUND, FOREGROUND, DIM = "#16191d", "#d3d7cf", "#8a9299"


def fixed(text):
    """The text with what another run shows otherwise replaced, the rest in its columns."""
    text = re.sub(
        r"( +)((?:\x1b\[[0-9;]*m)*)(\d+ tokens/s  )(\d+(?:\.\d+)? m?s)\b",  # at the right end
        lambda m: " " * (len(m[1] + m[4]) - len("272 ms")) + m[2] + m[3] + "272 ms",
        text,
    )
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "2026-11-26 20:42", text)


class Cells:
    """What `tmux capture-pane -e` prints: runs of text with a style."""

    def __init__(self, line, style):
        self.runs = []  # (column, text, foreground, background, bold)
        # A line goes on with the style of the line above.
        self.front, self.back, self.bold, self.dim, self.reverse = style
        column = 0
        for i, part in enumerate(
            re.split(r"\x1b\[([0-9;]*)m", re.sub(r"\x1b\(B|\x0f|\x0e", "", line))
        ):
            if i % 2:
                self.set([int(c or 0) for c in part.split(";")])
            elif part:
                self.runs.append((column, part, *self.colours(), self.bold))
                column += len(part)

    def set(self, codes):
        for c in codes:
            if c == 0:
                self.front = self.back = None
                self.bold = self.dim = self.reverse = False
            elif c == 1:
                self.bold = True
            elif c == 2:
                self.dim = True
            elif c == 7:
                self.reverse = True
            elif 30 <= c <= 37 or c == 39:
                self.front = COLOURS.get(c - 30)
            elif 40 <= c <= 47 or c == 49:
                self.back = COLOURS.get(c - 40)

    def style(self):
        return self.front, self.back, self.bold, self.dim, self.reverse

    def colours(self):
        front = self.front or (DIM if self.dim else FOREGROUND)
        back = self.back or BACKGROUND
        return (back, front) if self.reverse else (front, back)


def svg_of(capture, size):
    """The screen as SVG; what depends on the machine is fixed before the styles are read."""
    width, height = size[0] * WIDTH + 16, size[1] * HEIGHT + 16
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
        'font-size="14">',
        f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>',
    ]
    style = (None, None, False, False, False)
    for row, line in enumerate(capture.rstrip("\n").split("\n")):
        y = 8 + row * HEIGHT
        cells = Cells(fixed(line), style)
        style = cells.style()
        for column, text, front, back, bold in cells.runs:
            x, length = 8 + column * WIDTH, len(text) * WIDTH
            if back != BACKGROUND:
                out.append(
                    f'<rect x="{x:g}" y="{y}" width="{length:g}" height="{HEIGHT}" fill="{back}"/>'
                )
            if not text.strip():
                continue
            start = len(text) - len(text.lstrip())
            # Browsers make one space of many, and stretch the rest to textLength.
            text = text.strip().replace(" ", "\u00a0")
            weight = ' font-weight="bold"' if bold else ""
            out.append(
                f'<text x="{x + start * WIDTH:g}" y="{y + 13}" textLength="{len(text) * WIDTH:g}" '
                f'fill="{front}"{weight}>{escape(text)}</text>'
            )
    return "\n".join([*out, "</svg>\n"])


def pictures():
    """{file name: SVG}"""
    folder = Path(tempfile.mkdtemp(prefix="invar-pictures-"))
    size = (100, 28)
    (folder / "models").mkdir()
    (folder / "models/shakespeare-4m").symlink_to(ROOT / "models/shakespeare-4m")
    invar = Path(__file__).with_name("steady_invar.py")
    os.environ["INVAR_BIN"] = str(BIN)
    t = Terminal(folder, "--invar", invar, "--model-name", "models/shakespeare-4m", size=size)
    try:
        t.wait("F5 run")
        t.keys("Tab", "Tab", "Tab")
        t.type("ROMEO:")
        t.keys("Tab")
        t.type("64")
        t.wait("--max-new-tokens 64")
        form = t.screen(colours=True)
        t.keys("F5")
        t.wait("run: done", "not verified yet")
        t.keys("v")
        t.wait("VERIFIED", gone=["verifying"])
        t.keys("Tab", "Tab")
        t.wait("─ phases ─")
        run = t.screen(colours=True)
        for number, prompt in ((2, "JULIET:"), (3, "To be, or not to be")):
            t.keys("F2", "BTab", "C-u") if number == 2 else t.keys("F2", "C-u")
            t.type(prompt)
            t.wait("more options", prompt)
            t.keys("F5")
            t.wait("run: done", f"receipt   receipts/run-{number}.json", "not verified yet")
        t.keys("F4")
        t.wait("3 receipts")
        t.keys("v")
        t.wait("JULIET:", "To be, or", "verdict  VERIFIED")
        t.keys("Down")
        t.wait("file     receipts/run-2.json")
        receipts = t.screen(colours=True)
    finally:
        t.close()
        shutil.rmtree(folder, ignore_errors=True)
    shown = {"form": form, "run": run, "receipts": receipts}
    return {f"tui-{name}.svg": svg_of(capture, size) for name, capture in shown.items()}


def lie():
    """A receipt of which a token of the answer was changed, and then every digest: its form is
    valid, and the computation shows the lie."""
    folder = Path(tempfile.mkdtemp(prefix="invar-pictures-"))
    (folder / "models").symlink_to(ROOT / "models")
    homes = {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}

    def invar(*arguments):
        command = [BIN, *arguments, "--color", "always"]
        return subprocess.run(
            command, cwd=folder, env={**os.environ, **homes}, capture_output=True, text=True
        ).stdout

    model = ("--model-name", "models/shakespeare-4m")
    try:
        invar("run", *model, "--prompt-text", "ROMEO:", "--max-new-tokens", "24", "--receipt-path", "r.json")  # fmt: skip
        true = json.loads((folder / "r.json").read_text())
        tokens = true["output"]["tokens"]
        tokens = [*tokens[:8], tokens[3], *tokens[9:]]
        text = invar("decode", *model, "--tokens", ",".join(map(str, tokens)))
        claim = put(put(true, ("output", "tokens"), tokens), ("output", "text"), text.rstrip("\n"))
        (folder / "claim.json").write_text(json.dumps(reseal(claim)))
        shown = ""
        for command in ("validate", "verify"):
            shown += f"\x1b[1m$ invar {command} claim.json\x1b[0m\n"
            shown += invar(command, "claim.json").replace(str(ROOT), "~/invar") + "\n"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    lines = shown.rstrip("\n").split("\n")
    return svg_of(shown, (104, len(lines)))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    if missing():
        sys.exit(f"screenshots.py: {missing()}")
    other = []
    for name, svg in {**pictures(), "lie.svg": lie()}.items():
        path = ROOT / "docs/images" / name
        if check and (not path.exists() or path.read_text() != svg):
            other.append(name)
        elif not check:
            path.write_text(svg)
    if other:
        sys.exit(f"screenshots.py: other than what the program shows: {', '.join(other)}")


if __name__ == "__main__":
    main()
