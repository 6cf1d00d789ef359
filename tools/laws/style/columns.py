"""House rule: no line of code is longer than 110 columns, and no comment of C++ or CUDA longer than
100.

A line may be longer where it cannot be broken: an address, a string that is one piece of data, a
raw string of C++, or what stands between `clang-format off` and `on`, or before `# fmt: skip`.
"""

import re

from law import CPP, TOKEN, comments, finding, lines

LIMIT, COMMENT = 110, 100
LOOKED_AT = CPP + (".py", ".sh", ".cmake", ".td")
PYTHON = re.compile(
    r"#[^\n]*|(?P<long>(?P<quotes>\"{3}|'{3}).*?(?P=quotes))|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
    re.S,
)
OFF, ON = re.compile(r"clang-format off|# fmt: off"), re.compile(r"clang-format on|# fmt: on")
ONE_PIECE = re.compile(r"https?://\S{40}|[\"'][^\"'\s]{60,}[\"']|# fmt: skip$|# noqa: E501$")


def data_lines(path, text):
    """Numbers of the lines that a raw string of C++ touches, or a text of several lines in Python
    that is no docstring."""
    touched = set()
    for m in (TOKEN if path.endswith(CPP) else PYTHON).finditer(text):
        token = m.group(0)
        begins = text[text.rfind("\n", 0, m.start()) + 1 : m.start()].strip()
        begins = begins or text[: m.start()].rstrip()[-1:] in tuple("([{,+=")
        if token.startswith('R"') or (
            path.endswith(".py") and m["long"] and "\n" in token and begins
        ):
            first = text.count("\n", 0, m.start()) + 1
            touched.update(range(first, first + token.count("\n") + 1))
    return touched


def check(files):
    found = []
    for path, text in files.items():
        if text is None or not (
            path.endswith(LOOKED_AT) or path.rsplit("/", 1)[-1] == "CMakeLists.txt"
        ):
            continue
        only_comments = comments(text).split("\n") if path.endswith(CPP) else None
        data = data_lines(path, text) if path.endswith((*CPP, ".py")) else ()
        free = False
        for n, line in lines(text):
            free = bool(OFF.search(line)) or free and not ON.search(line)
            width = len(line)
            if width <= COMMENT or free or n in data or ONE_PIECE.search(line):
                continue
            is_comment = only_comments is not None and only_comments[n - 1].strip() == line.strip()
            if width > LIMIT or is_comment:
                limit = COMMENT if is_comment else LIMIT
                found.append(
                    finding(
                        path,
                        n,
                        f"{width} columns, more than {limit}; break the line (tools/format.sh)",
                    )
                )
    return found


SELF_TEST = [
    ("code", {"src/run/x.cc": "int x = " + "1 + " * 30 + "1;\n"}, 1),
    ("CUDA", {"src/ops/x/cuda.cu": "int x = " + "1 + " * 30 + "1;\n"}, 1),
    ("a comment", {"src/run/x.cc": "  // " + "word " * 20 + "\n"}, 1),
    ("Python", {"tools/x.py": "x = " + "1 + " * 30 + "1\n"}, 1),
    ("a docstring", {"tools/x.py": '"""First.\n\n' + "word " * 30 + '"""\n'}, 1),
    ("a model as text", {"tests/x.py": 'M = f"""\n' + "a = Add(b, c) " * 20 + '\n"""\n'}, 0),
    ("the build", {"src/CMakeLists.txt": "# " + "word " * 30 + "\n"}, 1),
    (
        "after what was left alone",
        {
            "src/run/x.cc": "// clang-format off\n// clang-format on\nint x = "
            + "1 + " * 30
            + "1;\n"
        },
        1,
    ),
    (
        "code that ends in a comment",
        {"src/run/x.cc": "int x = " + "1 + " * 20 + "1;  // " + "word " * 3 + "\n"},
        0,
    ),
    (
        "what cannot be broken",
        {
            "src/run/x.cc": "// https://example.org/"
            + "a" * 99
            + "\n// clang-format off\n"
            + "1, " * 60
            + '\n// clang-format on\nf(R"('
            + "a b " * 40
            + ')");\n',
            "tools/x.py": "x = '" + "f" * 128 + "'\n",
            "docs/x.md": "word " * 40,
        },
        0,
    ),
]
