"""Every key of a checkpoint's JSON files that transformers and tokenizers know (known_keys.json)
has a line in keys.toml, and the program does with it what the line says."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import tomllib
from conftest import MODEL, ROOT, execute

HERE = Path(__file__).parent
KNOWN = json.loads((HERE / "known_keys.json").read_text())
TABLE = tomllib.loads((HERE / "keys.toml").read_text())
FILES = list(TABLE)
KINDS = ("implemented", "refused", "no_effect")
TEXT = "ROMEO: Don't go <|end_of_text|> there, my Lord<|end_of_text|>s e\u0301.\n\nAy!\nb"


def kind(row):
    return next(k for k in KINDS if k in row)


ROWS = [pytest.param(f, k, r, id=f"{f}:{k}") for f in FILES for k, r in TABLE[f].items()]


def rows(*kinds, file=None):
    return [
        p
        for p in ROWS
        if kind(p.values[2]) in kinds and "test" not in p.values[2] and file in (None, p.values[0])
    ]


def place(file, key, row):
    """The members and indices that lead to the key."""
    path = row.get("at", key).split(".")
    if "at" not in row and file == "tokenizer.json" and len(path) > 1 and path[1][0].isupper():
        del path[1]  # the type of the component
    return [int(p) if p.isdigit() else p for p in path] if file == "tokenizer.json" else path


@pytest.fixture
def edited(tmp_path):
    """edited(file, row, key, value) -> a folder of the shipped model with this value; without a
    key, with what the row has beside it alone."""

    def f(file, row, key=None, value=None):
        folder = tmp_path / ("changed" if key else "base")
        folder.mkdir()
        for path in MODEL.iterdir():
            if path.suffix == ".json" and path.name != row.get("without"):
                shutil.copy(path, folder)
            elif path.suffix == ".safetensors":
                os.symlink(path, folder / path.name)
        content = {**json.loads((folder / file).read_text()), **row.get("with", {})}
        if key:
            *outer, last = place(file, key, row)
            inner = content
            for step in outer:
                inner = inner[step]
            inner[last] = value
        (folder / file).write_text(json.dumps(content))
        return folder

    return f


def failed(done):
    assert done.code in (2, 3) and len(done.errors) == 1, done.text
    return done.code


def exported(folder):
    """The exported graph, less the digest of config.json."""
    done = execute(["export", "--model-name", folder, "-o", folder / "out"])
    if done.code:
        return failed(done)
    graph = (folder / "out/model.onnx").read_bytes()
    return re.sub(rb"(?<=invar.config_sha256).{2}[0-9a-f]{64}", b"", graph, flags=re.S)


def answered(folder, tasks):
    """What the receipt says of tokens and sampling."""
    run = ["run", "--model-name", folder, "--prompt-text", "ROMEO:", "--tasks-root", tasks]
    done = execute([*run, "--receipt-path", folder / "r.json"])
    if done.code:
        return failed(done)
    receipt = json.loads((folder / "r.json").read_text())
    return {part: receipt[part] for part in ("input", "output")}


def tokens(folder):
    """The ids of the text, and their text."""
    done = execute(["encode", "--model-name", folder, "--prompt-text", TEXT])
    if done.code:
        return failed(done)
    ids = ",".join(map(str, [*done.json(), *range(5)]))
    return done.out, execute(["decode", "--model-name", folder, "--tokens", ids]).out


def seen(file, folder, tasks):
    if file == "config.json":
        return exported(folder)
    if file == "generation_config.json":
        return exported(folder), answered(folder, tasks)
    return tokens(folder)


def command(file, folder):
    if file == "config.json":
        return ["export", "--model-name", folder, "-o", folder / "out"]
    if file == "generation_config.json":
        return ["run", "--model-name", folder, "--prompt-text", "a", "--receipt-path", folder / "r"]
    return ["encode", "--model-name", folder, "--prompt-text", "a"]


def has_line(file, key):
    """Whether the table has this key, or one around it that is refused or has no effect."""
    if key in TABLE[file]:
        return True
    outer = key.rpartition(".")[0]
    row = TABLE[file].get(outer)
    return bool(row) and "implemented" not in row and (file, outer) != ("tokenizer.json", "model")


@pytest.mark.parametrize("file", FILES)
def test_every_known_key_has_a_line(file):
    assert [key for key in KNOWN[file] if not has_line(file, key)] == []
    assert [key for key in TABLE[file] if key not in KNOWN[file]] == []


@pytest.mark.parametrize("file,key,row", ROWS)
def test_a_line_is_whole(file, key, row):
    assert sum(k in row for k in KINDS) == 1
    if "refused" in row:
        return
    assert ("value" in row) != ("test" in row)
    if "test" in row:
        assert (ROOT / row["test"]).is_file()
    if "implemented" in row and row["implemented"] != "cli.md":
        pages = "".join(p.read_text() for p in (ROOT / "spec").glob("*.md"))
        assert f"**{row['implemented']}" in pages


def assert_refused(done, row, *names):
    assert done.code == row.get("code", 3), done.text
    assert len(done.errors) == 1, done.text
    for name in names:
        assert name in done.errors[0], done.text


@pytest.mark.parametrize("file,key,row", rows("refused"))
def test_a_refused_key_is_named(edited, file, key, row):
    folder = edited(file, row, key, row["refused"])
    path = [str(p) for p in place(file, key, row)]
    value = row["refused"]
    component = isinstance(value, dict) and file == "tokenizer.json"
    names = row.get("names", [value["type"] if component else path[-1]])
    assert_refused(execute(command(file, folder)), row, file, *names)


@pytest.mark.parametrize("key,row", [p.values[1:] for p in rows("refused", file=FILES[1])])
def test_a_generation_key_in_config_json_is_refused(edited, key, row):
    """transformers takes it from there where there is no generation_config.json."""
    if key == "force_bos_token_to_be_generated":
        pytest.skip("transformers 5 ignores it there")
    folder = edited("config.json", {"without": FILES[1]}, key, row["refused"])
    done = execute([*command(FILES[1], folder), "--temperature", "1"])
    assert_refused(done, row, "config.json", key)


@pytest.mark.parametrize("file,key,row", rows("implemented"))
def test_an_implemented_key_changes_something(edited, tasks, file, key, row):
    before = seen(file, edited(file, row), tasks)
    assert not isinstance(before, int), "the model without the change is refused"
    assert seen(file, edited(file, row, key, row["value"]), tasks) != before


@pytest.mark.parametrize("file,key,row", rows("no_effect"))
def test_a_key_without_effect_changes_nothing(edited, tasks, file, key, row):
    before = seen(file, edited(file, row), tasks)
    assert not isinstance(before, int), "the model without the change is refused"
    assert seen(file, edited(file, row, key, row["value"]), tasks) == before


def test_the_older_file_of_special_tokens_is_asked(edited):
    folder = edited(FILES[2], {})
    path = folder / "special_tokens_map.json"
    for token, code in (("<|end_of_text|>", 0), ("<new>", 3)):
        path.write_text(json.dumps({"pad_token": token}))
        done = execute(command(FILES[2], folder))
        assert done.code == code, done.text
    assert_refused(done, {}, path.name, "pad_token")
    (folder / FILES[2]).write_text(json.dumps({"added_tokens_decoder": {}}))
    assert execute(command(FILES[2], folder)).code == 0
