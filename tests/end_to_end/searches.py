#!/usr/bin/env python3
"""Tests `search` by TPE with a sampler that stands in for Optuna: rounds, kills, interrupts and mistakes.

usage: searches.py FOLDER_OF_PROGRAMS
"""
import json
import os
import shutil
import signal

from scripted_world import METRICS, WORKER, ScriptedWorld
from tiny_world import SWEEP, main

# The interpreter of petlab's tools, which suggests points by the seed of the round and the number of results.
SAMPLER = """#!/usr/bin/env python3
import json, os, pathlib, random, signal, sys, time
root = pathlib.Path({root!r})
request = json.load(sys.stdin)
with open(root / "requests", "a") as file:
    file.write(json.dumps(request) + "\\n")
{before}
draw = random.Random(request["seed"] + len(request["told"]))
points = []
for _ in range(request["points"]):
    points.append({{field["name"]: draw.randrange(field["choices"]) if "choices" in field else
                    draw.randint(field["low"], field["high"]) if field["whole"] else
                    field["low"] * (field["high"] / field["low"]) ** draw.random() for field in request["fields"]}})
print(json.dumps({{"optuna": "5.0.0", "points": points}}))
"""
# Once, when it is asked for points.
ONCE = """if request["points"] > 0 and not (root / "once").exists():
    (root / "once").touch()
    """
SEARCH = """search:
  training.learning_rate: log(1e-5, 1e-2)
  module.bottleneck: log(4, 64)
  training.dropout: [0, 0.1]
  trials: 11
  by: tpe
  startup: 4
  per_round: 3
"""
POINTS = 11


class Searches(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.sampler()

    def sampler(self, before=""):
        """Installs the sampler, which does this first."""
        file = self.write("home/venv/bin/python3", SAMPLER.format(root=str(self.root), before=before))
        file.chmod(0o755)

    def write_search(self, search=SEARCH, **user):
        user = {"steps": 4, "validate_every": 2, "checkpoint_every": 2, "best_rate": 1e-3} | user
        text = SWEEP.replace("sweep: tiny", "sweep: searched").replace(
            ", learning_rate: 5e-3, mask_learning_rate: 5e-2", "")
        self.write("sweep.yaml", f"{text}  user: {json.dumps(user)}\n{search}")

    def points(self, runs="sweep.runs"):
        """The text of the only file of points, or an empty text."""
        files = list((self.root / runs / "sweeps").glob("*.points"))
        self.assertLessEqual(len(files), 1)
        return files[0].read_text() if files else ""

    def requests(self):
        return [json.loads(line) for line in (self.root / "requests").read_text().splitlines()]

    def plan(self, *words):
        done = self.petlab("plan", "sweep.yaml", "--json", "--worker", WORKER, *words)
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)

    def undisturbed(self):
        """The file of points and the metrics of a run that nothing disturbs."""
        done = self.run_scripted("--db", "whole.db", "--runs", "whole")
        self.assertEqual(done.code, 0, done)
        return self.points("whole"), self.query(METRICS, "whole.db")

    def start_over(self):
        shutil.rmtree(self.root / "sweep.runs")
        (self.root / "sweep.db").unlink()
        (self.root / "once").unlink(missing_ok=True)

    def assert_same(self, wanted):
        self.assertEqual(self.points(), wanted[0])
        self.assertEqual(self.query(METRICS), wanted[1])

    def test_points_come_in_rounds(self):
        self.write_search(SEARCH.replace("by: tpe\n  startup: 4\n  per_round: 3", "by: random").replace("11", "4"))
        drawn = [trial["id"] for trial in self.plan()["trials"]]
        self.write_search(SEARCH + "grid: {seed: [42, 43]}\n")
        plan = self.plan()
        self.assertEqual([trial["id"] for trial in plan["trials"]][::2], drawn)
        self.assertEqual([note.split(": ", 1)[1] for note in plan["notes"] if ": search: " in note],
                         ["search: 4 of 11 points are known; petlab run adds the others by TPE"])
        done = self.run_scripted()
        self.assertEqual(done.code, 0, done)
        for known, before, new in ((7, 4, 3), (10, 7, 3), (11, 10, 1)):
            self.assertIn(f"search by tpe: {known} of 11 points are known, {new} more from the results of {before}\n", done.err)
        self.assertIn("22 of 22 done, 0 running, 0 failed", done.err)
        self.assertEqual(self.outcomes(), {"finished": 2 * POINTS})

        # What it was told: the mean over the grid of what the table shows.
        check, *rounds = self.requests()
        self.assertEqual((check["points"], check["told"]), (0, []))
        self.assertEqual([(r["points"], len(r["told"]), r["startup"]) for r in rounds], [(3, 4, 4), (3, 7, 4), (1, 10, 4)])
        self.assertEqual(rounds[0]["fields"], [
            {"name": "training.learning_rate", "low": 1e-5, "high": 1e-2, "log": True, "whole": False},
            {"name": "module.bottleneck", "low": 4, "high": 64, "log": True, "whole": True},
            {"name": "training.dropout", "choices": 2}])
        values = {row["trial_id"]: row["value"] for row in self.query(
            "SELECT trial_id, value FROM results WHERE split = 'validation' AND step = 4")}
        trials = [trial["id"] for trial in self.plan()["trials"]]
        self.assertEqual(len(trials), 2 * POINTS)
        for at, point in enumerate(rounds[-1]["told"]):
            self.assertEqual(point["state"], "COMPLETE")
            self.assertAlmostEqual(point["value"], (values[trials[2 * at]] + values[trials[2 * at + 1]]) / 2, 12)

        # The record, and what needs no sampler: plan, another run, a rebuilt database.
        lines = [json.loads(line) for line in self.points().splitlines()]
        self.assertEqual(lines[0], {"v": 1, "study": lines[0]["study"], "sweep": "searched", "by": "tpe"})
        self.assertEqual([line["point"] for line in lines if "point" in line], list(range(4, 11)))
        self.assertEqual([line["told"] for line in lines if "told" in line], [4, 7, 10])
        self.assertEqual(lines[1] | {"seed": 0}, {"told": 4, "seed": 0, "sampler": "optuna.samplers.TPESampler",
                                                  "optuna": "5.0.0"})
        study = self.query("SELECT DISTINCT petlab_said ->> 'study' AS study FROM attempt_provenance")
        self.assertEqual(study, [{"study": lines[0]["study"]}])
        shutil.rmtree(self.root / "home/venv")
        done = self.run_scripted()
        self.assertEqual((done.code, done.err), (0, "22 of 22 done, 0 running, 0 failed\n"))
        self.assertEqual(self.petlab("db", "check").code, 0)
        self.assertEqual(self.petlab("db", "rebuild", "--db", "again.db", "--runs", "sweep.runs").code, 0)
        self.assertEqual(self.query(METRICS, "again.db"), self.query(METRICS))
        plan = self.plan("--db", "again.db", "--runs", "sweep.runs")
        self.assertEqual({trial["state"] for trial in plan["trials"]}, {"done"}, plan)
        self.assertEqual([trial["id"] for trial in plan["trials"]], trials)

    def test_more_points_continue_a_search_and_another_seed_begins_one(self):
        self.write_search()
        self.assertEqual(self.run_scripted().code, 0)
        first = self.points()
        self.write_search(SEARCH.replace("trials: 11", "trials: 13").replace("per_round: 3", "per_round: 2"))
        self.assertEqual(self.run_scripted().code, 0)
        self.assertTrue(self.points().startswith(first))
        self.assertEqual(self.outcomes(), {"finished": 13})
        self.write_search(SEARCH.replace("trials: 11", "trials: 9"))
        self.assertEqual(len(self.plan()["trials"]), 9)
        self.write_search(SEARCH + "  search_seed: 1\n")
        self.assertEqual(len(self.plan()["trials"]), 4)
        # Only part of the trials: nothing is suggested.
        self.sampler("sys.exit(69)")
        done = self.run_scripted("--only", "training_dropout=0")
        self.assertEqual(done.code, 0, done)

    def test_failed_and_stopped_trials_are_told(self):
        search = SEARCH.replace("training.dropout: [0, 0.1]", "user.behaviour: [finish, error]")
        self.write_search(search + "stop_early: {rule: halving, metric: accuracy, at: [1], keep: 1/3}\n", phase="end", step_ms=30)
        done = self.run_scripted(slots=1)
        self.assertEqual(done.code, 1, done)
        last = self.requests()[-1]["told"]
        states = {row["trial_id"]: row["outcome"] for row in self.query(
            "SELECT trial_id, outcome FROM attempts JOIN trials ON trials.key = attempts.trial")}
        names = {"finished": "COMPLETE", "failed": "FAIL", "stopped": "PRUNED"}
        wanted = [names[states[trial["id"]]] for trial in self.plan()["trials"]][:len(last)]
        self.assertEqual([point["state"] for point in last], wanted)
        self.assertEqual(set(wanted), set(names.values()))
        self.assertEqual([point["state"] for point in last if "value" in point],
                         ["COMPLETE"] * wanted.count("COMPLETE"))

    def test_repeated_points_end_the_search(self):
        self.write_search("search: {training.dropout: [0, 0.1, 0.2], trials: 40, by: tpe, startup: 2}\n", step_ms=0)
        done = self.run_scripted()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.outcomes(), {"finished": 3})
        self.assertIn("search: 3 of 40 points are different; the others are left out", self.plan()["notes"][0])
        self.assertEqual(len(self.requests()[-1]["told"]), 38)

    def test_kills_change_no_point(self):
        self.write_search(step_ms=1)
        wanted = self.undisturbed()
        for count in range(1, 30, 3):
            with self.subTest(count=count):
                self.variables = {"PETLAB_FAULT_POINT": f"committed:{count}"}
                killed = self.run_scripted()
                self.variables = {}
                self.assertIn(killed.code, (0, -signal.SIGKILL), killed)
                if killed.code == 0:
                    self.assertGreater(count, 10)
                self.assertEqual(self.run_scripted().code, 0)
                self.assert_same(wanted)
            self.start_over()
        # The run and its sampler, while it suggests.
        self.sampler(ONCE + "(root / 'pid').write_text(str(os.getpid())); time.sleep(600)")
        run = self.start_scripted()
        sampler = int(self.until(lambda: (self.root / "once").exists() and (self.root / "pid").exists()
                                 and (self.root / "pid").read_text()))
        run.kill()
        self.end(run)
        self.until(lambda: not self.is_running(sampler))
        self.assertEqual(self.run_scripted().code, 0)
        self.assert_same(wanted)

    @staticmethod
    def is_running(pid):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"

    def test_a_sampler_that_fails_loses_nothing(self):
        self.write_search()
        wanted = self.undisturbed()
        python = "ROOT/home/venv/bin/python3"
        for before, problem in (
                ("os.kill(os.getpid(), signal.SIGKILL)", f"Optuna in {python} was killed by signal 9 (Killed)"),
                ("sys.exit('no luck')", f"Optuna in {python} ended with exit code 1: no luck"),
                ("print('hello'); sys.exit()", f"Optuna in {python} printed no points: column 1: "),
                ("print('{}'); sys.exit()", f"Optuna in {python} printed no points: key 'optuna' not found"),
                ("request['points'] = 1", f"Optuna in {python} suggested 1 points, must be 3"),
                ("request['fields'][2]['choices'] = 1; request['fields'][2]['name'] = 'x'",
                 f"Optuna in {python} printed no points: key 'training.dropout' not found")):
            with self.subTest(before):
                self.sampler(ONCE + before)
                done = self.run_scripted()
                self.assertEqual(done.code, 1, done)
                self.assertIn(f"petlab: search by tpe: {problem}", done.err)
                self.assertIn("; run the same command to continue\n", done.err)
                self.assertEqual((self.outcomes(), self.points()), ({"finished": 4}, ""))
                self.assertEqual(self.run_scripted().code, 0)
                self.assert_same(wanted)
            self.start_over()

    def test_without_optuna_nothing_starts(self):
        self.write_search()
        self.sampler("sys.exit(69)")
        line = ("petlab: search by tpe: Optuna is missing; install it: ROOT/home/venv/bin/python3 -m pip install optuna; "
                "run the same command to continue\n")
        done = self.run_scripted()
        self.assertEqual((done.code, done.err), (1, line))
        self.assertEqual(self.outcomes(), {})
        done = self.run_scripted("--json")
        self.assertEqual(done.code, 1)
        end = json.loads(done.out.splitlines()[-1])
        self.assertEqual((end["event"], end["problem"], end["exit_code"]),
                         ("end", line.split(": ", 1)[1][:-1], 1), end)
        shutil.rmtree(self.root / "home/venv")
        done = self.run_scripted()
        self.assertEqual((done.code, done.err), (1, "petlab: search by tpe: ROOT/home/venv/bin/python3 is missing; "
                                                    "scripts/setup.sh installs it; run the same command to continue\n"))

    def test_signals_end_a_run_that_waits_for_the_sampler(self):
        self.write_search()
        wanted = self.undisturbed()

        def ask_to_stop(run):
            self.assertEqual(self.petlab("stop").code, 0)

        for stop in (lambda run: run.send_signal(signal.SIGINT), lambda run: run.send_signal(signal.SIGTERM), ask_to_stop):
            self.sampler(ONCE + "time.sleep(600)")
            run = self.start_scripted()
            self.until(lambda: (self.root / "once").exists())
            stop(run)
            done = self.end(run, 20)
            self.assertEqual(done.code, 3, done)
            self.assertTrue(done.err.endswith("interrupted; run the same command to resume\n"), done)
            self.assertEqual((self.outcomes(), self.points()), ({"finished": 4}, ""))
            self.assertEqual(self.run_scripted().code, 0)
            self.assert_same(wanted)
            self.start_over()

    def test_two_runs_record_the_same_points_once(self):
        self.write_search(step_ms=5)
        wanted = self.undisturbed()
        runs = [self.start_scripted(slots=1) for _ in range(2)]
        for run in runs:
            done = self.end(run)
            self.assertEqual(done.code, 0, done)
        self.assert_same(wanted)
        self.assertEqual(self.outcomes(), {"finished": POINTS})

    def test_a_sweep_is_done_when_its_search_is(self):
        self.write_search()
        self.sampler(ONCE + "sys.exit('no luck')")
        hook = ("--on-event", f"cat >> {self.root}/events")
        self.assertEqual(self.run_scripted(*hook).code, 1)
        self.assertNotIn("sweep_done", (self.root / "events").read_text())
        self.assertEqual(self.run_scripted(*hook).code, 0)
        events = [json.loads(line)["event"] for line in (self.root / "events").read_text().splitlines()]
        self.assertEqual((events.count("sweep_done"), events[-1]), (1, "sweep_done"))
        self.assertEqual(events.count("trial_finished"), POINTS)

    def test_reruns_happen_once(self):
        self.write_search()
        self.sampler(ONCE + "sys.exit('no luck')")
        self.assertEqual(self.run_scripted().code, 1)
        self.assertEqual(self.run_scripted("--rerun", "all").code, 0)
        self.assertEqual(self.outcomes(), {"finished": 4 + POINTS})

    def test_archives_and_merges_have_the_points(self):
        self.write_search()
        wanted = self.undisturbed()
        done = self.petlab("db", "export", "archive", "all.tar.gz", "--db", "whole.db")
        self.assertEqual(done.code, 0, done)
        done = self.petlab("db", "import", "all.tar.gz", "--db", "sweep.db", "--runs", "sweep.runs")
        self.assertEqual(done.code, 0, done)
        self.assert_same(wanted)
        self.assertEqual({trial["state"] for trial in self.plan()["trials"]}, {"done"})


if __name__ == "__main__":
    main()
