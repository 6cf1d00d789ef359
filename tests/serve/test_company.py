"""Requests of all kinds at once: each receipt is its receipt alone (tests/serve/load/company.py)."""

from load.company import compare
from conftest import ROOT

TALE = ROOT / "models/tale-7m"


def test_a_hundred_at_once(tmp_path):
    assert compare(TALE, tmp_path, 96, 16) == []


def test_groups_in_flight(tmp_path):
    """Two lanes: clients leave while the next tokens of others are in flight."""
    assert compare(TALE, tmp_path, 64, 24, together=["--device", "cpu,cpu"]) == []


def test_a_thousand_at_once(tmp_path):
    assert compare(TALE, tmp_path, 1000, 64) == []
