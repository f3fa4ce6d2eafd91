#!/usr/bin/env python3
"""Tests `petlab db gc`: it removes files that no trial needs and keeps all others, at any time.

usage: garbage.py FOLDER_OF_PROGRAMS
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess

import tiny_world
from exchange_world import VALUES, ExchangeWorld
from scripted_world import METRICS


class Garbage(ExchangeWorld):
    def gc(self, *words, name="sweep", code=0):
        return json.loads(self.on(name, "db", "gc", "--json", *words, code=code).out)

    def kept(self, name="sweep"):
        """Names of the attempts' files, without those that every attempt has."""
        usual = ("trial.json", "events.jsonl", "attempt.jsonl", "log.txt", "decisions.jsonl")
        return sorted(path for path in self.files(name)
                      if not path.startswith("sweeps/") and not path.endswith(usual))

    def stopped(self, *words, steps=60):
        """Starts a trial and stops it once it has two checkpoints."""
        self.write_sweep({"steps": steps, "step_ms": 20, "checkpoint_every": 2})
        run = self.start_scripted(*words)
        self.until(lambda: len(list(self.root.glob("sweep.runs/*/1/checkpoint/step-*.txt"))) == 2)
        self.interrupt(run, 2)
        self.assertEqual(self.end(run).code, 3)


class WhatGoes(Garbage):
    def test_a_checkpoint_stays_until_its_trial_has_a_result(self):
        self.stopped()
        before = self.files("sweep")
        self.assertEqual(self.gc()["garbage"], [])
        self.assertEqual(self.files("sweep"), before)
        # A third one, left by a killed worker, is not needed.
        folder = next(self.root.glob("sweep.runs/*/1/checkpoint"))
        (folder / "step-0.txt").write_text("0123456789")
        found = self.gc("--dry-run")
        self.assertEqual([(row["kind"], row["bytes"], row["why"]) for row in found["garbage"]],
                         [("checkpoint", 10, "not one of its attempt's last two")])
        self.assertEqual((found["bytes"], found["dry_run"]), (10, True))
        self.assertTrue((folder / "step-0.txt").exists())
        self.assertEqual(self.gc()["bytes"], 10)
        self.assertEqual(self.files("sweep"), before)
        done = self.run_scripted()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query("SELECT parent FROM attempts WHERE outcome = 'finished'"), [{"parent": 1}])
        # Attempt 1's checkpoint and attempt 2's link are one file.
        found = self.gc("--dry-run")
        self.assertEqual({row["why"] for row in found["garbage"]}, {"its trial has a result"})
        values = self.query(METRICS)
        done = self.gc()
        self.assertEqual(done["garbage"], found["garbage"])
        self.assertEqual(done["bytes"], found["bytes"])
        self.assertEqual(self.kept(), [])
        self.assertFalse(list(self.root.glob("sweep.runs/*/*/checkpoint")))
        self.assertFalse((self.root / "sweep.runs/.garbage").exists())
        self.assertEqual(self.query(METRICS), values)
        self.on("sweep", "db", "check")
        self.assertEqual(self.gc()["garbage"], [])
        done = self.on("sweep", "db", "gc")
        self.assertEqual(done.out, "sweep.db: nothing to remove\n")

    def test_artifacts_of_results_that_no_longer_count(self):
        self.machine("sweep", "--only", "seed=1")
        first, second = self.trials("sweep", "seed = 1")
        self.on("sweep", "discard", first, "--why", "wrong data")
        self.machine("sweep", "--only", f"trial_id={second}", "--rerun", second)
        found = self.gc()
        self.assertEqual([(row["trial"], row["attempt"], row["why"]) for row in found["garbage"]],
                         sorted([(first, 1, "its result was discarded"),
                                 (second, 1, "attempt 2 has the result")]))
        self.assertEqual([path for path in self.kept() if path.endswith(".petl")],
                         [f"{second}/2/artifact.petl"])
        self.on("sweep", "db", "check")
        # Running the sweep again does not bring them back.
        self.machine("sweep", "--only", "seed=1")
        self.assertEqual(self.gc()["garbage"], [])
        self.assertEqual(self.on("sweep", "db", "check").code, 0)
        done = self.on("sweep", "db", "gc", "--dry-run")
        self.assertEqual(done.out, "sweep.db: nothing to remove\n")

    def test_only_selected_kinds_are_removed(self):
        self.machine("sweep", "--only", "seed=1")
        first = self.trials("sweep", "seed = 1")[0]
        self.on("sweep", "discard", first, "--why", "wrong data")
        self.assertEqual(self.gc("--what", "checkpoints,leftovers")["garbage"], [])
        text = self.on("sweep", "db", "gc", "--dry-run", "--what", "artifacts").out
        self.assertRegex(text, rf"artifact +[\d.]+ KiB +{first}/1/artifact.petl +its result was discarded")
        self.assertRegex(text, r"sweep.db: 1 entry, [\d.]+ KiB of the disk, could be removed\n$")
        self.assertIn("everything not in", self.on("sweep", "db", "gc", "--what", "everything", code=2).err)

    def test_incomplete_folders_and_unknown_files(self):
        self.machine("sweep", "--only", "seed=1")
        first, second = self.trials("sweep", "seed = 1")
        half = self.root / f"sweep.runs/{first}/.2.new-4711"
        half.mkdir()
        (half / "trial.json").write_text("{")
        (self.root / f"sweep.runs/{first}/.mine").write_text("the user's")
        (self.root / "sweep.runs/.incoming").mkdir()
        shutil.copytree(self.root / f"sweep.runs/{second}/1", self.root / f"sweep.runs/{second}/2")
        (self.root / f"sweep.runs/{second}/.3.new-4711").mkdir()
        found = self.gc()
        self.assertEqual(sorted(pathlib.Path(row["file"]).name for row in found["garbage"]),
                         [".2.new-4711", ".incoming"])
        self.assertEqual(found["left"], [{"trial": second, "text": "attempt 2 is in the runs "
                                                                   "folder but not in the "
                                                                   "database: petlab db "
                                                                   "import adds it"}])
        self.assertFalse(half.exists())
        self.assertTrue((self.root / f"sweep.runs/{first}/.mine").exists())

    def test_a_link_is_not_followed(self):
        self.machine("sweep", "--only", "seed=1")
        first = self.trials("sweep", "seed = 1")[0]
        (self.root / "mine").mkdir()
        (self.root / "mine/file").write_text("the user's")
        os.symlink(self.root / "mine", self.root / f"sweep.runs/{first}/1/checkpoint")
        self.assertEqual([row["kind"] for row in self.gc()["garbage"]], ["checkpoint"])
        self.assertEqual((self.root / "mine/file").read_text(), "the user's")
        self.assertFalse((self.root / f"sweep.runs/{first}/1/checkpoint").is_symlink())


class WhatStays(Garbage):
    def left_alone(self, why):
        """Checks that gc removes nothing and gives this reason."""
        before = self.files("sweep")
        done = self.gc()
        self.assertEqual(done["garbage"], [])
        self.assertEqual([row["text"] for row in done["left"]], [why])
        self.assertEqual(self.files("sweep"), before)

    def test_events_that_the_database_has_not_read(self):
        self.stopped()
        folder = next(self.root.glob("sweep.runs/*/1"))
        events = folder / "events.jsonl"
        last = json.loads(events.read_text().splitlines()[-1])
        self.assertEqual(last["type"], "checkpoint")
        later = folder / "checkpoint/later.txt"
        later.write_bytes((folder / last["path"]).read_bytes())
        line = json.dumps(dict(last, seq=last["seq"] + 1, path="checkpoint/later.txt"))
        # The worker wrote this event and was killed together with the run that reads it.
        with events.open("a") as out:
            out.write(line[:-1])
        self.assertEqual(len(self.gc("--dry-run")["garbage"]), 1)
        with events.open("a") as out:
            out.write(line[-1:] + "\n")
        self.left_alone("attempt 1 has events that the database has not read: petlab db "
                        "import reads them")
        self.assertEqual(self.run_scripted().code, 0)
        self.assertEqual(self.gc("--dry-run")["left"], [])

    def test_another_machines_attempt_under_the_same_number(self):
        self.stopped()
        folder = next(self.root.glob("sweep.runs/*/1"))
        (folder / "checkpoint/step-0.txt").write_text("0123456789")
        self.assertEqual(len(self.gc("--dry-run")["garbage"]), 1)
        log = folder / "attempt.jsonl"
        first, *rest = log.read_text().splitlines(keepends=True)
        begun = json.loads(first)
        log.write_text(json.dumps(dict(begun, time=begun["time"] - 3600)) + "\n" + "".join(rest))
        self.left_alone("attempt 1 in the runs folder is not the one in the database: see "
                        "petlab db check")

    def test_checkpoints_in_another_place(self):
        self.stopped()
        checkpoint = next(self.root.glob("sweep.runs/*/1/checkpoint"))
        checkpoint.rename(self.root / "scratch")
        checkpoint.symlink_to(self.root / "scratch")
        self.assertEqual(self.gc()["garbage"], [])
        self.assertTrue(checkpoint.is_symlink())
        self.assertEqual(self.run_scripted().code, 0)
        self.assertEqual(self.query("SELECT number, parent FROM attempts ORDER BY 1"),
                         [{"number": 1, "parent": None}, {"number": 2, "parent": 1}])

    def test_an_artifact_that_is_a_link(self):
        self.machine("sweep", "--only", "seed=1")
        first = self.trials("sweep", "seed = 1")[0]
        artifact = self.root / f"sweep.runs/{first}/1/artifact.petl"
        best = artifact.parent / "checkpoint/best"
        best.parent.mkdir(exist_ok=True)
        artifact.rename(best)
        artifact.symlink_to("checkpoint/best")
        (best.parent / "worse").write_text("0123456789")
        self.assertEqual([pathlib.Path(row["file"]).name for row in self.gc()["garbage"]], ["worse"])
        self.assertTrue(artifact.exists())

    def test_a_running_trial_is_left_alone(self):
        self.stopped()
        gate = self.root / "gate"
        self.write("sweep.yaml", (self.root / "sweep.yaml").read_text())
        run = self.start_scripted()
        self.until(lambda: list(self.root.glob("sweep.runs/*/2/checkpoint/step-*.txt")))
        found = self.gc()
        self.assertEqual((found["garbage"], found["running"]), ([], 1))
        self.assertFalse(gate.exists())
        run.send_signal(signal.SIGKILL)
        run.communicate()
        # The run is dead, but the next one will resume from its files.
        found = self.gc()
        self.assertEqual((found["garbage"], found["running"]), ([], 1))
        self.assertEqual(self.run_scripted().code, 0)
        self.assertEqual(self.query("SELECT number, parent FROM attempts ORDER BY 1"),
                         [{"number": 1, "parent": None}, {"number": 2, "parent": 1}, {"number": 3, "parent": 2}])

    def test_a_run_with_another_database_in_the_folder(self):
        self.stopped()
        run = self.start_scripted("--db", "other.db", "--runs", "sweep.runs")
        self.until(lambda: list(self.root.glob("sweep.runs/*/2/checkpoint/step-*.txt")))
        done = self.on("sweep", "db", "gc", code=1)
        self.assertIn("a run of another database is using it", done.err)
        self.interrupt(run, 2)
        self.end(run)

    def test_gc_and_merges_exclude_each_other(self):
        self.machine("sweep", "--only", "seed=1")
        self.on("sweep", "discard", self.trials("sweep", "seed = 1")[0], "--why", "x")
        self.faults = "stop program=petlab calls=rename path=*artifact.petl at=1"
        stopped = self.start("db", "gc", "--db", "sweep.db", stderr=subprocess.PIPE)
        self.faults = ""
        self.until(lambda: pathlib.Path(f"/proc/{stopped.pid}/stat").read_text().split()[2] == "T")
        self.assertIn("another petlab db merge, import or gc is running there", self.on("sweep", "db", "gc", code=1).err)
        self.on("sweep", "db", "gc", "--dry-run")
        stopped.send_signal(signal.SIGCONT)
        stopped.communicate()
        self.assertEqual(stopped.returncode, 0)

    def race(self, call, path, before, after):
        """Stops a gc at a call, starts a run, and lets both continue."""
        self.stopped()
        first = next(self.root.glob("sweep.runs/*/1/checkpoint"))
        (first / "step-0.txt").write_text("old")
        self.faults = f"stop program=petlab calls={call} path={path} at=1"
        stopped = self.start("db", "gc", "--db", "sweep.db", stderr=subprocess.PIPE)
        self.faults = ""
        self.until(lambda: pathlib.Path(f"/proc/{stopped.pid}/stat").read_text().split()[2] == "T")
        run = self.start_scripted()
        before(run)
        stopped.send_signal(signal.SIGCONT)
        out = stopped.communicate()[0]
        self.assertEqual(stopped.returncode, 0, out)
        after((first / "step-0.txt").exists())
        self.assertEqual(self.end(run).code, 0)
        self.assertEqual(self.query("SELECT parent FROM attempts WHERE outcome = 'finished'"), [{"parent": 1}])

    def test_a_run_that_starts_during_the_search_keeps_its_trial(self):
        # gc is stopped before it looks for garbage; it looks again before the transaction.
        self.race("mkdir", "*/.garbage", lambda run: self.until(
            lambda: list(self.root.glob("sweep.runs/*/2/checkpoint/step-*.txt"))), self.assertTrue)

    def test_a_run_that_starts_during_the_removal_waits(self):
        def nothing_claimed(run):
            self.until(lambda: list((self.root / "sweep.runs/.locks").glob("*-*.lock")))
            self.assertEqual(self.query("SELECT count(*) AS n FROM attempts"), [{"n": 1}])
        self.race("rename", "*step-0.txt", nothing_claimed, self.assertFalse)


class Killed(Garbage):
    def test_gc_killed_at_every_changing_call_can_be_repeated(self):
        self.machine("a", "--only", "seed=1..2")
        first, second, third, _ = self.trials("a", "seed < 3")
        self.on("a", "discard", first, "--why", "x")
        self.machine("a", "--only", f"trial_id={second}", "--rerun", second)
        for folder in self.root.glob("a.runs/*/1"):
            (folder / "checkpoint").mkdir()
            (folder / "checkpoint/step-1.txt").write_text("1")
        (self.root / f"a.runs/{third}/.2.new-12").mkdir()
        (self.root / f"a.runs/{third}/.2.new-12/trial.json").write_text("{}")

        # After any kill, results and their artifacts are complete.
        def when_killed(wanted):
            self.assertEqual(self.query(VALUES, "k.db"), wanted[0])
            checked = self.petlab("db", "check", "--db", "k.db", "--runs", "k.runs", "--json")
            self.assertLessEqual({one["kind"] for one in json.loads(checked.out)["findings"]},
                                 {"left_behind"})
        self.survives("db", "gc", look=lambda: (self.query(VALUES, "k.db"), self.files("k")), fewest=20,
                      killed_share=0.8, when_killed=when_killed)


if __name__ == "__main__":
    tiny_world.main()
