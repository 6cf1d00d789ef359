"""A headless Chromium, driven through pipes (--remote-debugging-pipe): no server, no port, nothing
to install besides the browser."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    """The browser's program, or None. Ubuntu's is a snap, which opens no files of a test."""
    for name in ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome"):
        path = shutil.which(name)
        if path and b"/snap/" not in open(path, "rb").read(4096):
            return path
    return None


class Failed(Exception):
    pass


class Browser:
    """One page. evaluate() runs JavaScript in it, command() is the DevTools protocol."""

    def __init__(self, url, width=1000, height=1200):
        self.profile = tempfile.mkdtemp(prefix="invar-chromium-")
        here_in, there_out = os.pipe()
        there_in, here_out = os.pipe()

        def pipes():  # the browser reads from 3 and writes to 4
            os.dup2(there_in, 103), os.dup2(there_out, 104)
            os.dup2(103, 3), os.dup2(104, 4)
            os.close(103), os.close(104)

        self.process = subprocess.Popen(
            [
                find(),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={self.profile}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=pipes,
            close_fds=False,
        )
        os.close(there_in), os.close(there_out)
        self.read, self.write, self.buffer = here_in, here_out, b""
        self.number, self.session, self.events = 0, None, []
        target = next(
            one for one in self.command("Target.getTargets")["targetInfos"] if one["type"] == "page"
        )
        attached = self.command("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "DOM", "Network"):
            self.command(f"{domain}.enable")
        self.open(url)

    def open(self, url):
        """The page anew, whatever was open."""
        for address in ("about:blank", url):
            self.command("Page.navigate", url=address)
            self.wait(f"document.readyState === 'complete' && location.href === '{address}'")

    def receive(self, timeout):
        while b"\0" not in self.buffer:
            if not select.select([self.read], [], [], timeout)[0]:
                raise Failed("the browser does not answer")
            some = os.read(self.read, 1 << 20)
            if not some:
                raise Failed("the browser ended")
            self.buffer += some
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def command(self, method, timeout=120, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(timeout)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failed(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, script):
        done = self.command(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in done:
            raise Failed(json.dumps(done["exceptionDetails"]))
        return done["result"].get("value")

    def wait(self, condition, timeout=120):
        end = time.monotonic() + timeout
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise Failed(
                    f"not within {timeout} s: {condition}\n{self.evaluate('document.body.innerText')}"
                )
            time.sleep(0.05)

    def choose(self, selector, *paths):
        """Files, or one folder, for an input of files."""
        root = self.command("DOM.getDocument")["root"]["nodeId"]
        node = self.command("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.command("DOM.setFileInputFiles", nodeId=node, files=[str(p) for p in paths])

    def drop(self, *paths, x=400, y=300):
        data = {"items": [], "files": [str(p) for p in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.command("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def requests(self):
        """The addresses that the page asked the network for."""
        self.evaluate("0")
        sent = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [e["params"]["request"]["url"] for e in sent]

    def close(self):
        try:
            self.session = None
            self.command("Browser.close", timeout=10)
            self.process.wait(10)
        except (Failed, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.read), os.close(self.write)
        shutil.rmtree(self.profile, ignore_errors=True)
