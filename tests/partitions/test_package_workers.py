"""invar.generate(), invar.verify() and invar.InferenceSession with workers=: the receipt of one
process, and what a process that is lost does: an exception, and nothing stays behind."""

import copy
import gc
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import BIN, BUILD, MODEL

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
if not shutil.which("mpirun") or not (pathlib.Path(BIN).parent / "libinvar_mpi.so").exists():
    pytest.skip("no MPI here", allow_module_level=True)
import invar  # noqa: E402

HOST = socket.gethostname()
PARTS = {"workers": "processes", "n_partitions": 2}
RANKS = {"workers": "processes", "tensor_parallel": 2}


@pytest.fixture(autouse=True)
def program(monkeypatch):
    path = os.pathsep.join((str(pathlib.Path(BIN).parent), os.environ["PATH"]))
    monkeypatch.setenv("PATH", path)


def answer(tasks, **named):
    named.setdefault("max_new_tokens", 12)
    return invar.generate(MODEL, "JULIET:", tasks_root=tasks, threads=1, **named)


@pytest.fixture(scope="module")
def whole(tasks):
    return answer(tasks)


def fields(pid):
    """(parent, state) of a process; None: it is gone."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(stat[1]), stat[0]) if stat[0] != "Z" else None


def job_of(parent):
    """Numbers of the processes that `parent` has started: the command, mpirun, then its own."""
    found, level = [], [parent]
    while level:
        everyone = [int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*")]
        level = sorted(p for p in everyone if (f := fields(p)) and f[0] in level)
        found += level
    return found


def nothing_is_left(job):
    deadline = time.time() + 20
    while any(map(fields, job)) and time.time() < deadline:
        time.sleep(0.1)
    return not any(map(fields, job))


@pytest.mark.parametrize(
    "named,processes",
    [
        ({"n_partitions": 2, "prefill_chunk": 3}, 2),
        ({"tensor_parallel": 2}, 2),
        ({"n_partitions": 2, "tensor_parallel": 2}, 4),
        ({"n_partitions": 3, "kv_cache": False, "workers": ["processes"]}, 3),
    ],
)
def test_the_receipt_of_one_process(tasks, whole, named, processes):
    made = answer(tasks, **{"workers": "processes", **named})
    assert "".join(made) == whole.text and made.receipt_hash == whole.receipt_hash
    assert made.receipt["execution"]["placement"].count("worker") == processes - 1


@pytest.mark.parametrize("named", [PARTS, RANKS])
def test_verified_by_workers(whole, named):
    assert invar.verify(whole, MODEL, **named).verdict == "VERIFIED"
    forged = copy.deepcopy(whole.receipt)
    forged["output"]["tokens"][5] ^= 1
    assert not invar.verify(forged, MODEL, **named)
    assert not job_of(os.getpid())


def test_a_session_keeps_its_workers(tasks, whole):
    session = invar.InferenceSession(MODEL, tasks_root=tasks, threads=1, max_new_tokens=12, **PARTS)
    assert session.complete("JULIET:").receipt_hash == whole.receipt_hash
    job = job_of(os.getpid())
    assert len(job) == 4
    assert session.complete("JULIET:").receipt_hash == whole.receipt_hash
    assert job_of(os.getpid()) == job
    # Beside it, this process alone has a model.
    assert "worker" not in answer(tasks, n_partitions=2).receipt["execution"]["placement"]
    assert session.complete("JULIET:", workers=None).receipt_hash == whole.receipt_hash
    assert nothing_is_left(job)


def test_an_abandoned_answer_leaves_no_process(tasks, whole):
    left = answer(tasks, **PARTS)
    assert whole.text.startswith(next(left))
    job = job_of(os.getpid())
    del left
    assert nothing_is_left(job)


GONE = "was ended by signal 9 (Killed): the run is given up"
SILENT = "has given no sign of life for 3 s: the run is given up"


@pytest.mark.parametrize(
    "who,what,named,line",
    [
        (3, signal.SIGKILL, PARTS, f"worker 1 on {HOST} {GONE}"),
        (3, signal.SIGSTOP, PARTS, f"worker 1 on {HOST} {SILENT}"),
        (3, signal.SIGKILL, RANKS, f"worker 1 on {HOST} {GONE}"),
        (3, signal.SIGSTOP, RANKS, f"worker 1 on {HOST} {SILENT}"),
        (2, signal.SIGKILL, PARTS, f"the run's process on {HOST} {GONE}"),
        (2, signal.SIGSTOP, PARTS, f"process 0, the run itself, {SILENT}"),
        (1, signal.SIGKILL, PARTS, "mpirun was ended by signal 9: the run is given up"),
        (0, signal.SIGTERM, PARTS, "the workers' processes ended: the run is given up"),
    ],
)
def test_a_lost_process_is_an_exception(tasks, tmp_path, who, what, named, line):
    named = {**named, "kv_cache": False, "worker_timeout": 3, "max_new_tokens": 480}
    begun = answer(tasks, receipt_path=tmp_path / "receipt.json", **named)
    next(begun)
    job = job_of(os.getpid())
    os.kill(job[who], what)
    with pytest.raises(invar.Failed) as caught:
        begun.text
    # Nobody hears a process 0 that is stopped: the worker, or the program, says so first.
    stopped = who == 2 and what == signal.SIGSTOP
    assert str(caught.value) in (line, *[f"worker 1 on {HOST} {SILENT}"] * stopped)
    assert not (tmp_path / "receipt.json").exists()
    assert nothing_is_left(job)


def test_a_session_starts_lost_workers_again(tasks, whole):
    session = invar.InferenceSession(MODEL, tasks_root=tasks, threads=1, max_new_tokens=12, **PARTS)
    session.complete("JULIET:")
    job = job_of(os.getpid())
    os.kill(job[3], signal.SIGKILL)
    assert nothing_is_left(job[1:])
    with pytest.raises(invar.Failed, match="worker 1 on .* was ended by signal 9"):
        session.complete("ROMEO:")
    assert session.complete("JULIET:").receipt_hash == whole.receipt_hash


def test_no_process_outlives_the_program(tasks):
    """Killed, it closes nothing by itself."""
    script = f"""if True:
        import invar, time
        answer = invar.generate({str(MODEL)!r}, "JULIET:", tasks_root={str(tasks)!r}, **{PARTS!r})
        next(answer)
        print("begun", flush=True)
        time.sleep(60)"""
    run = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(BUILD / "python")},
    )
    assert run.stdout.readline() == b"begun\n"
    job = job_of(run.pid)
    assert len(job) == 4
    run.kill()
    run.wait()
    assert nothing_is_left(job)


def test_other_weights_are_named(tasks, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    invar.generate(model, "a", max_new_tokens=1, tasks_root=tmp_path / "tasks").text
    (plan,) = (tmp_path / "tasks").glob("*/plan.invar")
    last = sorted(model.glob("*.safetensors"))[-1]
    damaged = bytearray(last.read_bytes())
    damaged[-100] ^= 1
    last.write_bytes(damaged)
    for named in (PARTS, RANKS):
        with pytest.raises(invar.Failed, match="weight .*the plan says"):
            invar.generate(model, "a", max_new_tokens=1, plan=plan, **named)


@pytest.mark.parametrize(
    "named,text",
    [
        ({"n_partitions": 1}, "give --n-partitions or --tensor-parallel 2 or more"),
        ({"n_partitions": 6}, "6 partitions: the model has 5 layers"),
        ({"workers": "a,,b"}, "'a,,b' has an empty name"),
        ({"workers": ""}, "workers: '' is no name"),
        ({"workers": []}, "workers: list is no str"),
        ({"workers": 2}, "workers: int is no str"),
        ({"worker_timeout": 0}, "worker_timeout: 0 is not a whole number"),
        ({"workers": None, "worker_model": "x"}, "worker_model: of workers: give workers="),
        ({"weights_memory": 6_000_000, "exception": invar.NotCovered}, "leave --workers out"),
    ],
)
def test_refusals(tasks, whole, named, text):
    named = {**PARTS, **named}
    kind = named.pop("exception", invar.BadInput)
    for call in (lambda: answer(tasks, **named), lambda: invar.verify(whole, MODEL, **named)):
        with pytest.raises(kind) as caught:
            call()
        assert text in str(caught.value) and "\n" not in str(caught.value)
        del caught  # with what its traceback has
        gc.collect()
    assert nothing_is_left(job_of(os.getpid()))


def test_a_program_that_is_not_there_is_named(tasks, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(invar.BadInput, match="the program `invar` is neither beside this Python"):
        answer(tasks, **PARTS)
