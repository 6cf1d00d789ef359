#!/usr/bin/env python3
"""Writes spec/opset.toml, the tables of spec/operations.md, and pages of docs/reference:
operations.md, errors.md, model-keys.md, model-types.md, serve-fields.md, openapi.json,
weight-formats.md and cli-options.md.

generate.py [--check]

--check writes nothing: exit code 1 where a page is not what the sources and the program say.
INVAR_BIN: the program whose --help is shown (default build/bin/invar); without one cli-options.md
is left alone."""

import functools
import json
import os
import re
import runpy
import subprocess
import sys
import textwrap

import tomllib
from pages import ROOT

sys.path.insert(0, str(ROOT / "tools/options"))
import openapi  # noqa: E402
import request_fields  # noqa: E402

BIN = os.environ.get("INVAR_BIN", str(ROOT / "build/bin/invar"))


def row(op):
    """The line of an operation."""
    operands, attributes = (
        ", ".join(f"`{text}`" for text in op.keys.get(key, [])).replace("|", "\\|")
        for key in ("operands", "attributes")
    )
    return f"| `{op.name}` | {operands} | {attributes} | {op.version} | `{op.numerics}` |"


@functools.cache
def tables():
    """The operations, the choices, and the operations by room, of the rooms' ops.toml."""
    return runpy.run_path(str(ROOT / "tools/ops/generate.py"))["read"](ROOT)


def opset():
    """spec/opset.toml: what a plan says of operations."""
    listed, choices, _ = tables()
    text = [
        "# The operations that a plan may name; operations.md has the formula of each.",
        "# `tools/docs/generate.py` writes this page from the entries in src/ops/ROOM/ops.toml.",
        "# version: it changes whenever the operation's bits do.",
        "# room: the folder of src/ops that the operation shares; without it the folder has its name.",
        "# numerics: the rule of spec/ that fixes the bits. Plans carry both, and a build refuses others.",
    ]
    for op in listed:
        text += ["", f"[{op.name}]", f"version = {op.version}"]
        text += [f'room = "{op.room}"'] * (op.room != op.name)
        text += [f'numerics = "{op.numerics}"']
    text += [
        "",
        "# Numerics choices (choices.md): patterns of operations that a compiler may replace by one",
        "# with bits of its own.",
    ]
    return "\n".join(text) + "".join(f"\n[choice.{name}]\n" for name in choices)


def first_clause(op):
    """The number of the first clause that fixes an operation's bits."""
    return int(re.search(r"\.(\d+)", op.keys["clauses"])[1])


def formulas():
    """spec/operations.md, with the tables of its sections as the rooms' ops.toml has them."""
    sections = re.split(r"^## ", (ROOT / "spec/operations.md").read_text(), flags=re.M)
    _, _, by_room = tables()
    for i, section in enumerate(sections[1:], 1):
        rows = [
            f"| `{op.name}`{op.signature} | {op.keys['formula'].replace('|', chr(92) + '|')} "
            f"| {op.keys['clauses']} |\n"
            for op in sorted(by_room.get(section.split("\n")[0].strip(), []), key=first_clause)
        ]
        sections[i] = re.sub(r"(?<=\|---\|---\|---\|\n)(\|.*\n)*", lambda _: "".join(rows), section)
    return "## ".join(sections)


def operations():
    """The operations by room, with their signatures."""
    listed, _, by_room = tables()
    text = [
        "# Operations",
        "",
        "`tools/docs/generate.py` writes this page from the rooms' `ops.toml`. A plan repeats the version",
        "and the numerics of each operation, and a build refuses a plan with others.",
        "",
        f"There are {len(listed)} operations in {len(by_room)} rooms. A room's page of `spec/ops` says what",
        "its operations compute; [spec/operations.md](../../spec/operations.md) has a line for each.",
        "",
        "`x?` may be absent, `x*` is any number of operands. A plan may omit an attribute `a?`. A value",
        "after `=` is the one of an absent attribute, or of each element of an absent list.",
    ]
    for room in sorted(by_room):
        text += [
            "",
            f"## {room}",
            "",
            f"Room: [src/ops/{room}](../../src/ops/{room})",
            "",
            "| operation | operands | attributes | version | numerics |",
            "|---|---|---|---:|---|",
            *sorted(map(row, by_room[room])),
        ]
    return "\n".join(text) + "\n"


PYTHON = {
    "failed": "Failed",
    "bad_input": "BadInput",
    "not_covered": "NotCovered",
    "internal": "Internal",
}


def errors():
    """The exit codes of src/base/status.h."""
    body = re.search(r"enum class Code \{(.*?)\};", (ROOT / "src/base/status.h").read_text(), re.S)[
        1
    ]
    codes = re.findall(r"(\w+) = (\d+),\s*// (.*)", body)
    text = [
        "# Errors",
        "",
        "`tools/docs/generate.py` writes this page from [status.h](../../src/base/status.h).",
        "Every error is one line that says what, where and what to do. The process ends with its",
        "code. The Python package raises one of the kinds of `invar.Error`, with the line and the",
        "`exit_code`.",
        "",
        "| exit code | name | meaning | in Python |",
        "|---:|---|---|---|",
        "| 0 | | done; or verified | |",
    ]
    text += [
        f"| {code} | `{name}` | {meaning} | `invar.{PYTHON[name]}` |"
        for name, code, meaning in codes
    ]
    return "\n".join(text) + "\n"


def clause_link(clause):
    page = "cli.md#defaults-of-a-checkpoint"
    if clause != "cli.md":
        files = sorted((ROOT / "spec").glob("*.md"))
        name = next(f.name for f in files if f"**{clause}" in f.read_text())
        page = f"../../spec/{name}"
    return f"[{clause}]({page})"


def model_keys():
    """tests/keys/keys.toml by file."""
    folder = ROOT / "tests/keys"
    table = tomllib.loads((folder / "keys.toml").read_text())
    known = json.loads((folder / "known_keys.json").read_text())
    text = [
        "# Keys of a checkpoint",
        "",
        "`tools/docs/generate.py` writes this page from",
        "[keys.toml](../../tests/keys/keys.toml): what the keys of a checkpoint's JSON files do",
        f"that transformers {known['transformers']} and tokenizers {known['tokenizers']} know. "
        "`tests/keys/test_keys.py` shows",
        "each line with the shipped model. A key without a line is as the one around it. Where",
        "`generation_config.json` is absent, its refused keys are refused in `config.json`, too.",
        "Refused keys that transformers has for other families alone stand in",
        "[checkpoint.md](../../spec/checkpoint.md).",
    ]
    for file, rows in table.items():
        text += ["", f"## {file}", "", "| key | here | |", "|---|---|---|"]
        for key, row in rows.items():
            if "implemented" in row:
                here = f"implemented | {clause_link(row['implemented'])}"
            elif "refused" in row:
                value = json.dumps(row["refused"]).replace("|", "\\|")
                here = f"refused | for example `{value}`"
            else:
                here = f"no effect | {row['no_effect']}"
            text.append(f"| `{key}` | {here} |")
    return "\n".join(text) + "\n"


def weight_formats():
    """The rows of src/weights/formats.cc."""
    source = (ROOT / "src/weights/formats.cc").read_text()
    rows = re.findall(
        r'\{"(\w+)",\s+(-?\d+),\s+(\d+),\s+(\d+),\s+"(\w+)",\s+\w+,\s+"([\w.]+)",\s+"([^"]+)"(?:, &\w+)?\}',
        source,
    )
    names = re.search(r"kNames\[\] = \{(.*?)\};", source, re.S)[1]
    text = [
        "# Formats of weights",
        "",
        "`tools/docs/generate.py` writes this page from",
        "[formats.cc](../../src/weights/formats.cc): the formats that are read, and what their",
        "numbers are. [Quantised weights](../guide/quantised.md) says in which files.",
        "",
        "| format | GGUF type | bits a number | a number | unpacked | clause |",
        "|---|---:|---:|---|---|---|",
    ]
    text += [
        f"| {name} | {number if number != '-1' else ''} | {8 * int(bytes_) / int(block):.4g} | {value} "
        f"| {element} | {clause_link(clause)} |"
        for name, number, block, bytes_, element, clause, value in rows
    ]
    unread = ", ".join(re.findall(r'"(\w+)"', names))
    text += ["", "Other types of GGUF files are refused by name:"]
    text += textwrap.wrap(unread + ".", 100)
    return "\n".join(text) + "\n"


def serve_fields():
    """src/serve/protocol/fields.toml as a table."""
    called = {"chat": "chats", "tokens": "count_tokens"}
    rows = request_fields.fields(ROOT)
    text = [
        "# Requests and their fields",
        "",
        "`tools/docs/generate.py` writes this page from `src/serve/protocol/routes.toml` and",
        "`fields.toml`: what [`invar serve`](../guide/serve.md) answers, and the members of a",
        "request's body. Any other member is refused by its name, and `null` is as if it were not",
        "there. [openapi.json](openapi.json) says the same to programs; the server has it at",
        "`/openapi.json`.",
        "",
        "| request | answer |",
        "|---|---|",
    ]
    for row in openapi.routes(ROOT).values():
        text.append(f"| `{row['method']} {row['path']}` | {row['summary']} |")
    for title, wanted in (
        ("What a request may say", lambda row: "sets" in row),
        ("What only says what holds anyway", lambda row: "only" in row),
        ("What is taken and decides nothing", lambda row: row.get("ignored")),
    ):
        text += ["", f"## {title}", "", "| field | of | value | |", "|---|---|---|---|"]
        for name, row in rows.items():
            if not wanted(row):
                continue
            value = row["type"]
            if "range" in row:
                value += f", {row['range'][0]} to {row['range'][1]}"
            if "choices" in row:
                value = ", ".join(f"`{json.dumps(one)}`" for one in row["choices"])
            if "only" in row:
                value = " or ".join(f"`{json.dumps(one)}`" for one in row["only"]) or "none"
            of = ", ".join(called.get(one, one) for one in request_fields.endpoints(row["of"]))
            name = row.get("name", name)
            text.append(f"| `{name}` | {of} | {value} | {row['help']} |")
    return "\n".join(text) + "\n"


def serve_openapi():
    return openapi.text(openapi.routes(ROOT), request_fields.fields(ROOT), request_fields.endpoints)


def native_types():
    """-> {model_type: what is said of it} by src/checkpoint, whose tables must agree."""
    folder = ROOT / "src/checkpoint"
    header = (folder / "architecture.h").read_text()

    def table(text, name, row):
        return re.findall(row, text.split(f"{name}[] = {{")[1].split("\n};")[0])

    decoders = table(header, "kArchitectures", r'{"([^"]+)", "')
    registered = [
        name
        for file in ("family.cc", "seq2seq/seq2seq_family.cc")
        for match in re.findall(
            r'  X\((\w+), \w+\)|{"([\w-]+)", describe_', (folder / "families" / file).read_text()
        )
        for name in match
        if name
    ]
    if set(decoders) != set(registered):
        sys.exit(f"kArchitectures and the families differ: {set(decoders) ^ set(registered)}")
    whole = (folder / "text_config.h").read_text()
    said = dict.fromkeys(decoders, "native")
    for name in table(header, "kEncoders", r'{"([^"]+)", '):
        said[name] = "native: `invar embed`, `invar rerank`"
    for name, text, other in table(
        whole, "kWholeModels", r'{"(\w+)", "\w+", "(\w+)", (nullptr|"\w+")'
    ):
        said[name] = "native: its text model, without pictures and sound"
        if text not in registered:
            sys.exit(f"text_config.h: {name} has the text model {text}, which is no family")
        if other != "nullptr":
            said[other.strip('"')] = f"native within `{name}`"
    for name, layers in table(header, "kUncovered", r'{"([^"]+)", "([^"]+)"}'):
        said[name] = f"refused: it has {layers}"
    return said


# What a model of a kind is run by.
BY_EXPORT = {
    "decoder of text": "by export: `invar run`",
    "encoder and decoder of text": "by export: `invar infer`",
    "part or body of a model": "with the model that it is a part of",
}


def model_types():
    """tests/families/model_types.json, with what src/checkpoint says of each."""
    known = json.loads((ROOT / "tests/families/model_types.json").read_text())
    said = native_types()
    types = known["types"] | {
        name: "decoder of text" for name in said if name not in known["types"]
    }
    rows = [
        (name, kind, said.get(name) or BY_EXPORT.get(kind, "by export: `invar infer`"))
        for name, kind in sorted(types.items(), key=lambda item: item[0].lower())
    ]
    native = sum(verdict.startswith("native") for _, _, verdict in rows)
    text = [
        "# Types of models",
        "",
        "`tools/docs/generate.py` writes this page from the tables of",
        "[architecture.h](../../src/checkpoint/architecture.h) and",
        "[model_types.json](../../tests/families/model_types.json), which lists every `model_type` of",
        f"transformers {known['transformers']} and what its Auto classes say of it. A type that",
        "transformers lacks has a line where a family of Invar has it.",
        "",
        f"{native} of {len(rows)} types are native: a checkpoint folder of such a type runs as it is, and",
        "[families.md](families.md) and [encoders.md](encoders.md) show how near it is to transformers.",
        "*By export*: the type has no description here. `invar run` exports a decoder of text by torch",
        "([models](../guide/models.md)); [exported-models.md](exported-models.md) lists the types that",
        "were tried. A model of another kind runs when it is exported to ONNX and each of its operators",
        "is covered ([onnx.md](onnx.md)). *Refused*: the message names the reason and the way out, which",
        "may be an export.",
        "",
        "| `model_type` | kind | here |",
        "|---|---|---|",
        *(f"| `{name}` | {kind} | {verdict} |" for name, kind, verdict in rows),
    ]
    return "\n".join(text) + "\n"


def usage(*command):
    done = subprocess.run(
        [BIN, *command, "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().split("\n"))


def commands_of(help_text):
    """The commands that a text of --help lists."""
    if "COMMAND [OPTIONS]\n" not in help_text:
        return []
    return re.findall(r"^  ([a-z]+)  ", help_text.split("\nEvery command\n")[0], re.M)


def own(help_text):
    """A command's help without what every command has."""
    start, end = help_text.split("\nEvery command\n")
    examples = end.split("\nExamples\n")
    return start + ("\nExamples\n" + examples[1].split("\nExit codes\n")[0] if examples[1:] else "")


def cli_options():
    """--help of the program, of each of its commands and of theirs."""
    top = usage()
    text = [
        "# Options of the command line",
        "",
        "`tools/docs/generate.py` writes this page: the output of `--help`, of commands without what",
        "every command has. [The command line](cli.md) says what the options mean.",
        "",
        "## invar",
        "",
        "```",
        top,
        "```",
    ]
    for command in commands_of(top):
        shown = usage(command)
        text += ["", f"## invar {command}", "", "```", own(shown), "```"]
        for inner in commands_of(shown):
            text += [
                "",
                f"## invar {command} {inner}",
                "",
                "```",
                own(usage(command, inner)),
                "```",
            ]
    return "\n".join(text) + "\n"


PAGES = {
    "spec/opset.toml": opset,
    "spec/operations.md": formulas,
    "docs/reference/operations.md": operations,
    "docs/reference/errors.md": errors,
    "docs/reference/model-keys.md": model_keys,
    "docs/reference/model-types.md": model_types,
    "docs/reference/serve-fields.md": serve_fields,
    "docs/reference/weight-formats.md": weight_formats,
    "docs/reference/openapi.json": serve_openapi,
    "docs/reference/cli-options.md": cli_options,
}


def stale():
    """Paths of the pages that are not what they would be now, with their text."""
    made = {
        name: make()
        for name, make in PAGES.items()
        if make is not cli_options or os.access(BIN, os.X_OK)
    }
    return {
        name: text
        for name, text in made.items()
        if not (ROOT / name).is_file() or (ROOT / name).read_text() != text
    }


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 2
    found = stale()
    for name, text in found.items():
        if sys.argv[1:]:
            print(f"{name} is stale: run tools/docs/generate.py")
        else:
            (ROOT / name).write_text(text)
            print(f"wrote {name}")
    return 1 if found and sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
