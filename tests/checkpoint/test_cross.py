"""The same bits on other architectures: the runtime and kernels under QEMU, with the plan made
here.

`./setup.sh test` builds AArch64 (the NEON lanes; with --all its scalar lane, too) and s390x (the
scalar lane, and the only big-endian one); RISC-V and POWER differ from s390x in nothing that s390x
does not show, and are built with --all."""

import functools
import platform
import shutil

import pytest
from conftest import BUILD, MODEL, copy_rooms, execute

import sample

ALWAYS = ["aarch64", "s390x"]
BEST = {"aarch64": "neon", "s390x": "scalar", "riscv64": "scalar", "ppc64le": "scalar"}
WHOLE = 16 if sample.TIER == 2 else 64  # tokens of an answer
RUNS = [
    *((arch, isa, WHOLE) for arch, isa in BEST.items()),
    ("aarch64", "scalar", 8),
    ("aarch64", "reference", 8),
    ("s390x", "reference", 4),
    ("riscv64", "reference", 4),
    ("ppc64le", "reference", 4),
]


def program(arch):
    qemu, path = f"qemu-{arch}-static", BUILD / arch / "bin/invar"
    if platform.machine() != "x86_64":
        pytest.skip("cross builds are made on x86-64 only")
    if arch not in ALWAYS and not path.exists():
        pytest.skip("./setup.sh test --all makes this build")
    assert shutil.which(qemu) and path.exists(), f"no build for {arch}: ./setup.sh test makes it"
    return [qemu, str(path)]


@pytest.fixture(scope="module")
def plan(answer, tasks):
    return next(tasks.glob("*/plan.invar"))


@pytest.fixture(scope="module")
def run_there(generate, plan):
    """run_there(arch, isa, tokens): each run once."""
    return functools.cache(
        lambda arch, isa, tokens: generate(
            "--plan", plan, "--isa", isa, tokens=tokens, program=program(arch)
        )
    )


@pytest.mark.parametrize("arch,isa,tokens", RUNS)
def test_same_receipt(generate, run_there, arch, isa, tokens):
    there = run_there(arch, isa, tokens)
    here = generate(tokens=tokens)
    assert there["isa"] == isa and there["content"]["execution"]["machine"] == arch
    assert there["receipt_hash"] == here["receipt_hash"]


@pytest.mark.parametrize("arch", BEST)
def test_each_verifies_the_other(generate, plan, run_there, arch):
    there = run_there(arch, BEST[arch], WHOLE)
    here = generate(tokens=16)
    done = execute(
        ["verify", here["receipt"], "--plan", plan, "--model-name", MODEL], program=program(arch)
    )
    assert done.code == 0, done.text
    done = execute(["verify", there["receipt"], "--model-name", MODEL])
    assert done.code == 0, done.text


@pytest.mark.parametrize("arch", BEST)
def test_logits_are_written_little_endian(answer, plan, tmp_path, arch):
    written = []
    for name, how in (("here", None), ("there", program(arch))):
        path = tmp_path / name
        done = execute(
            ["infer", plan, "--tokens", "0,848,27", "--logits-output", path], program=how
        )
        assert done.code == 0, done.text
        written.append(path.read_bytes())
    assert len(written[0]) > 0 and written[0] == written[1]


@pytest.mark.parametrize("arch", BEST)
def test_doctor(arch, tmp_path):
    """Every kernel row of that build reaches vectors and digests: an eighth of them in tier 2. The
    build for AArch64 runs the conformance harness, too, so there the least of each operation."""
    one_in = 8 if sample.TIER == 2 else 1
    rooms = copy_rooms(tmp_path, None if arch == "aarch64" else one_in)
    done = execute(["doctor", "--json", "--rooms", rooms], program=program(arch))
    assert done.code == 0, done.text
    found = done.json()
    assert found["machine"] == arch and all(
        r["checks"] > 0 and r["wrong"] == 0 for r in found["rows"]
    )
    assert ("neon" if arch == "aarch64" else "scalar") in found["isas"]
