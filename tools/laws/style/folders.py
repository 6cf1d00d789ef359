"""House rule: a folder holds at most 15 files beside its sub-folders, so that a reader can take it
in at a glance.

Looked at: src, apps, tests, tools and bench.
"""

from collections import Counter
from posixpath import dirname

from law import finding

LIMIT = 15
ROOTS = ("src/", "apps/", "tests/", "tools/", "bench/")
# {folder: why it still holds more}; printed.
ALLOWED = {}


def crowded(files):
    """{folder: number of files flat in it} of those over the limit."""
    count = Counter(dirname(path) for path in files if path.startswith(ROOTS))
    return {folder: n for folder, n in sorted(count.items()) if n > LIMIT}


def check(files):
    found = [
        finding(
            folder,
            1,
            f"{n} files, more than {LIMIT}; group them in sub-folders by what they are for",
        )
        for folder, n in crowded(files).items()
        if folder not in ALLOWED
    ]
    for folder in ALLOWED:
        if any(path.startswith(folder + "/") for path in files) and folder not in crowded(files):
            found.append(
                finding(
                    folder,
                    1,
                    f"holds at most {LIMIT} files; remove it from tools/laws/style/folders.py",
                )
            )
    return found


def notes(files):
    return [
        f"{folder}: allowed: {n} files: {ALLOWED[folder]}"
        for folder, n in crowded(files).items()
        if folder in ALLOWED
    ]


SELF_TEST = [
    ("a bag", {f"src/misc/{i}.cc": "int x;\n" for i in range(16)}, 1),
    ("a bag of tests", {f"tests/misc/test_{i}.py": "x\n" for i in range(16)}, 1),
    ("an exception that is none any longer", {"apps/cli/main.cc": "int x;\n"}, 1),
    (
        "full, with sub-folders",
        {
            **{f"src/a/{i}.cc": "\n" for i in range(15)},
            **{f"src/a/b/{i}.cc": "\n" for i in range(15)},
        },
        0,
    ),
    ("elsewhere", {f"docs/adr/{i}.md": "\n" for i in range(99)}, 0),
]
