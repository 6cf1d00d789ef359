#!/usr/bin/env python3
"""Writes tests/families/speech/vectors.jsonl: for each model that hears its config, the shapes of
its tensors, float64 logits and greedy tokens of transformers for a recording, and how far the
features of transformers are from those of spec/speech.md. Needs transformers and torch."""

import json
import logging
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools/families"), str(ROOT / "tests/families")]
from log_mel import log_mel, sound  # noqa: E402
from make_vectors import Float64, shapes_of  # noqa: E402
from random_checkpoint import write  # noqa: E402

VECTORS = ROOT / "tests/families/speech/vectors.jsonl"
GREEDY, ROWS = 40, (0, 5, 39)
WHISPER = {
    "vocab_size": 61, "num_mel_bins": 80, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 44,
    "decoder_ffn_dim": 40, "max_source_positions": 50, "max_target_positions": 64,
    "pad_token_id": 2, "bos_token_id": 2, "eos_token_id": 2, "decoder_start_token_id": 3,
    "is_encoder_decoder": True,
}  # fmt: skip
CASES = {
    "whisper": WHISPER,
    # the sizes of the two sides differ; 128 bands as large-v3 has them; 30 seconds
    "whisper-unequal": WHISPER | {
        "num_mel_bins": 128, "d_model": 24, "encoder_layers": 1, "decoder_layers": 3,
        "encoder_attention_heads": 2, "decoder_attention_heads": 3, "activation_function": "relu",
        "max_source_positions": 1500, "tie_word_embeddings": False,
    },
}  # fmt: skip


def features_of_transformers(samples, config):
    """By numpy, which computes in binary64 but for the spectrum (complex64)."""
    extractor = transformers.WhisperFeatureExtractor(
        feature_size=config["num_mel_bins"], chunk_length=config["max_source_positions"] // 50
    )
    size = 320 * config["max_source_positions"]
    x = np.zeros(size, np.float32)
    x[: len(samples)] = samples[:size]
    return extractor._np_extract_fbank_features(x[None], "cpu")[0]


@torch.no_grad()
def vector(settings, seed):
    config = {
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], **settings,
    }  # fmt: skip
    auto = transformers.AutoModelForSpeechSeq2Seq
    samples = sound(seed, 14000).astype(np.float32) / np.float32(32768)
    features = log_mel(samples, config["num_mel_bins"], config["max_source_positions"])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shapes = shapes_of(config, folder, auto)
        write(folder / "model", config, shapes, seed)
        model, about = auto.from_pretrained(
            folder / "model", dtype=torch.float32, attn_implementation="eager",
            output_loading_info=True,
        )  # fmt: skip
        assert not {k: v for k, v in about.items() if v}, about
        model.eval()
        tokens = [config["decoder_start_token_id"]]

        def logits():
            given = torch.tensor(features)[None].to(model.dtype)
            ids = torch.tensor([tokens[:GREEDY]])
            return model(given, decoder_input_ids=ids, use_cache=False).logits[0]

        for _ in range(GREEDY):
            tokens.append(int(logits()[-1].argmax()))
        single = logits()
        model.double()
        with Float64():
            exact = logits()
        assert exact.dtype == torch.float64
    theirs = features_of_transformers(samples, config)
    return {
        "config": config,
        "seed": seed,
        "shapes": shapes,
        "tokens": tokens,
        "features_error": float(np.abs(features - theirs).max()),
        "float32_error": float((single - exact).abs().max() / exact.abs().max()),
        "largest": float(exact.abs().max()),
        "rows": {str(r): [float(f"{x:.10g}") for x in exact[r].tolist()] for r in ROWS},
    }


def main():
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    lines = []
    for i, (name, settings) in enumerate(CASES.items()):
        made = {"name": name, **vector(settings, 900 + i)}
        print(name, made["tokens"][:12], made["features_error"], made["float32_error"])
        lines.append(json.dumps(made, separators=(",", ":")))
    VECTORS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
