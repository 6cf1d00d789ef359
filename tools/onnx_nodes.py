#!/usr/bin/env python3
"""Runs the node tests of the installed onnx package on the native runtime and sorts them by what
becomes of them.

onnx_nodes.py [--write] [--only PATTERN] [--jobs N] [--verbose]

Each case is compiled by `invar compile`, run by `invar infer` and compared by ONNX's own rule and
tolerance. It is
  passed    the outputs agree
  refused   exit code 3: something in it is not covered, and the message says what
  differs   its answer is not that of ONNX for a reason that is known: DIFFERS
  wrong     exit code 0 with another answer, or exit code 2: the model is sound; or --opt 0 gives
            other bytes than the default, or sizes that values decide when the program runs do than
            when it is compiled with these values
  crashed   anything else
--write renews tests/onnx/onnx_nodes.txt, the cases that pass, and docs/reference/onnx.md. Without
it the exit code is 1 where a case on that list does not pass, or any is wrong or crashed.
INVAR_BIN: the program (default build/bin/invar)."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

ROOT = Path(__file__).resolve().parents[1]
BIN = os.environ.get("INVAR_BIN", str(ROOT / "build/bin/invar"))
LIST, TABLE = ROOT / "tests/onnx/onnx_nodes.txt", ROOT / "docs/reference/onnx.md"
ASKED = re.compile(r"--bind (\S+)=FILE\.npy")  # what the compiler wants to know before it goes on
BINDS = "\nbind "  # in a plan: a size that values decide when it runs
STATES = ["passed", "refused", "differs", "wrong", "crashed"]

# What Invar means to cover: tensors of these, in operators whose result is decided by their
# operands.
DTYPES = {
    getattr(TensorProto, name)
    for name in "FLOAT FLOAT16 BFLOAT16 DOUBLE INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL".split()
}
# Outside ONNX's tolerance. Either nearer to the exact result than its expected values are: those
# round to f16 after every step of softmax, and of the inverse transforms, the exact result is 0 in
# the places that differ. Or what docs/reference/onnx-peers.md says.
DIFFERS = {
    "test_attention_4d_causal_fp16_expanded": "errors of at most 4.0e-4, those of the expected values 4.9e-4",
    **{
        name: "0 where the expected values have errors of 1.9e-7"
        for name in ("test_dft_inverse", "test_dft_inverse_opset19")
    },
    **{
        f"test_resize_downsample_scales_{mode}_align_corners": "corners of the result's length, "
        "as PyTorch and ONNX Runtime have them"
        for mode in ("linear", "cubic")
    },
    "test_bernoulli_seed_expanded": "numbers of Invar's own generator, since ONNX names none",
    "test_maxunpool_export_with_output_shape": "indices in the output shape, as PyTorch and ONNX "
    "Runtime have them",
}
RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}


def load():
    """Name -> case, of all node tests."""
    with warnings.catch_warnings():  # some cases divide by zero on purpose
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        return {case.name: case for case in load_model_tests(kind="node")}


def operator_of(name, cases):
    """The operator a case is about: that of its twin, where the case is the body of a function."""
    twin = re.sub(r"_expanded(_ver\d+)?$", "", name)
    nodes = cases.get(twin, cases[name]).model.graph.node
    return (
        max(nodes, key=lambda n: n.op_type not in ("Constant", "Identity")).op_type if nodes else ""
    )


def outside(case):
    """Why a case is outside what Invar means to cover; empty: it is not."""
    graph = case.model.graph
    domains = {n.domain for n in graph.node} - {"", "ai.onnx"}
    if domains:
        return "domain " + sorted(domains)[0]
    if any(n.op_type in RANDOM for n in graph.node):
        return "random numbers"
    if any(n.op_type == "ImageDecoder" for n in graph.node):
        return "compressed pictures"
    for value in [*graph.input, *graph.output]:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            return kind.removesuffix("_type") + "s"
        if value.type.tensor_type.elem_type not in DTYPES:
            return TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower() + " elements"
    return ""


def array_of(item):
    return onnx.numpy_helper.to_array(item) if isinstance(item, TensorProto) else np.asarray(item)


def list_of(item):
    return onnx.numpy_helper.to_list(item) if isinstance(item, onnx.SequenceProto) else list(item)


def elements_of(ports, items):
    """Names and arrays: a list of tensors is an input or output for each (onnx.26)."""
    names, arrays = [], []
    for port, item in zip(ports, items):
        if port.type.HasField("sequence_type"):
            item = list_of(item)
            names += [f"{port.name}.{i}" for i in range(len(item))]
            arrays += map(array_of, item)
        else:
            names.append(port.name), arrays.append(array_of(item))
    return names, arrays


def numbered(strings, given, graph):
    """Strings as a program has them (onnx.53): `given` has all inputs."""
    known = {s.decode() for n in graph.node for a in n.attribute for s in a.strings}
    known = sorted(
        known | {a.s.decode() for n in graph.node for a in n.attribute if a.s}, key=str.encode
    )
    arrays = [array_of(given[value.name]) for value in graph.input if value.name in given]
    cells = [str(s) for array in arrays if array.dtype.kind in "OU" for s in array.ravel()]
    known += [s for s in dict.fromkeys(cells) if s not in known]
    return np.array([known.index(str(s)) for s in strings.ravel()], np.int64).reshape(strings.shape)


def saved(folder, name, given, graph):
    path = folder / f"in.{name}.npy"
    array = array_of(given[name])
    np.save(path, numbered(array, given, graph) if array.dtype.kind in "OU" else array)
    return path


def execute(*args):
    done = subprocess.run([BIN, *map(str, args)], capture_output=True, timeout=60)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def levels(folder, binding, inputs):
    """What --opt 0 does otherwise than the default; empty: nothing."""
    plan, out = folder / "plain.invar", folder / "plain"
    code, said = execute("compile", folder / "model.onnx", *binding, "--opt", 0, "--output", plan)
    if code:
        return f"--opt 0: {said}"
    if program_of(plan) == program_of(folder / "plan.invar"):
        return ""  # the same program
    out.mkdir()
    code, said = execute("infer", plan, "--threads", 1, "--tensors-output", out, *inputs)
    if code:
        return f"--opt 0: {said}"
    changed = [p.name for p in out.iterdir() if p.read_bytes() != (folder / p.name).read_bytes()]
    return f"--opt 0: {changed} have other bytes" if changed else ""


def constants(folder, case, given):
    """What a program that binds sizes does otherwise than one compiled for the values that decide
    them; empty: nothing."""
    out, plan = folder / "given", folder / "given.invar"
    integers = [name for name in given if array_of(given[name]).dtype.kind in "ib"]
    for known in (integers, list(given)):
        code, _ = execute(
            "compile",
            folder / "model.onnx",
            "--output",
            plan,
            *(
                x
                for name in known
                for x in ("--bind", f"{name}={saved(folder, name, given, case.model.graph)}")
            ),
        )
        if code == 0 and BINDS not in program_of(plan):
            break
    else:
        return ""
    out.mkdir()
    code, said = execute(
        "infer",
        plan,
        "--threads",
        1,
        "--tensors-output",
        out,
        *(
            x
            for name in given
            if name not in known
            for x in ("--input", f"{name}={saved(folder, name, given, case.model.graph)}")
        ),
    )
    if code:
        return f"given {known}: {said}"
    changed = [p.name for p in out.iterdir() if p.read_bytes() != (folder / p.name).read_bytes()]
    return f"given {known}: {changed} have other bytes" if changed else ""


def program_of(plan):
    return plan.read_text().split("\nplaces\n")[0]


def judge(case, folder):
    """-> (state, message; where it passes, the inputs that the compiler asked for, or BINDS)."""
    model = folder / "model.onnx"
    onnx.save(case.model, model)
    ((inputs, wanted),) = case.data_sets
    lists = {
        port.name: list_of(item)
        for port, item in zip(case.model.graph.input, inputs)
        if port.type.HasField("sequence_type")
    }
    given = dict(zip(*elements_of(case.model.graph.input, inputs)))
    lengths = [x for name, items in lists.items() for x in ("--dim", f"{name}={len(items)}")]
    bound, binding = [], lengths
    while True:
        code, said = execute("compile", model, *binding)
        more = (
            [name for name in dict.fromkeys(ASKED.findall(said)) if name not in bound]
            if code == 3
            else []
        )
        if not more:
            break
        bound += more
        binding = lengths + [
            x
            for name in bound
            for x in ("--bind", f"{name}={saved(folder, name, given, case.model.graph)}")
        ]
    if code:
        return by_code(code, said)
    inputs = []
    for name in given:
        if name not in bound:
            inputs += ["--input", f"{name}={saved(folder, name, given, case.model.graph)}"]
    code, said = execute(
        "infer", folder / "plan.invar", "--threads", 1, "--tensors-output", folder, *inputs
    )
    if code:
        return by_code(code, said)
    binds = BINDS in program_of(folder / "plan.invar")
    changed = levels(folder, binding, inputs) or (
        binds and not bound and constants(folder, case, given)
    )
    if changed:
        return "wrong", changed
    names, wanted = elements_of(case.model.graph.output, wanted)
    found = [np.load(folder / f"{name}.npy") for name in names]
    # NumPy has no bfloat16 of its own: files hold it as pairs of bytes.
    found = [f.view(w.dtype) if f.dtype.kind == "V" else f for f, w in zip(found, wanted)]
    try:
        from onnx.backend.test.runner import Runner

        Runner.assert_similar_outputs(wanted, found, case.rtol, case.atol)
    except AssertionError as error:
        return (
            ("differs", DIFFERS[case.name])
            if case.name in DIFFERS
            else ("wrong", " ".join(str(error).split()))
        )
    return "passed", " ".join(bound) or (BINDS if binds else "")


def by_code(code, said):
    lines = [line for line in said.splitlines() if line.strip()]
    state = {3: "refused", 2: "wrong"}.get(code, "crashed")
    return state, "\n".join(lines) if lines else f"exit code {code}"


def reasons(message):
    """The refusals that a message lists, without what differs from case to case."""
    lines = message.splitlines()
    short = []
    for line in lines[1:] if len(lines) > 1 else lines:
        line = re.sub(r"^\s*(invar: )?(\S+\.onnx: )?(test_\w+: )?", "", line)
        line = re.sub(
            r"'repro\.(\w+)' op operand #\d+ must be .* but got 'tensor<(?:[\d?]*x)*(\w+).*",
            r"\1 of \2",
            line,
        )
        line = re.sub(
            r"'repro\.(\w+)' op operand #\d+ has element type '(\w+)'.*", r"\1 of \2", line
        )
        line = re.sub(r"; give what it depends on.*", "", line)
        where = re.match(r"(\w+) \(domain [^,]*, node \"[^\"]*\"(?: and \d+ more)?\): (.*)", line)
        short.append(f"{where[1]}: {where[2]}" if where else line)
    return sorted(set(re.sub(r"\"[^\"]*\"", "…", s) if "attribute" not in s else s for s in short))


def run(names, cases, jobs):
    """Name -> (state, message)."""
    with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor(jobs) as pool:

        def one(name):
            folder = Path(root) / name
            folder.mkdir()
            try:
                return judge(cases[name], folder)
            except subprocess.TimeoutExpired:
                return "crashed", "it does not end"

        return dict(zip(names, pool.map(one, names)))


def table(results, cases):
    """docs/reference/onnx.md."""
    operators, left_out = defaultdict(list), Counter()
    covered = Counter()
    for name in cases:
        why = outside(cases[name])
        if why and results[name][0] == "refused":
            left_out[why] += 1
            continue
        operators[operator_of(name, cases)].append(name)
        covered[results[name][0]] += 1
    total = sum(covered.values())
    text = [
        "# ONNX: what runs",
        "",
        f"The node tests of onnx {onnx.__version__} on the native runtime, compared with their "
        f"expected results",
        "by ONNX's own rule. `tools/onnx_nodes.py --write` makes this page, and CI runs all of them.",
        "",
        "A case passes, is refused by name with exit code 3, or differs for a known reason: it is outside",
        "ONNX's tolerance, and nearer to the exact result than the expected values are, or it is as",
        "[onnx-peers.md](onnx-peers.md) says. Any other answer fails the test.",
        "",
        "| | cases |",
        "|---|---:|",
        f"| of the covered types | {total} |",
        *(
            f"| {state} | {covered[state]} ({100 * covered[state] / total:.1f} %) |"
            for state in STATES
            if covered[state]
        ),
        f"| passed, with sizes that values decide when the program runs | "
        f"{sum(r == ('passed', BINDS) for r in results.values())} |",
        f"| passed, with inputs given to the compiler (`--bind`) | "
        f"{sum(bool(m) and m != BINDS for s, m in results.values() if s == 'passed')} |",
        *(
            f"| refused, not meant to be covered: {why} | {count} |"
            for why, count in sorted(left_out.items())
        ),
        "",
        "The next table has each operator with its cases that pass. For the others it says what is missing,",
        "or how they differ. A case may be the body of the operator's function (`_expanded`), so "
        "the operator",
        "that is refused can be another.",
        "",
        "Where no plan serves all sizes, `invar infer model.onnx --input x=x.npy` and",
        '`invar.compile(model, dims="call")` compile for the sizes of each call',
        "([cli.md](cli.md#tensors)); `invar compile --dim NAME=N` fixes a dimension before.",
        "",
        "| operator | passed | refused or differs |",
        "|---|---:|---|",
    ]
    for operator in sorted(operators):
        names = operators[operator]
        passed = sum(results[n][0] == "passed" for n in names)
        why = Counter(
            r for n in names if results[n][0] != "passed" for r in reasons(results[n][1])[:1]
        )
        listed = (
            "; ".join(f"{r} ({n})" for r, n in why.most_common())
            .replace("|", "\\|")
            .replace("<", "&lt;")
        )
        text.append(f"| {operator} | {passed} of {len(names)} | {listed} |")
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name this regular expression finds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--verbose", action="store_true", help="print every case that does not pass"
    )
    parser.add_argument("--json", help="write what became of every case to this file")
    args = parser.parse_args()
    cases = load()
    names = [name for name in cases if re.search(args.only, name)]
    results = run(names, cases, args.jobs)
    passed = [name for name in names if results[name][0] == "passed"]
    before = set(LIST.read_text().split()) if LIST.exists() else set()
    lost = sorted((before & set(names)) - set(passed))
    bad = [name for name in names if results[name][0] in ("wrong", "crashed")]
    for name in names if args.verbose else sorted({*bad, *lost}):
        if results[name][0] != "passed":
            print(f"{name}: {results[name][0]}: {results[name][1]}")
    print(
        f"onnx {onnx.__version__}: {len(names)} cases;",
        ", ".join(f"{sum(r[0] == state for r in results.values())} {state}" for state in STATES),
        f"; {len(lost)} that passed before do not",
    )
    if args.json:
        Path(args.json).write_text(
            json.dumps(
                {n: (*r, operator_of(n, cases), outside(cases[n])) for n, r in results.items()}
            )
        )
    if args.write and not args.only:
        LIST.write_text("".join(f"{name}\n" for name in sorted(passed)))
        TABLE.write_text(table(results, cases))
        return 0
    return 1 if lost or bad else 0


if __name__ == "__main__":
    sys.exit(main())
