"""A server of the program under test, and a client of the standard library."""

import http.client
import json
import os
import re
import signal
import subprocess
import threading

from conftest import BIN


class Server:
    """`invar serve` on a free port. `lines`: what it says on standard error. `receipts`: their
    folder, or None where options say where they go."""

    def __init__(self, model, tasks, receipts, *options, environment=None):
        command = [BIN, "serve", "--model-name", model, "--tasks-root", tasks, "--port", "0"]
        command += ["--receipts", receipts] if receipts else []
        self.process = subprocess.Popen(
            [str(c) for c in [*command, *options]],
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env=os.environ | (environment or {}),
        )
        self.lines, self.receipts = [], receipts
        self.port = None
        for line in self.process.stderr:
            self.lines.append(line.decode())
            if found := re.search(r"http://[^ ]*:(\d+)/v1", self.lines[-1]):
                self.port = int(found[1])
                break
        assert self.port, "".join(self.lines)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.decode())

    def stop(self, number=signal.SIGTERM, patience=60):
        """The exit code."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        code = self.process.wait(patience)
        self.reader.join(patience)
        return code

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def open(self, path, body=None, headers=None):
        """The response to a request, which is yet to be read."""
        connection = self.connect()
        method, given = ("GET", None) if body is None else ("POST", body)
        if given is not None and not isinstance(given, bytes):
            given = json.dumps(given).encode()
        headers = (
            {"Content-Type": "application/json", **(headers or {})} if given else headers or {}
        )
        connection.request(method, path, given, headers)
        response = connection.getresponse()
        response.connection = connection  # closing it is the end of the client
        return response

    def ask(self, path, body=None, status=200, headers=None):
        """The JSON of an answer."""
        response = self.open(path, body, headers)
        text = response.read()
        assert response.status == status, (response.status, text)
        return json.loads(text)

    def complete(self, body, chat=False):
        return self.ask("/v1/chat/completions" if chat else "/v1/completions", body)

    def stream(self, body, chat=False):
        """The events of a stream as objects, without the last one."""
        path = "/v1/chat/completions" if chat else "/v1/completions"
        response = self.open(path, {**body, "stream": True})
        assert response.status == 200, response.read()
        events = events_of(response.read().decode())
        assert events[-1] == "[DONE]"
        return [json.loads(e) for e in events[:-1]]

    def receipt(self, name):
        return (self.receipts / f"{name}.json").read_bytes()

    def metric(self, name):
        response = self.open("/metrics")
        found = re.search(rf"^invar_{name} (\S+)$", response.read().decode(), re.M)
        return float(found[1])


def events_of(text):
    """The data of server-sent events; comments are left out."""
    parts = [p for p in text.split("\n\n") if p and not p.startswith(":")]
    assert all(p.startswith("data: ") for p in parts), text
    return [p.removeprefix("data: ") for p in parts]
