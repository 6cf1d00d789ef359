"""invar.ray: whatever happens to the workers of a cluster, nothing is lost and the merged answers
have the bytes of one worker. Ray runs on this machine."""

import hashlib
import json
import os
import shutil
import signal
import sys
import threading
import time

import pytest
from conftest import BIN, BUILD, MODEL, invar

ROWS = [
    {
        "custom_id": f"r{i}",
        "method": "POST",
        "url": "/v1/completions",
        "body": {"prompt": f"ROMEO {i}:", "max_tokens": 200, "temperature": 1},
    }
    for i in range(40)
]


@pytest.fixture(scope="module")
def cluster():
    try:
        import ray
    except ImportError:
        pytest.skip("the package ray is not installed")

    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    paths = os.pathsep.join([str(BUILD / "python"), *sys.path])
    ray.init(
        num_cpus=4,
        object_store_memory=80 << 20,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
    )
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tasks):
    """The file, and the digest of its answers by one worker."""
    folder = tmp_path_factory.mktemp("ray")
    file = folder / "in.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    options = ["--tasks-root", str(tasks), "--context", "512", "--threads", "1"]
    done = invar("batch", file, "--model-name", MODEL, *options, "--json").json()
    assert done["answers"] == len(ROWS)
    return file, options, done["sha256"]


@pytest.fixture(scope="module")
def package():
    import invar.ray

    return invar


@pytest.fixture
def run(cluster, package, whole, tmp_path):
    file, options, _ = whole

    def f(results=tmp_path / "r", workers=2, **more):
        how = dict(model=MODEL, results=results, program=BIN, options=options, batch_size=2)
        return package.ray.run_batch(file, **how, workers=workers, **more)

    return f


def workers_of(results):
    """The processes that compute now, by the marks of their work."""
    found = set()
    for path in results.glob("marks/*.json"):
        try:
            mark = json.loads(path.read_text())
            if mark["alone"] == 0:  # a row that twice ends its worker alone is given up
                found.add(mark["pid"])
        except (OSError, ValueError):  # ended, or is being written
            pass
    return found


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


class Assassin(threading.Thread):
    """Kills a worker, or its actor, each time that so many more results are there."""

    def __init__(self, results, times, of=lambda pid: pid):
        super().__init__(daemon=True)
        self.results, self.times, self.of, self.killed = results, times, of, []
        self.start()

    def run(self):
        for n in range(self.times):
            while len(list(self.results.glob("results/*/*.json"))) < 4 * (n + 1):
                time.sleep(0.005)
            while not (pids := workers_of(self.results) - set(self.killed)):
                time.sleep(0.005)
            pid = min(pids)
            try:
                os.kill(self.of(pid), signal.SIGKILL)
                self.killed.append(pid)
            except (OSError, ProcessLookupError):
                pass


@pytest.mark.parametrize("workers", [1, 3])
def test_one_digest(run, whole, workers):
    said = run(workers=workers, recheck=20)
    assert said["sha256"] == whole[2] and said["answers"] == len(ROWS)
    assert 0 < said["rechecked"] < len(ROWS)


@pytest.mark.parametrize("of", [lambda pid: pid, parent_of], ids=["worker", "actor"])
def test_workers_and_actors_are_killed(run, whole, tmp_path, of):
    assassin = Assassin(tmp_path / "r", 3, of)
    said = run()
    assassin.join(10)
    assert assassin.killed and said["sha256"] == whole[2]
    deadline = time.time() + 60
    while any(os.path.exists(f"/proc/{pid}") for pid in assassin.killed):
        assert time.time() < deadline, "a worker outlives its actor"
        time.sleep(0.05)


def test_a_driver_that_is_started_again_goes_on(run, whole, tmp_path):
    first = run()
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "r").glob("results/*/*")}
    for path in list(before)[:5]:
        path.unlink()
        del before[path]
    again = run(workers=3)
    assert first["sha256"] == again["sha256"] == whole[2]
    assert all(p.stat().st_mtime_ns == t for p, t in before.items())


def test_a_worker_that_lies(run, package, tmp_path):
    run()
    path = sorted((tmp_path / "r").glob("results/*/*"))[3]
    honest = path.read_bytes()
    result = json.loads(honest)
    worker = result.pop("worker")
    del result["sha256"]
    result["body"]["choices"][0]["text"] += "!"
    core = json.dumps(result, separators=(",", ":"), ensure_ascii=False)
    result |= {"worker": {**worker, "host": "liar"}}
    result["sha256"] = hashlib.sha256(core.encode()).hexdigest()
    path.write_text(json.dumps(result, separators=(",", ":"), ensure_ascii=False))
    with pytest.raises(package.Failed, match="liar"):
        run(recheck=100)
    assert len(list((tmp_path / "r/unequal").iterdir())) == 2
    path.write_bytes(honest)
    shutil.rmtree(tmp_path / "r/unequal")
    assert run(recheck=100)["rechecked"] == len(ROWS)


def test_what_is_wrong_is_said(run, package, whole, tmp_path):
    how = dict(results=tmp_path / "r", program=BIN)
    with pytest.raises(package.BadInput, match="none"):
        package.ray.run_batch(whole[0], model=tmp_path / "none", **how)
    with pytest.raises(package.BadInput, match="--none: no option"):
        package.ray.run_batch(whole[0], model=MODEL, options=["--none"], **how)
