"""Trials whose attempts report exactly the events that a test prescribes.

With them, tests can make sources disagree that agree in an ordinary run, such as the scores of an attempt
after its checkpoint and those of the resumed one, or the machine according to petlab and to the worker.
"""
import json
import shutil
import tempfile

from scripted_world import ScriptedWorld

AWKWARD_WORKER = '''#!/usr/bin/env python3
import json, os, pathlib, sys, time

def field(config, name):
    for key in name.split("."):
        config = config.get(key) if isinstance(config, dict) else None
    return config

def train(folder):
    trial = json.loads((folder / "trial.json").read_text())
    rules = json.loads(pathlib.Path(__file__).with_name("prescribed.json").read_text())
    attempts = next(attempts for when, attempts in rules
                    if all(field(trial["config"], name) == value for name, value in when.items()))
    attempt = attempts[min(trial["attempt"], len(attempts)) - 1]
    events, seq, code = open(folder / "events.jsonl", "a"), 0, 0
    started = {"type": "started", "pid": os.getpid(), "worker": "told", "version": "1",
               "numerics": {"version": "1"}, "digests": trial["digests"]}
    if attempt[0].get("type") == "started":
        attempt = [started | attempt[0], *attempt[1:]]
    else:
        attempt = [started, *attempt]
    for entry in attempt:
        if "exit" in entry:
            code = entry["exit"]
            break
        if "wait" in entry:
            while not os.path.exists(entry["wait"]):
                time.sleep(0.01)
            continue
        event = {"v": 1, "seq": seq, "time": time.time() - entry.pop("ago", 0), **entry}
        if entry["type"] == "metric":
            event.setdefault("task", trial["tasks"][0]["name"])
        if entry["type"] == "checkpoint":
            path = folder / entry["path"]
            path.parent.mkdir(exist_ok=True)
            path.write_text(str(entry["step"]))
        if entry["type"] == "finished" and "artifact" in entry:
            (folder / entry["artifact"]).write_text("no artifact")
        events.write(json.dumps(event) + "\\n")
        events.flush()
        if entry["type"] in ("checkpoint", "finished", "failed"):
            os.fsync(events.fileno())
        seq += 1
    if code:
        sys.exit(code)

if sys.argv[1] == "--describe":
    print(json.dumps({"name": "told", "version": "1", "protocol": 1, "numerics": "1", "devices": ["cpu"]}))
else:
    for line in sys.stdin if sys.argv[1] == "-" else sys.argv[1:]:
        train(pathlib.Path(line.rstrip("\\n")))
'''


def progress(step, of, loss, **more):
    return {"type": "progress", "step": step, "of": of, "loss": loss, **more}


def metric(split, name, step, value, **more):
    return {"type": "metric", "split": split, "name": name, "step": step, "value": value, **more}


def checkpoint(step):
    return {"type": "checkpoint", "step": step, "path": f"checkpoint/step-{step}"}


def finished(step, **more):
    return {"type": "finished", "step": step, **more}


class AwkwardWorld(ScriptedWorld):
    made = None  # a copy of the folder after make_world(), shared by the cases of a class

    def setUp(self):
        super().setUp()
        self.write("awkward.py", AWKWARD_WORKER).chmod(0o755)
        kind = type(self)
        if kind.made is None:
            self.make_world()
            kind.made = tempfile.mkdtemp(prefix="petlab-e2e-")
            kind.addClassCleanup(shutil.rmtree, kind.made, ignore_errors=True)
            kind.addClassCleanup(setattr, kind, "made", None)
            shutil.copytree(self.root, kind.made, dirs_exist_ok=True)
        else:
            shutil.copytree(kind.made, self.root, dirs_exist_ok=True)

    def make_world(self):
        """Creates the starting state of all cases of the class. Runs once."""

    def prescribe(self, *rules):
        """Prescribes events. Each rule has the fields of its trials, and the events of each of their attempts.

        Instead of an event, {"exit": 1} ends the worker, and {"wait": FILE} waits for a file. "ago" sets an
        event's time to that many seconds ago.
        """
        self.write("prescribed.json", json.dumps(rules))

    def run_prescribed(self, *words, sweep="sweep.yaml", code=0):
        done = self.petlab("run", sweep, "--slots", 1, "--retry-delay", "10ms", "--grace", "500ms",
                           "--worker", "./awkward.py", "--db", "sweep.db", "--runs", "sweep.runs", *words)
        self.assertEqual(done.code, code, done)
        return done

    def ask(self, *words, code=0, db="sweep.db"):
        if words[0] in ("status", "show") and "--worker" not in words:
            # With petlab-trainer's numerics version, the results would be stale.
            words = (*words, "--worker", "./awkward.py")
        done = self.petlab(*words, "--db", db)
        self.assertEqual(done.code, code, done)
        return done

    def sweeps_of(self, trial, db="sweep.db"):
        """A trial's sweeps and variants, as listed by `petlab show`."""
        return json.loads(self.ask("show", trial, "--json", db=db).out)["sweeps"]

    def answer(self, *words, db="sweep.db"):
        """The rows of an answer, from its JSON format."""
        return json.loads(self.ask(*words, "--format", "json", db=db).out)
