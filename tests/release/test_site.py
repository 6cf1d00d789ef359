"""The documentation site (tools/docs/site_builder.py): every page has a place, it builds without a
warning, its links and anchors lead somewhere, it loads nothing from elsewhere, and a browser shows
it wide and narrow, light and dark."""

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from conftest import ROOT

sys.path[:0] = [str(ROOT / "tools/docs"), str(ROOT / "tests/web")]
import browser  # noqa: E402
import site_builder  # noqa: E402

NEEDED = ("sphinx", "myst_parser", "furo")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "source"
    site_builder.write_source(folder)
    return folder


def test_every_page_has_one_place():
    found = site_builder.collect()
    below, left = site_builder.children(found)
    order = site_builder.order_of(found[site_builder.FRONT], below, left)
    places = [page for _, pages in order for page in pages]
    assert len(places) == len(set(places))
    unlisted = {p for p in found if p.startswith(site_builder.UNLISTED)}
    assert set(places) | unlisted | {site_builder.FRONT} == set(found)
    assert len(places) > 100 and len(unlisted) > 100
    # What nobody placed is of other folders than these, and there is little of it.
    contents = {"docs/README.md", "docs/guide/README.md"}  # for readers of the repository
    assert {p for p in left if p.startswith(("docs/", "spec/"))} == contents


def test_clauses_and_files_are_there(source):
    clauses = (source / site_builder.CLAUSES).read_text()
    assert "\nsampling.20\n" in clauses and "\nreduction.2\n" in clauses
    assert (source / "docs/reference/receipt.py").read_bytes() == (
        ROOT / "docs/reference/receipt.py"
    ).read_bytes()
    page = (source / "docs/guide/verify.md").read_text()
    assert "](../../spec/README.md)" in page


def test_llms_txt_names_every_page(source):
    text = (source / "extra/llms.txt").read_text()
    lines = re.findall(r"^- \[(.+)\]\(_sources/(\S+)\.txt\): (.*)$", text, re.M)
    assert len(lines) > 100
    for title, path, about in lines:
        assert (source / path).is_file(), path
        assert title and "](" not in about, about


class Page(HTMLParser):
    """What a page of HTML refers to: links, what it loads, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(v for k, v in attributes if k in ("id", "name") and v)
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon"):
            self.loads.append(given["href"])
        elif given.get("src"):
            self.loads.append(given["src"])


def dead_links(pages, folder):
    """Links, and what a page loads, that lead nowhere within the site or outside of it."""
    found = []
    for path, page in pages.items():
        for target in page.links + page.loads:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loads:
                    found.append(f"{path}: loads {target}")
                continue
            there = os.path.normpath(path.parent / unquote(parts.path)) if parts.path else path
            there = type(path)(there)
            if not there.exists():
                found.append(f"{path.relative_to(folder)}: no {target}")
            elif parts.fragment and there in pages:
                if unquote(parts.fragment) not in pages[there].anchors:
                    found.append(f"{path.relative_to(folder)}: no anchor {target}")
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site as Sphinx makes it, without network: (folder, {path: page})."""
    for module in NEEDED:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not here: tests/requirements-all.txt")
    folder = tmp_path_factory.mktemp("built") / "site"
    builder = [sys.executable, "-B", ROOT / "tools/docs/site_builder.py", "--to", folder]
    done = subprocess.run(
        builder,
        capture_output=True,
        text=True,
        env={**os.environ, "https_proxy": "http://0.0.0.0:1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, {path: Page(path) for path in sorted(folder.rglob("*.html"))}


def test_links_lead_somewhere(built):
    folder, pages = built
    assert len(pages) > 200
    found = dead_links(pages, folder)
    assert not found, found[:20]


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#two">x</a><a href="c.html">x</a><script src="https://x.org/a.js"></script>'
        '<a href="b.html#one">x</a><a href="https://x.org">x</a>'
    )
    (tmp_path / "b.html").write_text('<p id="one">x</p>')
    found = dead_links({p: Page(p) for p in tmp_path.glob("*.html")}, tmp_path)
    assert [f.split(": ")[1] for f in found] == [
        "no anchor b.html#two",
        "no c.html",
        "loads https://x.org/a.js",
    ]


def test_nothing_is_loaded_from_elsewhere(built):
    folder, _ = built
    for path in [*folder.rglob("*.css"), *folder.rglob("*.js")]:
        text = path.read_text(errors="replace")
        assert not re.search(r"url\(\s*['\"]?(https?:)?//|@import\s+['\"]?https?:", text), path
        assert not re.search(r"(fetch|importScripts|import)\(\s*['\"]https?:", text), path


def test_clauses_are_anchors(built):
    folder, pages = built
    law = pages[folder / "spec/sampling.html"]
    assert {"sampling-1", "sampling-20"} <= law.anchors
    index = pages[folder / "spec/clauses.html"]
    assert "sampling.html#sampling-20" in index.links
    assert (
        "../../spec/sampling.html#sampling-21"
        in pages[folder / "docs/guide/coming-from-ree.html"].links
    )


SHOWN = """({
  wide: document.documentElement.scrollWidth, room: window.innerWidth,
  paper: getComputedStyle(document.body).backgroundColor,
  broken: [...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)})"""


def test_a_browser_shows_it(built):
    if not browser.find():
        pytest.skip("no Chromium here")
    folder, pages = built
    one = browser.Browser(f"file://{folder}/index.html")
    try:
        one.command("Log.enable")
        for path in pages:
            one.open(f"file://{path}")
            assert not one.evaluate(SHOWN)["broken"], path
        wrong = [
            e
            for e in one.events
            if e.get("method") == "Runtime.exceptionThrown"
            or e.get("method") == "Log.entryAdded"
            and e["params"]["entry"]["level"] == "error"
        ]
        assert not wrong, wrong[:3]
        loaded = one.requests()
        assert all(url.startswith(("file://", "data:", "about:")) for url in loaded), loaded
        one.command(
            "Emulation.setDeviceMetricsOverride",
            width=360,
            height=740,
            deviceScaleFactor=1,
            mobile=True,
        )
        for name in ("index", "docs/guide/verify", "docs/reference/operations", "spec/sampling"):
            one.open(f"file://{folder}/{name}.html")
            shown = one.evaluate(SHOWN)
            assert shown["wide"] <= shown["room"] == 360, (name, shown)
        paper = {}
        for scheme in ("light", "dark"):
            wanted = [{"name": "prefers-color-scheme", "value": scheme}]
            one.command("Emulation.setEmulatedMedia", features=wanted)
            one.open(f"file://{folder}/index.html")
            paper[scheme] = sum(map(int, re.findall(r"\d+", one.evaluate(SHOWN)["paper"])[:3]))
        assert paper["light"] > 700 and paper["dark"] < 200, paper
    finally:
        one.close()


def test_tables_of_speed():
    """docs/reference/speed-tables.md is that of the files: a section a device, a column a peer and
    number of threads."""
    import bench_page

    tool = [sys.executable, "-B", ROOT / "tools/docs/bench_page.py", "--check"]
    assert subprocess.run(tool).returncode == 0
    row = {"suite": "norm", "op": "softmax", "shape": "8x9", "isa": "avx2", "threads": 2, "flops": 0,
           "seconds": 2e-6, "best_seconds": 2e-6, "bytes": 4e3, "fraction_of_limit": 0.5}  # fmt: skip
    compared = row | {"peer": "f", "peer_seconds": 3e-6, "peer_best_seconds": 3e-6, "ratio": 1.5}
    slower = compared | {"shape": "a | b", "ratio": 0.5} | dict.fromkeys(
        ("peer_seconds", "peer_best_seconds"), 1e-6
    )  # fmt: skip
    disturbed = compared | {"shape": "7x7", "ratio": 99.0, "peer_seconds": 198e-6}
    limit = {"isa": "avx2", "threads": 2, "flops_per_second": 1e11, "read_bytes_per_second": 2e10}
    one = {"cpu": "A 2.0", "device": "cpu", "day": "2026-01-01", "version": "1", "limits": [limit],
           "peer": "T 2 (x)", "most_memory_bytes": 2**30, "seconds": 10, "seconds_of_others": 4,
           "processors": 2, "rows": [compared, slower, disturbed, row | {"suite": "move"}]}  # fmt: skip
    other = one | {"peer": "R 3", "rows": [compared | {"ratio": 2.0, "threads": 1}]}
    on_gpu = one | {"device": "G", "rows": [row | {"threads": 0}], "peer": ""}
    text = bench_page.page([one, other, on_gpu])
    head = "| operation | shape | time, 1 thread | of limit | T 2 / ours | R 3 / ours | time, 2 threads |"
    assert head + " of limit | T 2 / ours | R 3 / ours |" in text
    assert "| `softmax` | 8x9 | 2 µs | 50% | – | 2.00 | 2 µs | 50% | 1.50 | – |" in text
    assert "| a \\| b | – | – | – | – | 2 µs | 50% | 0.50 | – |" in text
    assert "| 7x7 | – | – | – | – | 2 µs | 50% | 99.00 ~ | – |" in text
    assert "| `softmax` | 8x9 | 2 µs | 50% |\n" in text  # on a GPU, without a peer
    assert (
        "## A 2.0\n" in text and "### norm on A 2.0\n" in text and "### norm on G (A 2.0)" in text
    )
    assert (
        "beside T 2 (x), 2026-01-01" in text
        and "1,024 MiB" in text
        and "kept 0.40 of 2 proc" in text
    )
    # The overview has a row for each file; the ratio that was disturbed does not count.
    assert "| A 2.0 | 2026-01-01 | T 2 (x) | 4 | 0.75 | 1.00 | 1.25 |" in text
    assert "| G (A 2.0) | 2026-01-01 | – | 1 | – | – | – |" in text
    about = "normalisations, softmax, reductions, sorting"
    assert f"| [norm](#norm-on-a-20) | {about} | 50% | 1.00, 1 of 2 | 2.00, 1 of 1 |" in text
    assert "No machine has a file there yet." in bench_page.page([])
    with pytest.raises(SystemExit, match="two files of one device"):
        bench_page.page([one, one])
