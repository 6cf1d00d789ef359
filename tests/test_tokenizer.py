"""Byte-for-byte parity of prompt/ with Hugging Face tokenizers, and refusal of what is hostile or not covered.

Texts, patterns and tokenizers are made here from fixed seeds. tokenizers must use Unicode 16.0 (0.22 to 0.23 do): the
first test says so if it does not."""

import array
import json
import os
import random
import re
import struct
import subprocess
import unicodedata

import pytest

os.environ["TOKENIZERS_PARALLELISM"] = "false"
tokenizers = pytest.importorskip("tokenizers")
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

from conftest import BUILD, MODEL  # noqa: E402

PROGRAM = BUILD / "bin/invar_tokenize"
SHIPPED = MODEL / "tokenizer.json"


class Ours:
    """The tokenizer under test, as a process that answers requests (tests/tokenizer/main.cc)."""

    def __init__(self, path):
        self.process = subprocess.Popen([PROGRAM, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, what, payload):
        self.process.stdin.write(what + struct.pack("<I", len(payload)) + payload)
        self.process.stdin.flush()
        code, length = struct.unpack("<BI", self.process.stdout.read(5))
        return code, self.process.stdout.read(length)

    def encode(self, text, special=True):
        code, answer = self.ask(b"e" if special else b"E", text.encode())
        assert code == 0, answer
        return array.array("i", answer).tolist()

    def decode(self, ids, how=b"d"):
        code, answer = self.ask(how, array.array("i", ids).tobytes())
        assert code == 0
        return answer.decode()

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
        self.process.stdout.close()


@pytest.fixture
def opened(tmp_path):
    """opened(tokenizer or its JSON) -> (theirs, ours)."""
    started = []

    def f(tokenizer):
        content = tokenizer if isinstance(tokenizer, str) else tokenizer.to_str()
        path = tmp_path / f"{len(started)}.json"
        path.write_text(content, encoding="utf-8")
        started.append(Ours(path))
        return Tokenizer.from_str(content), started[-1]

    yield f
    for s in started:
        s.close()


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"at {at}: theirs {a[max(0, at - 3):at + 8]}, ours {b[max(0, at - 3):at + 8]}"


def compare(theirs, ours, texts, special=True):
    for text, e in zip(texts, theirs.encode_batch_fast(texts, add_special_tokens=special)):
        want, got = e.ids, ours.encode(text, special)
        assert want == got, f"{text[:200]!r} {first_difference(want, got)}"


PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_NAME = {b: chr(b) for b in PRINTABLE} | {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in PRINTABLE)}


# ---- texts -----------------------------------------------------------------------------------------------------------
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
SCRIPTS = [(0x41, 0x7A), (0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x586), (0x591, 0x5F4), (0x600, 0x6FF),
           (0x900, 0x97F), (0xE01, 0xE5B), (0xF00, 0xFDA), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1780, 0x17F9),
           (0x3041, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x10400, 0x1044F), (0x1D400, 0x1D7FF), (0x20000, 0x2A6DF)]
SPACES = [" "] * 12 + ["\n"] * 4 + list("\t\r\v\f\x85\u00a0\u1680\u2000\u2009\u2028\u2029\u202f\u205f\u3000\u200b\ufeff")
SUFFIXES = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'RE", "'lL", "'D", "'\u017f", "'\u212a", "\u2019s", "'x", "''"]
EMOJI = ["\U0001F468\u200d\U0001F469\u200d\U0001F467", "\U0001F3F4\U000E0067\U000E0062\U000E007F", "\u2764\ufe0f",
         "\U0001F44D\U0001F3FD", "\U0001F1E9\U0001F1EA", "1\ufe0f\u20e3", "\U0001F600"]
DIGITS = "0123456789\u0660\u0966\u2460\u2167\u00bd\u00b2\U0001D7CE"


def words(r):
    syllables = ["th", "e", "an", "ing", "o", "re", "st", "ion", "ly", "qu", "ba", "mon", "k", "sh", "ar", "ROM", "EO"]
    return "".join(r.choice(syllables) for _ in range(r.randint(1, 4)))


def english(r):
    out = r.choice(["", " ", "  "]).join([words(r).capitalize(), ""])
    for _ in range(r.randint(3, 15)):
        out += r.choice([" "] * 9 + ["  ", ", ", "; ", " - "]) + words(r) + (r.choice(SUFFIXES) if r.random() < 0.1 else "")
    return out + r.choice([".\n", "! ", "?\n\n", ".", ":\r\n", "...\n \n"])


def code(r):
    return r.choice([
        lambda: "    " * r.randint(0, 5) + f"if ({words(r)} != {r.randint(0, 10**r.randint(1, 12))}) {{\n",
        lambda: "\t" * r.randint(0, 4) + f"return {words(r)}_{words(r)}[{r.randint(0, 99)}]->{words(r)}('{words(r)}');\r\n",
        lambda: "#" * r.randint(1, 9) + " " + words(r) + "\n" * r.randint(1, 4),
        lambda: f"<{words(r)} id=\"{r.getrandbits(40):x}\">&amp;</{words(r)}>",
        lambda: "//" + "-=*"[r.randrange(3)] * r.randint(3, 60) + "\n",
        lambda: f"{r.uniform(-1e9, 1e9)!r}, 0x{r.getrandbits(64):X}; \\{words(r)}$^~`|@",
    ])()


def scripts(r):
    a, b = r.choice(SCRIPTS)
    return "".join(chr(r.randint(a, b)) for _ in range(r.randint(1, 20))) + r.choice(["", " ", "\u3002", ", ", "\u0301", "'s"])


def spaces(r):
    return "".join(r.choices(SPACES, k=r.randint(1, 12))) + r.choice(["", "x", "\n", "\u00e9", "7", "'", "!", "\U0001F600"])


def tangled(r):
    return r.choice([lambda: r.choice(EMOJI), lambda: r.choice(SUFFIXES), lambda: "".join(r.choices(DIGITS, k=r.randint(1, 9))),
                     lambda: chr(r.randint(0, 0x7F)), lambda: chr(r.randint(0, 0x2FF)), lambda: r.choice(SPACES),
                     lambda: r.choice(["<|begin_of_text|>", "<|end_of_text|>", "<|end_of_text", "|>", "<|"]),
                     lambda: "e" + "".join(chr(r.randint(0x300, 0x36F)) for _ in range(r.randint(1, 4)))])()


def any_unicode(r):
    return "".join(map(chr, r.choices(SCALARS, k=40)))


def assigned_unicode(r):
    return "".join(map(chr, r.choices(ASSIGNED, k=40)))


ASSIGNED = [c for c in SCALARS if unicodedata.category(chr(c)) not in ("Cn", "Co")]
KINDS = {f.__name__: f for f in (english, code, scripts, spaces, tangled, any_unicode, assigned_unicode)}


def texts(kind, size, seed=1, longest=6000):
    """Texts of one kind, together at least `size` bytes long; 'mixed' draws every part from any kind."""
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


# ---- the shipped tokenizer -------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def shipped():
    ours = Ours(SHIPPED)
    yield Tokenizer.from_file(str(SHIPPED)), ours
    ours.close()


def test_oracle_has_our_unicode_version():
    """U+1C89 is a letter since Unicode 16.0, U+A7CE since 17.0."""
    split = pre_tokenizers.Split(Regex(r"\p{L}"), "isolated")
    pieces = [p for p, _ in split.pre_tokenize_str("\u1c89\u1c8a\ua7ce\ua7cf")]
    assert pieces == ["\u1c89", "\u1c8a", "\ua7ce\ua7cf"], f"tokenizers {tokenizers.__version__} has other tables"


SIZES = {"english": 3_000_000, "code": 2_000_000, "scripts": 1_500_000, "spaces": 1_000_000, "tangled": 1_000_000,
         "any_unicode": 800_000, "assigned_unicode": 800_000, "mixed": 1_000_000}


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
            text = "".join(f"{before}{chr(c)}{after}" for c in SCALARS[block:block + (1 << 17):1 if not before else 7])
            compare(theirs, ours, [text])


def test_shipped_edges(shipped):
    theirs, ours = shipped
    edges = ["", " ", "\n", "\0", "'", "'s", " 's", "a", "\u017f", "\u212a", "<|begin_of_text|>", "<|begin_of_text|><|end_of_text|>",
             "ROMEO:", "a" * 5000, " " * 5000, "\n" * 5000, " \n" * 2500 + "x", "1" * 1000, "\u00e9" * 3000, "\U0001F600" * 1000]
    compare(theirs, ours, edges)
    compare(theirs, ours, edges, special=False)


def test_long_runs(shipped):
    """One word, and one run of white space, of a megabyte: neither deep recursion nor quadratic time."""
    theirs, ours = shipped
    long = ["a" * 1_000_000, " " * 1_000_000 + "x", "\u3000" * 300_000, "ab" * 400_000, "\n" * 500_000]
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
    edge = [b for b in (0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF)
            if b in id_of]
    rows = [[a, b] for a in edge for b in edge] + [[a, b, c] for a in edge for b in edge for c in edge]
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


def test_invalid_utf8_is_refused_with_its_place(shipped):
    _, ours = shipped
    for text, at in ((b"ab\xff", 2), (b"\x80", 0), (b"abcdefgh\xc3", 8), (b"\xed\xa0\x80", 0), (b"x\xf4\x90\x80\x80", 1),
                     (b"\xc0\xaf", 0), ("\u00e9".encode() * 9 + b"\xe2\x82", 18)):
        code, message = ours.ask(b"e", text)
        assert code == 2 and f"byte {at} of {len(text)}".encode() in message, message
    assert ours.encode("still alive")


# ---- other tokenizers ------------------------------------------------------------------------------------------------
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
KIMI = "|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
DEEPSEEK = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
            " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")


def isolated(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def bytes_last(*steps, prefix=False, use_regex=False):
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)])


PRE = {
    "gpt2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "gpt2 prefix": lambda: pre_tokenizers.ByteLevel(add_prefix_space=True),
    "llama3": lambda: bytes_last(isolated(LLAMA3)),
    "qwen2": lambda: bytes_last(isolated(QWEN2)),
    "cl100k": lambda: bytes_last(isolated(CL100K)),
    "o200k": lambda: bytes_last(isolated(O200K)),
    "kimi": lambda: bytes_last(isolated(KIMI)),
    "deepseek": lambda: bytes_last(isolated(r"\p{N}{1,3}"), isolated("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), isolated(DEEPSEEK)),
    "starcoder": lambda: bytes_last(pre_tokenizers.Digits(individual_digits=True), use_regex=True),
    "digits": lambda: bytes_last(pre_tokenizers.Digits(individual_digits=False), prefix=True, use_regex=True),
    "lines": lambda: bytes_last(pre_tokenizers.Split("\n", "merged_with_previous")),
    "whole": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
}
CORPUS = texts("mixed", 150_000, seed=7, longest=2000)
DIGITS_17 = set(range(0x11DE0, 0x11DEA)) | {0x16FF4, 0x16FF5, 0x16FF6}  # what Digits (Rust's tables) takes from Unicode 17


def trained(pre, size=900, **options):
    t = Tokenizer(models.BPE(**options))
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False))
    return t


@pytest.mark.parametrize("name", PRE)
def test_trained(opened, name):
    theirs, ours = opened(trained(PRE[name]()))
    batch = texts("mixed", 200_000, seed=11) + texts("tangled", 50_000, seed=11) + texts("spaces", 50_000, seed=11)
    batch = ["".join(c for c in t if ord(c) not in DIGITS_17) for t in batch]
    compare(theirs, ours, batch)
    r = random.Random(4)
    for _ in range(50):
        ids = r.choices(range(theirs.get_vocab_size()), k=100)
        assert ours.decode(ids) == theirs.decode(ids) == ours.decode(ids, b"s")


def boundaries(pre):
    """A tokenizer without merges in which a piece that does not begin with a space gets one: its ids show the pieces."""
    names = sorted(pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(names)}, merges=[]))
    t.pre_tokenizer = bytes_last(*pre, prefix=True)
    t.decoder = decoders.ByteLevel()
    return t


@pytest.mark.parametrize("behavior", ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"])
@pytest.mark.parametrize("invert", [False, True])
def test_split_behaviors(opened, behavior, invert):
    r = random.Random(5)
    batch = ["".join(r.choices("aab-.\t1\u00e9", k=r.randint(0, 12))) for _ in range(400)]
    for pattern in (Regex(r"[-.]"), Regex(r"a*"), Regex(r"(?=b)"), Regex(r"\w+|\s"), "-.", "a", "aa"):
        theirs, ours = opened(boundaries([pre_tokenizers.Split(pattern, behavior, invert)]))
        compare(theirs, ours, batch)


def random_pattern(r, depth=0):
    """A pattern of the supported grammar (and now and then of what must be refused)."""
    def one():
        return r.choice(["a", "b", "s", "1", "\\.", "-", "\\n", "\\s", "\\S", "\\d", "\\w", "\\W", "\\p{L}", "\\P{L}", "\\p{N}", "\\p{Lu}",
                         "\\p{^M}", ".", "[ab]", "[^a\\s]", "[a-c1-3]", "[\\p{L}-]", "[^\\p{L}\\p{N}]", "[a-z&&[^b]]", "\u00e9", "\\u00e9",
                         "\\x61", "(?i:a)", "(?i:'s)", "(?i:[sk])", "(?i:[^k])", "\\p{Han}", "k", "[-a]", "[a-]"])

    def term():
        x = r.random()
        if depth < 3 and x < 0.25:
            inner = random_pattern(r, depth + 1)
            base = r.choice(["(?:%s)", "(%s)", "(?>%s)", "(?=%s)", "(?!%s)"]) % inner
        elif x < 0.3:
            return r.choice(["^", "$", "\\A", "\\z"])
        else:
            base = one()
        return base + r.choice([""] * 6 + ["?", "*", "+", "{2}", "{1,3}", "{,2}", "{2,}", "??", "*?", "+?", "?+", "*+", "++", "{1,2}+", "{1,3}?"])

    return "|".join("".join(term() for _ in range(r.randint(1, 4))) for _ in range(r.choice([1, 1, 2, 3])))


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
        batch = ["".join(r.choices(["a", "b", "c", "s", "S", "k", "K", "1", "22", ".", "-", "\n", "\t", "'", "\u00e9", "\u017f", "\u212a",
                                    "\u4e2d", "\u0301", "A"], k=r.randint(0, 14))) for _ in range(60)]
        theirs, ours = opened(tokenizer)
        for text in batch:
            want, got = theirs.encode(text).ids, ours.encode(text)
            assert want == got, (pattern, text, theirs.decode(want), theirs.decode(got))
        same += 1
    assert same > 150, (same, refused)


def test_nfc(opened):
    t = trained(PRE["qwen2"]())
    t.normalizer = normalizers.NFC()
    t.add_tokens([AddedToken("\u00e9t\u00e9", normalized=True), AddedToken("e\u0301!", normalized=True), AddedToken("e\u0301?", normalized=False)])
    theirs, ours = opened(t)
    r = random.Random(8)
    marks = [c for c in SCALARS if unicodedata.category(chr(c)) == "Mn"] + list(range(0x1100, 0x1200)) + [0x1161, 0x11A8] * 50
    composed = [c for c in SCALARS if unicodedata.decomposition(chr(c))]
    batch = ["".join(chr(r.choice(r.choice([marks, marks, composed, range(0x41, 0x5B), [0xAC00, 0xAC01, 0x65, 0x301, 0x21, 0x3F]])))
                     for _ in range(r.randint(1, 60))) for _ in range(3000)]
    compare(theirs, ours, batch + texts("scripts", 100_000, seed=12) + texts("tangled", 100_000, seed=12) + ["e\u0301te\u0301 e\u0301! e\u0301? \u00e9!"])


def test_added_tokens(opened):
    t = trained(PRE["gpt2"]())
    t.add_special_tokens([AddedToken("<s>"), AddedToken("</s>", rstrip=True), AddedToken("<mask>", lstrip=True), "<|a|>", "<|a|><|b|>"])
    t.add_tokens([AddedToken("word", single_word=True), AddedToken("wor"), AddedToken("\u00e9", lstrip=True, rstrip=True), AddedToken("  "),
                  AddedToken("my token"), AddedToken("\u4e2d\u6587", single_word=True), AddedToken("the", normalized=False), AddedToken("\n")])
    theirs, ours = opened(t)
    parts = ["<s>", "</s>", "<mask>", "<|a|>", "<|b|>", "<|a", "word", "wor", "words", "sword", "_", "-", " ", "  ", "\t", "\n", "\u00e9", "my token",
             "my", "\u4e2d\u6587", "the", "there", "\u200d", "\u0301", "x", "\u2160", "\u00b2", "\u3000"]
    r = random.Random(9)
    compare(theirs, ours, ["".join(r.choices(parts, k=r.randint(1, 20))) for _ in range(5000)])
    for _ in range(500):
        ids = [r.randrange(theirs.get_vocab_size() - 20, theirs.get_vocab_size()) for _ in range(20)]
        assert ours.decode(ids) == theirs.decode(ids) == ours.decode(ids, b"s")
        assert ours.decode(ids, b"D") == theirs.decode(ids, skip_special_tokens=False)


def test_post_processors(opened):
    t = trained(PRE["llama3"]())
    t.add_special_tokens(["<s>", "</s>"])
    s, e = t.token_to_id("<s>"), t.token_to_id("</s>")
    template = processors.TemplateProcessing(single="<s> $A </s> </s>", special_tokens=[("<s>", s), ("</s>", e)])
    for p in (template, processors.ByteLevel(trim_offsets=False), processors.Sequence([processors.ByteLevel(), template])):
        t.post_processor = p
        theirs, ours = opened(t)
        for special in (True, False):
            compare(theirs, ours, ["", "a b", "<s>x</s>"] + texts("mixed", 20_000, seed=13), special)


def test_model_options(opened):
    t = trained(PRE["llama3"]())
    for change in ({"ignore_merges": True}, {"merges": "pairs"}, {"unk_token": "<unk>"}, {"unk_token": "<unk>", "fuse_unk": True}):
        j = json.loads(t.to_str())
        if change.get("merges") == "pairs":
            j["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in j["model"]["merges"]]
        else:
            j["model"].update(change)
        if "unk_token" in change:  # take some bytes away
            lost = ["\u00c3", "\u00e2", "\u0120", "q"]
            j["model"]["vocab"] = {k: v for k, v in j["model"]["vocab"].items() if not set(lost) & set(k)}
            j["model"]["merges"] = [m for m in j["model"]["merges"] if not set(lost) & set("".join(m))]
            j["model"]["vocab"]["<unk>"] = 5000
        theirs, ours = opened(json.dumps(j))
        compare(theirs, ours, texts("mixed", 100_000, seed=14))


# ---- refusals --------------------------------------------------------------------------------------------------------
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
    "model type": (put("Unigram", "model", "type"), 3, ["Unigram"]),
    "vocab list": (put([1], "model", "vocab"), 2, ["vocab"]),
    "vocab empty": (put({}, "model", "vocab"), 2, ["vocab"]),
    "id text": (put("7", "model", "vocab", "A"), 2, ["\"A\"", "integer"]),
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
    "merge unknown": (put(["\u4e2d", "a"], "model", "merges", 5), 2, ["merges[5]", "not in the vocabulary"]),
    "merge into nothing": (put(["\u00ff", "\u00ff"], "model", "merges", 5), 2, ["merges[5]", "not in the vocabulary"]),
    "dropout": (put(0.5, "model", "dropout"), 3, ["dropout"]),
    "prefix": (put("##", "model", "continuing_subword_prefix"), 3, ["continuing_subword_prefix"]),
    "byte fallback": (put(True, "model", "byte_fallback"), 3, ["byte_fallback"]),
    "flag type": (put("yes", "model", "ignore_merges"), 2, ["ignore_merges"]),
    "unknown unk": (put("nope", "model", "unk_token"), 2, ["nope"]),
    "version": (put("2.0", "version"), 3, ["2.0"]),
    "normalizer": (put({"type": "NFKC"}, "normalizer"), 3, ["NFKC"]),
    "no pre-tokenizer": (put(None, "pre_tokenizer"), 3, ["ByteLevel"]),
    "pre-tokenizer": (put({"type": "Metaspace"}, "pre_tokenizer"), 3, ["Metaspace"]),
    "behavior": (put("Merged", *SPLIT, "behavior"), 3, ["Merged"]),
    "no pattern": (put({}, *SPLIT, "pattern"), 2, ["pattern"]),
    "look-behind": (put({"Regex": "(?<=a)b"}, *SPLIT, "pattern"), 3, ["look-behind"]),
    "back reference": (put({"Regex": "(a)\\1"}, *SPLIT, "pattern"), 3, ["this escape"]),
    "open group": (put({"Regex": "(a"}, *SPLIT, "pattern"), 3, ["missing )"]),
    "deep pattern": (put({"Regex": "(" * 100000 + "a" + ")" * 100000}, *SPLIT, "pattern"), 3, ["nesting"]),
    "large repeats": (put({"Regex": "(((ab{9}){900}){900}){900}"}, *SPLIT, "pattern"), 3, ["too large"]),
    "pattern of lines": (put({"Regex": "\n\x1b[31m(?<=x)\n" * 100}, *SPLIT, "pattern"), 3, []),
    "decoder": (put({"type": "WordPiece"}, "decoder"), 3, ["WordPiece"]),
    "no decoder": (put(None, "decoder"), 3, ["decoder"]),
    "post-processor": (put({"type": "BertProcessing"}, "post_processor"), 3, ["BertProcessing"]),
    "template id": (put([99999], "post_processor", "special_tokens", "<|begin_of_text|>", "ids"), 2, ["99999"]),
    "template token": (put({}, "post_processor", "special_tokens"), 2, ["<|begin_of_text|>"]),
    "added object": (put({}, "added_tokens"), 2, ["added_tokens"]),
    "added id": (put(5, "added_tokens", 0, "id"), 2, ["<|begin_of_text|>"]),
    "added empty": (put("", "added_tokens", 0, "content"), 2, ["added_tokens[0]"]),
    "added far": (lambda j: j["added_tokens"].append({**j["added_tokens"][0], "id": 1 << 30, "content": "x y"}), 2, ["far above"]),
    "added taken": (lambda j: j["added_tokens"].append({**j["added_tokens"][0], "id": 9, "content": "x y"}), 2, ["given twice"]),
    "added flag": (put(1, "added_tokens", 0, "lstrip"), 2, ["lstrip"]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_refusals(tmp_path, name):
    change, code, names = HOSTILE[name]
    path = tmp_path / "t.json"
    path.write_text(edited(change), encoding="utf-8")
    refusal(path, code, *names)


@pytest.mark.parametrize("content", [
    b"", b"{", b"[]", b"null", b"7", b"\xff\xfe", b"[" * 300_000, b'{"model":' * 100_000, b'{"version":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"normalizer":' * 50_000 + b"1" + b"}" * 50_000, b'{"model":1e999999}', b'{"a":"\\ud800"}'], ids=range(12))
def test_not_a_tokenizer(tmp_path, content):
    path = tmp_path / "t.json"
    path.write_bytes(content)
    done = subprocess.run([PROGRAM, path], input=b"", capture_output=True, timeout=60)
    assert done.returncode in (2, 3) and done.stderr.count(b"\n") == 1 and len(done.stderr) < 700, done.stderr[-2000:]


def test_nested_sequences(tmp_path):
    for key, name in (("pre_tokenizer", "pretokenizers"), ("normalizer", "normalizers"), ("decoder", "decoders"), ("post_processor", "processors")):
        inner = "[]"
        for _ in range(20_000):
            inner = f'[{{"type":"Sequence","{name}":{inner}}}]'
        content = edited(put("HERE", key)).replace('"HERE"', f'{{"type":"Sequence","{name}":{inner}}}')
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
            damaged[at:at + r.choice([0, 1, 1, 5])] = r.choice([b"", b'"', b"9", b"{", b"\\", b"-", b"[]", bytes([r.randrange(256)])])
        path.write_bytes(damaged)
        request = b"e" + struct.pack("<I", 9) + b"ROMEO: a\n" + b"d" + struct.pack("<I", 8) + struct.pack("<2i", 7, 300)
        done = subprocess.run([PROGRAM, path], input=request, capture_output=True, timeout=60)
        assert done.returncode in (0, 2, 3) and len(done.stderr) < 700, (done.returncode, done.stderr[-2000:])
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
    j = json.loads(trained(PRE["gpt2"]()).to_str())
    j["model"]["vocab"] = {k: v for k, v in j["model"]["vocab"].items() if lost not in k}
    j["model"]["merges"] = [m for m in j["model"]["merges"] if lost not in "".join(m)]
    _, ours = opened(json.dumps(j))
    assert ours.encode("\u0411") and "\u0412".encode() == b"\xd0\x92"
    code, message = ours.ask(b"e", "a \u0412".encode())
    assert code == 2 and b"no token for the byte 146 " in message
