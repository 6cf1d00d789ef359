"""Parity of every kind of tokenizer with Hugging Face tokenizers (spec/tokens.md): each is trained
here on a few texts. tools/tokenizer_parity.py does the same with much more text."""

import json
import random
import subprocess

import pytest
from tokenizer import kinds
from tokenizer.oracle import PROGRAM, Ours, first_difference
from tokenizer.texts import texts

TRAINING = texts("mixed", 60_000, seed=21, longest=2000) + texts("english", 60_000, seed=21)
IN_CI = [k for k in kinds.KINDS if k not in [*kinds.NEED_SENTENCEPIECE, *kinds.TIKTOKEN]]


@pytest.mark.parametrize("kind", IN_CI)
def test_parity(tmp_path, kind):
    path = kinds.train(kind, TRAINING, tmp_path)
    peer, ours = kinds.open_file(path), Ours(path)
    r = random.Random(22)
    for name, size in (("mixed", 60_000), ("scripts", 40_000), ("tangled", 20_000), ("spaces", 20_000),
                       ("any_unicode", 20_000), ("assigned_unicode", 20_000)):  # fmt: skip
        for text in texts(name, size, seed=23):
            if r.random() < 0.3:
                at = r.randrange(len(text) + 1)
                text = text[:at] + r.choice(peer.special or ["x"]) + text[at:]
            want, got = peer.encode(text), ours.encode(text)
            assert want == got, f"{text[:200]!r} {first_difference(want, got)}"
            want = peer.decode(got)
            assert ours.decode(got) == want == ours.decode(got, b"s"), text[:200]
    for _ in range(300):
        ids = [r.randrange(peer.size) for _ in range(r.randint(0, 60))]
        want = peer.decode(ids)
        assert ours.decode(ids) == want == ours.decode(ids, b"s"), ids
    ours.close()


FOLDER = PROGRAM.parents[2] / "tests/tokenizer/vectors"
ROWS = [json.loads(line) for line in (FOLDER / "vectors.jsonl").read_text().splitlines()]
FILES = sorted({row[0] for row in ROWS})


@pytest.mark.parametrize("name", FILES)
def test_vectors(name):
    ours = Ours(FOLDER / name)
    for _, text, ids, decoded in (row for row in ROWS if row[0] == name):
        if text is not None:
            assert ours.encode(text) == ids, text
        assert ours.decode(ids) == decoded == ours.decode(ids, b"s"), ids
    ours.close()


def opened(path):
    request = b"e\x05\0\0\0a b\xc3\xa9d\x08\0\0\0\x07\0\0\0\x2c\1\0\0"
    done = subprocess.run([PROGRAM, path], input=request, capture_output=True, timeout=60)
    lines = done.stderr.decode().splitlines()
    assert done.returncode in (0, 2, 3) and len(done.stderr) < 700, (done.returncode, done.stderr)
    assert len(lines) == (0 if done.returncode == 0 else 1), done.stderr
    return done.returncode, "".join(lines)


@pytest.mark.parametrize("name", FILES)
def test_damage(tmp_path, name):
    """Any byte changed, or the end missing: a clean refusal, or a tokenizer that still answers."""
    content = (FOLDER / name).read_bytes()
    r = random.Random(41)
    path = tmp_path / name
    for _ in range(150):
        damaged = bytearray(content[: r.choice([len(content)] * 3 + [r.randrange(len(content))])])
        for _ in range(r.choice([1, 1, 4])):
            at = r.randrange(len(damaged) + 1)
            damaged[at : at + r.choice([0, 1, 1, 5])] = bytes(
                r.choice([0, 1, 8, 10, 32, 127, 128, 255, r.randrange(256)])
                for _ in range(r.choice([0, 1, 2]))
            )
        path.write_bytes(damaged)
        code, line = opened(path)
        assert code == 0 or str(path) in line


@pytest.mark.parametrize(
    "name,content,code,names",
    [
        ("a.model", b"", 2, ["SentencePiece"]),
        ("a.model", b"\x0a\xff\xff", 2, ["cut short"]),
        ("a.model", b"\x0a\x03\x0a\x01a", 2, ["0 unknown pieces"]),
        ("a.model", b"\x0a\x05\x0a\x01a\x18\x02\x12\x02\x18\x04", 3, ["model_type 4"]),
        ("a.model", b"IQ== 0\nIg== 1\n", 3, ["tiktoken's ranks", "tokenizer.json"]),
        ("qwen.tiktoken", b"", 2, ["no line"]),
        ("qwen.tiktoken", b"AA== 0\nAQ== 0\n", 2, ["line 2", "given twice"]),
        ("qwen.tiktoken", b"!!! 0\n", 2, ["line 1"]),
        ("qwen.tiktoken", b"AA== 0\n", 2, ["no token for the byte 1"]),
        ("qwen.tiktoken", b"AA== 99999999\n", 2, ["far above"]),
        ("other.tiktoken", b"AA== 0\n", 3, ["other", "cl100k_base"]),
    ],
)
def test_refusals(tmp_path, name, content, code, names):
    path = tmp_path / name
    path.write_bytes(content)
    got, line = opened(path)
    assert got == code and all(n in line for n in names), (got, line)
