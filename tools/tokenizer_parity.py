#!/usr/bin/env python3
"""Parity of src/prompt with PyPI tokenizers, sentencepiece and tiktoken, on text of this machine.

tokenizer_parity.py [--bytes N] [--speed] [KIND...]   by default every kind, 50,000,000 bytes each
tokenizer_parity.py [...] --file TOKENIZER...         tokenizer.json, *.model and *.tiktoken files

Each kind is trained here on a part of the text, with fixed seeds. The text: code, translations in
all languages that /usr/share/locale has, white space, emoji, any code point, special tokens.
Compared are the ids of every text, the decoded text of those and of random ids, and a stream token
by token. --speed prints seconds and ratios of one thread: many short texts, and one long text.
Needs a build (build/bin/invar_tokenize) and the packages tokenizers, sentencepiece, tiktoken. Exit
0: all equal; 1: a difference, which is printed.
"""

import argparse
import array
import gettext
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RUST_BACKTRACE"] = "0"
ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build/bin/invar_tokenize"
sys.path.insert(0, str(ROOT / "tests"))

from tokenizer import kinds  # noqa: E402
from tokenizer.texts import texts  # noqa: E402


class Ours:
    """The tokenizer under test as a process (tests/tokenizer/main.cc)."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [PROGRAM, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, what, payload):
        self.process.stdin.write(what + struct.pack("<I", len(payload)) + payload)
        self.process.stdin.flush()
        head = self.process.stdout.read(5)
        if len(head) < 5:
            sys.exit("invar_tokenize has ended")
        code, length = struct.unpack("<BI", head)
        answer = self.process.stdout.read(length)
        if code:
            raise ValueError(answer.decode())
        return answer

    def encode(self, text):
        return array.array("i", self.ask(b"e", text.encode())).tolist()

    def decode(self, ids, how=b"d"):
        return self.ask(how, array.array("i", ids).tobytes()).decode()

    def seconds(self, what, payloads):
        """The time that the program needs for each payload in turn, without the pipe."""
        body = b"".join(struct.pack("<I", len(p)) + p for p in payloads)
        return struct.unpack("<d", self.ask(what, body))[0]


def locale_texts(size, seed):
    """Translations from the machine's message catalogues, in all their languages."""
    files = sorted(Path("/usr/share/locale").glob("*/LC_MESSAGES/*.mo"))
    random.Random(seed).shuffle(files)
    for path in files:
        try:
            with path.open("rb") as f:
                messages = list(gettext.GNUTranslations(f)._catalog.values())
        except (OSError, UnicodeDecodeError, ValueError):
            continue
        messages = [m for m in messages if isinstance(m, str) and m]
        for i in range(0, len(messages), 20):
            text = "\n".join(messages[i : i + 20])
            size -= len(text.encode())
            yield text
        if size < 0:
            return


def code_texts(size, seed):
    files = sorted(Path(os.__file__).parent.rglob("*.py"))
    random.Random(seed).shuffle(files)
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        for i in range(0, len(text), 3000):
            yield text[i : i + 3000]
        size -= len(text)
        if size < 0:
            return


def corpus(size, seed=1, special=()):
    """Texts of `size` bytes in all, a third of it translations."""
    r = random.Random(seed)
    parts = list(locale_texts(size * 0.4, seed)) + list(code_texts(size * 0.2, seed))
    for kind, share in (("scripts", 0.1), ("mixed", 0.1), ("spaces", 0.03), ("tangled", 0.05)):
        parts += texts(kind, int(size * share), seed=seed)
    for kind in ("any_unicode", "assigned_unicode"):
        parts += texts(kind, int(size * 0.06), seed=seed)
    r.shuffle(parts)
    if special:
        for i in range(0, len(parts), 7):
            at = r.randrange(len(parts[i]) + 1)
            parts[i] = parts[i][:at] + r.choice(special) + parts[i][at:]
    return parts


def fail(name, what, text, want, got):
    at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    print(f"{name}: {what} differs at {at} of {text[:300]!r}")
    print(
        f"  theirs {want[max(0, at - 8) : at + 12]!r}\n  ours   {got[max(0, at - 8) : at + 12]!r}"
    )
    return 1


def compare(name, peer, path, size, seed):
    ours = Ours(path)
    r = random.Random(seed)
    total = tokens = 0
    for text in corpus(size, seed, peer.special):
        want, got = peer.encode(text), ours.encode(text)
        if want != got:
            return fail(name, "encoding", text, want, got)
        total += len(text.encode())
        tokens += len(got)
        if r.random() < 0.2:
            want = peer.decode(got)
            for how, what in ((b"d", "decoding"), (b"s", "the stream")):
                if (answer := ours.decode(got, how)) != want:
                    return fail(name, what, text, want, answer)
        if r.random() < 0.1:
            ids = [r.randrange(peer.size) for _ in range(40)]
            try:
                want = peer.decode(ids)
            except BaseException:  # a panic of tokenizers on an edge of its decoders
                continue
            for how, what in ((b"d", "decoding"), (b"s", "the stream")):
                if (answer := ours.decode(ids, how)) != want:
                    return fail(name, what + " of random ids", str(ids), want, answer)
    print(f"{name}: {total} bytes, {tokens} tokens: equal", flush=True)
    return 0


def speed(name, peer, path, size):
    ours = Ours(path)
    short = list(locale_texts(size * 0.7, 5)) + list(code_texts(size * 0.3, 5))
    for what, batch in (("short texts", short), ("one text", ["\n".join(short)])):
        payloads = [t.encode() for t in batch]
        mine = min(ours.seconds(b"t", payloads) for _ in range(2))
        start = time.perf_counter()
        ids = [peer.encode(t) for t in batch]
        theirs = time.perf_counter() - start
        start = time.perf_counter()
        for i in ids:
            peer.decode(i)
        theirs_decode = time.perf_counter() - start
        mine_decode = ours.seconds(b"T", [array.array("i", i).tobytes() for i in ids])
        megabytes = sum(map(len, payloads)) / 1e6
        print(
            f"{name}, {what}: encode {megabytes / mine:.1f} MB/s, {theirs / mine:.1f} times the peer; "
            f"decode {megabytes / mine_decode:.1f} MB/s, {theirs_decode / mine_decode:.1f} times",
            flush=True,
        )


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("kinds", nargs="*")
    p.add_argument("--bytes", type=int, default=50_000_000)
    p.add_argument("--speed", action="store_true")
    p.add_argument("--file", nargs="+", default=[])
    a = p.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        training = [*locale_texts(1_500_000, 7), *code_texts(500_000, 7)]
        names = a.kinds or ([] if a.file else kinds.KINDS)
        for name in [*a.file, *names]:
            path = name if name in a.file else kinds.train(name, training, Path(folder))
            peer = kinds.open_file(path)
            if a.speed:
                speed(name, peer, path, min(a.bytes, 5_000_000))
            else:
                failed |= compare(name, peer, path, a.bytes, 3)
    sys.exit(failed)


if __name__ == "__main__":
    main()
