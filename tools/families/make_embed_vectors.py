#!/usr/bin/env python3
"""Writes tests/families/embed_vectors.json: what sentence-transformers makes of the texts of
tests/families/encoder_folder.py. Needs transformers, torch, sentence-transformers."""

import json
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/families"))
from encoder_folder import PROMPTS, QUERY, TEXTS, write_encoder  # noqa: E402
from sentence_transformers import CrossEncoder, SentenceTransformer  # noqa: E402

LINES = (ROOT / "tests/families/encoder_vectors.jsonl").read_text().splitlines()
VECTORS = {v["name"]: v for v in map(json.loads, LINES)}
EMBED = ["bert", "bert-cls", "bert-all-modes", "bert-plain", "electra", "distilbert", "modernbert"]
RERANK = ["bert-reranker", "electra-reranker", "distilbert-reranker", "modernbert-reranker"]


def rows(vectors):
    return [[float(f"{x:.7g}") for x in row] for row in vectors.tolist()]


def main():
    warnings.simplefilter("ignore")
    out = {"embed": {}, "rerank": {}}
    with tempfile.TemporaryDirectory() as temporary:
        for name in EMBED:
            folder = Path(temporary) / name
            write_encoder(folder, VECTORS[name])
            model = SentenceTransformer(str(folder), device="cpu")
            out["embed"][name] = {
                "plain": rows(model.encode(TEXTS)),
                "query": rows(model.encode(TEXTS[:1], prompt=PROMPTS["query"])),
            }
        for name in RERANK:
            folder = Path(temporary) / name
            write_encoder(folder, VECTORS[name])
            model = CrossEncoder(str(folder), device="cpu")
            scores = model.predict([(QUERY, text) for text in TEXTS])
            out["rerank"][name] = [float(f"{x:.7g}") for x in scores.tolist()]
    path = ROOT / "tests/families/embed_vectors.json"
    path.write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
