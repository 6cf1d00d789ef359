"""Workers that share the units of a batch. Their number reaches no bit (training.6)."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed

from invar import _native


def joined(group=None):
    """Whether this process is one of several workers."""
    return (
        torch.distributed.is_available()
        and torch.distributed.is_initialized()
        and (torch.distributed.get_world_size(group) > 1)
    )


def share(units, group=None):
    """(first, last) of the units of this worker."""
    if not joined(group):
        return 0, units
    return part(units, torch.distributed.get_rank(group), torch.distributed.get_world_size(group))


def part(units, rank, workers):
    """(first, last) of the units of a worker, without the last: consecutive, and of sizes that
    differ by one at most. A worker may have none."""
    return units * rank // workers, units * (rank + 1) // workers


def launch(
    function: Callable[..., Any], workers: int, *arguments: Any, backend: str = "gloo"
) -> Any:
    """Runs function(rank, *arguments) in `workers` processes of one torch.distributed group, and
    returns what rank 0 returned. The function must be one that pickle finds by name. One worker
    runs in this process, without a group."""
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise _native.BadInput(f"workers: {workers!r} is no number of processes, 1 or more")
    if workers == 1:
        return function(0, *arguments)
    with tempfile.TemporaryDirectory(prefix="invar-workers-") as folder:
        torch.multiprocessing.spawn(
            _worker, (workers, folder, backend, function, arguments), nprocs=workers
        )
        return torch.load(Path(folder) / "result", weights_only=False)  # our own process wrote it


def _worker(rank, workers, folder, backend, function, arguments):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if backend == "nccl":
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group(
        backend, init_method=f"file://{folder}/meet", rank=rank, world_size=workers
    )
    try:
        result = function(rank, *arguments)
        if rank == 0:
            torch.save(result, Path(folder) / "result")
        torch.distributed.barrier()
    finally:
        torch.distributed.destroy_process_group()
