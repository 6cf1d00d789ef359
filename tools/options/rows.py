"""The rows of the tables of options and the commands that list them. generate.py beside this file
says what their keys mean."""

import sys

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
            if self.rows[-1].kind == "whole" and not self.rows[-1]["range"]:
                raise Wrong(f"{name}: {entry}: a whole number has a range")
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
