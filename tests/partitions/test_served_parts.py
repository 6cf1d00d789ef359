"""A server and a batch whose model is in partitions and ranks: the receipts of one, and what a lost
process costs."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import BIN, MODEL, ROOT, execute

sys.path.insert(0, str(ROOT / "tests/serve"))
from server import Server  # noqa: E402
from test_batch import LONG, digest, row, write  # noqa: E402

MPI = shutil.which("mpirun") and (pathlib.Path(BIN).parent / "libinvar_mpi.so").exists()
WORKERS = ("--workers", "processes", "--worker-timeout", 3)
DIVIDED = [
    ("--n-partitions", 2),
    ("--tensor-parallel", 2),
    ("--n-partitions", 2, "--tensor-parallel", 2),
]
DIVIDED += [(*parts, *WORKERS) for parts in DIVIDED if MPI]
LOST = [signal.SIGKILL, signal.SIGSTOP] if MPI else []
PROMPTS = ["ROMEO:", "JULIET:", "KING:", "First Citizen:", "Nurse:", "O,", "the", "\n"]
ROWS = [
    row(f"r{i}", PROMPTS[i % 8] * (1 + i // 8), 8 + 3 * (i % 5), temperature=i % 3 * 0.5)
    for i in range(20)
]


@pytest.fixture(scope="module")
def options(tasks):
    return ["--model-name", MODEL, "--tasks-root", tasks, "--context", 512, "--batch-size", 8]


def batch(file, results, options, code=0):
    done = execute(["batch", file, "--results", results, *options])
    assert done.code == code, done.text


@pytest.fixture(scope="module")
def whole(options, tmp_path_factory):
    """A file of rows, and the digest of its results by one process."""
    folder = tmp_path_factory.mktemp("whole")
    batch(write(folder / "in.jsonl", ROWS), folder / "results", options)
    return folder / "in.jsonl", digest(folder / "results")


@pytest.mark.parametrize("parts", DIVIDED)
def test_a_batch_has_the_answers_of_one(whole, options, tmp_path, parts):
    file, expected = whole
    batch(file, tmp_path / "results", [*options, *parts])
    assert digest(tmp_path / "results") == expected


def worker_of(command):
    """The last process of a command with two, which mpirun has started."""
    found = [command.pid]
    for _ in range(2):
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(found[-1])], capture_output=True, text=True
        )
        found.append(max(map(int, listed.stdout.split())))
    return found[-1]


@pytest.mark.parametrize("what", LOST)
def test_a_batch_that_loses_a_worker_goes_on_later(options, tmp_path, what):
    more = [one | {"custom_id": f"more-{one['custom_id']}"} for one in LONG]  # is not over too soon
    file, results = write(tmp_path / "in.jsonl", LONG + more), tmp_path / "results"
    batch(file, tmp_path / "one", options)
    slowly = [*options[:-1], 1, "--n-partitions", 2, *WORKERS]
    command = subprocess.Popen(
        [BIN, "batch", file, "--results", results, *map(str, slowly)], stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not list(results.glob("results/*/*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(worker_of(command), what)
    error = command.communicate(timeout=60)[1].decode()
    lines = [one for one in error.splitlines() if one.startswith("invar: ")]
    assert command.returncode == 1 and len(lines) == 1, error
    assert lines[0].startswith("invar: worker 1 on ") and "the run is given up" in lines[0]
    assert not (results / "output.jsonl").exists()
    batch(file, results, options)
    assert digest(results) == digest(tmp_path / "one")


@pytest.mark.parametrize("parts", DIVIDED)
def test_a_server_has_the_receipts_of_one(tasks, tmp_path, parts):
    asked = [
        {"prompt": "KING", "max_tokens": 30, "temperature": 1, "seed": 1, "n": 3},
        {"prompt": ["ROMEO:", "JULIET: O"], "max_tokens": 20, "temperature": 0},
    ]
    made = []
    for options in ((), parts):
        server = Server(MODEL, tasks, tmp_path / str(len(made)), "--batch-size", 4, *options)
        made.append([server.complete(body)["invar"]["receipts"] for body in asked])
        assert server.stop() == 0
    assert made[0] == made[1]


@pytest.mark.parametrize("what", LOST)
def test_a_server_that_loses_a_worker_ends(tasks, tmp_path, what):
    server = Server(MODEL, tasks, tmp_path / "receipts", "--tensor-parallel", 2, *WORKERS)
    body = {"prompt": "KING", "max_tokens": 400, "temperature": 0, "stream": True}
    response = server.open("/v1/completions", body)
    response.read(10)
    os.kill(worker_of(server.process), what)
    assert server.process.wait(60) == 1
    lines = [one for one in server.lines if one.startswith("invar: ")]
    assert len(lines) == 1 and "worker 1 on " in lines[0], server.lines
    assert not list((tmp_path / "receipts").glob("*.json"))
