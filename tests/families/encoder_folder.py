"""A small encoder with a tokenizer, as sentence-transformers stores one. The tools that make the
vectors and the tests that compare with them write the same folder."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from random_checkpoint import write  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the a cat dog sat on mat how many people live in berlin is large city query : hello world"
WORDS = SPECIAL + WORDS.split() + ["##s", "##ing", ".", "?", "!"]
WORDS += [chr(c) for c in range(ord("b"), ord("z") + 1)]
CLS, SEP = 2, 3
TEXTS = [
    "Hello world",
    "How many people live in Berlin?",
    "the cats sat on the mat. " * 9,
    "Berlin is a large city!",
    "A dog [SEP] a CAT",
]
QUERY = TEXTS[1]
PROMPTS = {"query": "query: ", "document": ""}


def piece(kind, name, type_id=0):
    return {kind: {"id": name, "type_id": type_id}}


def tokenizer():
    special = [
        {"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False}
        | {"normalized": False, "special": True}
        for i, t in enumerate(SPECIAL)
    ]
    cls, sep = piece("SpecialToken", "[CLS]"), piece("SpecialToken", "[SEP]")
    single = [cls, piece("Sequence", "A"), sep]
    pair = [*single, piece("Sequence", "B", 1), piece("SpecialToken", "[SEP]", 1)]
    ids = {"[CLS]": CLS, "[SEP]": SEP}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": pair,
            "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in ids.items()},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {w: i for i, w in enumerate(WORDS)},
        },
    }


def write_files(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))


def write_encoder(folder, vector, **files):
    """`vector`: a line of encoder_vectors.jsonl, whose vocabulary has as many tokens as WORDS."""
    config = {**vector["config"], "vocab_size": len(WORDS)}
    old = vector["config"]["vocab_size"]
    shapes = {k: [len(WORDS) if n == old else n for n in s] for k, s in vector["shapes"].items()}
    write(folder, config, shapes, vector["seed"])
    write_files(folder, vector["files"])
    bert = vector["config"]["model_type"] == "bert"
    kind = "BertTokenizer" if bert else "PreTrainedTokenizerFast"
    names = {f"{name.strip('[]').lower()}_token": name for name in SPECIAL}
    write_files(
        folder,
        {
            "tokenizer.json": tokenizer(),
            "tokenizer_config.json": names | {"tokenizer_class": kind, "model_max_length": 40},
            "config_sentence_transformers.json": {"prompts": PROMPTS, "default_prompt_name": None},
        },
    )
    write_files(folder, {f"{name}.json": content for name, content in files.items()})
