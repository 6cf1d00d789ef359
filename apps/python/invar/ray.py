"""`invar batch` on a Ray cluster: actors that start a worker each and feed it lines.

    import invar.ray

    outcome = invar.ray.run_batch(
        "requests.jsonl", model="org/name", results="/shared/r", workers=8, num_gpus=1
    )
    print(outcome["output"], outcome["sha256"])

A worker is a process `invar batch --stdin`: a defect of it ends the process and not the actor, and
it ends with its actor. All that must survive is in the folder of results, which all nodes share, so
rows may be delivered twice, and a driver that is started again goes on. Ray is imported by the
first call."""

import collections
import importlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

from invar._native import BadInput, Failed, Internal

__all__ = ["run_batch"]

# Rows that a worker has at a time, in the batches that it computes: it never waits for more.
AHEAD = 3
# Workers that may end one after another before any row has come.
DEATHS = 8


class WorkerEnded(Exception):
    """code: the exit code of a worker, or the signal below 0. line: what it said at last."""

    def __init__(self, code: int, line: str) -> None:
        super().__init__(code, line)
        self.code, self.line = code, line


class Worker:
    """The actor: one process, to which lines go and from which results come."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.errors = tempfile.TemporaryFile()
        # It asks the kernel to end with this process.
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, **environment},
        )
        self.results: queue.Queue[bytes] = queue.Queue()
        self.rows: list[int] = []  # the driver's number of each line
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.results.put(line)
        self.results.put(b"")

    def pid(self) -> tuple[int, int]:
        """Of the actor and of its worker."""
        return os.getpid(), self.process.pid

    def exchange(
        self, lines: list[tuple[int, str]], patience: float
    ) -> list[tuple[int, dict[str, Any]]]:
        """Gives the worker these rows, and what has come since the last call, after at most so many
        seconds. Raises WorkerEnded."""
        assert self.process.stdin is not None
        try:
            for row, line in lines:
                self.process.stdin.write(line.encode() + b"\n")
                self.rows.append(row)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its results before that still count
        found = []
        try:
            text = self.results.get(timeout=patience)
            while text:
                result = json.loads(text)
                found.append((self.rows[result["line"] - 1], result))
                text = self.results.get_nowait()
        except queue.Empty:
            return found
        self.results.put(b"")
        if found:
            return found
        code = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read().decode("utf-8", "replace").splitlines()
        line = [x.removeprefix("invar: ") for x in said if x.startswith("invar: ")][-1:]
        raise WorkerEnded(code, line[0] if line else f"a worker ended with exit code {code}")

    def close(self) -> None:
        """Lets the worker end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Fleet:
    """The driver's side: rows that wait, and actors with the rows that they have."""

    def __init__(
        self, ray: Any, command: list[str], workers: int, ahead: int, options: dict[str, Any]
    ) -> None:
        self.ray, self.command, self.ahead = ray, command, ahead
        self.environment = options.pop("environment")
        self.actor = ray.remote(Worker).options(max_restarts=0, **options)
        self.width = workers
        self.actors: dict[Any, dict[int, str]] = {}  # actor -> its rows without a result
        self.calls: dict[Any, Any] = {}  # a call that runs -> its actor
        self.ready: set[Any] = set()  # actors that have a node
        self.names: dict[Any, tuple[Any, Any]] = {}  # actor -> host and process of its worker
        self.deaths = 0  # one after another

    def start(self) -> Any:
        actor = self.actor.remote(self.command, self.environment)
        self.actors[actor] = {}
        return actor

    def run(self, waiting: "collections.deque[tuple[int, str]]", other_than: Any = None) -> Any:
        """Yields the number of each row and its result. `other_than`: row -> the worker that shall
        not have it, where there is another one."""
        while waiting or any(self.actors.values()):
            while len(self.actors) < self.width:
                self.start()
            for actor in set(self.actors) - set(self.calls.values()):
                self.feed(actor, waiting, other_than)
            done, _ = self.ray.wait(list(self.calls), timeout=10)
            for call in done:
                yield from self.take(call, self.calls.pop(call), waiting)

    def feed(self, actor: Any, waiting: Any, other_than: Any) -> None:
        rows = self.actors[actor]
        lines: list[tuple[int, str]] = []
        for _ in range(len(waiting) if actor in self.ready else 0):
            if len(rows) + len(lines) >= self.ahead:
                break
            row, line = waiting.popleft()
            own = other_than and other_than.get(row) == self.names.get(actor)
            if own and len(self.ready) > 1:
                waiting.append((row, line))
            else:
                lines.append((row, line))
        rows.update(lines)
        self.calls[actor.exchange.remote(lines, 0.5)] = actor

    def take(self, call: Any, actor: Any, waiting: Any) -> Any:
        try:
            found = self.ray.get(call)
        except self.ray.exceptions.RayTaskError as e:
            self.lose(actor, waiting)
            ended = e.cause if isinstance(e.cause, WorkerEnded) else None
            if ended is None:
                raise
            if ended.code == 1:
                raise Failed(ended.line) from None
            if ended.code in (2, 3):
                raise BadInput(ended.line) from None
            return
        except self.ray.exceptions.RayActorError:
            self.lose(actor, waiting)  # killed, or its node is gone
            return
        self.ready.add(actor)
        for row, result in found:
            self.deaths = 0
            if not result["found"]:
                self.names[actor] = result["worker"]["host"], result["worker"]["pid"]
            if self.actors[actor].pop(row, None) is not None:
                yield row, result

    def lose(self, actor: Any, waiting: Any) -> None:
        """The rows of an actor that is gone go to others."""
        waiting.extendleft(self.actors.pop(actor).items())
        self.names.pop(actor, None)
        self.ready.discard(actor)
        self.ray.kill(actor)
        self.deaths += 1
        if self.deaths > DEATHS:
            raise Internal(f"{self.deaths} workers have ended one after another: see Ray's logs")

    def close(self) -> None:
        for actor in self.actors:
            self.ray.kill(actor)
        self.actors.clear()


def _import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise BadInput("invar.ray needs Ray: pip install ray") from None


def _is_in_sample(result: dict[str, Any], percent: float) -> bool:
    """By the digits of the id that `invar batch --recheck` takes, too."""
    work = (result["response"] or {}).get("request_id")
    return (
        work is not None
        and result["error"] is None
        and int(work[16:32], 16) < percent / 100 * 2.0**64
    )


def run_batch(
    file: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str],
    results: str | os.PathLike[str],
    workers: int = 2,
    batch_size: int = 32,
    options: Sequence[str] = (),
    recheck: float = 0,
    max_failures: int | None = None,
    output: str | os.PathLike[str] | None = None,
    program: str = "invar",
    environment: dict[str, str] | None = None,
    **resources: Any,
) -> dict[str, Any]:
    """Answers the requests of a file in OpenAI's batch form, on the nodes of a Ray cluster.

    file, model, results and program are paths that hold on every node; `results` is a folder that
    all of them share. workers: actors, each with one process that computes batch_size rows
    together. options: more options of `invar batch`, such as ["--device", "cuda"]. recheck: so many
    percent of the answers are computed again, by another worker. max_failures: more rows with an
    error end the run. resources: of Ray, for each actor: num_cpus, num_gpus, resources.

    Returns what `invar batch --json` says: "rows", "answers", "refused", "failed", "crashed",
    "rechecked", "output" and "sha256", the digest of the merged answers, which does not depend on
    workers or on what happened to them.

    Raises Failed where two results of the same work differ (the message names both machines),
    BadInput for what `invar batch` refuses and where Ray is not installed."""
    ray = _import_ray()
    command = [program, "batch", "--stdin", "--model-name", os.fspath(model)]
    command += ["--results", os.fspath(results), "--batch-size", str(batch_size), *options]
    with open(file, encoding="utf-8-sig", newline="\n") as f:
        lines = [(n, line.rstrip("\r\n")) for n, line in enumerate(f) if line.strip()]
    if not ray.is_initialized():
        ray.init()
    fleet = Fleet(
        ray,
        command,
        max(1, min(workers, len(lines))),
        AHEAD * batch_size,
        {"environment": environment or {}, **resources},
    )
    try:
        by: dict[int, tuple[Any, Any]] = {}
        again: collections.deque[tuple[int, str]] = collections.deque()
        text, errors = dict(lines), 0
        for row, result in fleet.run(collections.deque(lines)):
            errors += result["error"] is not None
            if max_failures is not None and errors > max_failures:
                why = result["error"]["message"]
                raise BadInput(f"{errors} rows have an error, the last: {why}")
            if _is_in_sample(result, recheck):
                by[row] = result["worker"]["host"], result["worker"]["pid"]
                line = json.loads(text[row])
                again.append((row, json.dumps({**line, "invar": {"recheck": True}})))
        rechecked = sum(result.get("rechecked", False) for _, result in fleet.run(again, by))
    finally:
        fleet.close()
    merge = [program, "batch", os.fspath(file), "--results", os.fspath(results), "--merge"]
    merge += ["--json", *(["--output", os.fspath(output)] if output else [])]
    done = subprocess.run(merge, capture_output=True, env={**os.environ, **(environment or {})})
    said: dict[str, Any] = json.loads(done.stdout)
    if done.returncode != 0:
        raise BadInput(said["error"])
    return said | {"rechecked": rechecked}
