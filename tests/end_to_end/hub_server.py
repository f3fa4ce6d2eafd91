"""A local server with the paths of the Hugging Face hub, and faults on request.

It has `GET /api/models/NAME/revision/REV`, `/api/models/NAME/tree/COMMIT`, and HEAD and GET of
`/NAME/resolve/COMMIT/FILE`. Large files are redirected to /cdn/SHA256 on another host (localhost instead of
127.0.0.1). Other paths are served from `files`.
"""
import hashlib
import http.server
import json
import re
import ssl
import threading
import urllib.parse


def git_blob_id(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Repository:
    """The commits of a model, each a dict of files. `main` is the last one."""

    def __init__(self, *commits):
        self.commits = {hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest(): files
                        for files in commits}
        self.refs = {"main": list(self.commits)[-1]}
        self.token = None    # required for reading, unless None
        self.gated = False

    @property
    def head(self):
        return self.refs["main"]


def is_large(name):
    return name.endswith((".safetensors", ".bin"))


class QuietServer(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass    # the client was killed


class HubServer:
    def __init__(self, certificate=None):
        """With `certificate`, a file with a certificate and its key, the server uses TLS."""
        self.models = {}
        self.moved = {}       # old name -> new name
        self.files = {}       # path -> content
        self.faults = {}      # path -> list of faults, each for one GET of a file's content
        self.requests = []    # (method, path, headers)
        self.sent = 0         # sent bytes of files
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.go = threading.Event()     # ends the fault ("hold", bytes)
        server = QuietServer(("127.0.0.1", 0), self.handler())
        server.daemon_threads = True
        self.server = server
        self.port = server.server_address[1]
        self.scheme = "https" if certificate else "http"
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()

    def add(self, name, *commits):
        self.models[name] = Repository(*commits)
        return self.models[name]

    def paths(self, method="GET"):
        return [path for each, path, _ in self.requests if each == method]

    def forget(self):
        self.requests, self.sent = [], 0

    def handler(hub):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer()

            def do_GET(self):
                self.answer()

            def answer(self):
                path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
                with hub.lock:
                    hub.requests.append((self.command, path, dict(self.headers)))
                try:
                    self.route(path)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def route(self, path):
                for pattern, found in ((r"/api/models/(.+)/revision/(.+)", self.revision),
                                       (r"/api/models/(.+)/tree/([0-9a-f]+)", self.tree),
                                       (r"/(.+)/resolve/([^/]+)/(.+)", self.resolve)):
                    match = re.fullmatch(pattern, path)
                    if match:
                        return self.of_model(found, *match.groups())
                if path in hub.files:
                    return self.file(path, hub.files[path], {})
                return self.refuse(404)

            def of_model(self, found, name, *rest):
                fault = None
                if found != self.resolve:
                    fault = self.fault(self.path.split("?")[0])
                if fault and fault[0] == "status":
                    return self.refuse(*fault[1:])
                if fault and fault[0] == "loop":
                    return self.redirect(self.path)
                if fault and fault[0] == "rubbish":
                    return self.send(200, b"<html>Log in to the hotel's network</html>", {})
                if name in hub.moved:
                    return self.redirect(self.path.replace(name, hub.moved[name], 1))
                model = hub.models.get(name)
                if model is None:
                    return self.refuse(401, "RepoNotFound", "Invalid username or password.")
                if model.token and self.headers.get("Authorization") != f"Bearer {model.token}":
                    if model.gated:
                        return self.refuse(401, "GatedRepo", f"Access to model {name} is restricted.")
                    return self.refuse(401, "RepoNotFound", "Invalid username or password.")
                return found(model, *rest)

            def fault(self, path):
                with hub.lock:
                    faults = hub.faults.get(path)
                    return faults.pop(0) if faults else None

            def redirect(self, to):
                self.send(307, b"", {"Location": to})

            def refuse(self, status, code="", message="", headers=None):
                words = dict(headers or {})
                if code:
                    words["X-Error-Code"] = code
                if message:
                    words["X-Error-Message"] = message
                self.send(status, b'{"error": "no"}', words)

            def send(self, status, body, headers):
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def json(self, value, headers=None):
                self.send(200, json.dumps(value).encode(),
                          {"Content-Type": "application/json"} | (headers or {}))

            def revision(self, model, revision):
                commit = model.refs.get(revision) or next(
                    (each for each in model.commits if each.startswith(revision)), None)
                if commit is None:
                    return self.refuse(404, "RevisionNotFound", "Invalid rev id")
                name = next(name for name, each in hub.models.items() if each is model)
                self.json({"_id": "1", "id": name, "modelId": name, "sha": commit,
                           "private": False, "gated": False, "disabled": False, "tags": [],
                           "downloads": 0, "likes": 0, "lastModified": "2024-01-01T00:00:00.000Z",
                           "createdAt": "2022-03-02T23:29:04.000Z",
                           "siblings": [{"rfilename": file} for file in model.commits[commit]]})

            def tree(self, model, commit):
                if commit not in model.commits:
                    return self.refuse(404, "RevisionNotFound", "Invalid rev id")
                entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "onnx"}]
                for name, content in model.commits[commit].items():
                    entry = {"type": "file", "oid": git_blob_id(content), "size": len(content),
                             "path": name}
                    if is_large(name):
                        entry |= {"oid": git_blob_id(b"a pointer to " + name.encode()),
                                  "lfs": {"oid": sha256(content), "size": len(content),
                                          "pointerSize": 134}}
                    entries.append(entry)
                # Answers in two pages to test requests for the second.
                page = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("cursor")
                half = len(entries) // 2
                if page:
                    return self.json(entries[half:])
                self.json(entries[:half], {
                    "Link": f'<{hub.url}{self.path.split("?")[0]}?cursor=2>; rel="next"'})

            def resolve(self, model, revision, name):
                commit = model.refs.get(revision, revision)
                content = model.commits.get(commit, {}).get(name)
                if content is None:
                    return self.refuse(404, "EntryNotFound", "Entry not found")
                headers = {"X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
                if not is_large(name):
                    return self.file(self.path, content,
                                     headers | {"ETag": f'"{git_blob_id(content)}"'})
                hub.files[f"/cdn/{sha256(content)}"] = content
                self.send(302, b"Found. Redirecting", headers | {
                    "Location": f"{hub.scheme}://localhost:{hub.port}/cdn/{sha256(content)}",
                    "X-Linked-Size": str(len(content)), "X-Linked-Etag": f'"{sha256(content)}"'})

            def file(self, path, content, headers):
                fault = self.fault(path) if self.command == "GET" else None
                kind = fault[0] if fault else ""
                if kind == "status":
                    return self.refuse(*fault[1:])
                if kind == "drop":
                    self.close_connection = True
                    return
                if kind == "wrong":
                    content = content[:-1] + bytes([content[-1] ^ 1])
                begin, status = 0, 200
                wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
                if wanted and kind != "no range":
                    begin, status = int(wanted.group(1)), 206
                    if begin >= len(content):
                        return self.refuse(416)
                    headers = headers | {
                        "Content-Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"}
                part = content[begin:]
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(part)))
                self.end_headers()
                if self.command == "HEAD":
                    return
                if kind in ("short", "stall", "no range") and len(fault) > 1:
                    part = part[:fault[1]]
                pause = fault[1] if kind == "slow" else 0
                for at in range(0, len(part), 65536):
                    if kind == "hold" and at >= fault[1]:
                        while not hub.go.is_set() and not hub.closing.wait(0.01):
                            pass
                    self.wfile.write(part[at:at + 65536])
                    with hub.lock:
                        hub.sent += len(part[at:at + 65536])
                    if pause and hub.closing.wait(pause):
                        break
                if kind == "stall":
                    self.wfile.flush()
                    hub.closing.wait(60)
                if kind in ("short", "stall", "no range"):
                    self.close_connection = True
        return Handler
