"""invar-tui in a terminal of tmux: keys go in, the screen is looked at until it shows what a test
waits for."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from conftest import BUILD

PROGRAM = BUILD / "bin/invar-tui"
PATIENCE = 120  # seconds, for what takes milliseconds on a machine that is not busy


class Terminal:
    def __init__(self, folder, *arguments, size=(80, 24), **environment):
        # A socket of its own: tests that run side by side see nothing of each other.
        self.socket = str(folder / "tmux.sock")
        self.log = folder / "end"
        settings = {
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "PS1": "",
            **environment,
        }
        wanted = " ".join(f"{name}='{value}'" for name, value in settings.items())
        # What is left when the program has ended: its exit code and the terminal's settings.
        script = (
            f"cd '{folder}'; env -u NO_COLOR {wanted} '{PROGRAM}' "
            + " ".join(f"'{a}'" for a in arguments)
            + f"; echo \"rc=$?\" >'{self.log}'; stty -a >>'{self.log}'; echo end >>'{self.log}'"
            + "; exec sleep 1000"
        )
        self.tmux("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "-s", "t", script)

    def tmux(self, *arguments):
        command = ["tmux", "-u", "-f", "/dev/null", "-S", self.socket, *arguments]
        environment = {k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR")}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return done.stdout

    def screen(self, colours=False):
        return self.tmux("capture-pane", "-p", *(["-e", "-N"] if colours else []), "-t", "t")

    def keys(self, *names):
        """Names of tmux: Enter, F5, C-c."""
        self.tmux("send-keys", "-t", "t", *names)

    def type(self, text):
        self.tmux("send-keys", "-t", "t", "-l", text)

    def wait(self, *texts, gone=()):
        """The screen, once it shows all of the texts and none of those that are `gone`."""
        end = time.monotonic() + PATIENCE
        while True:
            screen = self.screen()
            if all(t in screen for t in texts) and not any(t in screen for t in gone):
                return screen
            assert time.monotonic() < end, f"not {texts} (gone: {gone}) on the screen:\n{screen}"
            time.sleep(0.03)

    def resize(self, width, height):
        self.tmux("resize-window", "-t", "t", "-x", str(width), "-y", str(height))

    def press(self, x, y):
        """The left button at a column and a row from 0, as terminals named screen report it."""
        at = chr(33 + x) + chr(33 + y)
        self.type(f"\x1b[M {at}\x1b[M#{at}")

    def pid(self):
        shell = self.tmux("list-panes", "-t", "t", "-F", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def ended(self):
        """The exit code, and whether the terminal is as before; once the program has ended."""
        end = time.monotonic() + PATIENCE
        while True:
            text = self.log.read_text() if self.log.exists() else ""
            if text.endswith("end\n"):
                return int(text.split("rc=")[1].split()[0]), " echo " in text and " icanon" in text
            assert time.monotonic() < end, f"still there:\n{self.screen()}\n{text}"
            time.sleep(0.03)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)


def missing():
    """Why the tests of the terminal cannot run, or ""."""
    if not PROGRAM.exists():
        return "this build has no invar-tui"
    if shutil.which("tmux") is None:
        return "no tmux"
    return ""
