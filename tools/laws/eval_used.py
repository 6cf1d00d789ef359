"""Law 11: no text becomes code. The Python package calls neither eval, exec nor compile of Python,
whose text may come from a file; what the compiler writes is a module and is imported as one."""

import ast

from law import finding

FORBIDDEN = {"eval", "exec", "__import__", "builtins", "__builtins__"}
TEXT = {
    "compile"
}  # also names of methods and of the package's own function, which are no calls of Python's by that bare name


def package(path):
    return path.endswith(".py") and (
        path.startswith("apps/python/")
        or (path.startswith("src/ops/") and path.endswith("/torch.py"))
    )


def check(files):
    found = []
    for path, text in files.items():
        if not package(path) or not text:
            continue
        for node in ast.walk(ast.parse(text)):
            name = node.id if isinstance(node, ast.Name) else None
            if isinstance(node, ast.Import | ast.ImportFrom):
                name = next(
                    (a.name for a in node.names if a.name in FORBIDDEN),
                    getattr(node, "module", None),
                )
            called = (
                node.func.id
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                else None
            )
            if name in FORBIDDEN or called in TEXT:
                found.append(
                    finding(
                        path,
                        node.lineno,
                        f"'{name if name in FORBIDDEN else called}': read the text by its grammar",
                    )
                )
    return found


SELF_TEST = [
    (
        "eval of a dimension",
        {"apps/python/invar/nn.py": "def f(d, s):\n    return eval(d, {}, s)\n"},
        1,
    ),
    (
        "exec of a compiled text",
        {"apps/python/invar/module.py": "exec(compile(t, 'f', 'exec'), {})\n"},
        2,
    ),
    ("by another name", {"apps/python/invar/x.py": "e = eval\n"}, 1),
    ("by the module", {"apps/python/invar/x.py": "import builtins\n"}, 1),
    ("from the module", {"apps/python/invar/x.py": "from builtins import eval as f\n"}, 1),
    ("in a room", {"src/ops/move/torch.py": "x = __import__('os')\n"}, 1),
    (
        "methods of that name",
        {
            "apps/python/invar/x.py": "import re\nre.compile('x')\nmodule.eval()\ndef compile(m):\n"
            "    '''eval(m)'''\n"
        },
        0,
    ),
    ("not in the package", {"tools/x.py": "eval('1')\n"}, 0),
]
