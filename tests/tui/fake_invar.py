#!/usr/bin/env python3
"""Stands for `invar` in tests of invar-tui: prints events of --progress json that the real program
prints only when something is odd. The prompt says which (SCRIPTS)."""

import json
import signal
import sys
import time


def event(**members):
    print(json.dumps(members), file=sys.stderr, flush=True)


def phase(name, state, **members):
    event(event="phase", phase=name, state=state, **members)


def odd():
    """Text that a terminal would obey, wide characters, lines that are no events, unknown events."""
    print("a line that is no event: \x1b[2J\x1b]0;title\x07", file=sys.stderr, flush=True)
    print('{"event":"tomorrow","of":["another","version"]}', file=sys.stderr, flush=True)
    print('{"event":"phase","phase":"prefill","state":"running","done":"many","total":[]}', file=sys.stderr)
    print('{"event":"text","prompt":0,"text":17}\n[]\n{"event":', file=sys.stderr, flush=True)
    phase("prefill", "running", done=5, total=10, unit="tokens")
    event(event="text", prompt=0, text="\x1b[31mred\x1b[0m \u202eturned 日本語 e\u0301 \U0001f600\n")
    event(event="text", prompt=0, text="word " * 60 + "\n" + "long" * 60 + "\nthe last line")


def forever():
    """Ends when it is told to, as `invar` does: SIGINT, one line, exit code 130."""

    def told(*_):
        event(event="error", code=130, kind="interrupted", message="interrupted", hint="")
        sys.exit(130)

    signal.signal(signal.SIGINT, told)
    phase("prefill", "done", done=4, total=4, unit="tokens", ms=3.5)
    for i in range(100000):
        phase("decode", "running", done=i, total=100000, unit="tokens")
        event(event="text", prompt=0, text=f"t{i} ")
        time.sleep(0.01)


def deaf():
    """Does not end by SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    phase("decode", "running", done=1, total=2, unit="tokens")
    time.sleep(600)


def flood():
    """Much output at once."""
    for i in range(20000):
        event(event="text", prompt=0, text=f"line {i} of the flood\n")
        print(f"log {i}", file=sys.stderr)


def refused():
    event(event="error", code=3, kind="not covered", message="rope: this scaling is not covered", hint="see models")
    sys.exit(3)


def crash():
    phase("load", "started")
    signal.raise_signal(signal.SIGSEGV)


SCRIPTS = {f.__name__: f for f in (odd, forever, deaf, flood, refused, crash)}


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "cache":
        print(json.dumps({"models": [{"name": "acme/tiny", "revision": "ab", "bytes": 8400000}]}))
        return
    SCRIPTS[arguments[arguments.index("--prompt-text") + 1]]()


main()
