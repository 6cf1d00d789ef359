"""Files without an end, pipes, full disks, names of any length, very many tensors: one line, and no
endless wait."""

import json
import os
import resource
import shutil
import subprocess
import time

import onnx
import pytest
from checkpoints import SMALL, header_bytes, shapes
from conftest import BIN, MODEL, invar, refused
from onnx import TensorProto, helper

SOON = (
    60  # seconds: nothing here takes one; what waits or grows with a square would not end by then
)


def start_small():
    """A child that may use 2 GiB: what reads without end fails rather than take the machine's
    memory."""
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


def refused_soon(*args, names=(), code=2, **how):
    done = subprocess.run(
        [BIN] + [str(a) for a in args],
        capture_output=True,
        timeout=SOON,
        preexec_fn=start_small,
        **how,
    )
    text = done.stderr.decode()
    assert done.returncode == code and text.count("\n") == 1, text
    assert "out of memory" not in text, text
    for name in names:
        assert name in text, text
    return text


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Sin", ["x"], ["y"])], "g", value[:1], value[1:])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11),
        folder / "m.onnx",
    )
    invar("compile", folder / "m.onnx")
    return folder / "plan.invar"


# --- files without an end -------------------------------------------------------------------------


def test_endless_files(plan, tmp_path):
    for command in ("validate", "verify"):
        refused_soon(command, "/dev/zero", names=["/dev/zero", "more than", "a receipt may have"])
    refused_soon("infer", "/dev/zero", "--tokens", "1", names=["/dev/zero", "not a regular file"])
    refused_soon(
        "infer",
        plan,
        "--tokens-file",
        "/dev/zero",
        names=["/dev/zero", "a file of tokens may have"],
    )
    refused_soon("infer", plan, "--input", "x=/dev/zero", names=["/dev/zero", "not a regular file"])
    refused_soon("compile", "/dev/zero", names=["/dev/zero"])
    refused_soon(
        "run",
        "--model-name",
        MODEL,
        "--prompt-file",
        "/dev/zero",
        "--receipt-path",
        tmp_path / "r.json",
        names=["/dev/zero", "a prompt file may have"],
    )


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "tokenizer.json",
        "generation_config.json",
        "tokenizer_config.json",
        "model.safetensors.index.json",
    ],
)
@pytest.mark.parametrize("kind", ["endless", "fifo", "large"])
def test_files_of_a_model_are_regular_and_bounded(model, tmp_path, name, kind):
    (model / name).unlink(missing_ok=True)
    if kind == "endless":
        (model / name).symlink_to("/dev/zero")
    elif kind == "fifo":
        os.mkfifo(model / name)
    else:
        with open(model / name, "wb") as f:
            f.truncate(1 << 40)
    refused_soon(
        "run",
        "--model-name",
        model,
        "--prompt-text",
        "A",
        "--task-dir",
        tmp_path / "t",
        "--receipt-path",
        tmp_path / "r.json",
        names=[name, "more than the" if kind == "large" else "not a regular file"],
    )


def test_large_files(plan, tmp_path):
    large = tmp_path / "large"
    with open(large, "wb") as f:
        f.truncate(1 << 40)
    refused_soon("validate", large, names=["large", "a receipt may have"])
    refused_soon(
        "infer", plan, "--tokens-file", large, names=["large", "a file of tokens may have"]
    )
    refused_soon("compile", large, names=["large"])


# --- pipes ----------------------------------------------------------------------------------------


def test_a_fifo_that_nobody_writes_to(fifo, plan, tmp_path):
    for args in (
        ["validate", fifo],
        ["verify", fifo],
        ["infer", plan, "--tokens-file", fifo],
        [
            "run",
            "--model-name",
            MODEL,
            "--prompt-file",
            fifo,
            "--receipt-path",
            tmp_path / "r.json",
        ],
    ):
        refused_soon(*args, names=["fifo", "nobody writes to"])
    for args in (
        ["infer", fifo, "--tokens", "1"],
        ["compile", fifo],
        ["infer", plan, "--input", f"x={fifo}"],
    ):
        refused_soon(*args, names=["fifo", "not a regular file"])


def test_a_fifo_that_nobody_reads(answer, fifo, tmp_path):
    """What was computed is kept: the receipt of a run goes to the folder for temporary files."""
    run = ("run", "--model-name", MODEL, "--prompt-text", "A", "--max-new-tokens", 1)
    said = refused_soon(
        *run,
        *("-q", "--receipt-path", fifo),
        env={**os.environ, "TMPDIR": str(tmp_path)},
        names=["fifo", "nobody reads", "the receipt was saved as"],
    )
    (saved,) = tmp_path.glob(".invar-*-receipt.json")
    assert saved.name in said and saved.stat().st_mode & 0o777 == 0o600
    assert invar("validate", saved).out.startswith(b"VALID")
    trace = ("trace", answer["receipt"], "--model-name", MODEL, "-q", "-o", fifo)
    refused_soon(*trace, names=["fifo", "nobody reads"])


def test_pipes_are_read(answer, fifo, tmp_path):
    receipt = answer["receipt"].read_bytes()
    done = subprocess.run(
        [BIN, "validate", "/dev/stdin"], input=receipt, capture_output=True, timeout=SOON
    )
    assert done.returncode == 0 and done.stdout.startswith(b"VALID"), done.stderr
    # Substitution of processes, with a writer that takes its time.
    done = subprocess.run(
        ["bash", "-c", '"$0" validate <(sleep 0.2; cat "$1")', BIN, str(answer["receipt"])],
        capture_output=True,
        timeout=SOON,
    )
    assert done.returncode == 0, done.stderr
    # A FIFO whose writer is there, and late with its text.
    both = os.open(fifo, os.O_RDWR)
    reader = subprocess.Popen(
        [BIN, "validate", str(fifo)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with open(fifo, "wb") as f:
        f.write(receipt[:100])
        f.flush()
        time.sleep(0.2)
        f.write(receipt[100:])
        os.close(both)
    out, err = reader.communicate(timeout=SOON)
    assert reader.returncode == 0, err


def test_an_empty_pipe_is_an_empty_text():
    encode = 'printf \'\' | "$0" encode --model-name "$1" --prompt-text -'
    done = subprocess.run(
        ["bash", "-c", encode, BIN, str(MODEL)], capture_output=True, timeout=SOON
    )
    assert done.returncode == 0 and done.stdout == b"[0]\n", done.stderr
    for way in ('true | "$0" validate /dev/stdin', '"$0" validate <(true)'):
        done = subprocess.run(["bash", "-c", way, BIN], capture_output=True, timeout=SOON)
        assert done.returncode == 2 and b"nobody writes" not in done.stderr, done.stderr


def test_prompts_from_a_pipe(tasks, tmp_path):
    done = subprocess.run(
        [
            BIN,
            "run",
            "--model-name",
            str(MODEL),
            "--prompt-file",
            "/dev/stdin",
            "--max-new-tokens",
            "2",
            "--tasks-root",
            str(tasks),
            "--receipt-path",
            str(tmp_path / "r.json"),
        ],
        input=b'"ROMEO:"\n',
        capture_output=True,
        timeout=SOON,
    )
    assert done.returncode == 0, done.stderr
    invar("verify", tmp_path / "r.json")


# --- where the receipt goes -----------------------------------------------------------------------


@pytest.fixture
def run_on(tasks):
    def f(receipt, *options):
        return [
            "run",
            "--model-name",
            MODEL,
            "--prompt-text",
            "ROMEO:",
            "--max-new-tokens",
            64,
            "--tasks-root",
            tasks,
            "--receipt-path",
            receipt,
            *options,
        ]

    return f


def test_an_empty_receipt_path(run_on):
    refused(*run_on(""), names=["--receipt-path"])


def test_long_names_of_receipts(run_on, tmp_path):
    longest = "r" * 250 + ".json"
    invar(*run_on(tmp_path / longest))
    invar("verify", tmp_path / longest)
    assert os.listdir(tmp_path) == [longest]
    done = refused(*run_on(tmp_path / ("r" + longest)), names=["File name too long"])
    assert not done.out, "an answer was computed"


def test_a_receipt_that_will_not_fit(run_on, tmp_path):
    """Found out before the answer is computed: nothing is printed, and the old receipt stays."""
    invar(*run_on(tmp_path / "r.json"))
    old = (tmp_path / "r.json").read_bytes()
    done = subprocess.run(
        [BIN] + [str(a) for a in run_on(tmp_path / "r.json")],
        capture_output=True,
        timeout=SOON,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert done.returncode == 2 and done.stdout == b"", done
    errors = [line for line in done.stderr.decode().split("\n") if line.startswith("invar: ")]
    assert len(errors) == 1 and "r.json" in errors[0] and "File too large" in errors[0], errors
    assert (tmp_path / "r.json").read_bytes() == old and os.listdir(tmp_path) == ["r.json"]


def test_a_device_takes_a_receipt(run_on, tmp_path):
    """/dev/full says only when it is written to that it is full: the receipt is saved elsewhere."""
    done = refused(
        *run_on("/dev/full"),
        names=["/dev/full", "was saved as"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    (saved,) = tmp_path.glob("*.json")
    assert str(saved) in done.text
    invar("verify", saved)


# --- very many tensors ----------------------------------------------------------------------------


def many_tensors(folder, layers, unused):
    """A Llama of zeros with so many layers, and so many tensors that exporters ignore."""
    config = {
        **SMALL,
        "num_hidden_layers": layers,
        "vocab_size": json.loads((MODEL / "config.json").read_text())["vocab_size"],
    }
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copy(MODEL / "tokenizer.json", folder)
    tensors = {
        **shapes(config),
        **{f"model.layers.{i}.self_attn.rotary_emb.inv_freq": [1] for i in range(unused)},
    }
    head, size = header_bytes(tensors, "BF16", 2)
    (folder / "model.safetensors").write_bytes(head + bytes(size))
    return len(tensors)


def test_a_header_of_a_hundred_thousand_tensors(tmp_path):
    assert many_tensors(tmp_path / "m", 2, 100_000) > 100_000
    invar("export", "--model-name", tmp_path / "m", "-o", tmp_path / "out", timeout=SOON)


def test_a_model_of_nine_thousand_tensors(tmp_path):
    many_tensors(tmp_path / "m", 1000, 0)
    invar(
        "run",
        "--model-name",
        tmp_path / "m",
        "--prompt-text",
        "A",
        "--max-new-tokens",
        1,
        "--task-dir",
        tmp_path / "t",
        "--receipt-path",
        tmp_path / "r.json",
        timeout=SOON,
    )
    invar("verify", tmp_path / "r.json", "--model-name", tmp_path / "m", timeout=SOON)


def test_a_receipt_of_very_many_members(answer, tmp_path):
    receipt = json.loads(answer["receipt"].read_text())
    many = {f"k{i}": "v" for i in range(200_000)}
    receipt["execution"].update(many)
    receipt["execution_digests"].update(dict.fromkeys(many, "0" * 64))
    (tmp_path / "r.json").write_text(json.dumps(receipt))
    done = invar("validate", tmp_path / "r.json", code=1, timeout=SOON)
    assert b"execution.k10 (informational)" in done.out and b"not listed" in done.out
    assert len(done.out.splitlines()) < 110


# --- texts that grow in memory, stacks that do not ------------------------------------------------


@pytest.mark.parametrize("value", ["0,", '"a",', "[],", "{},"])
def test_a_receipt_of_many_values(tmp_path, value):
    """Two bytes of text would be a hundred of memory; refused_soon() allows 2 GiB."""
    large = tmp_path / "large.json"
    values = value * (60_000_000 // len(value))
    large.write_text('{"schema": "invar-receipt 2", "input": {"tokens": [' + values + "0]}}")
    refused_soon("validate", large, names=["large.json:1:", "more than 4194304 values"])


def test_a_receipt_of_wrong_values(tmp_path):
    wrong = tmp_path / "wrong.json"
    values = '"a",' * 2_000_000
    wrong.write_text('{"schema": "invar-receipt 2", "input": {"tokens": [' + values + "0]}}")
    done = invar("validate", wrong, code=1)
    assert len(done.out.splitlines()) < 110 and b"not listed" in done.out


@pytest.mark.parametrize("hard", [False, True])
def test_a_small_stack(answer, hard, tmp_path):
    def small():
        least = 64 << 10
        most = resource.getrlimit(resource.RLIMIT_STACK)[1]
        resource.setrlimit(resource.RLIMIT_STACK, (least, least if hard else most))

    for args in (
        ["run", "--model-name", MODEL, "--prompt-text", "A", "--max-new-tokens", "2", "-q"]
        + ["--task-dir", tmp_path / "task", "--receipt-path", tmp_path / "r.json"],
        ["verify", answer["receipt"]],
        ["validate", answer["receipt"]],
    ):
        done = subprocess.run(
            [BIN, *map(str, args)], preexec_fn=small, capture_output=True, timeout=SOON
        )
        assert done.returncode == 0, done
