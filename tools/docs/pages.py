"""What the checks of the documents share: the pages, and Markdown as sentences."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Pages that programs write; `generate.py` writes the first five.
GENERATED = {
    "docs/reference/cli-options.md",
    "docs/reference/errors.md",
    "docs/reference/model-keys.md",
    "docs/reference/model-types.md",
    "docs/reference/operations.md",
    "docs/reference/onnx.md",
    "docs/reference/models.md",
    "docs/reference/speed-tables.md",
    "docs/evidence/reports.md",
}
# Pages of an earlier day stay as they were written.
DATED = ("docs/notebook/", "docs/evidence/")
OTHERS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "src/README.md")


def pages(root=ROOT):
    """{path: text} of the documents."""
    found = sorted(p.relative_to(root).as_posix() for p in (root / "docs").rglob("*.md"))
    return {p: (root / p).read_text() for p in (*OTHERS, *found) if (root / p).is_file()}


def handwritten(files):
    return {p: t for p, t in files.items() if p not in GENERATED and not p.startswith(DATED)}


def plain(text):
    """A line as a reader sees it: comments, link targets and emphasis are gone."""
    text = re.sub(r"<!--.*?-->", "", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return text.replace("**", "")


def prose(text):
    """(line number, line, kind) of what is not code; kind: text, item, heading, table or blank."""
    fenced = False
    for n, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            yield n, "", "blank"
        elif fenced or line.startswith("    "):
            yield n, "", "blank"
        elif not line.strip():
            yield n, "", "blank"
        elif line.startswith("#"):
            yield n, line, "heading"
        elif line.startswith("|"):
            yield n, line, "table"
        elif re.match(r"\s*([-*]|\d+\.)\s", line):
            yield n, line, "item"
        else:
            yield n, line, "text"


def paragraphs(text):
    """(line number, text) of paragraphs, list items and cells of tables."""
    start, parts = 0, []
    for n, line, kind in [*prose(text), (0, "", "blank")]:
        if kind != "text" and parts:
            yield start, " ".join(parts)
            parts = []
        if kind == "table":
            for cell in re.split(r"(?<!\\)\|", line):
                if cell.strip(" -:"):
                    yield n, plain(cell.strip())
        elif kind in ("text", "item"):
            if not parts:
                start = n
            parts.append(
                plain(re.sub(r"^\s*([-*]|\d+\.)\s+", "", line) if kind == "item" else line.strip())
            )


def sentences(paragraph):
    """The sentences of a paragraph. Code in backticks is one word."""
    text = re.sub(r"`[^`]*`", lambda m: "x" * len(m.group(0)), paragraph)
    ends = [m.end(1) for m in re.finditer(r"([.!?][)\"*]?)(?=\s+[A-Z\[(*\"`x0-9<−]|$)", text)]
    start = 0
    for end in [*ends, len(text)]:
        if text[start:end].strip():
            yield text[start:end].strip()
        start = end


def report(check, self_test, files=None):
    """The main of a check: prints findings, and returns 1 if there are any; --self-test shows that
    the check can fail."""
    if "--self-test" in sys.argv[1:]:
        wrong = [title for title, tree, expected in self_test if len(check(tree)) != expected]
        for title in wrong:
            print(f"'{title}' is not judged as expected")
        print(f"{len(self_test) - len(wrong)} of {len(self_test)} cases as expected")
        return 1 if wrong else 0
    found = check(pages() if files is None else files)
    print("\n".join([*found, f"{len(found)} findings"]))
    return 1 if found else 0
