"""What whoever runs a server sees and says: options from a file and from the environment, the log,
systemd, keys, signals, and TLS by proxies with the configurations that ship."""

import json
import math
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest
from conftest import MODEL, ROOT, invar
from server import Server, events_of
from test_serve import HELLO, model, only_receipt, server  # noqa: F401

GREEDY = {"prompt": "ROMEO:", "max_tokens": 8, "temperature": 0}
LONG = {"prompt": "KING", "max_tokens": 400, "temperature": 1, "seed": 1}
EXAMPLES = ROOT / "examples/serve"


@pytest.fixture
def serve(tasks, tmp_path):
    made = []

    def f(*options, **more):
        made.append(Server(MODEL, tasks, tmp_path / "receipts", *options, **more))
        return made[-1]

    yield f
    for one in made:
        one.stop(signal.SIGKILL)


def wait_for(condition, patience=30):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_options_of_a_file_and_the_environment(serve, tmp_path):
    """The command line counts more than the environment, and that more than the file."""
    config = tmp_path / "serve.json"
    config.write_text(
        json.dumps({"context": 100, "batch-size": 3, "log": "json", "allowed-host": ["a.b", "c"]})
    )
    server = serve("--config", config, environment={"INVAR_SERVE_CONTEXT": "200"})
    assert "3 sequences of 200 tokens" in "".join(server.lines)
    server.ask("/v1/models", None, 200, {"Host": "a.b"})
    server.ask("/v1/models", None, 421, {"Host": "d"})
    server.stop()
    environment = {"INVAR_SERVE_CONFIG": str(config), "INVAR_SERVE_ALLOWED_HOST": "d,e"}
    server = serve("--context", 300, environment=environment)
    assert "3 sequences of 300 tokens" in "".join(server.lines)
    server.ask("/v1/models", None, 200, {"Host": "e"})
    server.ask("/v1/models", None, 421, {"Host": "a.b"})


def test_pages_of_other_origins(serve, tmp_path):
    """A browser asks first, without a key; every answer says that the page may read it."""
    (tmp_path / "keys").write_text("secret\n")
    page, other = "https://app.example", "http://localhost:3000"
    server = serve(
        "--allowed-origins", page, "--allowed-origins", other, "--api-key-file", tmp_path / "keys"
    )

    def ask(method, path, body=None, origin=page, **headers):
        connection = server.connect()
        headers = {k.replace("_", "-"): v for k, v in headers.items()} | {"Origin": origin}
        connection.request(method, path, body and json.dumps(body), headers)
        response = connection.getresponse()
        response.body = response.read()
        return response

    wants = {"Access_Control_Request_Method": "POST"}
    wants["Access_Control_Request_Headers"] = "authorization,content-type,x-stainless-os"
    for origin in (page, other):
        may = ask("OPTIONS", "/v1/completions", origin=origin, **wants)
        assert (may.status, may.body, may.headers["content-length"]) == (204, b"", None)
        assert may.headers["access-control-allow-origin"] == origin
        assert may.headers["access-control-allow-methods"] == "POST"
        assert (
            may.headers["access-control-allow-headers"] == wants["Access_Control_Request_Headers"]
        )
    key = {"Authorization": "Bearer secret", "Content_Type": "application/json"}
    for status, got in (
        (200, ask("POST", "/v1/completions", GREEDY, **key)),
        (200, ask("POST", "/v1/completions", {**GREEDY, "stream": True}, **key)),
        (200, ask("GET", "/health")),
        (200, ask("GET", "/metrics", **key)),
        (400, ask("POST", "/v1/completions", {"frobnicate": 1}, **key)),
        (401, ask("POST", "/v1/completions", GREEDY, Content_Type="application/json")),
        (404, ask("GET", "/nothing", **key)),
        (405, ask("OPTIONS", "/v1/completions", **key)),
        (421, ask("GET", "/health", Host="evil.example")),
    ):
        assert got.status == status
        assert (
            got.headers["access-control-allow-origin"] == page and got.headers["vary"] == "origin"
        )
        assert got.headers["access-control-expose-headers"] == "*"
    for refused in (ask("GET", "/health", origin="https://evil.example"), serve_none(serve, wants)):
        assert refused.status == 403 and b"--allowed-origins" in refused.body
        assert "access-control-allow-origin" not in refused.headers


def serve_none(serve, wants):
    """What a server says that was told of no page."""
    connection = serve().connect()
    headers = {k.replace("_", "-"): v for k, v in wants.items()} | {"Origin": "https://a.example"}
    connection.request("OPTIONS", "/v1/completions", None, headers)
    response = connection.getresponse()
    response.body = response.read()
    return response


@pytest.mark.parametrize(
    "text",
    ["example.org", "https://a/", "https://", "https://a, https://b", "", '["a"]', "[", "[1]"],
)
def test_origins_that_are_none(text):
    done = invar("serve", "--model-name", MODEL, "--allowed-origins", text, code=2)
    assert "--allowed-origins" in done.text, done.text


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "not JSON"),
        ("[]", "object"),
        ('{"context": 1, "context": 2}', "twice"),
        ('{"contxt": 1}', "contxt"),
        ('{"config": "a"}', "config"),
        ('{"context": true}', "context"),
        ('{"context": "many"}', "context"),
        ('{"context": 0}', "context"),
        ('{"answer-repeats": 1}', "true or false"),
        ('{"allowed-host": [1]}', "allowed-host"),
        ('{"host": ""}', "host"),
        ('{"store-prompts": true}', "requires"),
        ('{"log": "xml"}', "log"),
    ],
)
def test_files_that_are_wrong(tmp_path, text, words):
    (tmp_path / "c.json").write_text(text)
    options = ["--model-name", MODEL, "--config", tmp_path / "c.json"]
    done = invar("serve", *options, code=2)
    assert words in done.text, done.text


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("NUMERICS", "exact16", "--numerics"),
        ("MODEL_NAME", "a", "--model-name"),
        ("DEVICE", "cuda", "--device"),
        ("FROBNICATE", "1", "no such option"),
        ("PORT", "a", "port"),
        ("PORT", "", "value"),
        ("LOG", "xml", "xml is not one of text, json, none"),
        ("ANSWER_REPEATS", "yes", "true or false"),
    ],
)
def test_variables_that_are_wrong(monkeypatch, name, value, words):
    """None decides arithmetic."""
    monkeypatch.setenv(f"INVAR_SERVE_{name}", value)
    done = invar("serve", "--model-name", MODEL, code=2)
    assert words in done.text, done.text
    invar("serve", "--help")


def test_the_log(serve):
    server = serve("--log", "json")
    answer = server.ask("/v1/completions", GREEDY, 200, {"x-request-id": "mine"})
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.sendall(b"nonsense\r\n\r\n")
        assert b"400" in s.recv(1000)
    response = server.open("/v1/completions", {**LONG, "stream": True}, {"x-request-id": "\tx y"})
    response.read(100)
    response.connection.sock.close()
    response.close()
    server.open("/%1b\x7f".replace("\x7f", "%7f")).read()
    wait_for(lambda: sum('"event":"request"' in line for line in server.lines) == 3)
    server.stop()
    said = [json.loads(line) for line in server.lines if line.startswith("{")]
    (mine,) = [e for e in said if e["event"] == "request" and e["request_id"] == "mine"]
    assert mine["status"] == 200 and mine["complete"] and mine["path"] == "/v1/completions"
    assert mine["seconds"] > 0 and mine["bytes"] > 100 and mine["time"].endswith("Z")
    (given,) = [e for e in said if e["event"] == "answer"]
    assert given["request_id"] == "mine" and [given["receipt"]] == answer["invar"]["receipts"]
    assert given["completion_tokens"] == 8 and given["finish_reason"] == "length"
    assert [e["status"] for e in said if e["event"] == "refusal"] == [400]
    (left,) = [e for e in said if e["event"] == "request" and not e["complete"]]
    assert left["status"] == 200 and left["request_id"].startswith("req-")
    assert not any("ROMEO" in line or "KING" in line for line in server.lines)


def test_a_log_for_people(serve):
    server = serve()
    server.complete(GREEDY)
    wait_for(lambda: any("status=200" in line for line in server.lines))
    (line,) = [line for line in server.lines if line.startswith("  request")]
    assert "path=/v1/completions" in line and "request_id=req-" in line
    quiet = serve("--log", "none")
    quiet.complete(GREEDY)
    quiet.stop()
    assert not any("request" in line for line in quiet.lines)


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_told(serve, tmp_path, abstract):
    name = f"invar-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + name if abstract else name)
        listener.settimeout(30)
        server = serve(environment={"NOTIFY_SOCKET": ("@" if abstract else "") + name})
        assert b"READY=1" in listener.recv(1000)
        server.stop()
        assert b"STOPPING=1" in listener.recv(1000)


def test_the_unit_of_systemd(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    text = (EXAMPLES / "invar-serve.service").read_text()
    text = text.replace("/usr/bin/invar", "/bin/true").replace("Documentation=", "#")
    (tmp_path / "invar-serve.service").write_text(text)
    done = subprocess.run(
        [analyze, "verify", tmp_path / "invar-serve.service"], capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_a_second_signal_ends_at_once(serve):
    server = serve("--drain-timeout", 300)
    response = server.open("/v1/completions", {**LONG, "stream": True, "n": 64})
    response.read(10)
    server.process.send_signal(signal.SIGTERM)
    wait_for(lambda: any("drain" in line for line in server.lines))
    assert server.process.poll() is None
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(10) == -signal.SIGTERM


def test_workers(serve):
    """A process for each part of the decoder; SIGTERM lets running answers end."""
    server = serve("--n-partitions", 2, "--workers", "processes", "--drain-timeout", 60)
    asked = {**LONG, "max_tokens": 40}
    assert (
        server.complete(asked)["invar"]["receipts"] == serve().complete(asked)["invar"]["receipts"]
    )
    response = server.open("/v1/completions", {**LONG, "stream": True})
    begun = response.read(10)
    server.process.send_signal(signal.SIGTERM)
    assert "[DONE]" in (begun + response.read()).decode()
    assert server.process.wait(60) == 0
    assert any("drain" in line for line in server.lines)


def test_limits(serve):
    server = serve("--max-header", 2000, "--header-timeout", 1, "--max-connections", 8)
    response = server.open("/health", headers={"a": "x" * 3000})
    assert response.status == 431 and "2000" in response.read().decode()
    waiting = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
    for s in waiting:
        s.sendall(b"GET /health HTTP/1.1\r\n")
    one_more = socket.create_connection(("127.0.0.1", server.port))
    assert one_more.recv(10) == b""
    for s in waiting:  # slowloris: an end after a second, whatever comes
        s.settimeout(30)
        assert s.recv(10) == b""
    server.ask("/health")


def certificate(folder):
    """cert.pem with its key, and key.pem."""
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=models.example "
        f"-addext subjectAltName=DNS:models.example -keyout {folder}/key.pem -out {folder}/only.pem",
        shell=True,
        check=True,
        capture_output=True,
    )
    both = (folder / "only.pem").read_text() + (folder / "key.pem").read_text()
    (folder / "cert.pem").write_text(both)


def configured(name, folder, port, server):
    """The command of a proxy with the configuration that ships, at other ports and places."""
    text = (
        EXAMPLES / {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}[name]
    ).read_text()
    text = text.replace("/etc/ssl/invar", str(folder)).replace(
        "127.0.0.1:8000", f"127.0.0.1:{server}"
    )
    file = folder / name
    if name == "nginx":
        text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
        places = "".join(
            f"{kind}_temp_path {folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        file.write_text(
            f"daemon off; pid {folder}/pid; error_log stderr; {'user root;' * (os.geteuid() == 0)}"
            f"events {{}} http {{ access_log off; {places}\n{text}}}"
        )
        return ["nginx", "-p", folder, "-c", file]
    if name == "haproxy":
        file.write_text(text.replace("bind :443", f"bind 127.0.0.1:{port}"))
        return ["haproxy", "-db", "-f", file]
    text = text.replace(
        "models.example {",
        f"https://models.example:{port} {{\n tls {folder}/cert.pem {folder}/key.pem",
    )
    file.write_text("{\n admin off\n auto_https disable_redirects\n}\n" + text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", file]


@pytest.mark.parametrize("name", ["nginx", "haproxy", "caddy"])
def test_tls_by_a_proxy(serve, tmp_path, name):
    """A whole answer, a stream whose pieces come as they are made, and a client that leaves."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    certificate(tmp_path)
    server = serve("--allowed-host", "models.example", "--log", "json", "--batch-size", 2)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command = configured(name, tmp_path, port, server.port)
    with open(tmp_path / "proxy.log", "wb") as log:
        environment = os.environ | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
        proxy = subprocess.Popen([str(c) for c in command], stdout=log, stderr=log, env=environment)
    context = ssl.create_default_context(cafile=tmp_path / "only.pem")

    def ask(body):
        text = json.dumps(body).encode()
        s = context.wrap_socket(
            socket.create_connection(("127.0.0.1", port), timeout=60),
            server_hostname="models.example",
        )
        s.sendall(
            b"POST /v1/completions HTTP/1.1\r\nHost: models.example\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)
        )
        return s

    def read(s):
        got = b""
        while piece := s.recv(65536):
            got += piece
        return got.decode()

    def listens():
        assert proxy.poll() is None, (tmp_path / "proxy.log").read_text()
        try:
            return b"200 OK" in ask(GREEDY).recv(65536)
        except OSError:
            return False

    try:
        wait_for(listens)
        assert '"receipts"' in read(ask(GREEDY))
        assert "[DONE]" in read(ask({**GREEDY, "stream": True}))
        s = ask({**LONG, "stream": True, "n": 64})
        got = b""
        while b"data: " not in got:
            got += s.recv(65536)
        wait_for(lambda: server.metric("num_requests_running") > 0)  # the rest is yet to come
        s.close()
        wait_for(lambda: server.metric("requests_cancelled_total") == 1)
    finally:
        proxy.terminate()
        proxy.wait(30)


def test_figures_of_answers(serve):
    """vLLM's histograms: where the time of an answer goes, and how long prompts and answers are."""
    server = serve("--batch-size", 1)

    def histogram(name):
        text = server.open("/metrics").read().decode()
        rows = re.findall(rf'^invar_{name}_bucket{{le="(.+)"}} (\d+)$', text, re.M)
        counts = [int(count) for _, count in rows]
        assert counts == sorted(counts) and rows[-1][0] == "+Inf"
        assert counts[-1] == server.metric(f"{name}_count")
        return {float(bound): count for bound, count in zip(dict(rows), counts, strict=True)}

    first = server.open("/v1/completions", {**LONG, "stream": True})
    first.read(10)
    second = server.complete(GREEDY)  # it waits for the only sequence
    assert "[DONE]" in first.read().decode()
    times = [f"request_{of}_time_seconds" for of in ("queue", "prefill", "decode", "inference")]
    for name in times:
        assert histogram(name)[math.inf] == 2
    queue, prefill, decode, both = (server.metric(f"{name}_sum") for name in times)
    assert min(queue, prefill, decode) > 0 and max(prefill, decode) < both
    assert queue + both <= server.metric("e2e_request_latency_seconds_sum")
    assert queue > server.metric("e2e_request_latency_seconds_sum") / 4
    lengths = histogram("request_generation_tokens")
    assert (lengths[5], lengths[10], lengths[200], lengths[500]) == (0, 1, 1, 2)
    assert server.metric("request_generation_tokens_sum") == 8 + 400
    assert server.metric("request_params_max_tokens_sum") == 8 + 400
    prompts = server.metric("prompt_tokens_total")
    assert server.metric("request_prompt_tokens_sum") == prompts > second["usage"]["prompt_tokens"]


def test_keys(model, tasks, tmp_path):  # noqa: F811
    (tmp_path / "keys").write_text("# the team's\nsecret-1\nsecret-2\n")
    server = Server(
        model, tasks, tmp_path / "r", "--api-key-file", tmp_path / "keys", "--batch-size", 1
    )
    server.ask("/v1/models", None, 401)
    server.ask("/v1/models", None, 401, {"Authorization": "Bearer secret-3"})
    server.ask("/v1/models", None, 200, {"Authorization": "Bearer secret-2"})
    headers = {
        "Authorization": "bearer secret-1",
        "Content-Type": "Application/JSON; charset=utf-8",
    }
    server.ask("/v1/completions", GREEDY, 200, headers)
    server.ask("/health")
    assert server.stop() == 0


def read_all(response, into):
    into.append(response.read().decode())


@pytest.mark.parametrize("seconds", [30, 0])
def test_a_signal_drains(model, tasks, tmp_path, seconds):  # noqa: F811
    """Running answers end as they would, or with an error where there is no time."""
    receipts = tmp_path / "receipts"
    server = Server(
        model, tasks, receipts, "--drain-timeout", seconds, "--batch-size", 2, "--queue", 1
    )
    many = {"messages": HELLO, "n": 4}  # two sequences and one that waits
    assert "4 answers" in server.ask("/v1/chat/completions", many, 400)["error"]["message"]
    bodies = [{**LONG, "seed": i} for i in range(3)]
    responses = [server.open("/v1/completions", {**b, "stream": True}) for b in bodies]
    wait_for(lambda: server.metric("num_requests_waiting") == 1)
    refusal = server.open("/v1/completions", LONG)
    assert refusal.status == 429 and refusal.getheader("retry-after")
    texts = [[] for _ in responses]
    readers = [threading.Thread(target=read_all, args=a) for a in zip(responses, texts)]
    for reader in readers:
        reader.start()
    server.process.send_signal(signal.SIGTERM)
    if seconds:
        wait_for(lambda: server.open("/ready").status == 503)
        refusal = server.open("/v1/completions", GREEDY)
        assert refusal.status == 503 and refusal.getheader("x-should-retry") == "true"
    assert server.process.wait(60) == 0
    for reader in readers:
        reader.join()
    for (text,) in texts:
        events = events_of(text)
        if seconds:
            assert events[-1] == "[DONE]"
            assert (receipts / f"{only_receipt(json.loads(events[-2]))}.json").exists()
        else:
            assert "stopping" in json.loads(events[-1])["error"]["message"]


def test_a_port_that_is_taken(server, model, tasks, tmp_path):  # noqa: F811
    options = ["--tasks-root", tasks, "--receipts", tmp_path, "--port", server.port]
    done = invar("serve", "--model-name", model, *options, code=2)
    assert str(server.port) in done.text
