"""The page as one file: `make_page.py MODULE.wasm OUT.html --version V [--known FILE]`. Everything
is inside, so it works from any server and from a disk, and its Content-Security-Policy names the
one script by its hash and forbids every connection."""

import argparse
import base64
import gzip
import hashlib
from pathlib import Path

PARTS = Path(__file__).parent / "page"


def policy(script, style):
    def source(text):
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {source(script)} 'wasm-unsafe-eval'",
            f"style-src {source(style)}",
            "worker-src blob:",
            "img-src data:",
            "connect-src 'none'",
            "form-action 'none'",
            "base-uri 'none'",
        )
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--known", default="")
    o = parser.parse_args()
    script, style = (PARTS / "page.js").read_text(), (PARTS / "page.css").read_text()
    packed = gzip.compress(o.module.read_bytes(), 9, mtime=0)
    values = {
        "policy": policy(script, style),
        "style": style,
        "version": o.version,
        "module": base64.b64encode(packed).decode(),
        "worker": (PARTS / "wasi.js").read_text() + (PARTS / "worker.js").read_text(),
        "known": Path(o.known).read_text() if o.known else "",
        "script": script,
    }
    for text in (values["worker"], script):
        if "</script" in text:
            raise SystemExit("a script cannot contain its own end tag")
    page = (PARTS / "index.html").read_text()
    for name, value in values.items():
        page = page.replace("{{" + name + "}}", value)
    o.out.write_text(page)


if __name__ == "__main__":
    main()
