"""What a receipt binds as model.chat_template (spec/receipt.md receipt.19), and that verify sees
each of its places change."""

import hashlib
import json

import pytest
from conftest import invar, refused

EMPTY = hashlib.sha256(b"").hexdigest()


@pytest.fixture
def bound(model, tasks, tmp_path):
    """bound(files) -> the digest in the receipt of a run with these files in the checkpoint; the
    receipt lies in r.json."""

    def f(files):
        write(model, files)
        path = tmp_path / "r.json"
        invar(
            "run",
            "--model-name",
            model,
            "--prompt-text",
            "ROMEO:",
            "--max-new-tokens",
            1,
            "--tasks-root",
            tasks,
            "--receipt-path",
            path,
        )
        return json.loads(path.read_text())["model"]["chat_template"]

    return f


def write(model, files):
    for name, content in files.items():
        (model / name).parent.mkdir(exist_ok=True)
        (model / name).write_bytes(
            content
            if isinstance(content, bytes)
            else json.dumps({"chat_template": content}).encode()
        )


def canonical(templates):
    return json.dumps(dict(sorted(templates.items())), ensure_ascii=False, separators=(",", ":"))


CASES = {
    "none": ({}, ""),
    "null": ({"tokenizer_config.json": None}, ""),
    "key": ({"tokenizer_config.json": "A{{x}}\n"}, "A{{x}}\n"),
    "file": ({"chat_template.jinja": b"B\r\n\xc3\xa4"}, "B\r\n\u00e4"),
    "file and key": ({"chat_template.jinja": b"B", "tokenizer_config.json": "A"}, "B"),
    "empty file": ({"chat_template.jinja": b"", "tokenizer_config.json": "A"}, ""),
    "list": (
        {
            "tokenizer_config.json": [
                {"name": "rag", "template": 'R"\t\x01'},
                {"name": "default", "template": "D"},
            ]
        },
        canonical({"rag": 'R"\t\x01', "default": "D"}),
    ),
    "list of one": ({"tokenizer_config.json": [{"name": "default", "template": "D"}]}, "D"),
    "object": (
        {"tokenizer_config.json": {"tool_use": "T\u00e4"}},
        canonical({"tool_use": "T\u00e4"}),
    ),
    "folder": (
        {
            "additional_chat_templates/rag.jinja": b"R",
            "chat_template.jinja": b"D",
            "additional_chat_templates/notes.txt": b"N",
        },
        canonical({"default": "D", "rag": "R"}),
    ),
    "folder and key": (
        {"additional_chat_templates/rag.jinja": b"R", "tokenizer_config.json": "A"},
        canonical({"rag": "R"}),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_bound(bound, name):
    files, text = CASES[name]
    assert bound(files) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "name,changed",
    [
        ("key", {"tokenizer_config.json": "A"}),
        ("file", {"chat_template.jinja": b"B\n\xc3\xa4"}),
        ("none", {"chat_template.jinja": b"B"}),
        ("key", {"chat_template.jinja": b"B"}),
        ("list", {"tokenizer_config.json": [{"name": "default", "template": "D"}]}),
        ("folder", {"additional_chat_templates/rag.jinja": b"r"}),
        ("file", {"additional_chat_templates/rag.jinja": b"R"}),
    ],
)
def test_a_change_is_found(bound, model, tmp_path, name, changed):
    bound(CASES[name][0])
    verify = ("verify", tmp_path / "r.json", "--model-name", model)
    assert "template" in invar(*verify).text
    write(model, changed)
    assert "model.chat_template" in invar(*verify, code=1).text


def test_what_is_shadowed_is_not_bound(bound, model, tmp_path):
    bound(CASES["file and key"][0])
    write(model, {"tokenizer_config.json": "another"})
    invar("verify", tmp_path / "r.json")


@pytest.mark.parametrize(
    "files,name",
    [
        ({"tokenizer_config.json": 7}, "tokenizer_config.json"),
        ({"tokenizer_config.json": ["A"]}, "tokenizer_config.json"),
        ({"tokenizer_config.json": [{"name": "a"}]}, "tokenizer_config.json"),
        ({"tokenizer_config.json": {"a": 1}}, "tokenizer_config.json"),
        (
            {
                "tokenizer_config.json": [
                    {"name": "a", "template": "1"},
                    {"name": "a", "template": "2"},
                ]
            },
            "tokenizer_config.json",
        ),
        ({"chat_template.jinja": b"a\xff"}, "chat_template.jinja"),
        ({"additional_chat_templates/b.jinja": b"\xc3"}, "b.jinja"),
    ],
)
def test_what_is_no_template(model, files, name):
    write(model, files)
    refused("run", "--model-name", model, "--prompt-text", "x", "--max-new-tokens", 1,
            "--receipt-path", model / "r.json", names=[name])  # fmt: skip


def test_the_shipped_model_has_none(answer):
    assert answer["content"]["model"]["chat_template"] == EMPTY
