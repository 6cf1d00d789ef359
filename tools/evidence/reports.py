#!/usr/bin/env python3
"""docs/evidence/reports.md from the signed reports of machines in docs/evidence/reports.

reports.py               writes the page
reports.py --check       writes nothing: exit code 1 where the page would be another
reports.py --add FILE    adds a report, named by its machine, and writes the page. Exit
                         code 1 where it differs from the others: the message says what

A report is what `invar doctor --evidence` writes (docs/evidence/README.md). Refused are: a hash or
a signature that is not of the report, no signature, a kernel that missed a known answer, known
answers or receipts that are others than those of a report of the same version. Needs Python
alone."""

import argparse
import hashlib
import json
import re
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "docs/evidence/reports"
PAGE = ROOT / "docs/evidence/reports.md"
SCHEMA, SIGNED = "invar-evidence 1", b"invar-evidence-signature 1\n"
TEXTS = ("version", "numerics", "compiler", "machine", "processor")
QUESTION = ("weights", "program", "numerics", "profile", "prompt", "seed", "tokens")
MOST_BYTES = 1 << 20

# Ed25519 (RFC 8032, 5.1.7) over whole numbers.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
BASE_Y = 4 * pow(5, -1, P) % P


class Refused(Exception):
    pass


def point(y, odd):
    """The point of this y whose x is odd or not; None: there is none."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or y >= P or (x == 0 and odd):
        return None
    return (x if x % 2 == odd else P - x), y


def add(a, b):
    (x1, y1), (x2, y2) = a, b
    t = D * x1 * x2 * y1 * y2 % P
    return (
        (x1 * y2 + x2 * y1) * pow(1 + t, -1, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - t, -1, P) % P,
    )


def times(n, a):
    total = (0, 1)
    while n:
        if n & 1:
            total = add(total, a)
        a, n = add(a, a), n >> 1
    return total


def decoded(raw):
    number = int.from_bytes(raw, "little")
    return point(number & (1 << 255) - 1, number >> 255)


def is_signed(key, signature, message):
    a, r = decoded(key), decoded(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L or times(8, a) == (0, 1):
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    return times(s, point(BASE_Y, 0)) == add(r, times(h, a))


def digest(report):
    bound = {k: v for k, v in report.items() if k not in ("hash", "signatures")}
    text = json.dumps(bound, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def expect(good, what):
    if not good:
        raise Refused(what)


def is_digest(text):
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text) is not None


def check_form(report):
    """What the rest of this file relies on."""
    expect(isinstance(report, dict) and report.get("schema") == SCHEMA, f"no {SCHEMA!r}")
    for name in TEXTS:
        expect(isinstance(report.get(name), str), f"{name}: no text")
    expect(isinstance(report.get("cores"), int), "cores: no number")
    expect(report.get("gpu") is None or isinstance(report["gpu"], str), "gpu: no text")
    isas, kernels, models = (report.get(k) for k in ("isas", "kernels", "models"))
    expect(isinstance(isas, list) and all(isinstance(i, str) for i in isas), "isas: no list")
    expect(isinstance(kernels, dict) and kernels, "kernels: none")
    for op, kernel in kernels.items():
        expect(isinstance(kernel, dict) and is_digest(kernel.get("answers")), f"{op}: no answers")
        rows = kernel.get("isas")
        expect(isinstance(rows, dict) and rows, f"{op}: no instruction set")
        for isa, row in rows.items():
            numbers = isinstance(row, list) and [n for n in row if isinstance(n, int) and n >= 0]
            expect(numbers and len(numbers) == 2, f"{op} {isa}: no [checks, wrong]")
    expect(isinstance(models, list), "models: no list")
    for model in models:
        known = isinstance(model, dict) and set(QUESTION) | {"name", "receipt"} <= set(model)
        expect(known and is_digest(model["receipt"]), "models: no receipt")


def check_signatures(report):
    expect(report.get("hash") == digest(report), "hash: the report was changed")
    signatures = report.get("signatures")
    expect(isinstance(signatures, list) and signatures, "signatures: none (--sign KEY)")
    for one in signatures:
        try:
            key, made = bytes.fromhex(one["key"]), bytes.fromhex(one["signature"])
        except (KeyError, TypeError, ValueError):
            raise Refused("signatures: no key and signature") from None
        good = len(key) == 32 and len(made) == 64
        expect(
            good and is_signed(key, made, SIGNED + report["hash"].encode()), "signatures: not of it"
        )


def check_alone(report):
    """The report by itself: form, signatures, every kernel reached every answer."""
    check_form(report)
    check_signatures(report)
    for op, kernel in report["kernels"].items():
        for isa, (checks, wrong) in kernel["isas"].items():
            expect(checks and not wrong, f"kernel {op}, {isa}: {wrong} of {checks} answers differ")


def question(model):
    return tuple(str(model[k]) for k in QUESTION)


def check_together(report, others):
    """Against the reports that are here: (name, report) of each."""
    asked = {}
    for name, other in [*others, ("this report", report)]:
        for model in other["models"]:
            first = asked.setdefault(question(model), (name, model["receipt"]))
            expect(
                first[1] == model["receipt"],
                f"model {model['name']} ({model.get('isa', '')}): receipt {model['receipt'][:16]}…, "
                f"{first[0]} has {first[1][:16]}…",
            )


def answers():
    """Operation -> the digest of its known answers in this source."""
    opset = tomllib.loads((ROOT / "spec/opset.toml").read_text())
    found = {}
    for op, row in opset.items():
        tests = ROOT / "src/ops" / row.get("room", op) / "tests" if isinstance(row, dict) else ROOT
        if (tests / "golden.txt").is_file():
            texts = (tests / "vectors.txt").read_bytes() + (tests / "golden.txt").read_bytes()
            found[op] = hashlib.sha256(texts).hexdigest()
    return found


def check_answers(report):
    """Against the known answers of this source, which a program that was changed may not have."""
    here = answers()
    for op, kernel in report["kernels"].items():
        expect(op in here, f"kernel {op}: this source has no such operation")
        said = f"{kernel['answers'][:16]}…, this source has {here[op][:16]}…"
        expect(kernel["answers"] == here[op], f"kernel {op}: known answers {said}")


def read(path):
    expect(path.stat().st_size <= MOST_BYTES, "larger than 1 MiB")
    try:
        return json.loads(path.read_text())
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise Refused("no JSON") from None


def all_reports():
    """(name, report) of each that is here, each checked alone and against those before."""
    found = []
    for path in sorted(REPORTS.glob("*.json")):
        try:
            report = read(path)
            check_alone(report)
            check_together(report, found)
        except Refused as why:
            raise Refused(f"{path.relative_to(ROOT)}: {why}") from None
        found.append((path.name, report))
    return found


def cell(text):
    """A stranger's text in a table."""
    return re.sub(r"[^\w .,:;()/+-]", "", str(text))[:80]


def page(reports):
    lines = [
        "# Reports of machines",
        "",
        "`tools/evidence/reports.py` writes this page from the signed reports in",
        "`docs/evidence/reports`. Every kernel of every row reached every known answer, and equal",
        "questions had equal receipts; a report of which that does not hold is refused.",
        "[Add yours](README.md#add-your-machine).",
        "",
        "| processor | instruction sets | GPU | compiler | version | kernels | checks | differ | signed by |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, r in reports:
        checks = sum(row[0] for k in r["kernels"].values() for row in k["isas"].values())
        lines.append(
            f"| [{cell(r['processor'])}, {r['cores']} cores](reports/{name}) | "
            f"{', '.join(map(cell, r['isas']))} | {cell(r['gpu'] or 'none')} | {cell(r['compiler'])} | "
            f"{cell(r['version'])}, {cell(r['numerics'])} | {len(r['kernels'])} | {checks} | 0 | "
            f"`{r['signatures'][0]['key'][:16]}` |"
        )
    lines += [
        "",
        "## Models",
        "",
        "| model | tokens | profile | receipt | equal on |",
        "|---|---|---|---|---|",
    ]
    asked = {}
    for _, r in reports:
        for m in r["models"]:
            asked.setdefault((question(m), m["receipt"]), (m, []))[1].append(
                f"{cell(r['processor'])} {cell(m.get('isa', ''))}".strip()
            )
    for m, where in asked.values():
        lines.append(
            f"| {cell(m['name'])} | {cell(m['tokens'])} | {cell(m['profile'])} | `{m['receipt']}` | "
            f"{'; '.join(dict.fromkeys(where))} |"
        )
    return "\n".join(lines) + "\n"


def name_of(report):
    words = re.sub(r"[^a-z0-9]+", "-", f"{report['machine']} {report['processor']}".lower())
    return f"{words.strip('-')[:48]}-{report['hash'][:8]}.json"


def main():
    ask = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    ask.add_argument("--check", action="store_true")
    ask.add_argument("--add", type=Path, metavar="FILE")
    given = ask.parse_args()
    try:
        reports = all_reports()
        if given.add:
            try:
                report = read(given.add)
                check_alone(report)
                check_together(report, reports)
                check_answers(report)
            except (Refused, OSError) as why:
                raise Refused(f"{given.add}: {getattr(why, 'strerror', None) or why}") from None
            REPORTS.mkdir(exist_ok=True)
            name = name_of(report)
            (REPORTS / name).write_text(given.add.read_text())
            print(f"added {REPORTS / name}")
            reports = all_reports()
    except Refused as why:
        print(f"evidence: {why}", file=sys.stderr)
        return 1
    text = page(reports)
    if given.check:
        return int(not PAGE.is_file() or PAGE.read_text() != text)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
