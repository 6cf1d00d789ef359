"""Law 1: no operation name outside its room, spec/opset.toml and the model recipes
(src/checkpoint). Filters of Jinja (src/prompt/jinja) have names of their own, such as round.

Looked at: program text (src, apps, cmake), comments aside. A name counts as a whole string literal
("softmax") or in an include path; in identifiers only where the word has no other use. Tests may
name what they test, and a room may name the rooms whose composition it equals in its tests.
"""

import re

from law import CPP, code, finding, is_test, lines, rooms

# Names that mean nothing else in code: as identifiers they count too. Words like add, cast or exp
# have other uses.
DISTINCT = {"argmax", "matmul", "rmsnorm", "rope", "sigmoid", "silu", "softmax"}
NAME = re.compile(
    # "sign" is a parameter of Python's, too, "clip" an attribute of ONNX.
    r'(?<!nb::arg\()(?<!kClipAttribute = )"([a-z0-9_]+)(?=")'
    r'|#include\s+"ops/([a-z0-9_]+)/'
    rf"|\b(?:row_)?({'|'.join(DISTINCT)})(?:_(?:reference|scalar|avx2|avx512|neon))?\b"
)
# A text of several words is no name: what is said of an error, or the values of an attribute.
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
# Recipes name operations.
RECIPE = re.compile(r"src/checkpoint/|src/prompt/jinja/|models/")


def one_word(text):
    return '""' if " " in text.group() else text.group()


def check(files):
    ops = rooms(files)
    if not ops:
        return [
            finding("spec/opset.toml", 1, "no operations found: this law has nothing to hold on to")
        ]
    found = []
    for path, text in files.items():
        if text is None or is_test(path) or RECIPE.match(path):
            continue
        if not (
            path.startswith(("src/", "apps/"))
            and path.endswith(CPP)
            or path.startswith("cmake/")
            or path == "CMakeLists.txt"
        ):
            continue
        room = re.match(r"src/ops/([a-z0-9_]+)/", path)
        text = code(text) if path.endswith(CPP) else re.sub(r"#.*", "", text)
        for n, line in lines(text):
            named = {m.group(m.lastindex) for m in NAME.finditer(TEXT.sub(one_word, line))}
            for op in sorted(named & ops.keys()):
                if not room or room.group(1) != ops[op]:
                    found.append(
                        finding(
                            path,
                            n,
                            f"names the operation '{op}' outside src/ops/{ops[op]}; ask the room "
                            f"or opset.toml",
                        )
                    )
    return found


OPSET = {"spec/opset.toml": "[softmax]\nversion = 1\n[add]\nversion = 1\n"}
SELF_TEST = [
    ("a string in the runtime", {**OPSET, "src/run/x.cc": 'if (op == "softmax") f();\n'}, 1),
    ("an identifier in the compiler", {**OPSET, "src/compiler/x.cc": "Value softmax(Value);\n"}, 1),
    ("an everyday word as a name", {**OPSET, "src/compiler/x.cc": 'lower("add");\n'}, 1),
    (
        "a text of several words",
        {**OPSET, "src/compiler/x.cc": 'f("relu softmax"); g("softmax");\n'},
        1,
    ),
    ("another room's header", {**OPSET, "src/ops/add/cpu.cc": '#include "ops/softmax/x.h"\n'}, 1),
    ("no list at all", {"src/run/x.cc": ""}, 1),
    (
        "another operation of the same room, and of another",
        {
            "spec/opset.toml": '[relu]\nroom = "elementwise"\n[exp]\nversion = 1\nroom = "elementwise"\n',
            "src/ops/elementwise/cpu.cc": 'f("relu", "exp");\n',
            "src/ops/relu/cpu.cc": 'f("exp");\n',
        },
        1,
    ),
    (
        "the room itself, a recipe, comments and everyday use",
        {
            **OPSET,
            "src/checkpoint/recipes/x.cc": "rope(softmax);\n",
            "src/ops/softmax/cpu.cc": "row_softmax_avx2;\n",
            "src/run/x.cc": "// softmax\nset.add(1);\n",
        },
        0,
    ),
]
