#!/usr/bin/env python3
"""docs/evidence/kernels.md from what tools/evidence.sh found: table.py FOLDER
[FUZZ_OUTPUT]."""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

BUILDS = ["x86_64", "clang", "aarch64", "riscv64", "ppc64le", "s390x"]


def main():
    folder = Path(sys.argv[1])
    found = {
        b: json.loads((folder / f"{b}.json").read_text())
        for b in BUILDS
        if (folder / f"{b}.json").exists()
    }
    here = found["x86_64"]
    columns = [(b, isa) for b in found for isa in found[b]["isas"]]
    rows = {(b, r["operation"], r["isa"]): r for b in found for r in found[b]["rows"]}
    operations = list(dict.fromkeys(r["operation"] for r in here["rows"]))

    def title(build, isa):
        where = "x86-64, clang" if build == "clang" else "x86-64" if build == "x86_64" else build
        return f"{where} {isa}"

    def cell(build, op, isa):
        r = rows.get((build, op, isa))
        return "–" if not r else f"{r['checks'] - r['wrong']}/{r['checks']}"

    checks = sum(r["checks"] for r in rows.values())
    wrong = sum(r["wrong"] for r in rows.values())
    qemu = subprocess.run(
        ["qemu-s390x-static", "--version"], capture_output=True, text=True
    ).stdout.split("\n")[0]
    receipts = {
        b: [line.split() for line in (folder / f"{b}.receipts").read_text().splitlines()]
        for b in found
    }
    by_length = {}
    for b in found:
        for isa, tokens, digest in receipts[b]:
            by_length.setdefault(int(tokens), {}).setdefault(digest, []).append(title(b, isa))
    if wrong or any(len(d) != 1 for d in by_length.values()):
        sys.exit(f"evidence: {wrong} checks differ; receipts: {by_length}")

    print(f"""# Kernels: equal digests everywhere

{date.today().isoformat()}, `tools/evidence.sh` on {here["processor"]} ({here["cores"]} cores); x86-64 natively, the rest under
{qemu}. Compilers: {here["compiler"]}; {found["clang"]["compiler"] if "clang" in found else "no clang"}. Instruction sets of
the build that this processor lacks: {", ".join(here["isas_not_here"]) or "none"}.

A cell is how many of an operation's known answers (src/ops/*/tests/vectors.txt and the SHA-256 digests of golden.txt) this row
reached, byte for byte: {checks} checks, {wrong} differ. `invar doctor` repeats the columns of any machine.
""")
    print("| operation | " + " | ".join(title(*c) for c in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for op in operations:
        print(f"| {op} | " + " | ".join(cell(b, op, isa) for b, isa in columns) + " |")
    print("""
## The shipped model

"ROMEO:", greedy, one plan made on x86-64; the receipt's hash by build and instruction set. Each also verified the receipt
made here.

| tokens | receipt hash | equal on |
|---|---|---|""")
    for tokens, digests in sorted(by_length.items(), reverse=True):
        for digest, where in digests.items():
            print(f"| {tokens} | `{digest}` | {'; '.join(where)} |")
    if len(sys.argv) > 2:
        print(
            "\n## Random cases\n\n"
            "`invar_fuzz`: mutated shapes, dtypes, values and settings; random splits, threads, "
            "steps and alignment;\n"
            "every row of this machine against the reference.\n"
        )
        for line in Path(sys.argv[2]).read_text().splitlines():
            print(f"    {line}")


if __name__ == "__main__":
    main()
