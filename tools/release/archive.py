#!/usr/bin/env python3
"""Archives whose bytes depend on names, contents and execute permissions of files alone.

archive.py tar FOLDER FILE.tar.xz    the folder's files below a folder of the archive's name
archive.py wheel FOLDER DIST         a wheel; FOLDER/*.dist-info has its name, version and tag
archive.py deb FOLDER FILE.deb       a Debian package; FOLDER/DEBIAN has its control files

SOURCE_DATE_EPOCH is the time of every member. Members are sorted, belong to root, and are readable
by all. A link is refused: wheels have none."""

import base64
import hashlib
import io
import lzma
import os
import sys
import tarfile
import time
import zipfile
from pathlib import Path


def epoch():
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not text.isdigit():
        sys.exit("archive.py: SOURCE_DATE_EPOCH is not set: the commit's time, in seconds")
    return int(text)


def members(folder):
    """[(name, path)] of all files and folders below `folder`, by name."""
    found = sorted((p.relative_to(folder).as_posix(), p) for p in folder.rglob("*"))
    for name, path in found:
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            sys.exit(f"archive.py: {name}: neither a file nor a folder")
    return found


def mode(path):
    return 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644


def tar_xz(entries):
    """The bytes of a tar archive of [(name, path)], compressed by xz."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, path in entries:
            info = tarfile.TarInfo(name)
            info.mode, info.mtime, info.uname, info.gname = mode(path), epoch(), "root", "root"
            if path.is_dir():
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = path.stat().st_size
                with path.open("rb") as file:
                    archive.addfile(info, file)
    return lzma.compress(out.getvalue(), preset=6)


def write_tar(folder, file):
    top = file.name.removesuffix(".tar.xz")
    file.write_bytes(tar_xz([(top, folder)] + [(f"{top}/{n}", p) for n, p in members(folder)]))


def write_deb(folder, file):
    """deb(5): three members of an ar archive."""
    control = [(f"./{n}", p) for n, p in members(folder / "DEBIAN")]
    data = [(f"./{n}", p) for n, p in members(folder) if n.split("/")[0] != "DEBIAN"]
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": tar_xz([("./", folder), *control]),
        "data.tar.xz": tar_xz([("./", folder), *data]),
    }
    out = b"!<arch>\n"
    for name, content in parts.items():
        out += f"{name:<16}{epoch():<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        out += content + b"\n" * (len(content) % 2)
    file.write_bytes(out)


def fields(text):
    """Of a file in the form of mail headers: name -> values."""
    found = {}
    for line in text.split("\n\n")[0].splitlines():
        name, _, value = line.partition(": ")
        found.setdefault(name, []).append(value)
    return found


def write_wheel(folder, dist):
    """Binary distribution format (PyPA). Returns the wheel's path."""
    infos = list(folder.glob("*.dist-info"))
    if len(infos) != 1:
        sys.exit(f"archive.py: {folder} has {len(infos)} folders *.dist-info; a wheel has one")
    tags = fields((infos[0] / "WHEEL").read_text())["Tag"]
    parts = [sorted({tag.split("-")[i] for tag in tags}) for i in range(3)]
    name = "-".join([infos[0].name.removesuffix(".dist-info"), *(".".join(p) for p in parts)])
    record = f"{infos[0].name}/RECORD"
    rows = []
    # A wheel's times are those of zip: even seconds of no zone, from 1980 on.
    moment = max(time.gmtime(epoch())[:6], (1980, 1, 1, 0, 0, 0))
    wheel = dist / f"{name}.whl"

    def add(archive, member, content, permissions):
        info = zipfile.ZipInfo(member, moment)
        info.external_attr = (0o100000 | permissions) << 16
        info.create_system, info.compress_type = 3, zipfile.ZIP_DEFLATED
        archive.writestr(info, content, compresslevel=9)

    with zipfile.ZipFile(wheel, "w") as archive:
        files = [(n, p) for n, p in members(folder) if p.is_file() and n != record]
        for member, path in sorted(files, key=lambda f: (".dist-info/" in f[0], f[0])):
            content = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            rows.append(f"{member},sha256={digest.decode()},{len(content)}\n")
            add(archive, member, content, mode(path))
        add(archive, record, "".join(rows) + f"{record},,\n", 0o644)
    return wheel


if __name__ == "__main__":
    kinds = {"tar": write_tar, "wheel": write_wheel, "deb": write_deb}
    if len(sys.argv) != 4 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    made = kinds[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
    print(made or sys.argv[3])
