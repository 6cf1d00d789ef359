"""Recordings in Python: segments, windows and receipts are those of `invar run --timestamps`."""

import json
import sys

import pytest
from conftest import BUILD, MODEL, ROOT
from conftest import invar as program

if not (BUILD / "python/invar").is_dir():
    pytest.skip("this build has no Python package (INVAR_PACKAGE)", allow_module_level=True)
import invar  # noqa: E402

sys.path[1:1] = [str(ROOT / "tests/families/speech")]
from timestamp_model import write_timed  # noqa: E402

sys.path[1:1] = [str(ROOT / "tests/families")]
from log_mel import sound, wav  # noqa: E402


def test_windows_by_timestamps(tmp_path):
    model, talk = write_timed(tmp_path / "model"), tmp_path / "talk.wav"
    talk.write_bytes(wav(sound(32, 40000).tobytes()))
    made = program("run", "--model-name", model, "--audio-path", talk, "--timestamps", "--json",
                   "--language", "en", "--max-new-tokens", 20, "--receipt-path", tmp_path / "r.json")  # fmt: skip
    windows = [json.loads(line) for line in made.out.splitlines()]
    session = invar.InferenceSession(model, max_new_tokens=20)
    start, found = 0, []
    while start is not None:
        answer = session.complete(audio=talk, audio_start=start, timestamps=True, language="en")
        found.append((answer.receipt_hash, answer.segments))
        start = answer.next_audio_start
    assert found == [(w["receipt_hash"], w["segments"]) for w in windows] and len(found) > 2
    assert invar.verify(answer, model, audio=talk)
    plain = session.complete(audio=talk, language="en")
    assert plain.segments == [] and plain.next_audio_start is None


def test_refusals(tmp_path):
    with pytest.raises(invar.BadInput, match="audio="):
        invar.generate(MODEL, "ROMEO:", timestamps=True)
    with pytest.raises(invar.BadInput, match="timestamps"):
        invar.generate(MODEL, audio=tmp_path / "none.wav", timestamps=1)
