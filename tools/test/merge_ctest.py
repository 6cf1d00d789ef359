#!/usr/bin/env python3
"""Joins the tests of several build folders into one ctest, so that there is one list and one count.

merge_ctest.py OUT TIER NAME=FOLDER...     then: ctest --test-dir OUT

CTest keys properties by name, and the same tests exist in every build: each gets its build's name
in front. Tests of other tiers are left out: a build makes the programs of its tier alone. Tier 3
runs them whole, so it waits longer for each."""

import json
import subprocess
import sys
from pathlib import Path

WHOLE = 6  # of a test, in the time that a sample of it may take


def quote(value):
    if isinstance(value, bool):
        value = "TRUE" if value else "FALSE"
    if isinstance(value, list):
        value = ";".join(map(str, value))
    return f"[==[{value}]==]"


def labels(test):
    return next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), [])


def main():
    out, label = Path(sys.argv[1]), f"tier{sys.argv[2]}"
    builds = [a.split("=", 1) for a in sys.argv[3:]]
    lines = []
    for name, folder in builds:
        listing = subprocess.run(
            ["ctest", "--test-dir", folder, "--show-only=json-v1"], check=True, capture_output=True
        ).stdout
        tests = [t for t in json.loads(listing)["tests"] if label in labels(t)]
        if not tests:
            sys.exit(f"merge_ctest.py: no tests of {label} in {folder}")
        for test in tests:
            if "command" not in test:
                sys.exit(f"merge_ctest.py: {folder}: {test['name']} was not built")
            title = quote(f"{name}.{test['name']}")
            lines.append(f"add_test({title} {' '.join(map(quote, test['command']))})")
            named = {p["name"]: p["value"] for p in test.get("properties", [])}
            if sys.argv[2] == "3" and "TIMEOUT" in named:
                named["TIMEOUT"] *= WHOLE
            properties = [f"{key} {quote(value)}" for key, value in named.items()]
            if properties:
                lines.append(f"set_tests_properties({title} PROPERTIES {' '.join(properties)})")
    out.mkdir(parents=True, exist_ok=True)
    (out / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
