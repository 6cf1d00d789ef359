#!/usr/bin/env python3
"""Counts and lists in the documents: each equals what the sources say.

check_counts.py [--self-test]

A marker stands before the figure, where a reader does not see it:
  <!-- count: NAME -->145          an integer that COUNTS derives
  <!-- list: NAME -->a, b, c       names that LISTS derives, in ascending order
  <!-- dated: 2026-11-24 -->7,392  a figure that was measured on that day; no script derives it
An integer before one of the words of WORDS needs a marker. The check also compares tables that
repeat the sources: the passes of the compiler, the folders of src, the laws, the decision records,
the passed node tests, the exports that run, the refused keys of a config. Exit code 1 where one is
stale."""

import re
import sys

from pages import GENERATED, ROOT, handwritten, pages, report

MARKER = re.compile(
    r"<!-- (count|list|dated): ([\w-]+) -->\s*([\d,]*\d|[a-z]\w*(?:,\s+[a-z]\w*)*)?"
)
# What these words count can be derived, so a figure before one of them is marked.
WORDS = re.compile(
    r"(?<![\w.,:/-])(\d[\d,]*) "
    r"(operations|laws|suites|exports|rooms|node tests|functions of one variable)\b"
)


def operations(files):
    return re.findall(r"^\[([a-z0-9_]+)\]", files["spec/opset.toml"], re.M)


def rooms(files):
    return {p.split("/")[2] for p in files if re.match(r"src/ops/\w+/op\.td$", p)}


def laws(files):
    return re.findall(
        r'"(\w+)"', re.search(r"^LAWS = \[(.*?)\]", files["tools/laws/check.py"], re.M | re.S)[1]
    )


def suites(files):
    shapes = (t for p, t in files.items() if re.match(r"src/ops/\w+/bench\.txt$", p))
    return {m.split()[0] for text in shapes for m in re.findall(r"^\[([\w ]+)\]$", text, re.M)}


def exports(files):
    return re.findall(
        r"^\| \S+ \| (?:dynamo|legacy) \| (?:dynamic|static) \|",
        files["docs/reference/models.md"],
        re.M,
    )


def functions(files):
    return re.findall(r"^\s+X\((\w+)\)", files["src/num/function_list.h"], re.M)


def node_tests(files):
    return files["tests/onnx/onnx_nodes.txt"].split()


COUNTS = {
    "operations": operations,
    "rooms": rooms,
    "laws": laws,
    "suites": suites,
    "exports": exports,
    "functions": functions,
    "node-tests": node_tests,
}
LISTS = {"suites": suites, "laws": laws}


def passes(files):
    """(name, lowest level) of each pass of the compiler, in order."""
    return re.findall(
        r'\{"([a-z-]+)",\s*(\d),\s*\[\]\(Compiler&', files["src/compiler/compiler.cc"]
    )


def refused_keys(files):
    """(key, the number that it may hold) of the exporter, and of the page."""
    body = files["src/checkpoint/config.cc"].partition("unsupported_keys() {")[2]
    true = re.findall(r'\{"(\w+)", ([\d.]+|\{\})\}', body.partition("return keys;")[0])
    table = files["spec/checkpoint.md"].partition("\n| refused keys |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*`) \| ?(\d*) ?\|$", table, re.M)
    said = [(key, number) for keys, number in rows for key in re.findall(r"`(\w+)`", keys)]
    return sorted((k, n.removesuffix(".0").strip("{}")) for k, n in true), sorted(said)


def tables(files):
    """Findings of the tables that repeat the sources."""
    found = []

    def compare(path, what, said, true):
        if path in files and said != true:
            found.append(f"{path}: {what}: says {said}, the sources say {true}")

    page = "docs/design/architecture.md"
    if page in files and "src/compiler/compiler.cc" in files:
        compare(
            page,
            "passes",
            re.findall(r"^\| `([a-z-]+)` \| (\d) \|", files[page], re.M),
            passes(files),
        )
    if page in files and "tools/laws/check.py" in files:
        text = files[page].partition("\n## Laws\n")[2].partition("\n## ")[0]
        compare(page, "laws without a row", [x for x in laws(files) if f"`{x}`" not in text], [])
    page = "src/README.md"
    if page in files:
        compare(
            page,
            "folders",
            sorted(re.findall(r"^\| \[(\w+)\]\(\1\)", files[page], re.M)),
            sorted({p.split("/")[1] for p in files if p.startswith("src/") and p.count("/") > 1}),
        )
    page = "docs/decisions.md"
    if page in files:
        compare(
            page,
            "records",
            re.findall(r"\]\(design/adr/([\w-]+)\.md\)", files[page]),
            sorted(re.findall(r"docs/design/adr/([\w-]+)\.md", "\n".join(files))),
        )
    page = "spec/checkpoint.md"
    if page in files:
        true, said = refused_keys(files)
        compare(page, "refused keys", said, true)
    page = "docs/reference/onnx.md"
    if page in files:
        compare(
            page,
            "passed",
            re.findall(r"^\| passed \| (\d+)", files[page], re.M),
            [str(len(node_tests(files)))],
        )
    page = "docs/reference/models.md"
    if page in files:
        compare(
            page,
            "runs",
            re.findall(r"^\| runs \| (\d+) \|", files[page], re.M),
            [str(len(exports(files)))],
        )
    return found


def stale(kind, name, said, files):
    """Why the figure or the list behind a marker is wrong; None where it is right."""
    if not said:
        return "nothing to compare stands behind the marker"
    if kind == "dated":
        right = re.fullmatch(r"\d{4}-\d\d-\d\d", name) and said[0].isdigit()
        return None if right else "needs a day and a figure, as in <!-- dated: 2026-11-24 -->7,392"
    known = COUNTS if kind == "count" else LISTS
    if name not in known:
        return f"is not derived; there are {', '.join(known)}"
    true = known[name](files)
    if kind == "count":
        right, true = said.replace(",", "") == str(len(true)), len(true)
    else:
        right, true = re.split(r",\s+", said) == sorted(true), ", ".join(sorted(true))
    return None if right else f"says {said}, there are {true}"


def check(files):
    found = tables(files)
    for path, text in handwritten({p: t for p, t in files.items() if p.endswith(".md")}).items():
        if path.startswith("src/ops/"):
            continue
        marked = set()
        for m in MARKER.finditer(text):
            marked.add(m.end())
            if why := stale(*m.groups(), files):
                line = text.count("\n", 0, m.start()) + 1
                found.append(f"{path}:{line}: {m.group(1)} {m.group(2)}: {why}")
        if path.startswith("docs/design/adr/"):
            continue  # a record keeps the counts of its day
        for m in WORDS.finditer(text):
            if m.end(1) not in marked:
                line = text.count("\n", 0, m.start()) + 1
                found.append(f"{path}:{line}: '{m.group(0)}' has no marker, so it may become stale")
    return found


def sources(root=ROOT):
    """The documents and what counts are derived from."""
    files = pages(root)
    names = [
        "spec/opset.toml",
        "tools/laws/check.py",
        "src/num/function_list.h",
        "tests/onnx/onnx_nodes.txt",
        "src/compiler/compiler.cc",
        "src/checkpoint/config.cc",
        "spec/checkpoint.md",
    ]
    for path in [*(root / n for n in names), *root.glob("src/ops/*/bench.txt")]:
        files[path.relative_to(root).as_posix()] = path.read_text()
    for path in root.glob("src/*/**/*"):
        if path.is_file():
            files.setdefault(path.relative_to(root).as_posix(), "")
    return files


TREE = {
    "spec/opset.toml": "[add]\n[mul]\n",
    "src/ops/x/bench.txt": "[norm]\n[math cuda]\n",
    "src/ops/x/op.td": "",
    "docs/reference/onnx.md": "| passed | 1 (99 %) |\n",
    "tests/onnx/onnx_nodes.txt": "test_abs\n",
}
PAGE = "docs/guide/x.md"
SELF_TEST = [
    ("a stale count", {**TREE, PAGE: "<!-- count: operations -->3 of them\n"}, 1),
    ("an unknown count", {**TREE, PAGE: "<!-- count: moons -->3\n"}, 1),
    ("a marker of nothing", {**TREE, PAGE: "<!-- count: operations --> many\n"}, 1),
    ("a stale list", {**TREE, PAGE: "<!-- list: suites -->norm\n"}, 1),
    ("a count without a marker", {**TREE, PAGE: "It has 2 operations.\n"}, 1),
    ("a figure of no day", {**TREE, PAGE: "<!-- dated: lately -->7\n"}, 1),
    (
        "a folder that is not listed",
        {**TREE, "src/README.md": "| [base](base) |\n", "src/base/x.h": ""},
        1,
    ),
    (
        "a pass that is not listed",
        {
            **TREE,
            "docs/design/architecture.md": "| `a` | 0 |\n",
            "src/compiler/compiler.cc": '{"a", 1, [](Compiler& c)',
        },
        1,
    ),
    (
        "a law without a row",
        {
            **TREE,
            "docs/design/architecture.md": "`b`\n\n## Laws\n\n`a`\n",
            "tools/laws/check.py": 'LAWS = ["a", "b"]\n',
        },
        1,
    ),
    (
        "a record that is not listed",
        {
            **TREE,
            "docs/decisions.md": "- [1](design/adr/0001-a.md)\n",
            "docs/design/adr/0002-b.md": "",
        },
        1,
    ),
    (
        "a key whose number the page does not have",
        {
            **TREE,
            "src/checkpoint/config.cc": 'unsupported_keys() {{"a", {}}, {"b", 1.0}}; return keys;',
            "spec/checkpoint.md": "\n| refused keys | or |\n|---|---|\n| `a` `b` | |\n",
        },
        1,
    ),
    ("a lost node test", {**TREE, "tests/onnx/onnx_nodes.txt": "test_abs\ntest_add\n"}, 1),
    (
        "fine",
        {
            **TREE,
            PAGE: "<!-- count: operations -->2 operations; <!-- list: suites -->math,\nnorm;\n"
            "<!-- dated: 2026-11-24 -->7,392\n",
            "docs/design/adr/0001-a.md": "141 operations of 1 day\n",
            "docs/notebook/x.md": "3 operations\n",
            "src/checkpoint/config.cc": 'unsupported_keys() {{"a", {}}, {"b", 1.0}}; return keys;',
            "spec/checkpoint.md": "\n| refused keys | or |\n|---|---|\n| `a` | |\n| `b` | 1 |\n",
        },
        0,
    ),
]
assert not GENERATED & {PAGE}

if __name__ == "__main__":
    sys.exit(report(check, SELF_TEST, sources()))
