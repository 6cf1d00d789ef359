#!/usr/bin/env python3
"""Writes tests/tokenizer/vectors: small SentencePiece models and lists of ranks, and what
sentencepiece and tiktoken make of texts with them. tests/checkpoint/test_tokenizer_kinds.py
compares.

Needs the packages tokenizers, sentencepiece and tiktoken."""

import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT / "tests")
from tokenizer import kinds  # noqa: E402
from tokenizer.texts import texts  # noqa: E402

FOLDER = ROOT / "tests/tokenizer/vectors"
TRAINING = texts("english", 60_000, seed=31)
TEXTS = [
    "", " ", "  a  b ", "hello world", "<s> the <usr> a</s>",
    "caf\u00e9 \u4e2d\u6587 \U0001f600", "\n\nthe\n", "\u2581x",
    "the foo bar", "0123 4567", "<|endoftext|>a<|im_start|>b", "don't  STOP", "x" * 50, "\u0301a\u200d",
    *(t[:300] for t in texts("english", 4000, seed=32)[:6]), *(t[:120] for t in texts("mixed",
    4000, seed=33)[:6]),
]  # fmt: skip


def small(**options):
    return kinds.sentencepiece_model(
        TRAINING,
        vocab_size=420,
        normalization_rule_name="identity",
        user_defined_symbols=["<usr>"],
        **options,
    )


def ties():
    """A model in which ways through "aaaa" have the same score but for the rounding of the sums."""
    from sentencepiece import sentencepiece_model_pb2 as pb

    m = pb.ModelProto.FromString((FOLDER / "unigram.model").read_bytes())
    m.normalizer_spec.add_dummy_prefix = False
    del m.pieces[1:]
    score = -2.1716766357421875
    for piece, s, kind in (
        ("UVW", -2.2, 4), ("\u00e9", 0, 4), ("a", score, 1), ("aa", 2 * score, 1), ("aaaa", 4 * score, 1),
        ("b", -11.32, 1), ("c", -5.87078332901001, 1), ("d", 0.0, 1),
    ):  # fmt: skip
        m.pieces.add(piece=piece, score=s, type=kind)
    return m.SerializeToString()


def tangled(seed):
    r = random.Random(seed)
    return "".join(r.choices(["a", "aa", "aaa", "b", "c", "d", "UVW", "\u00e9", "x"], k=40))


def main():
    FOLDER.mkdir(exist_ok=True)
    files = {
        "bpe.model": small(model_type="bpe", byte_fallback=True, remove_extra_whitespaces=False),
        "unigram.model": small(model_type="unigram"),
        "qwen.tiktoken": b"".join(kinds.qwen(TRAINING).splitlines(keepends=True)[:500]),
    }
    (FOLDER / "unigram.model").write_bytes(files["unigram.model"])
    files["ties.model"] = ties()
    vectors = {}
    for name, content in files.items():
        (FOLDER / name).write_bytes(content)
        peer = kinds.open_file(FOLDER / name)
        found = [tangled(seed) for seed in range(12)] if name == "ties.model" else TEXTS
        rows = [(t, peer.encode(t)) for t in found]
        vectors[name] = [[t, ids, peer.decode(ids)] for t, ids in rows]
        for seed in range(20):
            ids = [(seed * 7919 + i * 104729) % peer.size for i in range(12)]
            vectors[name].append([None, ids, peer.decode(ids)])
    lines = (json.dumps([name, *row]) for name, rows in vectors.items() for row in rows)
    (FOLDER / "vectors.jsonl").write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    main()
