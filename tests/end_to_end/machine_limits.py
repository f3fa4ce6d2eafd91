#!/usr/bin/env python3
"""Tests `petlab run` within limits on cores, processor time and open files.

usage: machine_limits.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator.
"""
import json
import os
import pathlib
import resource
import unittest

import tiny_world
from scripted_world import WORKER, ScriptedWorld

CORES = sorted(os.sched_getaffinity(0))


class MachineLimits(ScriptedWorld):
    def words(self, name, *more):
        return ["run", "sweep.yaml", "--db", f"{name}.db", "--runs", name, "--worker", WORKER, *more]

    def running(self, name, number):
        """The slot and pid of each worker of a run, once `number` of them have started."""
        sql = "SELECT device, pid FROM attempts WHERE started_at > 0 AND outcome = 'open' ORDER BY 1"
        database = f"{name}.db"
        return self.until(lambda: (self.root / database).exists() and
                          (lambda rows: len(rows) == number and
                           [(row["device"], row["pid"]) for row in rows])(self.query(sql, database)))

    @unittest.skipIf(len(CORES) < 2, "needs two cores")
    def test_two_runs_with_disjoint_cores_train_at_the_same_time(self):
        gate = self.root / "gate"
        self.write_sweep(*[{"gate": str(gate)}] * 2)
        runs = {}
        for core in CORES[:2]:
            runs[core] = self.start(*self.words(f"on-{core}"),
                                    preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        for core in runs:
            (device, pid), = self.running(f"on-{core}", 1)
            self.assertEqual(device, f"cpu-{core}")
            self.assertEqual(os.sched_getaffinity(pid), {core})
        gate.touch()
        for run in runs.values():
            done = self.end(run)
            self.assertEqual(done.code, 0, done)
            self.assertNotIn("waiting for a slot", done.err)

    def test_workers_are_bound_only_if_the_cores_were_chosen(self):
        gate = self.root / "gate"
        self.write_sweep(*[{"gate": str(gate)}] * 2)
        whole = self.start(*self.words("whole", "--slots", 1))
        (_, pid), = self.running("whole", 1)
        if len(CORES) == os.cpu_count():
            self.assertEqual(os.sched_getaffinity(pid), set(CORES))
        # Two workers share one core.
        shared = self.start(*self.words("shared", "--slots", 2),
                            preexec_fn=lambda: os.sched_setaffinity(0, {CORES[-1]}))
        core = CORES[-1]
        self.assertEqual([device for device, _ in self.running("shared", 2)],
                         [f"cpu-{core}", f"cpu-{core}.1"])
        gate.touch()
        for run in (whole, shared):
            self.assertEqual(self.end(run).code, 0)

    def test_half_a_processor_has_one_worker(self):
        pids = self.control_group(50000)
        enter = {"preexec_fn": lambda: pids.write_text("0")}
        found = json.loads(self.petlab("doctor", "--json", "--worker", WORKER, **enter).out)
        cores = next(check for check in found["checks"] if check["name"] == "cores")
        self.assertEqual((cores["facts"]["usable"], cores["facts"]["quota"]), (1, 0.5))
        self.assertEqual(found["uses"]["slots"], 1)
        self.write_sweep(*[{"step_ms": 5}] * 4)
        done = self.petlab(*self.words("half"), **enter)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(len(self.query("SELECT DISTINCT device FROM attempts", "half.db")), 1)

    def test_200_slots_with_1024_open_files(self):
        self.write_sweep(*[{}] * 200)
        limit = (1024, 1024)
        done = self.petlab(*self.words("few", "--slots", 200),
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit))
        self.assertEqual(done.code, 0, done)
        self.assertEqual(done.err.count("ulimit -n"), 1, done)
        self.assertRegex(done.err, r"(?m)^running at most 1\d\d workers, not 200: the limit of open "
                                   r"files is 1024; raise it with `ulimit -n` to at least 1\d\d\d$")
        self.assertEqual(self.query("SELECT outcome, count(*) AS n FROM attempts GROUP BY 1", "few.db"),
                         [{"outcome": "finished", "n": 200}])

    def test_a_kernel_without_pidfds_and_close_range(self):
        old = {"program": tiny_world.PROGRAMS / "old-kernel"}
        gate = self.root / "gate"
        self.write_sweep({"behaviour": "crash"}, {"gate": str(gate), "checkpoint_every": 1}, {}, {})
        words = [tiny_world.PETLAB, *self.words("old", "--slots", 2, "--retry-delay", "10ms")]
        killed = self.start(*words, **old)
        sql = "SELECT pid FROM attempts WHERE checkpoint_step > 0 AND outcome = 'open'"
        worker, = self.until(lambda: (self.root / "old.db").exists() and self.query(sql, "old.db"))
        self.until(lambda: self.query("SELECT 1 FROM attempts WHERE outcome = 'crashed'", "old.db"))
        # The guardian ends the worker, and the next run cleans up.
        killed.kill()
        self.until(lambda: not pathlib.Path(f"/proc/{worker['pid']}").exists())
        gate.touch()
        done = self.petlab(*words, **old)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query("SELECT outcome, count(*) AS n FROM attempts WHERE outcome IN "
                                    "('crashed', 'finished') GROUP BY 1 ORDER BY 1", "old.db"),
                         [{"outcome": "crashed", "n": 1}, {"outcome": "finished", "n": 4}])
        self.assertEqual(self.query("SELECT count(*) AS n FROM attempts WHERE resume_step > 0",
                                    "old.db"), [{"n": 1}])


if __name__ == "__main__":
    tiny_world.main()
