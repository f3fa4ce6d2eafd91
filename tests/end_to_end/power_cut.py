#!/usr/bin/env python3
"""Simulates power cuts: kills a run of 20 trials with all its processes and removes unsynced data from its files.
Then repeats the command with another boot id until every trial is done.

usage: power_cut.py FOLDER_OF_PROGRAMS; PETLAB_TEST_CUTS (5) sets the number of cuts, PETLAB_TEST_SEED (1) their
times.

Synced data are: events.jsonl up to its last line checkpoint, finished or failed; attempt.jsonl up to `ended`; the files
named in events; decisions, sweeps and the database; and everything written before the last cut. A cut truncates
other data, even inside a line, or replaces it by zeros.
"""
import json
import os
import pathlib
import random
import signal
import uuid

import tiny_world
from scripted_world import METRICS, ScriptedWorld

TRIALS = 20
CUTS = int(os.environ.get("PETLAB_TEST_CUTS", "5"))
SEED = int(os.environ.get("PETLAB_TEST_SEED", "1"))
BOOT_ID = "/proc/sys/kernel/random/boot_id"
USER = {"steps": 12, "step_ms": 6, "load_ms": 10, "checkpoint_every": 4, "validate_every": 3, "metrics": 3}
MOST_BYTES = 60_000  # the events of all trials have about 120,000 bytes
MARK = "PETLAB_POWER_CUT"


def marked_processes(mark):
    """The pids of all processes started by a run, including guardians and workers."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def has_ended(pid):
    """A process loses its environment a moment before its files and locks."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    except OSError:
        return True


def synced_bytes(text, is_synced):
    """The size of the text up to its last synced line."""
    size = end = 0
    for line in text.splitlines(keepends=True):
        size += len(line)
        if line.endswith(b"\n") and is_synced(json.loads(line)):
            end = size
    return end


def is_synced_event(line):
    return line["type"] in ("checkpoint", "finished", "failed", "stopped")


def is_synced_record(line):
    return line["type"] == "ended"


class PowerCut(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.write_sweep(*[USER] * TRIALS)
        self.draw = random.Random(SEED)
        self.cut_bytes = self.cut_files = self.resumed = 0
        self.variables = {MARK: str(self.root)}

    def boot(self):
        self.write("boot_id", str(uuid.UUID(int=self.draw.getrandbits(128))) + "\n")

    def start_run(self):
        return self.start_scripted("--db", "cut.db", "--runs", "cut.runs", slots=4,
                                   faults=f"redirect program=petlab path={BOOT_ID} file={self.root}/boot_id")

    def bytes_of_events(self):
        return sum(file.stat().st_size for file in self.root.glob("cut.runs/*/*/events.jsonl"))

    def kill_everything(self, process):
        killed = set()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in marked_processes(self.root):
                killed.add(pid)
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
        process.wait()
        self.until(lambda: not marked_processes(self.root) and all(has_ended(pid) for pid in killed))

    def lose(self, file, keep):
        """Loses data after the first `keep` bytes: truncates at a random byte, or fills with zeros from there."""
        text = file.read_bytes()
        if len(text) <= keep:
            return
        at = self.draw.randint(keep, len(text))
        zeros = self.draw.random() < 0.3
        file.write_bytes(text[:at] + b"\0" * ((len(text) - at) if zeros else 0))
        if at < len(text):
            self.cut_files += 1
            self.cut_bytes += len(text) - at

    def cut(self, durable):
        """Cuts all attempts except `durable`, the folders left by earlier cuts."""
        runs = self.root / "cut.runs"
        for trial in sorted(runs.iterdir()):
            if trial.name in ("sweeps", ".locks"):
                continue
            for folder in sorted(entry for entry in trial.iterdir() if entry.name.isdigit()):
                self.cut_attempt(folder, durable)
        for lock in sorted((runs / ".locks").iterdir()):
            if self.draw.random() < 0.5:
                lock.write_bytes(b"")

    def cut_attempt(self, folder, durable):
        if folder in durable:
            return
        events, record, trial = folder / "events.jsonl", folder / "attempt.jsonl", folder / "trial.json"
        known = synced_bytes(events.read_bytes(), is_synced_event) if events.exists() else 0
        ended = synced_bytes(record.read_bytes(), is_synced_record)
        if known == ended == 0 and self.draw.random() < 0.2:
            tiny_world.shutil.rmtree(folder)
            self.cut_files += 1
            return
        if events.exists():
            self.lose(events, known)
        self.lose(record, ended)
        self.lose(trial, 0)
        if (folder / "log.txt").exists():
            self.lose(folder / "log.txt", 0)
        durable.add(folder)

    def metrics(self, database):
        return self.query(METRICS, database)

    def test_every_trial_is_done_in_the_end_and_the_files_match_the_database(self):
        wanted = self.wanted()
        cuts = rounds = 0
        while cuts < CUTS:
            rounds += 1
            cuts += self.one_round(CUTS - cuts)
            self.assertEqual(self.metrics("cut.db"), wanted)
            self.assertEqual(self.query(
                "SELECT count(*) AS trials, sum(n) AS results FROM (SELECT count(*) AS n FROM attempts "
                "WHERE outcome = 'finished' GROUP BY trial)", "cut.db"), [{"trials": TRIALS, "results": TRIALS}])
            others = self.query("SELECT outcome, reason, count(*) AS n FROM attempts WHERE outcome NOT IN "
                                "('finished', 'stopped', 'never_started') GROUP BY 1, 2", "cut.db")
            self.assertEqual(others, [])
            self.resumed += self.query("SELECT count(*) AS n FROM attempts WHERE parent IS NOT NULL",
                                       "cut.db")[0]["n"]
            checked = self.petlab("db", "check", "--db", "cut.db", "--runs", "cut.runs")
            self.assertEqual(checked.code, 0, checked)
            self.compare_with_a_rebuild()
            for name in ("cut.runs", "cut.db", "cut.db-wal", "cut.db-shm", "anew.db"):
                tiny_world.shutil.rmtree(self.root / name, ignore_errors=True)
                (self.root / name).unlink(missing_ok=True)
        print(f"{cuts} cuts in {rounds} rounds of {TRIALS} trials, seed {SEED}: {self.cut_bytes} bytes of "
              f"{self.cut_files} files lost, {self.resumed} attempts resumed from a checkpoint", flush=True)
        self.assertGreater(self.cut_files, 0)

    def one_round(self, most):
        """Runs the sweep to its end with at most `most` cuts. Returns their number."""
        cuts, durable = 0, set()
        while True:
            self.boot()
            process = self.start_run()
            if cuts == most:
                done = self.end(process)
                self.assertEqual(done.code, 0, done)
                return cuts
            # Cuts depend on written bytes and not on time, so that a busy machine has no influence.
            enough = self.bytes_of_events() + self.draw.randint(0, MOST_BYTES)
            self.until(lambda: process.poll() is not None or self.bytes_of_events() > enough, 300)
            if process.poll() is not None:
                done = self.end(process)
                self.assertEqual(done.code, 0, done)
                return cuts
            self.kill_everything(process)
            # A run without a lock has not written anything yet, or has synced all its files.
            if list((self.root / "cut.runs").glob(f".locks/{process.pid}-*")):
                self.cut(durable)
                cuts += 1

    def compare_with_a_rebuild(self):
        done = self.petlab("db", "rebuild", "--db", "anew.db", "--runs", "cut.runs")
        self.assertEqual((done.code, done.err), (0, ""), done)
        for sql in ("SELECT trial_id, attempt, seq, step, split, task, name, value FROM metrics ORDER BY 1, 2, 3",
                    "SELECT t.trial_id, a.number, a.outcome, a.reason, a.sweep, a.owner, a.host, a.boot_id, "
                    "a.begun_at, a.parent, a.resume_step, a.resume_seq, a.checkpoint_step, a.checkpoint_seq, "
                    "a.checkpoint_path, a.started_at, a.numerics, a.finished_step, a.events_next_seq, p.step AS at, "
                    "p.loss, l.points, v.petlab IS NOT NULL AS told FROM attempts a JOIN trials t ON t.key = a.trial "
                    "LEFT JOIN progress p ON p.attempt = a.key LEFT JOIN (SELECT attempt, group_concat(loss) AS points "
                    "FROM loss_points GROUP BY attempt) l ON l.attempt = a.key LEFT JOIN provenance v ON v.attempt = "
                    "a.key ORDER BY 1, 2"):
            self.assertEqual(self.query(sql, "cut.db"), self.query(sql, "anew.db"))


if __name__ == "__main__":
    tiny_world.main()
