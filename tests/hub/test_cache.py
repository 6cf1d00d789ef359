"""The cache of exports and plans: `invar cache list|prune`, many processes on one key, and runs
that are killed anywhere."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import BIN, MODEL, ROOT, SHARDS, invar, refused

sys.path.insert(0, str(ROOT / "tests/weights"))
import gguf_files
from test_gguf import as_gguf


@pytest.fixture
def root(tmp_path):
    return tmp_path / "tasks"


def command(root, receipt, tokens=2):
    args = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", tokens]
    args += ["--tasks-root", root, "--receipt-path", receipt]
    return [BIN, *map(str, args)]


def start(root, receipt, tokens=2):
    return subprocess.Popen(command(root, receipt, tokens), stdout=-1, stderr=-1)


def run(root, tmp_path):
    """-> (receipt hash, what was written on standard error)"""
    done = subprocess.run(command(root, tmp_path / "r.json"), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    receipt = json.loads((tmp_path / "r.json").read_text())
    return receipt["receipt_hash"], done.stderr.decode()


def listed(root):
    return invar("cache", "list", "--tasks-root", root, "--json").json()["tasks"]


def pruned(root, *options):
    return invar("cache", "prune", "--tasks-root", root, "--json", *options).json()


def whole(folder):
    """The record is as it was written; where it claims a plan, every file is what it says."""
    text = (folder / "identity").read_bytes()
    assert hashlib.sha256(text[:-65]).hexdigest() == text[-65:-1].decode()
    record = json.loads(text[:-65])
    for name, wanted in record["files"].items() if record["key"] else ():
        content = (folder / name).read_bytes()
        found = len(content) if isinstance(wanted, int) else hashlib.sha256(content).hexdigest()
        assert found == wanted, name
    return record["key"] != ""


# --- promises -------------------------------------------------------------------------------------


def test_many_processes_on_one_key(root, tmp_path):
    many = [start(root, tmp_path / f"{i}.json") for i in range(8)]
    for process in many:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    hashes = {json.loads((tmp_path / f"{i}.json").read_text())["receipt_hash"] for i in range(8)}
    assert len(hashes) == 1
    (folder,) = root.iterdir()
    assert whole(folder) and not list(folder.glob(".invar-*"))
    same, text = run(root, tmp_path)
    assert {same} == hashes and f"ready in {folder}" in text


def test_killed_anywhere(root, tmp_path):
    """kill -9 at 40 moments of a run that makes the plan. What is left is used only where it is
    whole, and the next run mends it, into the same receipt."""
    begun = time.monotonic()
    honest, _ = run(tmp_path / "other", tmp_path)
    longest = time.monotonic() - begun
    draw = random.Random(5)
    for _ in range(40):
        if draw.random() < 0.5:
            shutil.rmtree(root, ignore_errors=True)  # else on top of what the last one left
        process = start(root, tmp_path / "killed.json")
        time.sleep(draw.uniform(0, longest))
        process.kill()
        process.communicate()
    for folder in root.iterdir() if root.exists() else []:
        if (folder / "identity").exists():
            whole(folder)
    same, text = run(root, tmp_path)
    assert same == honest and "damaged" not in text
    same, text = run(root, tmp_path)
    assert same == honest and "ready in" in text


def test_killed_while_files_move(root, tmp_path):
    """What kill -9 may leave between two renames: files of the new plan beside a record without a
    key. strace is not everywhere, so the states are made by hand: any part of the files."""
    honest, _ = run(root, tmp_path)
    (folder,) = root.iterdir()
    record = json.loads((folder / "identity").read_bytes()[:-65])
    for lost in [*record["files"], None]:
        body = json.dumps(
            {**record, "key": "", "files": {n: None for n in record["files"]}}
        ).encode()
        (folder / "identity").write_bytes(body + hashlib.sha256(body).hexdigest().encode() + b"\n")
        if lost:
            (folder / lost).unlink()
        same, text = run(root, tmp_path)
        assert same == honest and "export" in text and whole(folder)


def test_pruned_while_runs_begin(root, tmp_path):
    """Runs begin and end while everything that can go is removed again and again."""
    for _ in range(3):
        many = [start(root, tmp_path / f"{i}.json") for i in range(3)]
        while any(p.poll() is None for p in many):
            pruned(root, "--all")
        for process in many:
            assert process.returncode == 0, process.communicate()
    hashes = {json.loads((tmp_path / f"{i}.json").read_text())["receipt_hash"] for i in range(3)}
    assert hashes == {run(root, tmp_path)[0]}


# --- the commands ---------------------------------------------------------------------------------


def test_list(root, tmp_path):
    assert listed(root) == []
    before = int(time.time())
    run(root, tmp_path)
    (folder,) = root.iterdir()
    (task,) = listed(root)
    own = [f for f in folder.iterdir() if not f.is_symlink()]
    assert task["path"] == str(folder) and not task["in_use"]
    assert task["bytes"] == sum(f.stat().st_size for f in own)
    assert before <= task["last_use"] <= time.time()
    os.utime(folder, (1e9, 1e9))
    assert listed(root)[0]["last_use"] == 10**9
    run(root, tmp_path)  # a use, though nothing is written
    assert listed(root)[0]["last_use"] >= before
    text = invar("cache", "list", "--tasks-root", root).out.decode()
    assert f"tasks in {root}: 1, " in text and f"\n  {folder.name}  " in text and " UTC" in text


def test_models_are_listed(root, tmp_path):
    snapshot = tmp_path / "models--a--b/snapshots/0123"
    shutil.copytree(MODEL, snapshot)
    env = {**os.environ, "HF_HUB_CACHE": str(tmp_path)}
    found = invar("cache", "list", "--tasks-root", root, "--json", env=env).json()["models"]
    size = sum(f.stat().st_size for f in snapshot.iterdir())
    assert found == [{"name": "a/b", "revision": "0123", "bytes": size}]
    assert "  a/b@0123  8.5" in invar("cache", "list", env=env).out.decode()


def test_prune_by_age_and_size(root, tmp_path):
    sizes = []
    for i, age in enumerate((10, 5, 1)):
        folder = root / f"task-{i}"
        folder.mkdir(parents=True, mode=0o700)
        (folder / "identity").write_text("x" * 100)
        when = time.time() - age * 86400 - 60
        os.utime(folder, (when, when))
        sizes.append(100)
    assert pruned(root, "--older-than", "11")["removed"] == 0
    assert pruned(root, "--older-than", "10") == {"removed": 1, "bytes": 100, "kept": []}
    assert [t["path"] for t in listed(root)] == [str(root / "task-1"), str(root / "task-2")]
    assert pruned(root, "--max-size", "200")["removed"] == 0
    assert pruned(root, "--max-size", "199")["removed"] == 1
    assert [t["path"] for t in listed(root)] == [str(root / "task-2")]
    assert pruned(root, "--max-size", "0")["removed"] == 1
    assert not list(root.iterdir())


def test_prune_leaves_what_is_not_its_own(root, tmp_path):
    run(root, tmp_path)
    (root / "notes").mkdir()
    (root / "notes/precious.txt").write_text("mine")
    (root / "file").write_text("mine")
    (root / "link").symlink_to(MODEL)
    (root / ".invar-0123456789abcdef").mkdir()  # a prune that was killed
    assert pruned(root, "--older-than", "1")["removed"] == 1
    assert pruned(root, "--all")["removed"] == 1
    assert sorted(p.name for p in root.iterdir()) == ["file", "link", "notes"]
    assert (MODEL / SHARDS[0]).exists()


def test_prune_leaves_a_gguf_file(root, tmp_path):
    """The folder that stands for a file has links to it; they go, and the file stays."""
    file = tmp_path / "m.gguf"
    tensors = gguf_files.read_safetensors(MODEL)
    file.write_bytes(as_gguf(tensors))
    content, home = file.read_bytes(), {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    run = ["run", "--model-name", file, "--prompt-text", "ROMEO:", "--max-new-tokens", 2]
    run += ["--tasks-root", root, "--receipt-path", tmp_path / "r.json"]
    first = invar(*run, env=home)
    (task,) = root.iterdir()
    assert any(f.is_symlink() for f in task.iterdir())
    assert invar("cache", "prune", "--tasks-root", root, "--all", "--json", env=home).json()["removed"] == 1
    assert not list(root.iterdir()) and file.read_bytes() == content
    assert invar(*run, env=home).out == first.out
    invar("verify", tmp_path / "r.json", env=home)


def test_a_task_in_use_stays(root, tmp_path):
    run(root, tmp_path)
    (folder,) = root.iterdir()
    process = start(root, tmp_path / "r.json", tokens=200)
    deadline = time.monotonic() + 60
    while not listed(root)[0]["in_use"] and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGSTOP)  # in the middle of its answer
    assert process.poll() is None
    done = invar("cache", "prune", "--tasks-root", root, "--all")
    assert folder.exists() and "a run uses it" in done.text and b"0 task folders" in done.out
    assert listed(root)[0]["in_use"]
    process.kill()
    process.communicate()
    assert pruned(root, "--all")["removed"] == 1 and not folder.exists()


def test_usage(root):
    refused("cache", names=["a command is needed", "invar cache list"])
    refused("cache", "prune", names=["--older-than DAYS", "--max-size SIZE", "--all"])
    refused("cache", "prune", "--max-size", "1.5 GB", names=["500MB"])
    refused("cache", "prune", "--older-than", "-1")
    assert b"0 task folders removed" in invar("cache", "prune", "--all", "--tasks-root", root).out
