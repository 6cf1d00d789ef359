#!/usr/bin/env python3
"""Process replay: two builds of the program do the same work, and every byte of it is compared.

replay.py OLD NEW [KIND...] [--only PATTERN] [--seeds N] [--levels 3,0] [--jobs N] [--keep FOLDER]

OLD and NEW are programs (build/bin/invar). The kinds of work, all by default:
  shipped   models/shakespeare-4m: the exported model, the plan, answers and receipts, sampled and
            greedy, with and without memory; NEW verifies OLD's receipts
  nodes     the node tests of the installed onnx package (tools/onnx_nodes.py), at each level
  random    models of tools/models/random_weight_models.py, for seeds 0 ... N - 1
  real      the models of tools/check_exported_models.py, by both exporters; needs torch and
            transformers
A case is compiled by both, and run by both where both compile. Equal must be: exit codes, the plan
and its constants, every output; what a refusal says is compared as well, and counted apart, as its
words may improve. --keep: the folder of the real models, which are exported once and then used
again, without torch as well. Prints a line for each kind and the first difference in full. Exit 0:
nothing differs; 1: something does."""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/models")]
MODEL = ROOT / "models/shakespeare-4m"
ASKED = re.compile(r"--bind (\S+)=FILE\.npy")  # what the compiler wants to know before it goes on
ANSWERS = {
    "sampled": [],
    "greedy": ["--no-do-sample", "--threads", 1],
    "without-memory": ["--no-do-sample", "--no-kv-cache", "--isa", "scalar"],
}


@dataclass
class Case:
    """A model and its inputs, in a folder of its own."""

    folder: Path
    inputs: dict  # name -> .npy
    options: list = field(default_factory=list)  # of the compiler


@dataclass
class Done:
    """What a program did with a case: bytes by name, in the order in which they are compared."""

    state: str = "runs"
    artifacts: dict = field(default_factory=dict)
    message: str = ""


def execute(program, *args):
    try:
        done = subprocess.run([program, *map(str, args)], capture_output=True, timeout=600)
        return done.returncode, done.stderr.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return -1, "it does not end"


def replay(program, case):
    """Compiles and runs the case; what the files are called is the same for every program."""
    plan, out = case.folder / "plan.invar", case.folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    for old in case.folder.glob("plan.invar*"):
        old.unlink()
    out.mkdir()
    bound = []
    while True:
        binding = [x for n in bound for x in ("--bind", f"{n}={case.inputs[n]}")]
        model = case.folder / "model.onnx"
        code, said = execute(program, "compile", model, *case.options, *binding)
        more = [n for n in dict.fromkeys(ASKED.findall(said)) if n not in bound]
        if code != 3 or not more:
            break
        bound += more
    done = Done(message=said if code else "", artifacts={"exit code": str(code).encode()})
    if code:
        done.state = "refused" if code == 3 else "fails"
        return done
    for path in sorted(case.folder.glob("plan.invar*")):
        done.artifacts[path.name] = path.read_bytes()
    inputs = [x for n, p in case.inputs.items() if n not in bound for x in ("--input", f"{n}={p}")]
    code, said = execute(program, "infer", plan, "--threads", 1, "--tensors-output", out, *inputs)
    done.artifacts["exit code of infer"] = str(code).encode()
    if code:
        done.state, done.message = "fails", said
    for path in sorted(out.iterdir()):
        done.artifacts[path.name] = path.read_bytes()
    return done


def difference(old, new):
    """What differs first, in words; empty: nothing."""
    for name in dict.fromkeys([*old.artifacts, *new.artifacts]):
        a, b = old.artifacts.get(name), new.artifacts.get(name)
        if a == b:
            continue
        if a is None or b is None:
            return f"{name}: only {'NEW' if a is None else 'OLD'} has it"
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        text = [f"{name}: {len(a)} and {len(b)} bytes, the first that differ at {at}"]
        if not name.endswith((".npy", ".constants", ".onnx")):
            lines = [x.decode("utf-8", "replace").splitlines() for x in (a, b)]
            text += list(difflib.unified_diff(*lines, "OLD", "NEW", lineterm="", n=1))[:40]
        return "\n".join([*text, *(d.message for d in (old, new) if d.message)])
    return ""


def answers(program, folder, name, options):
    """A job of the shipped model: the receipt's bound part, the exported model and its plan."""
    task, receipt = folder / "task", folder / f"{name}.{len(list(folder.glob(name + '.*')))}.json"
    shutil.rmtree(task, ignore_errors=True)
    job = ["--prompt-text", "ROMEO:", "--max-new-tokens", 48, "--receipt-path", receipt]
    code, said = execute(
        program, "run", "--model-name", MODEL, *job, "--task-dir", task, "--json", *options
    )
    done = Done(
        "fails" if code else "runs", {"exit code": str(code).encode()}, said if code else ""
    )
    if not code:
        for file in ("model.onnx", "plan.invar", "plan.invar.constants"):
            done.artifacts[file] = (task / file).read_bytes()
        # What the receipt says of this machine and this version is not bound.
        done.artifacts["receipt"] = receipt.read_bytes().split(b'"execution"')[0]
    return done, receipt


def shipped(programs, folder, options):
    for name, how in ANSWERS.items():
        if not re.search(options.only, name):
            continue
        (old, receipt), (new, _) = (answers(p, folder, name, how) for p in programs)
        if not old.message and not new.message:
            code, said = execute(programs[1], "verify", receipt)
            old.artifacts["verify"], new.artifacts["verify"] = b"0", str(code).encode()
            new.message = said if code else ""
        yield name, old, new


# The further kinds: (name, what makes the case) of each, in order.
def node_cases(folder, options):
    import onnx
    import onnx_nodes

    for level in options.levels.split(","):
        for name, node in onnx_nodes.load().items():
            if not re.search(options.only, name):
                continue

            def make(node=node, own=folder / f"{name}.{level}", level=level):
                own.mkdir()
                onnx.save(node.model, own / "model.onnx")
                graph = node.model.graph
                given = {
                    port.name: item
                    for port, item in zip(graph.input, node.data_sets[0][0])
                    if port.type.HasField("tensor_type")  # sequences are refused
                }
                inputs = {name: onnx_nodes.saved(own, name, given, graph) for name in given}
                return Case(own, inputs, ["--opt", level])

            yield f"{name} --opt {level}", make


def random_cases(folder, options):
    import random_weight_models

    for seed in range(options.seeds):
        for name in random_weight_models.SIZES:
            if not re.search(options.only, name):
                continue
            for batch in (1, 3):

                def make(own=folder / f"{name}.{seed}.{batch}", name=name, seed=seed, batch=batch):
                    random_weight_models.make(own, name, "small", (batch,), seed)
                    return Case(own, {p.stem: p for p in (own / str(batch)).iterdir()})

                yield f"{name}, seed {seed}, batch {batch}", make


def kept_cases(options):
    """The real models that an earlier call has exported."""
    for inputs in sorted(options.keep.glob("*/inputs")) if options.keep else []:
        own = inputs.parent
        if re.search(options.only, own.name):
            yield own.name.replace(".", " "), lambda own=own: Case(own, known(own))


def real_cases(folder, options):
    if missing("real"):
        yield from kept_cases(options)
        return
    import check_exported_models
    import numpy as np

    folder = options.keep or folder
    for name, make in check_exported_models.MODELS.items():
        if not re.search(options.only, name):
            continue
        for exporter in check_exported_models.EXPORTERS:
            own = folder / f"{name}.{exporter}"
            if not (own / "inputs").is_dir():
                own.mkdir(parents=True, exist_ok=True)
                model = make()
                try:
                    check_exported_models.export(model, own / "model.onnx", exporter)
                except RuntimeError:
                    continue  # this exporter cannot
                (own / "inputs").mkdir()
                for n, x in model.inputs.items():
                    np.save(own / "inputs" / f"{n}.npy", np.ascontiguousarray(x.numpy()))
            yield f"{name} {exporter}", lambda own=own: Case(own, known(own))


def known(folder):
    """The inputs that are saved and that the model has: an exporter leaves out what it finds
    constant."""
    import onnx

    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    names = [port.name for port in graph.input]
    return {n: folder / "inputs" / f"{n}.npy" for n in names}


KINDS = {"shipped": None, "nodes": node_cases, "random": random_cases, "real": real_cases}
NEEDS = {"shipped": [], "nodes": ["onnx"], "random": ["onnx"], "real": ["torch", "transformers"]}


def compared(kind, programs, folder, options):
    """(name, what OLD did, what NEW did) of every case of a kind."""
    if kind == "shipped":
        yield from shipped(programs, folder, options)
        return
    with ThreadPoolExecutor(options.jobs) as pool:

        def both(named):
            name, make = named
            case = make()
            done = [replay(p, case) for p in programs]
            shutil.rmtree(case.folder / "out", ignore_errors=True)
            return name, *done

        yield from pool.map(both, KINDS[kind](folder, options))


def missing(kind):
    """The packages that a kind needs and that are not here."""
    import importlib.util

    return [name for name in NEEDS[kind] if importlib.util.find_spec(name) is None]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs=2, metavar="PROGRAM", type=Path)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--only", default="", help="cases whose name this regular expression finds")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--levels", default="3,0", help="levels of the compiler for node tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=Path, help="where the exported real models are and stay")
    options = parser.parse_args()
    programs = [p.resolve() for p in options.programs]
    for program in programs:
        if not os.access(program, os.X_OK):
            parser.error(f"no program: {program}")
    for kind in options.kinds:
        if kind not in KINDS:
            parser.error(f"no kind '{kind}'; there are {', '.join(KINDS)}")
    os.environ.setdefault("INVAR_BIN", str(programs[0]))
    different = []
    for kind in options.kinds or KINDS:
        if missing(kind) and not (kind == "real" and list(kept_cases(options))):
            print(f"{kind}: left out, {' and '.join(missing(kind))} is not installed")
            continue
        start, states, reworded, found = time.monotonic(), Counter(), [], []
        with tempfile.TemporaryDirectory() as folder:
            for name, old, new in compared(kind, programs, Path(folder), options):
                states[old.state] += 1
                what = difference(old, new)
                if what:
                    found.append((f"{kind}: {name}", what))
                elif old.message != new.message:
                    reworded.append((name, old.message, new.message))
        counts = ", ".join(f"{n} {'run' if s == 'runs' else s}" for s, n in states.most_common())
        print(
            f"{kind}: {sum(states.values())} cases ({counts}), {len(found)} differ,",
            f"{len(reworded)} say it in other words; {time.monotonic() - start:.0f} s",
            flush=True,
        )
        if reworded:
            name, a, b = reworded[0]
            print(f"  first of them: {name}\n  OLD: {a.strip()}\n  NEW: {b.strip()}")
        different += found
    if different:
        print(f"\nThe first difference: {different[0][0]}\n{different[0][1]}")
        if different[1:]:
            names = [name for name, _ in different[1:21]]
            print("\nand in: " + "; ".join(names) + (" ..." if len(different) > 21 else ""))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
