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
        for path in re.findall(
            r"^    (/\S+)", output("ninja", "-C", build, "-t", "deps", *objects), re.M
        ):
            found.setdefault(os.path.realpath(path), HEADERS)
        link = output("ninja", "-C", build, "-t", "commands", target).splitlines()[-1]
        for path in re.findall(r"(/\S+\.(?:a|so[.0-9]*))(?=\s|$)", link):
            found[os.path.realpath(path)] = LINKED
    compiler = re.search(
        r"^CMAKE_CXX_COMPILER:\w+=(.*)", (build / "CMakeCache.txt").read_text(), re.M
    )[1]
    inner = ["libstdc++.a", "libgcc.a"] + ["libc.a", "libm.a"] * ("-static " in link)
    for library in inner:
        path = output(compiler, f"-print-file-name={library}").strip()
        found[os.path.realpath(path)] = LINKED
    inside = (str(ROOT) + "/", os.path.realpath(build) + "/")
    return {path: use for path, use in found.items() if not path.startswith(inside)}


def debian_packages(paths):
    """{path: package}, of those that dpkg knows."""
    found = {}
    paths = sorted(paths)
    for i in range(0, len(paths), 500):
        run = subprocess.run(["dpkg", "-S", *paths[i : i + 500]], capture_output=True, text=True)
        for line in run.stdout.splitlines():
            package, _, path = line.rpartition(": ")
            found[path] = package.split(",")[0].split(":")[0]
    return found


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


def components(build, targets):
    """Rows {name, source, version, use, text, purl} by name."""
    files = files_of(build, targets)
    packages, rows = debian_packages(files), {}
    for path, use in sorted(files.items()):
        if path in packages:
            name = packages[path]
            if name not in rows:
                form = "${source:Package} ${Version} ${Architecture}"
                source, version, arch = output("dpkg-query", "-W", "-f", form, name).split()
                rows[name] = {
                    "source": source,
                    "version": version,
                    "text": Path("/usr/share/doc", name, "copyright"),
                    "purl": f"pkg:deb/debian/{name}@{version}?arch={arch}",
                }
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
