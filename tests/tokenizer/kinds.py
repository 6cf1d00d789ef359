"""Tokenizers of every kind, trained with the peers' own trainers, and the peers that open them."""

import collections
import math
import pathlib

import tokenizers as hf
from tokenizers import (
    AddedToken,
    Regex,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = ["<s>", "</s>", "<unk>"]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def bpe(training, size=3000, special=SPECIAL, alphabet=(), **options):
    t = hf.Tokenizer(models.BPE(**options))
    return t, trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=list(alphabet),
        limit_alphabet=1500, show_progress=False,
        **{k: v for k, v in options.items() if k in ("continuing_subword_prefix", "end_of_word_suffix")},
    )  # fmt: skip


PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_CHARACTERS = {b: chr(b) for b in PRINTABLE} | {
    b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in PRINTABLE)
}


def gpt2(training):
    t, trainer = bpe(
        training, special=["<|endoftext|>"], alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t, trainer


def llama3(training):
    t, trainer = bpe(
        training, special=["<|begin|>", "<|end|>"], alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    t.decoder = decoders.ByteLevel()
    return t, trainer


def roberta(training):
    t, trainer = bpe(
        training, special=SPECIAL + ["<mask>"], alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return t, trainer


def llama(training):
    """SentencePiece's BPE with bytes, as Llama 1 and 2 and Mistral have it: no pre-tokenizer."""
    t, trainer = bpe(
        training, special=SPECIAL + BYTES, byte_fallback=True, fuse_unk=True, unk_token="<unk>"
    )
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.normalizer = None

    def finish(t):
        t.pre_tokenizer = None
        t.normalizer = normalizers.Sequence(
            [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
        )
        t.decoder = decoders.Sequence(
            [
                decoders.Replace("\u2581", " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
                decoders.Strip(" ", 1, 0),
            ]
        )
        t.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 0)]
        )

    return t, trainer, finish


def gemma(training):
    t, trainer, _ = llama(training)

    def finish(t):
        t.normalizer = normalizers.Replace(" ", "\u2581")
        t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        t.decoder = decoders.Sequence(
            [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
        )

    return t, trainer, finish


def mistral_metaspace(training):
    t, trainer, _ = llama(training)

    def finish(t):
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
        t.decoder = decoders.Sequence(
            [
                decoders.Replace("\u2581", " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
                decoders.Strip(" ", 1, 0),
            ]
        )
        t.add_special_tokens(["[INST]", AddedToken("[/INST]", lstrip=True, rstrip=True)])

    return t, trainer, finish


def clip(training):
    """BPE with a suffix at the end of words."""
    t, trainer = bpe(training, special=["<unk>"], unk_token="<unk>", end_of_word_suffix="</w>")
    t.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.BPEDecoder()
    return t, trainer


def bpe_prefix(training):
    t, trainer = bpe(training, special=["<unk>"], unk_token="<unk>", continuing_subword_prefix="##")
    t.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Nmt(), normalizers.StripAccents()]
    )
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.decoder = decoders.WordPiece()
    return t, trainer


def unigram(training):
    """XLM-RoBERTa and T5: Precompiled, Metaspace, Unigram."""
    import io

    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(s for t in training for s in t.split("\n")[:40] if s), model_writer=model,
        vocab_size=8000, model_type="unigram", minloglevel=2, character_coverage=0.98,
        max_sentence_length=2000, num_threads=1,
    )  # fmt: skip
    from sentencepiece import sentencepiece_model_pb2 as pb

    proto = pb.ModelProto.FromString(model.getvalue())
    vocab = [(p.piece, p.score) for p in proto.pieces]
    t = hf.Tokenizer(models.Unigram(vocab, 0, byte_fallback=False))
    t.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap),
            normalizers.Strip(left=False, right=True),
            normalizers.Replace(Regex(" {2,}"), "\u2581"),
        ]
    )
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    t.add_special_tokens(["<s>", "</s>", "<unk>", "<pad>", AddedToken("<mask>", lstrip=True)])
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return t


def unigram_bytes(training):
    """Unigram with bytes: the scores are those of the most frequent parts of words."""
    counts = collections.Counter()
    for word, n in collections.Counter(w for t in training for w in t.split()).items():
        word = "\u2581" + word[:40]
        for size in range(1, 8):
            for i in range(len(word) - size + 1):
                counts[word[i : i + size]] += n
    total = sum(counts.values())
    vocab = [(t, 0.0) for t in SPECIAL] + [(t, -20.0) for t in BYTES]
    vocab += [(t, math.log(n / total)) for t, n in counts.most_common(2500)]
    t = hf.Tokenizer(models.Unigram(vocab, 2, byte_fallback=True))
    t.normalizer = normalizers.NFKD()
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")]
    )
    t.add_special_tokens(SPECIAL)
    return t


def bert(training, **options):
    t = hf.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(**options)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()

    def finish(t):
        t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))

    trainer = trainers.WordPieceTrainer(
        vocab_size=3000, special_tokens=BERT, limit_alphabet=1500, show_progress=False
    )
    return t, trainer, finish


def bert_cased(training):
    return bert(training, lowercase=False, strip_accents=False, handle_chinese_chars=False)


def words(training):
    t = hf.Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence(
        [normalizers.NFD(), normalizers.StripAccents(), normalizers.Strip()]
    )
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Whitespace(),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Punctuation("merged_with_previous"),
            pre_tokenizers.CharDelimiterSplit("_"),
            pre_tokenizers.FixedLength(7),
        ]
    )

    def finish(t):
        t.add_tokens([AddedToken("Error", single_word=True), AddedToken("\u00e9t\u00e9")])

    trainer = trainers.WordLevelTrainer(
        vocab_size=3000, special_tokens=["<unk>"], show_progress=False
    )
    return t, trainer, finish


def sentencepiece_model(training, **options):
    """The bytes of a SentencePiece model."""
    import io

    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(s for t in training for s in t.split("\n")[:40] if s), model_writer=model,
        minloglevel=2, character_coverage=0.98, max_sentence_length=2000, num_threads=1,
        hard_vocab_limit=False, **{"vocab_size": 8000, **options},
    )  # fmt: skip
    return model.getvalue()


def sp_bpe(training):
    """Llama 1 and 2: bytes, no normalization, all spaces kept."""
    return sentencepiece_model(
        training, model_type="bpe", byte_fallback=True, remove_extra_whitespaces=False,
        normalization_rule_name="identity", split_digits=True,
    )  # fmt: skip


def sp_bpe_nfkc(training):
    return sentencepiece_model(
        training,
        model_type="bpe",
        control_symbols=["<ctrl>"],
        user_defined_symbols=["<usr>", "foo bar", "\n"],
    )


def sp_gemma(training):
    return sentencepiece_model(
        training, model_type="bpe", byte_fallback=True, remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        normalization_rule_name="identity", user_defined_symbols=["\n", "\n\n", "\u2581\u2581", "<b>"],
    )  # fmt: skip


def sp_unigram(training):
    return sentencepiece_model(training, model_type="unigram")


def sp_unigram_bytes(training):
    return sentencepiece_model(
        training, model_type="unigram", byte_fallback=True, normalization_rule_name="nmt_nfkc_cf",
        user_defined_symbols=["<sep>", "the "], unk_surface=" ?? ", bos_id=-1,
    )  # fmt: skip


def tiktoken_ranks(training):
    """Ranks of a byte-level BPE: the 256 bytes, then the merges in order."""
    import base64

    t, trainer = gpt2(training)
    t.train_from_iterator(training, trainer)
    back = {c: b for b, c in BYTE_CHARACTERS.items()}
    tokens = sorted(t.get_vocab().items(), key=lambda x: x[1])
    tokens = [bytes(back[c] for c in k) for k, _ in tokens if k != "<|endoftext|>"]
    return "".join(f"{base64.b64encode(k).decode()} {i}\n" for i, k in enumerate(tokens)).encode()


def cl100k_base(training):
    return tiktoken_ranks(training)


def o200k_base(training):
    return tiktoken_ranks(training)


def o200k_harmony(training):
    return tiktoken_ranks(training)


def r50k_base(training):
    return tiktoken_ranks(training)


def qwen(training):
    return tiktoken_ranks(training)


KINDS = {
    f.__name__: f
    for f in (
        gpt2, llama3, roberta, llama, gemma, mistral_metaspace, clip, bpe_prefix, unigram, unigram_bytes,
        bert, bert_cased, words, sp_bpe, sp_bpe_nfkc, sp_gemma, sp_unigram, sp_unigram_bytes,
        cl100k_base, o200k_base, o200k_harmony, r50k_base, qwen,
    )
}  # fmt: skip
TIKTOKEN = ["cl100k_base", "o200k_base", "o200k_harmony", "r50k_base", "qwen"]
NEED_SENTENCEPIECE = ["unigram", *(k for k in KINDS if k.startswith("sp_"))]


def path_of(kind, folder):
    ends = ".tiktoken" if kind in TIKTOKEN else ".model" if kind.startswith("sp_") else ".json"
    return folder / (kind + ends)


def find(kind, folder):
    """The file that train() wrote there; None: none."""
    path = path_of(kind, folder)
    return path if path.exists() else None


def train(kind, training, folder):
    """Trains a tokenizer and writes its file."""
    made, path = KINDS[kind](training), path_of(kind, folder)
    if isinstance(made, bytes):
        path.write_bytes(made)
        return path
    if isinstance(made, tuple):
        t, trainer, *finish = made
        t.train_from_iterator(training, trainer)
        for f in finish:
            t = f(t) or t
    else:
        t = made
    path.write_text(t.to_str(), encoding="utf-8")
    return path


class HuggingFace:
    def __init__(self, path):
        self.t = hf.Tokenizer.from_file(str(path))
        self.size = self.t.get_vocab_size()
        self.special = [t.content for t in self.t.get_added_tokens_decoder().values()][:50]

    def encode(self, text):
        return self.t.encode(text).ids

    def decode(self, ids):
        return self.t.decode(ids)


class SentencePiece:
    def __init__(self, path):
        import sentencepiece

        self.t = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self.size = self.t.get_piece_size()
        self.special = [self.t.id_to_piece(i) for i in range(min(20, self.size))] + [
            "the ",
            "foo bar",
        ]

    def encode(self, text):
        return self.t.encode(text)

    def decode(self, ids):
        return self.t.decode(ids)


# As Qwen's tokenization_qwen.py has it.
QWEN_PATTERN = (
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"""
    r"""\s*[\r\n]+|\s+(?!\S)|\s+"""
)


class Tiktoken:
    def __init__(self, path):
        import tiktoken
        from tiktoken.load import load_tiktoken_bpe
        from tiktoken_ext import openai_public

        if path.stem == "qwen":
            pattern = QWEN_PATTERN
            special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
            special += [f"<|extra_{i}|>" for i in range(205)]
        else:
            # The package's own encoding, with these ranks.
            openai_public.load_tiktoken_bpe = lambda *_, **__: {}
            openai_public.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: {}
            known = openai_public.ENCODING_CONSTRUCTORS[path.stem]()
            pattern, special = known["pat_str"], known["special_tokens"]
        ranks = load_tiktoken_bpe(str(path))
        if isinstance(special, list):
            special = {n: len(ranks) + i for i, n in enumerate(special)}
        self.t = tiktoken.Encoding(
            path.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
        )
        self.size = len(ranks)
        self.special = list(special)
        self.drop = set(special.values())

    def encode(self, text):
        return self.t.encode(text, allowed_special="all")

    def decode(self, ids):
        return self.t.decode([i for i in ids if i not in self.drop])


def open_file(path):
    path = pathlib.Path(path)
    kinds = {".model": SentencePiece, ".tiktoken": Tiktoken}
    return kinds.get(path.suffix, HuggingFace)(path)
