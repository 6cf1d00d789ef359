"""What a server keeps in SQLite and PostgreSQL: nothing lost, nothing doubled, no prompt that
nobody asked for, and answers that are given again."""

import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import BUILD, MODEL, ROOT, invar
from postgresql import Postgresql, programs
from server import Server

PROMPT = "ROMEO: the word of nobody else"
GREEDY = {"prompt": PROMPT, "max_tokens": 12, "temperature": 0}
DRAWN = {**GREEDY, "temperature": 0.9, "seed": 7}


@pytest.fixture(scope="module")
def postgresql():
    if programs() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = Postgresql()
    yield server
    server.close()


class Sqlite:
    def __init__(self, folder):
        self.url = str(folder / "store.db")

    def query(self, text):
        with sqlite3.connect(self.url) as database:
            return ["|".join(map(str, row)) for row in database.execute(text)]

    def stop(self):
        os.rename(self.url, self.url + ".away")

    def start(self):
        os.rename(self.url + ".away", self.url)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """A store that is empty."""
    if request.param == "sqlite":
        return Sqlite(tmp_path)
    server = request.getfixturevalue("postgresql")
    server.query("DROP TABLE IF EXISTS receipts, requests, invar_store")
    return server


@pytest.fixture
def serve(tasks):
    """Starts servers, and ends those that are left."""
    made = []

    def f(*options, **more):
        made.append(Server(MODEL, tasks, None, "--batch-size", 4, *options, **more))
        return made[-1]

    yield f
    for server in made:
        server.stop(signal.SIGKILL)


@pytest.fixture
def run(tasks, tmp_path):
    def f(*options):
        path = tmp_path / "r.json"
        options = ["--receipt-path", path, "--max-new-tokens", 12, *options]
        invar("run", "--model-name", MODEL, "--tasks-root", tasks, *options)
        return path.read_bytes()

    return f


def name_of(answer):
    (name,) = answer["invar"]["receipts"]
    return name


def wait_for(condition, patience=30):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_contract_over_postgresql(postgresql):
    """That of every store; the others are tested where no server is needed."""
    done = subprocess.run(
        [BUILD / "bin/invar_store_test", "--gtest_filter=*postgresql"],
        env=os.environ | {"INVAR_TEST_POSTGRESQL": postgresql.url},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "SKIPPED" not in done.stdout, done.stdout


def test_receipts_after_a_restart(place, serve, run):
    server = serve("--store", place.url, "--store-prompts")
    name = name_of(server.complete(GREEDY))
    want = run("--prompt-text", PROMPT, "--no-do-sample")
    assert server.open(f"/v1/receipts/{name}").read() == want
    assert server.stop() == 0
    server = serve("--store", place.url, "--store-prompts")
    assert server.open(f"/v1/receipts/{name}").read() == want
    assert server.ask("/v1/receipts/verify", want)["verdict"] == "VERIFIED"
    assert place.query(
        "SELECT prompt, status, prompt_tokens > 0, completion_tokens FROM requests"
    ) in (
        [f'"{PROMPT}"|200|1|12'],
        [f'"{PROMPT}"|200|t|12'],
    )


def test_prompts_stay_with_their_clients(place, serve, run):
    server = serve("--store", place.url)
    want = run("--prompt-text", PROMPT, "--no-do-sample")
    name = name_of(server.complete(GREEDY))
    assert server.open(f"/v1/receipts/{name}").read() == want  # it still knows
    assert server.stop() == 0
    kept = "\n".join(place.query(f"SELECT text FROM receipts WHERE id = '{name}'"))
    assert json.loads(kept)["output"] == json.loads(want)["output"]
    assert "nobody else" not in kept and json.loads(kept)["input"]["tokens"] == []
    assert place.query("SELECT count(*) FROM requests WHERE prompt IS NOT NULL") == ["0"]
    if isinstance(place, Sqlite):
        for file in os.listdir(os.path.dirname(place.url)):
            if file.startswith("store.db"):
                path = os.path.join(os.path.dirname(place.url), file)
                assert b"nobody else" not in open(path, "rb").read()
                assert os.stat(path).st_mode & 0o077 == 0
    server = serve("--store", place.url)
    error = server.ask(f"/v1/receipts/{name}", None, 409)["error"]
    assert error["code"] == "prompt_not_stored"
    assert server.open(f"/v1/receipts/{name}", {"prompt": PROMPT}).read() == want
    server.ask(f"/v1/receipts/{name}", {"prompt": PROMPT + " "}, 422)
    server.ask(f"/v1/receipts/{name}", {"prompt": 3}, 400)
    server.ask("/v1/receipts/" + "0" * 64, {"prompt": PROMPT}, 404)


def test_messages_make_a_receipt_whole(tasks, tmp_path):
    """Of a chat and of token ids, and a setting that only a receipt of it binds."""
    folder = tmp_path / "shakespeare-4m"
    shutil.copytree(MODEL, folder)
    shutil.copy(ROOT / "tests/chat/templates/chatml.jinja", folder / "chat_template.jinja")
    said = {"messages": [{"role": "user", "content": "Who art thou?"}]}
    options = ["--store", tmp_path / "store.db", "--answer-repeats"]
    server = Server(folder, tasks, None, *options)
    ids = server.ask("/tokenize", {"prompt": PROMPT})["tokens"]
    asked = (
        ("/v1/chat/completions", {**said, "max_tokens": 8, "temperature": 0}, said),
        ("/v1/completions", {**GREEDY, "prompt": ids, "ignore_eos": True}, {"prompt": PROMPT}),
        ("/v1/completions", {**GREEDY, "stop": ["\n"]}, {"prompt": PROMPT}),
    )
    whole = {}
    for path, body, _ in asked:
        name = name_of(server.ask(path, body))
        whole[name] = server.open(f"/v1/receipts/{name}").read()
    assert server.stop() == 0 and len(whole) == 3
    server = Server(folder, tasks, None, *options)
    for (path, body, prompt), (name, text) in zip(asked, whole.items()):
        server.ask(f"/v1/receipts/{name}", None, 409)
        assert server.open(f"/v1/receipts/{name}", prompt).read() == text
        answer = server.ask(path, body)
        assert name_of(answer) == name
        assert answer["usage"]["completion_tokens_details"]["tokens_from_store"] > 0
    assert server.stop() == 0


@pytest.mark.parametrize("prompts", [[], ["--store-prompts"]])
def test_an_answer_is_given_again(place, serve, prompts):
    options = ["--store", place.url, "--answer-repeats", *prompts]
    server = serve(*options)
    first = [server.complete(body) for body in (GREEDY, DRAWN)]
    assert [a["usage"]["completion_tokens_details"]["tokens_from_store"] for a in first] == [0, 0]
    server.stop()
    server = serve(*options)
    for body, before in zip((GREEDY, DRAWN), first):
        again = server.complete(body)
        assert again["usage"]["completion_tokens_details"]["tokens_from_store"] == 12
        assert again["choices"] == before["choices"] and again["invar"] == before["invar"]
        events = server.stream(body)
        assert "".join(e["choices"][0]["text"] for e in events) == before["choices"][0]["text"]
        assert events[-1]["invar"] == before["invar"]
    assert server.metric("answers_from_store_total") == 4
    # Others, and what is not kept, are computed.
    for body in (
        {**GREEDY, "max_tokens": 11},
        {**DRAWN, "seed": 8},
        {**GREEDY, "prompt": PROMPT + "!"},
        {**GREEDY, "logprobs": 1},
    ):
        server.complete(body)
    assert server.metric("answers_from_store_total") == 4
    both = server.complete({**GREEDY, "prompt": [PROMPT, "JULIET:"]})
    assert both["choices"][0]["text"] == first[0]["choices"][0]["text"]
    assert both["usage"]["completion_tokens_details"]["tokens_from_store"] == 12


def test_a_lie_in_the_store_is_no_answer(tmp_path, serve):
    """An entry whose hash does not bind it to the question is not given."""
    place = Sqlite(tmp_path)
    options = ["--store", place.url, "--answer-repeats", "--store-prompts"]
    server = serve(*options)
    honest = server.complete(GREEDY)
    other = server.complete({**GREEDY, "prompt": "JULIET:"})
    server.stop()
    with sqlite3.connect(place.url) as database:  # the other's answer under this key
        (key,) = database.execute(
            "SELECT key FROM receipts WHERE id = ?", [name_of(honest)]
        ).fetchone()
        database.execute("DELETE FROM receipts WHERE id = ?", [name_of(honest)])
        database.execute("UPDATE receipts SET key = ? WHERE id = ?", [key, name_of(other)])
    server = serve(*options)
    assert server.complete(GREEDY)["choices"] == honest["choices"]
    assert server.metric("answers_from_store_total") == 0


@pytest.mark.parametrize("policy", ["refuse", "continue"])
def test_a_store_that_is_gone(place, serve, policy):
    server = serve("--store", place.url, "--store-prompts", "--store-failure", policy, "--log=json")
    before = name_of(server.complete(GREEDY))
    place.stop()
    if policy == "refuse":
        response = server.open("/v1/completions", {**GREEDY, "prompt": "a"})
        assert response.status == 503 and "receipt" in response.read().decode()
        assert server.open("/ready").status == 503
        for refused in (response, server.open("/v1/completions", GREEDY)):
            assert refused.getheader("x-should-retry") == "true"
            assert refused.getheader("retry-after") == "1"
        names = []
    else:
        names = [name_of(server.complete({**GREEDY, "prompt": str(i)})) for i in range(5)]
        assert server.metric("receipts_waiting") == 5
        assert json.loads(server.open(f"/v1/receipts/{names[0]}").read())["input"]["prompt"] == "0"
    place.start()
    wait_for(lambda: server.metric("receipts_waiting") == 0)
    wait_for(lambda: server.open("/ready").status == 200)
    names += [before, name_of(server.complete({**GREEDY, "prompt": "b"}))]
    assert server.stop() == 0
    assert sorted(place.query("SELECT id FROM receipts")) == sorted(names)
    answered = place.query("SELECT receipt FROM requests WHERE status = 200")
    assert sorted(answered) == sorted(names)
    said = [json.loads(line) for line in server.lines if '"store"' in line]
    assert [e["level"] for e in said] == ["error", "info"], said


def test_a_full_disk(tmp_path, serve):
    place = Sqlite(tmp_path)
    server = serve("--store", place.url, "--store-failure", "continue")
    names = [name_of(server.complete(GREEDY))]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))
    names += [name_of(server.complete({**GREEDY, "prompt": str(i)})) for i in range(9)]
    assert server.metric("receipts_waiting") > 0
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)
    wait_for(lambda: server.metric("receipts_waiting") == 0)
    assert server.stop() == 0
    assert sorted(place.query("SELECT id FROM receipts")) == sorted(names)


def test_a_kill_loses_and_doubles_nothing(place, serve):
    """What a client was told of is there, once, whatever the moment."""
    told, lock = [], threading.Lock()

    def ask(server, i):
        try:
            response = server.open(
                "/v1/completions", {**GREEDY, "prompt": str(i)}, {"x-request-id": f"r{i}"}
            )
            if response.status == 200:
                name = name_of(json.loads(response.read()))
                with lock:
                    told.append((f"r{i}", name))
        except OSError:
            pass
        except Exception as error:  # http.client has several for a connection that ends
            assert "http.client" in type(error).__module__, error

    for round_ in range(3):
        server = serve("--store", place.url)
        with ThreadPoolExecutor(8) as pool:
            work = [pool.submit(ask, server, round_ * 40 + i) for i in range(40)]
            wait_for(lambda count=len(told): len(told) > count + 5)
            server.process.kill()
            for one in work:
                one.result()
        server.process.wait()
    kept = place.query("SELECT request, receipt FROM requests WHERE status = 200")
    assert len(kept) == len(set(kept)) and {f"{r}|{n}" for r, n in told} <= set(kept)
    ids = place.query("SELECT id FROM receipts")
    assert len(ids) == len(set(ids)) and {n for _, n in told} <= set(ids)


def test_old_receipts_are_forgotten(place, serve):
    options = ["--store", place.url]
    server = serve(*options)
    names = [name_of(server.complete({**GREEDY, "prompt": str(i)})) for i in range(4)]
    server.stop()
    server = serve(*options, "--store-max-receipts", 2)
    wait_for(lambda: sorted(place.query("SELECT id FROM receipts")) == sorted(names[2:]))
    assert place.query("SELECT count(*) FROM requests") == ["2"]
    server.stop()
    place.query("UPDATE receipts SET time = time - 100000 WHERE id = '" + names[2] + "'")
    serve(*options, "--store-max-age", 50)
    wait_for(lambda: place.query("SELECT id FROM receipts") == names[3:])


def test_stores_that_are_none(tasks, tmp_path):
    (tmp_path / "text").write_text("no database " * 100)
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE a (b)")
    for place, words in (
        (tmp_path / "text", "not a database"),
        (tmp_path / "other.db", "another program's"),
        (tmp_path, "store"),
        ("mysql://h/d", "mysql"),
        ("postgresql://nobody@127.0.0.1:1/x?connect_timeout=2", "PostgreSQL"),
    ):
        done = invar(
            *("serve", "--model-name", MODEL, "--tasks-root", tasks, "--port", 0),
            *("--store", place),
            code=2,
        )
        assert re.search(words, done.text), done.text
    done = invar("serve", "--model-name", MODEL, "--store", "a", "--receipts", "b", code=2)
    assert "excludes" in done.text


def test_soak():
    """Three minutes of tests/serve/load/soak.py, which runs for thirty where somebody starts it."""
    done = subprocess.run(
        [sys.executable, "-B", ROOT / "tests/serve/load/soak.py", "--minutes", "3"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
