#!/usr/bin/env python3
"""Tests `petlab run --on-event`: each event reaches a server at least once, even if the run is killed often.

usage: events.py FOLDER_OF_PROGRAMS
"""
import http.server
import json
import os
import signal
import threading
import time

from scripted_world import ScriptedWorld
from tiny_world import main

# Commands that hang, fail or flood. Each takes seconds per event or is tried again after seconds.
BAD_COMMANDS = {"sleeps": "sleep 1000",
                "ignores SIGTERM": "trap '' TERM INT HUP; while :; do sleep 0.1; done",
                "is stopped": "kill -STOP $$",
                "fails": "cat; exit 3",
                "is killed": "kill -KILL $$",
                "fills standard error": "yes >&2",
                "fills standard output": "yes",
                "closes its files": "exec <&- >&- 2>&-; sleep 1000"}

# Sends its standard input to the server before and after delivery. The server's answer may be to kill the run,
# which is this process's parent.
HOOK = '''import os, signal, sys, urllib.request
event = sys.stdin.buffer.read()
url = "http://127.0.0.1:%d/" % int(sys.argv[1])
if urllib.request.urlopen(url + "before", event).read() == b"kill":
    os.kill(os.getppid(), signal.SIGKILL)
    sys.exit(1)
if urllib.request.urlopen(url + "sent", event).read() == b"kill":
    os.kill(os.getppid(), signal.SIGKILL)
'''


class Server:
    """Stores delivered events and answers `kill` for those that `decide` selects."""

    def __init__(self, decide):
        self.bodies = []  # delivered events
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                moment = self.path.strip("/")
                if moment == "sent":
                    server.bodies.append(body)
                answer = b"kill" if decide(moment, json.loads(body)) else b"go on"
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *words):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def by_id(self):
        texts = {}
        for body in self.bodies:
            texts.setdefault(json.loads(body)["id"], []).append(body)
        return texts


class Events(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.write("hook.py", HOOK)
        self.write_sweep({"steps": 1}, {"steps": 1}, {"behaviour": "error", "attempts": 99}, {"steps": 1})

    def server(self, decide):
        server = Server(decide)
        self.addCleanup(server.close)
        self.variables = {"PETLAB_ON_EVENT": f"exec python3 hook.py {server.port}"}
        return server

    def run_until_done(self, most, fault=lambda run: ""):
        """Repeats the run until it exits normally. Returns how often it was killed."""
        given = dict(self.variables)
        for run in range(1, most + 1):
            self.variables = given | {"PETLAB_FAULT_POINT": fault(run)}
            done = self.run_scripted()
            self.assertIn(done.code, (1, -9), done)
            if done.code == 1:
                return run - 1
        self.fail(f"killed in each of {most} runs")

    def check_all_delivered(self, server):
        events = {}
        for name, texts in server.by_id().items():
            # A repeated event has the same text.
            self.assertEqual(len(set(texts)), 1, texts)
            event = json.loads(texts[0])
            self.assertNotIn((event["event"], event.get("trial")), events)
            events[event["event"], event.get("trial")] = event
        rows = self.query("SELECT trial_id, outcome FROM attempts JOIN trials ON trials.key = trial "
                          "WHERE outcome IN ('finished', 'failed')", self.database)
        self.assertEqual(len(rows), 4)
        self.assertEqual(set(events), {("trial_" + row["outcome"], row["trial_id"]) for row in rows} |
                         {("sweep_done", None)})
        done = events["sweep_done", None]
        self.assertEqual([done[key] for key in ("total", "done", "failed", "cancelled")], [4, 3, 1, 0])
        before = len(server.bodies)
        self.assertEqual(self.run_scripted().code, 1)
        self.assertEqual(len(server.bodies), before, "delivered twice without a kill")

    def test_a_run_killed_after_each_delivery_delivers_each_event_again(self):
        killed = set()

        def decide(moment, event):
            first = moment == "sent" and event["id"] not in killed
            killed.add(event["id"] if first else None)
            return first

        server = self.server(decide)
        self.assertEqual(self.run_until_done(6), 5)
        self.check_all_delivered(server)
        self.assertEqual({len(texts) for texts in server.by_id().values()}, {2})

    def test_a_run_killed_before_each_delivery_delivers_each_event(self):
        killed = set()

        def decide(moment, event):
            first = moment == "before" and event["id"] not in killed
            killed.add(event["id"] if first else None)
            return first

        server = self.server(decide)
        self.assertEqual(self.run_until_done(6), 5)
        self.check_all_delivered(server)
        self.assertEqual({len(texts) for texts in server.by_id().values()}, {1})

    def test_a_run_killed_between_commits_delivers_each_event(self):
        for point in ("before_commit", "committed", "events_read", "ending_logged"):
            with self.subTest(point):
                self.database = f"{point}.db"
                server = self.server(lambda moment, event: False)
                # The fault is later in each run, so that each run makes progress.
                killed = self.run_until_done(30, lambda run: f"{point}:{run}")
                self.assertGreater(killed, 0)
                self.check_all_delivered(server)

    def test_a_hanging_command_delays_no_trial(self):
        self.variables = {"PETLAB_ON_EVENT": "cat >> got; touch hangs; until [ -e go ]; do sleep 0.01; done"}
        process = self.start_scripted()
        self.until(lambda: (self.root / "hangs").exists())
        # All trials finish while the command still hangs on the first event.
        self.until(lambda: (self.root / "sweep.db").exists() and
                   self.outcomes() == {"failed": 1, "finished": 3})
        self.assertEqual(len((self.root / "got").read_text().splitlines()), 1)
        (self.root / "go").touch()
        done = self.end(process)
        self.assertEqual(done.code, 1, done)
        events = [json.loads(line)["event"] for line in (self.root / "got").read_text().splitlines()]
        self.assertEqual(sorted(events[:-1]), ["trial_failed"] + ["trial_finished"] * 3)
        self.assertEqual(events[-1], "sweep_done")
        self.assertNotIn("--on-event", done.err)

    def test_a_bad_command_delays_no_trial_and_loses_no_event(self):
        self.database = "without.db"
        self.assertEqual(self.run_scripted("--on-event", "").code, 1)
        without = self.seconds_of_all_trials()
        for what, command in BAD_COMMANDS.items():
            with self.subTest(what):
                self.database = what.replace(" ", "-") + ".db"
                process = self.start_scripted("--on-event", command)
                self.until(lambda: (self.root / self.database).exists() and self.ends() == 4)
                # Ctrl-C ends the wait for the command, which would be ten seconds.
                while process.poll() is None:
                    process.send_signal(signal.SIGINT)
                    time.sleep(0.1)
                # The last one may arrive when petlab has ended its work and no longer listens.
                self.assertIn(self.end(process).code, (1, -signal.SIGINT))
                self.assertLess(self.seconds_of_all_trials(), without + 5)
                self.assertEqual(self.run_scripted("--on-event", "cat >> got").code, 1)
                got = self.root / "got"
                self.assertEqual(len(got.read_text().splitlines()), 5)
                got.unlink()

    def ends(self):
        return len(self.query("SELECT 1 FROM attempts WHERE outcome <> 'open'", self.database))

    def seconds_of_all_trials(self):
        return self.query("SELECT max(ended_at) - min(begun_at) AS seconds FROM attempts",
                          self.database)[0]["seconds"]

    def test_a_run_that_waits_for_its_command_holds_no_slot(self):
        one_core = {"preexec_fn": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})}
        self.database = "waits.db"
        waits = self.start_scripted("--on-event", "sleep 1000", slots=1, **one_core)
        self.until(lambda: (self.root / self.database).exists() and self.ends() == 4)
        self.database = "other.db"
        other = self.start_scripted("--on-event", "", slots=1, **one_core)
        self.assertEqual(self.end(other).code, 1)
        self.assertIsNone(waits.poll(), "the first run did not wait for its command")
        self.assertEqual(self.end(waits).code, 1)

    def test_a_run_of_some_trials_also_delivers_events_of_the_others(self):
        # Killed before it delivers the first trial's event, the first run leaves it to the next.
        self.run_scripted("--only", "seed=3", "--on-event", "true")
        self.run_scripted("--only", "seed=1", "--on-event", "")
        self.run_scripted("--only", "seed=2", "--on-event", "cat >> got")
        lines = (self.root / "got").read_text().splitlines()
        self.assertEqual(sorted(json.loads(line)["variant"] for line in lines), ["v1", "v2"])

    def test_the_end_of_a_run_waits_at_most_ten_seconds_and_the_next_run_delivers(self):
        self.variables = {"PETLAB_ON_EVENT": "sleep 1000"}
        done = self.run_scripted()
        self.assertEqual(done.code, 1, done)
        self.assertIn("--on-event: 5 events are left for the next run with a command\n", done.err)
        self.assertEqual(self.run_scripted("--on-event", "cat >> got").code, 1)
        self.assertEqual(len((self.root / "got").read_text().splitlines()), 5)
        # An empty --on-event disables the variable's command.
        self.assertEqual(self.run_scripted("--on-event", "", "--rerun", "failed").err.count("--on-event"), 0)


if __name__ == "__main__":
    main()
