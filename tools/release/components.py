#!/usr/bin/env python3
"""What of others is in the programs of a build: a bill of materials and the texts of the licences.

components.py BUILD FOLDER [TARGET...]    writes FOLDER/sbom.cdx.json (CycloneDX 1.6) and
                                          FOLDER/licenses/NAME; TARGET: invar, invar-tui, ...

The lists come from ninja: the archives that the targets are linked with, and the headers that their
objects were compiled from. dpkg and pip name the packages of these files. SOURCE_DATE_EPOCH is the
time in the file. Exit code 1: a package whose licence SPDX has no row here."""

import json
import os
import re
import subprocess
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Source package of Debian, or distribution of PyPI -> licence of what a program holds of it.
SPDX = {
    "boost1.74": "BSL-1.0",
    "boost1.83": "BSL-1.0",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "gcc-12-cross": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "gcc-13": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "cross-toolchain-base": "LGPL-2.1-or-later",  # glibc and the headers of Linux
    "cuda": "LicenseRef-NVIDIA-CUDA-EULA",  # the static runtime, which it lets others distribute
    "glibc": "LGPL-2.1-or-later",
    "libzstd": "BSD-3-Clause",
    "linux": "GPL-2.0-only WITH Linux-syscall-note",
    "llvm-toolchain-19": "Apache-2.0 WITH LLVM-exception",
    "nanobind": "BSD-3-Clause",
    "ncurses": "X11-distribute-modifications-variant",
    "openssl": "Apache-2.0",
    "protobuf": "BSD-3-Clause",
    "zlib": "Zlib",
}
LINKED, HEADERS = "linked", "headers"


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def files_of(build, targets):
    """{path outside of the checkout and the build: LINKED or HEADERS}."""
    found = {}
    for target in targets:
        inputs = output("ninja", "-C", build, "-t", "inputs", target).splitlines()
        objects = [path for path in inputs if path.endswith(".o")]
        for path in re.findall(  # ccache makes those of this checkout relative
            r"^    (\S+)", output("ninja", "-C", build, "-t", "deps", *objects), re.M
        ):
            found.setdefault(os.path.realpath(build / path), HEADERS)
        link = output("ninja", "-C", build, "-t", "commands", target).splitlines()[-1]
        for path in re.findall(r"(/\S+\.(?:a|so[.0-9]*))(?=\s|$)", link):
            found[os.path.realpath(path)] = LINKED
    (found_by_cmake,) = build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")
    compiler = re.search(r'CMAKE_CXX_COMPILER "(.*)"', found_by_cmake.read_text())[1]
    inner = ["libstdc++.a", "libgcc.a"] + ["libc.a", "libm.a"] * ("-static " in link)
    for library in inner:
        path = output(compiler, f"-print-file-name={library}").strip()
        found[os.path.realpath(path)] = LINKED
    inside, root = (str(ROOT) + "/", os.path.realpath(build) + "/"), sysroot(build)

    def foreign(path):
        return not path.startswith(inside) or (root and path.startswith(root + "/"))

    return {path: use for path, use in found.items() if foreign(path)}


def sysroot(build):
    """Where the packages of a cross build lie, which tools/release/packages.sh unpacked: a real
    path, or nothing."""
    cache = (build / "CMakeCache.txt").read_text()
    found = re.search(r"^INVAR_SYSROOT:\w+=(.+)", cache, re.M)
    return os.path.realpath(found[1]) if found else ""


def debian_packages(paths, root=""):
    """{path: package}, of those below `root` that its dpkg knows."""
    found = {}
    paths = sorted(path.removeprefix(root) for path in paths if path.startswith(root + "/"))
    for i in range(0, len(paths), 500):
        command = ["dpkg", f"--admindir={root}/var/lib/dpkg", "-S", *paths[i : i + 500]]
        run = subprocess.run(command, capture_output=True, text=True)
        for line in run.stdout.splitlines():
            package, _, path = line.rpartition(": ")
            found[root + path] = package.split(",")[0].split(":")[0]
    return found


def package_row(name, root):
    """What dpkg and the texts below `root` say of a package."""
    query = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W"]
    form = "${source:Package} ${Version} ${Architecture}"
    source, version, arch = output(*query, "-f", form, name).split()
    return {
        "source": source,
        "version": version,
        "text": Path(f"{root}/usr/share/doc", name, "copyright"),
        "purl": f"pkg:deb/debian/{name}@{version}?arch={arch}",
    }


def distribution(path):
    """(name, version, licence file) of the file's distribution of PyPI; None: it has none."""
    if "/site-packages/" not in path:
        return None
    folder, _, inner = path.partition("/site-packages/")
    name = inner.split("/")[0]
    for info in Path(folder, "site-packages").glob(f"{name}-*.dist-info"):
        version = info.name.removesuffix(".dist-info").rpartition("-")[2]
        return name, version, next(info.rglob("LICENSE*"))
    return None


def cuda_toolkit(path):
    """The row of NVIDIA's toolkit, whichever way it was installed, if the file is one of its."""
    folders = [p for p in Path(path).parents if (p / "include/cuda_runtime_api.h").is_file()]
    if not folders or folders[0] == Path("/usr"):  # there dpkg knows it
        return None
    folder, form = folders[0], "nvidia_cuda_runtime*.dist-info/**/License.txt"
    header = (folder / "include/cuda_runtime_api.h").read_text(errors="replace")
    number = int(re.search(r"#define CUDART_VERSION\s+(\d+)", header)[1])
    version = f"{number // 1000}.{number % 1000 // 10}"
    places = [(folder, "EULA.txt"), (folder, "doc/EULA.txt"), (folder, "*/" + form)]
    places += [(parent, form) for parent in folder.parents[:2]]
    for place, name in places:
        for text in place.glob(name):
            purl = f"pkg:generic/nvidia/cuda-runtime@{version}"
            return {"source": "cuda", "version": version, "text": text, "purl": purl}
    sys.exit(f"components.py: {folder} has no EULA.txt, the licence of CUDA's runtime")


def components(build, targets):
    """Rows {name, source, version, use, text, purl} by name."""
    files, rows, packages = files_of(build, targets), {}, {}
    for root in ("", sysroot(build)):
        packages |= {path: (name, root) for path, name in debian_packages(files, root).items()}
    for path, use in sorted(files.items()):
        if toolkit := cuda_toolkit(path):
            rows.setdefault(name := "cuda-runtime", toolkit)
        elif path in packages:
            name, root = packages[path]
            if name not in rows:
                rows[name] = package_row(name, root)
        elif known := distribution(path):
            name, version, text = known
            purl = f"pkg:pypi/{name}@{version}"
            rows.setdefault(name, {"source": name, "version": version, "text": text, "purl": purl})
            use = LINKED  # nanobind is compiled into the module
        else:  # Python's own headers, which are of the machine's Python: a module holds no code of it
            continue
        rows[name]["use"] = LINKED if LINKED in (use, rows[name].get("use")) else HEADERS
    return dict(sorted(rows.items()))


def bill(rows, version, epoch):
    """CycloneDX 1.6."""
    listed = [
        {
            "type": "library",
            "bom-ref": row["purl"],
            "name": name,
            "version": row["version"],
            "purl": row["purl"],
            "licenses": [{"expression": SPDX[row["source"]]}],
            "properties": [{"name": "invar:use", "value": row["use"]}],
        }
        for name, row in rows.items()
    ]
    subject = {"type": "application", "bom-ref": "invar", "name": "invar", "version": version}
    subject["licenses"] = [{"expression": "Apache-2.0"}]
    made = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = json.dumps([subject, listed, made], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}",
        "version": 1,
        "metadata": {"timestamp": made, "component": subject},
        "components": listed,
        "dependencies": [{"ref": "invar", "dependsOn": [c["bom-ref"] for c in listed]}],
    }


def main(build, folder, targets):
    rows = components(build, targets)
    unknown = sorted({r["source"] for r in rows.values()} - SPDX.keys())
    if unknown:
        sys.exit(f"components.py: no licence is known of {', '.join(unknown)}: add a row to SPDX")
    licenses = folder / "licenses"
    licenses.mkdir(parents=True, exist_ok=True)
    for name, row in rows.items():
        (licenses / name).write_bytes(row["text"].read_bytes())
    version = re.search(r"project\(invar VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[
        1
    ]
    made = bill(rows, version, int(os.environ["SOURCE_DATE_EPOCH"]))
    (folder / "sbom.cdx.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or ["invar"])
