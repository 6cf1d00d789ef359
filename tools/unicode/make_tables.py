"""Writes the pinned Unicode data of src/prompt/unicode/*.txt.

    pip install unicodedata2==16.0.0 tokenizers==0.23.3
    python3 tools/unicode/make_tables.py            # writes the files
    python3 tools/unicode/make_tables.py --check    # compares them, exit 1 on a difference

General categories, decompositions and combining classes are those of the Unicode Character Database
through unicodedata2. What that package lacks, the properties Alphabetic and Han, is asked code
point by code point of the regular-expression engine of Hugging Face tokenizers (Oniguruma with
Unicode 16.0); so is every general category, as a cross-check: the script stops if the two disagree
anywhere.

The normalizer of tokenizers has older tables, Unicode 9.0. Unicode promises that normalization of
assigned characters never changes, so its data is ours restricted to the characters that it knows,
which are asked of it, too.
"""

import pathlib
import sys

import normalizer_tables
import tokenizers
import unicodedata2 as ucd
from tokenizers import Regex, normalizers, pre_tokenizers

VERSION = "16.0.0"
NFC_VERSION = "9.0.0"
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "src" / "prompt" / "unicode"
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xD7A4)  # decomposed and composed by rule


def engine_members(pattern):
    """The code points which the engine of tokenizers matches with a one-character pattern."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = set()
    for i in range(0, len(SCALARS), 4096):
        text = "".join(map(chr, SCALARS[i : i + 4096]))
        for piece, _ in split.pre_tokenize_str(text):
            found.update(map(ord, piece))
    return found


def ranges(value_of, skip=None):
    """(first, last, value) of maximal runs of equal value; runs whose value is `skip` are left
    out."""
    runs = []
    for c in range(0x110000):
        v = value_of(c)
        if runs and runs[-1][2] == v and runs[-1][1] == c - 1:
            runs[-1][1] = c
        elif v != skip:
            runs.append([c, c, v])
    return runs


def normalization():
    """Combining classes, decompositions {c: (first, second or 0)} and primary composites {(first,
    second): c}."""
    theirs = normalizers.NFC().normalize_str
    classes, decompositions, composites = {}, {}, {}
    for c in SCALARS:
        ccc = ucd.combining(chr(c))
        # A mark that is not known keeps the marks around it apart: U+0345 has the highest class,
        # U+0334 the lowest.
        text = "x\u0345" + chr(c) + "\u0334"
        if ccc and theirs(text) == ucd.normalize("NFC", text):
            classes[c] = ccc
        parts = ucd.decomposition(chr(c)).split()
        if not parts or parts[0].startswith("<") or c in HANGUL:
            continue
        pair = tuple(int(p, 16) for p in parts)
        text = "".join(map(chr, pair))
        composite = ucd.normalize("NFC", chr(c)) == chr(c)
        if composite and theirs(text) != chr(c):
            continue  # unknown to them: it stays as it is, and its parts too
        decompositions[c] = pair if len(pair) == 2 else (pair[0], 0)
        if composite:
            composites[pair] = c
    return classes, decompositions, composites


def tables():
    category = {c: ucd.category(chr(c)) for c in range(0x110000)}
    for name in sorted(set(category.values()) - {"Cs"}):
        if engine_members(r"\p{%s}" % name) != {c for c in SCALARS if category[c] == name}:
            sys.exit(f"tokenizers disagrees with Unicode {VERSION} about {name}")
    alphabetic, han = engine_members(r"\p{Alphabetic}"), engine_members(r"\p{Han}")
    word = alphabetic | {c for c in SCALARS if category[c][0] == "M" or category[c] in ("Nd", "Pc")}
    yield (
        "category",
        VERSION,
        "first last general category; what is not listed is Cn",
        [f"{a:04X} {b:04X} {v}" for a, b, v in ranges(category.get, "Cn")],
    )
    yield (
        "word",
        VERSION,
        "first last of Alphabetic, M, Nd and Pc",
        [f"{a:04X} {b:04X}" for a, b, _ in ranges(lambda c: c in word, False)],
    )
    yield (
        "han",
        VERSION,
        "first last of the characters whose script is Han",
        [f"{a:04X} {b:04X}" for a, b, _ in ranges(lambda c: c in han, False)],
    )
    classes, decompositions, composites = normalization()
    yield (
        "combining",
        NFC_VERSION,
        "first last canonical combining class; what is not listed is 0",
        [f"{a:04X} {b:04X} {v}" for a, b, v in ranges(lambda c: classes.get(c, 0), 0)],
    )
    yield (
        "decomposition",
        NFC_VERSION,
        "character first second: canonical decomposition, one step; second may be 0",
        [f"{c:04X} {a:04X} {b:04X}" for c, (a, b) in decompositions.items()],
    )
    yield (
        "composition",
        NFC_VERSION,
        "first second composite: primary composites, in order",
        [f"{a:04X} {b:04X} {c:04X}" for (a, b), c in sorted(composites.items())],
    )

    yield from normalizer_tables.tables(ranges)


def main():
    if ucd.unidata_version != VERSION:
        sys.exit(f"unicodedata2 has Unicode {ucd.unidata_version}, wanted {VERSION}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    different = False
    for name, version, meaning, lines in tables():
        source = f"Unicode {version}" if version else f"tokenizers {tokenizers.__version__}"
        content = f"# {source}, written by tools/unicode/make_tables.py: {meaning}\n"
        content += "".join(line + "\n" for line in lines)
        path = FOLDER / f"{name}.txt"
        if "--check" in sys.argv[1:]:
            same = path.read_text() == content
            different |= not same
            print(path.name, "equal" if same else "DIFFERENT")
        else:
            path.write_text(content)
            print(path.name, len(lines), "lines")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
