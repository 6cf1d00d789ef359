#!/usr/bin/env python3
"""The documentation site, from the Markdown of this repository: build/site/index.html.

site_builder.py [--to FOLDER] [--source-only]

Needs Sphinx, MyST and furo of PyPI or Debian (tools/docs/site.sh gets them). A warning is an error,
and nothing is fetched. The pages keep their paths, so that the links between them are those of the
repository; what a page links to besides pages is copied. docs/site/index.md is the front page and
says which page has which place; a page that only its folder's README lists comes after that README.
Writes llms.txt, too: every page with its first sentence."""

import argparse
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pages import ROOT, paragraphs, sentences

TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
FRONT = "docs/site/index.md"
# Pages that head the pages of a folder, in the order in which they link to them.
HEADS = {
    "docs/reference/README.md": "docs/reference",
    "docs/notebook/README.md": "docs/notebook",
    "docs/evidence/README.md": "docs/evidence",
    "spec/README.md": "spec",
}
LINK = re.compile(
    r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)"
)
# Pages that the contents leave out: each page of the site would repeat them. docs/decisions.md has
# them.
UNLISTED = "docs/design/adr/"
CLAUSE = re.compile(r"^(?:[-*]\s+)?\*\*([a-z][a-z0-9_-]*\.\d+)\b", re.M)
ROOT_OF, CLAUSES = "index.md", "spec/" + "clauses.md"  # made here


def collect():
    """{path: text} of the pages: all of docs and spec, and the pages of the rest that they link
    to."""
    wanted = [p for p in TOP if (ROOT / p).is_file()]
    wanted += sorted(
        p.relative_to(ROOT).as_posix() for f in ("docs", "spec") for p in (ROOT / f).rglob("*.md")
    )
    found = {}
    while wanted:
        path = wanted.pop(0)
        if path not in found:
            found[path] = (ROOT / path).read_text()
            wanted += [t for t in targets(path, found[path]) if t.endswith(".md")]
    return found


def targets(path, text):
    """The files that a page links to, as paths of the repository."""
    for m in LINK.finditer(text):
        target = resolve(path, m.group(3))
        if (ROOT / target).is_file():
            yield target


def resolve(path, target):
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def adapt(path, text, found):
    """The page as the site has it: a link to a folder is one to the folder's page, or its name."""

    def replaced(m):
        image, label, target, anchor = m.groups()
        target = resolve(path, target)
        if (ROOT / target).is_dir():
            page = f"{target}/README.md"
            if page not in found:
                return label
            there = posixpath.relpath(page, posixpath.dirname(path) or ".")
            return f"{image}[{label}]({there})"
        return m.group(0)

    fenced, out = False, []
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        out.append(line if fenced else line)
    text = LINK.sub(replaced, "\n".join(out))
    return re.sub(r"^(%|\+\+\+)", r"\\\1", text, flags=re.M)


def toctree(entries, caption=""):
    caption = f":caption: {caption}\n" if caption else ""
    return (
        "\n```{toctree}\n:hidden:\n:maxdepth: 1\n" + caption + "\n" + "\n".join(entries) + "\n```\n"
    )


def children(found):
    """{page that heads others: those}: the order of its links, then the rest of its folder."""
    placed = set(re.findall(r"^/(\S+)$", found[FRONT], re.M))
    below = {}
    for head, folder in HEADS.items():
        if head not in found:
            continue
        linked = [t for t in targets(head, found[head]) if t in found]
        rest = [p for p in found if p.startswith(folder + "/")]
        pages = [p for p in dict.fromkeys(linked + rest) if p.startswith(folder + "/")]
        below[head] = [p for p in pages if p[:-3] not in placed and p != head]
        placed.update(p[:-3] for p in below[head])
    placed.add(FRONT[:-3])
    left = [p for p in found if p[:-3] not in placed and p not in below]
    left = [p for p in left if not p.startswith(UNLISTED)]
    return below, left


def title(text):
    return re.sub(r"[`*]", "", re.search(r"^# (.*)", text, re.M).group(1))


def first_sentence(text):
    body = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    for _, paragraph in paragraphs(body.split("\n", 1)[-1]):
        if len(paragraph) > 20:
            first = next(iter(sentences(paragraph)))  # with code as x: of the same length
            return re.sub(r"\[([^\]]*)\]", r"\1", paragraph.strip()[: len(first)])
    return ""


def llms(found, order):
    """llms.txt: what a program that reads the site needs to find a page."""
    lines = [
        "# Invar",
        "",
        "> AI inference whose bits do not change with the machine; a receipt proves an answer,",
        "> and a stranger checks it.",
    ]
    for caption, pages in order:
        lines += ["", f"## {caption}", ""]
        for page in pages:
            text = found[page]
            name = ROOT_OF if page == FRONT else page
            lines.append(f"- [{title(text)}](_sources/{name}.txt): {first_sentence(text)}")
    return "\n".join(lines) + "\n"


def order_of(front, below, left):
    """[(caption, pages)] as the contents have them."""
    order = []
    for block in re.findall(r"```\{toctree\}\n(.*?)```", front, re.S):
        caption = re.search(r":caption: (.*)", block).group(1)
        pages = []
        for page in re.findall(r"^/(\S+)$", block, re.M):
            pages += [page + ".md", *below.get(page + ".md", [])]
        order.append((caption, pages))
    return [*order, ("More", left)]


def clause_index(clauses):
    """A page of every clause, by family."""
    lines = [
        "# Clauses",
        "",
        "Every clause of the law by its number. A number is an anchor of its page.",
    ]
    family = None
    for clause in sorted(clauses, key=lambda c: (c.split(".")[0], int(c.split(".")[1]))):
        name = clause.split(".")[0]
        lines += ["", f"**{name}**:"] if name != family else []
        family = name
        lines.append(clause)
    return "\n".join(lines) + "\n"


def write_source(folder):
    shutil.rmtree(folder, ignore_errors=True)
    found = collect()
    clauses = {
        c: path[:-3] for path, text in found.items() if path.startswith("spec/")
        for c in CLAUSE.findall(text)
    }  # fmt: skip
    below, left = children(found)
    order = order_of(found[FRONT], below, left)
    texts = {path: adapt(path, text, found) for path, text in found.items() if path != FRONT}
    for head, pages in below.items():
        entries = ["/" + p[:-3] for p in pages]
        entries += ["/" + CLAUSES[:-3]] if head == "spec/README.md" else []
        texts[head] += toctree(entries)
    front = adapt(FRONT, found[FRONT], found).replace("](../", "](docs/")
    texts[ROOT_OF] = front + toctree(["/" + p[:-3] for p in left], "More")
    texts[CLAUSES] = clause_index(clauses)
    for path, text in texts.items():
        if path.startswith(UNLISTED):
            text = "---\norphan: true\n---\n" + text
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for path, text in found.items():
        for target in targets(path, text):
            if not target.endswith(".md"):
                (folder / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / target, folder / target)
    (folder / "extra").mkdir(exist_ok=True)
    (folder / "extra/llms.txt").write_text(llms(found, order))
    shutil.copy(ROOT / "docs/site/conf.py", folder / "conf.py")
    version = re.search(r"invar VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()[:3000])
    site = {
        "version": version.group(1) if version else "",
        "clauses": clauses,
        "families": sorted({c.split(".")[0] for c in clauses}, key=len, reverse=True),
    }
    (folder / "site.json").write_text(json.dumps(site))


def main():
    ask = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    ask.add_argument("--to", type=Path, default=ROOT / "build/site")
    ask.add_argument("--source-only", action="store_true", help="write FOLDER-source alone")
    given = ask.parse_args()
    source = given.to.with_name(given.to.name + "-source")
    write_source(source)
    if given.source_only:
        return 0
    shutil.rmtree(given.to, ignore_errors=True)
    command = [sys.executable, "-B", "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html"]
    command += ["-d", str(source.with_name(source.name + "-doctrees")), str(source), str(given.to)]
    done = subprocess.run(command, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    if done.returncode == 0:
        print(f"wrote {given.to}/index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
