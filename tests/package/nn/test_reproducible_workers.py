"""Threads and processes that start under invar.reproducible() compute as it does."""

import multiprocessing
import multiprocessing.pool
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from built import digest, invar, script, whole
from conftest import BUILD, ROOT
from invar import ops
from workers_program import computed, samples

PLAIN = computed()
with invar.reproducible():
    OURS = computed()


def test_the_two_differ():
    assert PLAIN[0] is False and OURS[0] is True and PLAIN[1] != OURS[1]
    assert computed() == PLAIN


class Subclass(threading.Thread):
    def __init__(self, into):
        super().__init__()
        self.into = into

    def run(self):
        self.into.append(computed())


def joined(thread):
    thread.start()
    thread.join()


def nested(into):
    joined(threading.Thread(target=lambda: into.append(computed())))


THREADS = {
    "function": lambda into: threading.Thread(target=lambda: into.append(computed())),
    "subclass": Subclass,
    "timer": lambda into: threading.Timer(0.01, lambda: into.append(computed())),
    "of a thread": lambda into: threading.Thread(target=nested, args=(into,)),
}


@pytest.mark.parametrize("name", THREADS)
def test_a_thread_that_starts_in_the_context_has_it(name):
    for inside in (True, False):
        found = []
        if inside:
            with invar.reproducible():
                joined(THREADS[name](found))
        else:
            joined(THREADS[name](found))
        assert found == [OURS if inside else PLAIN]


def test_a_thread_below_the_library_of_threads():
    import _thread

    found, done = [], threading.Event()
    with invar.reproducible():
        _thread.start_new_thread(lambda: (found.append(computed()), done.set()), ())
        done.wait(60)
    assert found == [OURS]


FORK = multiprocessing.get_context("fork")
ALONE = torch.set_num_threads, (1,)  # torch's own threads do not survive a fork
POOLS = {
    "ThreadPoolExecutor": lambda: ThreadPoolExecutor(1),
    "ThreadPool": lambda: multiprocessing.pool.ThreadPool(1),
    "ProcessPoolExecutor": lambda: ProcessPoolExecutor(1, FORK, *ALONE),
    "Pool": lambda: FORK.Pool(1, *ALONE),
}


def ways(pool):
    """What the pool's worker computes, handed over in each way."""
    if hasattr(pool, "submit"):
        return [pool.submit(computed).result(), *pool.map(computed, [0])]
    return [
        pool.apply(computed),
        pool.apply_async(computed).get(),
        *pool.map(computed, [0]),
        *pool.imap(computed, [0]),
        *pool.imap_unordered(computed, [0]),
        *pool.starmap(computed, [(0,)]),
    ]


@pytest.mark.parametrize("name", POOLS)
def test_a_pool_takes_the_context_along_with_the_work(name):
    """Also where its workers are older than the context, and after it."""
    with POOLS[name]() as pool:
        assert set(ways(pool)) == {PLAIN}
        with invar.reproducible():
            assert set(ways(pool)) == {OURS}
        assert set(ways(pool)) == {PLAIN}


def test_what_prepares_a_worker_of_a_pool_has_it():
    found = []
    with invar.reproducible(), ThreadPoolExecutor(1, initializer=lambda: found.append(computed())) as pool:  # fmt: skip
        assert pool.submit(computed).result() == OURS
    assert found == [OURS]


def test_workers_that_load_data():
    with invar.reproducible():
        assert samples() == [OURS, OURS]
        assert samples(multiprocessing_context="spawn", persistent_workers=True) == [OURS, OURS]
    assert samples() == [PLAIN, PLAIN]


def test_enabled_for_a_whole_process():
    """One line at the top of a script; no context afterwards, threads, processes and what they
    start have it, and the process ends as it should."""
    path = os.pathsep.join(map(str, (BUILD / "python", ROOT / "tests", Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("workers_program.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert set(eval(done.stdout)) == {OURS} and len(eval(done.stdout)) == 8
    assert "Warning" not in done.stderr


def test_enabling_warns_of_threads_that_run_already():
    said = script(
        "import invar, threading, warnings\n"
        "go = threading.Event()\n"
        "t = threading.Thread(target=go.wait, name='older'); t.start()\n"
        "with warnings.catch_warnings(record=True) as found:\n"
        "    warnings.simplefilter('always')\n"
        "    invar.reproducible.enable()\n"
        "go.set(); t.join()\n"
        "print(*[w.category.__name__ + str(w.message) for w in found])"
    )
    assert said.startswith("RuntimeWarning") and "older" in said


def test_settings_of_torch_come_back_after_contexts_that_overlap():
    flash = torch.backends.cuda.flash_sdp_enabled
    from torch.optim import optimizer

    before = flash(), dict(optimizer._global_optimizer_pre_hooks)
    entered, leave = threading.Event(), threading.Event()

    def first():
        with invar.reproducible():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait(60)
    with invar.reproducible():
        leave.set()
        thread.join()
        assert not flash()  # this one still needs it
    assert (flash(), dict(optimizer._global_optimizer_pre_hooks)) == before


def test_a_forked_child_computes_with_threads_of_its_own():
    """While another thread of the parent computes, and holds the locks."""
    x, stop = whole((200, 200), 1), threading.Event()
    busy = threading.Thread(target=lambda: [ops.matmul(x, x) for _ in iter(stop.is_set, True)])
    busy.start()
    want, found = digest([ops.matmul(x, x)]), []
    try:
        for _ in range(5):
            read, write = os.pipe()
            if not (child := os.fork()):
                os.write(write, digest([ops.matmul(x, x)]).encode())
                os._exit(0)
            found.append(child)
            end = time.monotonic() + 60
            while os.waitpid(child, os.WNOHANG) == (0, 0):
                if time.monotonic() > end:
                    os.kill(child, 9)
                    raise AssertionError("the child waits for ever")
                time.sleep(0.005)
            os.close(write)
            assert os.read(read, 64).decode() == want
            os.close(read)
    finally:
        stop.set()
        busy.join()


def test_masked_arrays_are_refused():
    """Their elements alone are not what they mean."""
    x = np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0], dtype=np.float32)
    for function in (ops.sum, ops.relu, ops.dropout, invar.primitives.neg, lambda x: x.sum() and ops.mul(x, 2)):  # fmt: skip
        with pytest.raises(invar.NotCovered, match=r"masked array of NumPy.*filled"):
            function(x)
    assert ops.sum(x.filled(0)) == 4.0


class Deep(torch.autograd.Function):
    """A gradient that asks for gradients in turn: beyond a depth torch's engine takes threads of
    its own."""

    found = []

    @staticmethod
    def forward(ctx, x, more):
        ctx.more = more
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        Deep.found.append((threading.get_native_id(), computed()))
        if ctx.more:
            with torch.enable_grad():
                Deep.apply(torch.ones(1, requires_grad=True), ctx.more - 1).sum().backward()
        return grad, None


def test_threads_of_torchs_engine_have_it():
    with invar.reproducible():
        Deep.apply(torch.ones(1, requires_grad=True), 70).sum().backward()
    threads, results = zip(*Deep.found)
    assert len(set(threads)) > 1 and set(results) == {OURS}
