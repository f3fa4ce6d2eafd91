#!/usr/bin/env python3
"""Tests many `petlab run` on one database at the same time, with readers, and repeated runs of a sweep.

usage: many_at_once.py FOLDER_OF_PROGRAMS; PETLAB_TEST_REPEATS sets the number of repetitions of the sweep (2), and of
the case with many runs (1).
"""
import os
import re
import shutil
import threading

import tiny_world
from scripted_world import METRICS, WORKER, ScriptedWorld

SLOTS = 6
TRIALS = 30
WAITS = re.compile("waiting for a slot(: a run of sweep scripted goes first)?\n")
REPEATS = int(os.environ.get("PETLAB_TEST_REPEATS", "2"))
TIMES_AT_ONCE = int(os.environ.get("PETLAB_TEST_REPEATS", "1"))
# A worker's first line is written after it got its slot, the last one before it releases the slot.
RECORDER = """#!/bin/sh
[ "$1" = --describe ] && exec '{worker}' --describe
echo + >> '{record}'
'{worker}' "$@"
code=$?
echo - >> '{record}'
exit $code
"""


class ManyAtOnce(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.write_sweep(*[{"steps": 3, "step_ms": 5, "checkpoint_every": 2}] * TRIALS)
        self.record = self.write("record", "")
        self.recorder = self.write("recorder", RECORDER.format(worker=WORKER, record=self.record))
        self.recorder.chmod(0o755)

    def words(self):
        return ["run", "sweep.yaml", "--slots", SLOTS, "--quiet", "--worker", self.recorder]

    def start_anew(self):
        for name in ("sweep.runs", "sweep.db", "sweep.db-wal", "sweep.db-shm", "anew.db"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            (self.root / name).unlink(missing_ok=True)
        self.record.write_text("")

    def check_silent(self, ends):
        """Compares all runs together, so that a failure shows each one's output. On a busy machine a run may
        correctly report that it is waiting for a slot."""
        self.assertEqual([done for done in ends if (done.code, done.out, WAITS.sub("", done.err)) != (0, "", "")], [])

    def check_complete(self):
        if self.outcomes() != {"finished": TRIALS}:
            rows = self.query("SELECT t.trial_id, number, outcome, reason, owner, begun_at, ended_at FROM attempts "
                              "a JOIN trials t ON t.key = a.trial ORDER BY begun_at")
            self.fail("\n".join(map(str, rows)))
        running = most = 0
        for line in self.record.read_text().split():
            running += 1 if line == "+" else -1
            most = max(most, running)
        self.assertEqual(running, 0)
        self.assertLessEqual(most, SLOTS)
        self.petlab("db", "rebuild", "--db", "anew.db", "--runs", "sweep.runs")
        for sql in (METRICS,
                    "SELECT t.trial_id, number, sweep, owner, host, device, pid, begun_at, started_at, "
                    "ended_at, outcome, checkpoint_step, events_offset, events_next_seq FROM attempts a "
                    "JOIN trials t ON t.key = a.trial ORDER BY 1, 2",
                    "SELECT * FROM sweep_results ORDER BY trial_id, variant, seq",
                    "SELECT name, about, file, digest FROM sweeps",
                    "SELECT trial_id, config, backbone_digest, bls_bits FROM trials ORDER BY 1"):
            self.assertEqual(self.query(sql, "anew.db"), self.query(sql))

    def test_32_runs_on_one_database_while_others_read_it(self):
        for repeat in range(TIMES_AT_ONCE):
            with self.subTest(repeat=repeat):
                self.start_anew()
                self.run_many_at_once()

    def run_many_at_once(self):
        over = threading.Event()
        wrong = []
        readings = [0]

        def read():
            while not over.is_set():
                for words in (["query", METRICS, "--db", "sweep.db"], ["status", "sweep.yaml"]):
                    if not (self.root / "sweep.db").exists():
                        continue
                    done = self.petlab(*words)
                    readings[0] += 1
                    if done.code != 0 or done.err:
                        wrong.append(done)

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        try:
            runs = [self.start(*self.words()) for _ in range(32)]
            ends = [self.end(run, timeout=300) for run in runs]
        finally:
            over.set()
            for reader in readers:
                reader.join()
        self.check_silent(ends + wrong)
        self.assertGreater(readings[0], 0)
        self.check_complete()

    def test_every_repeat_is_complete(self):
        for repeat in range(REPEATS):
            with self.subTest(repeat=repeat):
                self.start_anew()
                self.check_silent([self.petlab(*self.words())])
                self.check_complete()


if __name__ == "__main__":
    tiny_world.main()
