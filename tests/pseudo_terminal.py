"""The built program on a pseudo-terminal, as a person sees it."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

from conftest import BIN


def on_terminal(*args, env, width=200, breaks=True):
    """-> (exit code, bytes) of the program with its standard streams on a terminal. breaks: line
    breaks become CR LF, as a terminal writes them; else they stay as the program writes them."""
    master, slave = pty.openpty()
    if not breaks:
        attributes = termios.tcgetattr(slave)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    command = [BIN] + [a if isinstance(a, bytes) else str(a) for a in args]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    out = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(master)
    return process.wait(), out
