"""The kernels of the page compute the bits of spec/: the conformance harness as WebAssembly, under
Node."""

import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT

MODULE = BUILD / "web/bin/invar_conformance.wasm"
RUN = ROOT / "apps/web/run.mjs"
if not MODULE.exists():
    pytest.skip("the page is not built: ./setup.sh web", allow_module_level=True)
if not shutil.which("node"):
    pytest.skip("no Node here", allow_module_level=True)


def test_every_kernel_agrees_with_the_reference_and_the_golden_digests():
    rooms = ROOT / "src/ops"
    done = subprocess.run(
        ["node", RUN, MODULE, "--rooms", rooms, "--isa", "wasm", "--fast"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "wasm" in done.stdout
