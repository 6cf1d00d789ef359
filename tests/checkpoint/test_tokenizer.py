"""Byte-for-byte parity of src/prompt with Hugging Face tokenizers (spec/tokens.md).

Texts, patterns and tokenizers are made here from fixed seeds. The oracle must have the pinned
Unicode version, as tokenizers 0.23 does: the first test says so if it does not."""

import json
import random
import re
import subprocess
import unicodedata

import pytest
import tokenizers
from tokenizer.oracle import (
    BYTE_NAME,
    PROGRAM,
    SHIPPED,
    Ours,
    compare,
    first_difference,
    opened,  # noqa: F401
)
from tokenizer.texts import SCALARS, texts
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)


# ---- the shipped tokenizer -----------------------------------------------------------------------
@pytest.fixture(scope="module")
def shipped():
    ours = Ours(SHIPPED)
    yield Tokenizer.from_file(str(SHIPPED)), ours
    ours.close()


def test_oracle_has_our_unicode_version():
    """U+1C89 is a letter since Unicode 16.0, U+A7CE since 17.0."""
    split = pre_tokenizers.Split(Regex(r"\p{L}"), "isolated")
    pieces = [p for p, _ in split.pre_tokenize_str("\u1c89\u1c8a\ua7ce\ua7cf")]
    assert pieces == ["\u1c89", "\u1c8a", "\ua7ce\ua7cf"], (
        f"tokenizers {tokenizers.__version__} has other tables"
    )


SIZES = {
    "english": 3_000_000,
    "code": 2_000_000,
    "scripts": 1_500_000,
    "spaces": 1_000_000,
    "tangled": 1_000_000,
    "any_unicode": 800_000,
    "assigned_unicode": 800_000,
    "mixed": 1_000_000,
}


def test_total_size():
    assert sum(SIZES.values()) >= 10_000_000


@pytest.mark.parametrize("kind", SIZES)
def test_shipped(shipped, kind):
    theirs, ours = shipped
    batch = texts(kind, SIZES[kind])
    for text, e in zip(batch, theirs.encode_batch_fast(batch)):
        got = ours.encode(text)
        assert e.ids == got, f"{text[:200]!r} {first_difference(e.ids, got)}"
        assert ours.decode(got) == re.sub(r"<\|(begin|end)_of_text\|>", "", text)
    sample = batch[:20]
    for ids in [theirs.encode(t).ids for t in sample]:
        assert ours.decode(ids) == theirs.decode(ids)
        assert ours.decode(ids, b"D") == theirs.decode(ids, skip_special_tokens=False)


def test_every_character(shipped):
    theirs, ours = shipped
    for before, after in (("", ""), ("a", "b"), (" ", "'s"), ("1", "\n")):
        for block in range(0, len(SCALARS), 1 << 17):
            text = "".join(
                f"{before}{chr(c)}{after}"
                for c in SCALARS[block : block + (1 << 17) : 1 if not before else 7]
            )
            compare(theirs, ours, [text])


def test_shipped_edges(shipped):
    theirs, ours = shipped
    edges = [
        "",
        " ",
        "\n",
        "\0",
        "'",
        "'s",
        " 's",
        "a",
        "\u017f",
        "\u212a",
        "<|begin_of_text|>",
        "<|begin_of_text|><|end_of_text|>",
        "ROMEO:",
        "a" * 5000,
        " " * 5000,
        "\n" * 5000,
        " \n" * 2500 + "x",
        "1" * 1000,
        "\u00e9" * 3000,
        "\U0001f600" * 1000,
    ]
    compare(theirs, ours, edges)
    compare(theirs, ours, edges, special=False)


def test_long_runs(shipped):
    """One word, and one run of white space, of a megabyte: neither deep recursion nor quadratic
    time."""
    theirs, ours = shipped
    long = [
        "a" * 1_000_000,
        " " * 1_000_000 + "x",
        "\u3000" * 300_000,
        "ab" * 400_000,
        "\n" * 500_000,
    ]
    compare(theirs, ours, long)


def test_decode_random_ids(shipped):
    theirs, ours = shipped
    r = random.Random(2)
    for _ in range(300):
        ids = [r.randrange(-2, theirs.get_vocab_size() + 3) for _ in range(r.randint(0, 300))]
        known = [i for i in ids if i >= 0]
        for how, skip in ((b"d", True), (b"D", False), (b"s", True)):
            assert ours.decode(ids, how) == theirs.decode(known, skip_special_tokens=skip)


def test_decode_broken_utf8(shipped):
    """Every pair and many longer rows of single-byte tokens: U+FFFD in the same places."""
    theirs, ours = shipped
    id_of = {b: i for b, c in BYTE_NAME.items() if (i := theirs.token_to_id(c)) is not None}
    edge = [
        b
        for b in (
            0x41,
            0x7F,
            0x80,
            0x8F,
            0x90,
            0x9F,
            0xA0,
            0xBF,
            0xC0,
            0xC2,
            0xDF,
            0xE0,
            0xE1,
            0xED,
            0xEF,
            0xF0,
            0xF1,
            0xF4,
            0xF5,
            0xFF,
        )
        if b in id_of
    ]
    rows = [[a, b] for a in edge for b in edge] + [
        [a, b, c] for a in edge for b in edge for c in edge
    ]
    r = random.Random(3)
    rows += [r.choices(edge, k=r.randint(4, 40)) for _ in range(2000)]
    assert len(edge) > 10
    for row in rows:
        ids = [id_of[b] for b in row]
        want = bytes(row).decode("utf-8", "replace")
        assert ours.decode(ids) == want == ours.decode(ids, b"s"), row
    for row in rows[::20]:
        ids = [id_of[b] for b in row]
        assert ours.decode(ids) == theirs.decode(ids)


# ---- other tokenizers ----------------------------------------------------------------------------
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|"
    r" ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
KIMI = "|".join(
    [
        r"[\p{Han}]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
DEEPSEEK = (
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
    " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)


def isolated(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def bytes_last(*steps, prefix=False, use_regex=False):
    return pre_tokenizers.Sequence(
        [*steps, pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)]
    )


PRE = {
    "gpt2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "gpt2 prefix": lambda: pre_tokenizers.ByteLevel(add_prefix_space=True),
    "llama3": lambda: bytes_last(isolated(LLAMA3)),
    "qwen2": lambda: bytes_last(isolated(QWEN2)),
    "cl100k": lambda: bytes_last(isolated(CL100K)),
    "o200k": lambda: bytes_last(isolated(O200K)),
    "kimi": lambda: bytes_last(isolated(KIMI)),
    "deepseek": lambda: bytes_last(
        isolated(r"\p{N}{1,3}"),
        isolated("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
        isolated(DEEPSEEK),
    ),
    "starcoder": lambda: bytes_last(pre_tokenizers.Digits(individual_digits=True), use_regex=True),
    "digits": lambda: bytes_last(
        pre_tokenizers.Digits(individual_digits=False), prefix=True, use_regex=True
    ),
    "lines": lambda: bytes_last(pre_tokenizers.Split("\n", "merged_with_previous")),
    "whole": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
}
CORPUS = texts("mixed", 150_000, seed=7, longest=2000)


def trained(pre, size=900, **options):
    t = Tokenizer(models.BPE(**options))
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    )
    return t


@pytest.mark.parametrize("name", PRE)
def test_trained(opened, name):
    theirs, ours = opened(trained(PRE[name]()))
    batch = (
        texts("mixed", 200_000, seed=11)
        + texts("tangled", 50_000, seed=11)
        + texts("spaces", 50_000, seed=11)
    )
    compare(theirs, ours, batch)
    r = random.Random(4)
    for _ in range(50):
        ids = r.choices(range(theirs.get_vocab_size()), k=100)
        assert ours.decode(ids) == theirs.decode(ids) == ours.decode(ids, b"s")


def boundaries(pre):
    """A tokenizer without merges in which a piece that does not begin with a space gets one: its
    ids show the pieces."""
    names = sorted(pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(names)}, merges=[]))
    t.pre_tokenizer = bytes_last(*pre, prefix=True)
    t.decoder = decoders.ByteLevel()
    return t


@pytest.mark.parametrize(
    "behavior", ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]
)
@pytest.mark.parametrize("invert", [False, True])
def test_split_behaviors(opened, behavior, invert):
    r = random.Random(5)
    batch = ["".join(r.choices("aab-.\t1\u00e9", k=r.randint(0, 12))) for _ in range(400)]
    for pattern in (
        Regex(r"[-.]"),
        Regex(r"a*"),
        Regex(r"(?=b)"),
        Regex(r"\w+|\s"),
        "-.",
        "a",
        "aa",
    ):
        theirs, ours = opened(boundaries([pre_tokenizers.Split(pattern, behavior, invert)]))
        compare(theirs, ours, batch)


def random_pattern(r, depth=0):
    """A pattern of the supported grammar (and now and then of what must be refused)."""

    def one():
        return r.choice(
            [
                "a",
                "b",
                "s",
                "1",
                "\\.",
                "-",
                "\\n",
                "\\s",
                "\\S",
                "\\d",
                "\\w",
                "\\W",
                "\\p{L}",
                "\\P{L}",
                "\\p{N}",
                "\\p{Lu}",
                "\\p{^M}",
                ".",
                "[ab]",
                "[^a\\s]",
                "[a-c1-3]",
                "[\\p{L}-]",
                "[^\\p{L}\\p{N}]",
                "[a-z&&[^b]]",
                "\u00e9",
                "\\u00e9",
                "\\x61",
                "(?i:a)",
                "(?i:'s)",
                "(?i:[sk])",
                "(?i:[^k])",
                "\\p{Han}",
                "k",
                "[-a]",
                "[a-]",
            ]
        )

    def term():
        x = r.random()
        if depth < 3 and x < 0.25:
            inner = random_pattern(r, depth + 1)
            base = r.choice(["(?:%s)", "(%s)", "(?>%s)", "(?=%s)", "(?!%s)"]) % inner
        elif x < 0.3:
            return r.choice(["^", "$", "\\A", "\\z"])
        else:
            base = one()
        return base + r.choice(
            [""] * 6
            + [
                "?",
                "*",
                "+",
                "{2}",
                "{1,3}",
                "{,2}",
                "{2,}",
                "??",
                "*?",
                "+?",
                "?+",
                "*+",
                "++",
                "{1,2}+",
                "{1,3}?",
            ]
        )

    return "|".join(
        "".join(term() for _ in range(r.randint(1, 4))) for _ in range(r.choice([1, 1, 2, 3]))
    )


def test_random_patterns(opened, tmp_path):
    r = random.Random(6)
    same = refused = 0
    for _ in range(400):
        pattern = random_pattern(r)
        try:
            tokenizer = boundaries([isolated(pattern)])
        except Exception:  # not a pattern for Oniguruma either
            continue
        path = tmp_path / "pattern.json"
        path.write_text(tokenizer.to_str(), encoding="utf-8")
        probe = subprocess.run([PROGRAM, path], input=b"", capture_output=True)
        if probe.returncode == 3:
            assert b"supported grammar" in probe.stderr
            refused += 1
            continue
        assert probe.returncode == 0, (pattern, probe.stderr)
        batch = [
            "".join(
                r.choices(
                    [
                        "a",
                        "b",
                        "c",
                        "s",
                        "S",
                        "k",
                        "K",
                        "1",
                        "22",
                        ".",
                        "-",
                        "\n",
                        "\t",
                        "'",
                        "\u00e9",
                        "\u017f",
                        "\u212a",
                        "\u4e2d",
                        "\u0301",
                        "A",
                    ],
                    k=r.randint(0, 14),
                )
            )
            for _ in range(60)
        ]
        theirs, ours = opened(tokenizer)
        for text in batch:
            want, got = theirs.encode(text).ids, ours.encode(text)
            assert want == got, (pattern, text, theirs.decode(want), theirs.decode(got))
        same += 1
    assert same > 150, (same, refused)


def test_nfc(opened):
    t = trained(PRE["qwen2"]())
    t.normalizer = normalizers.NFC()
    t.add_tokens(
        [
            AddedToken("\u00e9t\u00e9", normalized=True),
            AddedToken("e\u0301!", normalized=True),
            AddedToken("e\u0301?", normalized=False),
        ]
    )
    theirs, ours = opened(t)
    r = random.Random(8)
    marks = (
        [c for c in SCALARS if unicodedata.category(chr(c)) == "Mn"]
        + list(range(0x1100, 0x1200))
        + [0x1161, 0x11A8] * 50
    )
    composed = [c for c in SCALARS if unicodedata.decomposition(chr(c))]
    batch = [
        "".join(
            chr(
                r.choice(
                    r.choice(
                        [
                            marks,
                            marks,
                            composed,
                            range(0x41, 0x5B),
                            [0xAC00, 0xAC01, 0x65, 0x301, 0x21, 0x3F],
                        ]
                    )
                )
            )
            for _ in range(r.randint(1, 60))
        )
        for _ in range(3000)
    ]
    compare(
        theirs,
        ours,
        batch
        + texts("scripts", 100_000, seed=12)
        + texts("tangled", 100_000, seed=12)
        + ["e\u0301te\u0301 e\u0301! e\u0301? \u00e9!"],
    )


def test_added_tokens(opened):
    t = trained(PRE["gpt2"]())
    t.add_special_tokens(
        [
            AddedToken("<s>"),
            AddedToken("</s>", rstrip=True),
            AddedToken("<mask>", lstrip=True),
            "<|a|>",
            "<|a|><|b|>",
        ]
    )
    t.add_tokens(
        [
            AddedToken("word", single_word=True),
            AddedToken("wor"),
            AddedToken("\u00e9", lstrip=True, rstrip=True),
            AddedToken("  "),
            AddedToken("my token"),
            AddedToken("\u4e2d\u6587", single_word=True),
            AddedToken("the", normalized=False),
            AddedToken("\n"),
        ]
    )
    theirs, ours = opened(t)
    parts = [
        "<s>",
        "</s>",
        "<mask>",
        "<|a|>",
        "<|b|>",
        "<|a",
        "word",
        "wor",
        "words",
        "sword",
        "_",
        "-",
        " ",
        "  ",
        "\t",
        "\n",
        "\u00e9",
        "my token",
        "my",
        "\u4e2d\u6587",
        "the",
        "there",
        "\u200d",
        "\u0301",
        "x",
        "\u2160",
        "\u00b2",
        "\u3000",
    ]
    r = random.Random(9)
    compare(theirs, ours, ["".join(r.choices(parts, k=r.randint(1, 20))) for _ in range(5000)])
    for _ in range(500):
        ids = [
            r.randrange(theirs.get_vocab_size() - 20, theirs.get_vocab_size()) for _ in range(20)
        ]
        assert ours.decode(ids) == theirs.decode(ids) == ours.decode(ids, b"s")
        assert ours.decode(ids, b"D") == theirs.decode(ids, skip_special_tokens=False)


def test_post_processors(opened):
    t = trained(PRE["llama3"]())
    t.add_special_tokens(["<s>", "</s>"])
    s, e = t.token_to_id("<s>"), t.token_to_id("</s>")
    template = processors.TemplateProcessing(
        single="<s> $A </s> </s>", special_tokens=[("<s>", s), ("</s>", e)]
    )
    for p in (
        template,
        processors.ByteLevel(trim_offsets=False),
        processors.Sequence([processors.ByteLevel(), template]),
    ):
        t.post_processor = p
        theirs, ours = opened(t)
        for special in (True, False):
            compare(
                theirs, ours, ["", "a b", "<s>x</s>"] + texts("mixed", 20_000, seed=13), special
            )


def test_model_options(opened):
    t = trained(PRE["llama3"]())
    for change in (
        {"ignore_merges": True},
        {"merges": "pairs"},
        {"unk_token": "<unk>"},
        {"unk_token": "<unk>", "fuse_unk": True},
    ):
        j = json.loads(t.to_str())
        if change.get("merges") == "pairs":
            j["model"]["merges"] = [
                m if isinstance(m, str) else " ".join(m) for m in j["model"]["merges"]
            ]
        else:
            j["model"].update(change)
        if "unk_token" in change:  # take some bytes away
            lost = ["\u00c3", "\u00e2", "\u0120", "q"]
            j["model"]["vocab"] = {
                k: v for k, v in j["model"]["vocab"].items() if not set(lost) & set(k)
            }
            j["model"]["merges"] = [
                m for m in j["model"]["merges"] if not set(lost) & set("".join(m))
            ]
            j["model"]["vocab"]["<unk>"] = 5000
        theirs, ours = opened(json.dumps(j))
        compare(theirs, ours, texts("mixed", 100_000, seed=14))
