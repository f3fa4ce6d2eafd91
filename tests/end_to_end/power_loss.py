#!/usr/bin/env python3
"""Records the files of a run of 20 trials, and starts petlab on states that a power cut may leave of them.

usage: power_loss.py FOLDER_OF_PROGRAMS

The recording has retries, resumes, a stop, decisions, a rebuild of the database and a rerun. recorded_files.py
creates the states. On each, one `petlab run` must complete the sweep. Afterwards everything that petlab had said or
a worker had synced before the cut is present, nothing is there twice, and the database equals a rebuilt one.

In the model `posix`, the folder or the files of an attempt may be missing, because a worker syncs only its files.
Then the database must have their content, and `petlab db check` reports them.

| variable | meaning |
| --- | --- |
| PETLAB_TEST_STATES (40) | number of states; a quarter for Python workers |
| PETLAB_TEST_SEED (1) | the choice of states |
| PETLAB_TEST_SYNCS (0) | for each kind of sync, the most states in which it is missing; one of them must fail |
| PETLAB_TEST_ROOT | keeps the recording in this folder, or uses the one that it has |
| PETLAB_TEST_STATE | creates only this state of that recording, as a failure names it |
"""
import collections
import contextlib
import fnmatch
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import time
import unittest
import uuid

import recorded_files
import tiny_world
from scripted_world import METRICS, WORKER, ScriptedWorld

STATES = int(os.environ.get("PETLAB_TEST_STATES", "40"))
SEED = int(os.environ.get("PETLAB_TEST_SEED", "1"))
SYNCS = int(os.environ.get("PETLAB_TEST_SYNCS", "0"))
ROOT = os.environ.get("PETLAB_TEST_ROOT")
STATE = os.environ.get("PETLAB_TEST_STATE")
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python/src"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
DATABASE, RUNS = "world/petlab.db", "world/petlab.runs"

PLAIN = {"steps": 4, "validate_every": 2}
LONG = {"steps": 8, "checkpoint_every": 2}
KILLED = LONG | {"behaviour": "kill"}
FAILING = PLAIN | {"behaviour": "error"}
HALTED = {"steps": 6, "checkpoint_every": 2, "gate": "gate"}
# The failing ones are first: the first attempt of a trial behind a killed one may never start.
TRIALS = [FAILING] * 3 + [PLAIN] * 8 + [LONG] * 4 + [KILLED] * 3 + [HALTED] * 2
FAILS, DIES, HALTS = range(3), range(15, 18), 18
DISCARDED, TAGGED, HIDDEN, TAGGED_LIVE, RERUN = slice(3, 5), 5, 6, 7, slice(8, 10)
REBUILD = ["db", "rebuild", "--runs", RUNS]

# Reads `user` as the scripted worker does.
PYTHON_WORKER = '''#!/usr/bin/env python3
import os, random, signal, time
import petlab

sync = os.fdatasync

def sync_late(descriptor):
    time.sleep(0.05)
    sync(descriptor)

os.fdatasync = sync_late

def train(trial):
    user = trial.user
    step, state = trial.restore() or (0, trial.config.seed)
    bad = trial.attempt == 1 and user.get("behaviour")
    while step < user["steps"]:
        step += 1
        state = random.Random(f"{state} {step}").random()
        trial.progress(step, user["steps"], state)
        trial.metric("accuracy", state, split="validation")
        if step == (user["steps"] + 1) // 2:
            if bad == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if bad == "error":
                return trial.fail("the script says so")
        every = user.get("checkpoint_every")
        if every and step < user["steps"] and (trial.stopping or step % every == 0):
            trial.checkpoint(step, [step, state])
        while "gate" in user and step >= every and not trial.stopping and not os.path.exists(user["gate"]):
            time.sleep(0.005)
    trial.metric("score", state, split="test")
    (trial.folder / "artifact.petl").write_text(f"{state}\\n")
    trial.finish(artifact="artifact.petl")

petlab.Worker("power-loss", version="1", numerics="1").run(train)
'''

# What a rebuild must find in the runs folder.
EQUAL = [
    "SELECT trial_id, attempt, seq, step, split, task, name, value FROM metrics",
    "SELECT t.trial_id, a.number, a.outcome, a.reason, a.sweep, a.owner, a.boot_id, a.begun_at, a.parent, "
    "a.resume_step, a.resume_seq, a.checkpoint_step, a.started_at, a.numerics, a.finished_step, a.events_next_seq "
    "FROM attempts a JOIN trials t ON t.key = a.trial",
    "SELECT trial_id, cancelled, retried_after FROM trials",
    "SELECT t.trial_id, after_attempt, discarded, why, decided_at FROM renewals JOIN trials t ON t.key = trial",
    "SELECT t.trial_id, why, decided_at FROM hidden_trials JOIN trials t ON t.key = trial",
    "SELECT t.trial_id, time, what, text FROM trial_remarks JOIN trials t ON t.key = trial",
    "SELECT s.name, time, what, text FROM sweep_remarks JOIN sweeps s ON s.key = sweep",
    "SELECT s.name, s.digest, t.trial_id, variant, place FROM sweep_trials JOIN sweeps s ON s.key = sweep "
    "JOIN trials t ON t.key = trial",
]

# Kinds of syncs: what is synced, by which call, at which path. Each must matter to some state. Two do not, and are not
# listed: the names in sweeps/, since the next run writes a missing sweep again, and an artifact's name, which only
# `posix` can lose, together with the name of its folder.
NEEDED = [
    ("SQLite: a commit", "fdatasync", "petlab.db-wal"),
    ("SQLite: pages moved from the log", "fdatasync", "petlab.db"),
    ("SQLite: the log's name", "fdatasync", "."),
    ("a new database", "fdatasync", ".petlab.db.new-*"),
    ("a rebuilt database", "fsync", ".petlab.db.rebuilt-*"),
    ("names of the database and the runs folder", "fsync", "."),
    ("names in the runs folder", "fsync", "petlab.runs"),
    ("a lock's name", "fsync", "petlab.runs/.locks"),
    ("everything, at the end of a run", "syncfs", "petlab.runs/.locks"),
    ("several decisions", "syncfs", "petlab.runs"),
    ("a decision", "fdatasync", "*/decisions.jsonl"),
    ("a remark", "fdatasync", "*/remarks.jsonl"),
    ("a sweep's remark", "fdatasync", "*.remarks"),
    ("names of decisions and remarks", "fsync", "petlab.runs/????????????????"),
    ("a post", "fsync", "*/.inbox/*"),
    ("a post's name", "fsync", "*/.inbox"),
    ("a sweep's file", "fsync", "*/sweeps/scripted.jsonl.*"),
    ("a sweep's text and code", "fsync", "*/sweeps/sha256-*"),
    ("how an attempt ended", "fdatasync", "*/attempt.jsonl"),
    ("a worker's event", "fdatasync", "*/events.jsonl"),
    ("a checkpoint", "fsync", "*/checkpoint/*"),
    ("a checkpoint's name", "fsync", "*/checkpoint"),
    ("an artifact", "fsync", "*/artifact.petl"),
]

# Cuts at which petlab once failed: before or after a sync, or after the user was told of it, or of the first trial that
# is over. The last column says which names are kept of those that need not be.
ONCE_FAILED = [
    ("a decision that the database does not have", "after", "fdatasync", "*/decisions.jsonl", "ordered", "all"),
    ("a note that the database does not have", "after", "fdatasync", "*/remarks.jsonl", "ordered", "all"),
    ("a crash that the database does not have", "after", "fdatasync", "*/attempt.jsonl", "ordered", "all"),
    ("a rebuilt database without its name", "told", "fsync", ".petlab.db.rebuilt-*", "ordered", "none"),
    ("results without the names of their files", "before", "syncfs", "*/.locks", "posix",
     lambda naming: naming.name != "events.jsonl"),
    ("decisions without the names of their files", "told", "fdatasync", "*/decisions.jsonl", "posix", "none"),
]
LATE_SYNCS = [
    ("a result that its worker had not synced", "done", "", "", "ordered", "all"),
    ("a failure that its worker had not synced", "failed", "", "", "ordered", "all"),
]


class Told:
    """What the user had been told before a cut."""

    def __init__(self, said, cut):
        self.decided, self.begun, self.done = [], [], {}
        self.renewed = {}  # by trial, the index at which the user asked for another result
        lines = collections.defaultdict(bytes)
        for index, name, data in said:
            if index >= cut:
                break
            if name != "mark":
                *whole, lines[name] = (lines[name] + data).split(b"\n")
                for line in whole:
                    over = json.loads(line) if line.startswith(b'{"event":"trial_over"') else {}
                    if over.get("state") == "done":
                        self.done[over["trial"]] = index
                continue
            what, *words = json.loads(data)
            self.begun = words if what == "begun" else []
            if what == "decided":
                self.decided.append(words)
            elif words[0] == "discard" or "--rerun" in words:
                self.renewed |= dict.fromkeys(",".join(words).split(","), index)

    def has(self, *words):
        return any(one[:len(words)] == list(words) for one in self.decided)

    def may_have(self, *words):
        return self.has(*words) or self.begun[:len(words)] == list(words)


class PowerLoss(ScriptedWorld):
    database = DATABASE
    worker = str(WORKER)
    states = STATES
    once_failed = ONCE_FAILED

    def setUp(self):
        super().setUp()
        if ROOT:
            kept = pathlib.Path(ROOT).resolve() / type(self).__name__
            if not kept.exists():
                shutil.copytree(self.root, kept)
            self.root = kept
        self.maxDiff = 3000
        self.world, self.record_file = self.root / "world", self.root / "record"
        self.write_sweep(*TRIALS)
        self.boot()
        planned = self.petlab("plan", "sweep.yaml", "--json", "--worker", self.worker, "--db", "none.db")
        self.assertEqual(planned.code, 0, planned)
        self.ids = [trial["id"] for trial in json.loads(planned.out)["trials"]]

    def environment(self):
        return super().environment() | {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}

    def boot(self):
        self.write("boot_id", f"{uuid.uuid4()}\n")
        self.faults = f"redirect program=petlab path={BOOT_ID} file={self.root}/boot_id"

    def run_words(self, *words):
        return ["run", "sweep.yaml", "--slots", 4, "--retry-delay", "10ms", "--grace", "500ms", "--json", "--runs", RUNS,
                "--worker", self.worker, *words]

    # Recording.

    def mark(self, what, *words):
        recorded_files.add_mark(self.record_file, json.dumps([what, *words]).encode())

    def start_recorded(self, name, *words, program=tiny_world.PETLAB):
        """Starts a command, and records its changes and its output (of a file next to the world)."""
        faults = self.faults
        self.faults += f";record path={self.world}* file={self.record_file}"
        try:
            with open(self.root / f"world-{name}", "wb") as out:
                return self.start(*words, program=program, stdout=out)
        finally:
            self.faults = faults

    def decide(self, *words, program=tiny_world.PETLAB):
        self.mark("begun", *words)
        done = self.end(self.start_recorded("decision", *words, program=program))
        self.assertEqual(done.code, 0, done)
        self.mark("decided", *words)

    def train(self, name, *words):
        self.mark("begun", "run", *words)
        return self.start_recorded(name, *self.run_words(*words))

    def number_over(self, name):
        lines = (self.root / f"world-{name}").read_text().splitlines()
        return sum('"trial_over"' in line and '"interrupted"' not in line for line in lines)

    def make_record(self):
        ids = self.ids
        self.world.mkdir()
        self.mark("root", os.stat(self.world).st_ino)
        run = self.train("first")
        self.until(lambda: run.poll() is not None or self.number_over("first") == len(ids) - 2)
        run.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(run).code, 3)
        self.decide("retry", ids[0])
        self.decide("retry", *ids[1:3])
        self.decide("cancel", ids[HALTS])
        self.decide("discard", *ids[DISCARDED], "--why", "by mistake")
        self.decide("tag", ids[TAGGED], "+good")
        self.decide("note", ids[TAGGED], "looks odd")
        self.decide("tag", "--sweep", "scripted", "+paper")
        self.decide("hide", ids[HIDDEN], "--why", "a duplicate")
        self.write("gate", "")
        run = self.train("second")
        self.decide("tag", ids[TAGGED_LIVE], "+live")
        self.assertEqual(self.end(run).code, 0)
        self.decide("retry", ids[HALTS])
        self.decide("-rf", *(DATABASE + end for end in ("", "-wal", "-shm")), program="/bin/rm")
        self.decide(*REBUILD)
        self.assertEqual(self.end(self.train("third", "--rerun", ",".join(ids[RERUN]))).code, 0)

    def read_record(self, ignored=()):
        return recorded_files.Record(self.record_file, self.world, ignored)

    def contents(self):
        """The files of the world, except the memory that processes share."""
        return {str(path.relative_to(self.world)): path.read_bytes() for path in self.world.rglob("*")
                if path.is_file() and not path.name.endswith("-shm")}

    def prepare(self):
        """Makes or reads the recording, and learns the values of its trials."""
        fresh = not self.record_file.exists()
        if fresh:
            self.make_record()
        self.record = self.read_record()
        found = self.contents() if fresh else None
        self.create(self.record.state(self.record.length, "posix", "all", "all", None))
        if fresh:  # nothing was changed without being recorded
            again = self.contents()
            self.assertEqual(sorted(found), sorted(again))
            self.assertEqual([path for path in found if found[path] != again[path]], [])
        self.wanted_values = self.values()
        self.assertEqual(len(self.wanted_values), len(TRIALS) - 1)  # one is hidden

    # States.

    def create(self, tree):
        shutil.rmtree(self.world, ignore_errors=True)
        recorded_files.write_tree(tree, self.world)

    def rows(self, sql, database="petlab.db"):
        with contextlib.closing(sqlite3.connect(f"file:{self.world}/{database}?mode=ro", uri=True)) as opened:
            return opened.execute(sql).fetchall()

    def values(self):
        found = collections.defaultdict(list)
        for row in self.query(METRICS, DATABASE):
            found[row.pop("trial_id")].append(row)
        return found

    def try_state(self, record, cut, model, names, data, number):
        """Creates a state and checks what petlab makes of it. Returns False for a state that was tried before."""
        tree = record.state(cut, model, names, data, random.Random(f"{SEED} {number}"))
        key = cut, recorded_files.digest(tree)
        if key in self.tried:
            return False
        self.tried.add(key)
        self.create(tree)
        self.boot()
        told = Told(self.record.said, cut)
        if told.has(*REBUILD):
            self.assertTrue((self.root / DATABASE).exists(), "the rebuilt database is missing")
        elif told.may_have("-rf"):
            for end in ("", "-wal", "-shm"):
                (self.root / f"{DATABASE}{end}").unlink(missing_ok=True)
            again = self.petlab(*REBUILD)
            self.assertEqual((again.code, again.err), (0, ""), again)
        run = self.petlab(*self.run_words())
        unfinished = self.check_attempts(told, run)
        self.check_synced(cut, model)
        self.check_decisions(told)
        self.check_agreement(model)
        values = self.values()
        self.assertEqual([trial for trial, wanted in self.wanted_values.items()
                          if trial not in unfinished and values[trial] != wanted], [], "other values")
        return True

    def check_attempts(self, told, run):
        """Each trial has one result, and no more attempts than needed. Returns failed and cancelled trials."""
        attempts = collections.defaultdict(list)
        for trial, *attempt in self.rows(
                "SELECT t.trial_id, a.number, a.outcome, a.reason FROM attempts a JOIN trials t ON t.key = a.trial "
                "ORDER BY 1, 2"):
            attempts[trial].append(attempt)
        renewed = dict(self.rows("SELECT t.trial_id, max(after_attempt) FROM renewals JOIN trials t ON t.key = trial "
                                 "GROUP BY 1"))
        cancelled = {trial for trial, in self.rows("SELECT trial_id FROM trials WHERE cancelled")}
        failed = set()
        for at, trial in enumerate(self.ids):
            results = [number for number, outcome, _ in attempts[trial]
                       if outcome == "finished" and number > renewed.get(trial, 0)]
            if at in FAILS and not results and not told.has("retry", *self.ids[:1] if at == 0 else self.ids[1:3]):
                self.assertEqual(attempts[trial][-1][2], "the script says so", attempts[trial])
                failed.add(trial)
            elif trial not in cancelled:
                self.assertEqual(len(results), 1, (trial, attempts[trial]))
            expected = {"finished", "stopped", "never_started", "crashed" if at in DIES else "",
                        "failed" if at in FAILS else ""}
            self.assertLessEqual({outcome for _, outcome, _ in attempts[trial]}, expected, attempts[trial])
        self.assertEqual((run.code, run.err), (1 if failed else 0, ""), run)
        trained = [line["trial"] for line in map(json.loads, run.out.splitlines()) if line["event"] == "trial_over"]
        for trial, index in told.done.items():
            if index > told.renewed.get(trial, -1):
                self.assertNotIn(trial, trained, "it was done")
        return failed | cancelled

    def check_synced(self, cut, model):
        """What a worker had synced counts."""
        if model == "posix":
            return
        for trial, number, events in self.synced_events(cut):
            outcome, = self.rows("SELECT a.outcome, a.checkpoint_step FROM attempts a JOIN trials t ON t.key = a.trial "
                                 f"WHERE t.trial_id = '{trial}' AND a.number = {number}")
            steps = [event["step"] for event in events if event["type"] == "checkpoint"]
            if events[-1]["type"] == "finished":
                self.assertEqual(outcome[0], "finished", (trial, number))
                if "artifact" in events[-1]:
                    wanted = [row["value"] for row in self.wanted_values.get(trial, []) if row["name"] == "score"]
                    text = (self.root / RUNS / trial / str(number) / events[-1]["artifact"]).read_text()
                    self.assertIn(text, [f"{value}\n" for value in wanted] or text)
            elif steps:
                self.assertGreaterEqual(outcome[1] or 0, steps[-1], (trial, number))
                next_, = self.rows("SELECT max(a.resume_step) FROM attempts a JOIN trials t ON t.key = a.trial "
                                   f"WHERE t.trial_id = '{trial}' AND a.number > {number}")
                cancelled = (trial,) in self.rows("SELECT trial_id FROM trials WHERE cancelled")
                if outcome[0] in ("stopped", "crashed") and not cancelled:
                    self.assertGreaterEqual(next_[0] or 0, steps[-1], f"{trial} resumes")

    def synced_events(self, cut):
        """For each attempt: its events that are on the disk in every model but posix."""
        for node in self.record.nodes:
            *folders, name = node.path.split("/")
            if name != "events.jsonl" or not node.synced or node.synced[0] >= cut:
                continue
            lines = self.record.content(node, cut, "none", None).split(b"\n")[:-1]
            yield folders[1], int(folders[2]), [json.loads(line) for line in lines]

    def check_decisions(self, told):
        cancelled, ids = [], self.ids
        for words in told.decided:
            if words[0] == "discard":
                self.assertEqual(sorted(self.rows(
                    "SELECT t.trial_id FROM renewals JOIN trials t ON t.key = trial WHERE discarded")),
                    sorted((trial,) for trial in ids[DISCARDED]))
            elif words[0] == "hide":
                self.assertEqual(self.rows("SELECT t.trial_id FROM hidden_trials JOIN trials t ON t.key = trial"),
                                 [(ids[HIDDEN],)])
            elif words[0] in ("tag", "note"):
                found = self.rows("SELECT t.trial_id, text FROM trial_remarks JOIN trials t ON t.key = trial "
                                  "UNION ALL SELECT '--sweep', text FROM sweep_remarks")
                self.assertEqual(found.count((words[1], words[-1].lstrip("+"))), 1, found)
        if told.has("cancel") and not told.may_have("retry", ids[HALTS]):
            cancelled = [(ids[HALTS],)]
        if told.has("cancel") or not told.may_have("cancel"):
            found = self.rows("SELECT trial_id FROM trials WHERE cancelled")
            if told.has("retry", ids[HALTS]) or not told.may_have("retry", ids[HALTS]):
                self.assertEqual(found, cancelled)

    def check_agreement(self, model):
        checked = self.petlab("db", "check", "--json", "--runs", RUNS)
        findings = json.loads(checked.out)["findings"]
        if model == "posix":
            findings = [one for one in findings if one["kind"] not in ("no_folder", "other_content")]
            self.assertEqual(findings, [])
            return
        self.assertEqual((checked.code, findings), (0, []), checked)
        self.assertEqual(self.rows("SELECT 1 FROM attempts WHERE outcome = 'failed' AND event_kind IS NULL"), [],
                         "a failure without its kind, which says whether it is retried")
        again = self.petlab("db", "rebuild", "--db", "world/again.db", "--runs", RUNS)
        self.assertEqual((again.code, again.err), (0, ""), again)
        for sql in EQUAL:
            found, rebuilt = set(self.rows(sql)), set(self.rows(sql, "again.db"))
            self.assertEqual((found - rebuilt, rebuilt - found), (set(), set()), sql)
        self.assertEqual([path for path in self.contents() if ".new-" in path and
                          "/checkpoint/" not in path and ".rebuilt-" not in path], [])

    # Tests.

    def each_state(self, record, number, places, models=recorded_files.MODELS):
        """Tries a number of states. Yields each that fails, and its error. `places` returns a random cut; others are
        at the end of a run, when most is unsynced."""
        draw = random.Random(SEED)
        tried = 0
        for at in range(20 * number):
            cut = draw.choice(self.record.syncs_of_all) if draw.random() < 0.1 else places(draw)
            spec = (cut, draw.choice(models), draw.choice(("all", "none", "some", "some")),
                    draw.choice(("all", "none", "zeros", "each", "each")), at)
            try:
                tried += self.try_state(record, *spec)
            except Exception as error:
                tried += 1
                yield spec, error
            if tried == number:
                break

    def test_every_state_is_completed_and_nothing_acknowledged_is_lost(self):
        self.prepare()
        self.tried = set()
        if STATE:
            cut, model, names, data, number = STATE.split(",")
            self.try_state(self.record, int(cut), model, names, data, int(number))
            return
        # Half of the cuts are just after a sync or a message.
        for what, when, kind, path, model, names in self.once_failed:
            with self.subTest(what):
                self.try_state(self.record, self.cut_of(when, kind, path), model, names, "none", 0)
        events = [index + 1 for index, *_ in self.record.said + self.record.syncs]
        begin, failures = time.monotonic(), 0

        def places(draw):
            return draw.choice(events) if draw.random() < 0.5 else draw.randint(1, self.record.length)

        for spec, error in self.each_state(self.record, self.states, places):
            failures += 1
            with self.subTest(",".join(map(str, spec))):
                raise error
        print(f"{self.record.length} changes, {len(self.record.syncs)} syncs; {len(self.tried)} states at "
              f"{len({cut for cut, _ in self.tried})} cuts, {failures} failures, seed {SEED}, "
              f"{time.monotonic() - begin:.0f} s", flush=True)

    def cut_of(self, when, kind, path):
        if when in ("done", "failed"):
            return next(index for index, _, data in self.record.said if b'"state":"%s"' % when.encode() in data) + 1
        at = next(index for index, kinds, paths in self.record.syncs
                  if kinds == kind and fnmatch.fnmatch(paths, path))
        return at + 1 if when == "after" else at if when == "before" else next(
            index for index, name, _ in self.record.said if name == "mark" and index > at) + 1

    @unittest.skipIf(SYNCS == 0, "set PETLAB_TEST_SYNCS to try states without a sync")
    def test_each_sync_is_needed(self):
        self.prepare()
        unnoticed = []
        for name, kind, path in NEEDED:
            self.tried = set()
            record = self.read_record([(kind, path)])
            if not record.ignored_syncs:
                continue
            begin = time.monotonic()
            failure = next(self.each_state(
                record, SYNCS, lambda draw: min(record.length, draw.choice(record.ignored_syncs) + 1 +
                                                int(draw.expovariate(1 / draw.choice((20, 400)))))), None)
            print(f"{name:40} {len(record.ignored_syncs):4} syncs, {len(self.tried):4} states, "
                  f"{time.monotonic() - begin:.0f} s:", flush=True, end=" ")
            if failure:
                spec, error = failure
                print(",".join(map(str, spec)), "fails:", str(error).replace("\n", " ")[:200], flush=True)
            else:
                print("none fails", flush=True)
                unnoticed.append(name)
        self.assertEqual(unnoticed, [])


class PowerLossOfPythonWorkers(PowerLoss):
    worker = "./worker.py"
    states = STATES // 4
    once_failed = LATE_SYNCS  # the others do not depend on the worker

    def write_sweep(self, *users, **options):
        super().write_sweep(*users, **options)
        self.write("worker.py", PYTHON_WORKER).chmod(0o755)


if __name__ == "__main__":
    tiny_world.main()
