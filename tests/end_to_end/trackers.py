#!/usr/bin/env python3
"""Tests that MLflow, trackio and W&B open what `petlab db export` writes for them, with every value.

usage: trackers.py FOLDER_OF_PROGRAMS

The exit code is 77 (skipped) without these tools (scripts/trackers_venv.sh installs them).
"""
import gzip
import hashlib
import http.server
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import threading

SOURCE = pathlib.Path(__file__).resolve().parents[2]
if "PETLAB_TRACKERS" not in os.environ:
    found = subprocess.run([SOURCE / "scripts/trackers_venv.sh", "--there"], stdout=subprocess.PIPE, text=True)
    if found.returncode != 0:
        print("skipped: MLflow, trackio and W&B are not there; scripts/trackers_venv.sh installs them")
        sys.exit(77)
    os.environ["PETLAB_TRACKERS"] = found.stdout.strip()
    os.execv(found.stdout.strip(), [found.stdout.strip(), __file__, *sys.argv[1:]])

import tiny_world  # noqa: E402
from exchange_world import ExchangeWorld  # noqa: E402
from tiny_world import SWEEP  # noqa: E402

TOOLS = pathlib.Path(sys.executable).parent
LONG = "long " * 2000
# Names that a tool refuses or that would be paths, and a value that is undefined.
AWKWARD = '''    say("metric", step=3, split="validation", task=task, name="../recall @5 é", value=draw.random())
    say("metric", step=3, split="validation", task=task, name="undefined", value=None)
    say("metric", step=3, split="validation", task=task, name="undefined", value=1e-300)
    while os.environ.get("GATE")'''
READ_TRACKIO = '''
import json, sys, trackio
from trackio.sqlite_storage import SQLiteStorage
SQLiteStorage.migrate_all_projects()
print(json.dumps({project: {run.name: {"config": run.config, "logs": SQLiteStorage.get_logs(project, run_id=run.id)}
                            for run in trackio.Api().runs(project)} for project in SQLiteStorage.get_projects()}))
'''


def text(value):
    """A number as text, in which an undefined one equals itself."""
    return "undefined" if value is None or value == "NaN" or math.isnan(value) else repr(float(value))


def number(value):
    """The number or truth value that a text of a parameter says, else the text."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def flat(config, at=""):
    """The fields that a configuration sets, by their names with dots."""
    fields = {}
    for key, value in config.items():
        if isinstance(value, dict):
            fields |= flat(value, f"{at}{key}.")
        elif value is not None:
            fields[f"{at}{key}"] = value
    return fields


def allowed(name):
    """A name as MLflow allows it, by the rule of the guide."""
    def part(text):
        if re.fullmatch(r"[A-Za-z0-9_.\- ]+", text):
            return text
        changed = "".join(c if re.fullmatch(r"[A-Za-z0-9_.\- ]", c) else "_" * len(c.encode()) for c in text)
        return f"{changed}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    if not name.startswith(("train/", "validation/", "test/")):
        return part(name)
    return "/".join(map(part, name.split("/", 2)))


class WandbServer(http.server.BaseHTTPRequestHandler):
    """Answers `wandb sync` and keeps what it uploads: per run its variables, history, summary and end."""
    runs = {}
    history = {}
    ends = {}

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        answer = {}
        if self.path == "/graphql":
            asked = json.loads(body)
            given = asked["variables"]
            answer = {"data": {"viewer": {"id": "v", "entity": "me", "username": "me", "flags": "{}",
                                          "teams": {"edges": []}}, "serverInfo": {"features": []}}}
            if asked.get("operationName") == "UpsertBucket":
                self.runs.setdefault(given["name"], {}).update(
                    {key: value for key, value in given.items() if value is not None})
                project = {"id": "p", "name": given["project"], "entity": {"id": "e", "name": "me"}}
                answer = {"data": {"upsertBucket": {"inserted": True, "bucket": {
                    "id": given["name"], "name": given["name"], "displayName": given["displayName"], "description": "",
                    "config": "{}", "sweepName": None, "historyLineCount": 0, "project": project}}}}
        elif self.path.endswith("/file_stream"):
            run, sent = self.path.split("/")[-2], json.loads(body)
            lines = sent.get("files", {}).get("wandb-history.jsonl", {}).get("content", [])
            self.history.setdefault(run, []).extend(map(json.loads, lines))
            if sent.get("complete"):
                self.ends[run] = sent["exitcode"]
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST


class Trackers(ExchangeWorld):
    def setUp(self):
        super().setUp()
        worker = (self.root / "worker.py").read_text()
        self.write("worker.py", worker.replace('    while os.environ.get("GATE")', AWKWARD))
        user = {"β/rate": 0.25, "text": LONG, "on": True}
        for name in ("registry-é", "plain"):
            self.write(f"{name}.yaml", SWEEP.replace("sweep: tiny", f"sweep: {name}") +
                       f"variants:\n  small: {{module.bottleneck: 4}}\n  large é: {{module.bottleneck: 8, user: "
                       f"{json.dumps(user)}}}\ngrid:\n  seed: [1, 2]\n")
        for file in ("registry-é.yaml", "plain.yaml"):
            self.train(file, "seed=1")
        self.train("plain.yaml", "seed=2", code=1, FAIL="1")

    def train(self, file, only, code=0, **extra):
        self.extra = extra
        done = self.petlab("run", file, "--slots", 2, "--worker", "./worker.py", "--retries", 0, "--db", "a.db",
                           "--runs", "a.runs", "--only", only)
        self.extra = {}
        self.assertEqual(done.code, code, done)

    def expected(self):
        """By sweep and "VARIANT TRIAL": the trial's id, configuration, facts, values and losses, and outcome."""
        self.on("a", "db", "export", "tables", "--format", "json")
        tables = {name: json.loads((self.root / "tables" / f"{name}.json").read_text())
                  for name in ("sweeps", "configuration", "attempts")}
        configs = {row["trial_id"]: row for row in tables["configuration"]}
        attempts = {row["trial_id"]: row for row in tables["attempts"]}
        found = {}
        for row in tables["sweeps"]:
            trial, attempt = row["trial_id"], attempts.get(row["trial_id"])
            if not attempt:
                continue
            done = attempt["outcome"] == "finished"
            state = ("done" if attempt["sweep"] == row["sweep"] else "cached") if done else "failed"
            config = flat(json.loads(configs[trial]["config"]))
            if configs[trial]["bls_bits"] is not None:
                config["bls_bits"] = configs[trial]["bls_bits"]
            facts = {"petlab.sweep": row["sweep"], "petlab.variant": row["variant"], "petlab.trial": trial,
                     "petlab.attempt": "1", "petlab.state": state, "petlab.host": attempt["host"]}
            found.setdefault(row["sweep"], {})[f"{row['variant']} {trial}"] = {
                "config": config, "facts": facts, "points": self.points(trial), "done": done,
                "begun": attempt["begun_at"], "ended": attempt["ended_at"]}
        self.assertEqual({sweep: len(runs) for sweep, runs in found.items()}, {"plain": 4, "registry-é": 4})
        return found

    def points(self, trial):
        """Every value of a trial as tag, step and the value's text, sorted."""
        rows = self.query("SELECT split || '/' || task || '/' || name AS tag, step, value FROM results "
                          f"WHERE trial_id = '{trial}'", "a.db")
        events = [json.loads(line) for line in (self.root / f"a.runs/{trial}/1/events.jsonl").read_text().splitlines()]
        return sorted([(row["tag"], row["step"], text(row["value"])) for row in rows] +
                      [("train/loss", one["step"], text(one["loss"])) for one in events if one["type"] == "progress"])

    def test_mlflow(self):
        from mlflow import MlflowClient
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
        self.on("a", "db", "export", "--mlflow", "mlruns")
        client = MlflowClient(tracking_uri=str(self.root / "mlruns"))
        expected = self.expected()
        experiments = {one.name: one.experiment_id for one in client.search_experiments()}
        self.assertEqual(experiments.keys(), expected.keys())
        for sweep, trials in expected.items():
            runs = {run.info.run_name: run for run in client.search_runs([experiments[sweep]])}
            self.assertEqual(runs.keys(), trials.keys())
            for title, run in runs.items():
                trial = trials[title]
                self.assertEqual(client.get_run(run.info.run_id).info, run.info)
                self.assertEqual(run.info.status, "FINISHED" if trial["done"] else "FAILED")
                self.assertEqual((run.info.start_time, run.info.end_time),
                                 (round(trial["begun"] * 1000), round(trial["ended"] * 1000)))
                self.assertEqual(run.data.tags, trial["facts"] | {"mlflow.runName": title})
                names = {allowed(tag): tag for tag, _, _ in trial["points"]}
                self.assertEqual(run.data.metrics.keys(), names.keys())
                found = [(names[name], one.step, text(one.value)) for name in names
                         for one in client.get_metric_history(run.info.run_id, name)]
                self.assertEqual(sorted(found), trial["points"])
                params = {allowed(name): value if isinstance(value, str) else json.dumps(value)
                          for name, value in trial["config"].items()}
                if "user.text" in params:
                    params["user.text"] = LONG[:5997] + "…"
                self.assertEqual({name: number(value) for name, value in run.data.params.items()},
                                 {name: number(value) for name, value in params.items()})
                self.assertEqual(client.list_artifacts(run.info.run_id), [])
        # MLflow can continue to use the store.
        run = next(iter(runs.values()))
        client.set_tag(run.info.run_id, "checked", "yes")
        self.assertEqual(client.get_run(run.info.run_id).data.tags["checked"], "yes")

    def test_trackio(self):
        self.on("a", "db", "export", "--trackio", "trackio")
        environment = os.environ | {"TRACKIO_DIR": str(self.root / "trackio")}
        done = subprocess.run([sys.executable, "-c", READ_TRACKIO], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        projects = json.loads(done.stdout)
        expected = self.expected()
        name = next(name for name in projects if name != "plain")
        self.assertRegex(name, "^sweep-registry-___-[0-9a-f]{12}$")
        for project, sweep in (("plain", "plain"), (name, "registry-é")):
            # A run without values is not shown.
            trials = {title: trial for title, trial in expected[sweep].items() if trial["points"]}
            self.assertEqual(projects[project].keys(), trials.keys())
            for title, run in projects[project].items():
                trial = trials[title]
                config = {key: value for key, value in run["config"].items() if key[0] != "_"}
                self.assertEqual(config, trial["config"] | trial["facts"])
                self.assertEqual(run["config"]["_Group"], trial["facts"]["petlab.variant"])
                found = [(tag, row["step"], text(value)) for row in run["logs"] for tag, value in row.items()
                         if tag not in ("step", "timestamp")]
                self.assertEqual(sorted(found), trial["points"])
        listed = subprocess.run([TOOLS / "trackio", "list", "runs", "--project", "plain", "--json"], env=environment,
                                capture_output=True, text=True, check=True)
        self.assertEqual(sorted(json.loads(listed.stdout)["runs"]), sorted(projects["plain"]))

    def test_wandb(self):
        done = self.on("a", "db", "export", "--wandb-offline", "wandb")
        self.assertEqual(done.out, "wandb: 8 runs, 40 values; wandb sync wandb\n")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), WandbServer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        home = {"HOME": str(self.root), "WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}",
                "WANDB_API_KEY": "a" * 40, "WANDB_ERROR_REPORTING": "false"}
        done = subprocess.run([TOOLS / "wandb", "sync", "wandb"], env=os.environ | home, cwd=self.root,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("Finished syncing"), 8, done.stderr)
        expected = self.expected()
        trials = {(sweep if sweep == "plain" else None, title): trial
                  for sweep, runs in expected.items() for title, trial in runs.items()}
        self.assertEqual(len(WandbServer.runs), len(trials))
        for name, run in WandbServer.runs.items():
            trial = trials[run["project"] if run["project"] == "plain" else None, run["displayName"]]
            self.assertRegex(run["project"], "^(plain|registry-__-[0-9a-f]{12})$")
            self.assertEqual((run["groupName"], run["host"]),
                             (trial["facts"]["petlab.variant"], trial["facts"]["petlab.host"]))
            config = {key: one["value"] for key, one in json.loads(run["config"]).items() if key != "_wandb"}
            self.assertEqual(config, trial["config"] | trial["facts"])
            found = [(tag, row["_step"], text(value)) for row in WandbServer.history.get(name, [])
                     for tag, value in row.items() if tag[0] != "_"]
            last = {point[:2]: point for point in trial["points"]}  # of a metric and step
            if last:
                self.assertEqual(last.pop(("validation/films/undefined", 3))[2], "undefined")
                found.remove(("validation/films/undefined", 3, "1e-300"))
            self.assertEqual(sorted(found), sorted(last.values()))
            self.assertEqual(WandbServer.ends[name], 0 if trial["done"] else 1)

    def test_exporting_twice_gives_the_same_bytes(self):
        contents = []
        for _ in range(2):
            self.on("a", "db", "export", "--mlflow", "one", "--trackio", "two", "--wandb-offline", "three")
            folders = [self.root / name for name in ("one", "two", "three")]
            contents.append({str(file): file.read_bytes() for folder in folders
                             for file in sorted(folder.rglob("*")) if file.is_file()})
            for folder in folders:
                folder.rename(self.root / f"{folder.name}.{len(contents)}")
        self.assertGreater(len(contents[0]), 100)
        self.assertEqual(contents[0], contents[1])


if __name__ == "__main__":
    tiny_world.main()
