"""Workers on other hosts: Open MPI starts them by ssh, which here is a script that plays several
hosts on this machine (fake_ssh.sh). What is missing or different on one is named before anything
runs."""

import json
import os
import pathlib
import shutil
import socket
import subprocess

import pytest
from conftest import BIN, MODEL, SHARDS

INVAR = pathlib.Path(BIN)
HOST = socket.gethostname()
FAKE_SSH = pathlib.Path(__file__).with_name("fake_ssh.sh")


def names_its_host():
    tried = subprocess.run(
        [FAKE_SSH, "other", "hostname"],
        capture_output=True,
        text=True,
        env={**os.environ, "FAKE_HOSTS": "/nonexistent"},
    )
    return tried.stdout == "other\n"


if not shutil.which("mpirun") or not (INVAR.parent / "libinvar_mpi.so").exists():
    pytest.skip("no MPI here", allow_module_level=True)
if not names_its_host():
    pytest.skip("no namespaces here: unshare needs root", allow_module_level=True)


class Hosts:
    """A model of this machine, and what its other hosts have in its place."""

    def __init__(self, folder):
        self.folder, self.model = folder, folder / "model"
        self.scripts = folder / "hosts"
        self.scripts.mkdir()
        shutil.copytree(MODEL, self.model)

    def on(self, host, *lines):
        (self.scripts / f"{host}.sh").write_text("\n".join(lines) + "\n")

    def mount(self, host, *pairs):
        self.on(host, *(f"mount --bind '{what}' '{where}'" for what, where in pairs))

    def run(self, *options, hosts="", receipt="receipt.json", program=INVAR):
        command = [program, "run", "--model-name", self.model, "--prompt-text", "ROMEO:"]
        command += [
            "--max-new-tokens",
            "8",
            "--tasks-root",
            self.folder / "tasks",
            "--threads",
            "1",
        ]
        command += ["--receipt-path", self.folder / receipt, *options]
        if hosts:
            command += ["--workers", hosts, "--n-partitions", str(hosts.count(",") + 1)]
        environment = {"OMPI_MCA_plm_rsh_agent": str(FAKE_SSH), "FAKE_HOSTS": str(self.scripts)}
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
        )

    def refusal(self, code, *options, hosts):
        """The one line of a run that must not begin."""
        receipt = self.folder / "refused.json"
        done = self.run(*options, hosts=hosts, receipt=receipt.name)
        assert done.returncode == code, done.stderr
        assert not done.stdout and not receipt.exists()
        lines = [one for one in done.stderr.splitlines() if one.startswith("invar: ")]
        assert len(lines) == 1, done.stderr
        return lines[0]


@pytest.fixture
def hosts(tmp_path):
    return Hosts(tmp_path)


def test_the_receipt_is_that_of_one_host(hosts):
    assert hosts.run(receipt="alone.json").returncode == 0
    for n, names in enumerate((f"{HOST},nodeb,nodec", "nodea,nodeb")):
        done = hosts.run(hosts=names, receipt=f"{n}.json")
        assert done.returncode == 0, done.stderr
        receipt = json.loads((hosts.folder / f"{n}.json").read_text())
        alone = json.loads((hosts.folder / "alone.json").read_text())
        assert receipt["receipt_hash"] == alone["receipt_hash"]
        assert "worker 1 on nodeb" in receipt["execution"]["placement"]


def test_another_host_needs_the_checkpoint_alone(hosts):
    """No task folder there; the checkpoint at the same path, or where --worker-model says."""
    other, empty = hosts.folder / "other", hosts.folder / "empty"
    shutil.copytree(MODEL, other)
    empty.mkdir()
    assert hosts.run(receipt="alone.json").returncode == 0
    alone = json.loads((hosts.folder / "alone.json").read_text())["receipt_hash"]
    tasks = hosts.folder / "tasks"
    hosts.mount("nodeb", (empty, tasks), (other, hosts.model))
    done = hosts.run(hosts=f"{HOST},nodeb")
    assert done.returncode == 0, done.stderr
    assert json.loads((hosts.folder / "receipt.json").read_text())["receipt_hash"] == alone
    hosts.mount("nodeb", (empty, tasks), (empty, hosts.model))
    line = hosts.refusal(2, hosts=f"{HOST},nodeb")
    assert line.startswith(f"invar: worker 1 on nodeb has no file {hosts.model}/model-")
    done = hosts.run("--worker-model", other, hosts=f"{HOST},nodeb")
    assert done.returncode == 0, done.stderr
    assert json.loads((hosts.folder / "receipt.json").read_text())["receipt_hash"] == alone


def test_other_weights_on_one_host_are_named(hosts):
    other = hosts.folder / "other"
    shutil.copytree(MODEL, other)
    content = bytearray((other / SHARDS[-1]).read_bytes())
    content[-100] ^= 1
    (other / SHARDS[-1]).write_bytes(content)
    hosts.mount("nodeb", (other, hosts.model))
    line = hosts.refusal(1, hosts=f"{HOST},nodeb")
    assert line.startswith("invar: worker 1 on nodeb: weight ") and SHARDS[-1] in line
    assert "the plan says" in line


def test_another_version_on_one_host_is_named(hosts):
    version = subprocess.run([INVAR, "--version"], capture_output=True, text=True).stdout.split()[1]
    program = hosts.folder / "invar-of-another-version"
    other = version[:-1] + ("8" if version[-1] != "8" else "7")
    content = INVAR.read_bytes()
    changed = content.replace(f"\0{version}\0".encode(), f"\0{other}\0".encode())
    assert changed != content
    program.write_bytes(changed)
    program.chmod(0o755)
    hosts.mount("nodeb", (program, INVAR))
    line = hosts.refusal(2, hosts=f"{HOST},nodeb")
    assert line == (
        f"invar: worker 1 on nodeb has Invar {other}, and the run has {version}: install the same on both"
    )


def test_a_host_without_invar_or_without_ssh_is_named(hosts):
    hosts.on("nodeb", f"mount --bind /dev/null '{INVAR}'")
    line = hosts.refusal(2, hosts=f"{HOST},nodeb")
    assert "nodeb" in line and str(INVAR) in line
    hosts.on(
        "nodeb", "echo 'ssh: connect to host nodeb port 22: Connection refused' >&2", "exit 255"
    )
    line = hosts.refusal(2, hosts=f"{HOST},nodeb")
    assert line.startswith("invar: --workers: a host cannot be reached")
