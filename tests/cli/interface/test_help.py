"""Help, man pages and what is said of words that are none: all of it comes from one definition."""

import os
import re
import shlex
import subprocess

import pytest
from conftest import BIN, execute, invar, refused

COMMANDS = re.findall(r"^  ([a-z]+)(?:  |$)", invar("--help").out.decode(), re.M)
NESTED = ["bench serve", "cache list", "cache prune"]
GROUPS = {"Model", "Prompt", "Sampling", "Device", "Output"}


def help_of(command):
    return invar("help", *command.split()).out.decode()


def test_commands_are_listed():
    assert {"run", "verify", "validate", "chat", "doctor", "completion", "help"} <= set(COMMANDS)
    assert len(COMMANDS) == len(set(COMMANDS)) > 25


@pytest.mark.parametrize("command", ["", *COMMANDS, *NESTED])
def test_help(command):
    text = help_of(command)
    words = command.split()
    assert text.startswith("Usage: invar")
    assert invar(*words, "--help").out.decode() == text
    assert invar(*words, "-h").out.decode() == text
    body, examples = text, ""
    if "\nExamples\n" in text:
        body, examples = text.split("\nExamples\n")
    assert max(len(line) for line in body.split("\n")) <= 80
    assert "VALUE " not in body.replace("VALUE:ROW", ""), "an option without a word for its value"
    assert "\nOptions\n" not in text, "an option without a group"
    assert re.findall(r"^  (\d+) ", text.split("\nExit codes\n")[1], re.M) == "0 1 2 3 70".split()
    assert "--progress" in body and "Every command" in body
    # Every option of an example is one of the command's.
    known = set(re.findall(r"--[a-z][a-z-]*", body)) | {"--prompt-text"}
    lines = examples.split("\nExit codes")[0].strip().split("\n") if examples else []
    for line in lines:
        assert "invar" in line
        for word in shlex.split(line.split("|")[-1].replace("<(", "").replace(")", "")):
            if word.startswith("--"):
                assert word.split("=")[0] in known, line


def test_groups():
    headings = set(re.findall(r"^([A-Z][a-z ]+)$", help_of("run"), re.M))
    assert GROUPS <= headings


def test_width():
    for columns in ("50", "120"):
        text = execute(["run", "--help"], env={**os.environ, "COLUMNS": columns}).out.decode()
        assert max(map(len, text.split("\nExamples")[0].split("\n"))) <= 80  # a pipe has no width


def test_version():
    for option in ("-V", "--version"):
        assert re.fullmatch(rb"invar \S+\n", invar(option).out)
    assert invar("run", "-V").out == invar("-V").out


@pytest.mark.parametrize("command", ["", *COMMANDS, *NESTED])
def test_man(command, tmp_path):
    page = invar("help", *command.split(), "--man").out
    assert page.startswith(b".TH INVAR")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"], input=page, capture_output=True, check=False
    )
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()


def test_man_pages(tmp_path):
    invar("help", "--man-pages", tmp_path / "man1")
    names = {p.name for p in (tmp_path / "man1").iterdir()}
    assert names == {"invar.1", *(f"invar-{c.replace(' ', '-')}.1" for c in COMMANDS + NESTED)}
    run = (tmp_path / "man1/invar-run.1").read_text()
    assert "\\-\\-max\\-new\\-tokens" in run and ".SH EXIT STATUS" in run


# --- words that are none --------------------------------------------------------------------------

RUN = ["run", "--model-name", "m", "--prompt-text", "a"]


@pytest.mark.parametrize(
    "args,hint",
    [
        (["verfy", "r.json"], "did you mean invar verify?"),
        (["runn"], "did you mean invar run"),
        (["generate"], "did you mean invar run?"),
        (["cache", "lst"], "did you mean invar cache list?"),
        ([*RUN, "--max-tokens", 4], "did you mean --max-new-tokens?"),
        (["run", "--modle", "m"], "did you mean --model-name?"),
        (["run", "--model", "m"], "did you mean --model-name?"),
        ([*RUN, "--temprature", 1], "did you mean --temperature?"),
        ([*RUN, "--into", 1], "see `invar run --help`"),
        (["run", "--prompt", "m"], "did you mean --prompt-text or --prompt-file?"),
        ([*RUN, "--spot", 3], "it is an option of `invar verify`"),
        (["--max-new-tokens", 3, *RUN], "after the command, as in `invar run --max-new-tokens`"),
        ([*RUN, "--operation-set", "reproducable"], "did you mean reproducible?"),
        ([*RUN, "--numerics", "exact"], "did you mean exact16?"),
        ([*RUN, "--progress", "jsn"], "did you mean json?"),
        ([*RUN, "--xyzzy"], "see `invar run --help`"),
        (["help", "verfy"], "did you mean invar help verify?"),
        (["completion", "fisch"], "did you mean fish?"),
        (["-x", "run"], "see `invar --help`"),
    ],
)
def test_suggestions(args, hint):
    done = refused(*args)
    assert hint in done.text, done.text


@pytest.mark.parametrize(
    "args,names",
    [
        ([*RUN, "--plan=", "--seed", 3], ["--plan", "empty"]),
        ([*RUN, "--plan=", "--no-such"], ["--no-such"]),
        (["run", "--prompt-text", "a", "--model-name", "--seed", 3], ["--model-name", "--seed"]),
        (["run", "--model-name"], ["--model-name", "missing"]),
        (["run", "--model-name", "m", "--prompt-text"], ["--prompt-text", "missing"]),
        (["run", "--model-name", "m", "--prompt-text", "--seed", 3], ["--prompt-text=TEXT"]),
        ([], ["a command is needed"]),
        (["verify"], ["a receipt is required", "invar verify --help"]),
        (["compile", "a.onnx", "b.onnx"], ["b.onnx"]),
        ([*RUN, "--quiet", "--progress", "lines"], ["--quiet", "--progress"]),
        ([*RUN, "--color", ""], ["--color"]),
    ],
)
def test_missing_and_empty_values(args, names):
    refused(*args, names=names)


def test_a_text_may_look_like_an_option(tmp_path):
    for text in (["--prompt-text=--seed"], ["--prompt-text", "--no-such-option"]):
        done = refused("run", "--model-name", tmp_path, *text)
        assert b"config.json" in done.err  # the words were read


def test_errors_as_json():
    done = refused("run", "--json", "--modle", "m")
    error = done.json()
    assert error["ok"] is False and error["exit_code"] == 2 and error["kind"] == "bad input"
    assert "--modle" in error["error"] and error["hint"] == "did you mean --model-name?"
    done = refused("validate", "--json", "none.json")
    assert done.json()["exit_code"] == 2 and done.json()["verdict"] == "REFUSED"


def test_program_without_terminal_settings():
    env = {k: v for k, v in os.environ.items() if k not in ("TERM", "HOME", "COLUMNS")}
    assert subprocess.run([BIN, "--help"], env=env, capture_output=True, check=True).stdout
