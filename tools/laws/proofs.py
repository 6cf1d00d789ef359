"""Law 10: no name is larger than its proof. What is called correctly rounded, an operation of
spec/opset.toml or a function of src/num, has its evidence: its row in the table of
docs/evidence/functions.md, or a docs/evidence/*.md whose name contains its own, which speaks of all
2^32 inputs and states the digest of the results."""

import re

from law import CPP, comments, finding

CLAIM = re.compile(r"(?<!not )(?<!nor )\bcorrectly[ -]rounded\b", re.I)
OPERATION = re.compile(r'^\[([a-z0-9_]+)\]\s*\n(?:[^\[]*\n)*?numerics = "correctly-rounded"', re.M)
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def check(files):
    found = []

    table = files.get("docs/evidence/functions.md") or ""

    def need(path, name, what):
        row = re.search(rf"^\| {name} \|.*$", table, re.M)
        if row and "2^32" in table and DIGEST.search(row.group(0)):
            return
        evidence = [p for p in files if re.match(rf"docs/evidence/\w*{name}\w*\.md$", p)]
        if not evidence:
            found.append(
                finding(
                    path,
                    1,
                    f"{what} is called correctly rounded, and there is no docs/evidence/{name}.md",
                )
            )
        for p in evidence:
            if "2^32" not in files[p] or not DIGEST.search(files[p]):
                found.append(
                    finding(
                        p,
                        1,
                        "does not speak of all 2^32 inputs, or states no digest of the results",
                    )
                )

    for op in OPERATION.findall(files.get("spec/opset.toml") or ""):
        need("spec/opset.toml", op, f"operation '{op}'")
    for path, text in files.items():
        if (
            text is None
            or not path.startswith("src/num/")
            or not path.endswith(CPP)
            or not CLAIM.search(comments(text))
        ):
            continue
        cited = re.findall(r"docs/evidence/([\w-]+)\.md", text)
        if not cited:
            found.append(
                finding(path, 1, "says 'correctly rounded' and cites no docs/evidence/NAME.md")
            )
        for name in cited:
            need(path, name, "what it computes")
    return found


PROOF = {"docs/evidence/exp.md": "all 2^32 inputs: " + "0" * 64}
SELF_TEST = [
    (
        "an operation without proof",
        {"spec/opset.toml": '[exp]\nversion = 1\nnumerics = "correctly-rounded"\n'},
        1,
    ),
    ("a function without proof", {"src/num/exp/exp.h": "// exp, correctly rounded.\n"}, 1),
    (
        "a proof that is missing",
        {"src/num/exp/exp.h": "// exp, correctly rounded (docs/evidence/exp.md).\n"},
        1,
    ),
    (
        "a proof by samples",
        {
            "spec/opset.toml": '[exp]\nversion = 1\nnumerics = "correctly-rounded"\n',
            "docs/evidence/exp.md": "a million samples\n",
        },
        1,
    ),
    (
        "a row of the table without digest",
        {
            "spec/opset.toml": '[exp]\nversion = 1\nnumerics = "correctly-rounded"\n',
            "docs/evidence/functions.md": "2^32\n| exp | 0 |\n",
        },
        1,
    ),
    (
        "a row of the table",
        {
            "spec/opset.toml": '[exp]\nversion = 1\nnumerics = "correctly-rounded"\n',
            "docs/evidence/functions.md": "2^32\n| exp | " + "0" * 64 + " |\n",
        },
        0,
    ),
    (
        "proved, or not claimed",
        {
            **PROOF,
            "spec/opset.toml": '[exp]\nnumerics = "correctly-rounded"\n[add]\nnumerics = "ieee"\n',
            "src/num/exp/exp.h": "// Correctly rounded (docs/evidence/exp.md).\n",
            "src/num/tanh/tanh.h": "// not correctly rounded\n",
        },
        0,
    ),
]
