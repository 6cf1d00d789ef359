"""A default of an attribute is in the room's ops.toml alone. Kernels, contracts and what they share
read attributes as members of the structs that tools/ops/generate.py makes of it
(ops/ROOM/attributes.h), not by name: no AttributeReader but in src/kernels/call.h, no search in a
map of attributes. Rooms with kinds have no structs: their table.h names the attributes of a row
(elementwise/reference.cc, room.cc)."""

import re

from law import code, finding, is_test, lines

READERS = re.compile(r"src/(ops|kernels)/.*\.(cc|h|cu|cuh)$")
COMPILED = re.compile(r"/(import|torch)(\.cc$|/)|/import\w*\.(cc|h)$")  # on ONNX and torch nodes
BY_NAME = re.compile(
    r"\bAttributeReader\b|\battr(?:s|ibutes)\s*(?:\.|->)\s*(?:i|f|find|at|contains|begin|end)\s*\(|"
    r"\battr_\w+\s*\("
)
ALLOWED = {
    "src/kernels/call.h",
    "src/kernels/call.cc",
    "src/ops/elementwise/reference.cc",
    "src/ops/elementwise/room.cc",
}


def check(files):
    return [
        finding(
            path, n, f"'{m.group(0)}' reads an attribute by name; ops/ROOM/attributes.h has structs"
        )
        for path, text in files.items()
        if text and READERS.match(path) and not COMPILED.search(path) and not is_test(path)
        if path not in ALLOWED
        for n, line in lines(code(text))
        for m in BY_NAME.finditer(line)
    ]


SELF_TEST = [
    (
        "a default in a kernel",
        {"src/ops/x/cpu.cc": 'float e = call.attrs->f("epsilon", 1e-5f);\n'},
        1,
    ),
    ("a search", {"src/ops/x/room.cc": 'auto it = attrs.find("axes");\n'}, 1),
    ("a reader of its own", {"src/kernels/cuda/x.cuh": "AttributeReader(call).i64(name, 0);\n"}, 1),
    ("a helper of its own", {"src/ops/x/reference.cc": 'attr_i(call, "axis", 0);\n'}, 1),
    (
        "members, the reader itself, names of the table, imports, tests",
        {
            "src/ops/x/cpu.cc": "const float e = XAttributes(call).epsilon;  // attrs.find(\n",
            "src/kernels/call.h": "struct AttributeReader {\n",
            "src/ops/elementwise/room.cc": "call.attrs->at(name);\n",
            "src/ops/x/import.cc": 'node.attributes.find("axis");\n',
            "src/ops/x/tests/x_test.cc": 'attrs.i("axis", 0);\n',
        },
        0,
    ),
]
