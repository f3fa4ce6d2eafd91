#!/usr/bin/env python3
"""Tests that a database records its runs folder, and earlier definitions of its sweeps.

usage: runs_folders.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator.
"""
import json
import os
import re
import shutil
import sqlite3
import subprocess

import tiny_world
from scripted_world import WORKER, ScriptedWorld
from tiny_world import PROGRAMS


class RunsFolders(ScriptedWorld):
    database = "sweeps/sweep.db"

    def setUp(self):
        super().setUp()
        self.write_sweep({}, {}, name="sweeps/sweep.yaml")
        os.symlink("../tiny", self.root / "sweeps/tiny")
        for name in ("films.yaml", *(f"films-{part}.tsv" for part in ("train", "dev", "test"))):
            shutil.copy(self.root / name, self.root / "sweeps")

    def run_it(self, *words):
        return self.petlab("run", "sweeps/sweep.yaml", "--slots", 2, "--worker", WORKER, *words)

    def trial(self, database):
        return self.query("SELECT trial_id AS id FROM trials ORDER BY key", database)[0]["id"]

    def test_every_command_uses_the_runs_folder_that_a_run_used(self):
        done = self.run_it("--db", "other/all.db")
        self.assertEqual((done.code, done.err),
                         (1, "petlab: other/all.db: the folder of the database does not exist; "
                             "create it, or name another with --db\n"))
        self.assertFalse((self.root / "other").exists())
        (self.root / "other").mkdir()
        done = self.run_it("--db", "other/all.db", "--runs", "other/deep/runs")
        self.assertEqual(done.code, 0, done)
        trial = self.trial("other/all.db")
        for words in (["logs", trial], ["cancel", trial], ["retry", trial], ["db", "import"],
                      ["show", trial], ["status"], ["stop"]):
            with self.subTest(words):
                done = self.petlab(*words, "--db", "other/all.db")
                if words[0] in ("status", "stop", "db"):
                    self.assertIn("other/deep/runs", done.out)
                if words[0] == "show":
                    self.assertIn(f"  ROOT/other/deep/runs/{trial}\n", done.out)
                if words[0] == "logs":
                    self.assertEqual(done.code, 0, done)
        for words in (["plan", "sweeps/sweep.yaml"], ["status", "sweeps/sweep.yaml"]):
            done = self.petlab(*words, "--db", "other/all.db")
            self.assertIn("runs: ROOT/other/deep/runs\n", done.out)
        self.assertEqual([path.name for path in (self.root / "other").iterdir() if path.is_dir()], ["deep"])
        # Another sweep of the same database has no separate folder.
        text = (self.root / "sweeps/sweep.yaml").read_text()
        self.write("sweeps/second.yaml", text.replace("sweep: scripted", "sweep: second").replace(
            "seed: 2", "seed: 3"))
        done = self.petlab("run", "sweeps/second.yaml", "--db", "other/all.db", "--worker", WORKER)
        self.assertEqual(done.code, 0, done)
        self.assertFalse((self.root / "sweeps/second.runs").exists())

    def test_a_runs_folder_of_another_user_is_refused_at_the_start(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be two users")
        self.assertEqual(self.run_it().code, 0)
        # Permissions of a group that shares the folder.
        subprocess.run(["chmod", "-R", "a+rwX", self.root], check=True)
        before = self.query("SELECT count(*) AS n FROM attempts", "sweeps/sweep.db")
        done = self.petlab("run", "sweeps/sweep.yaml", "--rerun", "all", "--worker", WORKER,
                           user=65534)
        self.assertEqual((done.code, done.err),
                         (1, "petlab: ROOT/sweeps/sweep.runs: this runs folder belongs to "
                             "root; two users cannot share one (choose others with --runs and "
                             "--db)\n"))
        self.assertEqual(self.query("SELECT count(*) AS n FROM attempts", "sweeps/sweep.db"), before)

    def test_database_and_runs_folder_can_be_moved_together(self):
        self.assertEqual(self.run_it("--db", "sweeps/a.db", "--runs", "sweeps/deep/runs").code, 0)
        (self.root / "sweeps").rename(self.root / "moved")
        trial = self.trial("moved/a.db")
        done = self.petlab("logs", trial, "--db", "moved/a.db")
        self.assertEqual(done.code, 0, done)
        os.symlink("moved/a.db", self.root / "link.db")
        self.assertEqual(self.petlab("logs", trial, "--db", "link.db").code, 0)

    def test_a_missing_runs_folder_is_reported_and_not_created(self):
        self.assertEqual(self.run_it().code, 0)
        trial = self.trial("sweeps/sweep.db")
        (self.root / "sweeps/sweep.runs").rename(self.root / "elsewhere")
        for words in (["logs", trial], ["cancel", trial], ["retry", trial]):
            done = self.petlab(*words, "--db", "sweeps/sweep.db")
            self.assertEqual((done.code, done.err), (
                1, "petlab: ROOT/sweeps/sweep.runs: the runs folder of sweeps/sweep.db is "
                   "missing; restore it, or name it with --runs\n"))
        done = self.run_it()
        self.assertEqual(done.code, 1)
        self.assertIn("sweeps/sweep.runs: the runs folder of sweeps/sweep.db is missing",
                      done.err)
        self.assertFalse((self.root / "sweeps/sweep.runs").exists())
        # Once named, it is recorded.
        done = self.petlab("db", "import", "--db", "sweeps/sweep.db", "--runs", "elsewhere")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.petlab("logs", trial, "--db", "sweeps/sweep.db").code, 0)
        self.assertEqual(self.run_it().code, 0)

    def test_an_edited_sweep_reports_removed_trials(self):
        self.assertEqual(self.run_it().code, 0)
        text = (self.root / "sweeps/sweep.yaml").read_text()
        self.write("sweeps/sweep.yaml", text.replace("seed: 2", "seed: 3"))
        note = ("1 finished trial of earlier definitions of sweep scripted is no longer in it "
                "or in its tables; the view former_sweep_results has the values that it "
                "reported\n")
        self.assertIn("note: " + note, self.petlab("plan", "sweeps/sweep.yaml").out)
        done = self.run_it()
        self.assertEqual(done.code, 0, done)
        self.assertIn(note, done.err)
        former = "SELECT DISTINCT variant, seed FROM former_sweep_results WHERE sweep = 'scripted'"
        self.assertEqual(self.query(former, "sweeps/sweep.db"), [{"variant": "v2", "seed": 2}])
        self.assertIn(note, self.run_it().err)  # every run repeats it
        plan = json.loads(self.petlab("plan", "sweeps/sweep.yaml", "--json").out)
        self.assertIn(note[:-1], plan["notes"])
        # A rebuilt database has them too, but without the variant.
        done = self.petlab("db", "rebuild", "--db", "new.db", "--runs", "sweeps/sweep.runs")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query(former, "new.db"), [{"variant": None, "seed": 2}])
        # A trial that is in the sweep again is no longer a former one.
        self.write("sweeps/sweep.yaml", text)
        self.assertEqual(self.run_it().code, 0)
        self.assertEqual(self.query(former, "sweeps/sweep.db"), [{"variant": "v2", "seed": 3}])

    def test_a_database_of_an_earlier_petlab_is_updated(self):
        self.assertEqual(self.run_it().code, 0)
        with sqlite3.connect(self.root / "sweeps/sweep.db") as database:
            for statement in ("DROP VIEW former_sweep_results", "DROP TABLE former_sweep_trials",
                              "DROP TABLE settings", "PRAGMA user_version = 1"):
                database.execute(statement)
        database.close()
        trial = self.trial("sweeps/sweep.db")
        self.assertEqual(self.petlab("logs", trial, "--db", "sweeps/sweep.db").code, 0)
        plan = self.petlab("plan", "sweeps/sweep.yaml", "--worker", WORKER)
        self.assertIn("      2 done\n", plan.out)
        self.assertEqual(self.run_it().code, 0)
        self.assertEqual(self.query("SELECT value FROM settings WHERE name = 'runs'", "sweeps/sweep.db"),
                         [{"value": "sweep.runs"}])
        self.assertEqual(self.query("SELECT * FROM former_sweep_results", "sweeps/sweep.db"), [])

    def test_files_that_a_worker_cannot_read_are_reported_before_the_first_trial(self):
        # A worker with a check program.
        (self.root / "bin").mkdir()
        os.symlink(WORKER, self.root / "bin/worker")
        os.symlink(PROGRAMS / "petlab-trainer-check", self.root / "bin/worker-check")
        run = ["run", "sweeps/sweep.yaml", "--worker", "bin/worker", "--db", "a.db", "--runs", "r"]
        plan = ["plan", "sweeps/sweep.yaml", "--worker", "bin/worker", "--db", "a.db"]
        for word in ("input problem", "not checked"):
            self.assertNotIn(word, self.petlab(*plan).out)
        weights = (self.root / "tiny/model.safetensors").read_bytes()
        rows = (self.root / "sweeps/films-dev.tsv").read_text()
        for name, content, problem in (
                ("tiny/model.safetensors", weights[:-8], "sweeps/tiny/model.safetensors: "),
                ("sweeps/films-dev.tsv", rows.replace("poor", "awful", 1),
                 "sweeps/films-dev.tsv:3: label 'awful' is not known, expected one of 'poor', 'fine'"),
                ("sweeps/films-dev.tsv", rows.replace("label", "lable", 1),
                 "sweeps/films-dev.tsv:1: has no column 'label', found 'lable', 'sentence'")):
            with self.subTest(problem):
                before = (self.root / name).read_bytes()
                self.write(name, content)
                done = self.petlab(*plan)
                self.assertEqual(done.code, 0, done)
                self.assertRegex(done.out, "\nnote: input problem: ROOT/" +
                                 re.escape(problem))
                done = self.petlab(*run)
                self.assertEqual((done.code, done.out), (1, ""))
                self.assertTrue(done.err.startswith("petlab: ROOT/" + problem), done)
                self.assertIn("nothing was started; fix this, or pass --keep-going", done.err)
                self.assertFalse((self.root / "a.db").exists())
                self.write(name, before)
        (self.root / "sweeps/films-test.tsv").rename(self.root / "away.tsv")
        self.assertIn("films-test.tsv", self.petlab(*run).err)
        done = self.petlab(*run, "--keep-going")
        self.assertEqual(done.code, 0, done)  # this worker reads no data
        # Without trials to train, no files are needed.
        self.assertEqual(self.petlab(*run).code, 0)
        plan[3] = WORKER
        plan[5] = "other.db"
        self.assertIn(f"note: weights and data are not checked: {WORKER}-check does not exist\n", self.petlab(*plan).out)

    def test_an_empty_runs_folder_gives_no_database(self):
        (self.root / "none").mkdir()
        done = self.petlab("db", "rebuild", "--db", "new.db", "--runs", "none")
        self.assertEqual((done.code, done.err), (
            1, "petlab: none: found no sweep and no attempt, so new.db cannot be rebuilt\n"))
        self.assertFalse((self.root / "new.db").exists())

    def test_skipped_files_of_an_import_change_its_exit_code(self):
        self.assertEqual(self.run_it().code, 0)
        self.write("sweeps/sweep.runs/0123456789abcdef/1/trial.json", "{")
        for words in (["import", "--db", "sweeps/sweep.db"],
                      ["rebuild", "--db", "new.db", "--runs", "sweeps/sweep.runs"]):
            done = self.petlab("db", *words)
            self.assertEqual(done.code, 1, done)
            self.assertRegex(done.err, "^petlab: skipped: .*0123456789abcdef/1/trial.json")
            self.assertIn("2 attempts", done.out)


if __name__ == "__main__":
    tiny_world.main()
