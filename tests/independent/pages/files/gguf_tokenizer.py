"""gguf.7 to gguf.10: the files of the tokenizer in a GGUF file."""

import struct

from arithmetic.mutation import active
from pages.receipt import compact

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT_2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",)


def words(digits):
    return (
        rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{SPACES}",
    )


# gguf.8, as far as pages/tokens.py splits: patterns, whether *whole*, whether *begins*
PATTERNS = {
    **dict.fromkeys("gpt-2 phi-2 mpt olmo exaone4 granite-docling".split(), (GPT_2, False, False)),
    **dict.fromkeys(
        "llama3 llama-v3 llama-bpe falcon3 lfm2 pixtral".split(), (words(r"\p{N}{1,3}"), True, True)
    ),
    "glm4": (words(r"\p{N}{1,3}"), True, False),
    **dict.fromkeys("dbrx smaug-bpe chatglm-bpe".split(), (words(r"\p{N}{1,3}"), False, False)),
    **dict.fromkeys(
        "qwen2 deepseek-r1-qwen stablelm2 megrez hunyuan".split(), (words(r"\p{N}"), False, False)
    ),
}
UNKNOWN, CONTROL, ADDED, UNUSED, BYTE = 2, 3, 4, 5, 6  # types of tokens


def added_token(i, name, kind):
    return {
        "id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
        "normalized": False, "special": kind != ADDED,
    }  # fmt: skip


def special_piece(name):
    return {"SpecialToken": {"id": name, "type_id": 0}}


def post_processor(names, begin, end):
    if begin is None and end is None:
        return None
    ends = {names[i]: i for i in (begin, end) if i is not None}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    front, behind = ([] if i is None else [special_piece(names[i])] for i in (begin, end))
    return {
        "type": "TemplateProcessing",
        "single": [*front, text, *behind],
        "pair": [],
        "special_tokens": {n: {"id": n, "ids": [i], "tokens": [n]} for n, i in ends.items()},
    }


def key_of(keys, name, absent=None):
    return keys.get(f"tokenizer.ggml.{name}", absent)


def tokenizer_json(keys, add_begin, add_end):
    """gguf.7"""
    names = key_of(keys, "tokens")
    kinds = key_of(keys, "token_type") or [1] * len(names)
    patterns, whole, _ = PATTERNS[key_of(keys, "pre")]
    tokens = list(enumerate(zip(names, kinds)))
    splits = [
        {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False}
        for p in patterns
    ]
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    divided = ((m, m.index(" ", 1)) for m in key_of(keys, "merges"))
    begin, end = (key_of(keys, f"{name}_token_id") for name in ("bos", "eos"))
    special = (UNKNOWN, CONTROL, ADDED)
    return {
        "version": "1.0",
        "added_tokens": [added_token(i, name, k) for i, (name, k) in tokens if k in special],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, level]},
        "post_processor": post_processor(
            names, begin if add_begin else None, end if add_end else None
        ),
        "decoder": {**level, "add_prefix_space": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "ignore_merges": whole and not active("whole_words_are_merged"),
            "vocab": {
                name: i for i, (name, k) in tokens if k != UNUSED or active("unused_tokens_exist")
            },
            "merges": [[merge[:space], merge[space + 1 :]] for merge, space in divided],
        },
    }


def varint(value):
    """Of protocol buffers; a negative number as one of 64 bits."""
    value, out = value % 2**64, b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def tokenizer_model(keys):
    """gguf.9"""
    kinds = list(key_of(keys, "token_type"))
    unknown = key_of(keys, "unknown_token_id", -1)
    if not 0 <= unknown < len(kinds) or kinds[unknown] != UNKNOWN:
        unknown = kinds.index(UNKNOWN)
    out = b""
    for i, name in enumerate(key_of(keys, "tokens")):
        kind = CONTROL if kinds[i] == UNKNOWN and i != unknown else kinds[i]
        score = key_of(keys, "scores")[i]
        out += field(1, field(1, name.encode()) + field(2, score) + field(3, kind))
    trainer = field(3, 2) + field(35, int(kinds.count(BYTE) == 256))
    trainer += field(41, key_of(keys, "bos_token_id", -1)) + field(
        42, key_of(keys, "eos_token_id", -1)
    )
    prefix = int(key_of(keys, "add_space_prefix", True))
    less = int(key_of(keys, "remove_extra_whitespaces", False))
    return out + field(2, trainer) + field(3, field(3, prefix) + field(4, less) + field(5, 1))


def files_of(keys):
    """name -> bytes"""
    pieces = key_of(keys, "model") == "llama"
    begins = pieces or PATTERNS[key_of(keys, "pre")][2]
    add_begin, add_end = key_of(keys, "add_bos_token", begins), key_of(keys, "add_eos_token", False)
    settings = {"add_bos_token": add_begin, "add_eos_token": add_end}
    if template := keys.get("tokenizer.chat_template"):
        settings["chat_template"] = template
    own = (
        {"tokenizer.model": tokenizer_model(keys)}
        if pieces
        else {"tokenizer.json": compact(tokenizer_json(keys, add_begin, add_end)).encode()}
    )
    return {**own, "tokenizer_config.json": compact(settings).encode()}
