"""Values are checked before any work, and what was meant is named."""

import json
import os
import shutil

import pytest
from conftest import MODEL, execute, few_rooms, invar, refused

RUN = ["run", "--model-name", MODEL, "--prompt-text", "a"]
# None of these can do anything: a device that is refused is refused before the model is looked for.
COMMANDS = [
    ["run", "--model-name", "none", "--prompt-text", "a"],
    ["chat", "--model-name", "none"],
    ["embed", "--model-name", "none", "a"],
    ["rerank", "--model-name", "none", "--query", "a", "b"],
    ["infer", "none.invar", "--tokens", "1"],
    ["verify", "none.json"],
    ["trace", "none.json"],
    ["diff", "none.json"],
    ["answer", "none.json", "--receipt", "none.json"],
    ["dispute", "none", "--receipt", "none.json"],
    ["bench", "gemm"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_devices_and_instruction_sets(command):
    refused(*command, "--device", "cdua", names=["--device: cdua is not", "did you mean cuda?"])
    refused(*command, "--isa", "sse", names=["--isa: sse is no instruction set", "scalar"])
    # What is there is taken, and the next error is that of the command.
    if command[0] != "bench":
        done = execute([*command, "--device", "cpu", "--isa", "scalar"])
        assert done.code == 2 and "none" in done.errors[0] and "--" not in done.errors[0], done.text


@pytest.mark.parametrize(
    "device,hint",
    [
        ("CPU", "did you mean cpu?"),
        ("gpu", "did you mean cuda?"),
        ("cuda:x", "cuda:x is not"),
        ("cuda:-1", "cuda:-1 is not"),
        ("cpu,cdua", "cdua is not"),
        ("cpu,,cpu", "cpu,,cpu has an empty name"),
        ("cpu,", "give names, comma separated"),
        ("tpu9", "is not cpu, cuda or cuda:N"),
    ],
)
def test_spellings_of_devices(device, hint):
    refused(*RUN, "--device", device, names=[hint])


def test_isa_with_a_dash():
    refused(*RUN, "--isa", "scalr", names=["did you mean scalar?"])


def test_extensions_of_an_instruction_set(tmp_path):
    """Those that some operation has a kernel for, as doctor lists them, and no others."""
    here = {row["isa"] for row in invar("doctor", "--json", "--rooms", few_rooms()).json()["rows"]}
    run = [*RUN, "--max-new-tokens", 2, "--numerics", "exact16"]
    for isa in ("avx512_amx", "avx512_vnni", "avx2_vnni", "neon_i8mm", "neon_dot"):
        receipt = tmp_path / f"{isa}.json"
        if isa not in here:
            refused(*run, "--isa", isa, names=[f"--isa: {isa} is no instruction set"])
            continue
        invar(*run, "--isa", isa, "--receipt-path", receipt)
        assert json.loads(receipt.read_text())["execution"]["isa"] == isa


def test_a_gpu_that_is_not_here(tmp_path):
    """In a fresh cache: neither exported nor compiled before the GPU is looked for."""
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "CUDA_VISIBLE_DEVICES": ""}
    done = refused(*RUN, "--device", "cuda", env=env, cwd=tmp_path)
    assert "--device cuda: " in done.text and "export" not in done.text
    assert not list(tmp_path.iterdir())
    # --cpu-only never looks.
    done = execute([*RUN, "--device", "cuda", "--cpu-only", "--max-new-tokens", 1], cwd=tmp_path)
    assert done.code == 0, done.text


def test_one_device_where_a_list_is_none():
    refused("embed", "--model-name", "none", "a", "--device", "cpu,cpu", names=["cpu,cpu is not"])


def test_words_without_an_option():
    cases = [
        (["run", "m"], "did you mean --model-name 'm'?"),
        (["run", "--model-name", "m", "ROMEO:"], "did you mean --prompt-text 'ROMEO:'?"),
        (["tui", "m"], "did you mean --model-name 'm'?"),
        (["cache", "prune", "x"], "`invar cache prune` takes no word"),
        (["infer", "a", "b"], "'b': `invar infer` takes no more words"),
        (["cache"], "a command is needed: `invar cache list` or `invar cache prune`"),
        (["keygen"], "PATH is required, as in `invar keygen alice.key`"),
        (["compile"], "MODEL is required, as in `invar compile task/model.onnx`"),
        (["run"], "--model-name is required, as in `invar run --model-name"),
    ]
    for args, words in cases:
        refused(*args, names=[words])


def test_models_near_what_was_typed(tmp_path):
    """A folder above the checkpoint, or one of nearly its name."""
    shutil.copytree(MODEL, tmp_path / "models/tiny-model")
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    for name in ("models", "models/", "models/tiny-modle", "./models/tiny-mode"):
        done = refused("run", "--model-name", name, "--prompt-text", "a", cwd=tmp_path, env=env)
        assert done.errors[0].endswith("did you mean models/tiny-model?"), done.text
    done = refused(
        "run", "--model-name", "models/other", "--prompt-text", "a", cwd=tmp_path, env=env
    )
    assert "did you mean" not in done.text
    done = refused(
        "run", "--model-name", "models", "--prompt-text", "a", "--json", cwd=tmp_path, env=env
    )
    assert done.json()["hint"] == "did you mean models/tiny-model?"


def test_a_prompt_file_of_plain_text(tmp_path):
    (tmp_path / "p.txt").write_text("ROMEO:\n")
    refused(
        "run",
        "--model-name",
        MODEL,
        "--prompt-file",
        tmp_path / "p.txt",
        names=["a text in quotes"],
    )
