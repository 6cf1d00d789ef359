"""The built program is hardened, and what checks files of strangers is confined."""

import json
import re
import shutil
import subprocess

import pytest
from conftest import BIN, BUILD, MODEL, ROOT, invar

# What reads files and requests of strangers, without its tests.
HARDENED = (
    "base|prompt|plan|onnx|checkpoint|grammar|signature|receipt|dispute|hub|generate|http|store|serve"
)
READERS = rf"unity/invar_(({HARDENED})_)?files_\d+\.cc$|src/({HARDENED})/(?!.*_test\.cc).*\.cc$"
RECEIPT = ROOT / "tests/golden/romeo.receipt.json"


def readelf(*options):
    if not shutil.which("readelf"):
        pytest.skip("no readelf here")
    return subprocess.run(["readelf", "-W", *options, BIN], capture_output=True, text=True).stdout


def test_the_program_is_hardened():
    cache = (BUILD / "CMakeCache.txt").read_text()
    if re.search(r"^INVAR_SANITIZE:\w+=\S|^INVAR_OPTIMIZE:\w+=kernels", cache, re.M):
        pytest.skip("a build for tests alone")
    assert re.search(r"Type:\s+DYN \(Position-Independent", readelf("-h"))
    segments = readelf("-l")
    assert "GNU_RELRO" in segments
    stack = re.search(r"GNU_STACK.*", segments).group(0)
    assert " RW " in stack and "E" not in stack.split()[-2], stack
    assert not re.search(r"LOAD.* (RWE|WE) ", segments)
    dynamic = readelf("-d")
    assert re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", dynamic)  # with RELRO: all tables are read-only
    assert not re.search(r"\((RPATH|RUNPATH|TEXTREL)\)", dynamic)
    assert "__stack_chk_fail" in readelf("--dyn-syms")
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    readers = [c["command"] for c in commands if re.search(READERS, c["file"])]
    assert len(readers) > 10
    for command in readers:
        assert "-fstack-protector-strong" in command and "-D_FORTIFY_SOURCE=3" in command, command


def test_a_verification_says_what_it_may_do():
    said = invar("verify", RECEIPT, "--model-name", MODEL, "--verbose").text
    line = re.search(r"^ +confined +(.*)$", said, re.M).group(1)
    assert "no network" in line or "the network is not: " in line
    assert "starts no program" in line or "files are not: " in line
    assert "confined" not in invar("verify", RECEIPT, "--model-name", MODEL).text


def test_a_model_of_the_hub_may_be_downloaded(tmp_path):
    env = {
        "XDG_CACHE_HOME": str(tmp_path),
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HOME": str(tmp_path),
    }
    wanted = ("verify", RECEIPT, "--model-name", "no-such/model", "--verbose")
    assert "may have to be downloaded" in invar(*wanted, code=2, env=env).text
    assert "downloaded" not in re.search(
        r"confined.*", invar(*wanted, "--offline", code=2, env=env).text
    ).group(0)
