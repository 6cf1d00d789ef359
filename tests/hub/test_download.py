"""Models come from a hub: whole, resumed, refused. The hub is fake_hub.py, on loopback."""

import hashlib
import json
import os
import pty
import random
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import BIN, BUILD, MODEL, SHARDS, execute, invar, refused

sys.path.insert(0, str(Path(__file__).parent))
from fake_hub import COMMIT, LARGE, FakeHub, digest, git_sha1

FILES = {f.name: f.read_bytes() for f in MODEL.iterdir() if f.is_file() and f.name != "README.md"}
OTHERS = {  # what nobody needs
    "README.md": b"# Tiny\n",
    "pytorch_model.bin": b"\x80" * 200_000,
    "onnx/model.onnx": b"onnx",
    "consolidated.safetensors": b"x" * 150_000,
}


@pytest.fixture
def hub():
    hub = FakeHub({**FILES, **OTHERS})
    yield hub
    hub.close()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "home/hub"


@pytest.fixture
def env(hub, tmp_path):
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING", "TRANSF"))}
    plain = {k: v for k, v in plain.items() if not k.lower().endswith("_proxy")}
    return {
        **plain,
        "HF_HOME": str(tmp_path / "home"),
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DOWNLOAD_TIMEOUT": "2",
    }


def repository(cache):
    return cache / "models--org--tiny"


def snapshot(cache, commit=COMMIT):
    return repository(cache) / "snapshots" / commit


def fetch(env, *options, name="org/tiny", **how):
    return invar("download", name, *options, env=env, **how)


def no(env, *names, code=2, name="org/tiny"):
    done = refused("download", name, env=env, code=code, names=names)
    assert len(done.errors[0]) < 700
    return done


def assert_whole(cache):
    """The layout of huggingface_hub: blobs under their digests, relative links, nothing else."""
    folder = snapshot(cache)
    assert {f.name for f in folder.iterdir()} == set(FILES)
    for name, content in FILES.items():
        assert os.readlink(folder / name) == f"../../blobs/{digest(content)}"
        assert (folder / name).read_bytes() == content
    blobs = sorted(b.name for b in (repository(cache) / "blobs").iterdir())
    assert blobs == sorted({digest(c) for c in FILES.values()})
    assert (repository(cache) / "refs/main").read_text() == COMMIT


# --- what a person does ---------------------------------------------------------------------------


def test_run_downloads_and_verify_finds(hub, env, cache, tmp_path):
    receipt, tasks = tmp_path / "r.json", tmp_path / "tasks"
    args = ["--prompt-text", "ROMEO:", "--max-new-tokens", 4, "--tasks-root", tasks]
    done = invar("run", "--model-name", "org/tiny", *args, "--receipt-path", receipt, env=env)
    assert f"org/tiny at {COMMIT}, {len(FILES)} files, " in done.text
    model = json.loads(receipt.read_text())["model"]
    assert model["name"] == "org/tiny" and model["revision"] == COMMIT
    assert_whole(cache)
    asked = len(hub.log)
    again = invar("run", "--model-name", "org/tiny", *args, "--receipt-path", receipt, env=env)
    text = invar("verify", receipt, env=env).text
    assert f'named     "org/tiny", revision {COMMIT}: as the Hugging Face cache has it' in text
    assert (
        len(hub.log) == asked and "  download " not in again.text
    )  # a cached model needs no network
    # Somebody else has the receipt alone: with the name the model comes, of the claimed revision.
    hub.branches, elsewhere = [], {**env, "HF_HOME": str(tmp_path / "elsewhere")}
    elsewhere["XDG_CACHE_HOME"] = str(tmp_path / "another cache")
    refused("verify", receipt, env=elsewhere, names=["pass the checkpoint folder"])
    assert len(hub.log) == asked  # a receipt makes nobody download
    invar("verify", receipt, "--model-name", "org/tiny", env=elsewhere)


def test_download_prints_the_folder(hub, env, cache):
    done = fetch(env)
    assert done.out.decode() == f"{snapshot(cache)}\n"
    assert_whole(cache)
    assert not hub.requests("pytorch_model") and not hub.requests("consolidated")
    assert len(hub.requests("/resolve/")) == len(FILES)
    fetch(env)  # asks what main is, and for nothing else
    assert len(hub.requests("/resolve/")) == len(FILES) and len(hub.requests("/api/")) == 2


def test_the_tokenizer_needs_no_weights(hub, env, cache):
    invar("encode", "--model-name", "org/tiny", "--prompt-text", "ROMEO:", env=env)
    assert not list(snapshot(cache).glob("*.safetensors*"))
    invar("decode", "--model-name", "org/tiny", "--tokens", "1,2", env=env)
    assert len(hub.requests("/api/")) == 1
    fetch(env)
    assert_whole(cache)


def test_a_revision_is_pinned(hub, env, cache, tmp_path):
    hub.branches = ["main", "refs/pr/1", "v1.0"]
    for revision in ("refs/pr/1", "v1.0", COMMIT):
        fetch(env, name=f"org/tiny@{revision}")
    assert (repository(cache) / "refs/refs/pr/1").read_text() == COMMIT
    assert not (repository(cache) / "refs" / COMMIT).exists()
    assert not (repository(cache) / "refs/main").exists()
    fetch(env, "--revision", "v1.0")
    offline = {**env, "HF_HUB_OFFLINE": "1"}
    encode = ["encode", "--prompt-text", "x", "--model-name"]
    invar(*encode, "org/tiny@v1.0", env=offline)
    refused(
        *encode, "org/tiny", env=offline, names=["not in the Hugging Face cache", "HF_HUB_OFFLINE"]
    )
    no(env, "no revision nope", name="org/tiny@nope")
    refused("download", "org/tiny@a", "--revision", "b", env=env, names=["give one"])
    for wrong in ("../x", "a..b", "/a", "a b", "a\nb", ""):
        refused("download", f"org/tiny@{wrong}", env=env)


def test_main_moves_on(hub, env, cache):
    fetch(env)
    hub.commit = "a" * 40
    hub.files["generation_config.json"] = b'{"do_sample": false}'
    assert fetch(env).out.decode().strip().endswith("a" * 40)
    assert (repository(cache) / "refs/main").read_text() == "a" * 40
    assert len(hub.requests("/resolve/")) == len(FILES) + 1  # equal files are there already
    assert snapshot(cache).is_dir()


def test_offline_asks_nobody(hub, env, tmp_path):
    receipt = tmp_path / "r.json"
    args = ["run", "--model-name", "org/tiny", "--prompt-text", "x", "--receipt-path", receipt]
    refused(*args, "--offline", env=env, names=["invar download org/tiny"])
    refused(*args, env={**env, "HF_HUB_OFFLINE": "yes"}, names=["HF_HUB_OFFLINE"])
    refused(
        "download", "org/tiny", env={**env, "TRANSFORMERS_OFFLINE": "1"}, names=["HF_HUB_OFFLINE"]
    )
    assert not hub.log


def test_without_a_network(env):
    started = time.monotonic()
    no(
        {**env, "HF_ENDPOINT": "http://127.0.0.1:1"},
        "http://127.0.0.1:1 cannot be reached",
        "connect",
    )
    assert time.monotonic() - started < 5
    no({**env, "HF_ENDPOINT": "ftp://example.org"}, "HF_ENDPOINT", "https://")


def test_tls(hub, env, cache, tmp_path):
    """A certificate that nobody vouches for is refused, and so is a redirect that gives TLS up."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = (
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=loopback"
    )
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(["openssl", *command.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    hub.use_tls("hub", context)
    env = {**env, "HF_ENDPOINT": hub.url, "HF_TOKEN": "secret"}
    no(env, "cannot be reached", "certificate")
    assert not hub.log
    trusting = {**env, "SSL_CERT_FILE": str(certificate)}
    no(trusting, "a redirect from https:// to http://127.0.0.1", "refused")
    assert not [e for e in hub.log if e[0] == "storage"]
    hub.use_tls("storage", context)
    fetch(trusting)
    assert_whole(cache)
    assert all(("Authorization" in e[3]) == (e[0] == "hub") for e in hub.log)


def test_killed_anywhere(hub, env, cache):
    draw = random.Random(9)
    for _ in range(25):
        process = subprocess.Popen([BIN, "download", "org/tiny"], env=env, stdout=-3, stderr=-3)
        time.sleep(draw.uniform(0, 0.2))
        process.kill()
        process.wait()
        for blob in (repository(cache) / "blobs").glob("*"):
            if not blob.name.endswith(".incomplete"):
                assert digest(blob.read_bytes()) == blob.name
        if draw.random() < 0.3:
            shutil.rmtree(cache, ignore_errors=True)
    fetch(env)
    assert_whole(cache)


# --- who asks -------------------------------------------------------------------------------------


def test_the_token_stays_with_the_hub(hub, env, tmp_path):
    fetch({**env, "HF_TOKEN": "hf_secret\n"})
    for server, _, path, headers in hub.log:
        sent = headers.get("Authorization")
        assert sent == ("Bearer hf_secret" if server == "hub" else None), path
    assert hub.requests("/blobs/", server="storage")
    (tmp_path / "home/token").write_text("hf_file")
    hub.log.clear()
    fetch(env)
    assert hub.log[0][3]["Authorization"] == "Bearer hf_file"
    hub.log.clear()
    fetch({**env, "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"})
    assert "Authorization" not in hub.log[0][3]
    done = no({**env, "HF_TOKEN": "a\nX-Evil: b"}, "HF_TOKEN")
    assert "Evil" not in done.text


@pytest.mark.parametrize("status", [401, 403])
def test_gated(hub, env, cache, status):
    hub.fail("main", *[lambda h: h.refuse(status, "GatedRepo")] * 2)
    no(env, f"accepted its licence: do that at {hub.url}/org/tiny", "set HF_TOKEN")
    no({**env, "HF_TOKEN": "x"}, "accepted its licence", "with the account of the token in use")
    hub.fail("config.json", lambda h: h.refuse(status, "GatedRepo"))
    no(env, "accepted its licence")
    assert not (repository(cache) / "refs").exists()


def test_no_such_model(hub, env):
    no(env, "no such model, or it is private", "HF_TOKEN", name="org/other")
    hub.fail("main", lambda h: h.refuse(404))
    no(env, "no such model")
    hub.fail(SHARDS[0], lambda h: h.refuse(404, "EntryNotFound"))
    no(env, SHARDS[0], "404")
    hub.fail("main", lambda h: h.refuse(418, None, {"X-Error-Message": "a tea\x1b[2Jpot"}))
    assert b"\x1b" not in no(env, "418", "the hub says: a tea").err


# --- faults on the way ----------------------------------------------------------------------------


def test_cut_connections_resume(hub, env, cache):
    content = FILES[SHARDS[1]]
    cut = [
        lambda h: h.cut(content, 300_000),
        lambda h: h.cut(content, 0),
        lambda h: h.cut(content, 1),
    ]
    hub.fail(SHARDS[1], *cut, server="storage")
    small = FILES["config.json"]
    hub.fail("config.json", lambda h: h.cut(small, 10))
    fetch(env)
    assert_whole(cache)
    ranges = [e[3].get("Range") for e in hub.requests(digest(content), server="storage")]
    assert ranges == [None, "bytes=300000-", "bytes=300000-", "bytes=300001-"]


def stalling(content, count, seconds):
    """An answer that promises all of `content`, gives `count` bytes and then nothing."""

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[:count])
        handler.wfile.flush()
        time.sleep(seconds)

    return answer


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "command",
    [
        ["download", "org/tiny"],
        ["run", "--model-name", "org/tiny", "--prompt-text", "a", "--receipt-path", "r/r.json"],
    ],
    ids=["download", "run"],
)
def test_a_killed_download_goes_on(hub, env, cache, tmp_path, command, number):
    content = FILES[SHARDS[0]]

    hub.fail(SHARDS[0], stalling(content, 500_000, 60), server="storage")
    blob = repository(cache) / "blobs" / digest(content)
    started = {**env, "HF_HUB_DOWNLOAD_TIMEOUT": "60"}
    process = subprocess.Popen(
        [BIN, *command, "--progress", "json"], env=started, stderr=subprocess.PIPE, cwd=tmp_path
    )
    incomplete = blob.with_name(blob.name + ".incomplete")
    for _ in range(200):
        if incomplete.exists() and incomplete.stat().st_size == 500_000:
            break
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(20) == -number
    last = json.loads(process.stderr.read().splitlines()[-1])
    assert (last["event"], last["code"], last["kind"]) == ("error", 128 + number, "cancelled")
    assert not list(tmp_path.rglob("r.json"))
    assert incomplete.stat().st_size == 500_000 and not (repository(cache) / "refs").exists()
    kept = [p.name for p in (repository(cache) / "blobs").iterdir()]
    assert [n for n in kept if n != incomplete.name and n not in map(digest, FILES.values())] == []
    fetch(env)
    assert_whole(cache)
    assert hub.requests(digest(content), server="storage")[-1][3]["Range"] == "bytes=500000-"


def test_a_slow_server_counts_as_cut(hub, env, cache):
    content = FILES[SHARDS[0]]

    hub.fail(SHARDS[0], stalling(content, 100_000, 8), server="storage")
    fetch(env)
    assert_whole(cache)
    no({**env, "HF_HUB_DOWNLOAD_TIMEOUT": "soon"}, "HF_HUB_DOWNLOAD_TIMEOUT", "soon")


def test_a_server_that_drips_for_ever_is_left(hub, env):
    """Two bytes a second, in each attempt: more than nothing, and never a whole file."""
    content = FILES[SHARDS[0]]

    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.send_header("Retry-After", "0")
        handler.end_headers()
        try:
            for at in range(0, 60, 2):
                handler.wfile.write(content[at : at + 2])
                handler.wfile.flush()
                time.sleep(1)
        except OSError:
            pass

    hub.fail(SHARDS[0], *[drip] * 6, server="storage")
    no({**env, "HF_HUB_DOWNLOAD_TIMEOUT": "1"}, "1024 bytes/sec", "after 6 attempts")


def test_what_is_in_the_cache_is_compared_too(hub, env, cache):
    """Whoever may write to the cache put other bytes of the same number there."""
    fetch(env)
    for name in (SHARDS[1], "config.json"):
        blob = repository(cache) / "blobs" / digest(FILES[name])
        blob.write_bytes(bytes([FILES[name][0] ^ 1]) + FILES[name][1:])
    (snapshot(cache) / SHARDS[2]).unlink()
    blob = repository(cache) / "blobs" / digest(FILES[SHARDS[2]])
    blob.write_bytes(FILES[SHARDS[2]][:-1] + bytes([FILES[SHARDS[2]][-1] ^ 1]))
    fetch(env)
    assert_whole(cache)


def test_ranges_that_the_server_ignores(hub, env, cache):
    content = FILES[SHARDS[2]]
    hub.fail(SHARDS[2], lambda h: h.cut(content, 1000), lambda h: h.send(content), server="storage")
    fetch(env)
    assert_whole(cache)


def test_busy_servers_are_asked_again(hub, env, cache):
    hub.fail("main", *[lambda h: h.refuse(500)] * 2, lambda h: h.refuse(503))
    hub.fail("tokenizer.json", lambda h: h.refuse(429, None, {"Retry-After": "1"}))
    started = time.monotonic()
    fetch(env)
    assert_whole(cache)
    assert time.monotonic() - started > 4.4  # 0.5 + 1 + 2, and 1 that the hub asked for
    hub.fail("main", lambda h: h.refuse(429, None, {"Retry-After": "3600"}))
    no(env, "asks to wait 3600 seconds")
    hub.fail("main", *[lambda h: h.refuse(502, None, {"Retry-After": "0"})] * 6)
    no(env, "502", "after 6 attempts")


def test_wrong_contents_are_never_seen(hub, env, cache):
    content = FILES[SHARDS[0]]
    wrong = content[:-1] + bytes([content[-1] ^ 1])
    hub.fail(SHARDS[0], lambda h: h.send(wrong), server="storage")
    no(env, "SHA-256 " + hashlib.sha256(wrong).hexdigest(), digest(content), "it was removed")
    assert not list((repository(cache) / "blobs").glob(digest(content) + "*"))
    small = FILES["config.json"]
    hub.fail("config.json", lambda h: h.send(small[:-1] + b" "))
    (snapshot(cache) / "config.json").unlink()
    (repository(cache) / "blobs" / digest(small)).unlink()
    no(env, "git SHA-1 " + git_sha1(small[:-1] + b" "), digest(small))
    fetch(env)
    assert_whole(cache)


def test_wrong_sizes(hub, env, cache):
    content = FILES[SHARDS[0]]
    hub.fail(SHARDS[0], lambda h: h.send(content + b"more"), server="storage")
    no(env, f"the hub lists {len(content)} bytes, the server sends {len(content) + 4}")
    hub.fail(SHARDS[0], lambda h: h.send(content[:-5]), server="storage")
    no(env, f"the hub lists {len(content)} bytes, the server sends {len(content) - 5}")

    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            pass

    hub.fail(SHARDS[0], endless, server="storage")
    no(env, "the server sends more")
    hub.fail("main", endless)
    no(env, "more than 16777216 bytes")
    other = {
        "X-Linked-Etag": '"' + "0" * 64 + '"',
        "Location": f"{hub.storage_url}/blobs/{digest(content)}",
    }
    hub.fail(SHARDS[0], lambda h: h.send(b"", 302, other))
    no(env, "answers with " + "0" * 64)
    fetch(env)
    assert_whole(cache)


def test_what_an_earlier_process_left_wrong(hub, env, cache):
    content = FILES[SHARDS[0]]
    blobs = repository(cache) / "blobs"
    blobs.mkdir(parents=True)
    (blobs / (digest(content) + ".incomplete")).write_bytes(b"not this" * 1000)
    (blobs / (digest(FILES[SHARDS[1]]) + ".incomplete")).write_bytes(FILES[SHARDS[1]])  # whole
    (blobs / digest(FILES[SHARDS[2]])).write_bytes(b"short")
    fetch(env)
    assert_whole(cache)
    assert not hub.requests(digest(FILES[SHARDS[1]]), server="storage")


def test_redirects_have_an_end(hub, env):
    hub.fail("config.json", *[lambda h: h.send(b"", 302, {"Location": h.path})] * 11)
    no(env, "more than 10 redirects")
    hub.fail("config.json", lambda h: h.send(b"", 302, {"Location": "file:///etc/passwd"}))
    no(env, "a redirect to file:///etc/passwd, which is refused")


@pytest.mark.parametrize(
    "answer, names",
    [
        (b"{", ["not well-formed JSON"]),
        (b"[]", ["no JSON object"]),
        (b"<html>captive portal</html>", ["not well-formed JSON"]),
        (b'{"siblings": []}', ["no commit"]),
        (b'{"sha": "../../x", "siblings": []}', ["no commit"]),
        (b'{"sha": "%s"}' % COMMIT.encode(), ["no list of files"]),
        (b'{"sha": "%s", "siblings": [7]}' % COMMIT.encode(), ["siblings[0]", "rfilename"]),
        (b"\xff" * 100, ["not well-formed JSON"]),
        (b"[" * 100_000, ["not well-formed JSON"]),
    ],
)
def test_listings_of_another_form(hub, env, cache, answer, names):
    hub.fail("main", lambda h: h.send(answer))
    no(env, "/api/models/org/tiny/revision/main", *names)
    assert not cache.exists()


@pytest.mark.parametrize(
    "sibling, names",
    [
        ({"rfilename": "../../../evil.json"}, ["evil.json", "refused"]),
        ({"rfilename": "/etc/cron.d/x"}, ["refused"]),
        ({"rfilename": "a//b"}, ["refused"]),
        ({"rfilename": "a\\b"}, ["refused"]),
        ({"rfilename": "a\0b"}, ["refused"]),
        ({"rfilename": "x", "blobId": "../../x"}, ["blobId is no digest"]),
        ({"rfilename": "x", "lfs": {"sha256": "xyz"}}, ["sha256 is no digest"]),
        ({"rfilename": "x", "lfs": 7}, ["lfs"]),
        ({"rfilename": "x", "size": -1}, ["size"]),
        ({"rfilename": "x", "size": 1 << 62}, ["size"]),
        ({"rfilename": "config.json"}, ["listed twice"]),
    ],
)
def test_files_that_are_none(hub, env, cache, sibling, names):
    hub.siblings = [{"rfilename": "config.json"}, sibling]
    no(env, "siblings[1]", *names)
    assert not cache.exists()


def test_a_hub_that_lists_names_alone(hub, env, cache):
    hub.siblings = [{"rfilename": name} for name in hub.files]
    fetch(env)
    assert_whole(cache)
    assert {e[1] for e in hub.requests("/resolve/")} == {"HEAD", "GET"}
    hub.commit = "b" * 40
    hub.fail("config.json", lambda h: h.send(b"", 200, {"ETag": '"abc"'}))
    no(env, "no SHA-256 or git SHA-1", "abc")


def test_indices_of_another_form(hub, env):
    for content, name in [
        (b"{}", "no weight_map"),
        (b'{"weight_map": {"a": "../x"}}', "not a plain file name"),
        (b'{"weight_map": {"a": "lost.safetensors"}}', "lost.safetensors"),
    ]:
        hub.files["model.safetensors.index.json"] = content
        no(env, name)


# --- weights that nobody reads --------------------------------------------------------------------


@pytest.mark.parametrize(
    "file, names",
    [
        ("pytorch_model.bin", ["pytorch_model.bin", "save_pretrained", "--model-name FOLDER"]),
        ("onnx/model.onnx", ["onnx/model.onnx", "invar compile"]),
        ("notes.txt", ["neither model.safetensors"]),
    ],
)
def test_other_weights(hub, env, cache, file, names):
    hub.files = {k: v for k, v in FILES.items() if "safetensors" not in k} | {file: b"x"}
    no(env, *names, code=3)
    invar("encode", "--model-name", "org/tiny", "--prompt-text", "x", env=env)


def test_one_file_wins_over_shards(hub, env, cache):
    hub.files["model.safetensors"] = b"y" * LARGE
    fetch(env)
    names = {f.name for f in snapshot(cache).iterdir()}
    assert "model.safetensors" in names and not names & {*SHARDS, "model.safetensors.index.json"}


# --- the cache ------------------------------------------------------------------------------------


def test_processes_at_once(hub, env, cache):
    many = [
        subprocess.Popen([BIN, "download", "org/tiny"], env=env, stdout=-1, stderr=-1)
        for _ in range(6)
    ]
    for process in many:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert out.decode().strip() == str(snapshot(cache))
    assert_whole(cache)
    assert len(hub.requests("/blobs/", server="storage")) == len(
        [c for c in FILES.values() if len(c) >= LARGE]
    )  # each content once: the others waited


def test_a_cache_that_cannot_be_written(env):
    """Not even by root."""
    no({**env, "HF_HUB_CACHE": "/proc/self/hub"}, "/proc/self/hub", "cannot be written")


def test_a_cache_that_is_a_file(env, cache):
    cache.parent.mkdir(parents=True)
    cache.write_text("")
    no(env, str(cache), "HF_HUB_CACHE")


def test_a_full_disk(hub, env):
    hub.siblings = json.loads(hub.listing())["siblings"]
    for entry in hub.siblings:
        if entry["rfilename"] == SHARDS[0]:
            entry["lfs"]["size"] = 1 << 49
    no(env, "bytes are to be downloaded", "HF_HUB_CACHE")
    hub.siblings = None
    limited = ["bash", "-c", f'ulimit -f 1000; exec {BIN} "$@"', "bash"]  # blocks of 1024 bytes
    done = execute(["download", "org/tiny"], env=env, program=limited)
    assert done.code == 2 and "cannot write" in done.errors[0] and ".incomplete" in done.errors[0]
    fetch(env)


def test_shared_with_huggingface_hub(hub, env, cache, tmp_path):
    """The package comes with tokenizers, which tests/requirements.txt names."""
    script = tmp_path / "other.py"
    script.write_text(
        "import sys\n"
        "from huggingface_hub import hf_hub_download, scan_cache_dir, try_to_load_from_cache\n"
        "how, *names = sys.argv[1:]\n"
        "if how == 'get':\n"
        "    for name in names: print(hf_hub_download('org/tiny', name))\n"
        "else:\n"
        "    for name in names: print(try_to_load_from_cache('org/tiny', name))\n"
        "    info = scan_cache_dir()\n"
        "    assert not info.warnings, info.warnings\n"
        "    revision, = [r for repo in info.repos for r in repo.revisions]\n"
        "    print(revision.commit_hash, sorted(revision.refs), revision.size_on_disk)\n"
    )

    def other(*args, **more):
        quiet = {**env, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", **more}
        done = subprocess.run(
            [sys.executable, script, *args], env=quiet, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]

    fetch(env)
    *paths, summary = other("see", *FILES, HF_HUB_OFFLINE="1")
    assert paths == [str(snapshot(cache) / name) for name in FILES]
    assert summary == f"{COMMIT} ['main'] {sum(map(len, FILES.values()))}"
    # The other way round: what it downloaded is not asked for again, what it left out is.
    second = {"HF_HOME": str(tmp_path / "second")}
    other("get", "config.json", SHARDS[0], **second)
    hub.log.clear()
    fetch({**env, **second})
    assert not hub.requests("/config.json") and not hub.requests(SHARDS[0])
    assert hub.requests("tokenizer.json")
    assert_whole(tmp_path / "second/hub")


def test_progress_in_a_pipe_is_quiet(env):
    done = fetch(env)
    assert b"\r" not in done.err and b"\x1b" not in done.err
    assert re.search(r"download  org/tiny at \w{40}, \d+ files, [\d.]+ MB \(", done.err.decode())


def test_progress_on_a_terminal(hub, env):
    content = FILES[SHARDS[0]]

    def slow(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        for at in range(0, len(content), 200_000):
            handler.wfile.write(content[at : at + 200_000])
            time.sleep(0.05)

    hub.fail(SHARDS[0], slow, server="storage")
    terminal, other_end = pty.openpty()
    process = subprocess.Popen([BIN, "download", "org/tiny"], env=env, stderr=other_end, stdout=-3)
    os.close(other_end)
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # the last writer has closed it
        pass
    assert process.wait(60) == 0
    assert re.search(r"\d+%  [\d.]+ .B of [\d.]+ MB, [\d.]+ .B/s, \d", shown.decode())


def test_without_libcurl(env, tmp_path):
    """A file that is no library stands in the way of the system's."""
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        (tmp_path / name).write_text("no library")
    no({**env, "LD_LIBRARY_PATH": str(tmp_path)}, "libcurl4")


# --- Python ---------------------------------------------------------------------------------------


def test_python_downloads_and_can_be_interrupted(hub, env, cache, tmp_path):
    if not (BUILD / "python/invar").is_dir():
        pytest.skip("this build has no Python package (INVAR_PACKAGE)")
    content = FILES[SHARDS[0]]

    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        for at in range(0, len(content), 10_000):
            handler.wfile.write(content[at : at + 10_000])
            time.sleep(0.1)

    hub.fail(SHARDS[0], drip, server="storage")
    run = f"invar.generate('org/tiny@{COMMIT}', 'x', max_new_tokens=2)"
    script = f"import invar; print({run}.receipt['model'])"
    path = {**env, "PYTHONPATH": str(BUILD / "python")}
    python = [sys.executable, "-c", script]
    process = subprocess.Popen(python, env=path, stdout=-1, stderr=-1, text=True)
    incomplete = repository(cache) / "blobs" / (digest(content) + ".incomplete")
    deadline = time.monotonic() + 60
    while not incomplete.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=20)[1]
    assert incomplete.stat().st_size > 0
    done = subprocess.run(python, env=path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert f"'name': 'org/tiny', 'revision': '{COMMIT}'" in done.stdout
