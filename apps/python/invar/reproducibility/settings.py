"""torch's settings of the whole process that hold while any thread is under reproducible(), and are
put back as they were when the last one leaves, in whichever order contexts of threads end."""

import contextlib
import os
import threading

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim import optimizer as of_torch

from invar.reproducibility import active, optimizers

_lock = threading.Lock()
_held = 0
_kept = contextlib.ExitStack()


def hold():
    """A thread enters."""
    global _held
    with _lock:
        _held += 1
        if _held == 1:
            # Attention that does not go to invar.ops is to be made of kernels that kernels.py has.
            _kept.enter_context(sdpa_kernel(SDPBackend.MATH))
            for handle in (
                of_torch.register_optimizer_step_pre_hook(optimizers.before),
                of_torch.register_optimizer_step_post_hook(optimizers.forget),
            ):
                _kept.callback(handle.remove)


def release():
    """A thread leaves."""
    global _held
    optimizers.forget_all()
    with _lock:
        _held -= 1
        if not _held:
            _kept.close()


def _after_fork():
    """In the child only the thread that forked goes on; another one may have held the lock."""
    global _lock, _held
    _lock = threading.Lock()
    held, _held = _held, active.depth()
    if held and not _held:
        _kept.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
