"""invar batch: every row has the answer and the receipt of a run, and the merged file has the same
bytes, whatever the number of workers, the size of their batches, and what happens to them."""

import hashlib
import json
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import BIN, MODEL, ROOT, execute, invar
from server import Server

PROMPTS = ["ROMEO:", "JULIET:", "KING:", "First Citizen:", "Nurse:", "O,", "the", "\n"]


def row(name, prompt, tokens=16, url="/v1/completions", **more):
    body = {"model": "shakespeare-4m", "prompt": prompt, "max_tokens": tokens, **more}
    return {"custom_id": name, "method": "POST", "url": url, "body": body}


ROWS = [
    row(f"r{i}", PROMPTS[i % 8] + " " * (i // 8), 8 + 3 * (i % 7), temperature=i % 3 * 0.5)
    for i in range(24)
]
HELLO = [{"role": "user", "content": "Who art thou?"}]
ROWS += [
    {
        **row("chat", "", url="/v1/chat/completions"),
        "body": {"model": "shakespeare-4m", "messages": HELLO, "max_tokens": 9, "logprobs": True},
    },
    row("several", ["ROMEO:", "KING:"], 6, n=3, temperature=1, seed=5),
]
LONG = [row(f"l{i}", PROMPTS[i], 480, temperature=1, seed=i) for i in range(8)]


def write(path, rows):
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """One with a chat template."""
    folder = tmp_path_factory.mktemp("model") / "shakespeare-4m"
    shutil.copytree(MODEL, folder)
    shutil.copy(ROOT / "tests/chat/templates/chatml.jinja", folder / "chat_template.jinja")
    return folder


@pytest.fixture(scope="module")
def options(model, tasks):
    return ["--model-name", model, "--tasks-root", tasks, "--context", 512]


@pytest.fixture
def batch(options):
    """Runs it; an error is expected where `code` says so."""

    def f(file, *more, code=0):
        done = execute(["batch", file, *options, *more])
        assert done.code == code, done.text
        assert len(done.errors) == (code != 0), done.text
        return done

    return f


def merged(file, results=None):
    path = (results or file.parent / f"{file.name}.results") / "output.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def digest(results):
    return hashlib.sha256((results / "output.jsonl").read_bytes()).hexdigest()


def result_path(results, row):
    name = row["response"]["request_id"]
    return results / "results" / name[:2] / f"{name}.json"


def reseal(path, change):
    """A result as another worker might have written it."""
    result = json.loads(path.read_text())
    worker = result.pop("worker")
    del result["sha256"]
    change(result, worker)
    core = json.dumps(result, separators=(",", ":"), ensure_ascii=False)
    result |= {"worker": worker, "sha256": hashlib.sha256(core.encode()).hexdigest()}
    path.write_text(json.dumps(result, separators=(",", ":"), ensure_ascii=False))


@pytest.fixture(scope="module")
def whole(tasks, options, tmp_path_factory):
    """The file of ROWS, its results by one worker, and their digest."""
    folder = tmp_path_factory.mktemp("batch")
    file = write(folder / "in.jsonl", ROWS)
    said = json.loads(invar("batch", file, *options, "--batch-size", 8, "--json").out)
    assert said["answers"] == said["computed"] == said["rows"] == len(ROWS)
    results = folder / "in.jsonl.results"
    assert said["sha256"] == digest(results)
    return file, results, digest(results)


def kill_when(process, sign):
    """Kills the process as soon as there is the sign; whether it was killed."""
    while process.poll() is None and not sign():
        time.sleep(0.001)
    process.kill()
    return process.wait(60) == -signal.SIGKILL


def start(options, *args):
    return subprocess.Popen([BIN, "batch", *map(str, [*args, *options])], stderr=subprocess.DEVNULL)


def test_rows_have_the_receipts_of_runs(whole, model, tasks, tmp_path):
    file, results, _ = whole
    answers = merged(file)
    assert len(answers[-1]["response"]["body"]["invar"]["receipts"]) == 6
    assert answers[-2]["response"]["body"]["object"] == "chat.completion"
    assert [a["custom_id"] for a in answers] == [r["custom_id"] for r in ROWS]
    for i in (0, 1):
        body = ROWS[i]["body"]
        response = answers[i]["response"]
        assert response["status_code"] == 200 and answers[i]["error"] is None
        sampling = response["body"]["invar"]["sampling"]
        how = ["--no-do-sample"] if i == 0 else ["--temperature", 0.5, "--seed", sampling["seed"]]
        receipt = tmp_path / "r.json"
        invar(
            *("run", "--model-name", model, "--tasks-root", tasks, "--receipt-path", receipt),
            *("--prompt-text", body["prompt"], "--max-new-tokens", body["max_tokens"], *how),
        )
        (name,) = response["body"]["invar"]["receipts"]
        assert (results / f"receipts/{name}.json").read_bytes() == receipt.read_bytes()


def test_workers_and_sizes_change_no_byte(whole, options, batch, tmp_path):
    file, _, expected = whole
    for n, size, more in ((2, 1, ["--isa", "scalar"]), (5, 7, [])):
        results = tmp_path / f"r{n}"
        for i in reversed(range(n)):
            done = batch(
                file, "--results", results, "--shard", f"{i}/{n}", "--batch-size", size, *more
            )
            assert (results / "output.jsonl").exists() == (i == 0), done.text
        assert digest(results) == expected
    # Several at once, two of them of the same share.
    results = tmp_path / "at-once"
    workers = [start(options, file, "--results", results, "--shard", f"{i}/2") for i in (0, 1, 1)]
    assert [w.wait(120) for w in workers] == [0, 0, 0]
    batch(file, "--results", results, "--merge")
    assert digest(results) == expected


def test_a_batch_reads_no_clock(model, tasks, tmp_path):
    """A template that asks for the date: rows say it, or an option does for those that do not."""
    folder = tmp_path / "dated"
    shutil.copytree(model, folder)
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").write_text("{{ strftime_now('%H:%M:%S') }}\n" + template)
    body = {"messages": HELLO, "max_tokens": 3, "temperature": 0}
    mine = {**body, "date": "2026-03-07T01:02:03"}
    rows = [
        row(name, "", url="/v1/chat/completions") | {"body": b}
        for name, b in (("a", body), ("b", mine))
    ]
    file = write(tmp_path / "in.jsonl", rows)
    options = [file, "--model-name", folder, "--tasks-root", tasks, "--context", 128]
    invar("batch", *options)
    refused, answered = merged(file)
    assert "--date" in refused["error"]["message"]
    assert answered["response"]["body"]["invar"]["date"] == mine["date"]
    assert "date" in invar("batch", *options, "--date", "today", code=2).text
    dated, digests = [*options, "--date", "2026-11-30T00:00:00"], []
    invar("batch", *dated, code=2)  # the folder is of a batch without it
    for n in (1, 2):
        results = tmp_path / f"r{n}"
        for i in range(n):
            invar("batch", *dated, "--results", results, "--shard", f"{i}/{n}", "--recheck", 100)
            time.sleep(1.1)
        invar("batch", file, "--results", results, "--merge")
        digests.append(digest(results))
    assert digests[0] == digests[1]
    answers = [line["response"]["body"]["invar"]["date"] for line in merged(file, tmp_path / "r2")]
    assert answers == ["2026-11-30T00:00:00", mine["date"]]


def test_what_is_there_is_not_computed_again(whole, batch, tmp_path):
    file, results, expected = whole
    answers = merged(file)
    before = {p: p.stat().st_mtime_ns for p in results.glob("results/*/*")}
    result_path(results, answers[3]).write_text("{}")
    damaged = result_path(results, answers[4])
    damaged.write_bytes(damaged.read_bytes().replace(b'"status_code":200', b'"status_code":201'))
    (receipt,) = answers[5]["response"]["body"]["invar"]["receipts"]
    (results / f"receipts/{receipt}.json").write_text("{}")
    said = batch(file, "--json").json()
    assert (said["computed"], said["found"]) == (3, len(ROWS) - 3)
    assert digest(results) == expected == said["sha256"]
    changed = [p for p, t in before.items() if p.stat().st_mtime_ns != t]
    assert set(changed) <= {result_path(results, answers[i]) for i in (3, 4, 5)}
    assert json.loads((results / f"receipts/{receipt}.json").read_text())["receipt_hash"] == receipt


def test_bad_rows_are_rows_with_an_error(batch, tmp_path):
    file = write(
        tmp_path / "in.jsonl",
        [
            row("a", "ROMEO:", 4),
            "not JSON",
            row("a", "JULIET:", 4),
            {"method": "POST", "url": "/v1/completions", "body": {}},
            row("url", "x", url="/v1/other"),
            row("get", "x") | {"method": "GET"},
            row("body", "x") | {"body": []},
            row("stream", "x", stream=True),
            row("unknown", "x", foo=1),
            row("long", "x", 4096),
            row("model", "x") | {"body": {"model": "other", "prompt": "x"}},
            '{"custom_id": "twice", "custom_id": "twice"}',
            row("z", "ROMEO:", 4),
        ],
    )
    said = batch(file, "--json").json()
    assert (said["answers"], said["refused"], said["missing"]) == (2, 11, 0)
    rows = merged(file)
    errors = [r["error"] and r["error"]["message"] for r in rows]
    words = ["not JSON", "line 1", "custom_id", "url", "POST", "object", "stream", "foo", "4096"]
    for error, word in zip(errors[1:], [*words, "no model other", "twice"]):
        assert word in error, (word, error)
    assert errors[0] is None and errors[-1] is None
    assert rows[0]["response"] == rows[-1]["response"]  # the same work, once
    assert [r["response"]["status_code"] for r in rows[1:-1]] == [400] * 9 + [404, 400]
    first = digest(tmp_path / "in.jsonl.results")
    assert batch(file, "--json").json()["computed"] == 0
    assert "9 rows have an error" in batch(file, "--max-failures", 8, code=2).errors[0]
    assert batch(file, "--json", "--retry-failed").json()["computed"] == 3
    assert digest(tmp_path / "in.jsonl.results") == first


def test_a_worker_that_is_killed_loses_nothing(options, batch, tmp_path):
    file = write(tmp_path / "in.jsonl", LONG)
    batch(file, "--results", tmp_path / "one", "--batch-size", 8)
    results = tmp_path / "killed"
    process = start(options, file, "--results", results, "--batch-size", 2)
    assert kill_when(process, lambda: len(list(results.glob("results/*/*.json"))) >= 2)
    assert list(results.glob("marks/*"))
    said = batch(file, "--results", results, "--json").json()
    assert said["found"] >= 2 and said["computed"] + said["found"] == len(LONG)
    assert digest(results) == digest(tmp_path / "one")
    assert not list(results.glob("marks/*"))
    # It was killed between an answer and the end of its mark.
    kept = merged(file, results)[0]["response"]["request_id"]
    (results / f"marks/{kept}.json").write_text('{"alone":0,"host":"elsewhere","pid":1}')
    assert batch(file, "--results", results, "--json").json()["found"] == len(LONG)
    assert not list(results.glob("marks/*"))


def test_a_row_that_ends_its_worker_twice_is_given_up(options, batch, tmp_path):
    file = write(tmp_path / "in.jsonl", LONG[:5])
    batch(file, "--results", tmp_path / "one", "--batch-size", 8)
    clean = merged(file, tmp_path / "one")
    poison = clean[2]["response"]["request_id"]
    results = tmp_path / "poisoned"
    mark = results / f"marks/{poison}.json"
    for alone in range(3):

        def begun():
            return mark.exists() and f'"alone":{alone},' in mark.read_text()

        assert kill_when(start(options, file, "--results", results, "--batch-size", 2), begun)
    said = batch(file, "--results", results, "--json").json()
    assert (said["answers"], said["crashed"]) == (4, 1)
    rows = merged(file, results)
    assert rows[2]["error"]["code"] == "crashed" and rows[2]["response"] is None
    assert rows[:2] + rows[3:] == clean[:2] + clean[3:]
    assert batch(file, "--results", results, "--json").json()["crashed"] == 1
    assert batch(file, "--results", results, "--json", "--retry-failed").json()["crashed"] == 0
    assert digest(results) == digest(tmp_path / "one")


def test_a_worker_that_lies_is_found(whole, batch, tmp_path):
    file, results, expected = whole

    def lie(result, worker):
        worker["host"] = "liar"
        choice = result["body"]["choices"][0]
        choice["text"] = choice["text"][:-1] + ("x" if choice["text"][-1] != "x" else "y")

    path = result_path(results, merged(file)[7])
    honest = path.read_bytes()
    reseal(path, lie)
    try:
        done = batch(file, "--recheck", 100, code=1)
        assert "liar" in done.errors[0]
        kept = [json.loads(p.read_text()) for p in results.glob("unequal/*.json")]
        assert len(kept) == 2 and {"liar"} < {k["worker"]["host"] for k in kept}
        assert kept[0]["body"]["choices"] != kept[1]["body"]["choices"]
    finally:
        path.write_bytes(honest)
    said = batch(file, "--recheck", 100, "--json").json()
    assert said["rechecked"] == len(ROWS) and said["sha256"] == expected
    some = [batch(file, "--recheck", 40, "--shard", f"{i}/2", "--json").json() for i in (0, 1)]
    assert 0 < sum(s["rechecked"] for s in some) < len(ROWS)


def test_a_signal_lets_rows_end(options, batch, tmp_path):
    file = write(tmp_path / "in.jsonl", LONG)
    results = tmp_path / "r"
    process = start(options, file, "--results", results, "--batch-size", 2)
    while not list(results.glob("results/*/*.json")):
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 2
    there = len(list(results.glob("results/*/*.json")))
    assert there > 1 and not list(results.glob("marks/*"))
    said = batch(file, "--results", results, "--json").json()
    assert (said["found"], said["computed"]) == (there, len(LONG) - there)
    # Without time to end, nothing is left half done.
    process = start(options, file, "--results", tmp_path / "s", "--drain-timeout", 0)
    while not list(tmp_path.glob("s/marks/*")):
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 2
    assert not list(tmp_path.glob("s/marks/*"))


def test_a_full_disk_is_one_line(whole, options, tmp_path):
    file, _, expected = whole
    results = tmp_path / "r"
    done = subprocess.run(
        [BIN, "batch", str(file), "--results", str(results), *map(str, options)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if line.startswith("invar: ")]
    assert len(errors) == 1 and "receipt" in errors[0], done.stderr
    said = execute(["batch", file, "--results", results, *options, "--json"]).json()
    assert said["sha256"] == expected


def test_lines_of_standard_input(whole, options, tmp_path):
    file, results, expected = whole
    process = subprocess.Popen(
        [BIN, "batch", "--stdin", "--results", str(results), *map(str, options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def ask(*rows):
        process.stdin.write("".join(json.dumps(r) + "\n" for r in rows))
        process.stdin.flush()
        return {r["custom_id"]: r for r in (json.loads(process.stdout.readline()) for _ in rows)}

    there = merged(file)
    again = ask(ROWS[0], ROWS[1] | {"invar": {"recheck": True}})
    assert again["r0"]["found"] and again["r1"]["rechecked"] and not again["r1"]["found"]
    for i in (0, 1):
        assert {k: again[f"r{i}"][k] for k in there[i]} == there[i]
    new = row("new", "HAMLET:", 40)
    both = ask(new, new | {"custom_id": "same"})
    assert both["new"]["response"] == both["same"]["response"]
    (receipt,) = both["new"]["receipts"]
    assert (results / f"receipts/{receipt}.json").exists()
    assert ask(row("bad", "x", foo=1))["bad"]["error"]["code"] == "refused"
    process.stdin.close()
    assert process.wait(60) == 0 and process.stdout.read() == ""


def test_merging_needs_no_model(whole, options, batch, tmp_path):
    file, results, expected = whole
    output = tmp_path / "answers.jsonl"
    invar("batch", file, "--results", results, "--merge", "--output", output)
    assert hashlib.sha256(output.read_bytes()).hexdigest() == expected
    other = write(tmp_path / "other.jsonl", ROWS[:3])
    assert "another input" in batch(other, "--results", results, code=2).errors[0]
    short = [256 if o == 512 else o for o in options]
    assert "context is 512" in execute(["batch", file, *short]).errors[0]
    part = tmp_path / "part"
    batch(file, "--results", part, "--shard", "1/2")
    assert "have no result yet" in batch(file, "--results", part, "--merge", code=2).errors[0]


@pytest.mark.parametrize(
    "more", [["--shard", "2/2"], ["--shard", "x"], ["--merge", "--recheck", 5], ["--stdin"]]
)
def test_bad_usage(batch, tmp_path, more):
    file = write(tmp_path / "in.jsonl", ROWS[:1])
    batch(file, *more, code=2)
    batch(tmp_path / "none.jsonl", code=2)


def test_the_same_lines_are_a_load(whole, model, tasks, tmp_path):
    file, _, _ = whole
    server = Server(model, tasks, tmp_path / "receipts", "--context", 512)
    done = invar(
        *("bench", "serve", "--url", f"http://127.0.0.1:{server.port}/v1", "--json"),
        *("--requests-file", file, "--clients", 8),
    )
    (load,) = done.json()["loads"]
    assert load["answers"] == len(ROWS) and not load["errors"]
    used = [a["response"]["body"]["usage"] for a in merged(file)]
    assert load["prompt_tokens"] == sum(u["prompt_tokens"] for u in used)
    assert server.stop() == 0


def test_texts_of_an_encoder(tasks, tmp_path):
    """Rows of embeddings have the receipts of `invar embed`, for any number of workers; what the
    model does not do is refused row by row."""
    sys.path.insert(0, str(ROOT / "tests/families"))
    from encoder_folder import write_encoder

    lines = (ROOT / "tests/families/encoder_vectors.jsonl").read_text().splitlines()
    (vectors,) = [v for v in map(json.loads, lines) if v["name"] == "bert"]
    write_encoder(tmp_path / "bert", vectors)
    options = ["--model-name", tmp_path / "bert", "--tasks-root", tasks]
    texts = ["Hello world", "A dog [SEP] a CAT", "Berlin is a large city!"]

    def ask(name, url="/v1/embeddings", **body):
        return {"custom_id": name, "method": "POST", "url": url, "body": body}

    rows = [ask(f"r{i}", input=text) for i, text in enumerate(texts)]
    rows += [ask("all", input=texts * 20), ask("base64", input="a", encoding_format="base64")]
    rows += [
        ask("text", "/v1/completions", prompt="a"),
        ask("scores", "/v1/rerank", query="a", documents=["b"]),
    ]
    rows += [ask("other", "/v1/images", prompt="a")]
    file = write(tmp_path / "in.jsonl", rows)
    said = json.loads(invar("batch", file, *options, "--json").out)
    assert (said["answers"], said["refused"]) == (5, 3)
    answers = merged(file)
    paths = tmp_path / "e.json"
    done = invar("embed", *options, *texts, "--json", "--receipt-path", paths)
    alone = [json.loads(line) for line in done.out.decode().splitlines()]
    for row, one in zip(answers, alone):
        body = row["response"]["body"]
        assert body["data"][0]["embedding"] == one["embedding"]
        assert body["invar"]["receipts"] == [one["receipt_hash"]]
    assert answers[3]["response"]["body"]["invar"]["receipts"] == 20 * [
        r["receipt_hash"] for r in alone
    ]
    kept = {p.stem for p in (tmp_path / "in.jsonl.results/receipts").iterdir()}
    assert {r["receipt_hash"] for r in alone} < kept
    assert "writes no text" in answers[5]["error"]["message"]
    assert "reranker" in answers[6]["error"]["message"]
    assert "/v1/embeddings" in answers[7]["error"]["message"]
    for i in (0, 1):
        invar("batch", file, *options, "--results", tmp_path / "shared", "--shard", f"{i}/2")
    assert digest(tmp_path / "shared") == said["sha256"]
    again = json.loads(invar("batch", file, *options, "--json").out)
    assert again["computed"] == 0 and again["sha256"] == said["sha256"]
    # Other files of the folder may make other tokens of a text.
    (tmp_path / "bert/tokenizer_config.json").write_text('{"model_max_length": 30}')
    assert execute(["batch", file, *options]).code == 2
