#!/usr/bin/env python3
"""Which versions of the system's libraries programs ask for.

symbols.py FILE...: exit code 1 where an ELF file asks for more than manylinux_2_34 has (PEP 600),
or for a library that is not part of it and does not lie in the file's folder. Needs binutils."""

import re
import subprocess
import sys
from pathlib import Path

# manylinux_2_34 of auditwheel's policy: what RHEL 9, Ubuntu 22.04 and Debian 12 all have.
NEWEST = {"GLIBC": "2.34", "GLIBCXX": "3.4.29", "CXXABI": "1.3.13", "GCC": "11.0"}
LIBRARIES = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"}
LOADERS = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def number(version):
    return [int(part) for part in version.split(".")]


def wrong(file):
    """Lines about what `file` asks for beyond manylinux_2_34."""
    read = ["readelf", "--wide", "--dynamic", "--dyn-syms", str(file)]
    text = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    found = []
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
        if library not in LIBRARIES | LOADERS and not (file.parent / library).exists():
            found.append(f"{file}: needs {library}")
    for symbol, family, version in sorted(set(re.findall(r" UND (\S+)@+([A-Z]+)_([0-9.]+)", text))):
        if family not in NEWEST or number(version) > number(NEWEST[family]):
            found.append(f"{file}: {symbol} is of {family}_{version}")
    return found


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    lines = [line for name in sys.argv[1:] for line in wrong(Path(name))]
    print("\n".join(lines) or f"{len(sys.argv) - 1} files ask for no more than manylinux_2_34 has")
    sys.exit(1 if lines else 0)
