"""Worker processes of generate() and verify(): those that `invar run --workers` starts."""

import os
import shutil
import sysconfig

from invar import _native


def start(given, worker_model):
    """The job that these arguments of generate() ask for; None: none. Whoever has it last ends its
    processes."""
    if not given["workers"]:
        if worker_model is not None:
            raise _native.BadInput("worker_model: of workers: give workers=")
        return None
    hosts = given["workers"] if isinstance(given["workers"], str) else ",".join(given["workers"])
    command = [program(), "run", "--prompt-text", "-", "--model-name", "-", "--workers", hosts]
    for option in ("n_partitions", "tensor_parallel", "worker_timeout"):
        if given[option]:
            command += [f"--{option.replace('_', '-')}", str(given[option])]
    if worker_model is not None:
        command += ["--worker-model", os.fsdecode(worker_model)]
    return _native.start_job(command, given["worker_timeout"])


def program():
    """The command `invar`, which the package brings along: beside this Python, or in PATH."""
    places = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    found = shutil.which("invar", path=places)
    if found is None:
        raise _native.BadInput(
            "workers: the program `invar` is neither beside this Python nor in PATH"
        )
    return found
