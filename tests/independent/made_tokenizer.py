"""The tokenizer of the made checkpoint: bytes, pairs of letters, and what tells merges apart."""

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PAIRS = (
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co "
    "me de hi ri ro ic ne ea ra ce li ch ll be ma si om eĠ"
)


def byte_names():
    """The character that stands for each byte (tokens.6)."""
    names, extra = [], 0x100
    for b in range(256):
        shown = 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or 0xAE <= b
        names.append(chr(b if shown else extra))
        extra += not shown
    return names


NAMES = ["<begin>", "<end>", *byte_names(), *PAIRS.split(), "Ġt", "the", "Ġthe"]
MERGES = [" ".join(pair) for pair in PAIRS.split()] + ["Ġ t", "th e", "Ġt he"]


def tokenizer():
    """The value of tokenizer.json."""
    special = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    begin = {"SpecialToken": {"id": "<begin>", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    split = {
        "type": "Split",
        "pattern": {"Regex": PATTERN},
        "behavior": "Isolated",
        "invert": False,
    }
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": NAMES[i], **special} for i in range(2)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, {**level, "use_regex": False}]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [begin, text],
            "pair": [begin, text, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<begin>": {"id": "<begin>", "ids": [0], "tokens": ["<begin>"]}},
        },
        "decoder": {**level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {name: i for i, name in enumerate(NAMES)},
            "merges": MERGES,
        },
    }  # fmt: skip
