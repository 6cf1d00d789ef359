"""invar bench runs, says what it promises to say, and refuses bad input. No figure is checked:
machines differ."""

import http.server
import importlib.util
import json
import re
import sys
import threading

import pytest
from conftest import few_rooms, invar, refused

TINY = [
    "--op",
    "add",
    "--shape",
    "f32[3,5]:normal f32[5]:normal -> f32[3,5]",
    "--threads",
    1,
    "--seconds",
    0.001,
]
FIELDS = {
    "suite",
    "op",
    "shape",
    "call",
    "isa",
    "threads",
    "seconds",
    "best_seconds",
    "flops",
    "bytes",
    "ns_per_element",
    "limit",
    "fraction_of_limit",
}


def test_json_has_the_fields(tmp_path):
    published = tmp_path / "b/p.json"
    done = invar(
        "bench", *TINY, "--json", "--plot", tmp_path / "p.svg", "--publish", published
    ).json()
    also = json.loads(published.read_text())  # for tools/docs/bench_page.py
    assert {k: also.pop(k) for k in done} == done
    assert set(also) == {
        *("schema", "day", "version", "most_memory_bytes", "seconds", "seconds_of_others"),
        "processors",
    }
    assert also["schema"] == "invar-bench 1" and also["most_memory_bytes"] > 1 << 20
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", also["day"])
    assert also["seconds"] > 0 and also["seconds_of_others"] >= 0
    assert also["processors"] >= 1
    assert set(done) == {"cpu", "device", "peer", "limits", "rows"} and done["device"] == "cpu"
    (limit,), (row,) = done["limits"], done["rows"]
    assert set(limit) == {
        "isa",
        "threads",
        "flops_per_second",
        "read_bytes_per_second",
        "copy_bytes_per_second",
    }
    assert all(limit[k] > 0 for k in limit if k.endswith("_per_second"))
    assert set(row) == FIELDS and row["op"] == "add" and row["threads"] == 1
    assert (
        row["seconds"] >= row["best_seconds"] > 0
        and row["bytes"] == 4 * (15 + 5 + 15)
        and row["fraction_of_limit"] > 0
    )
    assert (tmp_path / "p.svg").read_text().startswith("<svg")


def test_flops_bytes_and_past_are_not_attributes():
    call = "f32[2,8]:normal @f32[8,3]:normal -> f32[2,3] | flops=2*2*8*3 bytes=100"
    (row,) = invar(
        "bench", "--op", "matmul", "--shape", call, "--threads", 1, "--seconds", 0.001, "--json"
    ).json()["rows"]
    assert row["flops"] == 96 and row["bytes"] == 100
    call = (
        "f32[1,5,8]:normal f32[1,5,8]:normal f32[1,5,8]:normal -> f32[1,5,8] | q_heads=2 "
        "kv_heads=2 scale=f32:3f000000 past=4"
    )
    assert invar(
        "bench", "--op", "attention", "--shape", call, "--threads", 1, "--seconds", 0.001, "--json"
    ).json()["rows"]
    # Weights have no positions: all of them are read beside the last position and the state.
    call = "f32[1,6,8]:normal @f32[8,4]:normal -> f32[1,6,8] | past=5"
    (row,) = invar(
        "bench",
        "--op",
        "causal_conv",
        "--shape",
        call,
        "--threads",
        1,
        "--seconds",
        0.001,
        "--json",
    ).json()["rows"]
    assert row["bytes"] == 4 * (4 * 8 + 8 + 8 * 4 + 8)


def test_every_instruction_set_and_thread_count_is_a_row():
    rows = invar(
        "bench",
        *TINY[:4],
        "--threads",
        "1,2",
        "--isa",
        "scalar,reference",
        "--seconds",
        0.001,
        "--json",
    ).json()["rows"]
    assert [(r["isa"], r["threads"]) for r in rows] == [
        ("scalar", 1),
        ("reference", 1),
        ("scalar", 2),
        ("reference", 2),
    ]


def test_table_for_people():
    done = invar("bench", *TINY)
    assert b"limits" in done.out and b"add" in done.out and b"3x5" in done.out


@pytest.mark.parametrize(
    "args, names",
    [
        (["--op", "nothing"], ["nothing"]),
        (["nosuite"], ["nosuite", "norm"]),
        (["--shape", "f32[1]:normal -> f32[1]"], ["--op"]),
        (["--op", "nothing", "--shape", "f32[1]:normal -> f32[1]"], ["nothing"]),
        (["--op", "add", "--shape", "f32[2"], ["f32[2"]),
        (["--op", "add", "--shape", "f32[2]:normal f32[3]:normal -> f32[3]"], ["add requires"]),
        (["--op", "add", "--shape", "f32[2] f32[2] -> f32[2]"], ["values"]),
        (["--op", "add", "--shape", "f32[2]:nofill f32[2]:normal -> f32[2]"], ["nofill"]),
        (
            [
                "--op",
                "add",
                "--shape",
                "f32[4611686018427387904,4]:normal f32[4]:normal -> f32[4611686018427387904,4]",
            ],
            ["too large"],
        ),
        (
            ["--op", "add", "--shape", "f32[2]:normal f32[2]:normal -> f32[2] | past=1"],
            ["no memory"],
        ),
        (
            [
                "--op",
                "add",
                "--shape",
                "f32[2]:normal f32[2]:normal -> f32[2] | flops=f32:3f800000",
            ],
            ["3f800000"],
        ),
        ([*TINY, "--isa", "mmx"], ["mmx"]),
        ([*TINY[:4], "--threads", 0], ["--threads"]),
        ([*TINY, "--device", "tpu"], ["tpu", "cuda"]),
        ([*TINY, "--peer", "nolib"], ["--peer"]),
        (
            [*TINY, "--peer", "torch", "--python", "no-such-program"],
            ["no-such-program", "--python"],
        ),
        ([*TINY, "--peer", "torch", "--python", "false"], ["--python"]),
    ],
)
def test_refusals(args, names):
    refused("bench", *args, names=names)


def test_a_gpu_is_measured_or_refused():
    on_gpu = [*TINY[:4], "--seconds", 0.001, "--device", "cuda"]
    if not invar("doctor", "--json", "--rooms", few_rooms()).json()["gpu"]:
        refused("bench", *on_gpu, names=["CUDA"])
        return
    done = invar("bench", *on_gpu, "--json").json()
    (limit,), (row,) = done["limits"], done["rows"]
    assert (
        done["device"].startswith("cuda ")
        and limit["flops_per_second"] > 1e12
        and limit["isa"] == row["isa"] == "cuda"
    )
    assert (
        row["threads"] == 0
        and row["seconds"] >= row["best_seconds"] > 0
        and row["bytes"] == 4 * (15 + 5 + 15)
    )
    refused("bench", *TINY, "--device", "cuda", names=["--threads"])


def test_peer():
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: no peer to compare with")
    done = invar("bench", *TINY, "--peer", "torch", "--python", sys.executable, "--json").json()
    (row,) = done["rows"]
    assert (
        "PyTorch" in done["peer"]
        and row["peer"] == "add"
        and row["ratio"] > 0
        and row["best_ratio"] > 0
    )
    assert json.dumps(row)


# Answers as bench/peer.py does, for so many calls.
PEER = """#!{python}
import json, sys
print(json.dumps({{"version": "Some 1"}}), flush=True)
left = {calls}
for line in sys.stdin:
    asked = json.loads(line)["do"]
    left -= asked == "prepare"
    if left < 0:
        break
    print(json.dumps({{"name": "f"}} if asked == "prepare" else {{"seconds": 1e-6}}), flush=True)
"""


def peer_of(folder, calls):
    path = folder / f"peer-{calls}"
    path.write_text(PEER.format(python=sys.executable, calls=calls))
    path.chmod(0o755)
    return ["--peer", "torch", "--python", path]


def test_an_interrupted_run_goes_on(tmp_path):
    """What was measured is in the file whatever happens next, and is not measured again."""
    file, both = tmp_path / "p.json", [*TINY[:4], "--threads", "1,2", "--seconds", 0.001]
    refused("bench", *both, *peer_of(tmp_path, 1), "--publish", file, names=["ended"])
    first = json.loads(file.read_text())
    assert [r["threads"] for r in first["rows"]] == [1] and first["peer"] == "Some 1"
    assert [x["threads"] for x in first["limits"]] == [1]
    run = ["bench", *both, "--publish", file, "--json"]
    done = invar(*run, *peer_of(tmp_path, 1)).json()
    assert [r["threads"] for r in done["rows"]] == [1, 2]
    whole = json.loads(file.read_text())
    assert whole["limits"][0] == first["limits"][0] and len(whole["limits"]) == 2
    before, after = first["rows"][0], whole["rows"][0]
    assert {k: after[k] for k in after if k[0] in "stp"} == {
        k: before[k] for k in before if k[0] in "stp"
    }
    assert whole["seconds"] > 0 and first["seconds"] == 0
    again = invar(*run, *peer_of(tmp_path, 0)).json()  # nothing is left to measure
    assert [r["seconds"] for r in again["rows"]] == [r["seconds"] for r in done["rows"]]
    # Rows of another peer, processor or version, and what is no such file, are not mixed with them.
    refused(*run, names=["no peer", "Some 1", "another file"])
    for change in ({"cpu": "Other"}, {"version": "9"}, {"schema": "x"}, {"rows": [{"suite": "x"}]}):
        file.write_text(json.dumps(whole | change))
        refused(*run, *peer_of(tmp_path, 0), names=["p.json"])
        assert json.loads(file.read_text()) == whole | change
    file.write_text("{")
    refused(*run, names=["p.json", "JSON"])


def test_numerics_is_of_the_suite_model():
    """Not a table of fp32 under the name of the other profile."""
    refused("bench", "gemm", "--numerics", "exact16", names=["--numerics", "bench model"])


class AnyServer(http.server.BaseHTTPRequestHandler):
    """A server of OpenAI's protocol that says each answer in five pieces, and refuses each fourth
    request."""

    protocol_version = "HTTP/1.1"
    asked = []

    def log_message(self, *_):
        pass

    def say(self, status, kind, text):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        self.say(200, "application/json", json.dumps({"data": [{"id": "any"}]}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body, self.headers["Authorization"]))
        if len(self.asked) % 4 == 0:
            error = json.dumps({"error": {"message": "too many", "type": "x"}})
            return self.say(429, "application/json", error)
        events = [{"choices": [{"index": 0, "text": "a"}]}] * 5
        events.append({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}})
        lines = [f"data: {json.dumps(e)}\n\n" for e in events]
        self.say(200, "text/event-stream", "".join(lines) + "data: [DONE]\n\n")


@pytest.fixture
def any_server():
    AnyServer.asked.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), AnyServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


def test_a_load_on_any_server(any_server, tmp_path):
    key, plot = tmp_path / "key", tmp_path / "p.svg"
    key.write_text("secret\n")
    load = ["--requests", 8, "--prompt-words", 3, "--max-tokens", 5, "--api-key-file", key]
    load += ["--seed", 2**64 - 1]
    run = ["bench", "serve", "--url", any_server + "/", *load]
    done = invar(*run, "--clients", "1,4", "--rate", 1000, "--plot", plot, "--json").json()
    assert done["model"] == "any" and [x["clients"] for x in done["loads"]] == [1, 4, None]
    for one in done["loads"]:
        assert (one["requests"], one["answers"], one["tokens"]) == (8, 6, 30)
        assert one["prompt_tokens"] == 42 and one["errors"] == {"status 429: too many": 2}
        assert one["first_token"]["count"] == 6 and one["between_tokens"]["count"] == 24
        assert 0 < one["first_token"]["median"] <= one["whole_answer"]["most"] <= one["seconds"]
    assert plot.read_text().startswith("<svg") and plot.read_text().count("<rect") == 1 + 3 * 5
    path, body, sent = AnyServer.asked[0]
    assert (path, sent) == ("/v1/completions", "Bearer secret")
    assert set(body) == {
        *("model", "prompt", "max_tokens", "temperature", "stream", "stream_options"),
    }
    first = [b for _, b, _ in AnyServer.asked[:8]]
    invar(*run, "--clients", 1, "--chat")
    chats = [(p, b["messages"][0]["content"]) for p, b, _ in AnyServer.asked[-8:]]
    assert chats == [("/v1/chat/completions", b["prompt"]) for b in first]
    table = invar(*run, "--clients", 2).out.decode()
    assert "2 clients" in table and "too many" in table


def test_a_load_that_nobody_answers(any_server, tmp_path):
    file = tmp_path / "r.jsonl"
    file.write_text("{}\n")
    refused("bench", "serve", "--url", any_server, "--requests-file", file, names=["r.jsonl:1"])
    refused("bench", "serve", "--url", any_server, "--rate", 0, names=["--rate"])
    refused(
        "bench", "serve", "--url", any_server + "/none/v1", "--requests", 0, names=["--requests"]
    )
    refused("bench", "serve", "--url", "http://127.0.0.1:1/v1", names=["127.0.0.1:1"])
    refused("bench", "--json", "serve", names=["serve"])
