"""The part of the tests that a commit runs: one in N, chosen by its hash, so that time sees all.

sample.py N NAME COMMAND...          the command where NAME is of the part, else exit 77 (skipped)
sample.py N --part COMMAND...        the command with --part I/N
Only INVAR_TIER=2 samples. INVAR_SAMPLE takes the commit's place, to repeat a choice."""

import functools
import hashlib
import os
import subprocess
import sys
from pathlib import Path

TIER = int(os.environ.get("INVAR_TIER", "3"))


@functools.cache
def commit():
    if os.environ.get("INVAR_SAMPLE"):
        return os.environ["INVAR_SAMPLE"]
    root = Path(__file__).resolve().parents[1]
    git = ["git", "-c", f"safe.directory={root}", "rev-parse", "HEAD"]
    try:
        return subprocess.run(git, cwd=root, check=True, capture_output=True, text=True).stdout[:12]
    except (OSError, subprocess.CalledProcessError):
        return "no commit"


def turn(name, n):
    """Which of n parts has its turn."""
    return int(hashlib.sha256(f"{commit()} {name}".encode()).hexdigest(), 16) % n


def main():
    n, name, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if TIER == 2 and name == "--part":
        command += ["--part", f"{turn(' '.join(Path(c).name for c in command), n)}/{n}"]
    elif TIER == 2 and turn(name, n):
        print(f"not of the sample of {commit()}: INVAR_TIER=3 runs it")
        return 77
    print(f"INVAR_SAMPLE='{commit()}':", *command, flush=True)
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
