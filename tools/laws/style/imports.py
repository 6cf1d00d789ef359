"""Law 2 for Python: the imports of apps/python and of the rooms (vjp.py, torch.py) have no circle.

Every import counts, also one within a function or for type checkers: a lazy import only hides a
circle. Whoever imports a module imports the packages around it, too. What must call upwards gets
the function from above: `primitives.load_gradients` and `operators.register` are set so.
"""

import ast
import re

from law import finding, is_test

ROOM = re.compile(r"src/ops/(\w+)/(vjp|torch)\.py")
NATIVE = {"_native"}  # modules that are no files here


def name_of(path):
    """The dotted name of a module; "" of other files."""
    if m := ROOM.fullmatch(path):
        return f"invar.{'vjp' if m[2] == 'vjp' else 'rooms'}.{m[1]}"
    if not path.startswith("apps/python/") or not path.endswith(".py") or is_test(path):
        return ""
    return (
        path.removeprefix("apps/python/")
        .removesuffix(".py")
        .removesuffix("/__init__")
        .replace("/", ".")
    )


def imports(name, package, text, modules):
    """{module: line of its first import} of a module's text."""
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            around = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*around, *([node.module] if node.module else [])])
            names = [
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base
                for alias in node.names
                if alias.name not in NATIVE
            ]
        else:
            continue
        for one in names:
            while one:
                if one in modules and one != name and not name.startswith(f"{one}."):
                    found.setdefault(one, node.lineno)
                one = one.rpartition(".")[0]
    return found


def circles(graph):
    """The strongly connected parts of more than one module, sorted (Tarjan, Depth-first search and
    linear graph algorithms, 1972)."""
    number, low, stack, found = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in graph[v]:
            if w not in number:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == number[v]:
            at = stack.index(v)
            part = stack[at:]
            del stack[at:]
            if len(part) > 1:
                found.append(sorted(part))

    for v in graph:
        if v not in number:
            visit(v)
    return found


def check(files):
    paths = {name_of(path): path for path, text in files.items() if text is not None}
    paths.pop("", None)
    graph = {}
    for name, path in sorted(paths.items()):
        package = name if path.endswith("/__init__.py") else name.rpartition(".")[0]
        graph[name] = imports(name, package, files[path], paths)
    found = []
    for part in circles(graph):
        first = part[0]
        other = next(one for one in graph[first] if one in part)
        found.append(
            finding(
                paths[first],
                graph[first][other],
                f"{first} imports {other}, which leads back to it: {', '.join(part)} are a circle; "
                "move what both need to a module below",
            )
        )
    return found


SELF_TEST = [
    (
        "two modules",
        {"apps/python/a/b.py": "from a import c\n", "apps/python/a/c.py": "import a.b\n"},
        1,
    ),
    (
        "hidden in a function, and relative",
        {
            "apps/python/a/__init__.py": "",
            "apps/python/a/b.py": "from a.c import f\n",
            "apps/python/a/c.py": "def f():\n    from .b import g\n",
        },
        1,
    ),
    (
        "through a package and a room",
        {
            "apps/python/invar/p/__init__.py": "from invar.p import x\n",
            "apps/python/invar/p/x.py": "from invar.vjp import a\n",
            "apps/python/invar/p/y.py": "",
            "src/ops/a/vjp.py": "from invar.p.y import f\n",
        },
        1,
    ),
    (
        "one way, and the native module",
        {
            "apps/python/a/__init__.py": "from a import b, c\n",
            "apps/python/a/b.py": "from a import _native, c\n",
            "apps/python/a/c.py": "import os\nfrom a import _native\n",
        },
        0,
    ),
]
