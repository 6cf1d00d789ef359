"""The same bits on another architecture: the runtime and kernels for AArch64 under QEMU, with the plan made here."""

import platform
import shutil

import pytest
from conftest import BUILD, MODEL, execute

QEMU = "qemu-aarch64-static"
PROGRAM = BUILD / "aarch64/bin/invar"


@pytest.fixture(scope="module")
def program():
    if platform.machine() != "x86_64":
        pytest.skip("cross builds are made on x86-64 only")
    assert shutil.which(QEMU) and PROGRAM.exists(), "no AArch64 build: ./setup.sh test makes it"
    return [QEMU, str(PROGRAM)]


@pytest.fixture(scope="module")
def plan(answer, tasks):
    return next(tasks.glob("*/plan.invar"))


@pytest.mark.parametrize("isa,tokens", [("neon", 64), ("scalar", 8), ("reference", 8)])
def test_aarch64(generate, program, plan, isa, tokens):
    here = generate(tokens=tokens)
    there = generate("--plan", plan, "--isa", isa, tokens=tokens, program=program)
    assert there["isa"] == isa and there["content"]["execution"]["machine"] == "aarch64"
    assert there["receipt_hash"] == here["receipt_hash"]


def test_each_verifies_the_other(generate, program, plan, tmp_path):
    here = generate(tokens=16)
    there = generate("--plan", plan, tokens=16, program=program)
    done = execute(["verify", here["receipt"], "--plan", plan, "--model-name", MODEL], program=program)
    assert done.code == 0, done.text
    done = execute(["verify", there["receipt"], "--model-name", MODEL, "--task-dir", tmp_path / "task"])
    assert done.code == 0, done.text
