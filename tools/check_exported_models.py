#!/usr/bin/env python3
"""Small models of the architectures that people use, with random weights, as torch's exporters
write them, on the native runtime.

check_exported_models.py [--only PATTERN] [--exporter dynamo|legacy] [--keep FOLDER] [--write]
[--verbose]

Each model of transformers, or of torch, is exported by both exporters, with dynamic dimensions
where the exporter manages, compiled by `invar compile`, run by `invar infer` and compared with ONNX
Runtime (f32) and with the model itself in float64: the largest error of an element over the largest
element of its tensor. It is
  runs      the errors are small, and every instruction set, 1, 2 and 5 threads, every level of the
            compiler, (where it has one) any other inputs in the batch and the module that
            invar.convert makes give the same bytes; that of plain torch has small errors
  refused   exit code 3: something in it is not covered, and the message says what
  wrong     another answer, or exit code 2
  crashed   anything else
  no model  the exporter fails
--write renews docs/reference/models.md; with --only or --exporter the rows of what ran. Without it
the exit code is 1 where any is wrong or crashed. Needs torch, transformers, onnxscript and
onnxruntime. INVAR_BIN: the program (default build/bin/invar), with the package beside it
(build/python)."""

import argparse
import contextlib
import copy
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent / "models"))
from torch_models import MODELS, Call, Step  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
BIN = os.environ.get("INVAR_BIN", str(ROOT / "build/bin/invar"))
sys.path.insert(0, str(Path(BIN).resolve().parents[1] / "python"))
import invar  # noqa: E402

TABLE = ROOT / "docs/reference/models.md"
STATES = ["runs", "refused", "wrong", "crashed", "no model"]
FAR = 1e-3  # an error beyond this is no rounding
EXPORTERS = ["dynamo", "legacy"]


def first_sentence(text):
    """Of the first line, without the colours of a terminal."""
    line = (text.strip().splitlines() or [""])[0]
    return re.split(r"\.? (?=\x1b)", line)[0].strip()


@contextlib.contextmanager
def silence():
    """The exporters print what they like; one of them not through Python."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept), os.close(nothing)


def export(model, path, exporter, kinds=("dynamic", "static")):
    """-> which dimensions are dynamic: "dynamic", or "static" where the exporter manages no
    other."""
    inputs = tuple(model.inputs.values())
    names = list(model.inputs)
    common = dict(input_names=names, output_names=model.outputs, verbose=False)
    last = None
    for dynamic in kinds:
        try:
            with warnings.catch_warnings(), torch.no_grad(), silence():
                warnings.simplefilter("ignore")
                if exporter == "legacy":
                    axes = {"dynamic_axes": model.dims} if dynamic == "dynamic" else {}
                    torch.onnx.export(
                        model.module,
                        inputs,
                        str(path),
                        dynamo=False,
                        opset_version=17,
                        **axes,
                        **common,
                    )
                else:
                    named = {
                        dim: torch.export.Dim(dim, min=2, max=2048)
                        for at in model.dims.values()
                        for dim in at.values()
                        if "+" not in dim
                    }
                    named |= {
                        dim: torch.export.Dim.AUTO
                        for at in model.dims.values()
                        for dim in at.values()
                        if "+" in dim
                    }
                    dims = [
                        {at: named[dim] for at, dim in model.dims.get(n, {}).items()} for n in names
                    ]
                    dims = (
                        {
                            "dynamic_shapes": {"inputs": tuple(dims)}
                            if isinstance(model.module, Call)
                            else {"ids": dims[0], "mask": dims[1], "past": tuple(dims[2:])}
                            if isinstance(model.module, Step)
                            else tuple(dims)
                        }
                        if dynamic == "dynamic"
                        else {}
                    )
                    torch.onnx.export(
                        model.module,
                        inputs,
                        str(path),
                        dynamo=True,
                        external_data=False,
                        **dims,
                        **common,
                    )
            return dynamic
        except Exception as error:  # the exporters raise what they like
            last = error
    raise RuntimeError(
        f"{type(last).__name__}: {first_sentence(str(last))}"
    )


class Wide(torch.overrides.TorchFunctionMode):
    """Models that compute parts in float32 on purpose compute them in float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def widen(x):
            return torch.float64 if x is torch.float32 else x

        name = getattr(function, "__name__", "")
        if name == "float":
            return args[0].double()
        return function(*map(widen, args), **{k: widen(v) for k, v in (kwargs or {}).items()})


def exact(model):
    """What the model computes in float64."""
    wide = copy.deepcopy(model.module).double()
    inputs = [x.double() if x.is_floating_point() else x for x in model.inputs.values()]
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), Wide():
            out = wide(*inputs)
    finally:
        torch.set_default_dtype(torch.float32)
    return [x.numpy() for x in (out if isinstance(out, tuple) else (out,))]


def error_of(found, true):
    if any(f.shape != t.shape for f, t in zip(found, true)):
        return float("inf")
    worst = 0.0
    for f, t in zip(found, true):
        gap = np.abs(f.astype(np.float64) - t).max(initial=0)
        worst = (
            max(worst, float(gap) / max(float(np.abs(t).max(initial=0)), 1e-30))
            if np.isfinite(gap)
            else float("inf")
        )
    return worst


def execute(*args):
    done = subprocess.run([BIN, *map(str, args)], capture_output=True, timeout=300)
    return done.returncode, done.stderr.decode("utf-8", "replace"), done.stdout


def saved(folder, arrays):
    folder.mkdir(exist_ok=True)
    args = []
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array))
        args += ["--input", f"{name}={folder / f'{name}.npy'}"]
    return args


def isas():
    flags = set(
        re.search(r"(?:flags|Features)\s*:(.*)", Path("/proc/cpuinfo").read_text())[1].split()
    )
    return [
        isa
        for isa, needs in {
            "scalar": {"fma"},
            "avx2": {"avx2", "fma", "f16c"},
            "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
            "neon": {"asimd"},
        }.items()
        if needs <= flags
    ]


def run(plan, folder, arrays, *options):
    """-> ({name: array}, message of a failure with its code)."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    code, said, _ = execute(
        "infer", plan, *saved(folder / "in", arrays), "--tensors-output", out, *options
    )
    return ({p.stem: np.load(p) for p in out.iterdir()}, None) if code == 0 else ({}, (code, said))


def same(a, b):
    return all(a[n].tobytes() == b[n].tobytes() for n in a)


def bits(plan, folder, arrays, found, dims):
    """What changes the bytes; empty: nothing."""
    for options in [["--isa", isa, "--threads", 1] for isa in isas()] + [
        ["--threads", n] for n in (2, 5)
    ]:
        again, failed = run(plan, folder, arrays, *options)
        if failed or not same(found, again):
            return " ".join(map(str, options))
    for level in (0, 1, 2):
        other = plan.parent / f"opt{level}.invar"
        code, _, _ = execute(
            "compile", plan.parent / "model.onnx", "--opt", level, "--output", other
        )
        again, failed = ({}, True) if code else run(other, folder, arrays)
        if failed or not same(found, again):
            return f"--opt {level}"
    if not dims or any(d.get(0) != "batch" for d in dims.values()):
        return ""
    alone, failed = run(plan, folder, {n: a[1:2] for n, a in arrays.items()})
    return (
        "the batch"
        if failed or any(found[n][1:2].tobytes() != alone[n].tobytes() for n in found)
        else ""
    )


def smaller(model):
    """The inputs cut to other sizes along their dynamic dimensions."""
    sizes = {}
    for n, dims in model.dims.items():
        for d, dim in dims.items():
            if dim not in sizes and "+" not in dim:
                sizes[dim] = model.inputs[n].shape[d] - 1 - len(sizes)
    size = {
        dim: sum(sizes[part] for part in dim.split(" + "))
        for dims in model.dims.values()
        for dim in dims.values()
    }
    return {
        n: x[
            tuple(
                slice(size[model.dims[n][d]] if d in model.dims.get(n, {}) else None)
                for d in range(x.dim())
            )
        ].contiguous()
        for n, x in model.inputs.items()
    }


def cut(model, session):
    return {
        n: x.numpy()
        for n, x in smaller(model).items()
        if n in {i.name for i in session.get_inputs()}
    }


def other_sizes(model, plan, folder, session):
    """The error for other sizes, measured on ONNX Runtime, which computes the same graph."""
    arrays = cut(model, session)
    found, failed = run(plan, folder, arrays)
    return (
        float("inf")
        if failed
        else error_of([found[n] for n in model.outputs], session.run(model.outputs, arrays))
    )


def modules(model, path, inputs):
    """-> what is wrong with the modules of invar.convert (empty: nothing), and the largest error of
    the one of plain torch."""
    worst = 0.0
    program = invar.compile(path)
    same_ops, plain = (
        invar.convert(path, invar.CompileOptions(requires_reproducibility=r)) for r in (True, False)
    )
    for arrays in inputs:
        want = program.run(arrays)
        tensors = [torch.from_numpy(arrays[n]) for n in same_ops.INPUTS]
        got, near = (
            [x.numpy() for x in (y if isinstance(y, tuple) else (y,))]
            for y in (same_ops(*tensors), plain(*tensors))
        )
        if not same(want, dict(zip(want, got, strict=True))):
            return "another answer of the module", worst
        worst = max(worst, error_of(near, list(want.values())))
    return "" if worst <= FAR else f"error {worst:.1e} of the module of plain torch", worst


def failure(code, said):
    lines = [line for line in said.splitlines() if line.strip()]
    return {3: "refused", 2: "wrong"}.get(code, "crashed"), "\n".join(lines) or f"exit code {code}"


def judge(model, folder, exporter, true, kinds=("dynamic", "static")):
    """-> dict: state, message, shape (dynamic or static), errors of Invar and ONNX Runtime."""
    path = folder / "model.onnx"
    try:
        kind = export(model, path, exporter, kinds)
    except RuntimeError as error:
        return dict(state="no model", message=str(error))
    arrays = {n: x.numpy() for n, x in model.inputs.items()}
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    arrays = {n: a for n, a in arrays.items() if n in {i.name for i in session.get_inputs()}}
    peer = error_of(session.run(model.outputs, arrays), true)
    result = dict(kind=kind, peer=peer)
    code, said, _ = execute("compile", path)
    if code:
        state, message = failure(code, said)
        return dict(result, state=state, message=message)
    found, failed = run(folder / "plan.invar", folder, arrays)
    if failed:
        state, message = failure(*failed)
        return dict(result, state=state, message=message)
    error = error_of([found[n] for n in model.outputs], true)
    result["error"] = error
    if not error <= max(FAR, 4 * peer):
        return dict(result, state="wrong", message=f"error {error:.1e}, ONNX Runtime's {peer:.1e}")
    if kind == "dynamic" and not other_sizes(model, folder / "plan.invar", folder, session) <= FAR:
        return dict(result, state="wrong", message="another answer for other sizes")
    changed = bits(
        folder / "plan.invar", folder, arrays, found, model.dims if kind == "dynamic" else {"": {}}
    )
    if changed:
        return dict(result, state="wrong", message=f"{changed} changes the bytes")
    wrong, result["plain"] = modules(
        model, path, [arrays] + [cut(model, session)] * (kind == "dynamic")
    )
    if wrong:
        return dict(result, state="wrong", message=wrong)
    return dict(result, state="runs", message="")


def row(name, exporter, r):
    said = " ".join(r["message"].split())
    said = (
        r["kind"]
        if r["state"] == "runs"
        else f"{r['state']}: "
        + (said if len(said) < 200 else said[:200] + " ...").replace("|", "\\|")
    )
    errors = " | ".join(f"{r[key]:.1e}" if key in r else "" for key in ("error", "peer", "plain"))
    return f"| {name} | {exporter} | {said} | {errors} |"


def table(rows):
    """docs/reference/models.md."""
    import onnxruntime
    import transformers

    count = Counter(
        next((s for s in STATES if f" | {s}: " in line), "runs") for line in rows.values()
    )
    text = [
        "# Models: what runs",
        "",
        "Small models with random weights (two layers, 48 wide, or as many channels), made with",
        f"transformers {transformers.__version__} and exported by both exporters of torch "
        f"{torch.__version__.split('+')[0]}, on the native runtime.",
        "`tools/check_exported_models.py --write` makes this page.",
        "",
        '"runs" means: the export compiles as it is. It gives equal bytes for every instruction '
        "set, for 1, 2",
        "and 5 threads, for every level of the compiler (`--opt`) and for an element of the batch "
        "alone. It is",
        "right for other sizes along dynamic dimensions. The module that `invar.convert` makes of it has the",
        "same bytes, at these sizes, too.",
        "",
        "Errors are the largest of an element over the largest element of its tensor, against the "
        "model itself",
        f"computed in float64. Beside ours stand that of ONNX Runtime {onnxruntime.__version__} in "
        f"f32 and, against the",
        "program, that of the module of plain torch. Static: the exporter manages no dynamic dimensions.",
        "",
        "| | exports |",
        "|---|---:|",
        *(f"| {s} | {count[s]} |" for s in STATES if count[s]),
        "",
        "| model | exporter | | error | ONNX Runtime's | plain torch's |",
        "|---|---|---|---:|---:|---:|",
        *rows.values(),
    ]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help="models whose name this regular expression finds"
    )
    parser.add_argument("--exporter", choices=EXPORTERS)
    parser.add_argument("--static", action="store_true", help="export without dynamic dimensions")
    parser.add_argument("--keep", type=Path, help="leave the models in this folder")
    parser.add_argument("--write", action="store_true")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="print all that is refused in a model, not the first lines",
    )
    args = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in [n for n in MODELS if re.search(args.only, n)]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = MODELS[name]()
                true = exact(model)
            for exporter in [args.exporter] if args.exporter else EXPORTERS:
                folder = (args.keep or Path(scratch)) / f"{name}.{exporter}"
                folder.mkdir(parents=True, exist_ok=True)
                r = results[name, exporter] = judge(
                    model,
                    folder,
                    exporter,
                    true,
                    ["static"] if args.static else ["dynamic", "static"],
                )
                said = r["message"].splitlines()
                print(
                    f"{name} {exporter} {r.get('kind', '')}: {r['state']}",
                    f"{r['error']:.1e} (ONNX Runtime {r['peer']:.1e})" if "error" in r else "",
                    "\n  ".join(said if args.verbose else said[:3]),
                    flush=True,
                )
    count = Counter(r["state"] for r in results.values())
    print(", ".join(f"{count[s]} {s}" for s in STATES))
    if args.write:
        found = (
            re.finditer(r"^\| (\S+) \| (\S+) \| .*", TABLE.read_text(), re.M)
            if args.only or args.exporter
            else ()
        )
        rows = {m.groups(): m[0] for m in found if m[2] in EXPORTERS}
        TABLE.write_text(table(rows | {key: row(*key, r) for key, r in results.items()}))
    return 1 if count["wrong"] + count["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
