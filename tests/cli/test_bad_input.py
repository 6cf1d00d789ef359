"""Bad input: one clear line that names what and where, the right exit code, nothing lost."""

import json
import os
import shutil
import subprocess

import pytest
from conftest import BIN, MODEL, ROOT, execute, invar, refused, refused_any
from receipt_oracle import leaf, merkle_root

# --- models by name -------------------------------------------------------------------------------


def test_nul_in_a_path(model, tmp_path):
    content = json.loads((ROOT / "tests/golden/romeo.receipt.json").read_text())
    content["execution"]["model_path"] = str(MODEL) + "\0/elsewhere"
    (tmp_path / "r.json").write_text(json.dumps(reseal_execution(content)))
    no_earlier_run = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    refused("verify", tmp_path / "r.json", env=no_earlier_run, names=["NUL"])


def test_a_revision_of_the_cache_is_one_name(tmp_path):
    hub = tmp_path / "models--a--b"
    (hub / "refs").mkdir(parents=True)
    (hub / "snapshots").mkdir()
    (hub / "snapshots/abc").symlink_to(MODEL)
    for revision, code in [(b"abc\n", 0), (b"abc\0/x", 2), (b"abc/../abc", 2)]:
        (hub / "refs/main").write_bytes(revision)
        invar(
            "encode",
            "--model-name",
            "a/b",
            "--prompt-text",
            "x",
            code=code,
            env={**os.environ, "HF_HUB_CACHE": str(tmp_path)},
        )


def test_no_control_character_of_a_file_reaches_the_terminal(tmp_path):
    done = refused(
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        "x",
        "--isa",
        "a\x1b[2Jb\x7f",
        names=["a\\x1b[2Jb\\x7f"],
    )
    assert b"\x1b" not in done.err


def reseal_execution(content):
    execution = {k: leaf("execution." + k, v) for k, v in sorted(content["execution"].items())}
    return {
        **content,
        "execution_digests": {k: d.hex() for k, d in execution.items()},
        "execution_hash": merkle_root(execution.values()).hex(),
    }


def test_no_such_model(run_on):
    refused(*run_on("no/such"), names=["no/such"])
    refused(*run_on("nowhere"), names=["nowhere"])
    refused(*run_on("/dev/null"), names=["/dev/null"])


# --- prompts, options -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [b"\xff", b"abc\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80"]
)
def test_prompt_of_invalid_utf8(tmp_path, text):
    refused(
        "run",
        "--model-name",
        MODEL,
        "--prompt-text",
        text,
        "--receipt-path",
        tmp_path / "r.json",
        names=["UTF-8"],
    )
    assert not (tmp_path / "r.json").exists()


def test_prompt_longer_than_the_context(run_on):
    args = run_on(MODEL)
    args[args.index("ROMEO:")] = "thou art " * 500
    refused(*args, names=["512"])
    args = run_on(MODEL)
    args[args.index(4)] = 511
    refused(*args, names=["512", "--max-new-tokens"])


@pytest.mark.parametrize(
    "option,value",
    [
        ("--max-new-tokens", "0"),
        ("--max-new-tokens", "-1"),
        ("--max-new-tokens", "many"),
        ("--max-new-tokens", "99999999999999999999"),
        ("--temperature", "-1"),
        ("--temperature", "nan"),
        ("--temperature", "inf"),
        ("--top-k", "-1"),
        ("--top-p", "0"),
        ("--top-p", "1.5"),
        ("--seed", "-1"),
        ("--threads", "-1"),
        ("--threads", "x"),
        ("--isa", "mmx"),
        ("--prefill-chunk", "-1"),
        ("--device", "abacus"),
        ("--device", "cuda:x"),
        ("--device", "cuda:4096"),
        ("--no-such-option", "1"),
    ],
)
def test_bad_options(run_on, option, value):
    args = run_on(MODEL)
    if option in args:
        args[args.index(option) + 1] = value
    else:
        args += [option, value]
    done = refused_any(*args)
    assert (
        option.lstrip("-") in done.text
        or option.lstrip("-").replace("-", "_") in done.text
        or value in done.text
    ), done.text


def test_usage():
    for args in (
        [],
        ["sing"],
        ["run"],
        ["run", "--model-name", MODEL],
        ["verify"],
        ["compile"],
        ["run", "--prompt-text", "x"],
    ):
        refused(*args)


def test_prompt_files(tmp_path, run_on):
    file = tmp_path / "p.jsonl"
    args = [a for a in run_on(MODEL) if a not in ("--prompt-text", "ROMEO:")] + [
        "--prompt-file",
        file,
    ]
    refused(*args, names=["p.jsonl"])
    for text, name in [
        ("", "p.jsonl"),
        ('"A"\n{"b": 1}\n', "p.jsonl:2"),
        ('"A"\nnot json\n', "p.jsonl:2"),
        ("7\n", "p.jsonl:1"),
    ]:
        file.write_text(text)
        refused(*args, names=[name])
    for text, name in [
        ('{"prompt": "A", "max_new_tokens": 3}', "max_new_tokens"),
        ('{"promt": "A"}', "promt"),
        ('{"text": "A"}', "text"),
        ('{"prompt": "A", "prompt": "B"}', "given twice"),
        ('{"prompt": ["A"]}', "prompt"),
        ('{"a\\u0000b": 1}', "u0000"),
        ("{}", "prompt"),
    ]:
        file.write_text('"A"\n' + text + "\n")
        refused(*args, names=["p.jsonl:2", name])
    for text, name in [
        ('{"messages": [{"role": "user", "content": "Hi"}]}\n', "no chat template"),
        ('{"messages": [], "prompt": "A"}\n', "messages"),
        ('{"messages": [{}], "prompt": "A"}\n', "prompt"),
    ]:
        file.write_text(text)
        refused(*args, names=["p.jsonl:1", name])
    file.write_text('\ufeff"ROMEO:"\n\n{"prompt": "JULIET:"}\n', encoding="utf-8")
    invar(*args)
    for name in ("receipt.1.json", "receipt.2.json"):
        invar("verify", tmp_path / name)


# --- where things go ------------------------------------------------------------------------------


def test_unwritable_receipt_path(run_on, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in [
        tmp_path / "folder",
        tmp_path / "file/r.json",
        tmp_path / "file/more/r.json",
        "/proc/r.json",
    ]:
        refused(*replace(run_on(MODEL), path), names=[str(path)])


def replace(args, receipt):
    args[args.index("--receipt-path") + 1] = receipt
    return args


def test_unwritable_task_folder(run_on, tmp_path):
    (tmp_path / "task").write_text("a file")
    refused(*run_on(MODEL), names=["task"])


def test_full_disk(run_on, tmp_path):
    """A receipt that does not fit is refused before anything is computed, and the old one stays."""
    disk = tmp_path / "disk"
    disk.mkdir()
    args = replace(run_on(MODEL), disk / "r.json")
    mounted = (
        os.geteuid() == 0
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True
        ).returncode
        == 0
    )
    if not mounted:
        # Without the right to make a small disk, the kernel's own full device stands for it, as
        # standard output.
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [BIN] + [str(a) for a in args], stdout=full, stderr=subprocess.PIPE
            )
        assert done.returncode == 2 and b"No space left on device" in done.stderr
        invar("verify", disk / "r.json")
        return
    try:
        invar(*args)
        old = (disk / "r.json").read_bytes()
        with open(disk / "filler", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(512))
            except OSError:
                pass
        done = refused(*args, names=["r.json", "space"])
        assert not done.out and "load" not in done.text
        assert (disk / "r.json").read_bytes() == old
        assert sorted(os.listdir(disk)) == ["filler", "r.json"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_closed_pipe(run_on):
    command = [BIN] + [str(a) for a in run_on(MODEL)]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.close()
    errors = p.stderr.read()
    assert p.wait() == 0, errors  # who closed the pipe has what it wanted
    invar("validate", command[command.index("--receipt-path") + 1])


def test_export_over_a_checkpoint_is_refused(model):
    before = {p.name: p.read_bytes() for p in model.iterdir()}
    execute(["export", "--model-name", model, "-o", model])
    execute(["export", "--model-name", model, "-o", model, "--colocate-tensors"])
    after = {p.name: p.read_bytes() for p in model.iterdir() if p.name in before}
    assert before == after, "exporting into the checkpoint's own folder damaged it"


def test_interrupted_first_run_leaves_nothing_wrong(run_on, tmp_path):
    """Killed at any moment, the task folder never makes the next run wrong."""
    for delay in (0.0, 0.01, 0.03, 0.1):
        shutil.rmtree(tmp_path / "task", ignore_errors=True)
        p = subprocess.Popen(
            [BIN] + [str(a) for a in run_on(MODEL)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            p.wait(delay)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
        invar(*run_on(MODEL))
        invar("verify", tmp_path / "receipt.json")
