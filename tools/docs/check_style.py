#!/usr/bin/env python3
"""Style of the documents: no sentence over 40 words, no line over 100 columns, no words that
readers stumbled over.

check_style.py [--self-test]

Generated pages, the notebook and the evidence are left out, and so is code; of the generated pages
the help of the commands is read for words. The width leaves out
tables and the targets of links. A word has a letter, so figures are none. Exit code 1 where a page
breaks a rule."""

import re
import sys

from pages import handwritten, pages, paragraphs, plain, prose, report, sentences

MOST_WORDS, MOST_COLUMNS = 40, 100
RECORDS = ("docs/design/adr/", "docs/decisions.md", "CHANGELOG.md")  # of their day
HELP = "docs/reference/cli-options.md"
# What readers did not understand at once -> what to say.
UNCLEAR = {
    r"so many": "N, or this number of",
    r"(?<!leave )(?<!leaves )(?<!-)behind": "after",
    r"stands?(?! for)": "is, or comes",
    r"anew": "again",
    r"[Ww]ho (?:has|knows|wants)": "if you",
    r"on another way": "by another channel",
}


def check(files):
    found = []
    for path, text in handwritten(files).items():
        for n, line, kind in prose(text):
            width = len(plain(line))
            if kind in ("text", "item", "heading") and width > MOST_COLUMNS:
                found.append(f"{path}:{n}: {width} columns, at most {MOST_COLUMNS}")
        for n, paragraph in paragraphs(text):
            found += [] if path.startswith(RECORDS) else unclear(path, n, paragraph)
            for sentence in sentences(paragraph):
                words = sum(bool(re.search(r"[A-Za-z]", word)) for word in sentence.split())
                if words > MOST_WORDS:
                    found.append(
                        f"{path}:{n}: {words} words, at most {MOST_WORDS}: {sentence[:70]}..."
                    )
    for n, line in enumerate(files.get(HELP, "").split("\n"), 1):
        found += unclear(HELP, n, line)
    return found


def unclear(path, n, text):
    text = re.sub(r"`[^`]*`", "", text)
    return [
        f"{path}:{n}: '{m[0]}': say '{better}'"
        for words, better in UNCLEAR.items()
        for m in re.finditer(rf"\b{words}\b", text)
    ]


LONG = "One" + " word" * 14 + ("\n" + "word " * 14) * 2 + "more.\n"
SELF_TEST = [
    ("a long sentence", {"README.md": LONG}, 1),
    (
        "a long sentence over several lines",
        {"docs/guide/x.md": LONG.replace("word word", "word\nword")},
        1,
    ),
    ("a long sentence of a list", {"docs/guide/x.md": "- " + LONG}, 1),
    (
        "a long cell",
        {"docs/reference/x.md": "| a |\n|---|\n| " + LONG.replace("\n", " ") + "|\n"},
        1,
    ),
    ("a wide line", {"src/README.md": "x" * 101 + "\n"}, 1),
    ("two sentences", {"README.md": ("One " + "word\n" * 30 + "here. ") * 2 + "\n"}, 0),
    ("figures", {"README.md": "Times: " + "1.5,\n" * 50 + "2.\n"}, 0),
    (
        "code and links",
        {
            "README.md": "```\n"
            + "x" * 200
            + "\n```\n\n    "
            + "word " * 50
            + "\n\n[a]("
            + "x" * 100
            + ")\n"
        },
        0,
    ),
    ("code is a word", {"README.md": "One `" + "a b\n" * 50 + "` more.\n"}, 0),
    ("a wide table", {"README.md": "| " + "x" * 200 + " |\n"}, 0),
    ("unclear words", {"README.md": "It stands behind so many.\n", HELP: "  after so many\n"}, 4),
    (
        "words that are clear",
        {"README.md": "x stands for y. `behind`. It leaves behind a file.\n"},
        0,
    ),
    ("the notebook", {"docs/notebook/x.md": LONG + "x" * 200 + "\n"}, 0),
    ("fine", {"README.md": "# Title\n\nOne fact. Another fact.\n"}, 0),
]

if __name__ == "__main__":
    sys.exit(report(check, SELF_TEST, pages()))
