"""build_time.py --self-test: builds of three files, as the launcher leaves them, and what is
said."""

import contextlib
import io
import json
import os
import subprocess
import tempfile
from pathlib import Path

from build_time import ROOT, Judge, collect

BUDGET = {
    "calibration": 2.0,
    "builds": {"b": {"whole": 40, "file": 20}},
    "slow": {"src/slow.cc": {"seconds": 50}},
}


def build(folder, seconds, hits=()):
    """`seconds`: {source: seconds}."""
    commands = []
    for source, took in seconds.items():
        name = f"{Path(source).name}.o"
        state = "direct_cache_hit" if source in hits else "cache_miss"
        (folder / f"{name}.time").write_text(
            f"# x\n{state}\n0m0.000000s 0m0.000000s\n{int(took // 60)}m{took % 60:.6f}s 0m0.000000s\n"
        )
        commands.append(
            {
                "directory": str(folder),
                "file": str(ROOT / source),
                "command": f"c++ -o {name} -c {source}",
            }
        )
    (folder / "compile_commands.json").write_text(json.dumps(commands))


def wrong(
    seconds, samples=(2.0,) * 3, again=None, calibrations=(2.0,), hits=(), since=0.0, allowed=1.1
):
    """What is said of a build; `again`: what compilations take that are repeated."""
    again, calibrations = iter(again or []), list(calibrations)
    judge = Judge(BUDGET, allowed, lambda *_: next(again), lambda: calibrations[0])
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), seconds, hits)
        with contextlib.redirect_stdout(io.StringIO()) as table:
            judge.build("b", Path(folder), since, samples)
        assert table.getvalue().startswith("b: ")
    return judge.wrong


def launcher():
    """cmake/ccache.sh keeps the compiler's exit code and never fails where it cannot write."""
    with tempfile.TemporaryDirectory() as folder:
        launch = ["sh", str(ROOT / "cmake/ccache.sh"), "sh", "-c"]
        run = subprocess.run([*launch, "exit 3", "-o", f"{folder}/x.o"])
        assert run.returncode == 3 and not collect(folder)["%s/x.o" % folder][1]
        run = subprocess.run(
            [*launch, 'echo cache_miss >"$CCACHE_STATSLOG"', "-o", f"{folder}/y z.o"]
        )
        seconds, ran, _ = collect(folder)[f"{folder}/y z.o"]
        assert run.returncode == 0 and ran and seconds < 5
        run = subprocess.run([*launch, "exit 0", "-o", f"{folder}/no/x.o"], capture_output=True)
        assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
        Path(folder, "killed.o.time").write_text("cache_miss\n")
        assert f"{folder}/killed.o" not in collect(folder)
        os.mkdir(f"{folder}/other")
        for name in ("CMakeCache.txt", "x.o.time"):
            Path(folder, "other", name).write_text("0m1s 0m1s\n0m1s 0m1s\n")
        assert not any("other" in object for object in collect(folder))


def run():
    cold = {"src/a.cc": 15.0, "src/b.cc": 15.0, "src/c.cc": 10.0}
    assert wrong(cold) == []
    dear = {"src/a.cc": 18.0, "src/b.cc": 18.0, "src/c.cc": 10.0}
    assert "the build b takes 46" in wrong(dear)[0]
    assert wrong(dear, allowed=1.5) == []  # another processor
    # A slow machine: one sample of three shows it. A fast one is no reason for a smaller limit.
    assert wrong(dear, samples=(2.0, 2.5, 2.0)) == []
    assert wrong(cold, samples=(1.0,) * 3) == []
    assert wrong(dear, samples=(2.0,) * 2) == []  # too few to know
    assert wrong(dear, hits=["src/c.cc"]) == []  # not the whole build
    many = {f"src/{i}.cc": 1.5 for i in range(40)}
    assert wrong(many, hits=["src/0.cc"])  # two targets with one file
    assert wrong(dear, since=9e9) == []  # of an earlier run
    # One file: measured again three times, and the fastest counts.
    one = {"src/a.cc": 30.0, "src/b.cc": 1.0}
    assert wrong(one, again=[22.5, 12.0]) == []
    assert wrong(one, again=[30.0, 30.0, 30.0], calibrations=[3.0]) == []
    (said,) = wrong(one, again=[31.0, 29.0, 30.0])
    assert "src/a.cc takes 29 s, its limit is 20" in said
    assert wrong(one, again=[0.0]) == []  # it no longer compiles: that is the build's to say
    assert wrong({"src/slow.cc": 54.0}, samples=()) == []
    assert wrong({"src/slow.cc": 60.0}, samples=(), again=[60.0] * 3)
    assert wrong(one, hits=["src/a.cc"]) == []
    launcher()
    print("build_time: what costs too much is found, what is noise is not")
