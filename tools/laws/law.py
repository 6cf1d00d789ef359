"""What every law shares: the tree as {path: text}, C++ without comments, findings, self-tests."""

import functools
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED_FOLDERS = {"build", ".git", ".cache", "__pycache__", ".pytest_cache"}
CPP = (".cc", ".h", ".cu", ".cuh")


class Finding(str):
    """One line: PATH:LINE: what is wrong and what to do."""


def finding(path, line, message):
    return Finding(f"{path}:{line}: {message}")


def paths(root=ROOT):
    """Files of the checkout: git's view where there is git, else every file outside build
    folders."""
    try:
        out = subprocess.run(
            ["git", "-c", f"safe.directory={root}", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=root,
            check=True,
            capture_output=True,
        ).stdout
        names = [n.decode() for n in out.split(b"\0") if n]
        if names:
            return sorted(n for n in names if (root / n).is_file())
    except (OSError, subprocess.CalledProcessError):
        pass
    found = []
    for p in root.rglob("*"):
        parts = p.relative_to(root).parts
        if p.is_file() and not any(q in SKIPPED_FOLDERS or q.startswith("build-") for q in parts):
            found.append(p.relative_to(root).as_posix())
    return sorted(found)


def tree(root=ROOT):
    """{path: text} of every text file; binary files map to None."""
    files = {}
    for name in paths(root):
        data = (root / name).read_bytes()
        try:
            files[name] = None if b"\0" in data[:8192] else data.decode("utf-8")
        except UnicodeDecodeError:
            files[name] = None
    return files


TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'',
    re.S,
)


@functools.cache
def code(text, strings=True):
    """C++ text with comments blanked (and the content of strings, unless `strings`); lines keep
    their numbers."""

    def blank(m):
        token = m.group(0)
        if token.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", token)
        if strings:
            return token
        return '"' + re.sub(r"[^\n]", " ", token[1:-1]) + '"'

    return TOKEN.sub(blank, text)


@functools.cache
def comments(text):
    """C++ text with everything but comments blanked; lines keep their numbers."""
    out, end = [], 0
    for m in TOKEN.finditer(text):
        out.append(re.sub(r"[^\n]", " ", text[end : m.start()]))
        out.append(
            m.group(0) if m.group(0).startswith(("//", "/*")) else re.sub(r"[^\n]", " ", m.group(0))
        )
        end = m.end()
    return "".join(out) + re.sub(r"[^\n]", " ", text[end:])


def lines(text):
    return enumerate(text.split("\n"), 1)


def is_test(path):
    return path.startswith("tests/") or path.endswith(
        ("_test.cc", "_test.py", "/testing.h", "/testing.cc")
    )


def rooms(files):
    """{operation: the room it lives in}, from spec/opset.toml."""
    blocks = re.findall(r"^\[([a-z0-9_]+)\]([^\[]*)", files.get("spec/opset.toml") or "", re.M)
    return {
        op: (re.findall(r'^room = "([a-z0-9_]+)"', block, re.M) or [op])[0] for op, block in blocks
    }
