"""A preloaded library that flushes subnormals and rounds towards zero in every thread
(tests/fp_environment) changes no bit."""

import json
import os

import pytest
from conftest import BUILD, MODEL, ROOT, few_rooms, invar

LIBRARY = BUILD / "tests/fp_environment/libinvar_hostile.so"


@pytest.fixture
def hostile(tmp_path):
    """env of a process that the library is loaded into, and how often it struck there."""
    assert LIBRARY.exists(), "not built"
    log = tmp_path / "hostile.log"
    # By its bare name: LD_PRELOAD splits paths at spaces, LD_LIBRARY_PATH does not.
    folder = tmp_path / "with a space"
    folder.symlink_to(LIBRARY.parent)
    folders = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    env = {
        **os.environ,
        "LD_PRELOAD": LIBRARY.name,
        "LD_LIBRARY_PATH": ":".join(folders),
        "HOSTILE_LOG": str(log),
    }
    return env, lambda: dict(zip(*[iter(log.read_text().split())] * 2))


def test_it_strikes_and_doctor_says_so(hostile):
    env, strikes = hostile
    doctor = ["doctor", "--rooms", few_rooms()]
    assert not invar(*doctor, "--json", env=env).json()["environment_as_found"]
    assert "was changed by a library" in invar(*doctor, "--threads", 3, env=env).out.decode()
    assert int(strikes()["threads"]) == 3  # two workers, and the thread that waits for signals


@pytest.mark.parametrize("how", [(), ("SYSTEM_CALLS",), ("SYSTEM_CALLS", "TRAPS")])
def test_the_whole_journey(hostile, tmp_path, how):
    """Export, compile, load, infer with more threads than cores, which wait and yield."""
    env, strikes = hostile
    env |= {f"HOSTILE_{name}": "1" for name in how}
    committed = json.loads((ROOT / "tests/golden/romeo.receipt.json").read_text())
    receipt = tmp_path / "r.json"
    done = invar(
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        "ROMEO:",
        "--max-new-tokens",
        64,
        "--task-dir",
        tmp_path / "task",
        "--threads",
        2 * os.cpu_count() + 1,
        "--receipt-path",
        receipt,
        "--json",
        env=env,
    )
    assert done.json()["receipt_hash"] == committed["receipt_hash"]
    struck = strikes()
    assert int(struck["threads"]) >= 2 * os.cpu_count() and int(struck["yields"]) > 0
    assert (int(struck["calls"]) > 100) == ("SYSTEM_CALLS" in how)
    assert invar("verify", receipt, env=env).code == 0


@pytest.mark.parametrize("most", [0, 2])
def test_threads_that_cannot_be_started(hostile, tmp_path, most):
    """Exporting, compiling, loading and inferring go on with the threads there are, and say so."""
    env, strikes = hostile
    env = {**env, "HOSTILE_MOST_THREADS": str(most)}
    committed = json.loads((ROOT / "tests/golden/romeo.receipt.json").read_text())
    for command in (
        [
            "run",
            "--model-name",
            MODEL,
            "--prompt-text",
            "ROMEO:",
            "--max-new-tokens",
            64,
            "--task-dir",
            tmp_path / "task",
            "--receipt-path",
            tmp_path / "r.json",
        ],
        ["verify", tmp_path / "r.json"],
        ["doctor", "--rooms", few_rooms()],
    ):
        done = invar(*command, "--threads", 8, env=env)
        assert int(strikes()["threads"]) == most
        if command[0] != "doctor":
            assert "of 8: the system starts no more" in done.text
    assert (
        json.loads((tmp_path / "r.json").read_text())["receipt_hash"] == committed["receipt_hash"]
    )


@pytest.mark.parametrize("how", [(), ("SYSTEM_CALLS", "TRAPS")])
def test_sampling_and_numbers_on_the_command_line(hostile, generate, tmp_path, how):
    env, _ = hostile
    env |= {f"HOSTILE_{name}": "1" for name in how}
    options = ["--temperature", "0.7", "--top-p", "0.9", "--seed", "7"]
    assert (
        generate(*options, tokens=32, env=env)["receipt_hash"]
        == generate(*options, tokens=32)["receipt_hash"]
    )
