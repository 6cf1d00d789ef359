"""Receipts against a second reading of spec/receipt.md (receipt_oracle.py)."""

import copy
import json
import re
import subprocess
import sys

import jsonschema
from conftest import ROOT
from receipt_oracle import (
    OPTIONAL,
    SECTIONS,
    execution_leaves,
    leaves,
    merkle_root,
    put,
    seal,
    sha256,
)


def check(receipt):
    bound = leaves(receipt)
    assert {path: d.hex() for path, d in bound.items()} == receipt["digests"]
    assert list(bound) == list(receipt["digests"])
    assert merkle_root(bound.values()).hex() == receipt["receipt_hash"]
    execution = execution_leaves(receipt)
    assert {key: d.hex() for key, d in execution.items()} == receipt["execution_digests"]
    assert merkle_root(execution.values()).hex() == receipt["execution_hash"]
    assert seal(copy.deepcopy(receipt)) == receipt


def test_example():
    check(json.loads((ROOT / "src/receipt/example.json").read_text()))


def test_a_real_receipt(answer):
    check(answer["content"])
    assert len(answer["content"]["output"]["logits"]) == len(answer["tokens"])


def test_the_published_script_recomputes_every_hash(answer, tmp_path):
    """docs/reference/receipt.py, which a stranger runs, on receipts of every format."""
    script = ROOT / "docs/reference/receipt.py"
    assert len(script.read_text().splitlines()) <= 200
    receipts = sorted((ROOT / "tests/golden/receipts").glob("*.json"))
    receipts += [ROOT / "src/receipt/example.json", answer["receipt"]]

    def run(*paths):
        done = subprocess.run(
            [sys.executable, script, *paths], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return done.returncode, done.stdout.decode()

    code, text = run(*receipts)
    assert code == 0 and text.count("every hash fits") == len(receipts), text
    assert answer["receipt_hash"] in text
    changed = tmp_path / "changed.json"
    for where in answer["content"]["digests"]:
        content = copy.deepcopy(answer["content"])
        if where == "schema":
            content["digests"]["schema"] = "0" * 64
        else:
            section, key = where.split(".")
            content[section][key] = "other" if key != "tensors" else []
        changed.write_text(json.dumps(content))
        code, text = run(changed)
        assert code == 1 and f"digests.{where}: " in text, text
    changed.write_text(json.dumps(put(answer["content"], ("schema",), "invar-receipt 3")))
    assert run(changed)[0] == 2
    for junk in ("", "[]", "{}", "[" * 100000, '{"schema": "invar-receipt 2"}'):
        changed.write_text(junk)
        assert run(changed)[0] == 2, junk


def shortened(value):
    """Lists of two elements at most, which the schema reads one by one."""
    if isinstance(value, dict):
        return {key: shortened(one) for key, one in value.items()}
    return [shortened(one) for one in value[:2]] if isinstance(value, list) else value


def test_the_schema_accepts_receipts_and_nothing_else(answer):
    """docs/reference/receipt.schema.json, for programs that read receipts."""
    schema = json.loads((ROOT / "docs/reference/receipt.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    receipts = sorted((ROOT / "tests/golden/receipts").glob("*.json"))
    contents = [json.loads(path.read_text()) for path in receipts]
    for other in ("batch.json", "chat.redacted.json", "redacted.json"):
        content = contents.pop([path.name for path in receipts].index(other))
        validator.validate(content)
        for key in content:
            less = {k: v for k, v in content.items() if k != key}
            assert validator.is_valid(less) == (key == "signatures"), key
        receipts = [path for path in receipts if path.name != other]
    contents += [json.loads((ROOT / "src/receipt/example.json").read_text()), answer["content"]]
    for content in contents:
        validator.validate(content)
        content = shortened(content)
        validator.validate(content)
        for section in (*SECTIONS, "digests"):
            for key in content[section]:
                less = copy.deepcopy(content)
                del less[section][key]
                path = key if section == "digests" else f"{section}.{key}"
                assert validator.is_valid(less) == (path in OPTIONAL), key
                assert not validator.is_valid(put(content, (section, key), None)), key
            assert not validator.is_valid(put(content, (section, "other"), "x")), section
    for path, value in [
        (("input", "temperature"), "0.80"),
        (("input", "temperature"), 0.8),
        (("input", "seed"), "01"),
        (("input", "tokens"), []),
        (("output", "finish_reason"), "end"),
        (("receipt_hash",), "F" * 64),
        (("schema",), "invar-receipt 3"),
    ]:
        assert not validator.is_valid(put(answer["content"], path, value)), path


def test_the_example_of_the_specification(answer):
    """Every digest of spec/receipt.md's example, from the texts that the page shows."""
    page = (ROOT / "spec/receipt.md").read_text().split("## Example\n")[1]
    block = page.split("```\n")[1]
    shown = re.findall(r"\b[0-9a-f]{64}\b", block)
    texts = re.findall(r"^leaf  (.*?) +[0-9a-f]{64}$", block, re.M)
    leaf_digests = [sha256(text.encode()) for text in texts]
    level0 = [sha256(b"\0", d) for d in leaf_digests]
    level1 = [sha256(b"\1", *level0[:2]), level0[2]]
    root = sha256(b"\1", *level1)
    assert shown == [d.hex() for d in (*leaf_digests, *level0, *level1, root)]
    assert root == merkle_root(leaf_digests)
    named = answer["content"]["digests"]
    assert shown[:3] == list(named.values())[:3]
    for text in re.findall(r"`(input\..*?=.*?)`", page):
        assert named[text.split("=")[0]] == sha256(text.encode()).hex()
    assert f"All {len(named)} leaves" in page and answer["receipt_hash"] in page
