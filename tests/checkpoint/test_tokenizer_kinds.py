"""Parity of every kind of tokenizer with Hugging Face tokenizers (spec/tokens.md): each is trained
here on a few texts. tools/tokenizer_parity.py does the same with much more text."""

import random

import pytest
from tokenizer import kinds
from tokenizer.oracle import Ours, first_difference
from tokenizer.texts import texts

TRAINING = texts("mixed", 60_000, seed=21, longest=2000) + texts("english", 60_000, seed=21)
IN_CI = [k for k in kinds.KINDS if k not in kinds.NEED_SENTENCEPIECE]


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
