"""Signed reports of machines: what `invar doctor --evidence` writes, and what is refused by
tools/evidence/reports.py."""

import copy
import json
import subprocess
import sys

import pytest
from conftest import MODEL, ROOT, invar, refused

sys.path.insert(0, str(ROOT / "tools/evidence"))
import reports as evidence  # noqa: E402

RECEIPT = ROOT / "tests/golden/romeo.receipt.json"


MODEL_ROW = {
    "name": "shakespeare-4m", "weights": "1" * 64, "program": "2" * 64, "numerics": "invar-1",
    "profile": "fp32", "prompt": "3" * 64, "seed": "0", "tokens": 64, "device": "cpu",
    "isa": "avx2", "receipt": "4" * 64,
}  # fmt: skip


@pytest.fixture
def report(monkeypatch):
    """As `invar doctor --evidence` writes it, without a signature of a key."""
    monkeypatch.setattr(evidence, "is_signed", lambda key, made, message: made == b"\1" * 64)
    kernels = {op: {"answers": a, "isas": {"avx2": [9, 0]}} for op, a in evidence.answers().items()}
    made = {"schema": "invar-evidence 1", "version": "1.0", "numerics": "invar-1", "cores": 2,
            "compiler": "g++ 1", "machine": "x86_64", "processor": "A | B", "gpu": None,
            "isas": ["avx2"], "kernels": kernels, "models": [dict(MODEL_ROW)]}  # fmt: skip
    return sealed(made)


def sealed(report):
    signature = {"key": "5" * 64, "signature": "01" * 64}
    return report | {"hash": evidence.digest(report), "signatures": [signature]}


def test_this_machine(tmp_path):
    """What the program writes is accepted, and its kernels have the known answers of this
    source."""
    key, file = tmp_path / "me.key", tmp_path / "r.json"
    invar("keygen", key)
    invar("doctor", "--evidence", file, "--sign", key, "--model-receipt", RECEIPT)
    report = evidence.read(file)
    evidence.check_alone(report)
    evidence.check_answers(report)
    assert report["models"][0]["receipt"] == json.loads(RECEIPT.read_text())["receipt_hash"]
    assert len(report["kernels"]) > 100
    report["cores"] += 1
    report["hash"] = evidence.digest(report)
    assert why(evidence.check_alone, report) == "signatures: not of it"


def why(action, *arguments):
    with pytest.raises(evidence.Refused) as refusal:
        action(*arguments)
    return str(refusal.value)


def test_a_report_is_accepted(report):
    evidence.check_alone(report)
    evidence.check_answers(report)
    evidence.check_together(report, [("other", copy.deepcopy(report))])
    text = evidence.page([("one.json", report)])
    assert MODEL_ROW["receipt"] in text and "[A  B, 2 cores](reports/one.json)" in text


def test_what_differs_is_named(report):
    other = copy.deepcopy(report)
    other["models"][0]["receipt"] = "0" * 64
    said = why(evidence.check_together, other, [("x.json", report)])
    assert (
        said.startswith("model shakespeare-4m (avx2): receipt 0000") and "x.json has 4444" in said
    )
    other["models"][0]["prompt"] = "0" * 64  # another question
    evidence.check_together(other, [("x.json", report)])
    other["kernels"]["softmax"]["answers"] = "0" * 64
    assert why(evidence.check_answers, other).startswith("kernel softmax: known answers 0000")
    other["kernels"] = {"no_such": report["kernels"]["add"]}
    assert "no_such" in why(evidence.check_answers, other)


def test_changed_and_unsigned_reports_are_refused(report):
    for change in (
        lambda r: r.update(processor="another"),
        lambda r: r["kernels"]["add"].update(answers="0" * 64),
        lambda r: r["models"][0].update(receipt="0" * 64),
    ):
        other = copy.deepcopy(report)
        change(other)
        assert why(evidence.check_alone, other) == "hash: the report was changed"
        other = sealed({k: v for k, v in other.items() if k not in ("hash", "signatures")})
        evidence.check_alone(other)
        other["signatures"][0]["signature"] = "02" * 64
        assert why(evidence.check_alone, other) == "signatures: not of it"
        del other["signatures"]
        assert "--sign KEY" in why(evidence.check_alone, other)
    for broken in ([], {}, {"schema": "invar-evidence 1"}, report | {"kernels": {"add": []}},
                   report | {"models": [{}]}, report | {"cores": "2"},
                   report | {"signatures": [{"key": "x", "signature": ""}]}):  # fmt: skip
        assert why(evidence.check_alone, broken)


def test_a_kernel_that_differs_is_named(report):
    report["kernels"]["exp"]["isas"]["avx2"][1] = 1
    report = sealed({k: v for k, v in report.items() if k not in ("hash", "signatures")})
    assert why(evidence.check_alone, report) == "kernel exp, avx2: 1 of 9 answers differ"


def test_ed25519_is_that_of_rfc_8032():
    # RFC 8032, 7.1, TEST 2, and what is none
    key = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert evidence.is_signed(key, signature, b"\x72")
    assert not evidence.is_signed(key, signature, b"\x73")
    assert not evidence.is_signed(key, signature[:-1] + b"\x10", b"\x72")
    small = (1).to_bytes(32, "little")  # of small order: anybody can sign
    assert not evidence.is_signed(small, small + bytes(32), b"\x72")


def test_it_is_added_by_one_command(report, tmp_path, monkeypatch, capsys):
    known = evidence.answers()
    monkeypatch.setattr(evidence, "answers", lambda: known)
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(evidence, "PAGE", tmp_path / "reports.md")

    def tool(*arguments):
        monkeypatch.setattr(sys, "argv", ["reports.py", *map(str, arguments)])
        return evidence.main()

    file = tmp_path / "mine.json"
    file.write_text(json.dumps(report))
    assert tool("--add", file) == 0 and tool("--check") == 0
    assert [p.name[:11] for p in (tmp_path / "reports").iterdir()] == ["x86-64-a-b-"]
    report["models"][0]["receipt"] = "0" * 64
    file.write_text(
        json.dumps(sealed({k: report[k] for k in report if k not in ("hash", "signatures")}))
    )
    assert tool("--add", file) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"evidence: {file}: model shakespeare-4m") and said.count("\n") == 1
    for text in ("{", "[]", "\udcff"):
        file.write_bytes(text.encode(errors="surrogateescape"))
        assert tool("--add", file) == 1
    assert tool("--add", tmp_path / "none.json") == 1
    (tmp_path / "reports.md").write_text("old\n")
    assert tool("--check") == 1


def test_the_page_is_that_of_the_reports():
    tool = [sys.executable, "-B", ROOT / "tools/evidence/reports.py", "--check"]
    assert subprocess.run(tool).returncode == 0


def test_bad_options(tmp_path):
    refused("doctor", "--sign", tmp_path / "no.key", names=["--evidence"])
    wanted = ("doctor", "--evidence", tmp_path / "r.json")
    refused(*wanted, "--sign", tmp_path / "no.key", names=["no.key"])
    refused(*wanted, "--model-receipt", MODEL / "config.json", names=["config.json"])
    assert not (tmp_path / "r.json").exists()
