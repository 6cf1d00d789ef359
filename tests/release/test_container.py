"""The container image: built without a registry, run without an engine, equal receipts."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "tools/release/container.sh"
WRAPPER = ROOT / "tools/release/invar-container.sh"
INVAR = os.environ.get("INVAR_BIN", str(ROOT / "build/bin/invar"))
MODEL = "/usr/share/invar/models/shakespeare-4m"
DEMO = ["--prompt-text", "ROMEO:", "--max-new-tokens", "64"]


@pytest.fixture(scope="module")
def image():
    for tool in ("buildah", "debootstrap", "unshare"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    if os.geteuid() != 0:
        pytest.skip("debootstrap needs root")
    tag = f"invar-test-{os.getpid()}"
    ids = [build(tag) for _ in range(2)]
    assert ids[0] == ids[1], "the same base and program gave two images"
    yield tag
    run(
        "bash",
        "-c",
        "buildah containers --format '{{.ContainerName}}' | grep '^invar-chroot-' | xargs -r buildah rm",
    )
    run("buildah", "rmi", tag)


def run(*command, cwd=None, env=None):
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True
    )


def build(tag):
    made = run(BUILD, "--base", "bootstrap", "--binary", INVAR, "--tag", tag)
    assert made.returncode == 0, made.stderr
    return made.stdout.split()[-1]


@pytest.fixture
def invar(image, tmp_path):
    """Calls the wrapper in a folder of an ordinary user."""
    folder = tmp_path / "work"
    folder.mkdir()
    os.chown(folder, 1234, 1234)
    for parent in [tmp_path, *tmp_path.parents][:-2]:
        if parent.stat().st_uid == 0 and parent != Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o055)
    settings = {
        "INVAR_IMAGE": image,
        "INVAR_ENGINE": "chroot",
        "INVAR_CACHE": str(tmp_path / "cache"),
    }

    def call(*arguments):
        return run(WRAPPER, *arguments, cwd=folder, env=settings)

    call.folder = folder
    return call


def test_receipts_inside_and_outside_are_equal(invar):
    inside = invar("run", "--model-name", MODEL, *DEMO, "--receipt-path", "inside.json")
    assert inside.returncode == 0, inside.stderr
    receipt = invar.folder / "inside.json"
    assert receipt.stat().st_uid == 1234
    outside = invar.folder / "outside.json"
    model = str(ROOT / "models/shakespeare-4m")
    done = run(INVAR, "run", "--model-name", model, *DEMO, "--receipt-path", outside)
    assert done.returncode == 0, done.stderr
    hashes = {json.loads(path.read_text())["receipt_hash"] for path in (receipt, outside)}
    assert len(hashes) == 1
    verified = invar("verify", "outside.json", "--model-name", MODEL)
    assert verified.returncode == 0 and verified.stdout.startswith("VERIFIED"), verified.stderr


def test_arguments_outside_of_the_folder_are_visible(invar, tmp_path):
    shutil.copytree(ROOT / "models/shakespeare-4m", tmp_path / "models/m")
    (tmp_path / "out").mkdir()
    os.chown(tmp_path / "out", 1234, 1234)
    receipt = tmp_path / "out/r.json"
    done = invar("run", f"--model-name={tmp_path}/models/m", "--prompt-text", "A", "--max-new-tokens", "2",
                 "--receipt-path", str(receipt))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert receipt.exists() and list((tmp_path / "models/m").iterdir())


def test_writes_only_where_it_may(invar, tmp_path):
    shutil.copytree(ROOT / "models/shakespeare-4m", tmp_path / "models/m")
    before = sorted(path.name for path in (tmp_path / "models/m").iterdir())
    refused = invar(
        "export", "--model-name", f"{tmp_path}/models/m", "-o", "/usr/share/invar/exported"
    )
    assert refused.returncode == 2 and "invar: " in refused.stderr
    denied = invar(
        "export", "--model-name", f"{tmp_path}/models/m", "-o", f"{tmp_path}/models/m/inner"
    )
    assert denied.returncode == 2, denied.stderr
    assert sorted(path.name for path in (tmp_path / "models/m").iterdir()) == before


def test_what_is_refused(invar, image, tmp_path):
    system = run(
        WRAPPER, "--version", cwd="/usr", env={"INVAR_IMAGE": image, "INVAR_ENGINE": "chroot"}
    )
    assert system.returncode == 2 and "call it from a folder of yours" in system.stderr
    absent = run(
        WRAPPER, "--version", cwd=tmp_path, env={"INVAR_IMAGE": "no-such", "INVAR_ENGINE": "chroot"}
    )
    assert absent.returncode == 2 and "tools/release/container.sh builds it" in absent.stderr
    engine = run(WRAPPER, "--version", cwd=tmp_path, env={"INVAR_ENGINE": "magic"})
    assert engine.returncode == 2 and "podman, docker or chroot" in engine.stderr
    bad = invar("run", "--model-name", "./absent", "--prompt-text", "A")
    assert bad.returncode == 2 and "absent" in bad.stderr


@pytest.mark.parametrize(
    "arguments,given",
    [
        (["--model-name", "m", "--cpu-only"], "run-all --model-name m --cpu-only"),
        (["--cpu-only"], "run-all --cpu-only"),
        (["-q", "--progress", "lines", "--seed", "3"], "-q --progress lines run-all --seed 3"),
        (["--color=never"], "--color=never run-all"),
        (["verify", "r.json"], "verify r.json"),
        (["-q", "verify", "r.json"], "-q verify r.json"),
        (["--version"], "--version"),
        (["--progress", "none", "--help"], "--progress none --help"),
    ],
)
def test_options_without_a_command_are_those_of_run_all(arguments, given, tmp_path):
    """As REE's script has it; what the engine gets is what is looked at."""
    engine = tmp_path / "bin/podman"
    engine.parent.mkdir()
    engine.write_text(
        '#!/bin/sh\nfor a in "$@"; do last="$last $a"; done; echo "${last#* IMAGE }"\n'
    )
    engine.chmod(0o755)
    settings = {"PATH": f"{engine.parent}:{os.environ['PATH']}", "INVAR_ENGINE": "podman"}
    settings |= {"INVAR_IMAGE": "IMAGE", "INVAR_CACHE": str(tmp_path / "cache")}
    done = run(WRAPPER, *arguments, cwd=tmp_path, env=settings)
    assert done.returncode == 0 and done.stdout.strip() == given, done.stderr


@pytest.mark.parametrize("arguments", [["--base"], ["--binary", "/absent"], ["--what"]])
def test_bad_arguments_of_the_build(arguments):
    if not shutil.which("buildah"):
        pytest.skip("buildah is not installed")
    made = run(BUILD, *arguments)
    assert made.returncode == 2 and made.stderr.count("\n") == 1, made.stderr


def test_it_says_what_is_in_the_program(image):
    """The bill of materials, where ninja has built the program."""
    if not Path(INVAR).parents[1].joinpath("build.ninja").exists():
        pytest.skip("ninja did not build the program")
    command = (
        'c=$(buildah from --pull-never "$0") && cat "$(buildah mount "$c")$1"; buildah rm "$c" >&2'
    )
    shown = run("bash", "-c", command, image, "/usr/share/doc/invar/sbom.cdx.json")
    assert "libmlir-19-dev" in {c["name"] for c in json.loads(shown.stdout)["components"]}
