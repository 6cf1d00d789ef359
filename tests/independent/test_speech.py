"""A model that hears: its receipts, windows and segments are those of the independent
implementation (seq2seq.10, sampling.32, speech.1 to speech.14)."""

import json

import pytest
from conftest import execute
from files import made_whisper, mutations_of_files
from pages.model import Model
from pages.speech.recording import decoder_tokens
from pages.speech.timestamps import Window

FRAMES = 2 * made_whisper.POSITIONS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("made") / "hears"
    made_whisper.make(made)
    return made


def run(folder, path, *options):
    call = ["run", "--model-name", folder, "--audio-path", folder / "talk.wav"]
    done = execute([*call, "--receipt-path", path / "r.json", *options])
    assert done.code == 0, done.text
    found = sorted(path.glob("r*.json"), key=lambda p: [int(s[1:]) for s in p.suffixes[:-1]])
    return [json.loads(p.read_bytes()) for p in found], done.out.decode()


@pytest.mark.parametrize("profile", ["fp32", "exact16"])
def test_timestamps(folder, profile, tmp_path):
    options = ["--numerics", profile, "--json", *mutations_of_files.SPEECH_RUN]
    receipts, out = run(folder, tmp_path, *options)
    model = Model(folder, profile, recording=folder / "talk.wav")
    begin, count = 0, len(model.recording.samples)
    assert len(receipts) > 2
    for receipt, line in zip(receipts, out.splitlines(), strict=True):
        assert receipt["input"].get("audio_start", 0) == begin
        assert model.repeated(receipt) == receipt
        window = Window(receipt, count, FRAMES)
        shown = [(s["start"], s["end"], s["tokens"]) for s in json.loads(line)["segments"]]
        own = [(a / 16000, b / 16000, tokens) for a, b, tokens in window.segments()]
        assert shown == own
        begin = window.next_frame() and 160 * window.next_frame()
    assert begin is None
    if profile == "fp32":
        golden = (
            json.loads(mutations_of_files.RECEIPTS[n].read_bytes()) for n in ("hears", "hears_on")
        )
        assert [r["receipt_hash"] for r in receipts[:2]] == [r["receipt_hash"] for r in golden]


def test_subtitles(folder, tmp_path):
    """speech.14"""
    receipts, out = run(folder, tmp_path, "--output-format", "srt", *mutations_of_files.SPEECH_RUN)
    model, expected = Model(folder, recording=folder / "talk.wav"), ""
    cues = [
        cue
        for receipt in receipts
        for cue in Window(receipt, len(model.recording.samples), FRAMES).cues(model.tokenizer)
    ]
    for i, (begin, end, text) in enumerate(cues, start=1):
        times = " --> ".join(
            f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02},{ms % 1000:03}"
            for ms in (begin, end)
        )
        expected += f"{i}\n{times}\n{text}\n\n"
    assert out == expected and len(cues) > 2


def test_a_recording_without_timestamps(folder, tmp_path):
    """speech.7 to speech.9: the language that is heard, greedy answers, windows of whole seconds"""
    receipts, _ = run(folder, tmp_path, "--max-new-tokens", 6, "--task", "translate")
    model = Model(folder, recording=folder / "talk.wav")
    settings = model.defaults
    for i, receipt in enumerate(receipts):
        assert receipt["input"].get("audio_start", 0) == 16000 * i
        assert model.repeated(receipt) == receipt
    heard = model.decoder.language(
        model.recording.features(0, made_whisper.POSITIONS, model.decoder.bands),
        settings["decoder_start_token_id"], settings["lang_to_id"],
    )  # fmt: skip
    own = decoder_tokens(model.checkpoint.config, settings, heard, "translate", False)
    assert {tuple(r["input"]["decoder_tokens"]) for r in receipts} == {tuple(own)}
