"""Clauses: every `NAME.NUMBER` that code, tests or documents cite is defined in spec/, once; every
cited spec file and every relative link of a document exists; a page of spec/ links to nothing of
the source, because spec/ is whole by itself; and a comment of C++ or a document names only source
files that exist (docs/notebook and docs/design/adr tell of earlier days).

A clause is defined where a line or list item starts with its number in bold: `**attention.3 ...**`.
The first word names the clause family; citations are recognised by families that exist, or by the
file they name.
"""

import posixpath
import re

from law import CPP, comments, finding, lines

DEFINED = re.compile(r"^(?:[-*]\s+)?\*\*([a-z][a-z0-9_-]*)\.(\d+)\b")
FILE = re.compile(r"\b(spec/(?:ops/)?[a-z][\w-]*\.md)\b(?:\s+([a-z][a-z0-9_-]*)\.(\d+))?")
NUMBER = re.compile(r"\.\d")
SOURCE = re.compile(r"(?<![\w<\"./$}-])((?:[\w-]+/)*[a-z]\w*\.(?:h|cc|cuh|cu|td))\b(?!\()")
HISTORY = ("docs/notebook/", "docs/design/adr/", "docs/decisions.md")
# Headers of other projects, and what the build makes.
FOREIGN = {"onnx.pb.h", "mpfr.h", "fenv.h", "module.cc"}
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def is_spec(path):
    return bool(re.match(r"spec/(?:ops/)?[\w-]+\.md$", path))


def check(files):
    found = []
    defined = {}
    for path, text in files.items():
        if text is not None and is_spec(path):
            for n, line in lines(text):
                m = DEFINED.match(line)
                if m:
                    clause = f"{m.group(1)}.{m.group(2)}"
                    if clause in defined:
                        found.append(
                            finding(path, n, f"{clause} is already defined in {defined[clause]}")
                        )
                    defined.setdefault(clause, path)
    if not defined:
        return found + [finding("spec", 1, "no clauses found: this law has nothing to hold on to")]
    families = sorted({c.rsplit(".", 1)[0] for c in defined}, key=len, reverse=True)
    cited = re.compile(
        r"(?<![\w./-])(" + "|".join(map(re.escape, families)) + r")\.(\d+)(?![\w.]*\w)"
    )
    folders = {f[:i] for f in files for i, c in enumerate(f) if c == "/"}
    tails = {"/".join(f.split("/")[k:]) for f in files for k in range(f.count("/") + 1)}
    for path, text in files.items():
        if (
            text is None
            or path.startswith("tools/laws/")
            or not path.endswith(CPP + (".md", ".py", ".td", ".toml", ".cmake"))
        ):
            continue
        if path.endswith(CPP):
            text = comments(text)
        for n, line in lines(text):
            if "." not in line:
                continue
            if path.endswith(".py") and "spec/" not in line:
                # Python cites by file; NAME.NUMBER alone may be data, as an operation's version is.
                continue
            here = set()
            if NUMBER.search(line):  # soon said, where most lines cite nothing
                here = {f"{m.group(1)}.{m.group(2)}" for m in cited.finditer(line)}
            for m in FILE.finditer(line):
                if m.group(1) not in files:
                    found.append(finding(path, n, f"cites {m.group(1)}, which does not exist"))
                if m.group(2):
                    here.add(f"{m.group(2)}.{m.group(3)}")
            for clause in sorted(here - set(defined)):
                found.append(finding(path, n, f"cites {clause}, which no spec defines"))
            if path.endswith(CPP + (".md",)) and not path.startswith(HISTORY):
                for m in SOURCE.finditer(line):
                    name = m.group(1)
                    if (
                        name not in tails
                        and name not in FOREIGN
                        and not re.search(r"[A-Z]{3}|generated/", name)
                    ):
                        found.append(finding(path, n, f"names {name}, which does not exist"))
            if path.endswith(".md"):
                for m in LINK.finditer(line):
                    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), m.group(1)))
                    if target not in files and target not in folders:
                        found.append(
                            finding(path, n, f"links to {m.group(1)}, which does not exist")
                        )
                    if is_spec(path) and target.startswith("src/"):
                        found.append(finding(path, n, f"links to {m.group(1)}, outside of spec/"))
    return found


SPEC = {
    "spec/attention.md": "# Attention\n**attention.1** One.\n\n- **attention.2** Two, after\n"
    "attention.1 in a line.\n"
}
SELF_TEST = [
    ("an unknown clause", {**SPEC, "src/run/x.cc": "// attention.3\n"}, 1),
    (
        "an unknown clause of a named file",
        {**SPEC, "src/run/x.cc": "// spec/attention.md rule.1\n"},
        1,
    ),
    ("an unknown file", {**SPEC, "src/run/x.cc": "// spec/sums.md\n"}, 1),
    ("defined twice", {**SPEC, "spec/more.md": "- **attention.2** again\n"}, 1),
    ("a dead link", {**SPEC, "docs/x.md": "[here](nowhere.md)\n"}, 1),
    (
        "a file of earlier days",
        {**SPEC, "src/run/x.cc": "// see once.h\n", "docs/x.md": "`src/run/once.cc`\n"},
        2,
    ),
    ("no clauses", {"spec/x.md": "words\n"}, 1),
    (
        "a clause of an operation, and a link into the source",
        {
            **SPEC,
            "spec/ops/x.md": "**x.1** One.\n\n[code](../../src/ops/x/x.cc)\n",
            "src/ops/x/x.cc": "// spec/ops/x.md x.1\n",
        },
        1,
    ),
    (
        "data that looks like a clause",
        {**SPEC, "src/run/x.cc": 'f("attention.3");\n', "tests/test_x.py": '"attention.3"\n'},
        0,
    ),
    (
        "as it should be",
        {
            **SPEC,
            "src/run/x.cc": "// spec/attention.md attention.2, attention.1\n",
            "docs/x.md": "[spec](../spec/attention.md) v1.2\n",
        },
        0,
    ),
    (
        "files that exist, and others' headers",
        {
            **SPEC,
            "src/run/x.cc": "// x.cc, run/x.cc, src/ops/NAME/cpu.cc, <math.h>\n",
            "docs/notebook/x.md": "`once.h`\n",
        },
        0,
    ),
]
