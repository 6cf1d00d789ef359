"""The files that decide a training: a script, and the modules that it imports from beside it."""

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

from invar import _native


def files_of(script: str | Path) -> dict[str, str]:
    """SHA-256 of each file below the script's folder that it imports, by `import` statements
    anywhere in it or in such files, and not of the script itself: path from the folder, with "/" ->
    digest (training.21)."""
    script = Path(script)
    folder, found, left = script.parent, {}, [script]
    while left:
        file = left.pop()
        text = file.read_bytes()
        name = file.relative_to(folder).as_posix()
        if file != script:
            found[name] = hashlib.sha256(text).hexdigest()
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError) as e:
            raise _native.BadInput(f"{file}: no Python: {e}") from None
        package = Path(name).parent.parts
        for wanted in _imports(tree, package):
            for path in _files(folder, wanted):
                if path != script and path.relative_to(folder).as_posix() not in found:
                    if path not in left:
                        left.append(path)
    return dict(sorted(found.items()))


def _imports(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The modules that may be imported, as tuples of names from the folder on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            yield base
            for alias in node.names:  # modules of a package, or names in it
                yield (*base, alias.name)


def _files(folder: Path, module: tuple[str, ...]) -> Iterator[Path]:
    """The files of a module and of the packages around it that lie below the folder."""
    for n in range(1, len(module) + 1):
        place = folder.joinpath(*module[:n])
        for file in (place / "__init__.py", place.with_name(place.name + ".py")):
            if file.is_file():
                yield file
                break
