#!/usr/bin/env python3
"""Writes tests/families/encoder_vectors.jsonl: for each case of encoder_cases.py its files, the
shapes of its tensors, and float64 vectors or scores of transformers for texts of several lengths,
pooled by the module of sentence-transformers. Needs transformers, torch, sentence-transformers.

make_encoder_vectors.py [NAME ...]: these, else those that are missing"""

import json
import logging
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from encoder_cases import CASES
from make_vectors import ROOT, Float64, shapes_of
from sentence_transformers.sentence_transformer.modules import Pooling

sys.path.insert(0, str(ROOT / "tests/families"))
from random_checkpoint import write  # noqa: E402

VECTORS = ROOT / "tests/families/encoder_vectors.jsonl"
LENGTHS = (1, 7, 150)  # 150: more than a block of 128 keys, and the farthest buckets


def auto_class(config):
    classifies = config["architectures"][0].endswith("ForSequenceClassification")
    masked = config["architectures"][0].endswith("ForMaskedLM")
    return (
        transformers.AutoModelForSequenceClassification
        if classifies
        else transformers.AutoModelForMaskedLM
        if masked
        else transformers.AutoModel
    )


def load(folder, config):
    kind = auto_class(config)
    if kind is transformers.AutoModelForMaskedLM:
        kind = transformers.AutoModel
    model, about = kind.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    assert all("pooler." in key for key in about["missing_keys"]), about
    return model.eval()


def pooled(files, hidden):
    """As sentence-transformers pools and normalizes the vectors of the tokens."""
    settings = files.get("1_Pooling/config.json", {"pooling_mode": "mean"})
    settings = {k: v for k, v in settings.items() if k != "word_embedding_dimension"}
    pooling = Pooling(embedding_dimension=hidden.shape[-1], **settings)
    mask = torch.ones(hidden.shape[:2], dtype=torch.int64)
    features = pooling({"token_embeddings": hidden, "attention_mask": mask})
    vector = features["sentence_embedding"]
    if len(files.get("modules.json", [])) == 3:
        vector = torch.nn.functional.normalize(vector, p=2, dim=-1)
    return vector[0]


@torch.no_grad()
def vector(config, files, seed):
    classifies = auto_class(config) is transformers.AutoModelForSequenceClassification
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shapes = shapes_of(config, folder, auto_class(config))
        write(folder / "model", config, shapes, seed)
        model = load(folder / "model", config)
        model.double()
        texts = []
        for length in LENGTHS:
            ids = [
                (7 * i * i + 3 * i + seed) % (config["vocab_size"] - 2) + 2 for i in range(length)
            ]
            if length == LENGTHS[1]:
                ids[3] = config["pad_token_id"]  # written in the text
            given = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, length)}
            types = [int(i > length // 2) for i in range(length)]
            if (
                classifies
                and config.get("type_vocab_size", 2) > 1
                and any("token_type" in name for name in shapes)
            ):
                given["token_type_ids"] = torch.tensor([types])
            with Float64():
                out = model(**given)
                row = out.logits[0] if classifies else pooled(files, out.last_hidden_state)
            assert row.dtype == torch.float64
            text = {"ids": ids, "output": [float(f"{x:.10g}") for x in row.tolist()]}
            if "token_type_ids" in given:
                text["types"] = types
            texts.append(text)
    return {"config": config, "files": files, "seed": seed, "shapes": shapes, "texts": texts}


def main():
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    lines = VECTORS.read_text().splitlines() if VECTORS.exists() else []
    known = {json.loads(line)["name"]: line for line in lines}
    for name in sys.argv[1:] or [name for name in CASES if name not in known]:
        out = {"name": name, **vector(*CASES[name], 300 + list(CASES).index(name))}
        known[name] = json.dumps(out, separators=(",", ":"))
        print(f"{name}: {len(out['shapes'])} tensors")
    VECTORS.write_text("".join(known[name] + "\n" for name in CASES if name in known))


if __name__ == "__main__":
    main()
