#!/usr/bin/env python3
"""Tests `stop_early` in sweeps: which trials stop, under kills and after a rebuild too, and what shows it.

usage: early_stops.py FOLDER_OF_PROGRAMS
"""
import csv
import json
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys

from scripted_world import METRICS, ScriptedWorld
from tiny_world import PROGRAMS, SWEEP, main

HALVING = "stop_early: {rule: halving, metric: accuracy, at: [1, 2], keep: 1/3}\n"
STOPS = "SELECT trial_id, after_attempt, why FROM early_stops JOIN trials t ON t.key = trial ORDER BY 1"
TRIALS = 9
# Never looks whether it is to stop.
DEAF_WORKER = """import time
import petlab


def train(trial):
    for step in range(1, 5):
        trial.progress(step, 4)
        trial.metric("accuracy", 1 / trial.config.seed, split="validation")
        time.sleep(0.1)
    trial.metric("accuracy", 1 / trial.config.seed, split="test")
    trial.finish()


petlab.Worker("deaf", version="1", numerics="1").run(train)
"""
STOPPED_EARLY = """import sys
import petlab
database = petlab.open("sweep.db")
print({database.trial(trial).stopped_early for trial in sys.argv[1:]})
"""


def halving(validation, score, others):
    kept = (len(others) + 1) // 3
    return validation <= 2 and kept > 0 and score < sorted([*others, score], reverse=True)[kept - 1]


def below_median(validation, score, others):
    return validation >= 2 and len(others) >= 4 and score < statistics.median(others)


class EarlyStops(ScriptedWorld):
    def write_rule(self, rule=HALVING, trials=TRIALS, **user):
        user = {"steps": 8, "step_ms": 25, "checkpoint_every": 2, "validate_every": 2} | user
        rows = "".join(f"  v{seed}: {{seed: {seed}}}\n" for seed in range(1, trials + 1))
        self.write("sweep.yaml", SWEEP.replace("sweep: tiny", "sweep: scripted") +
                   f"  user: {json.dumps(user)}\nvariants:\n{rows}{rule}")

    def stops(self, database="sweep.db"):
        return self.query(STOPS, database)

    def curves(self):
        """The accuracy of each validation, by trial: as trials report it that are never stopped."""
        self.write_rule("")
        done = self.run_scripted("--db", "whole.db", "--runs", "whole")
        self.assertEqual(done.code, 0, done)
        curves = {}
        for row in self.query("SELECT trial_id, value FROM results WHERE split = 'validation' ORDER BY 1, step",
                              "whole.db"):
            curves.setdefault(row["trial_id"], []).append(row["value"])
        return curves

    def order(self):
        """The trials in the order of the sweep."""
        plan = json.loads(self.petlab("plan", "sweep.yaml", "--json").out)
        return [trial["id"] for trial in plan["trials"]]

    def losers(self, worse=halving):
        """The trials that a rule stops if they run one after another."""
        curves = self.curves()
        seen, losers = {}, set()
        for trial in self.order():
            for validation, score in enumerate(curves[trial], 1):
                others = seen.setdefault(validation, [])
                loses = worse(validation, score, others)
                others.append(score)
                if loses:
                    losers.add(trial)
                    break
        return losers

    def test_scores_of_an_attempt_that_starts_over_stop_nothing(self):
        self.write_rule("", trials=6)
        self.assertEqual(self.run_scripted(slots=1).code, 0)
        self.write_rule(trials=6)
        before = self.environment()
        # The results of all trials are stale, and the new ones lower the scores.
        self.environment = lambda: before | {"SCRIPTED_NUMERICS": "2"}
        done = self.run_scripted("--rerun", "stale", slots=1)
        self.assertEqual(done.code, 0, done)
        attempts = self.query("SELECT number, count(*) AS n FROM attempts GROUP BY 1 ORDER BY 1")
        self.assertEqual(attempts, [{"number": 1, "n": 6}, {"number": 2, "n": 6}])
        stops = self.stops()
        self.assertGreater(len(stops), 1)
        self.assertLess(len(stops), 6)
        self.assertEqual({row["after_attempt"] for row in stops}, {2})
        # The first trial that starts over is compared with none.
        self.assertNotIn(self.order()[0], {row["trial_id"] for row in stops})

    def test_a_trial_that_finishes_all_the_same_is_not_called_stopped(self):
        self.write("deaf.py", DEAF_WORKER)
        self.write_rule(trials=6)
        package = pathlib.Path(__file__).resolve().parents[2] / "python/src"
        before = self.environment()
        self.environment = lambda: before | {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1",
                                             "PETLAB_PROGRAM": str(PROGRAMS / "petlab")}
        done = self.petlab("run", "sweep.yaml", "--worker", "python3 deaf.py", "--slots", "1", "--quiet")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.outcomes(), {"finished": 6})
        self.assertGreater(len(self.stops()), 1)
        self.assertEqual(self.petlab("db", "export", "tables").code, 0)
        with open(self.root / "tables/configuration.csv", encoding="utf-8", newline="") as file:
            self.assertEqual({row["stopped_early"] for row in csv.DictReader(file)}, {""})
        found = subprocess.run([sys.executable, "-c", STOPPED_EARLY, *self.order()], cwd=self.root,
                               env=self.environment(), capture_output=True, text=True)
        self.assertEqual(found.stdout, "{None}\n", found)

    def test_halving(self):
        losers = self.losers()
        self.assertGreater(len(losers), 3)
        self.write_rule()
        planned = self.petlab("plan", "sweep.yaml")
        # Of 9 x 3 epochs: 9 x 1, then 3 x 1, then 1 x 1.
        self.assertIn("note: stop_early (halving) saves at most 52 % of the steps", planned.out)
        done = self.run_scripted(slots=1)
        self.assertEqual(done.code, 0, done)
        self.assertIn(f"{TRIALS - len(losers)} of {TRIALS} done, 0 running, 0 failed, {len(losers)} stopped early",
                      done.err)
        # One worker trained them all: a stopped trial leaves it.
        self.assertEqual(self.query("SELECT count(DISTINCT worker_pid) AS n FROM attempts"), [{"n": 1}])
        stops = self.stops()
        self.assertEqual({row["trial_id"] for row in stops}, losers)
        for row in stops:
            self.assertRegex(row["why"], r"^halving: accuracy 0\.\d+ after validation [12] is not among the best "
                                         r"[123] of \d trials, which have 0\.\d+ or more$")
        self.check_shown(losers, stops)

        # Nothing is repeated, a rebuilt database has the same stops, and the files agree with it.
        self.assertEqual(self.run_scripted(slots=1).code, 0)
        self.assertEqual(self.outcomes(), {"finished": TRIALS - len(losers), "stopped": len(losers)})
        self.assertEqual(self.petlab("db", "check").code, 0)
        self.assertEqual(self.petlab("db", "rebuild", "--db", "again.db", "--runs", "sweep.runs").code, 0)
        self.assertEqual(self.stops("again.db"), stops)

        # Resumed trials are not stopped again, and end as if they had never been stopped.
        done = self.run_scripted("--resume-stopped", slots=1)
        self.assertEqual(done.code, 0, done)
        self.assertIn(f"{TRIALS} of {TRIALS} done, 0 running, 0 failed", done.err)
        self.assertEqual(self.query(METRICS), self.query(METRICS, "whole.db"))
        resumed = self.query("SELECT count(*) AS n FROM attempts WHERE resume_step > 0")
        self.assertEqual(resumed, [{"n": len(losers)}])

    def check_shown(self, losers, stops):
        one = stops[0]
        status = self.petlab("status").out
        self.assertIn(f"{TRIALS - len(losers)} done, {len(losers)} stopped early", status)
        self.assertRegex(status, r"\n  stopping early saved \d+ steps\n")
        self.assertIn(f"{one['why']} (--resume-stopped continues it)", self.petlab("explain", one["trial_id"]).out)
        plan = json.loads(self.petlab("plan", "sweep.yaml", "--json").out)
        self.assertEqual({trial["id"] for trial in plan["trials"] if trial["state"] == "stopped early"}, losers)
        # Every table says how many trials it leaves out.
        done = self.petlab("results", "sweep.yaml", "--metric", "accuracy", "--split", "validation", "--by", "task")
        self.assertRegex(done.out, rf"accuracy +stopped early\n(.*\n)+.* \(2\) +{len(losers)}\n")
        self.assertIn(f"note: {len(losers)} of {TRIALS} trials stopped early: means are over those that continued",
                      done.err)
        report = self.petlab("report", "sweep").out
        self.assertIn(f"2 of {TRIALS} trials done ({len(losers)} stopped early)", report)
        self.assertIn("\ntrials that stopped early have no value\n", report)

    def run_to(self, point, *words):
        """A run that kills itself at this fault point. Waits for the end of its worker: a run that finds one still
        dying may start the next trial first."""
        before = self.environment
        self.environment = lambda: before() | {"PETLAB_FAULT_POINT": point}
        try:
            return self.run_scripted(*words, slots=1)
        finally:
            self.environment = before
            self.until(self.slots_free)

    def reasons(self, database="sweep.db"):
        return {row["trial_id"]: row["why"] for row in self.stops(database)}

    def test_kills_change_no_decision(self):
        # Short steps: workers often validate again before they stop. A trial takes longer than 0.05 s, even one that a
        # new worker resumes at its end, so that none is given to a worker ahead of time: such a trial goes to the end
        # of the line if its worker stops.
        self.write_rule(step_ms=10, load_ms=60)
        self.assertEqual(self.run_scripted(slots=1).code, 0)
        wanted = self.reasons()
        for point in ("stops_logged", "before_commit", "committed", "events_read", "ending_logged"):
            for count in range(1, 100):
                done = self.run_to(f"{point}:{count}", "--db", f"{point}.db", "--runs", point)
                if done.code == 0:
                    break
                self.assertEqual(done.code, -9, done)
            self.assertGreater(count, 1)
            self.assertEqual(self.reasons(f"{point}.db"), wanted, point)
            self.assertEqual(self.petlab("db", "check", "--db", f"{point}.db").code, 0)

    def suspended_run(self, trial):
        """A run that is suspended when this trial begins, and a function that counts its events of a type."""
        file = self.root / "sweep.runs" / trial / "1/events.jsonl"

        def count(what):
            return sum(event["type"] == what for event in self.events(file.parent)) if file.exists() else 0
        run = self.start_scripted(slots=1)
        self.until(lambda: count("started"))
        run.send_signal(signal.SIGSTOP)
        return run, count

    def test_what_a_worker_reports_while_its_run_is_suspended_or_dead(self):
        self.write_rule(steps=6, step_ms=250)
        self.assertEqual(self.run_scripted("--db", "whole.db", "--runs", "whole", slots=1).code, 0)
        wanted = self.reasons("whole.db")
        first = [trial for trial in self.order() if "after validation 1" in wanted.get(trial, "")]
        # A run that was killed: the next one judges it before it resumes the trial.
        run, count = self.suspended_run(first[0])
        self.until(lambda: count("checkpoint"))
        run.kill()
        self.end(run)
        self.until(self.slots_free)
        self.assertEqual(self.stops(), [])
        # A suspended run: the second validation comes after the one that stops the trial, and counts for nobody.
        run, count = self.suspended_run(first[1])
        self.until(lambda: count("checkpoint") >= 2)
        run.send_signal(signal.SIGCONT)
        self.assertEqual(self.end(run).code, 0)
        self.assertEqual(self.reasons(), wanted)
        for trial in first[:2]:
            self.assertFalse((self.root / "sweep.runs" / trial / "2").exists())

    def test_rebuilding_halfway_changes_no_decision(self):
        self.write_rule()
        self.assertEqual(self.run_scripted("--db", "whole.db", "--runs", "whole", slots=1).code, 0)
        self.assertEqual(self.run_to("stops_logged:2").code, -9)
        self.assertEqual(self.petlab("db", "rebuild", "--db", "again.db", "--runs", "sweep.runs").code, 0)
        self.assertEqual(len(self.stops("again.db")), 2)
        shutil.move(self.root / "again.db", self.root / "sweep.db")
        for end in ("-wal", "-shm"):
            (self.root / f"sweep.db{end}").unlink(missing_ok=True)
        self.assertEqual(self.run_scripted(slots=1).code, 0)
        self.assertEqual(self.reasons(), self.reasons("whole.db"))

    def test_users_decide_after_the_rule(self):
        losers = self.losers()
        self.write_rule()
        self.assertEqual(self.run_scripted(slots=1).code, 0)
        one, other = sorted(losers)[:2]
        # A retry lets it continue for good, a cancellation replaces the stop.
        self.assertEqual(self.petlab("retry", one).code, 0)
        self.assertEqual(self.petlab("cancel", other).code, 0)
        done = self.run_scripted(slots=1)
        self.assertEqual(done.code, 0, done)
        self.assertIn(f"{TRIALS - len(losers) + 1} of {TRIALS} done, 0 running, 0 failed, 1 cancelled, "
                      f"{len(losers) - 2} stopped early", done.err)
        self.assertEqual(self.run_scripted("--resume-stopped", slots=1).code, 0)
        states = self.petlab("status").out
        self.assertIn(f"{TRIALS - 1} done, 1 cancelled", states)

    def test_median(self):
        losers = self.losers(below_median)
        self.assertTrue(losers)
        self.write_rule("stop_early: {rule: median, after: 2}\n")
        self.assertEqual(self.run_scripted(slots=1).code, 0)
        self.assertEqual({row["trial_id"] for row in self.stops()}, losers)


if __name__ == "__main__":
    main()
