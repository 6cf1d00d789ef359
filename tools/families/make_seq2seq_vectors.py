#!/usr/bin/env python3
"""Writes tests/families/seq2seq/vectors.jsonl: for each encoder-decoder its config, the shapes of
its tensors, float64 logits and 64 greedy tokens of transformers. Needs transformers and torch.

make_seq2seq_vectors.py [NAME ...]: these, else those that are missing"""

import json
import logging
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from make_vectors import GREEDY, ROOT, Float64, shapes_of
from random_checkpoint import write

VECTORS = ROOT / "tests/families/seq2seq/vectors.jsonl"
SOURCES, ROWS = (24, 150), (0, 7, 63)
BART = {
    "vocab_size": 61, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 44,
    "decoder_ffn_dim": 40, "max_position_embeddings": 160, "pad_token_id": 1, "bos_token_id": 0,
    "eos_token_id": 2, "decoder_start_token_id": 2, "is_encoder_decoder": True,
}  # fmt: skip
T5 = {
    "vocab_size": 61, "d_model": 32, "d_kv": 8, "d_ff": 44, "num_layers": 2, "num_heads": 4,
    "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
    "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "is_encoder_decoder": True,
}  # fmt: skip
CLASSES = {
    "bart": "BartForConditionalGeneration", "mbart": "MBartForConditionalGeneration",
    "marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration", "t5": "T5ForConditionalGeneration",
    "mt5": "MT5ForConditionalGeneration", "umt5": "UMT5ForConditionalGeneration",
    "blenderbot": "BlenderbotForConditionalGeneration",
}  # fmt: skip
CASES = {
    "bart": ("bart", BART),
    # other numbers of heads and layers in the two sides, another activation, scaled embeddings
    "bart-unequal": ("bart", BART | {
        "decoder_attention_heads": 2, "encoder_layers": 1, "decoder_layers": 3,
        "activation_function": "relu", "scale_embedding": True, "tie_word_embeddings": False,
    }),
    "mbart": ("mbart", BART | {"scale_embedding": True}),
    "marian": ("marian", BART | {"activation_function": "swish", "scale_embedding": True}),
    "marian-apart": ("marian", BART | {
        "decoder_vocab_size": 53, "share_encoder_decoder_embeddings": False, "d_model": 36,
        "pad_token_id": 52, "decoder_start_token_id": 52,
    }),
    "pegasus": ("pegasus", BART | {"activation_function": "relu", "scale_embedding": True}),
    "m2m-100": ("m2m_100", BART),
    "t5": ("t5", T5),
    "t5-gated": ("t5", T5 | {
        "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 3,
    }),
    "t5-narrow": ("t5", T5 | {
        "feed_forward_proj": "gated-silu", "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 20, "d_kv": 6, "layer_norm_epsilon": 1e-5,
    }),
    "mt5": ("mt5", T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "mt5-tied": ("mt5", T5 | {"num_decoder_layers": 3}),
    "umt5": ("umt5", T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "umt5-tied": ("umt5", T5 | {"feed_forward_proj": "relu", "num_decoder_layers": 1}),
    "blenderbot": ("blenderbot", BART | {
        "normalize_before": True, "normalize_embedding": False, "add_final_layer_norm": True,
    }),
    "blenderbot-scaled": ("blenderbot", BART | {
        "scale_embedding": True, "activation_function": "relu", "encoder_layers": 1,
    }),
}  # fmt: skip


@torch.no_grad()
def vector(kind, settings, seed):
    config = {"model_type": kind, "architectures": [CLASSES[kind]], **settings}
    auto = transformers.AutoModelForSeq2SeqLM
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shapes = shapes_of(config, folder, auto)
        if config.get("tie_word_embeddings") is False:  # where transformers ties them all the same
            shapes["lm_head.weight"] = [config["vocab_size"], config["d_model"]]
        write(folder / "model", config, shapes, seed)
        model, about = auto.from_pretrained(
            folder / "model", dtype=torch.float32, attn_implementation="eager",
            output_loading_info=True,
        )  # fmt: skip
        assert not {k: v for k, v in about.items() if v}, about
        model.eval()
        start, vocab = config["decoder_start_token_id"], config["vocab_size"]
        texts = []
        for length in SOURCES:
            source = [3 + (7 * i * i + 3 * i + seed) % (vocab - 4) for i in range(length)]
            tokens = [start]

            def logits(tokens, source=source):
                ids, made = torch.tensor([source]), torch.tensor([tokens])
                seen = torch.ones_like(ids)
                return model(ids, seen, decoder_input_ids=made, use_cache=False).logits[0]

            for _ in range(GREEDY):
                tokens.append(int(logits(tokens)[-1].argmax()))
            single = logits(tokens[:-1])
            model.double()
            with Float64():
                exact = logits(tokens[:-1])
            model.float()
            assert exact.dtype == torch.float64
            texts.append({
                "source": source,
                "tokens": tokens,
                "float32_error": float((single - exact).abs().max() / exact.abs().max()),
                "largest": float(exact.abs().max()),
                "rows": {str(r): [float(f"{x:.10g}") for x in exact[r].tolist()] for r in ROWS},
            })  # fmt: skip
    return {"config": config, "seed": seed, "shapes": shapes, "texts": texts}


def main():
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    lines = VECTORS.read_text().splitlines() if VECTORS.exists() else []
    known = {json.loads(line)["name"]: line for line in lines}
    for i, (name, (kind, settings)) in enumerate(CASES.items()):
        if name not in sys.argv[1:] and (sys.argv[1:] or name in known):
            continue
        made = {"name": name, **vector(kind, settings, 700 + i)}
        print(name, made["texts"][0]["tokens"][:12], len(set(made["texts"][1]["tokens"])))
        known[name] = json.dumps(made, separators=(",", ":"))
    VECTORS.write_text("".join(known[name] + "\n" for name in CASES if name in known))


if __name__ == "__main__":
    main()
