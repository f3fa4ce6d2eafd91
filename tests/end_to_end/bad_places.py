#!/usr/bin/env python3
"""Tests databases and folders that cannot be used: no result may be lost.

usage: bad_places.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator.
"""
import shutil
import sqlite3
import subprocess

import tiny_world
from tiny_world import PROGRAMS, SWEEP, VARIANTS, TinyWorld


class BadPlaces(TinyWorld):
    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", SWEEP + VARIANTS)

    def scripted(self, *words):
        return self.run_sweep("--worker", str(PROGRAMS / "scripted-worker"), *words)

    def make_read_only(self, disk):
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)

    def set_version(self, version):
        with sqlite3.connect(self.root / "sweep.db") as database:
            before = database.execute("PRAGMA user_version").fetchone()[0]
            database.execute(f"PRAGMA user_version = {version}")
        database.close()
        return before

    def test_a_database_of_a_newer_version_is_refused_and_stays_as_it_is(self):
        self.assertEqual(self.scripted().code, 0)
        rows = self.query("SELECT * FROM results")
        known = self.set_version(99)
        before = (self.root / "sweep.db").read_bytes()
        message = (f"petlab: sweep.db: the database has version 99, this petlab knows up to {known}"
                   "; use a newer petlab, or name another file with --db\n")
        worker = ["--worker", str(PROGRAMS / "scripted-worker")]
        for words in (["run", "sweep.yaml", *worker], ["plan", "sweep.yaml"],
                      ["report", "sweep", "--sweep", "tiny", "--db", "sweep.db"],
                      ["query", "SELECT 1", "--db", "sweep.db"]):
            with self.subTest(words[0]):
                done = self.petlab(*words)
                self.assertEqual((done.code, done.err), (1, message))
        self.assertEqual((self.root / "sweep.db").read_bytes(), before)
        self.set_version(known)
        self.assertEqual(self.query("SELECT * FROM results"), rows)

    def test_a_database_in_a_read_only_folder_is_read_and_not_written(self):
        self.assertEqual(self.scripted().code, 0)
        disk = self.small_disk("8m")
        shutil.copy(self.root / "sweep.db", disk)
        self.make_read_only(disk)
        done = self.scripted("--db", "disk/sweep.db", "--runs", "sweep.runs")
        self.assertEqual((done.code, done.err),
                         (1, "petlab: disk/sweep.db: cannot open it: the file or its folder is "
                             "read-only; make both writable or name another database with --db\n"))
        done = self.scripted("--db", "disk/new.db", "--runs", "sweep.runs")
        self.assertEqual((done.code, done.err),
                         (1, "petlab: disk/new.db: cannot make it: folder disk cannot be written "
                             "(Read-only file system); make it writable or name another database "
                             "with --db\n"))
        plan = self.petlab("plan", "sweep.yaml", "--db", "disk/sweep.db", "--runs", "sweep.runs",
                           "--worker", PROGRAMS / "scripted-worker")
        self.assertEqual(plan.code, 0, plan)
        self.assertIn("\n      4 done\n", plan.out)
        report = ["report", "sweep", "--sweep", "tiny", "--db"]
        self.assertEqual(self.petlab(*report, "disk/sweep.db").out,
                         self.petlab(*report, "sweep.db").out)

    def test_an_unwritable_runs_folder_is_reported_before_any_trial(self):
        self.write("a-file", "this is no folder")
        done = self.scripted("--runs", "a-file")
        self.assertEqual((done.code, done.err),
                         (1, "petlab: ROOT/a-file: the runs folder cannot be written: Not a "
                             "directory (choose another with --runs)\n"))
        disk = self.small_disk("1m")
        self.make_read_only(disk)
        done = self.scripted("--runs", "disk/runs")
        self.assertEqual((done.code, done.err),
                         (1, "petlab: ROOT/disk/runs: the runs folder cannot be written: "
                             "Read-only file system (choose another with --runs)\n"))
        done = self.scripted()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query("SELECT count(*) AS n FROM attempts"), [{"n": 4}])

    def test_a_disk_full_from_the_start_gets_no_database(self):
        disk = self.small_disk("64k")
        done = self.scripted("--db", "disk/new.db", "--runs", "sweep.runs")
        self.assertEqual((done.code, done.err),
                         (1, "petlab: disk/new.db: cannot make it: the disk is full or cannot be "
                             "written; free some space and run the same command again\n"))
        self.assertEqual(list(disk.iterdir()), [])

    def test_a_disk_that_fills_up_loses_nothing(self):
        wanted = "SELECT trial_id, step, split, name, value FROM results ORDER BY 1, 2, 3, 4"
        self.assertEqual(self.scripted("--db", "undisturbed.db", "--runs", "undisturbed").code, 0)
        disk = self.small_disk("1m")
        for left in (3, 12):
            with self.subTest(pages_left=left):
                ballast = self.fill(disk, left)
                database, runs = f"{left}.db", f"disk/{left}"
                done = self.scripted("--db", database, "--runs", runs)
                self.assertEqual(done.code, 1, done)
                self.assertIn("No space left on device", done.err)
                ballast.unlink()
                done = self.scripted("--db", database, "--runs", runs, "--rerun", "failed")
                self.assertEqual(done.code, 0, done)
                self.assertIn("\n4 of 4 done, 0 running, 0 failed", done.err)
                self.assertEqual(self.query(wanted, database), self.query(wanted, "undisturbed.db"))


if __name__ == "__main__":
    tiny_world.main()
