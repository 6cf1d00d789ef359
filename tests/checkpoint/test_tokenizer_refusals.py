"""Hostile or uncovered tokenizer.json files and texts: one clear line, the right exit code, no
crash, no hang."""

import json
import random
import struct
import subprocess

import pytest
from tokenizer.oracle import BYTE_NAME, PROGRAM, SHIPPED, opened  # noqa: F401


def refusal(path, code, *names):
    done = subprocess.run([PROGRAM, path], input=b"", capture_output=True, timeout=60)
    lines = done.stderr.decode("utf-8").splitlines()
    assert done.returncode == code and len(lines) == 1, (done.returncode, done.stderr[-2000:])
    assert len(lines[0]) < 700, "the error is not short"
    for name in (str(path), *names):
        assert name in lines[0], (name, lines[0])


def edited(change):
    j = json.loads(SHIPPED.read_text(encoding="utf-8"))
    change(j)
    return json.dumps(j)


def put(value, *path):
    def change(j):
        for p in path[:-1]:
            j = j[p]
        j[path[-1]] = value

    return change


SPLIT = ("pre_tokenizer", "pretokenizers", 0)
HOSTILE = {
    "no model": (lambda j: j.pop("model"), 2, ["model"]),
    "model type": (put("Trie", "model", "type"), 3, ["Trie"]),
    "unigram vocab": (put("Unigram", "model", "type"), 2, ["vocab", "array"]),
    "unigram score": (
        put({"type": "Unigram", "vocab": [["a", "b"]]}, "model"),
        2,
        ["vocab[0]", "score"],
    ),
    "unigram unk": (
        put({"type": "Unigram", "vocab": [["a", -1.5]], "unk_id": 1}, "model"),
        2,
        ["unk_id 1"],
    ),
    "word piece": (put("WordPiece", "model", "type"), 2, ["continuing_subword_prefix"]),
    "word level unk": (put("WordLevel", "model", "type"), 2, ["unk_token"]),
    "vocab list": (put([1], "model", "vocab"), 2, ["vocab"]),
    "vocab empty": (put({}, "model", "vocab"), 2, ["vocab"]),
    "id text": (put("7", "model", "vocab", "A"), 2, ['"A"', "integer"]),
    "id float": (put(7.0, "model", "vocab", "A"), 2, ["integer"]),
    "id negative": (put(-1, "model", "vocab", "A"), 2, ["out of range"]),
    "id huge": (put(1 << 31, "model", "vocab", "A"), 2, ["out of range"]),
    "id beyond 64 bits": (put(1 << 70, "model", "vocab", "A"), 2, []),
    "id far": (put((1 << 31) - 1, "model", "vocab", "A"), 2, ["far above"]),
    "id twice": (put(2, "model", "vocab", "A"), 2, ["given twice"]),
    "merges object": (put({}, "model", "merges"), 2, ["merges"]),
    "merge number": (put(3, "model", "merges", 5), 2, ["merges[5]"]),
    "merge of one": (put("ab", "model", "merges", 5), 2, ["merges[5]"]),
    "merge of three": (put("a b c", "model", "merges", 5), 2, ["merges[5]"]),
    "merge unknown": (
        put(["\u4e2d", "a"], "model", "merges", 5),
        2,
        ["merges[5]", "not in the vocabulary"],
    ),
    "merge into nothing": (
        put(["\u00ff", "\u00ff"], "model", "merges", 5),
        2,
        ["merges[5]", "not in the vocabulary"],
    ),
    "dropout": (put(0.5, "model", "dropout"), 3, ["dropout"]),
    "prefix": (put("##", "model", "continuing_subword_prefix"), 2, ["continuing_subword_prefix"]),
    "prefix type": (put(5, "model", "continuing_subword_prefix"), 2, ["must be a string"]),
    "flag type": (put("yes", "model", "ignore_merges"), 2, ["ignore_merges"]),
    "unknown unk": (put("nope", "model", "unk_token"), 2, ["nope"]),
    "version": (put("2.0", "version"), 3, ["2.0"]),
    "normalizer": (put({"type": "NFX"}, "normalizer"), 3, ["NFX"]),
    "replace": (put({"type": "Replace", "content": "a"}, "normalizer"), 2, ["pattern"]),
    "strip": (put({"type": "Strip", "strip_left": 1}, "normalizer"), 2, ["strip_left"]),
    "charsmap": (
        put({"type": "Precompiled", "precompiled_charsmap": "AAA"}, "normalizer"),
        2,
        ["base64"],
    ),
    "charsmap size": (
        put({"type": "Precompiled", "precompiled_charsmap": "/////wAAAAA="}, "normalizer"),
        2,
        ["trie"],
    ),
    "pre-tokenizer": (put({"type": "UnicodeScripts"}, "pre_tokenizer"), 3, ["UnicodeScripts"]),
    "metaspace": (
        put({"type": "Metaspace", "replacement": "ab"}, "pre_tokenizer"),
        2,
        ["one character"],
    ),
    "fixed length": (put({"type": "FixedLength", "length": 0}, "pre_tokenizer"), 2, ["length"]),
    "behavior": (put("Merged", *SPLIT, "behavior"), 3, ["Merged"]),
    "no pattern": (put({}, *SPLIT, "pattern"), 2, ["pattern"]),
    "look-behind": (put({"Regex": "(?<=a)b"}, *SPLIT, "pattern"), 3, ["look-behind"]),
    "back reference": (put({"Regex": "(a)\\1"}, *SPLIT, "pattern"), 3, ["this escape"]),
    "open group": (put({"Regex": "(a"}, *SPLIT, "pattern"), 3, ["missing )"]),
    "deep pattern": (
        put({"Regex": "(" * 100000 + "a" + ")" * 100000}, *SPLIT, "pattern"),
        3,
        ["nesting"],
    ),
    "large repeats": (
        put({"Regex": "(((ab{9}){900}){900}){900}"}, *SPLIT, "pattern"),
        3,
        ["too large"],
    ),
    "pattern of lines": (put({"Regex": "\n\x1b[31m(?<=x)\n" * 100}, *SPLIT, "pattern"), 3, []),
    "decoder": (put({"type": "CTC"}, "decoder"), 3, ["CTC"]),
    "decoder order": (
        put(
            {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]},
            "decoder",
        ),
        3,
        ["ByteFallback behind Fuse"],
    ),
    "decoder member": (put({"type": "WordPiece"}, "decoder"), 2, ["prefix"]),
    "post-processor": (put({"type": "Bert"}, "post_processor"), 3, ["Bert"]),
    "bert": (put({"type": "BertProcessing", "cls": ["a", 1]}, "post_processor"), 2, ["sep"]),
    "template id": (
        put([99999], "post_processor", "special_tokens", "<|begin_of_text|>", "ids"),
        2,
        ["99999"],
    ),
    "template token": (put({}, "post_processor", "special_tokens"), 2, ["<|begin_of_text|>"]),
    "added object": (put({}, "added_tokens"), 2, ["added_tokens"]),
    "added id": (put(5, "added_tokens", 0, "id"), 2, ["<|begin_of_text|>"]),
    "added empty": (put("", "added_tokens", 0, "content"), 2, ["added_tokens[0]"]),
    "added far": (
        lambda j: j["added_tokens"].append(
            {**j["added_tokens"][0], "id": 1 << 30, "content": "x y"}
        ),
        2,
        ["next free one is 2048"],
    ),
    "added taken": (
        lambda j: j["added_tokens"].append({**j["added_tokens"][0], "id": 9, "content": "x y"}),
        2,
        ["next free one is 2048"],
    ),
    "added twice": (lambda j: j["added_tokens"].append(j["added_tokens"][0]), 2, ["given twice"]),
    "added flag": (put(1, "added_tokens", 0, "lstrip"), 2, ["lstrip"]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_refusals(tmp_path, name):
    change, code, names = HOSTILE[name]
    path = tmp_path / "t.json"
    path.write_text(edited(change), encoding="utf-8")
    refusal(path, code, *names)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b"\xff\xfe",
        b"[" * 300_000,
        b'{"model":' * 100_000,
        b'{"version":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"normalizer":' * 50_000 + b"1" + b"}" * 50_000,
        b'{"model":1e999999}',
        b'{"a":"\\ud800"}',
    ],
    ids=range(12),
)
def test_not_a_tokenizer(tmp_path, content):
    path = tmp_path / "t.json"
    path.write_bytes(content)
    done = subprocess.run([PROGRAM, path], input=b"", capture_output=True, timeout=60)
    assert done.returncode in (2, 3) and done.stderr.count(b"\n") == 1 and len(done.stderr) < 700, (
        done.stderr[-2000:]
    )


def test_nested_sequences(tmp_path):
    for key, name in (
        ("pre_tokenizer", "pretokenizers"),
        ("normalizer", "normalizers"),
        ("decoder", "decoders"),
        ("post_processor", "processors"),
    ):
        inner = "[]"
        for _ in range(20_000):
            inner = f'[{{"type":"Sequence","{name}":{inner}}}]'
        content = edited(put("HERE", key)).replace(
            '"HERE"', f'{{"type":"Sequence","{name}":{inner}}}'
        )
        path = tmp_path / "t.json"
        path.write_text(content)
        refusal(path, 2, "nested too deeply")


def test_truncated(tmp_path):
    content = SHIPPED.read_bytes()
    path = tmp_path / "t.json"
    for at in list(range(1, 200, 23)) + list(range(200, len(content) - 1, 9973)):
        path.write_bytes(content[:at])
        refusal(path, 2, "not valid JSON")


def test_random_damage(tmp_path):
    """Any byte changed: a clean refusal, or a tokenizer that still answers."""
    content = SHIPPED.read_bytes()
    r = random.Random(10)
    path = tmp_path / "t.json"
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(r.choice([1, 1, 3])):
            at = r.randrange(3500) if r.random() < 0.6 else r.randrange(len(damaged))
            damaged[at : at + r.choice([0, 1, 1, 5])] = r.choice(
                [b"", b'"', b"9", b"{", b"\\", b"-", b"[]", bytes([r.randrange(256)])]
            )
        path.write_bytes(damaged)
        request = (
            b"e"
            + struct.pack("<I", 9)
            + b"ROMEO: a\n"
            + b"d"
            + struct.pack("<I", 8)
            + struct.pack("<2i", 7, 300)
        )
        done = subprocess.run([PROGRAM, path], input=request, capture_output=True, timeout=60)
        assert done.returncode in (0, 2, 3) and len(done.stderr) < 700, (
            done.returncode,
            done.stderr[-2000:],
        )
        assert done.stderr.count(b"\n") == (0 if done.returncode == 0 else 1)


def test_hopeless_pattern_gives_up(opened):
    """Backtracking without end is an error, not a hang."""
    j = json.loads(SHIPPED.read_text(encoding="utf-8"))
    j["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": "(?:a|aa)+(?:a|aa)+(?:a|aa)+b"}
    _, ours = opened(json.dumps(j))
    code, message = ours.ask(b"e", b"a" * 3000)
    assert code == 3 and b"too many steps" in message
    assert ours.encode("aaaab")


def test_missing_byte_is_refused(opened):
    lost = BYTE_NAME[0x92]
    j = json.loads(SHIPPED.read_text(encoding="utf-8"))
    j["model"]["vocab"] = {k: v for k, v in j["model"]["vocab"].items() if lost not in k}
    j["model"]["merges"] = [m for m in j["model"]["merges"] if lost not in "".join(m)]
    _, ours = opened(json.dumps(j))
    assert ours.encode("\u0411") and "\u0412".encode() == b"\xd0\x92"
    code, message = ours.ask(b"e", "a \u0412".encode())
    assert code == 2 and b"no token for the byte 146 " in message


def test_invalid_utf8_is_refused_with_its_place(opened):
    _, ours = opened(SHIPPED.read_text(encoding="utf-8"))
    for text, at in (
        (b"ab\xff", 2),
        (b"\x80", 0),
        (b"abcdefgh\xc3", 8),
        (b"\xed\xa0\x80", 0),
        (b"x\xf4\x90\x80\x80", 1),
        (b"\xc0\xaf", 0),
        ("\u00e9".encode() * 9 + b"\xe2\x82", 18),
    ):
        code, message = ours.ask(b"e", text)
        assert code == 2 and f"byte {at} of {len(text)}".encode() in message, message
    assert ours.encode("still alive")
