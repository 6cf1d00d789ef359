"""House rule: no function of C++ or CUDA is longer than 80 lines without a reason.

Counted from the line of its opening brace to that of its closing one, comments and lambdas within
included. A longer one says `Long because ...` in the comment above it or in the first lines of its
body, or stands in ALLOWED with the reason why it has not been split; the law prints those.
"""

import re

from law import CPP, code, finding

LIMIT = 80
REASON = re.compile(r"//[^\n]*\b[Ll]ong because\b")
# {file: {function: why it is still whole}}.
ALLOWED = {}

DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", re.M)
TEMPLATE = re.compile(r"^\s*template\s*<")
ATTRIBUTE = re.compile(
    r"__attribute__\s*\(\(.*?\)\)|__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)|alignas\s*\([^()]*\)|\[\[.*?\]\]",
    re.S,
)
CONTAINER = re.compile(
    r"\s*(?:export\s+)?(?:inline\s+)?(?:namespace\b|extern\s+\"|(?:typedef\s+|static\s+|constexpr\s+)*(?:struct|class|union|enum)\b)"
)
SIGNATURE = re.compile(
    r"\)\s*(?:const\b|noexcept\b(?:\s*\([^()]*\))?|override\b|final\b|mutable\b|try\b|&&?|->\s*[\w:<>,\s*&]+|requires\b.*)*\s*$",
    re.S,
)
INITIALISERS = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")
NAME = re.compile(
    r"((?:[\w~]+(?:<[^<>()]*>)?::)*(?:operator\s*(?:\(\)|[^\s(]+)|~?[A-Za-z_]\w*))\s*\("
)


def first_branches(text):
    """`text` without the lines that #else and #elif hold: braces may open in one branch and close
    for both."""
    out, skipping = [], []
    for line in text.split("\n"):
        m = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b", line)
        if m and m.group(1).startswith("if"):
            skipping.append(False)
        elif m and m.group(1) in ("elif", "else") and skipping:
            skipping[-1] = True
        elif m and m.group(1) == "endif" and skipping:
            skipping.pop()
        out.append("" if any(skipping) else line)
    return "\n".join(out)


def without_templates(head):
    """A declaration without `template <...>` before it."""
    while TEMPLATE.match(head):
        at, open_brackets = head.index("<"), 0
        while at < len(head):
            open_brackets += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
            if not open_brackets:
                break
        head = head[at:]
    return head


def name_of(head):
    """The name of the function whose signature `head` ends with."""
    head = ATTRIBUTE.sub("", head)
    names = [
        m
        for m in NAME.finditer(head)
        if m.group(1) not in ("decltype", "noexcept", "requires", "if", "sizeof")
    ]
    if not names:
        return "?"
    if names[0].group(1) in ("TEST", "TEST_F", "TEST_P", "TYPED_TEST"):
        return re.sub(r"\s+", " ", head[names[0].start() :].strip())
    return names[0].group(1)


def functions(text):
    """(name, first line of the signature, line of the opening brace, line of the closing one) of
    each function of C++ text."""
    text = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), code(text, strings=False))
    text = re.sub(r"'(?:\\.|[^'\\\n])'", "' '", text)
    found, closed_at = [], []
    head_from = 0  # where the declaration begins that the next brace may belong to
    inside = []  # kind of each open brace: "container", "function" or "initialiser" (all else)
    for m in re.finditer(r"[{};]", text):
        at, c = m.start(), m.group(0)
        free = all(k == "container" for k in inside)
        if c == "{":
            head = text[head_from:at]
            kind = "initialiser"
            if free:
                bare = ATTRIBUTE.sub("", without_templates(head)).rstrip()
                bare = re.sub(r"^\s*(?:public|private|protected)\s*:", "", bare)
                if CONTAINER.match(bare) and not bare.endswith(")"):
                    kind = "container"
                elif INITIALISERS.search(bare):
                    kind = "function" if bare.endswith((")", "}")) else "initialiser"
                elif SIGNATURE.search(bare) and "(" in bare:
                    kind = "function"
            inside.append(kind)
            if kind == "container":
                head_from = m.end()
            elif kind == "function":
                start = at - len(head.lstrip()) if head.strip() else at
                found.append(
                    [
                        name_of(without_templates(head)),
                        line_of(text, start),
                        line_of(text, at),
                        None,
                    ]
                )
                closed_at.append(len(inside))
        elif c == "}":
            if not inside:
                return None
            kind = inside.pop()
            if kind == "function":
                found[-1][3] = line_of(text, at)
                closed_at.pop()
                head_from = m.end()
            elif kind == "container":
                head_from = m.end()
        elif free:
            head_from = m.end()
    return None if inside else [tuple(f) for f in found]


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def has_reason(raw, first, opened):
    """Whether the comment above a function, or the first lines of its body, give a reason for its
    length."""
    above = first - 2
    while above >= 0 and raw[above].lstrip().startswith(("//", "template", "/*", "*")):
        above -= 1
    return any(REASON.search(line) for line in raw[above + 1 : opened + 3])


def long_functions(files):
    """(path, line, name, lines) of each function over the limit that gives no reason; None as name:
    not understood."""
    for path, text in files.items():
        if text is None or not path.endswith(CPP):
            continue
        known = functions(text)
        if known is None:
            known = functions(first_branches(text))
        if known is None:
            yield path, 1, None, 0
            continue
        raw = text.split("\n")
        for name, first, opened, closed in known:
            if closed - opened + 1 > LIMIT and not has_reason(raw, first, opened):
                yield path, opened, name, closed - opened + 1


def check(files):
    found = []
    seen = set()
    for path, line, name, count in long_functions(files):
        if name is None:
            found.append(finding(path, line, "braces do not match; this law cannot read the file"))
        elif name in ALLOWED.get(path, {}):
            seen.add((path, name))
        else:
            found.append(
                finding(
                    path,
                    line,
                    f"{name} has {count} lines, more than {LIMIT}; split it, or say 'Long because "
                    f"...' above it",
                )
            )
    for path, names in ALLOWED.items():
        for name in names:
            if path in files and (path, name) not in seen:
                found.append(
                    finding(
                        path,
                        1,
                        f"{name} is no longer too long; remove it from tools/laws/style/functions.py",
                    )
                )
    return found


def notes(files):
    return [
        f"{path}:{line}: allowed: {name} has {count} lines: {ALLOWED[path][name]}"
        for path, line, name, count in long_functions(files)
        if name in ALLOWED.get(path, {})
    ]


LONG = "  f();\n" * 80
SELF_TEST = [
    ("too long", {"src/run/x.cc": "namespace a {\nint f(int x) {\n" + LONG + "}\n}\n"}, 1),
    (
        "a kernel",
        {
            "src/ops/x/cuda.cu": "template <class F, int N = (1 > 0)>\n"
            "__global__ void __launch_bounds__(g(2)) k(F f) {\n" + LONG + "}\n"
        },
        1,
    ),
    (
        "a member and a constructor",
        {
            "src/run/x.h": "struct S {\n  S(int x) : a{x}, b(x) {\n"
            + LONG
            + "  }\n  int f() const {\n"
            + LONG
            + "  }\n};\n"
        },
        2,
    ),
    ("a test", {"src/run/x_test.cc": "TEST(A, b) {\n" + LONG + "}\n"}, 1),
    (
        "a lambda counts for its function",
        {"src/run/x.cc": "void f() {\n  each([&](int i) {\n" + LONG + "  });\n}\n"},
        1,
    ),
    (
        "a reason elsewhere",
        {"src/run/x.cc": "// Long because it is.\nint g() {}\nint f() {\n" + LONG + "}\n"},
        1,
    ),
    ("braces that do not match", {"src/run/x.cc": "void f() {\n"}, 1),
    (
        "one of each branch",
        {
            "src/run/x.cc": "void f() {\n#if A\n  if (a) {\n#else\n  if (b) {\n#endif\n"
            + LONG
            + "}\n}\n"
        },
        1,
    ),
    (
        "with a reason above or within",
        {
            "src/run/x.cc": "// Long because one switch is one table.\ntemplate <class T>\nint f() {\n"
            + LONG
            + "}\n"
            "int g() {\n  // Long because each step needs the last.\n" + LONG + "}\n"
        },
        0,
    ),
    (
        "short ones in long containers",
        {
            "src/run/x.cc": "namespace {\nclass A : public B {\n public:\n"
            + "  int f() { return '{'; }\n" * 90
            + "};\n}\n"
            "constexpr int kTable[] = {\n" + "  1,\n" * 90 + "};\n#define X(a) \\\n  { a\n"
        },
        0,
    ),
]
