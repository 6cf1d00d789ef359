"""The tokenizer under test as a process that answers requests (main.cc)."""

import array
import os
import struct
import subprocess
from pathlib import Path

BUILD = Path(os.environ.get("INVAR_BUILD", Path(__file__).resolve().parents[2] / "build"))
PROGRAM = BUILD / "bin/invar_tokenize"


class Ours:
    def __init__(self, path):
        self.process = subprocess.Popen(
            [PROGRAM, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, what, payload):
        """The error code of the answer, and its content."""
        self.process.stdin.write(what + struct.pack("<I", len(payload)) + payload)
        self.process.stdin.flush()
        head = self.process.stdout.read(5)
        assert len(head) == 5, "invar_tokenize has ended"
        code, length = struct.unpack("<BI", head)
        return code, self.process.stdout.read(length)

    def answer(self, what, payload):
        code, answer = self.ask(what, payload)
        assert code == 0, answer
        return answer

    def encode(self, text, special=True):
        return array.array("i", self.answer(b"e" if special else b"E", text.encode())).tolist()

    def decode(self, ids, how=b"d"):
        return self.answer(how, array.array("i", ids).tobytes()).decode()

    def seconds(self, what, payloads):
        """The time that the program needs for each payload in turn, without the pipe."""
        body = b"".join(struct.pack("<I", len(p)) + p for p in payloads)
        return struct.unpack("<d", self.answer(what, body))[0]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
        self.process.stdout.close()
