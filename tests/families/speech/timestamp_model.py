"""A random model that hears and tells times, for tests and for make_timestamp_vectors.py. Its
windows have a second, and its vocabulary is that of the shipped model, whose last tokens are times.
"""

import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
from encoder_decoders import write_shipped  # noqa: E402

VOCABULARY, TIMES = 2048, 51
NO_TIMESTAMPS = VOCABULARY - TIMES - 1
END, START, LANGUAGES, TASKS = 1985, 1986, {"<|en|>": 1987, "<|de|>": 1988}, (1989, 1990)
# name -> the seed of model and recording, max_initial_timestamp_index, samples, language, limit
RECORDINGS = {
    "short": (31, 20, 14000, "en", 40),
    "long": (32, 25, 70000, "de", 40),
    "no-limit-of-the-first": (33, None, 52345, "en", 40),
    "cut-by-length": (34, 10, 40000, "en", 7),
    "between-windows": (35, 50, 16100, "de", 40),
}


def write_timed(path, seed=32, most=25):
    lines = (Path(__file__).parent / "vectors.jsonl").read_text().splitlines()
    vector = next(v for v in map(json.loads, lines) if v["name"] == "whisper")
    ends = {"eos_token_id": END, "pad_token_id": 1984, "bos_token_id": END,
            "decoder_start_token_id": START}  # fmt: skip
    write_shipped(path, vector | {"seed": seed, "config": vector["config"] | ends})
    settings = ends | {
        "lang_to_id": LANGUAGES, "task_to_id": dict(zip(("transcribe", "translate"), TASKS)),
        "is_multilingual": True, "no_timestamps_token_id": NO_TIMESTAMPS, "max_length": 64,
        "suppress_tokens": [9, 11, *range(END + 1, NO_TIMESTAMPS)],
        "begin_suppress_tokens": [12, END], "return_timestamps": False,
    }  # fmt: skip
    if most is not None:
        settings["max_initial_timestamp_index"] = most
    (path / "generation_config.json").write_text(json.dumps(settings))
    return path
