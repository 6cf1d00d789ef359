"""Texts for the tokenizer tests, made from fixed seeds: prose, code, scripts, white space, emoji,
any code point."""

import random
import unicodedata

SCALARS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
SCRIPTS = [
    (0x41, 0x7A),
    (0xC0, 0x24F),
    (0x370, 0x3FF),
    (0x400, 0x52F),
    (0x531, 0x586),
    (0x591, 0x5F4),
    (0x600, 0x6FF),
    (0x900, 0x97F),
    (0xE01, 0xE5B),
    (0xF00, 0xFDA),
    (0x10A0, 0x10FF),
    (0x1100, 0x11FF),
    (0x1780, 0x17F9),
    (0x3041, 0x30FF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0x10400, 0x1044F),
    (0x1D400, 0x1D7FF),
    (0x20000, 0x2A6DF),
]
SPACES = (
    [" "] * 12
    + ["\n"] * 4
    + list("\t\r\v\f\x85\u00a0\u1680\u2000\u2009\u2028\u2029\u202f\u205f\u3000\u200b\ufeff")
)
SUFFIXES = [
    "'s",
    "'t",
    "'re",
    "'ve",
    "'m",
    "'ll",
    "'d",
    "'S",
    "'RE",
    "'lL",
    "'D",
    "'\u017f",
    "'\u212a",
    "\u2019s",
    "'x",
    "''",
]
EMOJI = [
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f",
    "\u2764\ufe0f",
    "\U0001f44d\U0001f3fd",
    "\U0001f1e9\U0001f1ea",
    "1\ufe0f\u20e3",
    "\U0001f600",
]
DIGITS = "0123456789\u0660\u0966\u2460\u2167\u00bd\u00b2\U0001d7ce"


def words(r):
    syllables = [
        "th",
        "e",
        "an",
        "ing",
        "o",
        "re",
        "st",
        "ion",
        "ly",
        "qu",
        "ba",
        "mon",
        "k",
        "sh",
        "ar",
        "ROM",
        "EO",
    ]
    return "".join(r.choice(syllables) for _ in range(r.randint(1, 4)))


def english(r):
    out = r.choice(["", " ", "  "]).join([words(r).capitalize(), ""])
    for _ in range(r.randint(3, 15)):
        out += (
            r.choice([" "] * 9 + ["  ", ", ", "; ", " - "])
            + words(r)
            + (r.choice(SUFFIXES) if r.random() < 0.1 else "")
        )
    return out + r.choice([".\n", "! ", "?\n\n", ".", ":\r\n", "...\n \n"])


def code(r):
    return r.choice(
        [
            lambda: (
                "    " * r.randint(0, 5)
                + f"if ({words(r)} != {r.randint(0, 10 ** r.randint(1, 12))}) {{\n"
            ),
            lambda: (
                "\t" * r.randint(0, 4)
                + f"return {words(r)}_{words(r)}[{r.randint(0, 99)}]->{words(r)}('{words(r)}');\r\n"
            ),
            lambda: "#" * r.randint(1, 9) + " " + words(r) + "\n" * r.randint(1, 4),
            lambda: f'<{words(r)} id="{r.getrandbits(40):x}">&amp;</{words(r)}>',
            lambda: "//" + "-=*"[r.randrange(3)] * r.randint(3, 60) + "\n",
            lambda: f"{r.uniform(-1e9, 1e9)!r}, 0x{r.getrandbits(64):X}; \\{words(r)}$^~`|@",
        ]
    )()


def scripts(r):
    a, b = r.choice(SCRIPTS)
    return "".join(chr(r.randint(a, b)) for _ in range(r.randint(1, 20))) + r.choice(
        ["", " ", "\u3002", ", ", "\u0301", "'s"]
    )


def spaces(r):
    return "".join(r.choices(SPACES, k=r.randint(1, 12))) + r.choice(
        ["", "x", "\n", "\u00e9", "7", "'", "!", "\U0001f600"]
    )


def tangled(r):
    return r.choice(
        [
            lambda: r.choice(EMOJI),
            lambda: r.choice(SUFFIXES),
            lambda: "".join(r.choices(DIGITS, k=r.randint(1, 9))),
            lambda: chr(r.randint(0, 0x7F)),
            lambda: chr(r.randint(0, 0x2FF)),
            lambda: r.choice(SPACES),
            lambda: r.choice(["<|begin_of_text|>", "<|end_of_text|>", "<|end_of_text", "|>", "<|"]),
            lambda: "e" + "".join(chr(r.randint(0x300, 0x36F)) for _ in range(r.randint(1, 4))),
        ]
    )()


def any_unicode(r):
    return "".join(map(chr, r.choices(SCALARS, k=40)))


def assigned_unicode(r):
    return "".join(map(chr, r.choices(ASSIGNED, k=40)))


ASSIGNED = [c for c in SCALARS if unicodedata.category(chr(c)) not in ("Cn", "Co")]
KINDS = {
    f.__name__: f for f in (english, code, scripts, spaces, tangled, any_unicode, assigned_unicode)
}


def texts(kind, size, seed=1, longest=6000):
    """Texts of one kind, together at least `size` bytes long; 'mixed' draws every part from any
    kind."""
    r = random.Random(f"{kind} {seed}")
    makers = list(KINDS.values())
    out, total = [], 0
    while total < size:
        parts, length, limit = [], 0, r.randint(0, longest)
        while length <= limit:
            parts.append((KINDS[kind] if kind in KINDS else r.choice(makers))(r))
            length += len(parts[-1])
        out.append("".join(parts))
        total += len(out[-1].encode())
    return out
