"""SIGINT and SIGTERM in each phase: no half-written artifact, no temporary file, no process."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BIN, MODEL, invar


def leftovers(folder):
    return sorted(p.name for p in folder.rglob("*") if p.name.startswith(".invar-"))


def start(args, env):
    return subprocess.Popen(
        [BIN, *map(str, args), "--progress", "json"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def cancelled_at(phase, args, tmp_path, number=signal.SIGINT):
    """Cancels the program as soon as it says that the phase began; -> its events."""
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    (tmp_path / "tmp").mkdir(exist_ok=True)
    process = start(args, env)
    events = []
    for line in process.stderr:
        events.append(json.loads(line))
        if events[-1].get("phase") == phase and events[-1]["state"] == "started":
            os.kill(process.pid, number)
    code = process.wait(timeout=60)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # nothing of its session is left
    assert not leftovers(tmp_path)
    return code, events


@pytest.mark.parametrize("phase", ["plan", "export", "compile", "load", "prefill", "decode"])
def test_run(phase, tmp_path):
    receipt = tmp_path / "r.json"
    args = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO: " * 20, "--threads", 1]
    args += ["--max-new-tokens", 400, "--receipt-path", receipt, "--no-kv-cache"]
    code, events = cancelled_at(phase, args, tmp_path)
    assert code == -signal.SIGINT
    assert events[-1]["event"] == "error" and events[-1]["kind"] == "cancelled"
    assert events[-1]["code"] == 130
    assert not receipt.exists()
    # What is there is whole: another run takes it, or makes it anew.
    again = invar(
        *["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", 2],
        *["--receipt-path", receipt, "--tasks-root", tmp_path / "cache/invar/tasks"],
    )
    assert b"damaged" not in again.err


@pytest.mark.parametrize("phase", ["export", "compile", "load", "recompute"])
def test_verify(phase, tmp_path, answer):
    args = ["verify", answer["receipt"], "--model-name", MODEL, "--threads", 1]
    code, events = cancelled_at(phase, args, tmp_path, signal.SIGTERM)
    assert code in (-signal.SIGTERM, 0)  # it may be done before the signal comes
    if code:
        assert events[-1]["kind"] == "cancelled" and events[-1]["code"] == 143


def test_doctor(tmp_path):
    report = tmp_path / "report.json"
    code, _ = cancelled_at("examine", ["doctor", "--report", report], tmp_path)
    assert code == -signal.SIGINT and not report.exists()


def test_compile_in_place(tmp_path):
    task = tmp_path / "task"
    invar("export", "--model-name", MODEL, "-o", task)
    before = sorted(p.name for p in task.iterdir())
    code, _ = cancelled_at("compile", ["compile", task / "model.onnx"], tmp_path)
    names = sorted(p.name for p in task.iterdir())
    # The plan, the last file, is there whole or not at all.
    assert code in (-signal.SIGINT, 0)
    assert set(names) - set(before) <= {"plan.invar", "plan.invar.constants"}
    if (task / "plan.invar").exists():
        invar("infer", task / "plan.invar", "--tokens", "1,2", "--max-new-tokens", 1)


def test_an_ignored_signal_stays_ignored(tmp_path):
    args = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", 60]
    args += ["--receipt-path", tmp_path / "r.json", "--no-kv-cache", "--threads", 1]
    process = subprocess.Popen(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", BIN, *map(str, args)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0 and (tmp_path / "r.json").exists()


def test_cancel_without_events(tmp_path):
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    process = subprocess.Popen(
        [BIN, "run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", "400"]
        + ["--no-kv-cache", "--threads", "1", "--receipt-path", str(tmp_path / "r.json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.read(1)  # it answers
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT and not (tmp_path / "r.json").exists()
