"""House rule: a name that a file keeps to itself is unique in its target, so that cmake/unity.cmake
may put any of the target's files into one translation unit. Overloads and equal aliases may meet.

The compiler finds what clashes within a batch of today; this finds what would clash once a new file
moves the batches.
"""

import collections
import re

from functions import ATTRIBUTE, DIRECTIVE, without_templates
from law import code, finding

TYPE = re.compile(r"(?:typedef\s+)?(?:struct|class|union|enum(?:\s+class)?)\s+(\w+)")
ALIAS = re.compile(r"(?:using|namespace)\s+(\w+)\s*=(.*)", re.S)
FUNCTION = re.compile(r"(?:^|[\s*&>])(\w+)\s*\((.*)", re.S)
VARIABLE = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|$)")
NO_DECLARATION = ("using ", "extern", "friend", "static_assert", "template<>", "return")


def target(path):
    """Where the file is compiled, or None: rooms' kernels are translation units of their own."""
    if not path.endswith(".cc"):
        return None
    parts = path.split("/")
    kind = " tests" if path.endswith("_test.cc") else ""
    if path.startswith("src/ops/"):
        if kind:
            return "src/ops" + kind
        name = "/".join(parts[3:])
        return (
            "rooms' torch.cc"
            if name == "torch.cc"
            else "src/compiler"
            if name.startswith("import")
            else "src/ops"
            if name == "room.cc"
            else None
        )
    if path.startswith("src/kernels/"):
        return None if "/vendor/" in path else "src/ops" + kind
    if parts[0] == "bench":
        return "bench"
    return "/".join(parts[:2]) + kind if parts[0] in ("src", "apps") else None


def declared(head):
    """(name, what must differ where another file has the name, too) of a declaration's text."""
    head = ATTRIBUTE.sub("", without_templates(head)).strip()
    if m := ALIAS.match(head):
        return m.group(1), "= " + re.sub(r"\s+", " ", m.group(2))
    if not head or head.startswith(NO_DECLARATION):
        return None
    if m := TYPE.match(head):
        return (m.group(1), "") if head[m.end() :].strip()[:1] != "(" else None
    before = head.split("=")[0]
    if (
        (m := FUNCTION.search(before))
        and "operator" not in before
        and "::" + m.group(1) not in before
    ):
        if m.group(1).isupper():  # a macro: TEST(...)
            return None
        parameters = re.sub(r"=[^,)]*", "", re.sub(r"\)[^)]*$", "", m.group(2)))
        kinds = [re.sub(r"\s*\b\w+\s*$", "", p).strip() for p in parameters.split(",")]
        return m.group(1), "(" + ", ".join(re.sub(r"\s+", " ", k) for k in kinds) + ")"
    if "(" in before or re.search(r"::\w+$", before.strip()):
        return None
    m = VARIABLE.search(before.strip())
    return (m.group(1), "") if m and not m.group(1).isdigit() else None


def local_names(text):
    """(name, kind, line) of what unnamed namespaces hold and of static declarations."""
    text = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), code(text, strings=False))
    text = re.sub(r"'(?:\\.|[^'\\\n])'", "' '", text)
    found, inside, start, round_brackets = [], [], 0, 0

    def note(head, at):
        local = "unnamed" in inside or re.match(r"static\b", head)
        if local and "other" not in inside and (name := declared(head)):
            found.append((*name, text.count("\n", 0, at) + 1))

    for m in re.finditer(r"[{}();]", text):
        c, at = m.group(0), m.start()
        if c in "()":
            round_brackets += 1 if c == "(" else -1
        elif round_brackets == 0:
            head = text[start:at].strip()
            namespace = re.search(r"\bnamespace(\s+[\w:]+)?$", head)
            if c == "{":
                if not (namespace and "other" not in inside):
                    note(head, at)
                inside.append(
                    ("named" if namespace.group(1) else "unnamed") if namespace else "other"
                )
            elif c == "}" and inside:
                inside.pop()
            elif c == ";":
                note(head, at)
            if "other" not in inside:
                start = at + 1
    return found


def check(files):
    names = collections.defaultdict(dict)
    found = []
    for path, text in files.items():
        where = target(path)
        if not where or not text:
            continue
        for name, kind, line in local_names(text):
            other = names[where].setdefault(
                (name, kind if kind.startswith("(") else ""), (path, kind)
            )
            if other[0] != path and not (kind.startswith("=") and kind == other[1]):
                found.append(
                    finding(path, line, f"'{name}' is a name of {other[0]}, too: unity batches")
                )
    return found


UNNAMED = "namespace invar {{\nnamespace {{\n{}\n}}  // namespace\n}}\n"
SELF_TEST = [
    (
        "one constant in two files",
        {f"src/run/{f}.cc": UNNAMED.format("constexpr int kMost = 3;") for f in "ab"},
        1,
    ),
    ("one struct", {f"src/run/{f}.cc": UNNAMED.format("struct Row { int a; };") for f in "ab"}, 1),
    (
        "one static function",
        {f"src/run/{f}.cc": "static int f(int a) { return a; }\n" for f in "ab"},
        1,
    ),
    (
        "in two targets",
        {f"src/{f}/a.cc": UNNAMED.format("constexpr int kMost = 3;") for f in ("run", "plan")},
        0,
    ),
    (
        "overloads",
        {f"src/run/{f}.cc": UNNAMED.format(f"bool is({f} x) {{ return x; }}") for f in ("A", "B")},
        0,
    ),
    (
        "the same alias",
        {f"src/run/{f}.cc": UNNAMED.format("namespace fs = std::filesystem;") for f in "ab"},
        0,
    ),
    (
        "other aliases",
        {f"src/run/{f}.cc": UNNAMED.format(f"using T = {f};") for f in ("int", "long")},
        1,
    ),
    (
        "a member and a local",
        {f"src/run/{f}.cc": "int a() {\n  static int n;\n  return n;\n}\n" for f in "ab"},
        0,
    ),
]
