"""The comparison of the tokenizer under test with Hugging Face tokenizers."""

import os

import pytest
from conftest import MODEL
from tokenizer.process import PROGRAM, Ours  # noqa: F401
from tokenizers import Tokenizer

os.environ["TOKENIZERS_PARALLELISM"] = "false"
SHIPPED = MODEL / "tokenizer.json"


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
