"""invar doctor: sound here, and not sound where a known answer is another."""

import getpass
import json
import os
import re

import pytest
from conftest import ROOT, copy_rooms, cpu_isas, execute, few_rooms, invar, refused

OPSET = (ROOT / "spec/opset.toml").read_text()
OPERATIONS = re.findall(r"^\[(\w+)\]", OPSET, re.M)
OWN = [
    m.group(1)
    for m in re.finditer(r"^\[(\w+)\]\n([^\[]*)", OPSET, re.M)
    if "room =" not in m.group(2)
]


@pytest.fixture
def rooms(tmp_path):
    """A copy of some of the rooms' texts that a test may change."""
    return copy_rooms(tmp_path)


def test_this_machine_is_sound():
    done = invar("doctor", "--rooms", few_rooms())
    text = done.out.decode()
    assert "SOUND" in text and "DIFFERS" not in text
    for word in ["invar 0.", "GPU", "arithmetic", *OPERATIONS, *cpu_isas()]:
        assert word in text, word


def check_report(path, found, home):
    """`--report FILE`: what an issue needs, and nothing private."""
    text = path.read_text()
    report = json.loads(text)
    assert report["doctor"]["rows"] == found["rows"]
    assert report["report"] == "invar-doctor 1" and len(report["conformance"]) == 64
    assert report["system"]["kernel"] and report["processor"]["flags"]
    assert report["environment"]["HF_TOKEN"] == "set"
    assert report["environment"]["TMPDIR"] == "~/tmp"
    assert report["environment"]["LD_LIBRARY_PATH"] == "/home" + "/USER/lib:/opt/lib"
    assert report["limits"]["open_files"]
    for private in ("hf_secret", "alice", "bob", str(home)):
        assert private not in text
    if getpass.getuser() != "root":
        assert f"/{getpass.getuser()}/" not in text


def test_json_lists_every_row(tmp_path):
    home, path = tmp_path / "home/alice", tmp_path / "report.json"
    env = {**os.environ, "HOME": str(home), "TMPDIR": str(home / "tmp"), "HF_TOKEN": "hf_secret",
           "LD_LIBRARY_PATH": "/home" + "/bob/lib:/opt/lib"}  # fmt: skip
    done = invar("doctor", "--report", path, "--json", "--progress", "json", env=env)
    found = done.json()
    check_report(path, found, home)
    assert b'"phase":"examine","state":"running"' in done.err
    assert found["ok"] and found["findings"] == [] and found["environment_as_found"]
    assert sorted(found["isas"]) == sorted(cpu_isas() + (["cuda"] if found["gpu"] else []))
    rows = {(r["operation"], r["isa"]) for r in found["rows"]}
    assert {op for op, _ in rows} == set(OPERATIONS)
    assert all(r["checks"] >= 2 and r["wrong"] == 0 for r in found["rows"])


def test_it_needs_no_source_tree(tmp_path):
    assert execute(["doctor"], cwd=tmp_path, env={}).code == 0


def test_another_digest_is_named(rooms):
    op = OWN[-1]
    path = rooms / op / "tests/golden.txt"
    text = path.read_text()
    digest = re.search(r"=> ([0-9a-f]{64})", text).group(1)
    other = ("1" if digest[0] == "0" else "0") + digest[1:]
    path.write_text(text.replace(digest, other))
    done = invar("doctor", "--rooms", rooms, code=1)
    found = invar("doctor", "--rooms", rooms, "--json", code=1).json()
    assert "NOT SOUND" in done.text and op in done.text and other in done.text
    assert done.text.count("DIFFERS") == len(
        {r["isa"] for r in found["rows"] if r["operation"] == op}
    )
    assert (
        not found["ok"]
        and {f["operation"] for f in found["findings"]} == {op}
        and found["findings"][0]["repeats"]
    )


def test_another_vector_is_named(rooms):
    op = OWN[0]
    path = rooms / op / "tests/vectors.txt"
    lines = path.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "->" in line and not line.startswith("#"))
    head, bits = re.match(r"(.*-> \w+\[[^\]]*\]=)([0-9a-f]+)", lines[at]).groups()
    lines[at] = head + f"{int(bits, 16) ^ 1:0{len(bits)}x}" + lines[at][len(head) + len(bits) :]
    path.write_text("\n".join(lines) + "\n")
    done = invar("doctor", "--rooms", rooms, code=1)
    assert "NOT SOUND" in done.text and "elements differ" in done.text and op in done.text


def test_texts_that_are_none(rooms):
    (rooms / OWN[0] / "tests/golden.txt").write_text("# nothing\n")
    refused("doctor", "--rooms", rooms, names=["golden.txt"])
    (rooms / OWN[0] / "tests/golden.txt").unlink()
    refused("doctor", "--rooms", rooms, names=["golden.txt"])


def test_a_report_that_cannot_be_written(tmp_path):
    """Said before the work."""
    (tmp_path / "file").write_text("")
    done = refused("doctor", "--report", tmp_path / "file/r.json", names=["file/r.json"])
    assert b"examine" not in done.err
