"""python -m invar.bench: torch and Invar on the same operations, eager call to eager call.

    Operation  Torch ms  Invar ms  Speed  Max Diff  Bits

Max Diff is the largest difference between the two results. Bits says whether Invar's result has the
same bits on the host: rows are independent, so the first rows are computed there again."""

import argparse
import json
import statistics
import sys
import time

from invar import _native

ROWS_AGAIN = 128  # rows that the host computes again
SIZES = {"small": (1024, 512), "large": (8192, 8192)}  # rows and columns; of square matrices


def rms_norm_of_operations(x, w, eps):
    """RMSNorm as models spell it in torch."""
    return x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * w


def operations(torch):
    """(name, operands' kinds, torch's function, Invar's) of each row. Kinds: x and y are tensors of
    rows, w and b belong to their last dimension, A and B are matrices."""
    from invar import ops

    f = torch.nn.functional
    eps = 1e-6
    return [
        ("MatMul", "AB", torch.matmul, ops.matmul),
        ("Sum", "x", lambda x: x.sum(-1), lambda x: ops.sum(x, -1)),
        ("Mean", "x", lambda x: x.mean(-1), lambda x: ops.mean(x, -1)),
        ("Max", "x", lambda x: x.amax(-1), lambda x: ops.amax(x, -1)),
        ("Min", "x", lambda x: x.amin(-1), lambda x: ops.amin(x, -1)),
        ("Sigmoid", "x", torch.sigmoid, ops.sigmoid),
        (
            "RMSNorm",
            "xw",
            lambda x, w: rms_norm_of_operations(x, w, eps),
            lambda x, w: ops.rms_norm(x, w.shape, w, eps),
        ),
        (
            "RMSNorm (fused)",
            "xw",
            lambda x, w: f.rms_norm(x, w.shape, w, eps),
            lambda x, w: ops.rms_norm(x, w.shape, w, eps),
        ),
        (
            "LayerNorm",
            "xwb",
            lambda x, w, b: f.layer_norm(x, w.shape, w, b, eps),
            lambda x, w, b: ops.layer_norm(x, w.shape, w, b, eps),
        ),
        (
            "Variance",
            "x",
            lambda x: x.var(-1, correction=0),
            lambda x: ops.var(x, -1, correction=0),
        ),
        ("Softmax", "x", lambda x: x.softmax(-1), lambda x: ops.softmax(x, -1)),
        ("Multiply", "xy", torch.mul, ops.mul),
        ("GELU", "x", f.gelu, ops.gelu),
    ]


class Timer:
    """Seconds of a call, the median over batches of calls. On a GPU a batch ends when the device
    has computed it; caches keep what they have."""

    def __init__(self, torch, device, batches, budget):
        on_gpu = device == "cuda"
        self.wait = torch.cuda.synchronize if on_gpu else lambda: None
        # Threads of the other library spin for a while after its last call, and hold the cores.
        self.rest = 0 if on_gpu else 0.05
        self.batches, self.budget = batches, budget

    def batch(self, function, calls):
        if self.rest:
            time.sleep(self.rest)
            function()
        self.wait()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        self.wait()
        return (time.perf_counter() - start) / calls

    def pair(self, first, second):
        """Both, in turns, so that a slower or faster moment of the machine meets both."""
        for function in (first, second):
            self.batch(function, 3)
        calls = [
            max(1, min(300, int(self.budget / self.batches / self.batch(f, 3))))
            for f in (first, second)
        ]
        times = [
            [self.batch(f, n) for f, n in zip((first, second), calls)] for _ in range(self.batches)
        ]
        return [statistics.median(column) for column in zip(*times)]


def operands_of(torch, kinds, rows, matrix, device):
    generator = torch.Generator().manual_seed(0)  # the same values on every device
    shapes = dict(
        x=(rows, rows), y=(rows, rows), w=(rows,), b=(rows,), A=(matrix, matrix), B=(matrix, matrix)
    )
    return [torch.randn(shapes[k], generator=generator).to(device) for k in kinds]


def first_rows(torch, kinds, operands, rows):
    return [x[:rows] if k in "xyA" else x for k, x in zip(kinds, operands)]


def same_bits(torch, a, b):
    return a.cpu().contiguous().view(torch.uint8).equal(b.cpu().contiguous().view(torch.uint8))


def gradients(torch, function, operands, grad):
    """The backward pass of one call alone, to be called again and again."""
    leaves = [x.detach().requires_grad_() for x in operands]
    result = function(*leaves)
    return lambda: torch.autograd.grad(result, leaves, grad, retain_graph=True)


def measure(torch, row, device, size, backward, timer):
    name, kinds, theirs, ours = row
    operands = operands_of(torch, kinds, *SIZES[size], device)
    if backward:
        grad = torch.ones_like(theirs(*operands))
        run = [gradients(torch, f, operands, grad) for f in (theirs, ours)]
        results = [f()[0] for f in run]
        few = first_rows(torch, kinds, [x.cpu() for x in operands], ROWS_AGAIN)
        again = gradients(torch, ours, few, grad[:ROWS_AGAIN].cpu())()[0]
    else:
        run = [lambda f=f: f(*operands) for f in (theirs, ours)]
        results = [f() for f in run]
        again = ours(*first_rows(torch, kinds, [x.cpu() for x in operands], ROWS_AGAIN))
    seconds = timer.pair(*run)
    return {
        "operation": name,
        "size": size,
        "torch_ms": seconds[0] * 1e3,
        "invar_ms": seconds[1] * 1e3,
        "speed": seconds[0] / seconds[1],
        "max_diff": (results[0] - results[1]).abs().max().item(),
        "same_bits": same_bits(torch, results[1][:ROWS_AGAIN], again),
    }


def line(row):
    return (
        f"{row['operation']:<16}{row['torch_ms']:>11.4f}{row['invar_ms']:>11.4f}"
        f"{row['speed']:>9.2f}x{row['max_diff']:>12.2e}{'same' if row['same_bits'] else 'OTHER':>8}"
    )


def machine(torch, device):
    name = (
        torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} threads"
    )
    return f"{device} ({name}), torch {torch.__version__}, invar {_native.__version__}"


def parsed(arguments):
    p = argparse.ArgumentParser(prog="python -m invar.bench", description=__doc__.splitlines()[0])
    p.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda where torch has it")
    p.add_argument("--size", choices=[*SIZES, "all"], default="small")
    p.add_argument("--backward", action="store_true", help="time gradients instead")
    p.add_argument("--only", help="names of operations, with commas")
    p.add_argument("--batches", type=int, default=21)
    p.add_argument("--seconds", type=float, default=0.5, help="for each operation and library")
    p.add_argument("--json", action="store_true")
    return p.parse_args(arguments)


def main(arguments=None):
    options = parsed(arguments)
    try:
        import torch
    except ImportError:
        print("invar.bench compares with torch: install torch", file=sys.stderr)
        return 2
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False  # binary32 on both sides
    timer = Timer(torch, device, options.batches, options.seconds)
    sizes = [*SIZES] if options.size == "all" else [options.size]
    only = set(options.only.lower().split(",")) if options.only else None
    rows = []
    for size in sizes:
        if not options.json:
            rows_, matrix = SIZES[size]
            print(
                f"{machine(torch, device)}; {rows_}x{rows_}, MatMul {matrix}x{matrix}x{matrix}, ",
                end="",
            )
            print("backward" if options.backward else "forward")
            print(
                f"{'Operation':<16}{'Torch ms':>11}{'Invar ms':>11}{'Speed':>10}{'Max Diff':>12}{'Bits':>8}"
            )
        found = []
        for row in operations(torch):
            if only and row[0].lower() not in only:
                continue
            found.append(measure(torch, row, device, size, options.backward, timer))
            if not options.json:
                print(line(found[-1]), flush=True)
        if not options.json and found:
            faster = sum(r["speed"] >= 1 for r in found)
            print(f"faster than torch: {faster} of {len(found)}; ", end="")
            print(f"mean of speeds {statistics.mean(r['speed'] for r in found):.2f}x\n")
        rows += found
    if options.json:
        print(json.dumps({"machine": machine(torch, device), "rows": rows}, indent=1))
    return 0 if all(r["same_bits"] for r in rows) else 1
