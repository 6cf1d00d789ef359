"""Law 12: the independent implementation (tests/independent) is written from spec/ alone. It names
no file of the program and includes, imports and links none; its tests may start the program."""

import re
import sys

from law import finding, lines

FOLDER = "tests/independent/"
NAMED = re.compile(r"\b(src|apps|python|bench)/\w|\w*oracle\w*")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
IMPORT = re.compile(r"^\s*(?:import\s+(.+)|from\s+([\w.]+)\s+import\b)")
DYNAMIC = re.compile(r"\b(importlib|__import__|runpy|exec|eval)\b")
LINKED = re.compile(r"""["']-l(\w+)""")
HEADERS = {"limits", "math", "mpfr", "stddef", "stdint", "stdio", "stdlib", "string"}
LIBRARIES = {"m", "mpfr"}
MODULES = sys.stdlib_module_names | {"numpy"}
OF_TESTS = {"pytest", "conftest"}


def included(line, path, own):
    """What a line of C includes and must not."""
    m = INCLUDE.match(line)
    if not m:
        return []
    quote, name = m.groups()
    allowed = (
        path.rsplit("/", 1)[0] + "/" + name in own
        if quote == '"'
        else name.removesuffix(".h") in HEADERS
    )
    return [] if allowed else [f"includes {name}"]


def imported(line, path, own):
    """What a line of Python imports and must not."""
    m = IMPORT.match(line)
    names = re.split(r"\s*,\s*", m.group(1)) if m and m.group(1) else [m.group(2)] if m else []
    modules = [n.split(" as ")[0].split(".")[0].split("#")[0].strip() for n in names]
    tests = OF_TESTS if path.startswith(f"{FOLDER}test_") else set()
    here = {p.removeprefix(FOLDER).removesuffix(".py").split("/")[0] for p in own}
    found = [f"imports {n}" for n in modules if n not in MODULES | tests | here]
    return found + [f"uses {w}, which may import anything" for w in DYNAMIC.findall(line)]


def check(files):
    own = {path for path in files if path.startswith(FOLDER)}
    if not own:
        return [finding(FOLDER, 1, "no files found: this law has nothing to hold on to")]
    found = []
    for path in sorted(own):
        for n, line in lines(files[path] or ""):
            faults = [f"names {m.group(0)}" for m in NAMED.finditer(line)]
            faults += [f"links lib{name}" for name in LINKED.findall(line) if name not in LIBRARIES]
            if path.endswith((".c", ".h")):
                faults += included(line, path, own)
            if path.endswith(".py"):
                faults += imported(line, path, own)
            found += [
                finding(path, n, f"{fault}; what is here is written from spec/ alone")
                for fault in faults
            ]
    return found


SELF_TEST = [
    ("no such folder", {"src/run/x.cc": "\n"}, 1),
    ("a header of the program", {FOLDER + "x.c": '#include "num/exp/exp.h"\n'}, 1),
    ("its path", {FOLDER + "x.py": 'open("../../src/num/exp.h")\n'}, 1),
    ("another reading of the pages", {FOLDER + "README.md": "See receipt_oracle.py.\n"}, 1),
    ("the package", {FOLDER + "x.py": "import os, invar\nfrom invar.onnx import read\n"}, 2),
    ("the package by name", {FOLDER + "x.py": 'importlib.import_module("in" + "var")\n'}, 1),
    ("the journeys beside tests", {FOLDER + "x.py": "from conftest import BIN\n"}, 1),
    ("a library of the program", {FOLDER + "x.py": 'flags = ["-linvar_num", "-lm"]\n'}, 1),
    ("a header of the system", {FOLDER + "x.c": "#include <onnx/onnx_pb.h>\n"}, 1),
    (
        "spec alone",
        {
            FOLDER + "x.h": "#include <math.h>\n",
            FOLDER + "x.c": '#include "x.h"\n#include <mpfr.h>\n',
            FOLDER + "x.py": 'import json, os.path\nfrom y import f\nrun(["invar", "verify"])\n',
            FOLDER + "y.py": 'import numpy as np\nflags = ["-lmpfr"]\n',
            FOLDER + "test_x.py": "import pytest\nfrom conftest import BIN\n",
            "tests/cli/test_x.py": "import invar\n",
        },
        0,
    ),
]
