"""Sphinx: the documentation site from the Markdown of this repository (tools/docs/site_builder.py
calls it).

It adds what plain Markdown lacks: a clause of the law is an anchor (`sampling.20` is
`#sampling-20`), and every citation of a clause is a link to it."""

import json
import re
from pathlib import Path

from docutils import nodes

HERE = Path(__file__).resolve().parent
SITE = json.loads((HERE / "site.json").read_text())  # written by tools/docs/site_builder.py

project, author = "Invar", "the authors of Invar"
version = release = SITE["version"]
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["conf.py"]
html_theme = "furo"
html_title = f"Invar {version}"
html_copy_source = True
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_last_updated_fmt = None
pygments_style, pygments_dark_style = "friendly", "native"
html_theme_options = {"footer_icons": []}
html_extra_path = ["extra"]
# A block in a language that Pygments does not know is shown as it is.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
myst_heading_anchors = 6  # of GitHub: the links have them (tools/docs/check_anchors.py)
DEFINED = re.compile(r"^([a-z][a-z0-9_-]*\.\d+)\b")
CITED = re.compile(
    r"(?<![\w./-])(" + "|".join(map(re.escape, SITE["families"])) + r")\.(\d+)(?![\w.]*\w)"
)


def mark_clauses(app, document):
    """A paragraph that defines a clause gets the clause's number as its anchor."""
    docname = app.env.docname
    for paragraph in document.findall(nodes.paragraph):
        first = next((child for child in paragraph if child.astext()), None)  # MyST adds empty ones
        found = isinstance(first, nodes.strong) and DEFINED.match(first.astext())
        if found and SITE["clauses"].get(found.group(1)) == docname:
            marked(paragraph)["ids"].append(found.group(1).replace(".", "-"))


def marked(paragraph):
    """The node that has the anchor: a paragraph of a list has no element of its own."""
    return paragraph.parent if isinstance(paragraph.parent, nodes.list_item) else paragraph


def link_clauses(app, document, docname):
    """A citation of a clause is a link, but in headings, code and other links."""
    for reference in document.findall(nodes.reference):  # a link to the page of the clause it names
        target, uri = SITE["clauses"].get(reference.astext()), reference.get("refuri", "")
        if target and uri and "#" not in uri:
            reference["refuri"] = f"{uri}#{reference.astext().replace('.', '-')}"
    fixed = (nodes.reference, nodes.literal, nodes.literal_block, nodes.title, nodes.raw)
    for text in list(document.findall(nodes.Text)):
        if any(isinstance(up, fixed) for up in ancestors(text)):
            continue
        pieces, end = [], 0
        for found in CITED.finditer(text):
            clause = found.group(0)
            target = SITE["clauses"].get(clause)
            anchor = clause.replace(".", "-")
            if not target or defines(text, anchor):
                continue
            uri = "" if target == docname else app.builder.get_relative_uri(docname, target)
            pieces += [nodes.Text(text[end : found.start()]), link(f"{uri}#{anchor}", clause)]
            end = found.end()
        if pieces:
            text.parent.replace(text, [*pieces, nodes.Text(text[end:])])


def link(uri, clause):
    made = nodes.reference("", "", nodes.Text(clause), internal=True, refuri=uri)
    made["classes"].append("clause")
    return made


def defines(text, anchor):
    """Whether the text is the bold number that begins the clause."""
    up = text.parent
    return (
        isinstance(up, nodes.strong)
        and isinstance(up.parent, nodes.paragraph)
        and anchor in marked(up.parent).get("ids", ())
    )


def ancestors(node):
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app):
    app.connect("doctree-read", mark_clauses)
    app.connect("doctree-resolved", link_clauses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
