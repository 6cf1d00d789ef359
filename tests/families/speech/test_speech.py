"""Models that hear, against transformers (vectors.jsonl of make_speech_vectors.py)
and a second reading of the front end (log_mel.py): logits, tokens, recordings, receipts."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import MODEL, invar, refused

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_decoders import (  # noqa: E402
    ALLOWED,
    check_bits,
    check_exact16,
    compiled,
    ids,
    largest_error,
    write_shipped,
)
from log_mel import flac, log_mel, resampled, sound, wav  # noqa: E402

LINES = (Path(__file__).parent / "vectors.jsonl").read_text().splitlines()
VECTORS = {v["name"]: v for v in map(json.loads, LINES)}
START, LANGUAGES, TASKS, PLAIN = 50, {"<|en|>": 51, "<|de|>": 53, "<|fr|>": 52}, (55, 56), 57


def heard(vector):
    samples = sound(vector["seed"], 14000).astype(np.float32) / np.float32(32768)
    config = vector["config"]
    return log_mel(samples, config["num_mel_bins"], config["max_source_positions"])


@pytest.fixture(scope="module", params=VECTORS)
def model(request, tmp_path_factory):
    """-> (what transformers computes, the compiled plan)."""
    vector = VECTORS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    np.save(folder / "features.npy", heard(vector))
    return vector, compiled(folder, vector)


def logits(plan, vector, *options):
    out = plan.parent / "logits.bin"
    invar("infer", plan, "--source-features", plan.parent / "features.npy", "--tokens",
          ids(vector["tokens"][:-1]), "--logits-output", out, *options)  # fmt: skip
    return np.fromfile(out, "<f4").reshape(len(vector["tokens"]) - 1, -1)


def test_logits_and_greedy_tokens_of_transformers(model):
    vector, plan = model
    error = largest_error(logits(plan, vector), vector)
    print(f"{error:.2g} of the largest; features {vector['features_error']:.2g}")
    assert error <= ALLOWED and vector["features_error"] <= 5e-6
    made = invar("infer", plan, "--source-features", plan.parent / "features.npy", "--tokens",
                 vector["tokens"][0], "--no-do-sample", "--max-new-tokens",
                 len(vector["tokens"]) - 1)  # fmt: skip
    assert made.json()["tokens"] == vector["tokens"][1:]


def test_bits_do_not_depend_on_what_computes_them(model):
    vector, plan = model
    check_bits(logits, plan, vector)


def test_the_profile_exact16(model):
    vector, plan = model
    check_exact16(logits, plan, vector)


def write_hearing(path):
    """A checkpoint with the shipped model's tokenizer, and so with its vocabulary."""
    write_shipped(path, VECTORS["whisper"])
    settings = {
        "eos_token_id": 7, "decoder_start_token_id": START, "lang_to_id": LANGUAGES,
        "task_to_id": dict(zip(("transcribe", "translate"), TASKS)), "is_multilingual": True,
        "no_timestamps_token_id": PLAIN, "suppress_tokens": [9, 11], "max_length": 64,
        "begin_suppress_tokens": [7, 12], "return_timestamps": False, "alignment_heads": [[0, 1]],
    }  # fmt: skip
    (path / "generation_config.json").write_text(json.dumps(settings))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_hearing(tmp_path_factory.mktemp("hears") / "model")


def run(folder, recording, receipt, *options, **kind):
    kept = receipt.with_suffix(".wav")
    kept.write_bytes(
        recording if isinstance(recording, bytes) else wav(recording.tobytes(), **kind)
    )
    invar("run", "--model-name", folder, "--audio-path", kept, "--receipt-path", receipt,
          "--max-new-tokens", 12, *options)  # fmt: skip
    return json.loads(receipt.read_text()) if receipt.exists() else kept


def test_a_receipt_binds_what_was_heard(folder, tmp_path):
    """The logits are those of features that a second reading makes of the samples."""
    x = sound(5, 13000)
    receipt = run(folder, x, tmp_path / "r.json", "--language", "de", "--task", "translate")
    samples = x.astype("<f4") / np.float32(32768)
    given = receipt["input"]
    assert given["audio"] == hashlib.sha256(samples.tobytes()).hexdigest()
    assert given["prompt"] == "" and given["tokens"] == [] and "audio_start" not in given
    assert given["decoder_tokens"] == [START, 53, 56, PLAIN]
    assert given["suppress_tokens"] == [9, 11] and given["begin_suppress_tokens"] == [7, 12]
    np.save(tmp_path / "f.npy", log_mel(samples, 80, 50))
    invar("export", "--model-name", folder, "-o", tmp_path)
    invar("compile", tmp_path / "model.onnx", "-o", tmp_path / "plan.invar")
    tokens = given["decoder_tokens"] + receipt["output"]["tokens"][:-1]
    invar("infer", tmp_path / "plan.invar", "--source-features", tmp_path / "f.npy", "--tokens",
          ids(tokens), "--logits-output", tmp_path / "l.bin")  # fmt: skip
    rows = np.fromfile(tmp_path / "l.bin", "<f4").reshape(len(tokens), -1)[3:]
    assert [hashlib.sha256(r.tobytes()).hexdigest() for r in rows] == receipt["output"]["logits"]

    verify = ("verify", tmp_path / "r.json", "--model-name", folder)
    for options in ((), ("--steps", "1:3"), ("--isa", "scalar"), ("--threads", 3)):
        told = invar(*verify, "--audio-path", tmp_path / "r.wav", *options)
        assert told.out.startswith((b"VERIFIED", b"SPOT CHECKED")), options
    refused(*verify, names=["--audio-path"])
    (tmp_path / "other.wav").write_bytes(wav(sound(6, 13000).tobytes()))
    told = invar(*verify, "--audio-path", tmp_path / "other.wav", code=1)
    assert b"input.audio: the receipt says" in told.out


def test_a_model_hears_its_language(folder, tmp_path):
    x = sound(5, 13000)
    given = run(folder, x, tmp_path / "r.json")["input"]
    invar("export", "--model-name", folder, "-o", tmp_path)
    invar("compile", tmp_path / "model.onnx", "-o", tmp_path / "plan.invar")
    np.save(tmp_path / "f.npy", log_mel(x.astype("<f4") / np.float32(32768), 80, 50))
    invar("infer", tmp_path / "plan.invar", "--source-features", tmp_path / "f.npy", "--tokens",
          START, "--logits-output", tmp_path / "l.bin")  # fmt: skip
    row = np.fromfile(tmp_path / "l.bin", "<f4")
    loudest = max(sorted(LANGUAGES.values()), key=lambda t: row[t])
    assert given["decoder_tokens"] == [START, loudest, TASKS[0], PLAIN]


def test_a_long_recording_has_windows(folder, tmp_path):
    """A window, an answer and a receipt for each second, which is what this model hears; together
    they are as each alone."""
    x = sound(8, 40000)
    invar("run", "--model-name", folder, "--audio-path", save(tmp_path, x), "--receipt-path",
          tmp_path / "r.json", "--max-new-tokens", 9)  # fmt: skip
    receipts = [json.loads((tmp_path / f"r.{i}.json").read_text()) for i in (1, 2, 3)]
    assert not (tmp_path / "r.4.json").exists() and not (tmp_path / "r.json").exists()
    assert [r["input"].get("audio_start", 0) for r in receipts] == [0, 16000, 32000]
    assert len({tuple(r["input"]["decoder_tokens"]) for r in receipts}) == 1
    together = invar("run", "--model-name", folder, "--audio-path", tmp_path / "x.wav", "--batch-size",
                     3, "--receipt-path", tmp_path / "b.json", "--max-new-tokens", 9)  # fmt: skip
    assert (
        together.out.decode().splitlines()
        == "\n".join(r["output"]["text"] for r in receipts).splitlines()
    )
    for i, r in enumerate(receipts, start=1):
        assert (
            json.loads((tmp_path / f"b.{i}.json").read_text())["receipt_hash"] == r["receipt_hash"]
        )
    paths = [tmp_path / f"r.{i}.json" for i in (1, 2, 3)]
    told = invar("verify", *paths, "--model-name", folder, "--audio-path", tmp_path / "x.wav")
    assert told.out.count(b"VERIFIED") == 3


def save(folder, x, **kind):
    (folder / "x.wav").write_bytes(wav(x.tobytes(), **kind))
    return folder / "x.wav"


def test_files_of_equal_samples_have_equal_receipts(folder, tmp_path):
    x = sound(9, 9000)
    wide = x.astype(np.int32)
    stereo = np.stack([x + np.int16(0), x], axis=1)
    files = {
        "plain": (x, {}),
        "extensible": (x, {"extensible": True}),
        "24": (np.frombuffer((wide << 8).astype("<i4").tobytes(), np.uint8).reshape(-1, 4)[:, :3],
               {"bits": 24}),
        "32": (wide << 16, {"bits": 32}),
        "float": (x.astype("<f4") / np.float32(32768), {"kind": 3, "bits": 32}),
        "double": (x.astype("<f8") / 32768, {"kind": 3, "bits": 64}),
        "stereo": (stereo, {"channels": 2}),
        "chunks": (x, {"before": b"LIST\x03\0\0\0abc\0"}),
        "stream": (x, {"size": 0xFFFFFFFF}),
    }  # fmt: skip
    hashes = set()
    for name, (data, kind) in files.items():
        receipt = run(folder, np.ascontiguousarray(data), tmp_path / f"{name}.json", "--language",
                      "en", **kind)  # fmt: skip
        hashes.add(receipt["receipt_hash"])
    assert len(hashes) == 1


def test_flac_has_the_receipt_of_its_samples(folder, tmp_path):
    """Every kind of subframe and of channels; a flipped bit is named."""
    x = sound(4, 6000)
    x[4000:5000] &= ~3  # two bits that are not stored
    x[5000:] = 77
    kinds = ["verbatim", "fixed", "lpc", "raw", "wasted", "constant"]
    mono = [(0, [(k, x[1000 * i : 1000 * i + 1000], 0)]) for i, k in enumerate(kinds)]
    plain = run(folder, x, tmp_path / "plain.json", "--language", "en")["receipt_hash"]
    file = flac(mono)
    assert run(folder, file, tmp_path / "f.json", "--language", "en")["receipt_hash"] == plain
    left, right = x.astype(np.int64), np.roll(x, 7).astype(np.int64)
    pieces = [slice(0, 1000), slice(1000, 3000), slice(3000, 4000), slice(4000, 6000)]
    pairs = [
        (1, lambda a, b: [("lpc", a, 0), ("fixed", b, 0)]),
        (8, lambda a, b: [("fixed", a, 0), ("verbatim", a - b, 1)]),
        (9, lambda a, b: [("lpc", a - b, 1), ("fixed", b, 0)]),
        (10, lambda a, b: [("fixed", (a + b) >> 1, 0), ("raw", a - b, 1)]),
    ]
    frames = [(n, make(left[p], right[p])) for (n, make), p in zip(pairs, pieces, strict=True)]
    stereo = np.stack([left, right], axis=1).astype("<i2")
    one = run(folder, stereo, tmp_path / "s.json", "--language", "en", channels=2)
    two = run(folder, flac(frames, channels=2), tmp_path / "t.json", "--language", "en")
    assert one["receipt_hash"] == two["receipt_hash"] != plain
    for at, names in ((60, "damaged"), (len(file) // 2, "damaged"), (len(file) - 1, "damaged")):
        hurt = bytearray(file)
        hurt[at] ^= 4
        (tmp_path / "hurt.flac").write_bytes(hurt)
        refused("run", "--model-name", folder, "--audio-path", tmp_path / "hurt.flac",
                names=[names])  # fmt: skip
    (tmp_path / "cut.flac").write_bytes(file[:-900])
    refused("run", "--model-name", folder, "--audio-path", tmp_path / "cut.flac", names=["damaged"])


@pytest.mark.parametrize("rate", [8000, 44100, 48000])
def test_rates_are_converted(folder, tmp_path, rate):
    x = sound(7, 3000)
    receipt = run(folder, x, tmp_path / "r.json", "--language", "en", rate=rate)
    samples = resampled(x.astype(np.float32) / np.float32(32768), rate)
    assert receipt["input"]["audio"] == hashlib.sha256(samples.astype("<f4").tobytes()).hexdigest()


def test_a_redacted_receipt_hides_the_recording(folder, tmp_path):
    receipt = run(folder, sound(5, 9000), tmp_path / "r.json", "--salt-prompt", "--language", "en")
    invar("redact", tmp_path / "r.json", "-o", tmp_path / "redacted.json")
    redacted = json.loads((tmp_path / "redacted.json").read_text())
    assert (
        redacted["input"]["audio"] is None and redacted["receipt_hash"] == receipt["receipt_hash"]
    )
    invar("validate", tmp_path / "redacted.json")


def test_refusals(folder, tmp_path):
    call = ("run", "--model-name", folder, "--audio-path")
    refused(*call, save(tmp_path, sound(5, 900), rate=44101), code=3, names=["44101", "ffmpeg"])
    refused(*call, save(tmp_path, sound(5, 0)), names=["no samples"])
    refused(*call, save(tmp_path, sound(5, 900), kind=17), code=3, names=["format 17"])
    (tmp_path / "x.mp3").write_bytes(b"ID3\4\0\0")
    refused(*call, tmp_path / "x.mp3", code=3, names=["MP3", "ffmpeg"])
    good = save(tmp_path, sound(5, 900))
    refused(*call, good, "--language", "xx", names=["--language xx", "de, en, fr"])
    refused(*call, good, "--task", "sing", names=["--task"])
    refused("run", "--model-name", folder, "--prompt-text", "x", names=["--audio-path"])
    refused("run", "--model-name", MODEL, "--audio-path", good, names=["does not hear"])
    refused("run", "--model-name", folder, "--prompt-text", "x", "--language", "en",
            names=["--audio-path"])  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps({"hop_length": 128}))
    refused(*call, good, code=3, names=["hop_length"])
    (folder / "preprocessor_config.json").unlink()
    config = (folder / "config.json").read_text()
    for key, value in {"scale_embedding": True, "max_source_positions": 3000}.items():
        (folder / "config.json").write_text(json.dumps(json.loads(config) | {key: value}))
        refused(*call, good, code=3, names=[key])
    (folder / "config.json").write_text(config)
    settings = folder / "generation_config.json"
    before = settings.read_text()
    settings.write_text(json.dumps(json.loads(before) | {"return_timestamps": True}))
    refused(*call, good, code=3, names=["return_timestamps"])
    settings.write_text(before)
