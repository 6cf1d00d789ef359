"""A second reading of spec/receipt.md, with nothing but json and hashlib."""
import hashlib
import json

from conftest import ROOT

SECTIONS = ("model", "program", "input", "output")


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def leaf(path, value):
    compact = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return sha256(path.encode(), b"=", compact.encode())


def merkle_root(leaves):
    level = [sha256(b"\0", d) for d in leaves]
    while len(level) > 1:
        pairs = [sha256(b"\1", a, b) for a, b in zip(level[::2], level[1::2])]
        level = pairs + level[len(pairs) * 2:]
    return level[0] if level else sha256()


def check(receipt):
    paths = {"schema": receipt["schema"]}
    paths |= {f"{s}.{key}": value for s in SECTIONS for key, value in receipt[s].items()}
    leaves = {path: leaf(path, value) for path, value in paths.items()}
    assert {path: d.hex() for path, d in leaves.items()} == receipt["digests"]
    assert list(leaves) == list(receipt["digests"])
    assert merkle_root(leaves.values()).hex() == receipt["receipt_hash"]
    execution = {key: leaf("execution." + key, value) for key, value in sorted(receipt["execution"].items())}
    assert {key: d.hex() for key, d in execution.items()} == receipt["execution_digests"]
    assert merkle_root(execution.values()).hex() == receipt["execution_hash"]


def test_example():
    check(json.loads((ROOT / "src/receipt/example.json").read_text()))


def test_a_real_receipt(answer):
    check(answer["content"])
    assert len(answer["content"]["output"]["logits"]) == len(answer["tokens"])
