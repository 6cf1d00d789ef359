#!/usr/bin/env python3
"""Links to a heading of a document: the heading exists.

check_anchors.py [--self-test]

tools/laws/clauses.py checks that the linked file exists. Exit code 1 where a heading does not."""

import posixpath
import re
import sys

from pages import pages, prose, report

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")


def slug(heading):
    """The anchor that a heading has where Markdown is shown."""
    text = re.sub(r"\]\([^)]*\)|[`*\[]", "", heading.lstrip("# "))
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def check(files):
    anchors = {
        path: {slug(line) for _, line, kind in prose(text) if kind == "heading"}
        for path, text in files.items()
    }
    found = []
    for path, text in files.items():
        for m in LINK.finditer(text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), m.group(1)))
            target = target if m.group(1) else path
            if target in anchors and m.group(2) not in anchors[target]:
                line = text.count("\n", 0, m.start()) + 1
                found.append(f"{path}:{line}: {target} has no heading #{m.group(2)}")
    return found


PAGE = "# One\n\n## What `a` *is*, here\n\n```\n# no heading\n```\n"
SELF_TEST = [
    ("no such heading", {"README.md": "[x](docs/a.md#two)\n", "docs/a.md": PAGE}, 1),
    ("no such heading here", {"docs/a.md": PAGE + "[x](#two)\n"}, 1),
    ("a comment of code", {"docs/a.md": PAGE + "[x](#no-heading)\n"}, 1),
    ("fine", {"docs/a.md": PAGE + "[x](#what-a-is-here) [y](https://x.org/#z) [z](a.md#one)\n"}, 0),
]

if __name__ == "__main__":
    sys.exit(report(check, SELF_TEST, pages()))
