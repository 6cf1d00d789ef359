"""What every journey uses: the built program, the shipped model, and copies of it to damage.

INVAR_BIN: the program (default build/bin/invar); INVAR_BUILD: its build folder."""

import atexit
import functools
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import tomllib

import sample

ROOT = Path(__file__).resolve().parents[1]
BIN = os.environ.get("INVAR_BIN", str(ROOT / "build/bin/invar"))
BUILD = Path(os.environ.get("INVAR_BUILD", ROOT / "build"))
sys.path.insert(0, str(BUILD / "python"))  # the Python package, where the build has it
MODEL = ROOT / "models/shakespeare-4m"
SHARDS = [f"model-{i:05d}-of-00003.safetensors" for i in (1, 2, 3)]

# Runs remember checkpoints and plans per user: tests that run side by side, and the user's own
# runs, are kept apart.
CACHE = tempfile.mkdtemp(prefix="invar-test-cache-")
os.environ["XDG_CACHE_HOME"] = CACHE
os.environ["XDG_STATE_HOME"] = CACHE + "/state"
# No test asks the real Hugging Face hub; those of tests/hub have one of their own.
os.environ["HF_HUB_OFFLINE"] = "1"
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)
# Programs inherit ignored signals, as nohup and a shell's background leave them: tests send some.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        how = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, how)

TIERS = tomllib.loads((ROOT / "tests/tiers.toml").read_text())


def runs_in_tier(item):
    """Whether tests/tiers.toml has this test in the tier of INVAR_TIER."""
    name = f"{Path(item.path).relative_to(ROOT).as_posix()}::{item.nodeid.split('::', 1)[1]}"
    if sample.TIER == 1:
        return any(belongs(name, row) for row in TIERS["journeys"])
    if sample.TIER == 2:
        if any(belongs(name, row) for row in TIERS["whole"]):
            return False
        return not any(
            belongs(name, r) and sample.turn(name, n) for r, n in TIERS["one_in"].items()
        )
    return True


def belongs(name, row):
    return name == row or name.startswith((row + "::", row + "["))


def pytest_ignore_collect(collection_path):
    """Tier 1 imports the files of journeys alone."""
    if sample.TIER == 1 and collection_path.suffix == ".py":
        name = collection_path.relative_to(ROOT).as_posix()
        return not any(row.startswith(name) for row in TIERS["journeys"]) or None
    return None


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if not runs_in_tier(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_report_collectionfinish():
    return f"tier {sample.TIER}, the sample of INVAR_SAMPLE='{sample.commit()}'"


def process_state():
    """What one test file could leave behind for the next in this process."""
    state = {"environment": dict(os.environ), "folder": os.getcwd()}
    if torch := sys.modules.get("torch"):
        state |= {
            "set_default_dtype": torch.get_default_dtype(),
            "set_num_threads": torch.get_num_threads(),
            "set_grad_enabled": torch.is_grad_enabled(),
            "use_deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
            "set_rng_state": torch.get_rng_state(),
        }
    return state


@pytest.fixture(scope="module", autouse=True)
def process_as_found():
    """Each file finds the process as the first one did."""
    found = process_state()
    yield
    os.environ.clear()
    os.environ.update(found.pop("environment"))
    os.chdir(found.pop("folder"))
    for name, value in found.items():
        getattr(sys.modules["torch"], name)(value)


def package_has_gpu():
    """Whether torch and the Python package of this build compute on a GPU here."""
    import invar as package
    import torch

    try:
        return torch.cuda.is_available() and package.ops.neg(torch.ones(1, device="cuda")).is_cuda
    except package.Error:  # a build without CUDA
        return False


class Done:
    """A finished program: exit code, output, and errors split into the error line(s) and the
    rest."""

    def __init__(self, process):
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr
        self.errors = [
            line
            for line in self.err.decode("utf-8", "replace").split("\n")
            if line.startswith("invar: ")
        ]
        self.text = (self.out + b"\n" + self.err).decode("utf-8", "replace")

    def json(self):
        return json.loads(self.out)


def execute(args, cwd=None, env=None, timeout=300, program=None, stdin=None):
    command = (program or [BIN]) + [a if isinstance(a, bytes) else str(a) for a in args]
    return Done(
        subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, timeout=timeout, input=stdin
        )
    )


def invar(*args, code=0, **how):
    """Runs the program and insists on its exit code; a refusal must be one line that starts with
    'invar: '."""
    done = execute(args, **how)
    assert done.code == code, f"invar {args}: exit {done.code}, expected {code}\n{done.text}"
    if code in (2, 3, 70):
        assert len(done.errors) == 1, f"invar {args}: expected one error line\n{done.text}"
    assert b"Sanitizer" not in done.err and b"terminate called" not in done.err, done.text
    if code == 0:
        same_without_rewrites([str(a) for a in args], how)
    return done


COMPILED = {}  # plan -> the command that made it
WITHOUT_REWRITES = {}  # plan -> {file's name: bytes} of what --opt 0 makes


def same_without_rewrites(args, how):
    """What journeys compile and run on tensors gives the same bytes with --opt 0
    (docs/design/architecture.md, the compiler)."""
    if args[0] == "compile" and not {"--emit", "--opt"} & set(args):
        plan = (
            args[args.index("--output") + 1]
            if "--output" in args
            else Path(args[1]).parent / "plan.invar"
        )
        COMPILED[str(plan)] = args
        WITHOUT_REWRITES.pop(str(plan), None)
    elif (
        args[0] == "infer"
        and "--tensors-output" in args
        and args[1] in COMPILED
        and Path(args[1]).exists()
    ):
        plan, out = Path(args[1]), Path(args[args.index("--tensors-output") + 1])
        plain = plan.with_name("without rewrites.invar")
        files = (plain, plain.with_name(plain.name + ".constants"))
        if args[1] not in WITHOUT_REWRITES:
            command = [a for a in COMPILED[str(plan)]]
            if "--output" in command:
                del command[command.index("--output") : command.index("--output") + 2]
            done = execute([*command, "--opt", "0", "--output", plain], **how)
            assert done.code == 0, done.text
            WITHOUT_REWRITES[args[1]] = {f: f.read_bytes() for f in files if f.exists()}
        made = WITHOUT_REWRITES[args[1]]
        for file, content in made.items():
            file.write_bytes(content)
        if program_of(plain) != program_of(plan):
            with tempfile.TemporaryDirectory() as folder:
                options = [folder if a == str(out) else a for a in args[2:]]
                done = execute(["infer", plain, *options], **how)
                assert done.code == 0, done.text
                for file in Path(folder).iterdir():
                    assert file.read_bytes() == (out / file.name).read_bytes(), (
                        f"--opt 0 gives another {file.name}"
                    )
        for file in files:
            file.unlink(missing_ok=True)


def program_of(plan):
    """What the digest covers."""
    return Path(plan).read_text().split("\nplaces\n")[0]


def refused(*args, code=2, names=(), **how):
    """A refusal that names each of `names`."""
    done = invar(*args, code=code, **how)
    for name in names:
        assert name in done.text, f"'{name}' is not named:\n{done.text}"
    return done


def refused_any(*args):
    """Bad input or outside the guarantee: a dtype may be either."""
    done = execute(args)
    assert done.code in (2, 3) and len(done.errors) == 1, done.text
    return done


def verdict_rows(done):
    """The rows of the table of several receipts, without the caveats that stand below each."""
    return [line for line in done.out.decode().splitlines() if not line.startswith("  ")]


@pytest.fixture(scope="session")
def tasks(tmp_path_factory):
    """One folder for exports and plans, so that the shipped model is compiled once per session."""
    return tmp_path_factory.mktemp("tasks")


@pytest.fixture(scope="session")
def generate(tasks, tmp_path_factory):
    """generate(*options, model=..., prompt=..., tokens=...) -> what `invar run --json` says, plus
    the receipt read."""
    folder = tmp_path_factory.mktemp("receipts")
    count = 0

    def f(*options, model=MODEL, prompt="ROMEO:", tokens=64, program=None, **how):
        nonlocal count
        count += 1
        path = folder / f"{count}.json"
        done = invar(
            "run",
            "--model-name",
            model,
            "--prompt-text",
            prompt,
            "--max-new-tokens",
            tokens,
            "--tasks-root",
            tasks,
            "--receipt-path",
            path,
            "--json",
            *options,
            program=program,
            **how,
        )
        answer = done.json()
        answer["receipt"] = path
        answer["content"] = json.loads(path.read_text())
        return answer

    return f


@pytest.fixture(scope="session")
def answer(generate):
    """The demo's run with every default."""
    return generate()


@pytest.fixture
def run_on(tmp_path):
    """run_on(model, *options): the arguments of a short run whose receipt goes to the test's
    folder."""

    def f(model, *options):
        return [
            "run",
            "--model-name",
            model,
            "--prompt-text",
            "ROMEO:",
            "--max-new-tokens",
            4,
            "--task-dir",
            tmp_path / "task",
            "--receipt-path",
            tmp_path / "receipt.json",
            *options,
        ]

    return f


@pytest.fixture
def model(tmp_path):
    """A copy of the shipped model that a test may damage."""
    return Path(shutil.copytree(MODEL, tmp_path / "model"))


def safetensors_header(path):
    """-> (header as a dict, offset of the data)."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + size]), 8 + size


def rewrite_header(path, change):
    """Applies change(header) and writes the file back with the header it returns; the data
    stays."""
    header, begin = safetensors_header(path)
    data = path.read_bytes()[begin:]
    text = json.dumps(change(header)).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def elements(case):
    """How many elements the tensors of a line of vectors.txt or golden.txt have."""
    shapes = re.findall(r"\w\[([\d,]*)\]", case)
    return sum(math.prod(int(dim) for dim in shape.split(",") if dim) for shape in shapes)


def copy_rooms(folder, one_in=None):
    """The rooms' texts for `doctor --rooms`: the least vector of each operation, the least digest
    of those without and of each room, and of the others those whose turn it is (`one_in` 1: all;
    None: no other)."""
    for texts in (ROOT / "src/ops").glob("*/tests"):
        room = folder / texts.parent.name / "tests"
        room.mkdir(parents=True)
        shutil.copy(texts / "cases.txt", room)
        for name, answer in (("vectors.txt", "->"), ("golden.txt", "=>")):
            kept, seen = [], set()
            lines = [
                x for x in (texts / name).read_text().splitlines() if answer in x and x[0] != "#"
            ]
            for line in sorted(lines, key=elements):
                prefix = re.match(r"([a-z0-9_,]+): ", line)
                operations = set(prefix[1].split(",")) if prefix else {texts.parent.name}
                its_turn = one_in and sample.turn(line, one_in) == 0
                if its_turn or not operations <= seen:
                    seen |= operations
                    kept.append(line)
            (room / name).write_text("\n".join(kept) + "\n")
    return folder


@functools.cache
def few_rooms():
    """copy_rooms once, for whom it matters that doctor runs, not how much of it."""
    return copy_rooms(Path(CACHE) / "rooms")


def cpu_isas():
    """Instruction sets of Invar that this processor has, from the kernel's list rather than from
    Invar."""
    flags = set()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("flags", "Features")):
            flags = set(line.split(":", 1)[1].split())
            break
    if "asimd" in flags:
        return ["neon", "scalar", "reference"]
    found = ["reference"]
    if "fma" in flags:
        found.append("scalar")
    if {"avx2", "fma", "f16c"} <= flags:
        found.append("avx2")
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c"} <= flags:
        found.append("avx512")
    return found
