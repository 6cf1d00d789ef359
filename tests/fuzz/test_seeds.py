"""Every fuzz target has seeds and a row in the threat model. tools/fuzz.sh runs the targets."""

import re
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/fuzz"))
import seeds  # noqa: E402

LISTED = (ROOT / "tests/fuzz/CMakeLists.txt").read_text()
TARGETS = re.findall(r'^ *invar_fuzz\((\w+) READS "([^"]+)"', LISTED, re.M)


def test_the_threat_model_names_each():
    page = (ROOT / "docs/design/threat-model.md").read_text()
    table = page.split("## Readers of files, and who fuzzes them")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+) \| `(\w+)` \|$", table, re.M)
    assert {name: reads.replace("`", "") for reads, name in rows} == dict(TARGETS)


@pytest.mark.parametrize("target", [name for name, _ in TARGETS])
def test_seeds(target):
    found = list(seeds.seeds(target))
    assert len(found) >= 3 and all(found) and len(set(found)) > len(found) / 2
