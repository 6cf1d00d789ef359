"""A corpus for parity runs: code, translations in all languages of this machine's message
catalogues, white space, emoji, any code point, special tokens in the text."""

import gettext
import json
import lzma
import os
import random
from pathlib import Path

from tokenizer.texts import texts

# Shares of a corpus; the rest is from the machine.
MADE = {"scripts": 0.1, "mixed": 0.1, "spaces": 0.03, "tangled": 0.05,
        "any_unicode": 0.06, "assigned_unicode": 0.06}  # fmt: skip


def locale_texts(seed):
    """Translations from the machine's message catalogues, twenty messages a text."""
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
            yield "\n".join(messages[i : i + 20])


def code_texts(seed):
    files = sorted(Path(os.__file__).parent.rglob("*.py"))
    random.Random(seed).shuffle(files)
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        for i in range(0, len(text), 3000):
            yield text[i : i + 3000]


def up_to(size, source):
    for text in source:
        if size <= 0:
            return
        size -= len(text.encode())
        yield text


def machine_texts(size, seed):
    """Two thirds translations, one third code."""
    return [*up_to(size * 2 / 3, locale_texts(seed)), *up_to(size / 3, code_texts(seed))]


def write(path, found):
    with lzma.open(path, "wt", encoding="utf-8") as f:
        f.writelines(json.dumps(t, ensure_ascii=False) + "\n" for t in found)


def read(path):
    with lzma.open(path, "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def shard(found, size, number, of):
    """The texts of one of `of` equal parts of a corpus of `size` bytes: every of-th text of the
    machine's, and made ones."""
    parts = list(up_to(size * (1 - sum(MADE.values())) / of, found[number::of]))
    for kind, share in MADE.items():
        parts += texts(kind, int(size * share / of), seed=1000 + number)
    random.Random(number).shuffle(parts)
    return parts


def with_special(parts, special, seed):
    """Every seventh text with a special token somewhere."""
    r = random.Random(seed)
    for i, text in enumerate(parts):
        if special and i % 7 == 0:
            at = r.randrange(len(text) + 1)
            text = text[:at] + r.choice(special) + text[at:]
        yield text
