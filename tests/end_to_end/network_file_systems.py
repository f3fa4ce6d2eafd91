#!/usr/bin/env python3
"""Tests runs folders and databases on network file systems: one writer for each, and systems without locks.

usage: network_file_systems.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator. The file
systems are faked by tests/support/fault_shim.cpp.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import tiny_world
from scripted_world import METRICS, ScriptedWorld

HELD = "petlab: written; the run that has the database open records it within a second\n"


class DecisionsDuringARun(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.gate = self.root / "gate"
        self.write_sweep(*[{"checkpoint_every": 1, "gate": str(self.gate)}] * 2, {"behaviour": "error"})
        self.run = self.start_scripted(faults="network program=petlab", slots=3)
        self.until(lambda: (self.root / "sweep.db").exists() and
                   self.outcomes() == {"failed": 1, "open": 2} and
                   len(self.query("SELECT 1 AS one FROM attempts WHERE checkpoint_step = 1")) == 2)
        self.ids = [row["trial_id"] for row in self.query("SELECT trial_id FROM trials ORDER BY seed")]

    def decide(self, *words):
        self.faults = "network program=petlab"
        done = self.petlab(*words, "--db", "sweep.db")
        self.faults = ""
        self.assertEqual((done.code, done.err), (0, HELD), done)

    def end_run(self, code):
        self.gate.touch()
        done = self.end(self.run)
        self.assertEqual(done.code, code, done)
        self.assertEqual(list((self.root / "sweep.runs").glob(".inbox/*")), [])
        checked = self.petlab("db", "check", "--db", "sweep.db")
        self.assertEqual(checked.code, 0, checked)

    def test_a_cancelled_trial_stops_while_the_run_holds_the_database(self):
        self.decide("cancel", self.ids[0])
        self.until(lambda: self.outcomes() == {"failed": 1, "open": 1, "cancelled": 1})
        self.end_run(1)

    def test_a_failed_trial_is_retried_by_the_run_that_holds_the_database(self):
        self.decide("retry", self.ids[2])
        self.until(lambda: self.query("SELECT count(*) AS n FROM attempts WHERE trial = 3")[0]["n"] == 2)
        self.end_run(0)

    def test_hidden_trials_tags_and_notes_are_recorded_by_the_run(self):
        self.decide("hide", self.ids[1], "--why", "too far off")
        self.decide("tag", self.ids[0], "--add", "odd")
        self.decide("note", "--sweep", "scripted", "look again")
        self.until(lambda: not list((self.root / "sweep.runs").glob(".inbox/*")))
        shown = json.loads(self.petlab("tag", self.ids[0], "--json", "--db", "sweep.db").out)
        self.assertEqual(shown, [{"trial": self.ids[0], "tags": ["odd"]}])
        self.assertIn("look again", self.petlab("note", "--sweep", "scripted", "--db", "sweep.db").out)
        self.assertEqual(self.query("SELECT why FROM hidden_trials"), [{"why": "too far off"}])
        self.end_run(1)

    def test_a_trial_on_another_host_can_be_declared_dead_after_the_run(self):
        self.faults = "network program=petlab"
        done = self.petlab("retry", "--declare-dead", self.ids[0], "--db", "sweep.db")
        self.faults = ""
        self.assertEqual(done.code, 1, done)
        self.end_run(1)


class Leases(ScriptedWorld):
    """A host vanishes while its run holds the database; files say so, as another host would see them."""

    def setUp(self):
        super().setUp()
        self.gate = self.root / "gate"
        self.lock = self.root / "sweep.db.lock"
        self.write_sweep(*[{"checkpoint_every": 1, "gate": str(self.gate)}] * 2)
        self.start_leased()

    def start_leased(self):
        self.run = self.start_scripted("--lease", "10s", faults="network program=petlab")
        self.until(lambda: (self.root / "sweep.db").exists() and
                   len(self.query("SELECT 1 AS one FROM attempts WHERE checkpoint_step = 1 AND outcome = 'open'")) == 2)

    def vanish(self, seconds):
        """The run and its workers die on a host that last renewed its lease so long ago."""
        self.run.kill()
        self.end(self.run)
        self.until(self.slots_free)
        holder = self.lock.read_text()
        self.assertRegex(holder, r"^\S+ process \d+ lease 10\n$")
        self.lock.write_text("far" + holder[holder.index(" "):])
        os.utime(self.lock, (time.time() - seconds,) * 2)
        with contextlib.closing(sqlite3.connect(self.root / "sweep.db")) as database, database:
            database.execute("UPDATE attempts SET host = 'far', boot_id = 'other'")
        for log in self.root.glob("sweep.runs/*/1/attempt.jsonl"):
            log.write_text(re.sub('"boot_id":"[^"]*"', '"boot_id":"other"',
                                  re.sub('"host":"[^"]*"', '"host":"far"', log.read_text())))

    def run_here(self):
        return self.run_scripted(faults="network program=petlab")

    def test_another_host_takes_over_when_the_lease_has_ended(self):
        self.vanish(13)
        self.gate.touch()
        done = self.run_here()
        self.assertEqual(done.code, 0, done)
        self.assertIn("took the database from far, whose lease has ended: closed 2 attempt(s)\n", done.err)
        attempts = self.query("SELECT number, outcome, reason, resume_step FROM attempts ORDER BY number")
        self.assertEqual([(row["number"], row["outcome"]) for row in attempts],
                         [(1, "lost")] * 2 + [(2, "finished")] * 2)
        self.assertEqual({row["reason"] for row in attempts[:2]}, {"far did not renew its lease"})
        self.assertEqual({row["resume_step"] for row in attempts[2:]}, {1})
        self.assertEqual(self.lock.read_text(), "")
        self.assertEqual(self.petlab("db", "check", "--db", "sweep.db").code, 0)
        # A worker of the vanished host finished after all: its attempt stays lost, and the result counts once.
        late = next(self.root.glob("sweep.runs/*/1/events.jsonl"))
        lines = late.read_text().splitlines()
        event = {"v": 1, "seq": len(lines), "time": time.time(), "type": "finished", "step": 4}
        late.write_text("\n".join([*lines, json.dumps(event)]) + "\n")
        before = self.query(METRICS)
        self.assertEqual(self.run_here().code, 0)
        self.assertEqual(self.query(METRICS), before)

    def test_no_host_takes_over_while_the_lease_may_be_renewed(self):
        self.vanish(8)
        done = self.run_here()
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.err, r"petlab: sweep\.db: far process \d+ lease 10 writes it, last at .*; on a network file "
                                   r"system only one may: wait for it, or until it has not renewed its lease of 10 s")

    def test_a_takeover_that_dies_is_completed_by_the_next_run(self):
        self.vanish(13)
        self.gate.touch()
        before = self.environment
        self.environment = lambda: before() | {"PETLAB_FAULT_POINT": "recover_logged:1"}
        done = self.run_here()
        self.environment = before
        self.assertEqual(done.code, -signal.SIGKILL, done)
        self.assertIn("after far", self.lock.read_text())
        self.assertEqual(self.run_here().code, 0)
        self.assertEqual(self.query("SELECT outcome, count(*) AS n FROM attempts GROUP BY outcome"),
                         [{"outcome": "finished", "n": 2}, {"outcome": "lost", "n": 2}])
        self.assertEqual(self.petlab("db", "check", "--db", "sweep.db").code, 0)

    def test_a_run_whose_database_was_taken_over_writes_nothing_more(self):
        size = (self.root / "sweep.db").stat().st_size
        before = self.query(METRICS)
        self.lock.write_text("near process 5 lease 10\n")
        done = self.end(self.run, timeout=30)
        self.assertEqual(done.code, 1, done)
        self.assertIn("near process 5 lease 10 has the database now, because this run did not renew its lease", done.err)
        self.assertEqual((self.query(METRICS), (self.root / "sweep.db").stat().st_size), (before, size))

    def test_a_run_that_was_suspended_for_its_lease_ends(self):
        self.run.send_signal(signal.SIGSTOP)
        time.sleep(10.5)
        self.run.send_signal(signal.SIGCONT)
        done = self.end(self.run, timeout=30)
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.err, r"sweep\.db\.lock: the lease of 10 s ended \d s ago")
        self.gate.touch()
        self.assertEqual(self.run_here().code, 0)
        self.assertEqual(self.petlab("db", "check", "--db", "sweep.db").code, 0)


class LocalLease(ScriptedWorld):
    def test_a_lease_needs_a_database_that_other_hosts_can_open(self):
        self.write_sweep({})
        done = self.run_scripted("--lease", "10m")
        self.assertEqual(done.code, 2, done)
        self.assertIn("--lease: sweep.db is on a file system of this host alone", done.err)
        self.assertIn("must be at least 10 s", self.run_scripted("--lease", "9s").err)


class ReadOnly(ScriptedWorld):
    def test_a_database_in_a_read_only_folder_is_read_and_not_written(self):
        self.write_sweep({})
        network = "network program=petlab"
        self.assertEqual(self.run_scripted(faults=network).code, 0)
        disk = self.small_disk("8m")
        shutil.copy(self.root / "sweep.db", disk)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        done = self.run_scripted("--db", "disk/sweep.db", "--runs", "sweep.runs", faults=network)
        self.assertEqual((done.code, done.err),
                         (1, "petlab: disk/sweep.db.lock: cannot be opened: Read-only file system; make its folder "
                             "writable or name another database with --db\n"))
        self.faults = network
        self.assertEqual(self.query(METRICS, "disk/sweep.db"), self.query(METRICS))


class Killed(ScriptedWorld):
    def test_a_commit_of_a_killed_run_is_rolled_back_by_whatever_command_is_next(self):
        self.write_sweep({}, {})
        network = "network program=petlab"
        for command in (["query", "SELECT count(*) AS n FROM trials", "--db", "sweep.db"], ["status", "sweep.yaml"],
                        self.run_words()):
            with self.subTest(command[0]):
                for file in self.root.glob("sweep.*"):
                    if file.suffix != ".yaml":
                        shutil.rmtree(file) if file.is_dir() else file.unlink()
                done = self.run_scripted(faults=f"{network};kill program=petlab calls=fdatasync path=*/sweep.db at=2")
                self.assertEqual(done.code, -signal.SIGKILL, done)
                self.assertGreater((self.root / "sweep.db-journal").stat().st_size, 0)
                self.faults = network
                done = self.petlab(*command)
                self.faults = ""
                self.assertEqual(done.code, 0, done)
                self.assertFalse((self.root / "sweep.db-journal").exists())
                self.assertEqual(self.run_scripted(faults=network).code, 0)
                self.assertEqual(self.petlab("db", "check", "--db", "sweep.db").code, 0)


class WithoutLocks(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.write_sweep({})

    def test_a_file_is_written_whole_without_leaving_a_copy(self):
        done = self.run_scripted(faults="fail program=petlab calls=flock path=*/sweeps/* error=ENOLCK")
        self.assertEqual(done.code, 0, done)
        names = [entry.name for entry in (self.root / "sweep.runs/sweeps").iterdir()]
        self.assertEqual(sorted(pathlib.Path(name).suffix for name in names), [".code", ".jsonl", ".yaml"])

    def test_an_archive_is_written(self):
        self.assertEqual(self.run_scripted().code, 0)
        self.faults = "fail program=petlab calls=flock path=*/out.petlab.tar.gz.* error=ENOLCK"
        done = self.petlab("db", "export", "archive", "out.petlab.tar.gz", "--db", "sweep.db")
        self.assertEqual(done.code, 0, done)

    def test_a_database_without_locks_is_refused(self):
        done = self.run_scripted(faults="network program=petlab;"
                                        "fail program=petlab calls=fcntl path=*/sweep.db.lock error=ENOLCK")
        self.assertEqual(done.code, 1, done)
        self.assertIn("petlab: sweep.db.lock: the file cannot be locked: No locks available; name a database on a file system "
                      "with locks with --db\n", done.err)

    def test_a_runs_folder_without_locks_is_refused(self):
        done = self.run_scripted(faults="fail program=petlab calls=flock path=*/.locks/* error=ENOLCK")
        self.assertEqual(done.code, 1, done)
        self.assertIn("its folder must be on a file system with flock (Lustre: mount option flock; NFS: lockd); "
                      "choose other folders with --runs and PETLAB_SLOTS\n", done.err)


class UnreadableFiles(ScriptedWorld):
    def test_a_rebuild_reports_unreadable_decisions(self):
        self.write_sweep({})
        self.assertEqual(self.run_scripted().code, 0)
        trial = self.query("SELECT trial_id FROM trials")[0]["trial_id"]
        self.assertEqual(self.petlab("hide", trial, "--db", "sweep.db", "--why", "odd").code, 0)
        self.assertEqual(self.petlab("note", trial, "odd", "--db", "sweep.db").code, 0)
        for error, text in (("EACCES", "Permission denied"), ("EIO", "Input/output error")):
            with self.subTest(error):
                self.faults = (f"fail program=petlab calls=open path=*/decisions.jsonl error={error};"
                               f"fail program=petlab calls=open path=*/remarks.jsonl error={error}")
                done = self.petlab("db", "rebuild", "--db", f"{error}.db", "--runs", "sweep.runs")
                self.faults = ""
                self.assertEqual(done.code, 1, done)
                self.assertEqual(done.err, "".join(
                    f"petlab: skipped: sweep.runs/{trial}/{name}: cannot be read: {text}\n"
                    for name in ("decisions.jsonl", "remarks.jsonl")))

    def fails(self, message, *words, faults=""):
        self.faults = faults
        done = self.petlab(*words)
        self.faults = ""
        self.assertEqual((done.code, done.err), (1, f"petlab: {message}\n"), done)

    def test_gc_removes_nothing_of_an_attempt_with_unreadable_events(self):
        self.write_sweep({"behaviour": "crash", "phase": "training"})
        self.assertEqual(self.run_scripted("--retries", 0).code, 1)
        attempt, = self.root.glob("sweep.runs/*/1")
        (attempt / "artifact.petl").write_text("half")
        where = f"ROOT/sweep.runs/{attempt.parent.name}/1/events.jsonl"
        for call, error, text in (("open", "EACCES", "Permission denied"), ("read", "EIO", "Input/output error")):
            self.fails(f"{where}: cannot be read: {text}", "db", "gc", "--db", "sweep.db",
                       faults=f"fail program=petlab calls={call} path=*/events.jsonl error={error}")
            self.assertTrue((attempt / "artifact.petl").exists())
        self.assertEqual(self.petlab("db", "gc", "--db", "sweep.db").code, 0)
        self.assertFalse((attempt / "artifact.petl").exists())

    def test_a_merge_and_an_archive_report_unreadable_remarks_and_notes(self):
        self.write_sweep({})
        self.assertEqual(self.run_scripted().code, 0)
        trial, = self.root.glob("sweep.runs/[0-9a-f]*")
        why = "cannot be read: Too many levels of symbolic links"
        for name, left in (("remarks.jsonl", ""), ("1/taken_over.json", f"skipped: {trial.name} ")):
            with self.subTest(name):
                file = trial / name
                file.symlink_to(file)  # a link to itself is unreadable even for root
                self.fails(f"{left}sweep.runs/{trial.name}/{name}: {why}",
                           "db", "merge", "sweep.db", "--db", f"{file.stem}.db", "--runs", f"{file.stem}.runs")
                if name == "remarks.jsonl":
                    self.fails(f"ROOT/sweep.runs/{trial.name}/{name}: {why}",
                               "db", "export", "archive", "out.petlab.tar.gz", "--db", "sweep.db")
                file.unlink()

    def test_a_rebuild_reports_a_sweep_that_it_cannot_read_completely(self):
        self.write_sweep({})
        self.assertEqual(self.run_scripted().code, 0)
        self.fails("skipped: sweep.runs/sweeps/scripted.jsonl: cannot be read completely: "
                   "Input/output error",
                   "db", "rebuild", "--db", "anew.db", "--runs", "sweep.runs",
                   faults="fail program=petlab calls=read path=*/sweeps/scripted.jsonl error=EIO after=1")

    def test_an_export_reports_unreadable_events(self):
        self.write_sweep({})
        self.assertEqual(self.run_scripted().code, 0)
        trial = self.query("SELECT trial_id FROM trials")[0]["trial_id"]
        self.fails(f"ROOT/sweep.runs/{trial}/1/events.jsonl: cannot be read: Input/output error",
                   "db", "export", "--tensorboard", "board", "--db", "sweep.db",
                   faults="fail program=petlab calls=read path=*/events.jsonl error=EIO")


if __name__ == "__main__":
    tiny_world.main()
