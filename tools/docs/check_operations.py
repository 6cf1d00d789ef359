#!/usr/bin/env python3
"""Operations: each of spec/opset.toml has one line with a formula in spec/operations.md.

check_operations.py [--self-test]

The line stands in the section of the operation's room. It cites clauses that exist, and one of them
names the operation, or has its name. Its signature is that of the room's ops.toml: as many
operands, attributes of the operation alone; the section names all of them but texts. Exit code 1
where an operation has no such line."""

import re
import sys

import tomllib
from pages import ROOT, report

PAGE, PAGES = "spec/operations.md", "spec/ops"
ROW = re.compile(r"^\| `(\w+)`([^|]*)\|((?:[^|\\]|\\.)*)\|([^|]*)\|$", re.M)
SIGNATURE = re.compile(r"\((.*?)\)(?: \{(as \w+|[\w, ]*)\})?")
CLAUSE = re.compile(
    r"^(?:- )?\*\*([a-z]\w*\.\d+)\b(.*?)(?=^(?:- )?\*\*[a-z]\w*\.\d|^#|\Z)", re.M | re.S
)
CITED = re.compile(r"([a-z]\w*)\.(\d+)(?: to \1\.(\d+))?")


def rooms(opset):
    """{operation: the room it lives in}."""
    blocks = re.findall(r"^\[([a-z0-9_]+)\]([^\[]*)", opset, re.M)
    return {op: (re.findall(r'^room = "(\w+)"', block, re.M) or [op])[0] for op, block in blocks}


def rows(page):
    """(section, operation, signature, formula, clauses) of each line."""
    for section in re.split(r"^## ", page, flags=re.M)[1:]:
        yield from (
            (section, *(cell.strip() for cell in m.groups())) for m in ROW.finditer(section)
        )


def tables(files):
    """{operation: its entry in the room's ops.toml}."""
    found = {}
    for path, text in files.items():
        if path.endswith("ops.toml"):
            entries = tomllib.loads(text)
            kinds = entries.pop("kind", {})
            found |= {op: kinds.get(e.get("kind"), {}) | e for op, e in entries.items()}
    return found


def unlike(section, signature, entry):
    """Why a signature is not that of the table; None where it is."""
    operands, attributes = SIGNATURE.match(signature).groups("")
    listed = {re.match(r"\w+", a)[0]: a for a in entry.get("attributes", [])}
    if not attributes.startswith("as "):
        for name in set(re.findall(r"\w+", attributes)) - set(listed):
            return f"has no attribute {name} in ops.toml"
    for name, text in listed.items():
        if not text.endswith(": string") and not re.search(rf"\b{name}\b", section):
            return f"has an attribute {name}, which its section does not name"
    table = entry.get("operands", [])
    count = len(re.findall(r"\[.*?\]|[^,\s]+", operands))
    if not any("*" in operand for operand in table) and count != len(table):
        return f"has {len(table)} operands in ops.toml"
    return None


def cited(cell):
    """The clauses that a cell cites, those of a range one by one."""
    for family, first, last in CITED.findall(cell):
        yield from (f"{family}.{n}" for n in range(int(first), int(last or first) + 1))


def wrong(op, formula, cell, clauses):
    """Why the line of an operation is none; None where it is one."""
    if not formula:
        return "has no formula"
    names = list(cited(cell))
    missing = [name for name in names if name not in clauses]
    if missing:
        return f"cites {missing[0]}, which no page defines"
    said = any(re.search(rf"\b{op}\b", clauses[n]) or n.split(".")[0] == op for n in names)
    return None if said else "cites no clause that names it"


def check(files):
    home = rooms(files["spec/opset.toml"])
    clauses = {m[1]: m[2] for text in files.values() for m in CLAUSE.finditer(text)}
    table, found, seen = tables(files), [], []
    for section, op, signature, formula, cell in rows(files[PAGE]):
        room = section.split("\n")[0].strip()
        seen.append(op)
        if op not in home:
            found.append(f"{PAGE}: {op} is not in spec/opset.toml")
        elif room != home[op]:
            found.append(f"{PAGE}: {op} stands under {room}, its room is {home[op]}")
        elif why := wrong(op, formula, cell, clauses):
            found.append(f"{PAGE}: {op} {why}")
        elif why := unlike(section, signature, table.get(op, {})):
            found.append(f"{PAGE}: {op} {why}")
    for op in home:
        if seen.count(op) != 1:
            found.append(f"{PAGE}: {op} has {seen.count(op)} lines, it needs one")
    return found


def sources(root=ROOT):
    """The list of operations and the pages that say what they compute."""
    paths = [root / "spec/opset.toml", *root.glob("spec/*.md"), *root.glob(f"{PAGES}/*.md")]
    paths += root.glob("src/ops/*/ops.toml")
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


TREE = {
    "spec/opset.toml": '[add]\nroom = "math"\n\n[sum]\nversion = 1\n',
    f"{PAGES}/math.md": "**math.1 Arithmetic.** `add`: a + b.\n\n**math.2 Store.** Once.\n",
    f"{PAGES}/sum.md": "# sum\n\n**sum.1 Value.** The sum.\n",
    "src/ops/math/ops.toml": '[kind.two]\noperands = ["a: f32", "b: f32"]\n[add]\nkind = "two"\n',
    "src/ops/sum/ops.toml": '[sum]\noperands = ["x: f32"]\nattributes = ["axis: i64 = 0"]\n',
}
MATH, SUM = (
    "## math\n\n| `add`(a, b) | a + b | {} |\n",
    "\n## sum\n\n| `sum`(x) {{axis}} | \\|x\\| | {} |\n",
)
FINE = MATH.format("math.1 to math.2") + SUM.format("sum.1")
SELF_TEST = [
    ("no line", {**TREE, PAGE: MATH.format("math.1")}, 1),
    ("two lines", {**TREE, PAGE: FINE + "| `sum`(x) | x | sum.1 |\n"}, 1),
    ("the section of another room", {**TREE, PAGE: FINE.replace("## math", "## sum")}, 1),
    ("no formula", {**TREE, PAGE: FINE.replace("a + b", "")}, 1),
    ("no clause", {**TREE, PAGE: MATH.format("") + SUM.format("sum.1")}, 1),
    ("a clause of others", {**TREE, PAGE: MATH.format("math.2") + SUM.format("sum.1")}, 1),
    ("no such clause", {**TREE, PAGE: MATH.format("math.1 to math.3") + SUM.format("sum.1")}, 1),
    ("no such operation", {**TREE, PAGE: FINE + "| `mul`(x) | x | sum.1 |\n"}, 1),
    ("another number of operands", {**TREE, PAGE: FINE.replace("(a, b)", "(a)")}, 1),
    ("an attribute of others", {**TREE, PAGE: FINE.replace("(a, b)", "(a, b) {axis}")}, 1),
    ("an attribute without a name", {**TREE, PAGE: FINE.replace(" {axis}", "")}, 1),
    ("fine", {**TREE, PAGE: FINE}, 0),
]

if __name__ == "__main__":
    sys.exit(report(check, SELF_TEST, sources()))
