"""ONNX's own node tests on the native runtime: what passed still passes, and nothing is answered
wrongly (docs/reference/onnx.md)."""

import os
import re
import subprocess
import sys

import pytest
from conftest import BIN, ROOT

import sample

sys.path.insert(0, str(ROOT / "tools"))
import onnx_nodes  # noqa: E402


@pytest.fixture(scope="module")
def results():
    cases = onnx_nodes.load()
    third = [name for name in cases if sample.TIER != 2 or sample.turn(name, 3) == 0]
    return onnx_nodes.run(third, cases, os.cpu_count())


def test_what_passed_passes(results):
    listed = onnx_nodes.LIST.read_text().split()
    assert len(listed) > 600 and listed == sorted(set(listed))
    lost = {
        name: results[name] for name in listed if name in results and results[name][0] != "passed"
    }
    assert not lost


def test_nothing_is_wrong(results):
    assert not {name: r for name, r in results.items() if r[0] in ("wrong", "crashed")}


def test_a_wrong_answer_is_seen(tmp_path):
    case = onnx_nodes.load()["test_add"]
    ((inputs, (wanted,)),) = case.data_sets
    case.data_sets = [(inputs, [wanted + 1])]
    try:
        state, message = onnx_nodes.judge(case, tmp_path)
    finally:
        case.data_sets = [(inputs, [wanted])]
    assert state == "wrong" and "Mismatched elements" in message


def test_refusals_say_what(results):
    for name, (state, message) in results.items():
        if state == "refused":
            assert message.startswith("invar: ") and onnx_nodes.reasons(message), name


def test_the_page_is_of_the_list():
    listed = len(onnx_nodes.LIST.read_text().split())
    assert re.search(rf"^\| passed \| {listed} ", onnx_nodes.TABLE.read_text(), re.MULTILINE)


def test_they_can_be_replayed():
    """tools/replay.py, which compares two builds, finds the program equal to itself."""
    named = "^test_(relu|ai_onnx_ml_label_encoder_string_int)$"
    command = [ROOT / "tools/replay.py", BIN, BIN, "nodes", "--only", named, "--levels", "3"]
    done = subprocess.run([sys.executable, "-B", *command], capture_output=True, text=True)
    assert "nodes: 2 cases (2 run), 0 differ" in done.stdout, done.stdout + done.stderr
