#!/usr/bin/env python3
"""A server under load and faults: soak.py [--minutes 30] [--clients 12] [--seed 1]

Clients ask, stream, leave in every phase, read slowly, and send what is no request. Meanwhile the
disk is full, the store is gone, and the server is ended by SIGTERM and by kill -9. At the end every
receipt that a client was told of is in the store, once, with the bytes that it has alone, and the
memory of the server has not grown. Prints a line a life of the server, and exits
with 1 where something is wrong. INVAR_BIN: the program."""

import argparse
import http.client
import json
import random
import resource
import socket
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from conftest import MODEL  # noqa: E402
from server import Server, events_of  # noqa: E402

GROWTH = 48 << 20  # bytes that a life may add: receipts that wait, and what the allocator keeps
NONSENSE = [
    b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 100000,
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000000\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3;" + b"a" * 200000,
]


def bodies():
    chance = random.Random(7)
    for i in range(24):
        body = {"prompt": chance.choice(["ROMEO:", "KING", "the love"]) + f" {i}", "seed": i}
        body |= {"max_tokens": chance.randint(1, 40), "temperature": chance.choice([0, 0.7, 1.2])}
        if i % 6 == 1:
            body["n"] = 2
        if i % 6 == 2:
            body["stop"] = ["\n"]
        if i % 6 == 3:
            body["logprobs"] = 2
        yield body


class Soak:
    def __init__(self, folder, clients, seed):
        self.folder, self.clients, self.seed = folder, clients, seed
        self.store = folder / "store.db"
        self.bodies = list(bodies())
        self.expected = []  # names of each body's receipts
        self.texts = {}  # name -> the receipt's bytes
        self.told = []  # (request id, receipts)
        self.wrong, self.did = [], Counter()
        self.lock, self.stopping = threading.Lock(), False
        self.server = None

    def start(self, *options):
        store = ["--store", self.store, "--store-prompts", "--log", "none", "--context", 512]
        return Server(MODEL, self.folder / "tasks", None, *store, "--batch-size", 8, *options)

    def learn(self):
        """The receipts that each request has alone, from a store that is not the one of the
        test."""
        server = Server(
            *(MODEL, self.folder / "tasks", self.folder / "alone", "--log", "none"),
            *("--context", 512, "--batch-size", 1),
        )
        for body in self.bodies:
            names = server.complete(body)["invar"]["receipts"]
            self.expected.append(names)
            self.texts |= {name: server.receipt(name).decode() for name in names}
        server.stop()

    def fail(self, what):
        with self.lock:
            self.wrong.append(what)

    # --- what a client does -----------------------------------------------------------------------

    def raw(self, i, **more):
        text = json.dumps({**self.bodies[i], **more}).encode()
        head = (
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        )
        return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text

    def ask(self, server, chance, number):
        i = chance.randrange(len(self.bodies))
        stream = chance.random() < 0.5
        name = f"r{number}"
        response = server.open(
            "/v1/completions", {**self.bodies[i], "stream": stream}, {"x-request-id": name}
        )
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
            got = json.loads(events[-2])["invar"]["receipts"]
        else:
            got = json.loads(text)["invar"]["receipts"]
        if got != self.expected[i]:
            self.fail(f"{name}: another receipt than alone")
        with self.lock:
            self.told.append((name, got))
        return "answered"

    def leave(self, server, chance, number):
        """In one of the phases: connected, in the header, in the body, asked, in the stream."""
        raw = self.raw(chance.randrange(len(self.bodies)), stream=True, max_tokens=400)
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
            s.sendall(self.raw(chance.randrange(len(self.bodies)), stream=True, logprobs=20))
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

    def limit(self, most):
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, most)

    def trouble(self):
        """A full disk, then a store that is not there."""
        size = self.store.stat().st_size // 2
        self.limit((size, resource.RLIM_INFINITY))
        time.sleep(2)
        self.limit((resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        time.sleep(2)
        away = self.store.with_suffix(".away")
        self.store.rename(away)
        time.sleep(2)
        away.rename(self.store)

    def live(self, seconds, policy, end):
        self.server = self.start("--store-failure", policy, "--drain-timeout", 20)
        begun = time.monotonic()
        time.sleep(seconds / 3)
        before = self.memory()
        self.trouble()
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
            f"{policy:8} {end:4}  {after >> 20} MiB ({(after - before) / 2**20:+.1f}), "
            f"{len(self.told)} answers",
            flush=True,
        )
        if after - before > GROWTH:
            self.fail(f"the memory grew from {before} to {after}")

    def check(self):
        with sqlite3.connect(self.store) as database:
            receipts = dict(database.execute("SELECT id, text FROM receipts"))
            kept = Counter(
                database.execute("SELECT request, receipt, choice FROM requests WHERE status = 200")
            )
        for name, text in receipts.items():
            if name in self.texts and self.texts[name] != text:
                self.fail(f"receipt {name} has other bytes than alone")
        for request, names in self.told:
            for choice, name in enumerate(names):
                if name not in receipts:
                    self.fail(f"{request}: the receipt {name} is lost")
                if kept[(request, name, choice)] != 1:
                    self.fail(
                        f"{request}: {kept[(request, name, choice)]} records of choice {choice}"
                    )

    def run(self, minutes):
        self.learn()
        threads = [threading.Thread(target=self.client, args=(i,)) for i in range(self.clients)]
        for thread in threads:
            thread.start()
        ways = [(p, e) for e in ("kill", "term") for p in ("refuse", "continue")]
        try:
            for policy, end in ways:
                self.live(minutes * 60 / len(ways), policy, end)
        finally:
            self.stopping = True
            for thread in threads:
                thread.join()
        self.check()
        print("clients:", dict(sorted(self.did.items())))
        if not self.told:
            self.fail("nobody got an answer")
        for what in self.wrong[:20]:
            print("WRONG:", what)
        return 1 if self.wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="invar-soak-") as folder:
        return Soak(Path(folder), given.clients, given.seed).run(given.minutes)


if __name__ == "__main__":
    sys.exit(main())
