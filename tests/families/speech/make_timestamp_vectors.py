#!/usr/bin/env python3
"""Writes tests/families/speech/timestamps.jsonl: what transformers says of recordings with
timestamps, window after window: its tokens (WhisperTimeStampLogitsProcessor), and the segments and
the next window that its _retrieve_segment() makes of them. The spectrum is that of spec/speech.md,
of each window. Needs transformers and torch."""

import json
import logging
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tools/families"), str(ROOT / "tests/families"),
                str(ROOT / "tests")]  # fmt: skip
from log_mel import log_mel, sound  # noqa: E402
from timestamp_model import NO_TIMESTAMPS, RECORDINGS, write_timed  # noqa: E402

VECTORS = Path(__file__).parent / "timestamps.jsonl"


@torch.no_grad()
def windows_of(model, samples, language, limit):
    config, begin = model.config, NO_TIMESTAMPS + 1
    most, frames, at = 2 * config.max_source_positions, max(1, len(samples) // 160), 0
    while at < frames:
        features = log_mel(samples[160 * at :], config.num_mel_bins, config.max_source_positions)
        answer = model.generate(
            torch.tensor(features)[None], language=language, task="transcribe", do_sample=False,
            return_timestamps=True, force_unique_generate_call=True, max_new_tokens=limit,
        )[0]  # fmt: skip
        tokens = answer[3:][answer[3:] != config.pad_token_id]  # behind START, language and task
        kept = tokens[:-1] if tokens[-1] == config.eos_token_id else tokens
        rest = torch.tensor([min(most, frames - at)])
        segments, more = model._retrieve_segment(
            seek_sequence=kept, seek_outputs=[None], time_offset=torch.tensor([at / 100]),
            timestamp_begin=begin, seek_num_frames=rest, time_precision=0.02,
            time_precision_features=0.01, input_stride=2, prev_idx=0, idx=0,
            return_token_timestamps=False, decoder_input_ids=torch.zeros(1, 0),
        )  # fmt: skip
        yield {
            "start": 160 * at,
            "tokens": tokens.tolist(),
            "segments": [
                [round(float(s["start"]), 3), round(float(s["end"]), 3), s["tokens"].tolist()]
                for s in segments
            ],
        }
        at += int(more)


def main():
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    lines = []
    for name, (seed, most, size, language, limit) in RECORDINGS.items():
        with tempfile.TemporaryDirectory() as folder:
            write_timed(Path(folder) / "model", seed, most)
            auto = transformers.AutoModelForSpeechSeq2Seq
            model = auto.from_pretrained(folder + "/model", dtype=torch.float32, attn_implementation="eager")
            model.eval()
            samples = sound(seed, size).astype(np.float32) / np.float32(32768)
            windows = list(windows_of(model, samples, language, limit))
        print(name, [(w["start"], len(w["tokens"]), len(w["segments"])) for w in windows])
        lines.append(json.dumps({"name": name, "windows": windows}, separators=(",", ":")))
    VECTORS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
