"""Law 13: errors have a kind. No code of src and apps searches the message of an error: who refuses
sets `ErrorKind` (src/base/status.h), an exception's class or its attribute, and who reacts asks for
that. Words may be put around a message.

Looked at: C++ (`.message`, `what()`, and strings with the name of a message), Python (the text of a
caught exception) and JavaScript (`.message`). Tests may read messages.

A refusal that names a dimension in words alone loses its symbols, and the pass that looks for the
value that decides one does not find it: rules of the compiler and of rooms write text_of(size), not
size.text(), in a message.
"""

import ast
import re

import functions
from law import CPP, code, finding, is_test, lines

SEARCH = (
    "find|rfind|find_first_of|find_last_of|contains|starts_with|ends_with|substr|compare|split|"
    "consume_front|consume_back"
)
TEXT = r"(?:std::string|std::string_view|llvm::StringRef|StringRef)"
# A string that is named as messages are, or has one as its value.
NAMED = re.compile(rf"\b{TEXT}\s*&?\s*(\w*(?:message|error|refusal|wrong))\b(?=\s*[;,)=({{])")
VALUE = re.compile(r"\b(\w+)\s*[=({]\s*[^;\n]*(?:\bmessage|\.what\(\))\s*[;,)}]")
DIRECT = re.compile(rf"(?:\.message|\.what\(\))\s*\.\s*(?:{SEARCH})\s*\(")
COMPARED = re.compile(r"\.message\s*[=!]=|[=!]=\s*[\w.()>*-]+\.message\b")
PASSED = re.compile(
    r"\b(?:\w*_)?(?:find|named|match|contains|search|parse|replace)(?:_\w*)?"
    r"\((?:[^();]|\(\))*\.message\b"
)

PLAIN = re.compile(r"\b(?:bad_input|not_covered|refuse|mismatch)\([^;]*?[\w\])](?:\.|->)text\(\)")

JAVASCRIPT = re.compile(
    r"\.message\s*\.\s*(?:includes|match|matchAll|startsWith|endsWith|indexOf|search|split|replace)\("
    r"|\.(?:test|exec)\([^()]*\.message\b|\.message\s*[=!]=="
)

METHODS = set(
    "startswith endswith find rfind index rindex split rsplit partition rpartition replace count".split()
)
ERRORS = {"e", "error", "exc", "exception"}


def in_cpp(text):
    """(line, what is searched there) of C++ or CUDA text."""
    text = code(text)
    for n, line in lines(text):
        for pattern in (DIRECT, COMPARED, PASSED):
            yield from ((n, m.group(0)) for m in pattern.finditer(line))
    declared = [m for pattern in (NAMED, VALUE) for m in pattern.finditer(text)]
    bodies = functions.functions(text) or [] if declared else []
    found = set()
    for m in declared:
        at = functions.line_of(text, m.start(1))
        first, last = next(((a, b) for _, a, _, b in bodies if a <= at <= b), (1, len(text)))
        used = re.compile(rf"(?<![\w.>]){m.group(1)}\.(?:{SEARCH})\(")
        found |= {
            (n, u.group(0), u.start())
            for n, line in lines(text)
            if first <= n <= last
            for u in used.finditer(line)
        }
    yield from ((n, what) for n, what, _ in sorted(found))


def is_message(node, errors, texts):
    """Whether an expression is the text of an error: str(e), e.args[...], or a name that has it."""
    if isinstance(node, ast.Name):
        return node.id in texts
    if isinstance(node, ast.Subscript):
        node = node.value
        return (
            isinstance(node, ast.Attribute)
            and node.attr == "args"
            and isinstance(node.value, ast.Name)
            and node.value.id in errors
        )
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("str", "repr")
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id in errors
    )


def in_python(text):
    """The same of Python text."""
    tree = ast.parse(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Module)]
    seen = set()
    for function in functions[::-1]:  # inner ones first
        inside = list(ast.walk(function))
        errors = {n.name for n in inside if isinstance(n, ast.ExceptHandler) and n.name} | ERRORS
        texts = {
            target.id
            for n in inside
            if isinstance(n, ast.Assign) and is_message(n.value, errors, ())
            for target in n.targets
            if isinstance(target, ast.Name)
        }
        for n in inside:
            searched = (
                isinstance(n, ast.Compare)
                and any(is_message(x, errors, texts) for x in (n.left, *n.comparators))
                or isinstance(n, ast.Call)
                and isinstance(n.func, ast.Attribute)
                and (
                    n.func.attr in METHODS
                    and is_message(n.func.value, errors, texts)
                    or isinstance(n.func.value, ast.Name)
                    and n.func.value.id == "re"
                    and any(is_message(x, errors, texts) for x in n.args)
                )
            )
            if searched and (n.lineno, n.col_offset) not in seen:
                seen.add((n.lineno, n.col_offset))
                yield n.lineno, ast.unparse(n)


def searches(files):
    """(path, line, what) of each search."""
    for path, text in files.items():
        if text is None or not path.startswith(("src/", "apps/")) or is_test(path):
            continue
        if path.endswith(CPP) and "/tests/" not in path:
            yield from ((path, *at) for at in in_cpp(text))
        elif path.endswith(".py") and "/tests/" not in path:
            yield from ((path, *at) for at in in_python(text))
        elif path.endswith((".js", ".mjs", ".html")):
            for n, line in lines(text):
                yield from ((path, n, m.group(0)) for m in JAVASCRIPT.finditer(line))


def plain_dimensions(files):
    """(path, line) of each refusal with a dimension in plain words."""
    for path, text in files.items():
        if text is None or not path.startswith(("src/ops/", "src/compiler/")) or is_test(path):
            continue
        if path.endswith(CPP):
            text = code(text)
            yield from ((path, functions.line_of(text, m.start())) for m in PLAIN.finditer(text))


def check(files):
    return [
        finding(path, line, "text() loses the symbols that a refusal names; write text_of(...)")
        for path, line in plain_dimensions(files)
    ] + [
        finding(
            path,
            line,
            f"'{what}' reads the message of an error; let who refuses set a kind and ask for it",
        )
        for path, line, what in searches(files)
    ]


SELF_TEST = [
    (
        "a dimension in plain words",
        {"src/ops/x/import.cc": 'return not_covered("parts of " + total->text() + " elements");\n'},
        1,
    ),
    (
        "a dimension with its symbols",
        {"src/ops/x/import.cc": 'return not_covered("parts of " + text_of(*total));\n'},
        0,
    ),
    ("a member", {"src/run/x.cc": 'if (e.message.find("no") != npos) f();\n'}, 1),
    ("a result", {"src/run/x.cc": 'if (!r && r.error().message.starts_with("no")) f();\n'}, 1),
    ("compared", {"apps/cli/x.cc": 'return r.error().message == "no";\n'}, 1),
    (
        "a name for it",
        {"src/run/x.cc": "const std::string& m = s.error().message;\nf(m.substr(2));\n"},
        1,
    ),
    (
        "a parameter",
        {"src/run/x.h": 'bool f(std::string_view message) { return message.contains("a"); }\n'},
        1,
    ),
    (
        "of an exception",
        {"src/run/x.cc": 'const std::string t = e.what();\nif (t.find("a")) f();\n'},
        1,
    ),
    (
        "a name for a parameter",
        {"src/run/x.cc": 'void f(string message) {\n  StringRef t(message);\n  t.split(" ");\n}\n'},
        1,
    ),
    ("passed on", {"src/run/x.cc": "g(names.value_named_in(error.message);\n"}, 1),
    (
        "Python",
        {"apps/python/x.py": "try:\n  f()\nexcept A as x:\n  if 'a' in str(x):\n    g()\n"},
        1,
    ),
    (
        "Python, by name",
        {"apps/python/x.py": "def f(e):\n  text = str(e)\n  return text.split(':')[0]\n"},
        1,
    ),
    (
        "Python, by a pattern",
        {"apps/python/x.py": "def f(e):\n  return re.search('a', str(e))\n"},
        1,
    ),
    ("JavaScript", {"apps/web/page/x.js": "if (/a/i.test(error.message)) f();\n"}, 1),
    (
        "the name in another function",
        {"src/run/x.cc": "void f() {\n  auto t = e.what();\n}\nvoid g(T t) {\n  t.find(1);\n}\n"},
        0,
    ),
    (
        "words around it, kinds, chats and tests",
        {
            "src/run/x.cc": 'f(where + e.message);\nif (e.kind == ErrorKind::index) g(m.find("a"));\n'
            '// e.message.find("a")\n',
            "apps/tui/x.cc": 'if (message.contains("content")) f();\n',
            "src/run/x_test.cc": 'EXPECT_NE(e.message.find("a"), npos);\n',
            "apps/python/x.py": "try:\n  f()\nexcept A as e:\n  raise B(f'x: {e}') from None\n",
            "apps/web/page/x.js": "post(error.message);\n",
        },
        0,
    ),
]
