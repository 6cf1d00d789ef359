#!/usr/bin/env python3
"""src/serve/protocol/fields.toml, the members of a request's body, as rows that
src/serve/protocol/call.cc includes.

request_fields.py ROOT OUT

CMake runs it (cmake/options.cmake). It writes OUT/options/request_fields.inc where its text
changes. The table documents its keys."""

import json
import sys
from pathlib import Path

import tomllib

KEYS = {"name", "of", "type", "range", "sets", "only", "ignored", "help"}
TYPES = "boolean integer number text texts ids list object any".split()
OF = {"chat": "kChat", "completions": "kCompletions", "both": "kChat | kCompletions"}


def fields(root):
    """name -> row, checked."""
    rows = tomllib.loads((Path(root) / "src/serve/protocol/fields.toml").read_text())
    for name, row in rows.items():
        wrong = set(row) - KEYS
        if wrong or row["type"] not in TYPES or row["of"] not in OF or "help" not in row:
            sys.exit(
                f"src/serve/protocol/fields.toml: {name}: {sorted(wrong) or 'of, type or help is wrong'}"
            )
        if sum(key in row for key in ("sets", "only", "ignored")) != 1:
            sys.exit(
                f"src/serve/protocol/fields.toml: {name}: one of sets, only and ignored is needed"
            )
    return rows


def row_text(name, row):
    least, most = row.get("range", [0, 0])
    only = json.dumps(row["only"]) if "only" in row else ""
    take = "nullptr"
    if "sets" in row:
        take = f"[](Call& c, const json::Value& v) {{ assign(c.{row['sets']}, v); }}"
    ranged = "true" if "range" in row else "false"
    name = json.dumps(row.get("name", name))
    limits = f"{ranged}, {float(least)!r}, {float(most)!r}"
    return f"    {{{name}, {OF[row['of']]}, Type::{row['type']}, {limits}, {json.dumps(only)}, {take}}},\n"


def main(root, out):
    path = Path(out) / "options/request_fields.inc"
    content = "".join(row_text(name, row) for name, row in fields(root).items())
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != content:
        path.write_text(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
