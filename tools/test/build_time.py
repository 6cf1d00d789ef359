#!/usr/bin/env python3
"""The processor seconds of a build, by folder, and whether they keep tools/test/build_budget.toml.

build_time.py BUILD=FOLDER... [--since FILE] [--speed FOLDER]
build_time.py --self-test

cmake/ccache.sh writes OBJECT.time beside each object. --since: only what is newer than FILE.
--speed: FOLDER/build-BUILD has a line of `times` for each compilation of calibration.cc that
setup.sh made beside the build. Exit 3 where a build costs too much.

It fails for cost, not for noise. Only compilations without a cache hit count. A sum is judged where
the whole build was compiled, and divided by the slowest calibration beside it. A file that seems
too slow is compiled again, up to three times, each beside calibrations, and the fastest counts.
Another processor has wider limits; with another compiler nothing is judged."""

import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]
CALIBRATION = ROOT / "tools/test/calibration.cc"
BUDGET = ROOT / "tools/test/build_budget.toml"
FEWEST_SAMPLES = 3
COLD = 0.95  # of its files, since two targets may compile one file alike


def seconds_of(line):
    """User and system seconds of a line of `times`."""
    found = re.findall(r"(\d+)m([\d.,]+)s", line)
    return sum(60 * int(m) + float(s.replace(",", ".")) for m, s in found)


def read_times(file):
    """-> (processor seconds, whether the compiler ran), or None of a compilation that was
    killed."""
    lines = file.read_text(errors="replace").splitlines()
    times = [seconds_of(line) for line in lines if re.match(r"\d+m", line)]
    return (sum(times), "cache_miss" in lines) if len(times) == 2 else None


def collect(folder):
    """{object: (seconds, whether the compiler ran, when)} of a build, without builds inside it."""
    found = {}
    for path, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not os.path.exists(f"{path}/{f}/CMakeCache.txt")]
        for name in files:
            if name.endswith((".o.time", ".obj.time", ".gch.time")):
                file = Path(path, name)
                if time := read_times(file):
                    found[str(file)[: -len(".time")]] = (*time, file.stat().st_mtime)
    return found


def sources(folder):
    """{object: (source, command, folder of the command)}"""
    commands = json.loads((folder / "compile_commands.json").read_text())
    found = {}
    for c in commands:
        words = shlex.split(c["command"])
        where = Path(c["directory"])
        found[str(where / words[words.index("-o") + 1])] = (c["file"], words, where)
    return found


def label(folder, source):
    source = Path(source)
    if source.is_relative_to(folder):
        return source.relative_to(folder).as_posix()
    return source.relative_to(ROOT).as_posix() if source.is_relative_to(ROOT) else str(source)


def group(name):
    """src/run, or the target of a batch."""
    if batch := re.fullmatch(r"unity/invar_(\w+?)_(?:files|torch)_\d+\.cc", name):
        return f"batches of {batch[1]}"
    return "/".join(name.split("/")[:-1][:2]) or name


def compile_again(words, where):
    """Processor seconds of a command, whose object is thrown away."""
    words = list(words)
    with tempfile.TemporaryDirectory() as out:
        words[words.index("-o") + 1] = (
            f"{out}/{'again.gch' if words[-1].endswith('.hxx.cxx') else 'o'}"
        )
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(words, cwd=where, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return 0.0
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def calibrate():
    return compile_again(["c++", "-std=c++20", "-O2", "-c", str(CALIBRATION), "-o", ""], ROOT)


class Judge:
    """Judges builds by `budget`; `again` and `calibrate` measure, and self-tests replace them."""

    def __init__(self, budget, allowed, again=compile_again, calibrate=calibrate):
        self.budget, self.allowed = budget, allowed
        self.again, self.calibrate = again, calibrate
        self.wrong = []

    def slowness(self, samples):
        """How much slower the machine was than the reference; a faster one has no smaller
        limits."""
        return max([1.0, *(s / self.budget["calibration"] for s in samples)])

    def build(self, name, folder, since=0.0, samples=()):
        found, known = collect(folder), sources(folder)
        times = {o: t for o, t in found.items() if o in known}
        rows = {o: t for o, t in times.items() if t[1] and t[2] >= since}
        total = sum(seconds for seconds, *_ in rows.values())
        slow = self.slowness(samples)
        print(
            f"{name}: {len(rows)} files compiled, {total:.0f} processor seconds, speed 1/{slow:.2f}"
        )
        folders = defaultdict(list)
        for o, (seconds, *_) in rows.items():
            folders[group(label(folder, known[o][0]))].append(seconds)
        for f, all_of in sorted(folders.items(), key=lambda row: -sum(row[1]))[:12]:
            print(f"  {sum(all_of):7.1f} s {len(all_of):4} files  {f}")
        if rows and len(rows) >= COLD * len(times) and len(samples) >= FEWEST_SAMPLES:
            self.whole(name, total / slow)
        for o, (seconds, *_) in sorted(rows.items(), key=lambda row: -row[1][0]):
            self.file(name, label(folder, known[o][0]), seconds / slow, *known[o][1:])

    def whole(self, name, seconds):
        limit = self.budget["builds"].get(name, {}).get("whole")
        if limit and seconds > limit * self.allowed:
            self.wrong.append(
                f"the build {name} takes {seconds:.0f} processor seconds, its budget is {limit}"
            )

    def file(self, name, source, seconds, words, where):
        row = self.budget["slow"].get(f"{name}:{source}") or self.budget["slow"].get(source)
        limit = row["seconds"] if row else self.budget["builds"].get(name, {}).get("file", 20)
        for _ in range(3):
            if seconds <= limit * self.allowed:
                return
            before = self.calibrate()
            again = self.again(words, where)
            seconds = min(seconds, again / self.slowness([before, self.calibrate()]))
        if seconds > limit * self.allowed:
            self.wrong.append(f"{name}: {source} takes {seconds:.0f} s, its limit is {limit}")


def processor():
    found = re.search(r"^model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(), re.M)
    return found[1] if found else ""


def compiler():
    done = subprocess.run(["c++", "-dumpfullversion"], capture_output=True, text=True)
    return done.stdout.strip()


def main():
    builds, since, speed = [], 0.0, None
    arguments = iter(sys.argv[1:])
    for a in arguments:
        if a == "--since":
            since = Path(next(arguments)).stat().st_mtime
        elif a == "--speed":
            speed = Path(next(arguments))
        else:
            builds.append(a.split("=", 1))
    budget = tomllib.loads(BUDGET.read_text())
    allowed = budget["allowed" if processor() == budget["processor"] else "allowed_elsewhere"]
    judge = Judge(budget, allowed)
    for name, folder in builds:
        file = speed / f"build-{name}" if speed else None
        lines = file.read_text().splitlines() if file and file.exists() else []
        judge.build(name, Path(folder).resolve(), since, [s for s in map(seconds_of, lines) if s])
    if judge.wrong and compiler() != budget["compiler"]:
        print(f"not judged: the budget is that of GCC {budget['compiler']}")
    elif judge.wrong:
        print(*judge.wrong, sep="\n")
        print(f"build_time.py: make it cheaper, or commit the cost and its reason in {BUDGET}")
        sys.exit(3)


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        import build_time_test

        build_time_test.run()
    else:
        main()
