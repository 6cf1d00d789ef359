#!/usr/bin/env python3
"""The tables of options, as the files that the build includes.

generate.py ROOT OUT

CMake runs it (cmake/options.cmake). It writes a file of OUT/options where its text changes.

src/generate/options.toml has what a caller of generation chooses, in the parts of its structs
(PARTS of rows.py); apps/cli/options/commands.toml has the commands. A command lists its options in
the order of help: PART.ROW, or a row of its own or of [common]; @LIST is one of [lists]. A
command's row, or `like` in [common], says what differs from the row below it. Keys of a row:

name          of the option; left out: the row's, with - for _
short         its letter
position      it is a word without a name
member        of the command's struct, with the part before a point; left out: the row's
type          flag, text, int, int64, uint64, double, size (bytes, such as 20GB); a list: texts,
              ints, int32s, with commas but for texts; doubles; biases? (5:-1.5, with commas); with
              ? where the struct keeps whether it is given: also int32?, float?, power? (2^-8),
              profile?, operation set?; on and off are flags that set one bool?
value         the word for its value in help
choices       the values that there are; with "..." some of them
group, help   of --help, in the man page and in docs/reference/cli-options.md
default       of the member, which help shows unless its text says it; unset: one that it does not
              show
range         [least, most], of numbers
check         a function of options/values.h
may_be_empty  an empty value is a value
required, needs, excludes    of the command line
comma         a list of texts with commas
many          takes several words, as in --input A B
at_most = 1   a list that takes one
form          the option's field of the terminal form, a table
python        the argument of Python, a table: help; name (left out: the member's); kind of a text:
              path, name, text, json, hosts or device; kind "not" of a flag: the argument says the contrary
sample        of [settings]: the struct of src/sample (Params or Processors) with a member of the
              name
checkpoint    of [settings]: false where generation_config.json has no such key

A row without `help` is no option of the command line.

Keys of a command: about (what it does), group, aliases, examples, struct, parts (members of the
struct that are not of PARTS, and their types), run (the function; left out: the command's name),
one_of (options of which one is needed; one_of_text: how the error calls them).

apps/tui/form.toml has the order of the form and the fields that are no options. Keys of a
field: label, help, commands (that take it; left out: all), kind (of apps/tui/model/form.h; left
out: that of the option's type), initial, choices, field (its name; left out: the member's). $NAME
is a constant of form.h."""

import sys
from pathlib import Path

from python_arguments import argument_table, python_members, requests_py
from rows import Row, Wrong, read, text


def structs(tables):
    """Part -> the members of its struct."""
    for part, rows in tables["options"].items():
        members = {}
        for key, keys in rows.items():
            r = Row(key, keys, f"{part}.{key}")
            members.setdefault(r.member, r.declaration())
        yield f"{part}.inc", "".join(members.values())


def commands_inc(commands):
    """The structs of commands, and their functions."""
    members = {}
    for c in commands:
        if c.rows:
            members.setdefault(c.keys["struct"], {}).update(c.members())
    out = [f"struct {s} {{\n{''.join(m.values())}}};\n" for s, m in members.items()]
    called = [c for c in commands if c.rows and c.name != "program"]
    out += [f"int {c.run}(const {c.keys['struct']}&);\n" for c in called]
    all_of = "".join(f"  {c.keys['struct']} {c.run};\n" for c in commands if c.rows)
    return "".join(out) + f"struct Commands {{\n{all_of}}};\n"


def table_inc(tables, commands):
    """The rows of the parser's table."""
    out = []
    for c in commands:
        if c.rows:
            rows = "".join(f"    {r.cpp()},\n" for r in c.rows)
            out.append(f"constexpr OptionRow {c.rows_name()}[] = {{\n{rows}}};\n")
    for what, listed in tables["groups"].items():
        out.append(
            f"constexpr const char* k{what[:-1].capitalize()}Groups[] = {{{', '.join(map(text, listed))}}};\n"
        )
    rows = "".join(f"    {c.cpp()},\n" for c in commands)
    return "".join(out) + f"const CommandRow kCommandRows[] = {{\n{rows}}};\n"


FIELD_KEYS = set("field label kind commands initial choices help".split())


def form_fields(tables, commands):
    """name, option, its row or None, keys of each field."""
    form = tables["form"]
    for entry in form["fields"]:
        table, _, key = entry.partition(".")
        if not key:
            yield entry, "", None, form[entry]
            continue
        keys = tables["options"].get(table, {}).get(key)
        keys = keys or tables["common"].get(key, {}) | tables[table][key]
        row = Row(key, keys, entry)
        field = keys["form"]
        for c in commands:
            has = any(r.name == row.name or r["position"] for r in c.rows)
            if c.name in field["commands"].split() and not has:
                raise Wrong(f"{entry}: the form names {c.name}, which has no such option")
        yield field.get("field", row.member), f"--{row.name}", row, field


def form_incs(tables, commands):
    """The names of the form's fields, and their rows."""
    names, rows = [], []
    for name, option, row, keys in form_fields(tables, commands):
        for k in keys.keys() - FIELD_KEYS:
            raise Wrong(f"{name}: {k} is no key of a field")
        choices, kind, initial = keys.get("choices", []), "line", keys.get("initial", "")
        if row:
            kind = {"whole": "whole", "decimal": "decimal"}.get(row.kind, kind)
            if row["choices"] and "..." not in row["choices"]:
                kind, initial = "choice", "$kUnset"
                choices = choices or ["$kUnset", *row["choices"]]
        least, most = (row and row["range"]) or (0, "UINT64_MAX")
        names.append(f"  {name},\n")
        fields = [
            f"Field::{name}",
            text(name),
            text(keys["label"]),
            f"Kind::{keys.get('kind', kind)}",
            text(option),
            text(keys.get("commands", "")),
            constant(initial),
            f"{{{', '.join(map(constant, choices))}}}",
            text(keys["help"]),
            f"{least}u",
            f"{most}u" if isinstance(most, int) else most,
        ]
        rows.append(f"    {{{', '.join(fields)}}},\n")
    return "".join(names), "".join(rows)


def constant(value):
    return value[1:] if value.startswith("$") else text(value)


def settings_table(tables):
    """The calls of for_each_setting() (src/generate/settings/settings_table.h)."""
    calls = {}
    for key, keys in tables["options"]["settings"].items():
        name, least = keys.get("member", key), keys.get("range", [0])[0]
        read = str(keys.get("checkpoint", True)).lower()
        target = f"&sample::{keys['sample']}::{name}" if "sample" in keys else "nullptr"
        row = f"SettingRow{{{text(name)}, {read}, {least}}}"
        calls.setdefault(name, f"  each({row}, &GenerationSettings::{name}, {target});\n")
    return "".join(calls.values())


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != content:
        path.write_text(content)


def main(root, out):
    root, out = Path(root), Path(out) / "options"
    tables, commands = read(root)
    for name, content in structs(tables):
        write(out / name, content)
    write(out / "settings_table.inc", settings_table(tables))
    write(out / "commands.inc", commands_inc(commands))
    write(out / "table.inc", table_inc(tables, commands))
    names, rows = form_incs(tables, commands)
    template = (root / "apps/python/requests.py.in").read_text()
    write(out / "requests.py", requests_py(tables, template))
    write(out / "argument_table.py", argument_table(tables))
    write(out / "python_members.inc", python_members(tables))
    write(out / "form_names.inc", names)
    write(out / "form_rows.inc", rows)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Wrong as e:
        sys.exit(f"tools/options/generate.py: {e}")
