#!/usr/bin/env python3
"""The other side of `invar bench --peer NAME`: times a library's own spelling of a room's operation.

One JSON object per line on standard input, one answer per line on standard output:
  {"do": "prepare", "op", "room", "in": [{"dtype", "shape", "constant", "fill"}], "out": [...], "attrs", "past", "threads"}
      -> {"name": SPELLING}, "" where the room has none
  {"do": "time", "calls": N} -> {"seconds": per call}
A room's spellings are in src/ops/ROOM/peer.py: torch(call) -> {name: function without arguments}; the quickest counts."""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

OPS = Path(__file__).resolve().parents[1] / "src/ops"


class Call:
    """The operands as the library's tensors, in the shapes of the room; with a past, all positions."""

    def __init__(self, library, request):
        self.op, self.attrs, self.past = request["op"], request["attrs"], request["past"]
        self.constant = [t["constant"] for t in request["in"]]
        self.inputs = [library.tensor(t) for t in request["in"]]
        self.outputs = [library.tensor({**t, "fill": "zero"}) for t in request["out"]]


class Torch:
    def __init__(self):
        import torch
        self.torch = torch
        torch.set_grad_enabled(False)
        self.dtypes = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64, "i64": torch.int64,
                       "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
        self.version = f"PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()})"

    def tensor(self, t):
        dtype, shape = self.dtypes[t["dtype"]], t["shape"]
        if t["fill"] == "zero" or not dtype.is_floating_point:
            if t["fill"].startswith(("below(", "around(")):
                return self.torch.randint(0, int(t["fill"].split("(")[1].rstrip(")")), shape, dtype=dtype)
            return self.torch.zeros(shape, dtype=dtype)
        return (0.58 * self.torch.randn(shape)).to(dtype)

    def threads(self, n):
        self.torch.set_num_threads(n)


def per_call(function, calls):
    function()
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def spellings(library, name, request):
    path = OPS / request["room"] / "peer.py"
    if not path.exists():
        return {}
    spec = importlib.util.spec_from_file_location(f"peer_of_{request['room']}", path)
    room = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(room)
    return getattr(room, name)(Call(library, request)) if hasattr(room, name) else {}


def quickest(functions):
    best, chosen, name = float("inf"), None, ""
    for n, function in functions.items():
        try:
            function()
            seconds = min(per_call(function, 1) for _ in range(3))
        except RuntimeError:  # this build of the library lacks it
            continue
        if seconds < best:
            best, chosen, name = seconds, function, n
    return chosen, name


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not an answer

    def answer(**fields):
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    libraries = {"torch": Torch}
    if len(sys.argv) != 2 or sys.argv[1] not in libraries:
        answer(error=f"no such library: {' '.join(sys.argv[1:])}; there is torch")
        return 2
    try:
        library = libraries[sys.argv[1]]()
    except ImportError as e:
        answer(error=f"{sys.executable}: {e}: give --python of an environment that has it")
        return 2
    answer(version=library.version)
    function = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "prepare":
                library.threads(request["threads"])
                function, name = quickest(spellings(library, sys.argv[1], request))
                answer(name=name)
            else:
                answer(seconds=per_call(function, request["calls"]))
        except Exception as e:  # noqa: BLE001: whatever went wrong is the answer
            answer(error=f"{type(e).__name__}: {' '.join(str(e).split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
