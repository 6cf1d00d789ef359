"""Receipts against a second reading of spec/receipt.md (receipt_oracle.py)."""

import copy
import json

from conftest import ROOT
from receipt_oracle import execution_leaves, leaves, merkle_root, seal


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
