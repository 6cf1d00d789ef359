#!/usr/bin/env python3
"""A server under load and faults: soak.py [--minutes 30] [--clients 12] [--seed 1]

Clients ask, stream, leave in every phase, read slowly, and send what is no request. Meanwhile the
disk is full, the store is gone, and the server is ended by SIGTERM and by kill -9. At the end every
receipt that a client was told of is in the store, once, with the bytes that it has alone, and the
memory of the server has not grown. The store is SQLite, and PostgreSQL where that is installed; the
disk is a small file system where one may be mounted, else files may not grow. Prints a line a life
of the server, and exits with 1 where something is wrong. INVAR_BIN: the program."""

import argparse
import errno
import http.client
import json
import random
import resource
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path[1:1] = [str(Path(__file__).resolve().parents[i]) for i in (1, 2)]
from company import asks, of_stream, of_whole  # noqa: E402
from conftest import ROOT  # noqa: E402
from postgresql import Postgresql, programs  # noqa: E402
from server import Server, events_of  # noqa: E402

MODEL = ROOT / "models/tale-7m"

GROWTH = 48 << 20  # bytes that a life may add: receipts that wait, and what the allocator keeps
NONSENSE = [
    b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 100000,
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000000\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3;" + b"a" * 200000,
]


class Sqlite:
    """A file on a disk that can be full. `receipts` and `records` are read at the end."""

    def __init__(self, folder):
        self.name, self.folder = "sqlite", folder / "disk"
        self.folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", self.folder]
        self.mounted = subprocess.run(mount, capture_output=True).returncode == 0
        self.file = self.folder / "store.db"
        self.url = str(self.file)

    def trouble(self, server):
        """A full disk, then a file that is not there."""
        if self.mounted:
            filler = self.folder / "filler"
            with open(filler, "wb", 0) as f:
                try:
                    while True:
                        f.write(bytes(1 << 16))
                except OSError as e:
                    assert e.errno == errno.ENOSPC, e
            time.sleep(2)
            filler.unlink()
        else:
            limits = self.file.stat().st_size // 2, resource.RLIM_INFINITY
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limits[0], limits[1]))
            time.sleep(2)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (limits[1], limits[1]))
        time.sleep(2)
        away = self.file.with_suffix(".away")
        self.file.rename(away)
        time.sleep(2)
        away.rename(self.file)

    def read(self):
        with sqlite3.connect(self.file) as database:
            return (
                dict(database.execute("SELECT id, text FROM receipts")),
                database.execute(
                    "SELECT request, receipt, choice FROM requests WHERE status = 200"
                ),
            )

    def close(self):
        if self.mounted:
            subprocess.run(["umount", "--lazy", self.folder], check=True)


class Database:
    """A server of PostgreSQL, which ends and comes again."""

    def __init__(self):
        self.name, self.server = "postgresql", Postgresql()
        self.url = self.server.url

    def trouble(self, server):
        for _ in range(2):
            self.server.stop()
            time.sleep(2)
            self.server.start()
            time.sleep(2)

    def read(self):
        receipts = self.server.query(
            "SELECT id, encode(convert_to(text, 'UTF8'), 'hex') FROM receipts"
        )
        records = self.server.query(
            "SELECT request, receipt, choice FROM requests WHERE status = 200"
        )
        pairs = (line.split("|") for line in receipts)
        rows = (line.split("|") for line in records)
        return (
            {name: bytes.fromhex(text).decode() for name, text in pairs},
            [(request, name, int(choice)) for request, name, choice in rows],
        )

    def close(self):
        self.server.close()


class Soak:
    def __init__(self, folder, clients, seed):
        self.folder, self.clients, self.seed = folder, clients, seed
        self.stores = [Sqlite(folder), *([Database()] if programs() else [])]
        self.requests = list(asks(32))
        self.expected = []  # what each request has alone: names of receipts, texts
        self.texts = {}  # name -> the receipt's bytes
        self.told = []  # (request id, receipts)
        self.wrong, self.did = [], Counter()
        self.lock, self.stopping = threading.Lock(), False
        self.server = None

    def start(self, store, *options):
        how = ["--store", store.url, "--store-prompts", "--log", "none", "--context", 1024]
        return Server(MODEL, self.folder / "tasks", None, *how, "--batch-size", 8, *options)

    def learn(self):
        """The receipts that each request has alone, from a store that is not the one of the
        test."""
        server = Server(
            *(MODEL, self.folder / "tasks", self.folder / "alone", "--log", "none"),
            *("--context", 1024, "--batch-size", 1),
        )
        for _, path, body in self.requests:
            self.expected.append(of_whole(server.ask(path, body)))
            self.texts |= {name: server.receipt(name).decode() for name in self.expected[-1][0]}
        server.stop()

    def fail(self, what):
        with self.lock:
            self.wrong.append(what)
        print("WRONG:", what[:500], flush=True)
        return "went wrong"

    # --- what a client does -----------------------------------------------------------------------

    def raw(self, i, **more):
        _, path, body = self.requests[i]
        text = json.dumps({**body, **more}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text

    def ask(self, server, chance, number):
        i = chance.randrange(len(self.requests))
        kind, path, body = self.requests[i]
        stream = chance.random() < 0.5 and kind != "echo"  # whose log-probabilities come whole
        name = f"r{number}"
        response = server.open(path, {**body, "stream": stream}, {"x-request-id": name})
        text = response.read().decode()
        if response.status in (429, 503):
            return f"status {response.status}"
        if response.status != 200:
            return self.fail(f"{name}: status {response.status}: {text}")
        if stream:
            events = events_of(text)
            if events[-1] != "[DONE]":
                error = json.loads(events[-1]).get("error")
                return "ended" if error else self.fail(f"{name}: a stream without an end")
            got = of_stream(text)
        else:
            got = of_whole(json.loads(text))
        if got != self.expected[i]:
            self.fail(f"{name}: another receipt or text than alone")
        with self.lock:
            self.told.append((server.store, name, got[0]))
        return "answered"

    def leave(self, server, chance, number):
        """In one of the phases: connected, in the header, in the body, asked, in the stream."""
        raw = self.raw(chance.randrange(len(self.requests)), stream=True, max_tokens=400)
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as s:
            phase = chance.randrange(5)
            s.sendall(raw[: [0, 30, len(raw) - 5, len(raw), len(raw)][phase]])
            if phase == 4:
                s.recv(100)
            if chance.random() < 0.3:
                s.shutdown(socket.SHUT_WR)
        return f"left in phase {phase}"

    def read_slowly(self, server, chance, number):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            s.connect(("127.0.0.1", server.port))
            s.sendall(self.raw(chance.randrange(len(self.requests)), stream=True, max_tokens=200))
            for _ in range(30):
                s.settimeout(5)
                if not s.recv(64):
                    break
                time.sleep(0.05)
        return "read slowly"

    def talk_nonsense(self, server, chance, number):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as s:
            text = chance.choice([*NONSENSE, chance.randbytes(chance.randrange(1, 3000))])
            s.sendall(text)
            s.shutdown(socket.SHUT_WR)
            got = s.recv(100)
            if got and not got.startswith(b"HTTP/1.1 4"):
                self.fail(f"an answer to nonsense: {text[:60]} {got}")
        return "talked nonsense"

    def client(self, which):
        chance = random.Random(f"{self.seed} {which}")
        does = [self.ask] * 6 + [self.leave] * 2 + [self.read_slowly, self.talk_nonsense]
        for number in range(10**9):
            if self.stopping:
                return
            server = self.server
            if server is None:
                time.sleep(0.05)
                continue
            try:
                did = chance.choice(does)(server, chance, f"{which}-{number}")
            except (OSError, http.client.HTTPException):
                did = "lost the connection"
            with self.lock:
                self.did[did] += 1

    # --- what befalls the server ------------------------------------------------------------------

    def memory(self):
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def live(self, store, seconds, policy, end):
        begun = time.monotonic()
        server = self.start(store, "--store-failure", policy, "--drain-timeout", 20)
        server.store = store.name
        self.server = server
        time.sleep(seconds / 3)
        before = self.memory()
        store.trouble(server)
        while time.monotonic() < begun + seconds:
            time.sleep(0.1)
        after, ended = self.memory(), self.server
        if end == "kill":
            # What waits in the memory of a server that goes on is lost by this: it waits for none.
            while ended.metric("receipts_waiting") > 0:
                time.sleep(0.1)
            self.server = None
            ended.process.kill()
            ended.process.wait()
        else:
            self.server = None
            if ended.stop() != 0:
                self.fail("SIGTERM: another exit code than 0")
        print(
            f"{store.name:10} {policy:8} {end:4}  {after >> 20} MiB ({(after - before) / 2**20:+.1f}), "
            f"{len(self.told)} answers",
            flush=True,
        )
        if after - before > GROWTH:
            self.fail(f"the memory grew from {before} to {after}")

    def check(self, store):
        receipts, records = store.read()
        kept = Counter(records)
        for name, text in receipts.items():
            if name in self.texts and self.texts[name] != text:
                self.fail(f"receipt {name} has other bytes than alone")
        for place, request, names in self.told:
            for choice, name in enumerate(names):
                if place != store.name:
                    continue
                if name not in receipts:
                    self.fail(f"{request}: the receipt {name} is lost")
                if (times := kept[(request, name, choice)]) != 1:
                    self.fail(f"{request}: {times} records of choice {choice}")
        print(f"{store.name}: {len(receipts)} receipts, {kept.total()} records of answers")

    def run(self, minutes):
        self.learn()
        threads = [threading.Thread(target=self.client, args=(i,)) for i in range(self.clients)]
        for thread in threads:
            thread.start()
        ways = [
            (store, policy, end)
            for store in self.stores
            for end in ("kill", "term")
            for policy in ("refuse", "continue")
        ]
        try:
            for store, policy, end in ways:
                self.live(store, minutes * 60 / len(ways), policy, end)
        finally:
            self.stopping = True
            for thread in threads:
                thread.join()
        for store in self.stores:
            self.check(store)
        print("clients:", dict(sorted(self.did.items())))
        if not self.told:
            self.fail("nobody got an answer")
        return 1 if self.wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="invar-soak-") as folder:
        soak = Soak(Path(folder), given.clients, given.seed)
        try:
            return soak.run(given.minutes)
        finally:
            for store in soak.stores:
                store.close()


if __name__ == "__main__":
    sys.exit(main())
