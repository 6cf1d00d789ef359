#!/usr/bin/env python3
"""Parity of src/prompt with PyPI tokenizers, sentencepiece and tiktoken.

tokenizer_parity.py [--bytes N] [--speed] [KIND...]   by default every kind, 50,000,000 bytes each
tokenizer_parity.py [...] --file TOKENIZER...         tokenizer.json, *.model and *.tiktoken files
  --processes P   shards, each a process with its own part of the text (default: every processor)
  --folder DIR    where trained tokenizers are kept and found
  --text FILE     the machine's texts from this file; --write-text FILE writes it and ends

Each kind is trained on a part of the text, with fixed seeds. The text: code, translations in
all languages that /usr/share/locale has, white space, emoji, any code point, special tokens.
Compared are the ids of every text, their text, a stream token by token, and the text of random
ids. --speed prints ratios of one thread: many short texts, and one long text; with --processes
several kinds at once. Needs a build
(build/bin/invar_tokenize) and the packages tokenizers, sentencepiece, tiktoken. Exit 0: all equal;
1: differences, which are printed.
"""

import argparse
import array
import multiprocessing
import os
import random
import sys
import tempfile
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RUST_BACKTRACE"] = "0"
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from tokenizer import corpus, kinds  # noqa: E402
from tokenizer.process import Ours  # noqa: E402


class Differs(Exception):
    pass


def check(what, text, want, got):
    if want == got:
        return
    if isinstance(want, int):
        raise Differs(f"{what}: code {got} for {text[:300]!r}")
    at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    raise Differs(
        f"{what} differs at {at} of {text[:300]!r}\n"
        f"  theirs {want[max(0, at - 8) : at + 12]!r}\n  ours   {got[max(0, at - 8) : at + 12]!r}"
    )


def check_ids(ours, peer, what, ids):
    try:
        want = peer.decode(ids)
    except BaseException:  # a panic of tokenizers on an edge of its decoders
        return
    check(what, str(ids), want, ours.decode(ids))
    check(what + ", in a stream,", str(ids), want, ours.decode(ids, b"s"))


def compare(path, parts, seed):
    """Bytes and tokens that are equal, and texts that are refused: with a character that the
    tokenizer has no token for, which the peer drops."""
    peer, ours = kinds.open_file(path), Ours(path)
    r = random.Random(seed)
    size = tokens = refused = 0
    for text in corpus.with_special(parts, peer.special, seed):
        code, got = ours.ask(b"e", text.encode())
        if code and b"has no token for" in got:
            refused += 1
            continue
        check("encoding", text, 0, code)
        got = array.array("i", got).tolist()
        check("encoding", text, peer.encode(text), got)
        check_ids(ours, peer, "decoding", got)
        if r.random() < 0.1:
            check_ids(ours, peer, "decoding", [r.randrange(peer.size) for _ in range(40)])
        size += len(text.encode())
        tokens += len(got)
    ours.close()
    return size, tokens, refused


def work(found, size, number, of, paths, results):
    parts = corpus.shard(found, size, number, of)
    for name, path in paths.items():
        start = time.process_time()
        try:
            results.put((name, *compare(path, parts, number), time.process_time() - start, None))
        except (Differs, AssertionError) as e:
            results.put((name, 0, 0, 0, 0, str(e)))


def compare_all(paths, found, size, processes):
    """Every file in turn, by all processes. True: all are equal."""
    results = multiprocessing.Queue()
    for number in range(processes):
        multiprocessing.Process(
            target=work, args=(found, size, number, processes, paths, results), daemon=True
        ).start()
    done, equal = {}, True
    for _ in range(processes * len(paths)):
        name, *row = results.get()
        rows = done.setdefault(name, [])
        rows.append(row)
        if row[-1]:
            equal = False
            print(f"{name}: {row[-1]}", flush=True)
        elif len(rows) == processes and not any(r[-1] for r in rows):
            sizes, tokens, refused, seconds, _ = zip(*rows)
            print(
                f"{name}: {sum(sizes)} bytes, {sum(tokens)} tokens: equal; {sum(refused)} texts "
                f"refused; {sum(seconds):.0f} s",
                flush=True,
            )
    return equal


def speed_lines(job):
    return "\n".join(speed(job))


def speed(job):
    name, path, found, size = job
    peer, ours = kinds.open_file(path), Ours(path)
    short = list(corpus.up_to(size, found))
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
        yield (
            f"{name}, {what}: encode {megabytes / mine:.1f} MB/s, {theirs / mine:.1f} times the peer; "
            f"decode {megabytes / mine_decode:.1f} MB/s, {theirs_decode / mine_decode:.1f} times"
        )


def train(job):
    name, folder, training = job
    return name, kinds.find(name, folder) or kinds.train(name, training, folder)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("kinds", nargs="*")
    p.add_argument("--bytes", type=int, default=50_000_000)
    p.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--speed", action="store_true")
    for option in ("--folder", "--text", "--write-text"):
        p.add_argument(option, type=Path)
    p.add_argument("--file", nargs="+", default=[])
    a = p.parse_args()
    found = corpus.read(a.text) if a.text else corpus.machine_texts(max(a.bytes, 6_000_000), 3)
    random.Random(5).shuffle(found)
    if a.write_text:
        return corpus.write(a.write_text, found)
    with tempfile.TemporaryDirectory() as folder:
        training = list(corpus.up_to(2_000_000, found))
        names = a.kinds or ([] if a.file else kinds.KINDS)
        with multiprocessing.Pool(a.processes) as pool:
            paths = dict(
                pool.map(train, [(n, a.folder or Path(folder), training) for n in names], 1)
            )
            paths |= {Path(name).name: Path(name) for name in a.file}
            if a.speed:
                size = min(a.bytes, 5_000_000)
                jobs = [(name, path, found, size) for name, path in paths.items()]
                for lines in pool.imap(speed_lines, jobs):
                    print(lines, flush=True)
                return
        sys.exit(0 if compare_all(paths, found, a.bytes, a.processes) else 1)


if __name__ == "__main__":
    main()
