"""A model in partitions: the receipt of one partition, for every number of them, in one process and
in several; what a worker that dies, stops or has other weights does to a run."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest
from checkpoints import write_holes
from conftest import BIN as INVAR
from conftest import MODEL

HOST = socket.gethostname()


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    return tmp_path_factory.mktemp("tasks")


def command(tasks, receipt, *options, tokens=24):
    return [
        INVAR, "run", "--model-name", MODEL, "--prompt-text", "ROMEO:\nWhat say", "--threads", "1",
        "--max-new-tokens", str(tokens), "--tasks-root", tasks, "--receipt-path", receipt, *options,
    ]  # fmt: skip


def hash_of(tasks, receipt, *options):
    subprocess.run(command(tasks, receipt, *options), check=True, capture_output=True, timeout=60)
    return json.loads(receipt.read_text())


@pytest.fixture(scope="module")
def whole(tasks, tmp_path_factory):
    return hash_of(tasks, tmp_path_factory.mktemp("whole") / "receipt.json")


@pytest.mark.parametrize(
    "options",
    [
        ("--n-partitions", "2"),
        ("--n-partitions", "5", "--prefill-chunk", "3"),
        ("--n-partitions", "3", "--no-kv-cache"),
        ("--device", "cpu,cpu"),
        ("--tensor-parallel", "2"),
        ("--tensor-parallel", "3", "--device", "cpu,cpu,cpu"),
        ("--tensor-parallel", "4", "--prefill-chunk", "5"),
        ("--tensor-parallel", "8", "--n-partitions", "2"),
        ("--tensor-parallel", "2", "--n-partitions", "5", "--no-kv-cache"),
        ("--weights-memory", "6MB"),
        ("--weights-memory", "6MB", "--n-partitions", "3"),
        ("--weights-memory", "6MB", "--tensor-parallel", "2", "--prefill-chunk", "5"),
    ],
)
def test_same_receipt(tasks, tmp_path, whole, options):
    receipt = hash_of(tasks, tmp_path / "receipt.json", *options)
    assert receipt["receipt_hash"] == whole["receipt_hash"]
    assert receipt["execution"].get("placement", "").count("layers") == (
        options != ("--weights-memory", "6MB")
    )


def test_ranks_of_an_exact16_program(tasks, tmp_path):
    exact16 = ("--numerics", "exact16")
    ranks = ("--tensor-parallel", "3", "--n-partitions", "2")
    whole, divided = (
        hash_of(tasks, tmp_path / "receipt.json", *exact16, *more) for more in ((), ranks)
    )
    assert whole["receipt_hash"] == divided["receipt_hash"]


@pytest.mark.parametrize("options", [("--n-partitions", "4"), ("--tensor-parallel", "3")])
def test_verified_in_other_partitions(tasks, tmp_path, whole, options):
    receipt = tmp_path / "receipt.json"
    receipt.write_text(json.dumps(whole))
    done = subprocess.run(
        [INVAR, "verify", receipt, "--model-name", MODEL, *options],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and done.stdout.startswith("VERIFIED"), done.stdout + done.stderr


@pytest.mark.parametrize("divided", ["--n-partitions", "--tensor-parallel"])
def test_a_deterministic_program_repeats_in_its_parts(tasks, tmp_path, divided):
    made = hash_of(
        tasks, tmp_path / "receipt.json", "--operation-set", "deterministic", divided, "2"
    )
    verify = [INVAR, "verify", tmp_path / "receipt.json", "--model-name", MODEL]
    verify += ["--tasks-root", tasks, "--threads", "1"]
    again, whole = (
        subprocess.run([*verify, *more], capture_output=True, text=True, timeout=60)
        for more in ((divided, "2"), ())
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert whole.returncode == 3
    placement = made["execution"]["placement"]
    assert f"placement: the receipt has '{placement}', here it is ''" in whole.stdout + whole.stderr


def test_what_is_not_covered(tasks, tmp_path):
    def line(*options):
        done = subprocess.run(
            command(tasks, tmp_path / "r.json", *options),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode in (2, 3)
        return done.stderr.splitlines()[-1]

    assert "6 partitions: the model has 5 layers" in line("--n-partitions", "6")
    assert "8 query heads and 4 key heads: at most 4 ranks" in line("--tensor-parallel", "5")
    assert "0 is not a whole number" in line("--tensor-parallel", "0")
    assert "3 devices are named for 1 partition of 2 ranks" in line(
        "--tensor-parallel", "2", "--device", "cpu,cpu,cpu"
    )
    assert "leave --workers out" in line(
        "--n-partitions", "2", "--weights-memory", "6MB", "--workers", "processes"
    )
    assert "use the operation set reproducible" in line(
        "--tensor-parallel", "2", "--operation-set", "deterministic", "--workers", "processes"
    )
    assert "give --n-partitions or --tensor-parallel 2 or more" in line("--workers", "processes")
    assert "has an empty name" in line("--n-partitions", "2", "--workers", ",")
    assert "--worker-timeout requires --workers" in line("--worker-timeout", "5")
    assert "--worker-model requires --workers" in line("--worker-model", tmp_path)
    assert "is not a size" in line("--weights-memory", "much")


@pytest.mark.parametrize("n,ranks", [(2, 1), (4, 1), (1, 2), (2, 2)])
def test_processes_have_the_same_receipt(tasks, tmp_path, whole, n, ranks):
    options = ("--n-partitions", str(n), "--workers", "processes", "--prefill-chunk", "4")
    options += ("--tensor-parallel", str(ranks))
    receipt = hash_of(tasks, tmp_path / "receipt.json", *options)
    assert receipt["receipt_hash"] == whole["receipt_hash"]
    assert receipt["execution"]["placement"].count("worker") == n * ranks - 1


LANES = [("--device", "cpu,cpu"), ("--n-partitions", "2", "--workers", "processes")]


@pytest.fixture(scope="module")
def many(tasks, tmp_path_factory):
    """20 prompts, and their receipts in one partition."""
    folder = tmp_path_factory.mktemp("many")
    rows = [json.dumps("A" * (i % 5) + f"ROMEO:\nWhat is {i * i}?") for i in range(20)]
    (folder / "prompts.jsonl").write_text("\n".join(rows))
    return folder / "prompts.jsonl", receipts_of_many(tasks, folder / "prompts.jsonl", folder / "r")


def receipts_of_many(tasks, prompts, receipts, *options):
    done = subprocess.run(
        [
            *(INVAR, "run", "--model-name", MODEL, "--prompt-file", prompts, "--batch-size", "20"),
            *("--threads", "1", "--max-new-tokens", "12", "--tasks-root", tasks),
            *("--receipt-path", receipts, *options),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [
        json.loads(f.read_text())["receipt_hash"]
        for f in sorted(receipts.parent.glob(f"{receipts.name}*"))
    ]


@pytest.mark.parametrize("options", LANES)
def test_groups_in_flight_have_the_receipts(tasks, tmp_path, many, options):
    prompts, hashes = many
    assert len(set(hashes)) == 20
    assert receipts_of_many(tasks, prompts, tmp_path / "r", *options) == hashes


@pytest.mark.parametrize("options", LANES)
def test_groups_in_flight_have_the_logits(tmp_path, options):
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps([[1 + (i * j) % 90 for j in range(3 + i)] for i in range(20)]))
    hash_of(tmp_path / "tasks", tmp_path / "receipt.json")
    (plan,) = (tmp_path / "tasks").glob("*/plan.invar")
    one, two = (
        subprocess.run(
            [
                *(INVAR, "infer", plan, "--tokens-file", tokens, "--max-new-tokens", "9", "-q"),
                *("--threads", "1", "--no-do-sample", *more),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        ).stdout
        for more in ((), options)
    )
    assert one == two and one.count(b"\n") == 20


def test_piped_output_of_processes(tasks, tmp_path):
    """mpirun has a terminal for process 0; a pipe gets what it gets without mpirun."""
    workers = ("--n-partitions", "2", "--workers", "processes")
    answers = [
        subprocess.run(
            command(tasks, tmp_path / "r.json", *options),
            check=True,
            capture_output=True,
            timeout=60,
        ).stdout
        for options in ((), workers)
    ]
    assert answers[0] == answers[1]


def children_of(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


WORKERS = ("--n-partitions", "2", "--workers", "processes", "--no-kv-cache")
# What a shell ignores in the background, and what somebody may have ignored here.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)


class Job:
    """A run with one worker that has begun to answer, and all its processes."""

    def __init__(self, tasks, receipt, tokens=480, timeout=60, workers=WORKERS):
        self.receipt = receipt
        self.run = subprocess.Popen(
            command(tasks, receipt, *workers, "--worker-timeout", str(timeout), tokens=tokens),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL) for s in SIGNALS] and None,
        )
        assert self.run.stdout.read(1)
        (self.mpirun,) = children_of(self.run.pid)
        self.process_0, self.worker = sorted(children_of(self.mpirun))

    def end(self):
        """Its exit code and the last line; no process stays behind."""
        err = self.run.communicate(timeout=40)[1]
        deadline = time.time() + 20
        everything = (self.mpirun, self.process_0, self.worker)
        while any(map(is_running, everything)) and time.time() < deadline:
            time.sleep(0.1)
        assert not any(map(is_running, everything))
        return self.run.returncode, (err.strip().splitlines() or [""])[-1]


KILLED, SILENT = "was ended by signal 9", "has given no sign of life for 3 s: the run is given up"


@pytest.mark.parametrize(
    ("who", "what", "line"),
    [
        ("worker", signal.SIGKILL, f"invar: worker 1 on {HOST} {KILLED}"),
        ("worker", signal.SIGSTOP, f"invar: worker 1 on {HOST} {SILENT}"),
        ("process_0", signal.SIGKILL, f"invar: the run's process on {HOST} {KILLED}"),
        ("process_0", signal.SIGSTOP, f"invar: process 0, the run itself, {SILENT}"),
        ("mpirun", signal.SIGKILL, "invar: mpirun was ended by signal 9: the run is given up"),
        (
            "mpirun",
            signal.SIGSTOP,
            "invar: mpirun was stopped for 3 s by a signal: the run is given up",
        ),
    ],
)
def test_a_lost_process_ends_the_run(tasks, tmp_path, who, what, line):
    job = Job(tasks, tmp_path / "receipt.json", timeout=3)
    os.kill(getattr(job, who), what)
    code, last = job.end()
    assert code == 1 and last.startswith(line), last
    assert not job.receipt.exists()


RANKS = ("--tensor-parallel", "2", "--workers", "processes", "--no-kv-cache")


@pytest.mark.parametrize("what,said", [(signal.SIGKILL, KILLED), (signal.SIGSTOP, SILENT)])
def test_a_lost_rank_ends_the_run(tasks, tmp_path, what, said):
    job = Job(tasks, tmp_path / "receipt.json", timeout=3, workers=RANKS)
    os.kill(job.worker, what)
    code, last = job.end()
    assert code == 1 and last.startswith(f"invar: worker 1 on {HOST} {said}"), last
    assert not job.receipt.exists()


@pytest.mark.parametrize("what", [signal.SIGINT, signal.SIGTERM])
def test_a_run_with_workers_ends_by_its_signal(tasks, tmp_path, what):
    job = Job(tasks, tmp_path / "receipt.json")
    job.run.send_signal(what)
    assert job.end()[0] == -what and not job.receipt.exists()


def test_what_becomes_of_the_terminal_ends_no_run_with_workers(tasks, tmp_path, whole):
    """As without workers: the receipt is the result."""
    job = Job(tasks, tmp_path / "receipt.json", tokens=120)
    job.run.send_signal(signal.SIGHUP)
    assert job.end()[0] == 0
    receipt = json.loads(job.receipt.read_text())
    assert len(receipt["output"]["tokens"]) == 120
    assert receipt["output"]["tokens"][:24] == whole["output"]["tokens"]


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def wait_for_states(pids, wanted):
    deadline = time.time() + 20
    while not all((state(pid) == "T") == wanted for pid in pids):
        assert time.time() < deadline, [state(pid) for pid in pids]
        time.sleep(0.05)


def test_a_stopped_run_goes_on_however_long_it_was_stopped(tasks, tmp_path):
    """Ctrl-Z stops every process, and the time does not count as silence."""
    job = Job(tasks, tmp_path / "receipt.json", tokens=120, timeout=3)
    computing = (job.process_0, job.worker)
    job.run.send_signal(signal.SIGTSTP)
    wait_for_states((job.run.pid, *computing), True)
    time.sleep(7)
    job.run.send_signal(signal.SIGCONT)
    wait_for_states((job.run.pid, *computing), False)
    code, last = job.end()
    assert code == 0 and job.receipt.exists(), last


def test_a_pipe_gets_the_bytes_of_one_process(tasks, tmp_path):
    """mpirun gives its processes a terminal, whatever the run's own output is."""
    out = [
        subprocess.run(
            command(tasks, tmp_path / f"{n}.json", *options),
            check=True,
            capture_output=True,
            timeout=60,
            env={**os.environ, "TERM": "xterm"},
        ).stdout
        for n, options in enumerate([(), ("--n-partitions", "2", "--workers", "processes")])
    ]
    assert out[0] == out[1] and b"\x1b" not in out[0]


@pytest.mark.parametrize("divided", ["--n-partitions", "--tensor-parallel"])
def test_a_worker_names_weights_that_differ(tmp_path, divided):
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    tasks = tmp_path / "tasks"
    base = [INVAR, "run", "--model-name", model, "--prompt-text", "a", "--max-new-tokens", "1"]
    base += ["--tasks-root", tasks, "--receipt-path", tmp_path / "r.json"]
    subprocess.run(base, check=True, capture_output=True, timeout=60)
    plan = next(tasks.glob("*/plan.invar"))
    name = "model.layers.4.mlp.down_proj.weight"
    index = json.loads((model / "model.safetensors.index.json").read_text())
    weights = model / index["weight_map"][name]
    damaged = bytearray(weights.read_bytes())
    size = int.from_bytes(damaged[:8], "little")
    header = json.loads(damaged[8 : 8 + size])
    damaged[8 + size + header[name]["data_offsets"][0]] ^= 1
    weights.write_bytes(damaged)
    done = subprocess.run(
        [*base, "--plan", plan, divided, "2", "--workers", "processes"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and not done.stdout.strip(), done.stderr
    line = done.stderr.strip().splitlines()[-1]
    # Process 0 has slices of every weight, too, and answers first.
    who = "invar: worker 1 on " if divided == "--n-partitions" else "invar: "
    assert line.startswith(who) and f"weight {name}" in line, done.stderr


def test_a_report_as_json(tmp_path):
    run = lambda *args: subprocess.run(  # noqa: E731
        [INVAR, *args], check=True, capture_output=True, text=True, timeout=60
    )
    run("export", "--model-name", MODEL, "-o", tmp_path)
    report = ["compile", tmp_path / "model.onnx", "--n-partitions", "2", "--report"]
    parts = json.loads(run(*report, "--json").stdout)["partitions"]
    assert [part["first_layer"] for part in parts] == [0, parts[0]["layers"]]
    assert sum(part["layers"] for part in parts) == 5
    rows = [line.split() for line in run(*report).stdout.splitlines()[2:]]
    assert [int(row[3]) for row in rows] == [part["state_bytes_per_token"] for part in parts]
    assert [int(row[4]) for row in rows] == [part["state_bytes_per_sequence"] for part in parts]
    assert [int(row[5]) for row in rows] == [part["handed_over_bytes_per_token"] for part in parts]


def test_a_report_of_ranks(tmp_path):
    run = lambda *args: subprocess.run(  # noqa: E731
        [INVAR, *args], check=True, capture_output=True, text=True, timeout=60
    )
    run("export", "--model-name", MODEL, "-o", tmp_path)
    report = ["compile", tmp_path / "model.onnx", "--tensor-parallel", "2", "--report"]
    ranks = json.loads(run(*report, "--json").stdout)["partitions"]
    assert [rank["rank"] for rank in ranks] == [0, 1]
    # 4 of each layer; the rows of the embedding before, the logits behind, which rank 0 alone has.
    assert [rank["gathers"] for rank in ranks] == [22, 21]
    alone = json.loads(run(*report[:-2], "1", "--report", "--json").stdout)["partitions"][0]
    assert 2 * ranks[0]["state_bytes_per_token"] == alone["state_bytes_per_token"]
    # Rank 0 has the table of the embedding beside its part of the output layer.
    table = 2048 * 256 * 2
    for rank, beside in zip(ranks, (table, 0), strict=True):
        assert rank["weights_bytes"] - beside < 0.55 * alone["weights_bytes"]
    rows = [line.split() for line in run(*report).stdout.splitlines()[2:]]
    assert [row[1:3] for row in rows] == [["0", "22"], ["1", "21"]]


LLAMA_72B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
    "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 152064,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def test_a_model_of_72b_on_paper(tmp_path):
    """The file of weights is a hole: nothing reads it."""
    write_holes(tmp_path / "in", LLAMA_72B, shards=8)
    run = lambda *args: subprocess.run(  # noqa: E731
        [INVAR, *args], check=True, capture_output=True, text=True, timeout=100
    )
    run("export", "--model-name", tmp_path / "in", "-o", tmp_path / "out")
    model = tmp_path / "out/model.onnx"
    reports = [run("compile", model, "--n-partitions", "8", "--report").stdout for _ in range(2)]
    assert reports[0] == reports[1]
    rows = [line.split() for line in reports[0].splitlines()[2:]]
    assert len(rows) == 8 and not (tmp_path / "out/plan.invar").exists()
    layers = [tuple(map(int, row[1].split("-"))) for row in rows]
    assert layers[0][0] == 0 and layers[-1][1] == 79
    assert all(a[1] + 1 == b[0] for a, b in zip(layers, layers[1:], strict=False))
    gigabytes = [float(row[2]) for row in rows]
    assert 140 < sum(gigabytes) < 150 and max(gigabytes) < 1.12 * sum(gigabytes) / 8
