"""Makes models/tale-7m/tokenizer.json from the text of seed 0: byte-level BPE (pip install
tokenizers).

The file is committed, and the training reads it: this script only says where it came from."""

import json
import sys
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

sys.path.insert(0, str(Path(__file__).resolve().parent))
from model import CONFIG  # noqa: E402
from text import SPECIAL, document  # noqa: E402

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| "
    r"?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def main(path, documents=40000):
    made = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PATTERN), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=CONFIG["vocab_size"],
        special_tokens=list(SPECIAL),
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator((document(0, i) for i in range(documents)), trainer)
    read = json.loads(made.to_str())
    for token in read["added_tokens"]:  # calls of tools are text of the answer
        token["special"] = token["content"].startswith("<|")
    Path(path).write_text(json.dumps(read, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
