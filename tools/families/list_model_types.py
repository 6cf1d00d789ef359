#!/usr/bin/env python3
"""Writes tests/families/model_types.json: every model_type of transformers and what its models are,
by the tables of its Auto classes. Needs transformers."""

import json
import re
from pathlib import Path

import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

OUT = Path(__file__).resolve().parents[2] / "tests/families/model_types.json"
# The first line that fits one of the tables that have a type says what it is.
KINDS = [
    ("text with pictures or sound", "IMAGE_TEXT_TO_TEXT|MULTIMODAL_LM|VISUAL_QUESTION"),
    ("encoder and decoder of text", "SEQ_TO_SEQ_CAUSAL_LM"),
    ("encoder of text", "MASKED_LM|TEXT_ENCODING"),
    ("decoder of text", "^CAUSAL_LM"),
    ("time series", "TIME_SERIES"),
    ("sound", "AUDIO|CTC|SPEECH|SPECTROGRAM|WAVEFORM|RNNT|TDT"),
    ("pictures", "IMAGE|DEPTH|DETECTION|SEGMENTATION|KEYPOINT|BACKBONE|VIDEO"),
    ("encoder of text", "SEQUENCE_CLASS|TOKEN_CLASS|QUESTION|NEXT_SENTENCE"),
]


def kind(model_type):
    tables = [
        name.removeprefix("MODEL_FOR_")
        for name in dir(modeling_auto)
        if name.endswith("_MAPPING_NAMES") and model_type in getattr(modeling_auto, name)
    ]
    fits = (words for words, pattern in KINDS for t in tables if re.search(pattern, t))
    return next(fits, "part or body of a model")


def main():
    types = {name: kind(name) for name in sorted(CONFIG_MAPPING_NAMES)}
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in types.items())
    head = json.dumps(transformers.__version__)
    OUT.write_text('{"transformers": ' + head + ', "types": {\n' + rows + "\n}}\n")


if __name__ == "__main__":
    main()
