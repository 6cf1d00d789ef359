#!/usr/bin/env python3
"""The tables of options, as the files that the build includes.

generate.py ROOT OUT

CMake runs it (cmake/options.cmake). It writes a file of OUT/options where its text changes.

src/generate/options.toml has what a caller of generation chooses, in the parts of its structs
(PARTS); apps/cli/options/commands.toml has the commands. A command lists its options in the order
of help: PART.ROW, or a row of its own or of [common]; @LIST is one of [lists]. A command's row, or
`like` in [common], says what differs from the row below it. Keys of a row:

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
              path, name, text, json or device; kind "not" of a flag: the argument says the contrary
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
import textwrap
from pathlib import Path

try:
    import tomllib
except ImportError:
    sys.exit("tools/options/generate.py: needs Python 3.11 or later (the module tomllib)")

# Part of options.toml -> its struct, and the member of a command that has it.
PARTS = {
    "model": ("ModelOptions", "model"),
    "execution": ("ExecutionOptions", "execution"),
    "chat": ("ChatOptions", "chat"),
    "settings": ("GenerationSettings", "sampling"),
    "sampling": ("SamplingOptions", "sampling"),
}
# Type -> the member's type in C++, the kind of value, the word for it in help.
TYPES = {
    "flag": ("bool", "flag", ""),
    "on": ("std::optional<bool>", "on", ""),
    "off": ("std::optional<bool>", "off", ""),
    "text": ("std::string", "text", None),
    "text?": ("std::optional<std::string>", "text", None),
    "texts": ("std::vector<std::string>", "text", None),
    "texts?": ("std::optional<std::vector<std::string>>", "text", None),
    "int": ("int", "whole", "N"),
    "int64": ("int64_t", "whole", "N"),
    "uint64": ("uint64_t", "whole", "N"),
    "int32?": ("std::optional<int32_t>", "whole", "N"),
    "int64?": ("std::optional<int64_t>", "whole", "N"),
    "uint64?": ("std::optional<uint64_t>", "whole", "N"),
    "ints": ("std::vector<int>", "whole", None),
    "int32s": ("std::vector<int32_t>", "whole", None),
    "int32s?": ("std::optional<std::vector<int32_t>>", "whole", None),
    "double": ("double", "decimal", None),
    "doubles": ("std::vector<double>", "decimal", None),
    "float?": ("std::optional<float>", "decimal", "NUMBER"),
    "power?": ("std::optional<double>", "power", None),
    "size": ("uint64_t", "size", None),
    "profile?": ("std::optional<Profile>", "profile", None),
    "operation set?": ("std::optional<OperationSet>", "operation_set", None),
    "biases?": ("std::optional<std::vector<sample::LogitBias>>", "bias", None),
    "int32 lists?": ("std::optional<std::vector<std::vector<int32_t>>>", "token lists", None),
}
ROW_KEYS = set(
    "name like short position member type value choices group help default unset range check "
    "may_be_empty required needs excludes comma many at_most form python sample checkpoint".split()
)
COMMAND_KEYS = set(
    "about group aliases examples struct parts run one_of one_of_text options".split()
)


class Wrong(Exception):
    pass


class Row:
    """One option of one command."""

    def __init__(self, key, keys, where):
        for k in keys.keys() - ROW_KEYS:
            raise Wrong(f"{where}: {k} is no key of a row")
        self.keys = keys
        self.name = keys.get("name", key.replace("_", "-"))
        self.member = keys.get("member", key)
        if keys.get("type") not in TYPES:
            raise Wrong(f"{where}: no type, or one that is not known")
        self.type, self.kind, value = TYPES[keys["type"]]
        self.value = keys.get("value", value)
        for k, v in (("value", self.value), ("group", self["group"]), ("help", self["help"])):
            if v is None and "help" in keys:
                raise Wrong(f"{where}: no {k}")
        self.is_list = "vector" in self.type and self["at_most"] != 1
        self.comma = self["comma"] or self.kind == "whole" and "vector" in self.type

    def __getitem__(self, key):
        return self.keys.get(key)

    def declaration(self):
        default = self.keys.get("default", self.keys.get("unset"))
        if default is None:
            default = False if self.type == "bool" else None
        return (
            f"  {self.type} {self.member}{'' if default is None else ' = ' + literal(default)};\n"
        )

    def cpp(self):
        """The initializer of an OptionRow."""
        least, most = self["range"] or (0, 0)
        standard = self["default"] if "(default" not in self["help"] else None
        fields = [
            text(self.name),
            text(self["short"] or ""),
            text(self.value),
            text(self["group"]),
            text(self["help"]),
            text("" if standard is None else str(standard)),
            text("|".join(self["choices"] or ())),
            text(" ".join(self["needs"] or ())),
            text(" ".join(self["excludes"] or ())),
            f"ValueKind::{self.kind}",
            f"{least}u" if isinstance(least, int) else least,
            f"{most}u" if isinstance(most, int) else most,
            f"check_{self['check']}" if self["check"] else "nullptr",
        ]
        flags = {
            "position": self["position"],
            "required": self["required"],
            "repeats": self.is_list,
            "many": self["many"],
            "comma": self.comma,
            "may_be_empty": self["may_be_empty"],
        }
        fields += [str(bool(v)).lower() for v in flags.values()]
        return "{" + ", ".join(fields) + "}"


def literal(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return text(value) if isinstance(value, str) else str(value)


def text(value):
    for character, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        value = value.replace(character, written)
    return f'"{value}"'


class Command:
    def __init__(self, name, keys, tables):
        self.name, self.keys = name, keys
        rows = {k: v for k, v in keys.items() if isinstance(v, dict) and k != "parts"}
        for k in keys.keys() - rows.keys() - COMMAND_KEYS:
            raise Wrong(f"{name}: {k} is no key of a command")
        self.run = keys.get("run", name.replace(" ", "_"))
        self.rows, used = [], set()
        for entry in self.listed(keys.get("options", []), tables["lists"]):
            key, base = below(entry, tables)
            own = rows.get(entry.split(".")[-1], {})
            used.add(entry.split(".")[-1])
            self.rows.append(Row(key, base | own, f"{name}: {entry}"))
        for k in rows.keys() - used:
            raise Wrong(f"{name}: the options do not have {k}")
        names = [r.name for r in self.rows]
        known = set(names)
        for r in self.rows:
            for other in (r["needs"] or []) + (r["excludes"] or []):
                if other not in known:
                    raise Wrong(f"{name}: {r.name} names {other}, which is no option")
        if len(known) < len(names):
            raise Wrong(f"{name}: an option is listed twice")

    @classmethod
    def listed(cls, entries, lists):
        for e in entries:
            if e.startswith("@"):
                yield from cls.listed(lists[e[1:]], lists)
            else:
                yield e

    def members(self):
        """Of the struct: name -> declaration."""
        found = {}
        for r in self.rows:
            part, _, rest = r.member.partition(".")
            if not rest:
                found[part] = r.declaration()
            elif part in self.keys.get("parts", {}):
                found[part] = f"  {self.keys['parts'][part]} {part};\n"
            else:
                struct = [s for s, member in PARTS.values() if member == part][-1]
                found[part] = f"  {struct} {part};\n"
        return found

    def cpp(self):
        """The initializer of a CommandRow."""
        one_of = " ".join(self.keys.get("one_of", ()))
        fields = [
            text("" if self.name == "program" else self.name),
            text(" ".join(self.keys.get("aliases", ()))),
            text(self.keys["about"]),
            text(self.keys.get("group", "")),
            text("\n".join(self.keys.get("examples", ()))),
            text(one_of),
            text(self.keys.get("one_of_text", "")),
        ]
        if not self.rows:
            return "{" + ", ".join(fields) + ", {}, nullptr, nullptr}"
        targets = ", ".join(f"&c.{self.run}.{r.member}" for r in self.rows)
        call = "nullptr"
        if self.name != "program":
            call = (
                f"[](Commands& c) {{ return start(c.{self.run}, {text(self.name)}, {self.run}); }}"
            )
        members = f"[](Commands& c) -> std::vector<Target> {{ return {{{targets}}}; }}"
        return f"{{{', '.join(fields)}, {self.rows_name()},\n     {members},\n     {call}}}"

    def rows_name(self):
        return "kOptionsOf" + "".join(w.capitalize() for w in self.run.split("_"))


def below(entry, tables):
    """The key and the keys of the row that a command's row stands on."""
    part, _, key = entry.rpartition(".")
    if part:
        row = tables["options"][part][key]
        member = f"{PARTS[part][1]}.{row.get('member', key)}"
        return key, row | {"member": member}
    row = dict(tables["common"].get(entry, {}))
    if "like" in row:
        key, base = below(row.pop("like"), tables)
        return key, base | row
    return entry, row


def read(root):
    tables = tomllib.loads((root / "apps/cli/options/commands.toml").read_text())
    tables["options"] = tomllib.loads((root / "src/generate/options.toml").read_text())
    tables["form"] = tomllib.loads((root / "apps/tui/form.toml").read_text())
    outside = {"groups", "common", "lists", "options", "form"}
    return tables, [Command(n, k, tables) for n, k in tables.items() if n not in outside]


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


# Kind of an argument of Python -> its type and default.
ARGUMENTS = {
    "flag": "bool = False",
    "not": "bool = True",
    "flag?": "bool | None = None",
    "decimal": "float | None = None",
    "path": "Path | None = None",
    "name": "str | None = None",
    "text": 'str = ""',
    "device": 'str | list[str] | tuple[str, ...] = "cpu"',
    "texts": "str | list[str] | None = None",
    "json": "Mapping[str, Any] | str | None = None",
    "tokens": "list[int] | None = None",
    "bias": "Mapping[int, float] | None = None",
    "token lists": "list[list[int]] | None = None",
}


class Argument:
    """An option as an argument of invar.generate()."""

    def __init__(self, row):
        keys = row["python"]
        self.name, self.member, self.help = keys.get("name", row.member), row.member, keys["help"]
        kinds = {"on": "flag?", "size": "whole", "text": "texts" if row.is_list else "text"}
        self.kind = keys.get("kind", kinds.get(row.kind, row.kind))
        if self.kind == "whole" and row.is_list:
            self.kind = "tokens"
        if self.kind == "whole":
            standard = row.keys.get("default", row.keys.get("unset"))
            self.type = "int | None = None" if standard is None else f"int = {standard}"
            least, most = row["range"] or (0, 2**63 - 1)
            self.limits = (least if standard is None else min(least, standard), most)
        else:
            self.type, self.limits = ARGUMENTS[self.kind], ()

    def entry(self):
        """Of the table that invar/generation.py reads."""
        limits = ["_native.most_threads" if n == "kMaxThreads" else str(n) for n in self.limits]
        values = [text(self.member), text(self.kind), *limits]
        return f"    {text(self.name)}: ({', '.join(values)}),\n"


def arguments(tables, selectors):
    """Of parts and rows, without those of which `!` says so."""
    left_out = {s[1:] for s in selectors if s.startswith("!")}
    for s in selectors:
        part, _, key = s.partition(".")
        for k, keys in tables["options"].get(part, {}).items():
            if "python" in keys and k not in left_out and key in ("", k):
                yield Argument(Row(k, keys, f"{part}.{k}"))


def requests_py(tables, template):
    """The functions of Python with their arguments."""
    out = []
    for line in template.splitlines():
        what, *selectors = line.split() or [""]
        found = list(arguments(tables, selectors)) if line.startswith("@") else []
        if what == "@parameters":
            out += [f"    {a.name}: {a.type}," for a in found]
        elif what == "@documentation":
            for a in found:
                begin = f"    {a.name:<17}  "
                out += textwrap.wrap(
                    a.help,
                    100,
                    initial_indent=begin,
                    subsequent_indent=" " * 23,
                    break_on_hyphens=False,
                )
        elif what == "@names":
            names = ", ".join([a.name for a in found] + ["workers"])
            out += textwrap.wrap(names, 100, initial_indent=" " * 4, subsequent_indent=" " * 4)
        else:
            out.append(line)
    return "\n".join(out) + "\n"


def argument_table(tables):
    """argument -> member, kind, limits, for invar/generation.py."""
    out = [
        '"""Arguments of invar.generate() that are options, made by tools/options/generate.py."""\n\n'
    ]
    out += ["from invar import _native\n"]
    for name, parts in (
        ("SAMPLING", ["settings", "sampling"]),
        ("EXECUTION", ["execution"]),
        ("MODEL", ["model"]),
    ):
        rows = "".join(a.entry() for a in arguments(tables, parts))
        out.append(f"\n# Argument: member, kind, limits.\n{name} = {{\n{rows}}}\n")
    return "".join(out)


def python_members(tables):
    """Members of the native options that Python sets."""
    members = {}
    for part, rows in tables["options"].items():
        if part != "chat":
            struct = next(s for s, where in reversed(PARTS.values()) if where == PARTS[part][1])
            for key, keys in rows.items():
                if "help" not in keys and "python" not in keys:
                    continue
                name = keys.get("member", key)
                members[name] = f'  member({PARTS[part][1]}, "{name}", &{struct}::{name});\n'
    return "".join(members.values())


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
