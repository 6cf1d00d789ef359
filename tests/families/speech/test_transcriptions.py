"""Recordings over HTTP: what the server answers is what `invar run --audio-path` says of the same
file, with its receipts, whoever else asks."""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import MODEL, ROOT, invar

sys.path[1:1] = [
    str(Path(__file__).parent),
    str(ROOT / "tests/families"),
    str(ROOT / "tests/serve"),
]
from log_mel import flac, sound, wav  # noqa: E402
from server import Server  # noqa: E402
from test_speech import PLAIN, START, TASKS, write_hearing  # noqa: E402
from timestamp_model import write_timed  # noqa: E402

SAY, TRANSLATE = "/v1/audio/transcriptions", "/v1/audio/translations"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hears")
    made = Server(write_hearing(folder / "model"), folder / "tasks", folder / "receipts",
                  "--model-name", MODEL, "--batch-size", 4)  # fmt: skip
    made.folder = folder / "model"
    yield made
    assert made.stop() == 0


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("timed")
    made = Server(
        write_timed(folder / "model"), folder / "tasks", folder / "receipts", "--batch-size", 4
    )
    made.folder = folder / "model"
    yield made
    assert made.stop() == 0


def form(members, file=None, name="talk.wav", boundary="some boundary"):
    """-> the body, and the header that says what it is."""
    parts = [(f'name="{k}"', str(v).encode()) for k, v in members]
    parts += [(f'name="file"; filename="{name}"', file)] if file is not None else []
    lines = [f"--{boundary}\r\nContent-Disposition: form-data; ".encode() + head.encode() +
             b"\r\n\r\n" + content + b"\r\n" for head, content in parts]  # fmt: skip
    kind = f'multipart/form-data; boundary="{boundary}"'
    return b"".join(lines) + f"--{boundary}--\r\n".encode(), {"Content-Type": kind}


def ask(server, path, file, status=200, **members):
    body, headers = form(members.items(), file)
    return server.ask(path, body, status, headers)


def run(server, tmp_path, file, *options):
    """The receipts of `invar run`, as the server has them."""
    (tmp_path / "talk.wav").write_bytes(file)
    invar("run", "--model-name", server.folder, "--audio-path", tmp_path / "talk.wav",
          "--receipt-path", tmp_path / "r.json", *options)  # fmt: skip
    paths = sorted(tmp_path.glob("r.*json"))
    receipts = [json.loads(p.read_text()) for p in paths]
    for path in paths:
        path.unlink()
    return receipts


def text_of(receipts):
    return " ".join(t for r in receipts if (t := r["output"]["text"].strip(" ")))


def test_receipts_are_those_of_run(server, tmp_path):
    x = sound(8, 40000)  # three windows
    file = wav(x.tobytes())
    expected = run(server, tmp_path, file, "--max-new-tokens", 9)
    got = ask(server, SAY, file, max_completion_tokens=9)
    assert got["invar"]["receipts"] == [r["receipt_hash"] for r in expected]
    assert got["text"] == text_of(expected)
    assert got["usage"] == {"type": "duration", "seconds": 2.5}
    for name, mine in zip(got["invar"]["receipts"], expected, strict=True):
        kept = server.ask(f"/v1/receipts/{name}")
        assert all(kept[k] == mine[k] for k in ("model", "program", "input", "output"))
        path = tmp_path / "kept.json"
        path.write_text(json.dumps(kept))
        told = invar("verify", path, "--model-name", server.folder, "--audio-path",
                     tmp_path / "talk.wav")  # fmt: skip
        assert told.out.startswith(b"VERIFIED")


def test_options_are_those_of_run(server, tmp_path):
    file = wav(sound(5, 13000).tobytes())
    for members, options in (
        ({"language": "de"}, ["--language", "de"]),
        ({"temperature": 0}, ["--no-do-sample"]),
        ({"temperature": 0.7, "seed": 5, "language": "fr"},
         ["--temperature", 0.7, "--seed", 5, "--language", "fr"]),
    ):  # fmt: skip
        expected = run(server, tmp_path, file, *options)
        assert ask(server, SAY, file, **members)["invar"]["receipts"] == [
            expected[0]["receipt_hash"]
        ]
    expected = run(server, tmp_path, file, "--task", "translate")
    assert expected[0]["input"]["decoder_tokens"][::3] == [START, PLAIN]
    assert expected[0]["input"]["decoder_tokens"][2] == TASKS[1]
    got = ask(server, TRANSLATE, file, model="model")
    assert got["invar"]["receipts"] == [expected[0]["receipt_hash"]]


def test_forms_of_the_answer(server, tmp_path):
    file = wav(sound(8, 40000).tobytes())
    options = {"max_completion_tokens": 9, "language": "de"}
    expected = run(server, tmp_path, file, "--max-new-tokens", 9, "--language", "de")
    body, headers = form([*options.items(), ("response_format", "text")], file)
    response = server.open(SAY, body, headers)
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["x-invar-receipt"].split(", ") == [r["receipt_hash"] for r in expected]
    assert response.read().decode() == text_of(expected) + "\n"


def test_the_context_bounds_a_recording(tmp_path):
    """At least as many tokens as the checkpoint says are no more than the context has room for."""
    model = write_hearing(tmp_path / "model")
    path = model / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"min_new_tokens": 30}))
    server = Server(model, tmp_path / "tasks", tmp_path / "receipts", "--context", 16)
    got = ask(server, SAY, wav(sound(8, 9000).tobytes()), language="de")
    receipt = server.receipt(got["invar"]["receipts"][0])
    given = json.loads(receipt)["input"]
    assert given["min_new_tokens"] == given["max_new_tokens"] == 16 - len(given["decoder_tokens"])
    assert server.stop() == 0


def test_figures_of_recordings(server):
    """Each window is an answer, as vLLM counts."""
    times = ["time_to_first_token_seconds", "e2e_request_latency_seconds"]
    times += [f"request_{of}_time_seconds" for of in ("queue", "prefill", "decode", "inference")]
    tokens = ["request_generation_tokens_sum", "request_params_max_tokens_sum"]
    names = [f"{name}_count" for name in times] + tokens
    before = [server.metric(name) for name in names]
    got = ask(server, SAY, wav(sound(8, 40000).tobytes()), max_completion_tokens=9, language="de")
    count = len(got["invar"]["receipts"])
    outputs = [json.loads(server.receipt(r))["output"] for r in got["invar"]["receipts"]]
    more = len(times) * [count] + [sum(len(o["tokens"]) for o in outputs), 9 * count]
    assert [server.metric(name) for name in names] == [a + b for a, b in zip(before, more)]
    whole, queue = (server.metric(f"{name}_sum") for name in times[1:3])
    assert 0 < queue < whole


def test_streams(server, tmp_path):
    """Pieces of the text in the order of the windows, whichever of them is complete first."""
    file = wav(sound(8, 40000).tobytes())
    expected = ask(server, SAY, file, max_completion_tokens=9)
    body, headers = form([("stream", "true"), ("max_completion_tokens", 9)], file)
    response = server.open(SAY, body, headers)
    assert response.headers["Content-Type"].startswith("text/event-stream")
    lines = [x for x in response.read().decode().split("\n\n") if x and not x.startswith(":")]
    *deltas, done = [json.loads(x.removeprefix("data: ")) for x in lines]
    assert {d["type"] for d in deltas} == {"transcript.text.delta"} and len(deltas) > 3
    assert "".join(d["delta"] for d in deltas) == done["text"] == expected["text"]
    assert done["type"] == "transcript.text.done" and done["usage"] == expected["usage"]
    assert done["invar"]["receipts"] == expected["invar"]["receipts"]


def test_segments_are_those_of_run(timed, tmp_path):
    """By timestamps, one window after another, while others ask."""
    file = wav(sound(32, 40000).tobytes())
    options = {"max_completion_tokens": 20, "language": "de"}
    (tmp_path / "talk.wav").write_bytes(file)
    call = ("run", "--model-name", timed.folder, "--audio-path", tmp_path / "talk.wav", "--language",
            "de", "--max-new-tokens", 20, "--receipt-path", tmp_path / "r.json")  # fmt: skip
    windows = [json.loads(x) for x in invar(*call, "--timestamps", "--json").out.splitlines()]
    expected = [s for w in windows for s in w["segments"]]
    receipts = [w["receipt_hash"] for w in windows]
    starts = [
        json.loads((tmp_path / f"r.{i + 1}.json").read_text())["input"].get("audio_start", 0)
        for i in range(len(windows))
    ]
    assert len(windows) > 2 and len(expected) > 4
    seeks = [start // 160 for start, w in zip(starts, windows, strict=True) for _ in w["segments"]]

    def verbose(_):
        body, headers = form([*options.items(), ("response_format", "verbose_json"),
                              ("timestamp_granularities[]", "segment")], file)  # fmt: skip
        return timed.ask(SAY, body, 200, headers)

    with ThreadPoolExecutor(4) as clients:
        for told in clients.map(verbose, range(4)):
            assert (told["task"], told["language"], told["duration"]) == ("transcribe", "de", 2.5)
            assert told["invar"]["receipts"] == receipts
            found = [
                {k: s[k] for k in ("start", "end", "text", "tokens")} for s in told["segments"]
            ]
            assert found == expected
            assert [(s["id"], s["seek"]) for s in told["segments"]] == list(enumerate(seeks))
            assert told["text"] == " ".join(t for s in expected if (t := s["text"].strip(" ")))
    for form_of_it in ("srt", "vtt"):
        body, headers = form([*options.items(), ("response_format", form_of_it)], file)
        response = timed.open(SAY, body, headers)
        assert response.headers["x-invar-receipt"].split(", ") == receipts
        assert response.read() == invar(*call, "--output-format", form_of_it).out


def test_windows_are_segments_of_models_without_timestamps(tmp_path):
    folder = write_timed(tmp_path / "plain")
    settings = json.loads((folder / "generation_config.json").read_text())
    del settings["no_timestamps_token_id"]
    (folder / "generation_config.json").write_text(json.dumps(settings))
    server = Server(folder, tmp_path / "tasks", tmp_path / "receipts")
    server.folder = folder
    file = wav(sound(8, 40000).tobytes())
    receipts = run(server, tmp_path, file, "--max-new-tokens", 9)
    told = ask(server, SAY, file, response_format="verbose_json", max_completion_tokens=9)
    times = [(s["id"], s["seek"], s["start"], s["end"]) for s in told["segments"]]
    assert times == [(0, 0, 0, 1), (1, 100, 1, 2), (2, 200, 2, 2.5)]
    assert [(s["text"], s["tokens"]) for s in told["segments"]] == [
        (r["output"]["text"], r["output"]["tokens"]) for r in receipts
    ]
    said = ask(server, SAY, file, 400, response_format="srt")
    assert "timestamps" in said["error"]["message"]
    assert server.stop() == 0


def test_company_changes_nothing(server, tmp_path):
    """Recordings, chats and clients that leave, at once."""
    files = [wav(sound(seed, 9000 + 7000 * seed).tobytes()) for seed in range(5)]
    alone = [ask(server, SAY, f, max_completion_tokens=9)["invar"]["receipts"] for f in files]
    text = {"model": MODEL.name, "prompt": "ROMEO:", "max_tokens": 9, "temperature": 0}
    answer = server.complete(text)["invar"]["receipts"]

    def client(i):
        file = files[i % 5]
        if i % 4 == 3:
            body, headers = form([], file)
            connection = server.connect()
            connection.request("POST", SAY, body, headers)
            connection.close()
        elif i % 4 == 2:
            assert server.complete(text)["invar"]["receipts"] == answer
        else:
            heard = ask(server, SAY, file, max_completion_tokens=9)
            assert heard["invar"]["receipts"] == alone[i % 5]

    with ThreadPoolExecutor(20) as clients:
        assert len(list(clients.map(client, range(40)))) == 40
    assert server.ask("/ready") == {"status": "ready"}


def test_models_are_told_apart(server):
    kinds = {m["id"]: m["kind"] for m in server.ask("/v1/models")["data"]}
    assert kinds == {"model": "speech", MODEL.name: "language"}
    # Without a name a request has the first model that can answer it.
    assert server.complete({"prompt": "a", "max_tokens": 1})["model"] == MODEL.name
    file = wav(sound(5, 900).tobytes())
    said = ask(server, SAY, file, 400, model=MODEL.name)
    assert "hears no recording" in said["error"]["message"]
    said = server.ask("/v1/completions", {"model": "model", "prompt": "a"}, 400)
    assert SAY in said["error"]["message"]
    name = ask(server, SAY, file)["invar"]["receipts"][0]
    kept = server.ask(f"/v1/receipts/{name}")
    said = server.ask("/v1/receipts/verify", kept, 400)
    assert "--audio-path" in said["error"]["message"]


def test_refusals(server):
    good = wav(sound(5, 900).tobytes())
    silence = flac([(0, [("constant", np.zeros(65535, np.int64), 0)])] * 513)
    assert len(silence) < 10000
    for file, members, names in (
        (None, {}, "file: a text is needed"),
        (b"ID3\4\0\0", {}, "MP3"),
        (b"", {}, "file"),
        (wav(b""), {}, "no samples"),
        (wav(sound(5, 900).tobytes(), rate=44101), {}, "44101"),
        (silence, {}, "33554432 samples"),
        (good, {"model": "none"}, "no model none here"),
        (good, {"language": "xx"}, "language: the model knows de, en, fr, not"),
        (good, {"temperature": 2}, "temperature"),
        (good, {"temperature": "warm"}, "temperature: a number from 0"),
        (good, {"response_format": "tsv"}, "response_format"),
        (good, {"timestamp_granularities[]": "word"}, "only segment"),
        (good, {"stream": "true", "response_format": "srt"}, "stream: of response_format json"),
        (good, {"prompt": "Invar"}, "prompt"),
        (good, {"chunking_strategy": "auto"}, "chunking_strategy"),
        (good, {"max_completion_tokens": 64}, "max_completion_tokens"),
        (good, {"beam_size": 5}, "beam_size"),
    ):
        body, headers = form(members.items(), file)
        status = 404 if "model" in members else 400
        error = server.ask(SAY, body, status, headers)["error"]
        assert names in error["message"], (members, error)
    body, headers = form([("language", "de"), ("language", "en")], good)
    assert "twice" in server.ask(SAY, body, 400, headers)["error"]["message"]
    body, headers = form([("language", "de")], good)
    assert "language" in server.ask(TRANSLATE, body, 400, headers)["error"]["message"]
    assert "form" in server.ask(SAY, body[:-9], 400, headers)["error"]["message"]
    assert "form" in server.ask(SAY, b"x" + body, 400, headers)["error"]["message"]
    bare = body.replace(b'name="language"', b'name="language"; filename="a"')
    assert "not a file" in server.ask(SAY, bare, 400, headers)["error"]["message"]
    server.ask(SAY, {"file": "x"}, 415)
    server.ask("/v1/completions", body, 415, headers)
    assert re.search(
        r"^invar_num_requests_running 0", server.open("/metrics").read().decode(), re.M
    )
