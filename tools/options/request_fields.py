#!/usr/bin/env python3
"""src/serve/protocol/fields.toml, the members of a request's body, as rows that
src/serve/protocol/call.cc includes; routes.toml, the requests, as those of src/serve/service.cc,
and their description (openapi.py); the page of src/serve/page as one text.

request_fields.py ROOT OUT

CMake runs it (cmake/options.cmake). It writes files of OUT/options where their texts change. The
tables document their keys."""

import base64
import hashlib
import json
import sys
from pathlib import Path

import openapi
import tomllib

KEYS = set("name of needed type range choices sets only ignored help".split())
TYPES = "boolean integer number text texts ids list object any".split()
# The bodies, by the names that rows have for them; those of call.h are kNAME.
ENDPOINTS = "chat completions messages tokens responses embeddings rerank score".split()
ENDPOINTS += ["tokenize", "detokenize", "transcriptions", "translations"]
GROUPS = {
    "both": "chat completions",
    "answers": "chat completions messages responses",
    "texts": "embeddings rerank score",
    "audio": "transcriptions translations",
    "all": " ".join(ENDPOINTS),
}


def endpoints(words):
    """The names in a text of names and groups, in their order."""
    named = set(" ".join(GROUPS.get(word, word) for word in words.split()).split())
    if named - set(ENDPOINTS):
        raise ValueError(f"no endpoint {sorted(named - set(ENDPOINTS))}")
    return [name for name in ENDPOINTS if name in named]


def bits(words):
    return " | ".join(f"k{name.capitalize()}" for name in endpoints(words)) or "0"


def fields(root):
    """name -> row, checked."""
    rows = tomllib.loads((Path(root) / "src/serve/protocol/fields.toml").read_text())
    for name, row in rows.items():
        wrong = set(row) - KEYS
        if wrong or row["type"] not in TYPES or not endpoints(row["of"]) or "help" not in row:
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
    only, choices = (json.dumps(row[key]) if key in row else "" for key in ("only", "choices"))
    take = "nullptr"
    if "sets" in row:
        take = f"[](Call& c, const json::Value& v) {{ assign(c.{row['sets']}, v); }}"
    ranged = "true" if "range" in row else "false"
    name = json.dumps(row.get("name", name))
    limits = f"{ranged}, {float(least)!r}, {float(most)!r}"
    of = f"{bits(row['of'])}, {bits(row.get('needed', ''))}"
    values = f"{json.dumps(only)}, {json.dumps(choices)}"
    return f"    {{{name}, {of}, Type::{row['type']}, {limits}, {values}, {take}}},\n"


def route_text(row):
    path = json.dumps(row["path"].removesuffix("{id}"))
    waits, form = (str(row.get(key, of)).lower() for key, of in (("waits", True), ("form", False)))
    run = f"[](Service& s, Asked& a) {{ s.{row['run']}; }}"
    return f'    {{"{row["method"]}", {path}, {waits}, {form}, {run}}},\n'


def batch_text(row):
    if not row.get("batch"):
        return ""
    draws = str(row.get("streams", False)).lower()
    return f"    {{{json.dumps(row['path'])}, {draws}}},\n"


def literal(text):
    """Literals of C++, of a length that every compiler takes."""
    parts = (text[i : i + 2000] for i in range(0, len(text), 2000))
    return "".join(json.dumps(part, ensure_ascii=False) + "\n" for part in parts)


def page(root):
    """src/serve/page as one HTML file -> its text and its Content-Security-Policy, which allows the
    script and the style that are in it, by their hashes, and requests to the server it comes
    from."""
    folder = Path(root) / "src/serve/page"
    html, hashes = (folder / "chat.html").read_text(), {}
    for name, file in (("style", "chat.css"), ("script", "chat.js")):
        content = "\n" + (folder / file).read_text()
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        hashes[name] = f"'sha256-{digest}'"
        html = html.replace("{{%s}}" % name, content)
    allowed = ["default-src 'none'", *(f"{name}-src {digest}" for name, digest in hashes.items())]
    allowed += ["connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
    return html, "; ".join([*allowed, "frame-ancestors 'none'"])


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != content:
        path.write_text(content)


def main(root, out):
    folder = Path(out) / "options"
    content = "".join(row_text(name, row) for name, row in fields(root).items())
    write(folder / "request_fields.inc", content)
    lines = (f"  k{name.capitalize()} = 1 << {i},\n" for i, name in enumerate(ENDPOINTS))
    write(folder / "request_endpoints.inc", "".join(lines))
    routes = openapi.routes(root)
    write(folder / "routes.inc", "".join(route_text(row) for row in routes.values()))
    paths = (f"    {json.dumps(row['path'])},\n" for row in routes.values() if row.get("open"))
    write(folder / "open_paths.inc", "".join(paths))
    write(folder / "batch_paths.inc", "".join(map(batch_text, routes.values())))
    text = openapi.text(routes, fields(root), endpoints)
    write(folder / "openapi.inc", literal(text))
    html, policy = page(root)
    write(folder / "page.inc", literal(html))
    write(folder / "page_policy.inc", literal(policy))


if __name__ == "__main__":
    main(*sys.argv[1:])
