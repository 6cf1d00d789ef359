"""spec/tokens.md: byte-level BPE of a tokenizer.json, as far as the shipped model uses it.

Python's Unicode tables are older than those of tokens.2, so a text with characters that they do
not know is refused, and so is everything else that the shipped tokenizer does not need.
"""

import json
import re
import sys
import unicodedata
from functools import cache

from arithmetic.mutation import active

WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@cache
def category(letter):
    """The inside of a class with every character of categories that begin with `letter`."""
    spans = []
    for c in range(sys.maxunicode + 1):
        if unicodedata.category(chr(c)).startswith(letter):
            if spans and spans[-1][1] == c - 1:
                spans[-1][1] = c
            else:
                spans.append([c, c])
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in spans)


PIECE = re.compile(r"\\p\{([LN])\}|\\s|\\S|\\[rn]|\\.|\[\^|[\[\]]|[^\\\[\]]", re.S)


def python_pattern(pattern):
    """A pattern of tokens.5 for Python's engine; refuses what is not listed here."""
    out, in_class = [], False
    for m in PIECE.finditer(pattern):
        piece = m.group(0)
        if m.group(1) or piece == "\\s":
            inside = category(m.group(1)) if m.group(1) else WHITE_SPACE
            piece = inside if in_class else f"[{inside}]"
        elif piece == "\\S" and not in_class:
            piece = f"[^{WHITE_SPACE}]"
        elif piece.startswith("\\") and piece not in ("\\r", "\\n"):
            raise ValueError(f"pattern: {piece} is not covered here")
        in_class = piece[0] == "[" if piece in ("[", "[^", "]") else in_class
        out.append(piece)
    return re.compile("".join(out))


@cache
def byte_characters():
    """tokens.6: byte -> character."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(0x100 + i) for i, b in enumerate(others)}


def expect(condition, what):
    if not condition:
        raise ValueError(f"tokenizer.json: {what} is not covered here")


class Tokenizer:
    def __init__(self, data):
        file = json.loads(data)
        model = file["model"]
        expect(model["type"] == "BPE" and not model.get("unk_token"), "this model")
        expect(file["normalizer"] is None, "a normalizer")
        self.vocabulary = dict(model["vocab"])
        merges = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
        self.ranks = {tuple(m): rank for rank, m in enumerate(merges)}
        self.ignore_merges = model.get("ignore_merges", False)
        self.added = {}
        for token in file["added_tokens"]:
            expect(not any(token[k] for k in ("single_word", "lstrip", "rstrip")), "this token")
            self.added[token["content"]] = token["id"]
            self.vocabulary[token["content"]] = token["id"]
        self.special = {t["content"] for t in file["added_tokens"] if t["special"]}
        self.pattern = self.read_pre_tokenizer(file["pre_tokenizer"])
        self.prefix, self.suffix = self.read_post_processor(file["post_processor"])
        self.names = {i: name for name, i in self.vocabulary.items()}
        self.bytes = {c: b for b, c in byte_characters().items()}

    @staticmethod
    def read_pre_tokenizer(entry):
        """tokens.4: a split and the characters of bytes, nothing else."""
        parts = entry["pretokenizers"] if entry["type"] == "Sequence" else [entry]
        expect([p["type"] for p in parts] == ["Split", "ByteLevel"], "this pre-tokenizer")
        split, level = parts
        expect(split["behavior"] == "Isolated" and not split["invert"], "this split")
        expect(not level["add_prefix_space"] and not level["use_regex"], "this ByteLevel")
        return python_pattern(split["pattern"]["Regex"])

    def read_post_processor(self, entry):
        """tokens.7: the special tokens before and behind the text."""
        if entry is None or entry["type"] == "ByteLevel":
            return [], []
        expect(entry["type"] == "TemplateProcessing", "this post-processor")
        pieces = entry["single"]
        where = ["Sequence" in p for p in pieces].index(True)
        ids = [
            entry["special_tokens"][p["SpecialToken"]["id"]]["ids"] if "SpecialToken" in p else []
            for p in pieces
        ]
        return sum(ids[:where], []), sum(ids[where + 1 :], [])

    def encode(self, text, special=True):
        """tokens.3 to tokens.7; special: with the special tokens of the post-processor."""
        unknown = [c for c in text if unicodedata.category(c) in ("Cn", "Cs")]
        expect(not unknown, f"character {unknown[:1]}")
        ids = list(self.prefix) if special and not active("tokens_without_bos") else []
        longest_first = sorted(self.added, key=len, reverse=True)
        cut = "|".join(re.escape(t) for t in longest_first) or r"(?!)"
        for piece in re.split(f"({cut})", text):
            if piece in self.added and not active("added_tokens_are_text"):
                ids.append(self.added[piece])
                continue
            for word in self.words(piece):
                ids += self.word_ids(word)
        return ids + (self.suffix if special else [])

    def words(self, piece):
        """tokens.4: matches and what stands between them."""
        end = 0
        if active("words_are_not_split"):
            yield piece
            return
        for m in self.pattern.finditer(piece):
            yield from (w for w in (piece[end : m.start()], m.group(0)) if w)
            end = m.end()
        if piece[end:]:
            yield piece[end:]

    def word_ids(self, word):
        """tokens.6"""
        parts = [byte_characters()[b] for b in word.encode()]
        if self.ignore_merges and "".join(parts) in self.vocabulary:
            return [self.vocabulary["".join(parts)]]
        while len(parts) > 1:
            pairs = [(self.ranks.get(p), i) for i, p in enumerate(zip(parts, parts[1:]))]
            known = [(rank, i) for rank, i in pairs if rank is not None]
            if not known:
                break
            if active("merges_leftmost_first"):
                known.sort(key=lambda pair: pair[1])
                _, i = known[0]
            else:
                _, i = min(known)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        return [self.vocabulary[p] for p in parts]

    def bytes_of(self, ids, special):
        """tokens.8: the bytes of the tokens, of special ones where `special` says so."""
        out = b""
        for i in ids:
            name = self.names.get(i)
            if name is None or name in self.special and not special:
                continue
            known = all(c in self.bytes for c in name)
            out += bytes(self.bytes[c] for c in name) if known else name.encode()
        return out

    def stream(self, ids):
        """tokens.9, special tokens included: what is given out, as UTF-8."""
        text = self.bytes_of(ids, True).decode("utf-8", errors="replace")
        rest = len(self.bytes_of(ids, True)) - len(self.settled(self.bytes_of(ids, True)))
        return (text[:-1] if rest else text).encode()

    @staticmethod
    def settled(data):
        """Without the bytes at the end that begin a character."""
        for n in range(1, min(3, len(data)) + 1):
            try:
                data[-n:].decode()
            except UnicodeDecodeError as e:
                if e.reason == "unexpected end of data" and e.start == 0:
                    return data[:-n]
        return data

    def decode(self, ids):
        """tokens.8, special tokens left out."""
        out = self.bytes_of(ids, active("text_with_special_tokens"))
        errors = "ignore" if active("ill_formed_bytes_vanish") else "replace"
        return out.decode("utf-8", errors=errors)
