"""House rule: a folder holds at most 15 files beside its sub-folders, so that a reader can take it
in at a glance.

Looked at: src, apps, tests, tools and bench.
"""

from collections import Counter
from posixpath import dirname

from law import finding

LIMIT = 15
ROOTS = ("src/", "apps/", "tests/", "tools/", "bench/")


def crowded(files):
    """{folder: number of files flat in it} of those over the limit."""
    count = Counter(dirname(path) for path in files if path.startswith(ROOTS))
    return {folder: n for folder, n in sorted(count.items()) if n > LIMIT}


def check(files):
    return [
        finding(folder, 1, f"{n} files, more than {LIMIT}; group them by what they are for")
        for folder, n in crowded(files).items()
    ]


SELF_TEST = [
    ("a bag", {f"src/misc/{i}.cc": "int x;\n" for i in range(16)}, 1),
    ("a bag of tests", {f"tests/misc/test_{i}.py": "x\n" for i in range(16)}, 1),
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
