"""Threads and processes compute as those do that start them: torch's modes are those of one thread.

The functions of Python's library that start threads and processes, and those that hand work to
others, are wrapped when the first context is entered. Outside of contexts they do what they did."""

import functools
import threading
import warnings

_installed = False
_active = None  # the class reproducible


class Carried:
    """A function that runs under reproducible(), `mode`, wherever it is called."""

    __slots__ = ("function", "mode")

    def __init__(self, function):
        self.function, self.mode = function, _active

    def __call__(self, *args, **kwargs):
        with self.mode():
            return self.function(*args, **kwargs)


class Inherited:
    """An attribute of a process that is started anew (spawn, forkserver): when the child reads what
    it is to run, it enables the mode. A forked child has it by itself."""

    def __reduce__(self):
        return _active.enable, ()


def install(active):
    """Wraps Python's functions, once."""
    global _installed, _active
    if _installed:
        return
    _installed, _active = True, active
    import _thread
    import concurrent.futures
    import concurrent.futures.thread
    import multiprocessing.pool
    import multiprocessing.process

    # Pools hand the mode over with each piece of work: their threads outlive a context.
    workers = {concurrent.futures.thread._worker, multiprocessing.pool.worker}

    def in_thread(thread):
        if getattr(thread, "_target", None) not in workers:
            thread.run = Carried(thread.run)

    def in_process(process):
        process._invar_mode = Inherited()

    def in_executor(executor):  # its threads start when work comes
        prepare = getattr(executor, "_initializer", None)
        if prepare is not None and type(prepare) is not Carried:
            executor._initializer = Carried(prepare)

    _before(threading.Thread, "start", in_thread)
    _before(multiprocessing.process.BaseProcess, "start", in_process)
    _before(concurrent.futures.ThreadPoolExecutor, "submit", in_executor)
    _first_argument(_thread, "start_new_thread")
    pool, executors = multiprocessing.pool.Pool, concurrent.futures
    for owner, name in (
        (executors.ThreadPoolExecutor, "submit"),
        (executors.ProcessPoolExecutor, "submit"),
        *((pool, name) for name in ("apply_async", "_map_async", "imap", "imap_unordered")),
    ):
        _first_argument(owner, name)


def _before(owner, name, prepare):
    """Under the mode `prepare` sees the object whose method is called."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(self, *args, **kwargs):
        if _active.is_active():
            prepare(self)
        return original(self, *args, **kwargs)

    setattr(owner, name, wrapped)


def _first_argument(owner, name):
    """Under the mode the function that is handed over takes it along."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        at = int(isinstance(owner, type))  # after `self`
        if len(args) > at and _active.is_active():
            args = (*args[:at], Carried(args[at]), *args[at + 1 :])
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)


def warn_of_threads():
    """Says which threads run without the mode."""
    running = [
        thread.name
        for thread in threading.enumerate()
        if thread is not threading.current_thread()
        and not isinstance(vars(thread).get("run"), Carried)
    ]
    if running:
        warnings.warn(
            "invar.reproducible.enable(): these threads run already and keep torch's own arithmetic: "
            f"{', '.join(running)}; call it before they start",
            RuntimeWarning,
            stacklevel=3,
        )
