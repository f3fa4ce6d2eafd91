#!/usr/bin/env python3
"""Tests petlab serve, which shows reports while a sweep runs. usage: serving.py FOLDER_OF_PROGRAMS"""
import gzip
import json
import pathlib
import re
import signal
import socket
import threading
import time

import tiny_world
from scripted_world import WORKER, ScriptedWorld


class Answer:
    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        self.text = self.body.decode(errors="replace")


class Events:
    """An open page, which reads server-sent events."""

    def __init__(self, connection):
        self.socket = connection
        self.data = b""
        self.last = {}  # the last event by kind

    def next(self, kind=None, seconds=60):
        end = time.monotonic() + seconds
        while True:
            while b"\n\n" in self.data:
                block, self.data = self.data.split(b"\n\n", 1)
                fields = dict(line.split(": ", 1) for line in block.decode().split("\n")
                              if ": " in line and not line.startswith(":"))
                if "event" in fields:
                    self.last[fields["event"]] = fields["data"]
                if "event" in fields and kind in (None, fields["event"]):
                    return fields["event"], fields["data"]
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            more = self.socket.recv(65536)
            if not more:
                raise AssertionError("the events ended")
            self.data += more

    def now(self, wanted, seconds=30):
        """Waits until the running trials contain the text, and returns them."""
        while True:
            html = json.loads(self.next("now", seconds)[1])
            if wanted in html:
                return html


class Serving(ScriptedWorld):
    def serve(self, *words, db="sweep.db"):
        process = self.start("serve", "--db", db, *(words if "--port" in words else
                                                    ("--port", "0", *words)))
        line = process.stdout.readline().decode()
        found = re.fullmatch(r"the reports of (\S+), live, until Ctrl-C: "
                             r"http://([^/:]+):(\d+)/(\S*)\n", line)
        self.assertTrue(found, f"{line}{process.stderr.read() if not line else ''}")
        process.port = int(found[3])
        process.query = found[4]
        process.host = found[2]
        return process

    def connect(self, server):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self.addCleanup(connection.close)
        return connection

    def send(self, server, text, read=True):
        connection = self.connect(server)
        try:
            connection.sendall(text if isinstance(text, bytes) else text.encode())
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server may close the connection early
        if not read:
            return connection
        data = b""
        try:
            while True:
                more = connection.recv(1 << 20)
                if not more:
                    break
                data += more
        except ConnectionResetError:
            pass
        connection.close()
        return Answer(data) if data else None

    def request(self, server, target="/", method="GET", body="", **headers):
        named = {"Host": f"127.0.0.1:{server.port}", "Connection": "close"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value is not None)
        return self.send(server, f"{method} {target} HTTP/1.1\r\n{head}\r\n{body}")

    def open_events(self, server):
        connection = self.send(server, f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}"
                               "\r\n\r\n", read=False)
        events = Events(connection)
        while b"\r\n\r\n" not in events.data:
            more = connection.recv(65536)
            self.assertTrue(more)
            events.data += more
        head, events.data = events.data.split(b"\r\n\r\n", 1)
        self.assertIn(b"200 OK", head)
        self.assertIn(b"text/event-stream", head)
        return events

    def finished_sweep(self):
        self.write_sweep({"steps": 3}, {"steps": 3})
        done = self.run_scripted()
        self.assertEqual(done.code, 0, done)

    def test_a_page_is_updated_cell_by_cell_while_a_sweep_runs(self):
        gate = self.root / "gate"
        self.write_sweep({"steps": 40, "gate": str(gate), "checkpoint_every": 30})
        run = self.start_scripted()
        self.until(lambda: (self.root / "sweep.db").exists() and
                   self.query("SELECT step FROM progress WHERE step >= 30"))
        server = self.serve()
        trial = self.query("SELECT trial_id FROM trials")[0]["trial_id"]
        first, second = self.open_events(server), self.open_events(server)
        html = first.now(f"<code>{trial[:8]}</code>")
        # The loss of a running trial.
        self.assertRegex(html, r'<progress max="40" value="30"')
        self.assertRegex(html, r'aria-label="loss from [\d.e-]+ at step 1 to [\d.e-]+ at step 30')
        self.assertEqual(len(re.search(r'<polyline points="([^"]*)"', html)[1].split()), 30)
        second.now(f"<code>{trial[:8]}</code>")
        tag = first.next("page")[1]
        self.assertEqual(second.next("page")[1], tag)
        before = self.request(server, "/main")
        self.assertEqual(before.headers["etag"], f'"{tag}"')
        self.assertIn("1 running", before.text)
        again = self.request(server, "/main", If_None_Match=f'"{tag}"')
        self.assertEqual((again.status, again.body), (304, b""))
        whole = self.request(server)
        self.assertIn(before.text, whole.text)
        self.assertTrue(whole.text.startswith("<!doctype html>"))
        self.assertIn("connect-src 'self'", whole.text)

        gate.touch()
        self.assertEqual(self.end(run).code, 0)
        for events in (first, second):
            events.now("Nothing runs now.")
        self.until(lambda: re.search(r'data-value="[\d.]+"', self.request(server, "/main").text))
        self.assertIn("1 of 1 trials done", self.request(server, "/main").text)
        for events in (first, second):
            # The page's event may have come before that of running trials, and was read with it.
            if events.last["page"] == tag:
                self.assertNotEqual(events.next("page")[1], tag)

    def test_a_trial_whose_run_dies_is_shown_as_interrupted(self):
        gate = self.root / "gate"
        self.write_sweep({"steps": 40, "gate": str(gate), "checkpoint_every": 30})
        run = self.start_scripted()
        self.until(lambda: (self.root / "sweep.db").exists() and
                   self.query("SELECT step FROM progress WHERE step >= 30"))
        server = self.serve()
        trial = self.query("SELECT trial_id FROM trials")[0]["trial_id"]
        events = self.open_events(server)
        events.now(f"<code>{trial[:8]}</code>")
        self.until(lambda: "1 running" in self.request(server, "/main").text)
        # No process writes this to the database.
        run.send_signal(signal.SIGKILL)
        self.end(run)
        events.now("Nothing runs now.")
        self.until(lambda: "1 interrupted" in self.request(server, "/main").text)

    def test_history_shows_the_loss_of_a_running_trial(self):
        gate = self.root / "gate"
        self.write_sweep({"steps": 9, "gate": str(gate), "checkpoint_every": 5, "metrics": 0})
        run = self.start_scripted()
        self.until(lambda: (self.root / "sweep.db").exists() and
                   self.query("SELECT step FROM progress WHERE step >= 5"))
        trial = self.query("SELECT trial_id FROM trials")[0]["trial_id"]

        def losses(*words):
            done = self.petlab("history", trial, "--db", "sweep.db", "--format", "jsonl", *words)
            self.assertEqual(done.code, 0, done)
            return [json.loads(line) for line in done.out.splitlines()]
        rows = losses("--metric", "loss")
        self.assertEqual([row["step"] for row in rows], [1, 2, 3, 4, 5])
        self.assertEqual({row["split"] for row in rows}, {"progress"})
        self.assertEqual(losses("--split", "progress"), rows)
        curve = self.petlab("report", "curve", "--x", "step", "--y", "loss", "--db", "sweep.db",
                            "--format", "json")
        self.assertEqual(curve.code, 0, curve)
        figure, = json.loads(curve.out)["sections"]
        self.assertEqual(len(figure["rows"]), 5)
        gate.touch()
        self.assertEqual(self.end(run).code, 0)
        self.assertEqual(len(losses("--split", "progress")), 9)
        # A rebuild from the runs folder gives the same.
        points = self.query("SELECT place, step, steps, reports, loss FROM loss_points")
        done = self.petlab("db", "rebuild", "--db", "anew.db", "--runs", "sweep.runs")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query("SELECT place, step, steps, reports, loss FROM loss_points",
                                    "anew.db"), points)

    def test_pages_are_compressed_for_clients_that_support_it(self):
        self.finished_sweep()
        server = self.serve()
        for target in ("/", "/main"):
            plain = self.request(server, target)
            packed = self.request(server, target, Accept_Encoding="gzip, deflate, br")
            self.assertEqual(gzip.decompress(packed.body), plain.body)
            self.assertLess(len(packed.body), len(plain.body) / 2)
            self.assertNotIn("content-encoding", plain.headers)
            self.assertEqual(packed.headers["content-encoding"], "gzip")
            tags = {answer.headers["etag"] for answer in (plain, packed)}
            self.assertEqual(len(tags), 2)
            for answer, accepted in ((plain, None), (packed, "gzip")):
                self.assertEqual(answer.headers["vary"], "accept-encoding")
                for tag in tags:
                    again = self.request(server, target, If_None_Match=tag, Accept_Encoding=accepted)
                    own = tag == answer.headers["etag"]
                    self.assertEqual((again.status, again.body), (304, b"") if own
                                     else (200, answer.body))
            refused = self.request(server, target, Accept_Encoding="br, gzip;q=0")
            self.assertEqual(refused.body, plain.body)

    def test_only_allowed_hosts_are_answered(self):
        self.finished_sweep()
        server = self.serve()
        port = server.port
        self.assertEqual((server.host, server.query), ("127.0.0.1", ""))
        good = self.request(server)
        self.assertEqual(good.status, 200)
        self.assertNotIn("access-control-allow-origin", good.headers)
        self.assertEqual(good.headers["cross-origin-resource-policy"], "same-origin")
        self.assertEqual(good.headers["x-content-type-options"], "nosniff")
        self.assertEqual(good.headers["x-frame-options"], "DENY".lower())
        for host in (f"localhost:{port}", "127.0.0.1", "[::1]:1"):
            self.assertEqual(self.request(server, Host=host).status, 200, host)
        for host in ("evil.example", f"evil.example:{port}", "", "10.0.0.1", None):
            self.assertEqual(self.request(server, Host=host).status, 403, host)
        for target in ("/", "/main", "/events"):
            for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"},
                            {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors"}):
                refused = self.request(server, target, **headers)
                self.assertEqual(refused.status, 403, (target, headers))
                self.assertNotIn("scripted", refused.text)
        self.assertEqual(self.request(server, "/main",
                                      Origin=f"http://127.0.0.1:{port}").status, 200)

    def test_a_token(self):
        self.finished_sweep()
        for words, host in (["--token"], "127.0.0.1"), (["--host", "0.0.0.0"], None):
            server = self.serve(*words)
            if host:
                self.assertEqual(server.host, host)
            token = re.fullmatch(r"\?token=([0-9a-f]{32})", server.query)[1]
            for target in ("/", "/main", "/events", "/?token=0", f"/?token={token[:-1]}"):
                self.assertEqual(self.request(server, target).status, 403, target)
            entered = self.request(server, f"/?token={token}")
            self.assertEqual((entered.status, entered.headers["location"]), (303, "/"))
            cookie = entered.headers["set-cookie"]
            self.assertIn("httponly; samesite=lax", cookie)
            self.assertEqual(self.request(server, Cookie=cookie.split(";")[0]).status, 200)
            self.assertEqual(self.request(server, Authorization=f"Bearer {token}").status, 200)

    def test_only_the_reports_are_served(self):
        self.finished_sweep()
        server = self.serve()
        for target in ("/sweep.db", "/../sweep.db", "/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd",
                       "//etc/passwd", "/main/", "/page.js", "*", "file:///etc/passwd",
                       "http://127.0.0.1/", "/main\x00"):
            answer = self.request(server, target)
            self.assertIn(answer.status, (400, 404), target)
            self.assertNotIn("root:", answer.text)
            self.assertNotIn("SQLite", answer.text)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "x"):
            self.assertIn(self.request(server, method=method).status, (400, 405), method)
        self.assertEqual(self.request(server, method="HEAD").body, b"")
        self.assertEqual(self.request(server, "/favicon.ico").status, 204)

    def test_garbage_and_huge_requests(self):
        self.finished_sweep()
        server = self.serve()
        host = f"Host: 127.0.0.1:{server.port}\r\n"

        def memory():
            status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
            return int(re.search(r"VmRSS:\s*(\d+)", status)[1])
        self.assertEqual(self.request(server).status, 200)
        before = memory()
        huge = 8 << 20
        for text, statuses in [
                ("\r\n" * 3, (400, None)),
                ("\x16\x03\x01\x02" * 20, (400, None)),
                ("GET / HTTP/9.9\r\n\r\n", (400,)),
                ("GET /" + "a" * huge, (431, 400, None)),
                ("a" * huge, (431, 400, None)),
                (f"GET / HTTP/1.1\r\n{host}X: " + "b" * huge, (431, None)),
                (f"GET / HTTP/1.1\r\n{host}" + "X: y\r\n" * (huge // 6), (431, None)),
                (f"GET / HTTP/1.1\r\n{host}Content-Length: {huge}\r\n\r\n" + "c" * huge, (413, None)),
                (f"GET / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\nff\r\n", (413,)),
                (f"POST / HTTP/1.1\r\n{host}Content-Length: 3\r\n\r\nabc", (413, 405)),
                (f"GET / HTTP/1.1\r\n{host}Content-Length: 99999999999999999999\r\n\r\n", (400,))]:
            answer = self.send(server, text)
            self.assertIn(answer.status if answer else None, statuses, text[:60])
            self.assertEqual(self.request(server).status, 200)
        self.assertLess(memory() - before, 4 << 10)
        # Several requests on one connection, sent together.
        one = f"GET /main HTTP/1.1\r\n{host}\r\n"
        connection = self.send(server, one * 3 + one.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"),
                               read=False)
        data = b""
        while more := connection.recv(1 << 16):
            data += more
        self.assertEqual(data.count(b"HTTP/1.1 200 OK"), 4)

    def test_many_readers_and_slow_ones(self):
        self.finished_sweep()
        server = self.serve()
        live = [self.open_events(server) for _ in range(64)]
        # Clients that send a request, or a part of it, and then do nothing.
        slow = [self.send(server, f"GET / HTTP/1.1\r\nHost: localhost\r\n{end}", read=False)
                for end in ["\r\n" * 20, ""] * 20]
        statuses = []

        def ask():
            statuses.append(self.request(server).status)
        threads = [threading.Thread(target=ask) for _ in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(statuses, [200] * 200)
        for events in live:
            events.next("page")
        self.assertEqual(self.request(server, "/main").status, 200)
        more = [self.open_events(server) for _ in range(128 - len(live))]
        self.assertEqual(self.request(server, "/events").status, 503)
        for events in more + live[:10]:
            events.socket.close()
        self.until(lambda: Answer(self.first_bytes(server)).status == 200)
        self.assertEqual(len(slow), 40)

    def first_bytes(self, server):
        connection = self.send(server, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False)
        data = connection.recv(4096)
        connection.close()
        return data

    def test_ctrl_c_ends_it_immediately_with_open_connections(self):
        self.finished_sweep()
        for how in (signal.SIGINT, signal.SIGTERM):
            server = self.serve()
            opened = [self.open_events(server) for _ in range(20)]
            opened += [self.send(server, "GET / HT", read=False) for _ in range(20)]
            began = time.monotonic()
            server.send_signal(how)
            done = self.end(server)
            self.assertLess(time.monotonic() - began, 5)
            self.assertEqual((done.code, done.out, done.err), (0, "", ""))
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", server.port)).close()

    def test_the_database_is_deleted_and_replaced_under_it(self):
        self.finished_sweep()
        server = self.serve()
        events = self.open_events(server)
        tag = events.next("page")[1]
        kept = self.root / "kept.db"
        (self.root / "sweep.db").rename(kept)
        self.assertIn('role="alert"', events.now("the database is gone"))
        # The open database can still be read.
        self.assertEqual(self.request(server).status, 200)
        (self.root / "sweep.db").write_bytes(b"no database at all" * 100)
        self.assertIn("sweep.db", events.now("sweep.db: "))
        (self.root / "sweep.db").unlink()
        self.write_sweep({"steps": 3}, {"steps": 3}, {"steps": 3}, name="other.yaml")
        done = self.end(self.start("run", "other.yaml", "--db", "sweep.db", "--runs", "other.runs",
                                   "--worker", WORKER))
        self.assertEqual(done.code, 0, done)
        events.now("Nothing runs now.")
        # The event may have come earlier, while the sweep was running.
        if events.last["page"] == tag:
            self.assertNotEqual(events.next("page")[1], tag)
        self.until(lambda: "3 of 3 trials done" in self.request(server, "/main").text)

    def test_named_reports_and_names_that_are_text(self):
        self.write("evil.yaml", tiny_world.SWEEP.replace("sweep: tiny", "sweep: '<script>alert(1)'")
                   + "variants:\n  '<b onclick=x>&\"': {user: {steps: 2}}\n")
        done = self.end(self.start("run", "evil.yaml", "--db", "sweep.db", "--worker", WORKER))
        self.assertEqual(done.code, 0, done)
        page = self.request(self.serve()).text
        self.assertIn("&lt;b onclick=x&gt;&amp;", page)
        self.assertNotIn("<b onclick", page)
        self.assertNotIn("<script>alert", page)
        self.write("mine.yaml", "report: mine\ntable:\n  rows: [{each: seed}]\n"
                   "  columns: [{key: bits, value: bls_bits}]\n")
        page = self.request(self.serve("mine.yaml")).text
        self.assertIn("<h1>mine</h1>", page)

    def test_problems_are_reported_in_one_line(self):
        none = self.petlab("serve")
        self.assertEqual((none.code, none.out), (2, ""))
        self.assertIn("PETLAB_DB is sweep.db, which does not exist", none.err)
        self.finished_sweep()
        server = self.serve()
        taken = self.petlab("serve", "--db", "sweep.db", "--port", server.port)
        self.assertEqual((taken.code, taken.out), (1, ""))
        self.assertRegex(taken.err, r"^petlab: cannot listen on 127.0.0.1 port \d+: Address already "
                         r"in use; choose another port with --port \(0: a free one\), or another address of this machine with --host\n$")
        nowhere = self.petlab("serve", "--db", "sweep.db", "--host", "192.0.2.1", "--port", "0")
        self.assertEqual(nowhere.code, 1)
        self.assertRegex(nowhere.err, "^petlab: cannot listen on 192.0.2.1 port 0: ")
        unknown = self.petlab("serve", "tabel1", "--db", "sweep.db")
        self.assertEqual(unknown.code, 2)
        self.assertIn("table1", unknown.err)
        (self.root / "empty.db").touch()
        self.assertEqual(self.petlab("serve", "--db", "empty.db", "--port", "0").code, 1)

    def test_before_the_first_trial_there_is_a_page(self):
        gate = self.root / "gate"
        self.write_sweep({"steps": 3, "gate": str(gate)})
        run = self.start_scripted()
        self.until(lambda: (self.root / "sweep.db").exists())
        server = self.serve()
        self.assertEqual(self.request(server).status, 200)
        gate.touch()
        self.assertEqual(self.end(run).code, 0)


if __name__ == "__main__":
    tiny_world.main()
