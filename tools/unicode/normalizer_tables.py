"""What the normalizers and pre-tokenizers of Hugging Face tokenizers know of each character, asked
of them code point by code point: make_tables.py writes it to src/prompt/unicode.

Their crates have tables of several versions of Unicode, so no table of one version would do. The
boundaries of grapheme clusters are asked of Precompiled: its map replaces whatever begins with any
byte by one letter, so the number of letters shows the clusters of fewer than six bytes.
"""

import base64
import json
import struct

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

SCALARS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
FLAGS = [
    "punctuation",
    "bert_control",
    "nonspacing",
    "mark",
    "rust_word",
    "rust_number",
    "joins_left",
    "prepend",
    "cluster_control",
    "pictographic",
    "extend",
    "conjunct_consonant",
    "conjunct_linker",
    "conjunct_extend",
]


def every_byte_map():
    """A charsmap whose trie maps every first byte to "X": a root and 255 nodes with leaves."""
    # A unit is that of a double array: label, leaf flag (bit 8), offset (from bit 10), value (bit
    # 31).
    units = [0] * 1024
    units[0] = 256 << 10  # the children of the root are at 256 ^ byte
    for byte in range(1, 256):
        at = 256 ^ byte
        units[at] = byte | 1 << 8 | (at ^ 512 ^ byte) << 10  # its leaf is at 512 ^ byte
        units[512 ^ byte] = 1 << 31 | 0
    trie = struct.pack("<1024I", *units)
    return base64.b64encode(struct.pack("<I", len(trie)) + trie + b"X\0").decode()


def clusters():
    """How many letters each of the given texts becomes."""
    t = Tokenizer(models.BPE())
    state = json.loads(t.to_str())
    state["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": every_byte_map()}
    normalize = Tokenizer.from_str(json.dumps(state)).normalizer.normalize_str

    def count(texts):
        return [len(normalize(x)) for x in texts]

    return count


def flags():
    """{code point: bits of FLAGS}."""
    bits = dict.fromkeys(SCALARS, 0)

    def note(name, members):
        for c in members:
            bits[c] |= 1 << FLAGS.index(name)

    def cut_out(pre, before="", after=""):
        """The characters that a pre-tokenizer cuts out of the text."""
        return {
            c
            for c in SCALARS
            if (before + chr(c) + after)
            not in [p for p, _ in pre.pre_tokenize_str(before + chr(c) + after)]
        }

    note("punctuation", cut_out(pre_tokenizers.Punctuation("isolated"), "a"))
    note("rust_word", set(SCALARS) - cut_out(pre_tokenizers.Whitespace(), "a"))
    note("rust_number", cut_out(pre_tokenizers.Digits(individual_digits=True), "a"))

    def vanish(normalizer):
        return {c for c in SCALARS if normalizer.normalize_str("a" + chr(c)) == "a"}

    bert = {"clean_text": False, "handle_chinese_chars": False, "lowercase": False}
    note(
        "bert_control",
        vanish(normalizers.BertNormalizer(**{**bert, "clean_text": True}, strip_accents=False)),
    )
    note("nonspacing", vanish(normalizers.BertNormalizer(**bert, strip_accents=True)))
    note("mark", vanish(normalizers.StripAccents()))

    count = clusters()

    def ask(name, text_of, joined, among=SCALARS):
        found = {c for c, n in zip(among, count(text_of(chr(c)) for c in among)) if n == joined}
        note(name, found)
        return found

    accent, virama, ka, zwj = "\u0301", "\u094d", "\u0915", "\u200d"
    joining = sorted(ask("joins_left", lambda c: "a" + c, 1))
    ask("prepend", lambda c: c + "a", 1)
    ask("extend", lambda c: "\u00a9" + c + zwj + "\u00ae" + accent, 5, joining)
    ask("conjunct_linker", lambda c: ka + c + ka + accent, 4, joining)
    ask("conjunct_extend", lambda c: ka + c + virama + ka + accent, 5, joining)
    # Characters of four bytes begin no cluster of fewer than six bytes that goes on.
    short = [c for c in SCALARS if c < 0x10000]
    control = ask("cluster_control", lambda c: c + accent, 2, short)
    bases = [c for c in short if c not in control and c not in set(joining)]
    ask("conjunct_consonant", lambda c: ka + virama + c + accent, 4, bases)
    ask("pictographic", lambda c: "\u00a9" + zwj + c, 3, sorted(set(SCALARS) - set(joining)))
    return bits


def mappings(normalizer, beside):
    """[(character, what it becomes)] where that is not what `beside` makes of it."""
    return [
        (c, [ord(x) for x in new]) for c in SCALARS if (new := normalizer(chr(c))) != beside(chr(c))
    ]


def tables(ranges):
    """(name, Unicode version, meaning, lines); the version is None, as there are several."""
    bits = flags()
    yield (
        "flags",
        None,
        "first last bits: " + " ".join(f"{1 << i:X} {name}" for i, name in enumerate(FLAGS)),
        [f"{a:04X} {b:04X} {v:04X}" for a, b, v in ranges(lambda c: bits.get(c, 0), 0)],
    )
    for name, normalizer, beside, meaning in (
        ("compatibility", normalizers.NFKD(), normalizers.NFD(), "compatibility decomposition"),
        ("lowercase", normalizers.Lowercase(), None, "lower case"),
    ):
        same = beside.normalize_str if beside else lambda x: x
        rows = mappings(normalizer.normalize_str, same)
        yield (
            name,
            None,
            f"character: its whole {meaning}",
            [" ".join(f"{x:04X}" for x in [c, *new]) for c, new in rows],
        )
