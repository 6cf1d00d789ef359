#!/usr/bin/env python3
"""Lays out a wheel: what tools/release/build.sh staged, with the metadata of pyproject.toml.

wheel.py STAGE MODULE TAG [LABEL]    STAGE/package with the module of STAGE/MODULE, and
                                     STAGE/program -> STAGE/wheel, which archive.py packs

LABEL is that of a local version: 0.1.0+LABEL."""

import re
import shutil
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]


def requirement(text, extra=""):
    return f"Requires-Dist: {text}" + (f"; extra == '{extra}'" if extra else "")


def metadata(project, version, python):
    """Core metadata 2.2. `python`: the requires-python of this wheel."""
    lines = ["Metadata-Version: 2.2", f"Name: {project['name']}", f"Version: {version}"]
    lines += [f"Summary: {project['description']}", f"Requires-Python: {python}"]
    lines += [requirement(text) for text in project["dependencies"]]
    for extra, texts in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(requirement(text, extra) for text in texts)]
    lines += ["License: Apache-2.0", "Description-Content-Type: text/markdown", ""]
    return "\n".join(lines) + "\n" + (ROOT / project["readme"]).read_text()


def requires_python(tag):
    """Of a tag such as cp311-cp311-..., which is for one version, or cp312-abi3-..., for all from
    it."""
    minor = int(re.match(r"cp3(\d+)-", tag)[1])
    return f">=3.{minor}" if "-abi3-" in tag else f">=3.{minor},<3.{minor + 1}"


def version_of(cmake, label):
    number = re.search(r"project\(invar VERSION ([0-9.]+)", cmake)[1]
    return f"{number}+{label}" if label else number


def main(stage, module, tag, label=""):
    folder = stage / "wheel"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = version_of((ROOT / "CMakeLists.txt").read_text(), label)
    name = f"{project['name']}-{version}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(stage / "package", folder)
    for file in (folder / "invar").glob("_native*.so"):
        file.unlink()
    for file in (stage / module / "invar").glob("_native*.so"):
        shutil.copy(file, folder / "invar")
    data, info = folder / f"{name}.data", folder / f"{name}.dist-info"
    shutil.copytree(stage / "program/bin", data / "scripts")
    shutil.copytree(stage / "program/share/invar", data / "data/share/invar")
    shutil.copytree(stage / "program/share/man", data / "data/share/man")
    shutil.copytree(stage / "program/share/doc/invar/licenses", info / "licenses")
    shutil.copy(ROOT / "LICENSE", info / "licenses/LICENSE")
    (info / "sboms").mkdir()  # PEP 770
    shutil.copy(stage / "program/share/doc/invar/sbom.cdx.json", info / "sboms")
    (info / "METADATA").write_text(metadata(project, version, requires_python(tag)))
    wheel = [
        "Wheel-Version: 1.0",
        "Generator: tools/release",
        "Root-Is-Purelib: false",
        f"Tag: {tag}",
    ]
    (info / "WHEEL").write_text("\n".join(wheel) + "\n")


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), *sys.argv[2:])
