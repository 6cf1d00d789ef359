"""A server of PostgreSQL for tests, of Debian's package."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path


def programs():
    """The folder of initdb and pg_ctl; None: they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[4]))
    return found[-1].parent if found else None


class Postgresql:
    """A server of its own on a free port of the loopback address. PostgreSQL refuses root, which
    becomes its own user in a name space, or else in earnest."""

    def __init__(self):
        self.bin = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="invar-postgresql-"))
        self.prefix = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            self.prefix = ["unshare", "--user", f"--map-user={user.pw_uid}"]
            if subprocess.run([*self.prefix, "true"], capture_output=True).returncode:
                os.chown(self.folder, user.pw_uid, user.pw_gid)
                self.prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}"]
                self.prefix += ["--clear-groups"]
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.data = self.folder / "data"
        self._run("initdb", "-U", "invar", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.url = f"postgresql://invar@127.0.0.1:{self.port}/postgres"
        self.start()

    def _run(self, program, *options):
        command = [*self.prefix, self.bin / program, "-D", self.data, *options]
        log = self.folder / "output"
        with open(log, "ab") as output:  # a server that inherits a pipe keeps it open
            code = subprocess.run(
                [str(c) for c in command], stdout=output, stderr=output, cwd="/"
            ).returncode
        assert code == 0, log.read_text(errors="replace")

    def start(self):
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder} -F"
        self._run("pg_ctl", "start", "-w", "-s", "-l", self.folder / "log", "-o", options)

    def stop(self):
        self._run("pg_ctl", "stop", "-m", "immediate", "-s")

    def query(self, text):
        """The lines of psql's answer."""
        done = subprocess.run(
            [self.bin / "psql", "-X", "-A", "-t", self.url, "-c", text],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    def close(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
