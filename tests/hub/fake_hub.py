"""A Hugging Face hub on loopback with one model, and a storage server behind it: the answers that
the real one gives, and faults on demand. HTTP of the standard library alone."""

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "5f0e8b1c2a3d4e5f60718293a4b5c6d7e8f90a1b"
LARGE = 100_000  # bytes from which on a file is stored by its SHA-256, as git LFS does


def git_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def digest(content):
    return hashlib.sha256(content).hexdigest() if len(content) >= LARGE else git_sha1(content)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.serve(body=False)

    def do_GET(self):
        self.serve(body=True)

    def serve(self, body):
        hub = self.server.hub
        path = unquote(urlsplit(self.path).path)
        with hub.guard:
            hub.log.append((self.server.name, self.command, path, dict(self.headers)))
            queue = hub.faults.get((self.server.name, path.rsplit("/", 1)[-1]), [])
            fault = queue.pop(0) if queue else None
        if fault:
            fault(self)
        elif self.server.name == "storage":
            self.content(hub.by_digest[path.rsplit("/", 1)[-1]])
        else:
            self.hub_answer(hub, path, body)

    def hub_answer(self, hub, path, body):
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        wanted = api or file
        if not wanted or wanted[1] != hub.model:
            return self.refuse(401, "RepoNotFound")
        if wanted[2] not in (*hub.branches, hub.commit):
            return self.refuse(404, "RevisionNotFound")
        if api:
            return self.send(hub.listing())
        if file[3] not in hub.files:
            return self.refuse(404, "EntryNotFound")
        content = hub.files[file[3]]
        headers = {"X-Repo-Commit": hub.commit}
        if len(content) < LARGE:
            return self.content(content, {**headers, "ETag": f'"{digest(content)}"'}, body)
        headers |= {"X-Linked-Etag": f'"{digest(content)}"', "X-Linked-Size": str(len(content))}
        headers["Location"] = f"{hub.storage_url}/blobs/{digest(content)}"
        self.send(b"Found. Redirecting", 302, headers, body)

    def content(self, content, headers=None, body=True):
        """As a server that knows ranges."""
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if not wanted:
            return self.send(content, 200, headers, body)
        begin = int(wanted[1])
        where = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        self.send(content[begin:], 206, {**(headers or {}), "Content-Range": where}, body)

    def send(self, content, status=200, headers=None, body=True):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def refuse(self, status, code=None, headers=None, text=b"no"):
        self.send(text, status, {**({"X-Error-Code": code} if code else {}), **(headers or {})})

    def cut(self, content, after):
        """All headers and `after` bytes of the body (of what a range asks for), then the end."""
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        begin = int(wanted[1]) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(content) - begin))
        if wanted:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(content[begin : begin + after])
        self.wfile.flush()
        self.close_connection = True


class FakeHub:
    def __init__(self, files, model="org/tiny", commit=COMMIT):
        self.files, self.model, self.commit = dict(files), model, commit
        self.branches = ["main"]
        self.siblings = None  # instead of those of the files
        self.log, self.faults, self.guard = [], {}, threading.Lock()
        self.servers = []
        self.url, self.storage_url = self.start("hub"), self.start("storage")

    def start(self, name):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.hub, server.name = self, name
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def use_tls(self, name, context):
        """The server `name` speaks TLS from now on."""
        server = next(s for s in self.servers if s.name == name)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        if name == "hub":
            self.url = self.url.replace("http:", "https:")
        else:
            self.storage_url = self.storage_url.replace("http:", "https:")

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    @property
    def by_digest(self):
        return {digest(c): c for c in self.files.values()}

    def listing(self):
        siblings = []
        for path, content in self.files.items():
            entry = {"rfilename": path, "size": len(content), "blobId": git_sha1(content)}
            if len(content) >= LARGE:
                entry["lfs"] = {"sha256": digest(content), "size": len(content), "pointerSize": 134}
            siblings.append(entry)
        shown = siblings if self.siblings is None else self.siblings
        return json.dumps({"id": self.model, "sha": self.commit, "siblings": shown}).encode()

    def fail(self, name, *faults, server="hub"):
        """The next requests for a path whose last part is `name` get these answers, then the right
        one again. A large file's name at the storage server is its digest."""
        if server == "storage":
            name = digest(self.files[name])
        self.faults.setdefault((server, name), []).extend(faults)

    def requests(self, part, server="hub"):
        return [entry for entry in self.log if entry[0] == server and part in entry[2]]
