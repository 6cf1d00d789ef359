"""What tools/release makes: archives that are equal wherever they are made, a program that finds
the model installed with it, sums that a stranger can check."""

import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import BIN, BUILD, MODEL, ROOT

RELEASE = ROOT / "tools/release"
sys.path.insert(0, str(RELEASE))
import components  # noqa: E402
import symbols  # noqa: E402
import wheel  # noqa: E402

VERSION = re.search(r"project\(invar VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
EPOCH = {**os.environ, "SOURCE_DATE_EPOCH": "1700000001"}
DEMO = "e8032411df4cf61c8e2cebf9b15e3e447aa0a5ce9d05b77ac5073e76f003765a"


def archive(*args, env=EPOCH):
    command = [sys.executable, "-B", str(RELEASE / "archive.py"), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, env=env)


def write_tree(folder, names, executable=()):
    """Files whose content is their name, made in this order, each at a time of its own."""
    for i, name in enumerate(names):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        file.chmod(0o700 if name in executable else 0o600)
        os.utime(file, (i, i))
    return folder


NAMES = ["bin/invar", "share/b", "share/a", "DEBIAN/control"]


@pytest.mark.parametrize("kind, file", [("tar", "x.tar.xz"), ("deb", "x.deb")])
def test_an_archive_depends_on_its_files_alone(kind, file, tmp_path):
    made = []
    for name, names in {"one": NAMES, "other": NAMES[::-1]}.items():
        tree = write_tree(tmp_path / name / "tree", names, ["bin/invar"])
        assert archive(kind, tree, tmp_path / name / file).returncode == 0
        made.append((tmp_path / name / file).read_bytes())
    assert made[0] == made[1]
    data = made[0]
    if kind == "deb":
        assert data.startswith(b"!<arch>\ndebian-binary   1700000001  ")
        data = data[data.index(b"data.tar.xz") + 60 :]
    with tarfile.open(fileobj=io.BytesIO(lzma.LZMADecompressor().decompress(data))) as found:
        rows = {m.name: (m.mode, m.mtime, m.uid, m.uname) for m in found.getmembers() if m.isfile()}
        top = "." if kind == "deb" else "x"
        assert found.extractfile(f"{top}/share/a").read() == b"share/a"
    assert rows[f"{top}/bin/invar"] == (0o755, 1700000001, 0, "root")
    assert rows[f"{top}/share/b"] == (0o644, 1700000001, 0, "root")
    assert (f"{top}/DEBIAN/control" in rows) == (kind == "tar")
    (tmp_path / "one/tree/share/a").write_text("another")
    archive(kind, tmp_path / "one/tree", tmp_path / "one" / file)
    assert (tmp_path / "one" / file).read_bytes() != made[0]


def test_dpkg_reads_the_package(tmp_path):
    tree = write_tree(tmp_path / "tree", ["usr/bin/invar"], ["usr/bin/invar"])
    (tree / "DEBIAN").mkdir()
    fields = (
        "Package: invar\nVersion: 1-1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: x\n"
    )
    (tree / "DEBIAN/control").write_text(fields)
    assert archive("deb", tree, tmp_path / "x.deb").returncode == 0
    shown = subprocess.run(
        ["dpkg-deb", "--info", tmp_path / "x.deb"], capture_output=True, text=True
    )
    assert shown.returncode == 0 and "Version: 1-1" in shown.stdout
    subprocess.run(["dpkg-deb", "--extract", tmp_path / "x.deb", tmp_path / "out"], check=True)
    assert (tmp_path / "out/usr/bin/invar").read_text() == "usr/bin/invar"


def test_what_is_no_file_is_refused(tmp_path):
    tree = write_tree(tmp_path / "tree", ["a"])
    without = archive("tar", tree, tmp_path / "x.tar.xz", env={"PATH": os.environ["PATH"]})
    assert without.returncode == 1 and "SOURCE_DATE_EPOCH is not set" in without.stderr
    (tree / "link").symlink_to("a")
    linked = archive("tar", tree, tmp_path / "x.tar.xz")
    assert linked.returncode == 1 and "link: neither a file nor a folder" in linked.stderr


def stage(folder, names):
    write_tree(folder, names, ["program/bin/invar"])
    (folder / "program/bin/invar").write_text("#!/bin/sh\necho the program\n")
    (folder / "program/share/doc/invar/sbom.cdx.json").write_text("{}")
    return folder


def test_a_wheel(tmp_path):
    """It is equal wherever it is made, pip installs it, and its list of files is right."""
    names = [
        "package/invar/__init__.py",
        "package/invar/_native.cpython-311-x86_64-linux-gnu.so",
        "abi3/invar/_native.abi3.so",
        "program/bin/invar",
        "program/share/invar/models/m/config.json",
        "program/share/man/man1/invar.1",
        "program/share/doc/invar/licenses/zlib1g-dev",
        "program/share/doc/invar/sbom.cdx.json",
    ]
    file = f"invar-{VERSION}-cp312-abi3-manylinux_2_34_x86_64.whl"
    made = []
    for name, order in {"one": names, "other": names[::-1]}.items():
        wheel.main(stage(tmp_path / name, order), "abi3", "cp312-abi3-manylinux_2_34_x86_64")
        done = archive("wheel", tmp_path / name / "wheel", tmp_path / name)
        assert done.returncode == 0 and done.stdout.strip() == str(tmp_path / name / file)
        made.append((tmp_path / name / file).read_bytes())
    assert made[0] == made[1]
    with zipfile.ZipFile(tmp_path / "one" / file) as found:
        members = found.namelist()
        info = f"invar-{VERSION}.dist-info"
        metadata = found.read(f"{info}/METADATA").decode()
        assert found.getinfo(f"invar-{VERSION}.data/scripts/invar").external_attr >> 16 == 0o100755
    assert [m for m in members if "_native" in m] == ["invar/_native.abi3.so"]
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/zlib1g-dev"} < set(members)
    assert "\nRequires-Python: >=3.12\n" in metadata and "\nRequires-Dist: numpy>=2\n" in metadata
    wheel.main(tmp_path / "other", "package", "cp311-cp311-manylinux_2_34_x86_64", "cu13")
    done = archive("wheel", tmp_path / "other/wheel", tmp_path)
    assert done.stdout.strip().endswith(
        f"/invar-{VERSION}+cu13-cp311-cp311-manylinux_2_34_x86_64.whl"
    )
    pure = tmp_path / f"invar-{VERSION}-py3-none-any.whl"  # a name that every Python takes
    shutil.copy(tmp_path / "one" / file, pure)
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    install += ["--ignore-requires-python", "--prefix", tmp_path / "prefix", pure]
    subprocess.run([*map(str, install)], check=True, capture_output=True)
    program = tmp_path / "prefix/bin/invar"
    assert subprocess.run([program], capture_output=True, text=True).stdout == "the program\n"
    assert (tmp_path / "prefix/share/invar/models/m/config.json").is_file()


def test_symbols_beyond_manylinux_are_named():
    found = symbols.wrong(Path(BIN))  # linked for this machine
    assert found and all(re.search(r": \S+ is of [A-Z]+_[0-9.]+$|: needs ", line) for line in found)


@pytest.fixture
def installed(tmp_path):
    """A program with the shipped model, as in PREFIX of an installation."""
    for folder in ("bin", "share/invar/models", "work"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(BIN, tmp_path / "bin/invar")
    (tmp_path / "share/invar/models/shakespeare-4m").symlink_to(MODEL)
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    env |= {"XDG_STATE_HOME": str(tmp_path / "state")}

    def run(*args):
        command = [str(tmp_path / "bin/invar"), *args]
        return subprocess.run(
            command, cwd=tmp_path / "work", env=env, capture_output=True, text=True
        )

    run.folder = tmp_path
    return run


def test_the_model_that_is_installed(installed):
    run = ["run", "--prompt-text", "ROMEO:", "--max-new-tokens", "64", "--receipt-path", "r.json"]
    for name in ("shakespeare-4m", "models/shakespeare-4m"):
        done = installed(*run, "--model-name", name)
        assert done.returncode == 0 and DEMO in done.stderr, done.stderr
    # A person to whom the receipt is sent has nothing but the installation.
    shutil.rmtree(installed.folder / "cache"), shutil.rmtree(installed.folder / "state")
    done = installed("verify", "r.json")
    assert done.returncode == 0 and "the model that ships with Invar" in done.stderr + done.stdout
    # A folder of the person's own goes before it, and a name that is not installed is refused.
    (installed.folder / "work/shakespeare-4m").mkdir()
    assert installed(*run, "--model-name", "shakespeare-4m").returncode == 2
    for name in ("models/..", "shakespeare", "../models/shakespeare-4m"):
        done = installed(*run, "--model-name", name)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr


def test_sums_and_their_signature(tmp_path):
    write_tree(tmp_path / "dist", ["b.whl", "a.deb"])
    subprocess.run([BIN, "keygen", tmp_path / "key"], check=True, capture_output=True)
    sums = [RELEASE / "sums.sh", "--key", tmp_path / "key", tmp_path / "dist"]
    subprocess.run(sums, check=True, capture_output=True)
    text = (tmp_path / "dist/SHA256SUMS").read_text()
    assert [line.split()[1] for line in text.splitlines()] == ["a.deb", "b.whl"]
    usage = subprocess.run([RELEASE / "sums.sh", "--help"], capture_output=True, text=True).stdout
    check = re.search(r"openssl .*SHA256SUMS\.sig", usage)[0].split()
    assert (tmp_path / "key.pub").read_text() == (tmp_path / "dist/SHA256SUMS.pub").read_text()
    for changed, code in ((text, 0), (text.replace("a.deb", "c.deb"), 1)):
        (tmp_path / "dist/SHA256SUMS").write_text(changed)
        done = subprocess.run(check, cwd=tmp_path / "dist", capture_output=True)
        assert done.returncode == code
    (tmp_path / "empty").mkdir()
    empty = subprocess.run(
        [RELEASE / "sums.sh", tmp_path / "empty"], capture_output=True, text=True
    )
    assert empty.returncode == 2 and "holds no artefacts" in empty.stderr


def test_the_bill_of_materials(tmp_path, monkeypatch):
    """It names what the program is linked with, and brings each licence."""
    if not (BUILD / "build.ninja").exists() or not shutil.which("ninja"):
        pytest.skip("this build was not made by ninja")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000001")
    rows = components.components(BUILD, ["invar"])
    monkeypatch.setattr(components, "components", lambda build, targets: rows)
    components.main(BUILD, tmp_path, ["invar"])
    bill = json.loads((tmp_path / "sbom.cdx.json").read_text())
    use = {c["name"]: c["properties"][0]["value"] for c in bill["components"]}
    assert use["libmlir-19-dev"] == use["libssl-dev"] == use["zlib1g-dev"] == "linked"
    assert all(c["licenses"][0]["expression"] for c in bill["components"])
    assert {f.name for f in (tmp_path / "licenses").iterdir()} == set(use)
    assert "LLVM Exceptions" in (tmp_path / "licenses/libmlir-19-dev").read_text()
    monkeypatch.delitem(components.SPDX, "zlib")
    with pytest.raises(SystemExit, match="no licence is known of zlib: add a row"):
        components.main(BUILD, tmp_path, ["invar"])


def test_the_bill_of_a_cross_build():
    """Its compiler is that of the toolchain, and a static program holds the C library."""
    build = BUILD / "aarch64"
    if not (build / "build.ninja").exists():
        pytest.skip("./setup.sh test makes build/aarch64 on x86-64")
    rows = components.components(build, ["invar"])
    use = {name: row["use"] for name, row in rows.items()}
    assert use["libc6-dev-arm64-cross"] == use["libstdc++-12-dev-arm64-cross"] == "linked"
    assert {row["source"] for row in rows.values()} <= components.SPDX.keys()


def test_packages_of_another_processor(tmp_path, monkeypatch):
    """packages.sh unpacks what apt fetches, and the bill of materials names it from there."""
    tree = write_tree(tmp_path / "tree", ["usr/lib/libx.a", "usr/share/doc/x-dev/copyright"])
    (tree / "DEBIAN").mkdir()
    fields = "Package: x-dev\nSource: x\nVersion: 2-1\nArchitecture: arm64\nMaintainer: a <a@b.c>\n"
    (tree / "DEBIAN/control").write_text(fields + "Depends: absent\nDescription: x\n")
    assert archive("deb", tree, tmp_path / "x.deb").returncode == 0
    apt = tmp_path / "bin/apt-get"  # it fetches the file above, and writes down what it was asked
    apt.parent.mkdir()
    apt.write_text(f"""#!/bin/sh
case "$*" in
  indextargets*) printf 'http://a Debian\\nhttp://b Debian-Security\\nhttp://c Debian Backports\\n' ;;
  *update) cat "$(dirname "$PWD")/apt/sources.list" >>{tmp_path}/asked ;;
  *download*) echo "$*" >>{tmp_path}/asked; cp {tmp_path}/x.deb . ;;
esac
""")
    apt.chmod(0o755)
    root = tmp_path / "root"
    command = [RELEASE / "packages.sh", root, "bookworm", "arm64", "x-dev"]
    env = {**os.environ, "PATH": f"{apt.parent}:{os.environ['PATH']}"}
    for _ in range(2):  # the second time nothing is left to do
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stderr
    *sources, download = (tmp_path / "asked").read_text().splitlines()
    assert [line.split("] ")[1] for line in sources] == [
        "http://a bookworm main",
        "http://b bookworm-security main",
    ]
    assert "APT::Architecture=arm64" in download and download.endswith(" download x-dev")
    assert (root / "usr/lib/libx.a").read_text() == "usr/lib/libx.a"
    build = tmp_path / "build"
    build.mkdir()
    (build / "CMakeCache.txt").write_text(f"INVAR_SYSROOT:UNINITIALIZED={root}\n")
    library = str(root / "usr/lib/libx.a")
    monkeypatch.setattr(components, "files_of", lambda build, targets: {library: "linked"})
    monkeypatch.setitem(components.SPDX, "x", "Zlib")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000001")
    components.main(build, tmp_path, ["invar"])
    (row,) = json.loads((tmp_path / "sbom.cdx.json").read_text())["components"]
    assert row["purl"] == "pkg:deb/debian/x-dev@2-1?arch=arm64"
    assert (tmp_path / "licenses/x-dev").read_text() == "usr/share/doc/x-dev/copyright"


def test_the_runtime_of_cuda_is_named(tmp_path):
    """It is linked into what `build.sh --cuda` makes, and dpkg does not know it."""
    for name in ("cuda/lib/libcudart_static.a", "cuda/include/cuda_runtime_api.h", "other/lib/x.a"):
        write_tree(tmp_path, [name])
    (tmp_path / "cuda/include/cuda_runtime_api.h").write_text("#define CUDART_VERSION  13020\n")
    library = str(tmp_path / "cuda/lib/libcudart_static.a")
    assert components.cuda_toolkit(str(tmp_path / "other/lib/x.a")) is None
    with pytest.raises(SystemExit, match=r"cuda has no EULA\.txt"):
        components.cuda_toolkit(library)
    for name in ("cuda/doc/EULA.txt", "nvidia_cuda_runtime-13.2.dist-info/licenses/License.txt"):
        write_tree(tmp_path, [name])
        row = components.cuda_toolkit(library)
        assert row["version"] == "13.2" and row["text"].read_text() == name
        assert row["source"] in components.SPDX
        (tmp_path / name).unlink()


@pytest.mark.parametrize(
    "options, words",
    [
        (["--gpus", "90"], ["--gpus needs --cuda"]),
        (["--cuda", "nvcc", "--gpus", "hopper"], ["hopper", "80-real;90"]),
        (["--cuda"], ["--cuda needs a value"]),
    ],
)
def test_kernels_for_some_gpus(options, words):
    done = subprocess.run([RELEASE / "build.sh", *options], capture_output=True, text=True)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert all(word in done.stderr for word in words)


def test_the_version_is_everywhere():
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()
    assert (ROOT / f"docs/releases/{VERSION}.md").is_file()


# --- whole builds: tier 3 -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """The artefacts of this commit, built in two folders of different depth."""
    if subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True).returncode:
        pytest.skip("no repository")
    folders = [tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two") / "deeper/still"]
    for folder in folders:
        subprocess.run(["git", "clone", "-q", ROOT, folder], check=True)
        subprocess.run(["tools/release/all.sh", "--abi3", "auto"], cwd=folder, check=True)
    return [folder / "build-release/dist" for folder in folders]


def test_two_builds_are_equal(releases):
    one, two = ((dist / "SHA256SUMS").read_text() for dist in releases)
    assert one == two and len(one.splitlines()) >= 5


def test_a_fresh_system_runs_them(releases):
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("debootstrap needs root")
    done = subprocess.run([RELEASE / "smoke_test.sh", releases[0]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {row[1] for row in rows} >= {"deb", "archive"} and {row[2] for row in rows} == {DEMO}
