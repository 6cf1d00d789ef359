#!/usr/bin/env python3
"""The other side of `invar bench --peer NAME`: times a library's own spelling of a room's
operation.

    peer.py NAME [DEVICE]        cpu, or cuda:N: then calls are recorded as a graph and timed by the
                                 device's events

One JSON object per line on standard input, one answer per line on standard output:
  {"do": "prepare", "op", "room", "in": [{"dtype", "shape", "constant", "fill"}], "out": [...],
  "attrs", "past", "threads", "copies"}
      -> {"name": SPELLING}, "" where the room has none
  {"do": "time", "calls": N} -> {"seconds": per call}
A room's spellings are in src/ops/ROOM/peer.py: torch(call) and onnxruntime(call) -> {name: function
without arguments}; the quickest counts."""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

OPS = Path(__file__).resolve().parents[1] / "src/ops"


class Call:
    """The operands as the library's tensors, in the shapes of the room; with a past, all positions.
    `gpu`: they lie on one."""

    def __init__(self, library, request):
        self.gpu, self.library = library.gpu, library
        self.op, self.attrs, self.past = request["op"], request["attrs"], request["past"]
        self.constant = [t["constant"] for t in request["in"]]
        self.inputs = [library.tensor(t) for t in request["in"]]
        self.outputs = [library.tensor({**t, "fill": "zero"}) for t in request["out"]]
        self.types = [t["dtype"] for t in request["in"] + request["out"]]

    def node(self, name, *operands, **how):
        return self.library.node(self, name, *operands, **how)


class Torch:
    def __init__(self, device):
        import torch

        self.torch = torch
        torch.set_grad_enabled(False)
        self.dtypes = {
            "f32": torch.float32,
            "bf16": torch.bfloat16,
            "f16": torch.float16,
            "f64": torch.float64,
            "i64": torch.int64,
            "i32": torch.int32,
            "i8": torch.int8,
            "u8": torch.uint8,
            "bool": torch.bool,
        }
        self.gpu = device != "cpu"
        where = torch.backends.cpu.get_cpu_capability()
        if self.gpu:
            torch.set_default_device(device)
            torch.cuda.set_device(device)
            where = torch.cuda.get_device_name()
            # All calls are of the stream that is recorded: a gradient runs where its forward ran.
            torch.cuda.set_stream(torch.cuda.Stream())
        self.version = f"PyTorch {torch.__version__} ({where})"
        self.graph, self.recorded = None, None

    def tensor(self, t):
        dtype, shape = self.dtypes[t["dtype"]], t["shape"]
        if t["fill"] == "zero" or not dtype.is_floating_point:
            if t["fill"].startswith(("below(", "around(")):
                below = int(t["fill"].split("(")[1].rstrip(")"))
                return self.torch.randint(0, below, shape, dtype=dtype)
            return self.torch.zeros(shape, dtype=dtype)
        return (0.58 * self.torch.randn(shape)).to(dtype)

    def threads(self, n):
        self.torch.set_num_threads(n)

    def per_call(self, functions, calls):
        """Seconds per call, `calls` in turns through the functions, after some that are not
        counted."""
        return self.on_gpu(functions, calls) if self.gpu else per_call(functions[0], calls)

    def on_gpu(self, functions, calls):
        cuda = self.torch.cuda
        if self.recorded != (functions, calls):
            self.graph = None  # its memory is free for the next one
            for f in functions[:calls]:
                f()
            cuda.synchronize()
            self.graph, self.recorded = cuda.CUDAGraph(), (functions, calls)
            try:
                with cuda.graph(self.graph, stream=cuda.current_stream()):
                    for i in range(calls):
                        functions[i % len(functions)]()
            except RuntimeError:
                self.graph, self.recorded = None, None
                # The generator still believes that it is recorded, and would refuse the next call.
                generator = cuda.default_generators[cuda.current_device()]
                generator.graphsafe_set_state(self.torch.Generator("cuda").graphsafe_get_state())
                raise
        start, stop = (cuda.Event(enable_timing=True) for _ in range(2))
        self.graph.replay()
        start.record()
        self.graph.replay()
        stop.record()
        cuda.synchronize()
        return start.elapsed_time(stop) * 1e-3 / calls


def onnx_runtime(device):
    from peer_onnxruntime import OnnxRuntime

    return OnnxRuntime(device)


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


def quickest(library, name, request):
    """Functions of the quickest spelling, one for each copy of the operands, and its name."""
    ways, best, name_of_best = spellings(library, name, request), float("inf"), ""
    for n, function in ways.items():
        try:
            function()
            seconds = min(library.per_call([function], 1) for _ in range(3))
        except RuntimeError:  # this build of the library lacks it
            continue
        if seconds < best:
            best, name_of_best = seconds, n
    if not name_of_best:
        return [], ""
    functions = [ways.pop(name_of_best)]
    ways.clear()
    while len(functions) < request["copies"]:
        functions.append(spellings(library, name, request)[name_of_best])
    return functions, name_of_best


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not an answer

    def answer(**fields):
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    libraries = {"torch": Torch, "onnxruntime": onnx_runtime}
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in libraries:
        answer(error=f"no such library: {' '.join(sys.argv[1:])}; there is {', '.join(libraries)}")
        return 2
    try:
        library = libraries[sys.argv[1]](*sys.argv[2:] or ["cpu"])
    except (
        ImportError,
        RuntimeError,
        AssertionError,
    ) as e:  # no library, or one that has no such device
        answer(error=f"{sys.executable}: {e}: give --python of an environment that has it")
        return 2
    answer(version=library.version)
    functions = []
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "prepare":
                library.threads(request["threads"])
                functions, library.recorded = [], None  # their memory is free for the next ones
                functions, name = quickest(library, sys.argv[1], request)
                answer(name=name)
            else:
                answer(seconds=library.per_call(functions, request["calls"]))
        except Exception as e:  # noqa: BLE001: whatever went wrong is the answer
            answer(error=f"{type(e).__name__}: {' '.join(str(e).split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
