"""What others, damage and accidents do to caches, weights and terminals: the answer stays right, or
there is none."""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from conftest import BIN, MODEL, ROOT, SHARDS, execute, invar, refused, safetensors_header

import sample

HONEST = json.loads((ROOT / "tests/golden/romeo.receipt.json").read_text())["receipt_hash"]
NOBODY = 65534


@pytest.fixture
def run(tmp_path):
    """run(*options, model=..., task=...): the demo's run; its receipt is run.receipt."""

    def f(*options, model=MODEL, task=tmp_path / "task", code=0, tokens=64, **how):
        return invar(
            "run",
            "--model-name",
            model,
            "--prompt-text",
            "ROMEO:",
            "--max-new-tokens",
            tokens,
            "--receipt-path",
            f.receipt,
            "--task-dir",
            task,
            "--json",
            *options,
            code=code,
            **how,
        )

    f.receipt = tmp_path / "r.json"
    return f


def hash_of(done):
    return done.json()["receipt_hash"]


# --- cached plans ---------------------------------------------------------------------------------


def test_a_planted_plan_is_made_anew(run, tmp_path):
    plan = tmp_path / "task" / "plan.invar"
    assert hash_of(run()) == HONEST
    text = plan.read_text()
    planted = text.replace("epsilon=0x3727c5ac", "epsilon=0x3f27c5ac", 1)
    assert planted != text
    plan.write_text(planted)
    done = run()
    assert hash_of(done) == HONEST and "plan.invar is not what was stored; made anew" in done.text
    assert plan.read_text() == text
    assert "made anew" not in run().text


def test_one_bit_of_any_file_of_the_cache(run, tmp_path):
    """Of every file that was made, bits at random: the answer is the honest one, whatever was
    changed."""
    run(tokens=2)
    task, pick = tmp_path / "task", random.Random(19)
    files = sorted(f.name for f in task.iterdir() if not f.is_symlink())
    assert files == ["identity", "model.onnx", "plan.invar", "plan.invar.constants"]
    honest = hash_of(run(tokens=2))
    for name in files * (4 if sample.TIER == 2 else 12):
        content = bytearray((task / name).read_bytes())
        content[pick.randrange(len(content))] ^= 1 << pick.randrange(8)
        (task / name).write_bytes(content)
        assert hash_of(run(tokens=2)) == honest, name
    for name in files:
        (task / name).unlink()
        assert hash_of(run(tokens=2)) == honest, name


def test_verify_does_not_trust_the_cache(run, tmp_path):
    """A receipt of a planted plan, whose cache agrees with it, is not verified; the honest one
    is."""
    run()
    honest = Path(run.receipt).read_bytes()
    (tmp_path / "honest.json").write_bytes(honest)
    plan = tmp_path / "task" / "plan.invar"
    text = plan.read_text()
    elsewhere = tmp_path / "planted"
    shutil.copytree(tmp_path / "task", elsewhere, symlinks=True)
    (elsewhere / "plan.invar").write_text(
        text.replace("epsilon=0x3727c5ac", "epsilon=0x3f27c5ac", 1)
    )
    done = invar(
        "run",
        "--plan",
        elsewhere / "plan.invar",
        "--model-name",
        MODEL,
        "--prompt-text",
        "ROMEO:",
        "--max-new-tokens",
        64,
        "--receipt-path",
        tmp_path / "planted.json",
        "--json",
    )
    assert hash_of(done) != HONEST
    # The planted plan claims to be the program. Compiling anew and computing shows that it is not.
    assert "output.logits[0]" in invar("verify", tmp_path / "planted.json", code=1).text
    assert "compiled from this folder" in invar("verify", tmp_path / "honest.json").text
    given = invar(
        "verify", tmp_path / "planted.json", "--plan", elsewhere / "plan.invar"
    ).out.decode()
    assert f"the plan {elsewhere}/plan.invar, as it was given" in given
    assert given.startswith("VERIFIED BY A GIVEN PLAN ")


def test_a_plan_that_computes_with_other_weights_is_refused(run, tmp_path):
    """One tensor is zeroed, in the bytes and in the line that is loaded. The line of the program's
    tensor, which the receipt binds, stays that of the honest model."""
    run(tokens=2)
    task, tensor = tmp_path / "task", "model.layers.0.mlp.down_proj.weight"
    text = (task / "plan.invar").read_text()
    number, honest = re.search(
        rf'weight (w\d+) "{re.escape(tensor)}" .* sha256 (\w+)', text
    ).groups()
    file, offset, length = re.search(
        rf'place {number} "(.+)" offset (\d+) length (\d+)', text
    ).groups()
    planted = tmp_path / "planted"
    planted.mkdir()
    for name in (*SHARDS, "plan.invar.constants"):
        shutil.copy(task / name, planted / name)
    with open(planted / file, "r+b") as f:
        f.seek(int(offset))
        f.write(bytes(int(length)))
    zeroed = hashlib.sha256(bytes(int(length))).hexdigest()
    plan = planted / "plan.invar"
    for name in (tensor, "renamed"):  # under its name, and as if it was a constant
        lie = text.replace(honest, zeroed, 1).replace(
            f'weight {number} "{tensor}"', f'weight {number} "{name}"'
        )
        assert lie.count(honest) == 1
        plan.write_text(lie)
        wanted = [f"{plan}: it computes with", tensor]
        honest_run = ["--model-name", MODEL, "--plan", plan]
        for command in (
            ["run", *honest_run, "--prompt-text", "x", "--receipt-path", tmp_path / "lie.json"],
            ["verify", run.receipt, *honest_run],
            ["trace", run.receipt, *honest_run, "-o", tmp_path / "t.json"],
            ["diff", run.receipt, *honest_run],
        ):
            refused(*command, names=wanted, code=1 if name == tensor else 3)
    assert not (tmp_path / "lie.json").exists()


def test_a_damaged_copy_of_the_weights_is_made_anew(run, tmp_path):
    assert hash_of(run("--colocate-tensors")) == HONEST
    copy = tmp_path / "task" / SHARDS[1]
    content = bytearray(copy.read_bytes())
    content[-5] ^= 4
    copy.write_bytes(content)
    done = run("--colocate-tensors")
    assert hash_of(done) == HONEST and "made anew" in done.text
    assert copy.read_bytes() == (MODEL / SHARDS[1]).read_bytes()


def test_a_link_to_the_weights_that_leads_nowhere_is_made_anew(run, tmp_path):
    assert hash_of(run()) == HONEST
    link = tmp_path / "task" / SHARDS[1]
    for to in (None, tmp_path / "nothing"):
        link.unlink()
        if to:
            link.symlink_to(to)
        done = run()
        assert hash_of(done) == HONEST and f"{SHARDS[1]} cannot be read; made anew" in done.text


def test_task_folders_are_private(run, tmp_path):
    before = os.umask(0o002)
    try:
        run(task=tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [(tmp_path / p).stat().st_mode & 0o777 for p in ("a", "a/b")] == [0o700, 0o700]
    for mode in (0o770, 0o707):
        (tmp_path / "a/b").chmod(mode)
        refused(
            *COMMAND,
            "--task-dir",
            tmp_path / "a/b",
            "--receipt-path",
            run.receipt,
            names=["other users may write to it"],
        )
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    refused(
        *COMMAND,
        "--tasks-root",
        tmp_path / "open",
        "--receipt-path",
        run.receipt,
        names=["every user may replace"],
    )
    (tmp_path / "open").chmod(0o1777)
    invar(*COMMAND, "--tasks-root", tmp_path / "open", "--receipt-path", run.receipt)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    refused(
        *COMMAND,
        "--task-dir",
        tmp_path / "link",
        "--receipt-path",
        run.receipt,
        names=["or a link to one"],
    )
    assert not list((tmp_path / "elsewhere").iterdir())


COMMAND = ["run", "--model-name", MODEL, "--prompt-text", "ROMEO:", "--max-new-tokens", 2]


def test_a_folder_of_another_user_is_refused(run):
    if os.geteuid() != 0:  # the other user is root
        refused(
            *COMMAND,
            "--task-dir",
            "/usr",
            "--receipt-path",
            run.receipt,
            names=["it belongs to user 0"],
        )
        return
    with tempfile.TemporaryDirectory(
        dir="/tmp"
    ) as place:  # nobody may enter it, unlike pytest's folder
        place = Path(place)
        place.chmod(0o755)
        binary, model = place / "invar", place / "model"
        shutil.copy(BIN, binary)
        shutil.copytree(MODEL, model)
        theirs, own = place / "theirs", place / "own"
        theirs.mkdir(mode=0o700)
        own.mkdir()
        os.chown(own, NOBODY, NOBODY)
        command = [
            "run",
            "--model-name",
            model,
            "--prompt-text",
            "ROMEO:",
            "--max-new-tokens",
            2,
            "--receipt-path",
            own / "r.json",
        ]
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", binary]
        assert execute([*command, "--task-dir", own / "task"], cwd=own, program=user).code == 0
        (own / "task" / "plan.invar").write_text("planted")
        done = execute([*command, "--task-dir", own / "task"], cwd=own, program=user)
        assert done.code == 0 and "made anew" in done.text
        # The other way round: root refuses what nobody made, and its parent.
        refused(*command, "--task-dir", own / "task", names=["it belongs to user 65534"])
        refused(*command, "--tasks-root", own, names=["it belongs to user 65534"])
        # A folder that root made beforehand under a shared root.
        theirs.chmod(0o755)
        done = execute([*command, "--task-dir", theirs], cwd=own, program=user)
        assert done.code == 2 and "it belongs to user 0" in done.text, done.text


def test_without_a_home_nothing_is_kept(tmp_path):
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    env["TMPDIR"] = str(tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    invar(*COMMAND, "--receipt-path", "r.json", cwd=tmp_path / "here", env=env)
    assert [p.name for p in (tmp_path / "here").iterdir()] == ["r.json"]
    assert not list((tmp_path / "tmp").iterdir())


def test_files_of_others_in_the_task_folder_stay(run, tmp_path):
    task = tmp_path / "mine"
    task.mkdir(mode=0o700)
    (task / "model.onnx").write_text("not yours")
    refused(
        *COMMAND,
        "--task-dir",
        task,
        "--receipt-path",
        run.receipt,
        names=["model.onnx is in the way"],
    )
    assert (task / "model.onnx").read_text() == "not yours"
    copy = tmp_path / "checkpoint"
    shutil.copytree(MODEL, copy)
    copy.chmod(0o700)
    refused(
        "run",
        "--model-name",
        copy,
        "--prompt-text",
        "x",
        "--task-dir",
        copy,
        "--receipt-path",
        run.receipt,
        names=["is in the way"],
    )
    assert all((copy / s).read_bytes() == (MODEL / s).read_bytes() for s in SHARDS)


# --- what VERIFIED is said of ---------------------------------------------------------------------


def hub(folder, name, model, revision):
    """A Hugging Face cache that has this model under this name. Returns the environment that shows
    it."""
    repo = folder / ("models--" + name.replace("/", "--"))
    shutil.copytree(model, repo / "snapshots" / revision)
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text(revision)
    return {**os.environ, "HF_HUB_CACHE": str(folder)}


def altered(folder):
    """The shipped model with one weight changed."""
    shutil.copytree(MODEL, folder)
    header, begin = safetensors_header(folder / SHARDS[0])
    entry = next(e for k, e in sorted(header.items()) if k != "__metadata__")
    with open(folder / SHARDS[0], "r+b") as f:
        f.seek(begin + entry["data_offsets"][0])
        f.write(b"\x00\x3f")
    return folder


def test_the_report_names_folder_source_and_weights(run, tmp_path):
    run()
    text = invar("verify", run.receipt).text
    assert f"folder    {MODEL} (the folder of the last run here with these weights)" in text
    assert "weights   445f4fd41c85cb1609a722a9892a3659c7ceba8a256f7d49f40e83e3ef6a1e9f" in text
    assert 'named     "shakespeare-4m" in the receipt: not checked' in text
    assert (
        f"folder    {MODEL} (given with --model-name)"
        in invar("verify", run.receipt, "--model-name", MODEL).text
    )


def test_of_folders_with_the_same_weights_that_of_the_receipt_is_found(tmp_path):
    for name in ("a", "b", "c"):  # b: another config.json, c: another chat template
        shutil.copytree(MODEL, tmp_path / name)
    (tmp_path / "c/chat_template.jinja").write_text("{{ messages[0].content }}")
    config = json.loads((tmp_path / "b/config.json").read_text())
    (tmp_path / "b/config.json").write_text(json.dumps(config, indent=1))
    for name in ("a", "b", "c"):
        invar("run", "--model-name", tmp_path / name, "--prompt-text", "ROMEO:", "--max-new-tokens", 2,
              "--receipt-path", tmp_path / f"{name}.json")  # fmt: skip
    for name in ("a", "b", "c"):
        assert f"{tmp_path / name} (the folder" in invar("verify", tmp_path / f"{name}.json").text


def test_no_path_in_a_receipt_unless_asked(run, tmp_path):
    run()
    content = Path(run.receipt).read_text()
    assert "model_path" not in content and str(MODEL) not in content
    elsewhere = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "fresh")}
    refused(
        "verify", run.receipt, env=elsewhere, names=["pass the checkpoint folder with --model-name"]
    )
    run("--record-model-path")
    assert json.loads(Path(run.receipt).read_text())["execution"]["model_path"] == str(MODEL)
    assert (
        "the path in the receipt, which its sender chose"
        in invar("verify", run.receipt, env=elsewhere).text
    )


def test_a_famous_name_does_not_vouch_for_other_weights(run, tmp_path):
    revision = "0123456789abcdef0123456789abcdef01234567"
    honest = hub(tmp_path / "honest", "famous/model", MODEL, revision)
    fake = hub(tmp_path / "fake", "famous/model", altered(tmp_path / "altered"), revision)
    assert hash_of(run(model="famous/model", env=fake)) != HONEST
    claimed = json.loads(Path(run.receipt).read_text())["model"]
    assert claimed["name"] == "famous/model" and claimed["revision"] == revision
    # Who has the model under this name finds out; its folder is looked at first.
    done = invar("verify", run.receipt, env=honest, code=1)
    assert "model.tensors[" in done.text and "by the receipt's model name" in done.text
    # Who is handed the folder is told that the name was not checked.
    text = invar("verify", run.receipt, "--model-name", tmp_path / "altered").text
    assert (
        "VERIFIED" in text
        and f'named     "famous/model", revision {revision} in the receipt: not checked' in text
    )
    # Under another name in the cache, the claimed one is wrong.
    other = hub(tmp_path / "other", "some/other", tmp_path / "altered", revision)
    done = invar("verify", run.receipt, "--model-name", "some/other", env=other, code=1)
    assert "model.name: the receipt says famous/model, and some/other" in done.text
    # The right name and revision.
    run(model="famous/model", env=honest)
    assert (
        f'named     "famous/model", revision {revision}: as the Hugging Face cache has it'
        in invar("verify", run.receipt, env=honest).text
    )
    # A revision that the cache does not have.
    newer = hub(tmp_path / "newer", "famous/model", MODEL, "f" * 40)
    assert (
        f"the revision there is {'f' * 40}: not checked"
        in invar("verify", run.receipt, env=newer).text
    )


# --- weights that change while they are mapped ----------------------------------------------------

PROMPTS = 500


def change_while_running(model, tmp_path, change, *more):
    """Many prompts; after the first receipt `change` is done to the weights' files. Exit code,
    errors, receipts."""
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "out"
    out.mkdir()
    prompts.write_text('"ROMEO:"\n' * PROMPTS)
    process = subprocess.Popen(
        [
            BIN,
            "run",
            "--model-name",
            model,
            "--prompt-file",
            prompts,
            "--max-new-tokens",
            "64",
            "--json",
            "--receipt-path",
            out / "r.json",
            "--task-dir",
            tmp_path / "task",
            *more,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while not (out / "r.1.json").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.001)
    change()
    errors = process.communicate(timeout=300)[1].decode()
    return process.returncode, errors, len(list(out.iterdir()))


def test_weights_cut_off_while_they_are_in_use(model, tmp_path):
    def change():
        for shard in SHARDS:
            os.truncate(model / shard, 0)

    code, errors, receipts = change_while_running(model, tmp_path, change)
    assert code in (1, 2) and receipts < PROMPTS, errors
    lines = [line for line in errors.splitlines() if line.startswith("invar: ")]
    assert len(lines) == 1 and ".safetensors" in lines[0], errors
    assert (
        "became shorter while it was in use" in lines[0]
        or "was changed while it was in use" in lines[0]
    )


def test_weights_cut_off_are_an_event_where_events_are_asked_for(model, tmp_path):
    def change():
        for shard in SHARDS:
            os.truncate(model / shard, 0)

    code, errors, _ = change_while_running(model, tmp_path, change, "--progress", "json")
    events = [json.loads(line) for line in errors.splitlines()]
    (error,) = [e for e in events if e["event"] == "error"]
    assert code in (1, 2) and error["code"] == code and ".safetensors" in error["message"]


def test_weights_overwritten_in_place_make_no_receipt(model, tmp_path):
    def change():
        with open(model / SHARDS[0], "r+b") as f:
            f.seek(-1000, os.SEEK_END)
            f.write(b"\0" * 1000)

    code, errors, receipts = change_while_running(model, tmp_path, change)
    assert code == 1 and "was changed while it was in use" in errors, errors
    assert (
        len({json.loads(path.read_text())["receipt_hash"] for path in (tmp_path / "out").iterdir()})
        == 1
    )


def test_weights_overwritten_and_put_back_make_no_receipt(model, tmp_path):
    """Bytes and times are those that were there. Nobody sets the time of the last change."""

    def change():
        path = model / SHARDS[0]
        times, content = path.stat(), path.read_bytes()
        with open(path, "r+b") as f:
            f.seek(-1000, os.SEEK_END)
            f.write(b"\0" * 1000)
            f.seek(0)
            f.write(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    code, errors, receipts = change_while_running(model, tmp_path, change)
    assert code == 1 and receipts < PROMPTS and "was changed while it was in use" in errors, errors


def test_weights_replaced_while_they_are_in_use_make_no_receipt(model, tmp_path):
    """The file that is in use has no name any more. Who took it could have written to it before."""

    def change():
        shutil.copy2(model / SHARDS[0], model / "new")
        os.replace(model / "new", model / SHARDS[0])

    code, errors, receipts = change_while_running(model, tmp_path, change)
    assert code == 1 and receipts < PROMPTS and "was changed while it was in use" in errors, errors


# --- terminals, pipes, interruptions --------------------------------------------------------------


def shell(command, cwd):
    return subprocess.run(
        ["bash", "-c", command],
        cwd=cwd,
        capture_output=True,
        timeout=120,
        env={**os.environ, "INVAR": BIN, "MODEL": str(MODEL)},
    )


DEMO = '"$INVAR" run --model-name "$MODEL" --prompt-text ROMEO: --max-new-tokens 64 --task-dir task'


@pytest.mark.parametrize(
    "redirection",
    [
        "| head -c 1",
        "| true",
        ">&-",
        "2>&-",
        ">&- 2>&-",
        "<&- >&- 2>&-",
        ">/dev/full",
        "2>/dev/full",
        "--json | true",
        "--json >&-",
    ],
)
def test_the_receipt_is_written_whatever_becomes_of_the_streams(tmp_path, redirection):
    done = shell(f"{DEMO} {redirection}", tmp_path)
    assert json.loads((tmp_path / "receipt.json").read_text())["receipt_hash"] == HONEST, done
    if redirection == ">/dev/full":
        assert done.returncode == 2 and b"No space left on device" in done.stderr


def test_every_prompt_has_its_receipt_although_nobody_reads(tmp_path):
    (tmp_path / "p.jsonl").write_text('"ROMEO:"\n' * 3)
    command = DEMO.replace("--prompt-text ROMEO:", "--prompt-file p.jsonl")
    shell(f"{command} >/dev/full", tmp_path)
    assert [
        json.loads((tmp_path / f"receipt.{i}.json").read_text())["receipt_hash"] for i in (1, 2, 3)
    ] == [HONEST] * 3


def test_a_hangup_does_not_end_a_run(tmp_path):
    (tmp_path / "p.jsonl").write_text('"ROMEO:"\n' * 50)
    process = subprocess.Popen(
        [
            BIN,
            "run",
            "--model-name",
            MODEL,
            "--prompt-file",
            "p.jsonl",
            "--max-new-tokens",
            "64",
            "--json",
        ],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / "receipt.1.json").exists():
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=120) == 0
    assert len(list(tmp_path.glob("receipt.*.json"))) == 50


def test_a_file_size_limit_is_an_error_and_no_signal(tmp_path):
    done = shell(f"{DEMO}; ulimit -f 1; {DEMO} --receipt-path second.json; echo code $?", tmp_path)
    assert b"code 2" in done.stdout and b"File too large" in done.stderr, done
    assert not (tmp_path / "second.json").exists()


def test_an_interrupted_first_run_can_be_repeated(run, tmp_path):
    """Killed at 30 moments while it copies weights and compiles, then run to the end."""
    command = [
        str(a)
        for a in [
            BIN,
            *COMMAND,
            "--colocate-tensors",
            "--task-dir",
            tmp_path / "task",
            "--receipt-path",
            run.receipt,
        ]
    ]
    pick, killed = random.Random(7), 0
    for _ in range(30):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(pick.uniform(0, 0.06))
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        if pick.random() < 0.2:
            shutil.rmtree(tmp_path / "task", ignore_errors=True)
    assert killed > 5
    assert hash_of(run("--colocate-tensors")) == HONEST


def test_an_interrupted_export_can_be_repeated(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    shutil.copy(MODEL / SHARDS[0], out / SHARDS[0])  # what a kill between two copies leaves
    invar("export", "--model-name", MODEL, "-o", out, "--colocate-tensors")
    other = tmp_path / "other"
    other.mkdir()
    (other / SHARDS[0]).write_bytes(b"mine")
    refused(
        "export", "--model-name", MODEL, "-o", other, "--colocate-tensors", names=["is in the way"]
    )
    assert (other / SHARDS[0]).read_bytes() == b"mine"


@pytest.mark.parametrize("colocate", [[], ["--colocate-tensors"]], ids=["links", "copies"])
def test_ten_runs_at_once_on_a_cold_cache(tmp_path, colocate):
    """Each in a process namespace of its own where that is possible, so that all have the same
    process id."""
    spaces = (
        ["unshare", "--pid", "--fork"]
        if os.geteuid() == 0
        and subprocess.run(["unshare", "--pid", "--fork", "true"]).returncode == 0
        else []
    )
    for turn in range(3):
        task = tmp_path / f"task {turn}"
        all_ = [
            subprocess.Popen(
                [
                    *spaces,
                    BIN,
                    "run",
                    "--model-name",
                    MODEL,
                    "--prompt-text",
                    "ROMEO:",
                    "--max-new-tokens",
                    "64",
                    "--json",
                    "--task-dir",
                    task,
                    "--receipt-path",
                    tmp_path / "same.json",
                    *colocate,
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(10)
        ]
        for process in all_:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            assert json.loads(out)["receipt_hash"] == HONEST
        assert sorted(p.name for p in task.iterdir() if p.name.startswith(".")) == []
        assert json.loads((tmp_path / "same.json").read_text())["receipt_hash"] == HONEST
