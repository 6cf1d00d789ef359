"""The tokenizer under test as a process (main.cc), and its comparison with Hugging Face
tokenizers."""

import array
import os
import struct
import subprocess

import pytest
from conftest import BUILD, MODEL
from tokenizers import Tokenizer

os.environ["TOKENIZERS_PARALLELISM"] = "false"
PROGRAM = BUILD / "bin/invar_tokenize"
SHIPPED = MODEL / "tokenizer.json"


class Ours:
    """The tokenizer under test, as a process that answers requests (tests/tokenizer/main.cc)."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [PROGRAM, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, what, payload):
        self.process.stdin.write(what + struct.pack("<I", len(payload)) + payload)
        self.process.stdin.flush()
        code, length = struct.unpack("<BI", self.process.stdout.read(5))
        return code, self.process.stdout.read(length)

    def encode(self, text, special=True):
        code, answer = self.ask(b"e" if special else b"E", text.encode())
        assert code == 0, answer
        return array.array("i", answer).tolist()

    def decode(self, ids, how=b"d"):
        code, answer = self.ask(how, array.array("i", ids).tobytes())
        assert code == 0
        return answer.decode()

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
        self.process.stdout.close()


@pytest.fixture
def opened(tmp_path):
    """opened(tokenizer or its JSON) -> (theirs, ours)."""
    started = []

    def f(tokenizer):
        content = tokenizer if isinstance(tokenizer, str) else tokenizer.to_str()
        path = tmp_path / f"{len(started)}.json"
        path.write_text(content, encoding="utf-8")
        started.append(Ours(path))
        return Tokenizer.from_str(content), started[-1]

    yield f
    for s in started:
        s.close()


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"at {at}: theirs {a[max(0, at - 3) : at + 8]}, ours {b[max(0, at - 3) : at + 8]}"


def compare(theirs, ours, texts, special=True):
    for text, e in zip(texts, theirs.encode_batch_fast(texts, add_special_tokens=special)):
        want, got = e.ids, ours.encode(text, special)
        assert want == got, f"{text[:200]!r} {first_difference(want, got)}"


PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_NAME = {b: chr(b) for b in PRINTABLE} | {
    b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in PRINTABLE)
}
