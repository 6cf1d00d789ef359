#!/usr/bin/env python3
"""Breaks lines of more than 100 columns in comments and docstrings, as clang-format and ruff break
code.

reflow_comments.py [--check] [FILE...]     by default every C++, CUDA, TableGen, CMake and Python
                                           file of the checkout

A paragraph is a run of whole-line comments, or of lines of a docstring, of one indentation. From
its first line that is too long on it is filled anew; the lines before stay. An item of a list or of
a table of two columns is a paragraph with what is indented to its text. What stands between
`clang-format off` and `on` is left alone. --check changes nothing and names the lines; exit 1 if
there are any.
"""

import argparse
import ast
import io
import re
import sys
import textwrap
import tokenize
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "laws"))
import law  # noqa: E402

LIMIT = 100
SLASHES = (*law.CPP, ".td")
HASHES = (".py", ".cmake", "CMakeLists.txt")
COMMENT = {"//": re.compile(r"(\s*//[/!]?)( ?.*)$"), "#": re.compile(r"(\s*#)( ?.*)$")}
# What begins a paragraph of its own: an item's mark, a directive, a title of a table.
ITEM = re.compile(r"\s*(?:[-*+|>@]|\d+[.)])\s+")
COLUMNS = re.compile(r"\s*\S+(?: \S+)*? {2,}(?=\S)")
DIRECTIVE = re.compile(r"\s*(NOLINT|clang-format|fmt:|noqa|type:|\"\"\"$|$)")


def body_column(words):
    """Where the text of a paragraph begins that starts with this line: behind an item's mark or the
    first column."""
    for head in (ITEM, COLUMNS):
        m = head.match(words)
        if m:
            return m.end()
    return len(words) - len(words.lstrip())


def fill(lines):
    """Lines of one block, as (prefix, words) -> (new lines, numbers of those that were too
    long)."""
    out, long, n = [], [], 0
    while n < len(lines):
        prefix, words = lines[n]
        if len(prefix + words) <= LIMIT or DIRECTIVE.match(words):
            out.append(prefix + words)
            n += 1
            continue
        long.append(n)
        n += 1
        if re.search(r"([-=*])\1{9}$", words):  # a rule
            out.append((prefix + words)[:LIMIT])
            continue
        column = body_column(words)
        text = words[column:]
        while n < len(lines) and continues(lines[n], prefix, column):
            long += [n] if len(prefix + lines[n][1]) > LIMIT else []
            text += " " + lines[n][1].strip()
            n += 1
        filled = textwrap.wrap(
            text, LIMIT - len(prefix) - column, break_long_words=False, break_on_hyphens=False
        )
        out += [prefix + (" " * column if i else words[:column]) + w for i, w in enumerate(filled)]
    return out, long


def continues(line, prefix, column):
    """Whether a line goes on with a paragraph whose text begins at `column`."""
    own, words = line
    indent = len(words) - len(words.lstrip())
    return (
        own == prefix
        and indent == column
        and not (ITEM.match(words) or COLUMNS.match(words) or DIRECTIVE.match(words))
    )


def comment_lines(name, text):
    """{line number: (prefix, words)} of whole-line comments, those within strings left out."""
    mark = "//" if name.endswith(SLASHES) else "#"
    lines = text.split("\n")
    if name.endswith(".py"):
        kept = {
            t.start[0]
            for t in tokenize.generate_tokens(io.StringIO(text).readline)
            if t.type == tokenize.COMMENT
        }
    elif mark == "//":
        kept = {n for n, line in enumerate(law.comments(text).split("\n"), 1) if line.strip()}
    else:
        kept = set(range(1, len(lines) + 1))
    found, off = {}, False
    for n, line in enumerate(lines, 1):
        off = (
            off
            and not re.search(r"clang-format on|fmt: on", line)
            or bool(re.search(r"clang-format off|fmt: off", line))
        )
        m = COMMENT[mark].match(line)
        if m and n in kept and not off and not line.startswith("#!"):
            found[n] = m.groups()
    return found


def docstring_lines(text):
    """{line number: (prefix, words)} of the docstrings of Python text."""
    lines, found = text.split("\n"), {}
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        first = node.body[0] if node.body else None
        if not (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            continue
        if not lines[first.lineno - 1].strip().startswith('"""'):
            continue
        indent = " " * first.col_offset
        for n in range(first.lineno, first.end_lineno + 1):
            if lines[n - 1].startswith(indent):
                found[n] = (indent, lines[n - 1][len(indent) :])
    return found


def reflow(name, text):
    """`text` with its long comments broken, and the numbers of the lines that were too long."""
    lines, blocks = text.split("\n"), comment_lines(name, text)
    if name.endswith(".py"):
        blocks |= docstring_lines(text)
    out, long, n = [], [], 1
    while n <= len(lines):
        if n not in blocks:
            out.append(lines[n - 1])
            n += 1
            continue
        first = n
        while n in blocks and blocks[n][0] == blocks[first][0]:
            n += 1
        new, too_long = fill([blocks[k] for k in range(first, n)])
        out += new
        long += [first + k for k in too_long]
    return "\n".join(out), long


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    found = 0
    for name in options.files or [n for n in law.paths() if n.endswith(SLASHES + HASHES)]:
        path = Path(name) if options.files else law.ROOT / name
        text = path.read_text()
        new, long = reflow(name, text)
        found += new != text
        if options.check and new != text:
            print("\n".join(f"{name}:{n}: a comment of more than {LIMIT} columns" for n in long))
        elif new != text:
            path.write_text(new)
    return 1 if options.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
