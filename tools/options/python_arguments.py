"""Options as arguments of Python: functions, the table of arguments, members of native structs."""

import textwrap

from rows import PARTS, Row, text

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
    "hosts": "str | list[str] | tuple[str, ...] | None = None",
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
            names = ", ".join([a.name for a in found] + ["worker_model"])
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
