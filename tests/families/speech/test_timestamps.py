"""Timestamps of recordings: tokens, windows and segments against transformers (timestamps.jsonl of
make_timestamp_vectors.py), receipts, subtitles."""

import json
import sys
from pathlib import Path

import pytest
from conftest import MODEL, invar, refused

sys.path[1:1] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
from log_mel import sound, wav  # noqa: E402
from test_speech import write_hearing  # noqa: E402
from timestamp_model import (  # noqa: E402
    LANGUAGES,
    NO_TIMESTAMPS,
    RECORDINGS,
    START,
    TASKS,
    write_timed,
)

LINES = (Path(__file__).parent / "timestamps.jsonl").read_text().splitlines()
VECTORS = {v["name"]: v["windows"] for v in map(json.loads, LINES)}


def recording(folder, seed, size):
    (folder / "talk.wav").write_bytes(wav(sound(seed, size).tobytes()))
    return folder / "talk.wav"


@pytest.mark.parametrize("name", RECORDINGS)
def test_tokens_windows_and_segments_of_transformers(name, tmp_path):
    seed, most, size, language, limit = RECORDINGS[name]
    model = write_timed(tmp_path / "model", seed, most)
    talk, receipt = recording(tmp_path, seed, size), tmp_path / "r.json"
    call = ("run", "--model-name", model, "--audio-path", talk, "--receipt-path", receipt,
            "--timestamps", "--no-do-sample", "--max-new-tokens", limit, "--language", language)  # fmt: skip
    made = [json.loads(line) for line in invar(*call, "--json").out.splitlines()]
    paths = [tmp_path / f"r.{i + 1}.json" for i in range(len(made))]
    assert not (tmp_path / f"r.{len(made) + 1}.json").exists() and not receipt.exists()
    receipts = [json.loads(p.read_text()) for p in paths]
    expected = VECTORS[name]
    assert [r["output"]["tokens"] for r in receipts] == [w["tokens"] for w in expected]
    assert [r["input"].get("audio_start", 0) for r in receipts] == [w["start"] for w in expected]
    for one, receipt_, window in zip(made, receipts, expected, strict=True):
        given = receipt_["input"]
        assert one["receipt_hash"] == receipt_["receipt_hash"]
        assert given["decoder_tokens"] == [START, LANGUAGES[f"<|{language}|>"], TASKS[0]]
        assert given["timestamp_begin"] == NO_TIMESTAMPS + 1
        assert given.get("max_initial_timestamp_index") == most
        # The last one of transformers may have the first token of the unfinished one behind it.
        whole = [
            [start, end, tokens[: -1 if min(tokens[-2:]) > NO_TIMESTAMPS else None]]
            for start, end, tokens in window["segments"]
        ]
        assert [[s["start"], s["end"], s["tokens"]] for s in one["segments"]] == whole
    told = invar("verify", *paths, "--model-name", model, "--audio-path", talk, "--threads", 3)
    assert told.out.count(b"VERIFIED") == len(paths)


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """-> (model, recording, the segments of it that people see)."""
    folder = tmp_path_factory.mktemp("long")
    model, talk = write_timed(folder / "model"), recording(folder, 32, 40000)
    made = invar("run", "--model-name", model, "--audio-path", talk, "--timestamps", "--json",
                 "--language", "en", "--receipt-path", folder / "r.json", "--max-new-tokens", 20)  # fmt: skip
    segments = [s for line in made.out.splitlines() for s in json.loads(line)["segments"]]
    return model, talk, [s for s in segments if s["end"] > s["start"] and s["text"].strip()]


def clock(seconds, point, hours):
    ms = round(1000 * seconds)
    return f"{'00:' if hours else ''}{ms // 60000:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"


def test_lines_and_subtitles(long, tmp_path):
    model, talk, segments = long
    assert len(segments) > 3
    call = ("run", "--model-name", model, "--audio-path", talk, "--language", "en",
            "--receipt-path", tmp_path / "r.json", "--max-new-tokens", 20)  # fmt: skip

    def cues(point, hours):
        return [
            (f"{clock(s['start'], point, hours)} --> {clock(s['end'], point, hours)}",
             s["text"].strip(" \t\r\n\f\v"))
            for s in segments
        ]  # fmt: skip

    lines = invar(*call, "--timestamps").out.decode()
    assert lines == "".join(f"[{times}]  {text}\n" for times, text in cues(".", False))
    srt = invar(*call, "--output-format", "srt").out.decode()
    numbered = enumerate(cues(",", True), start=1)
    assert srt == "".join(
        f"{i}\n{times}\n{text.replace('-->', '->')}\n\n" for i, (times, text) in numbered
    )
    vtt = invar(*call, "--output-format", "vtt").out.decode()
    assert vtt == "WEBVTT\n\n" + "".join(
        f"{times}\n{text.replace('-->', '->')}\n\n" for times, text in cues(".", False)
    )


def test_bits_do_not_depend_on_what_computes_them(long, tmp_path):
    model, talk, _ = long
    hashes = set()
    for name, options in (("a", ()), ("b", ("--isa", "scalar", "--threads", 1)), ("c", ("--threads", 3))):
        invar("run", "--model-name", model, "--audio-path", talk, "--timestamps", "--seed", 7,
              "--temperature", 1.5, "--receipt-path", tmp_path / f"{name}.json", "--max-new-tokens",
              9, *options)  # fmt: skip
        found = sorted(tmp_path.glob(f"{name}.*.json"), key=lambda p: int(p.suffixes[0][1:]))
        hashes.add(tuple(json.loads(p.read_text())["receipt_hash"] for p in found))
    assert len(hashes) == 1 and len(min(hashes)) > 2


def test_a_forged_time_is_found(long, tmp_path):
    """A receipt without the rules, of the same tokens, is none; nor is one with another begin."""
    model, talk, _ = long
    invar("run", "--model-name", model, "--audio-path", talk, "--timestamps", "--language", "en",
          "--receipt-path", tmp_path / "r.json", "--max-new-tokens", 9)  # fmt: skip
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from receipt_oracle import seal

    for change, names in (
        ({"timestamp_begin": NO_TIMESTAMPS + 2}, b"input.timestamp_begin"),
        ({"timestamp_begin": None, "max_initial_timestamp_index": None}, b"input.decoder_tokens"),
        ({"max_initial_timestamp_index": 0}, b"output.tokens[0]"),
    ):
        receipt = json.loads((tmp_path / "r.1.json").read_text())
        receipt["input"] |= change
        receipt["input"] = {k: v for k, v in receipt["input"].items() if v is not None}
        (tmp_path / "f.json").write_text(json.dumps(seal(receipt)))
        told = invar("verify", tmp_path / "f.json", "--model-name", model, "--audio-path", talk, code=1)
        assert names in told.out, told.out


def test_refusals(long, tmp_path):
    model, talk, _ = long
    call = ("run", "--audio-path", talk, "--receipt-path", tmp_path / "r.json", "--model-name")
    refused(*call, model, "--timestamps", "--batch-size", 2, names=["--batch-size"])
    refused(*call, model, "--output-format", "vtt", "--n", 2, names=["one by one"])
    refused(*call, MODEL, "--timestamps", names=["does not hear"])
    refused("run", "--model-name", model, "--prompt-text", "x", "--timestamps", names=["--audio-path"])
    plain = write_hearing(tmp_path / "plain")
    settings = json.loads((plain / "generation_config.json").read_text())
    del settings["no_timestamps_token_id"]
    (plain / "generation_config.json").write_text(json.dumps(settings))
    refused(*call, plain, "--output-format", "srt", names=["no_timestamps_token_id"])
