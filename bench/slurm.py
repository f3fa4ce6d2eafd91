#!/usr/bin/env python3
"""Times a sweep on a real Slurm: jobs that run trial after trial, next to one job for each trial, in alternating rounds.

usage: bench/slurm.py FOLDER_OF_PROGRAMS [--trials 200] [--seconds 5] [--load 5] [--rounds 1] [--arm ARM]
           [--hyperqueue PYTHON]

The cluster is temporary: two nodes with two slots each, as in tests/end_to_end/slurm.py. A Python worker sleeps for
--load when it starts, as if it loaded a backbone, and for --seconds in each trial. So the processor hardly
matters, but Slurm's own scheduling does. Prints a JSON line per run: jobs, workers (backbone loads), trials a minute, and
the overhead of a trial: what it took beyond its share of --seconds and of the loads, and between two trials of a worker.
--hyperqueue: a Python that has HyperQueue, for a third arm (bench/slurm_hyperqueue.py).
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/end_to_end"))
SLOTS = 4
ARMS = {"jobs that stay": ["--slots", str(SLOTS)],
        "jobs of two workers": ["--slots", str(SLOTS), "--slurm-exclusive", "2"],
        "one job a trial": ["--fresh-workers"]}

parser = argparse.ArgumentParser()
parser.add_argument("programs")
parser.add_argument("--trials", type=int, default=200)
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--load", type=float, default=5)
parser.add_argument("--rounds", type=int, default=1)
parser.add_argument("--arm", choices=ARMS, action="append", help="instead of all; repeatable")
parser.add_argument("--hyperqueue")
given = parser.parse_args()
sys.argv = [sys.argv[0], given.programs]
import slurm  # noqa: E402  (reads the folder of programs from sys.argv)
import slurm_cluster  # noqa: E402


WORKER = f"""
import sys
import time

sys.path.insert(0, {str(pathlib.Path(__file__).resolve().parent.parent / "python/src")!r})
import petlab

if "--describe" not in sys.argv:
    time.sleep({given.load})

def train(trial):
    time.sleep({given.seconds})
    trial.finish(step=1)

petlab.Worker("sleeper", numerics="1").run(train)
"""


class Timed(slurm.SlurmCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = slurm_cluster.Cluster(nodes=2, cpus=2)
        cls.addClassCleanup(cls.cluster.stop)

    def runTest(self):
        for round_ in range(given.rounds):
            for arm in (given.arm or list(ARMS))[:: 1 if round_ % 2 == 0 else -1]:
                self.time(arm, f"{round_}-{list(ARMS).index(arm)}")
            if given.hyperqueue:
                self.time_hyperqueue()

    def time(self, arm, name):
        self.sweep(given.trials, "{}")
        worker = self.write("worker.py", WORKER)
        database = f"{name}.db"
        words = ["run", "sweep.yaml", "--launcher", "slurm", "--worker", f"{sys.executable} {worker}", "--db", database, "--runs", name,
                 *ARMS[arm]]
        began = time.monotonic()
        done = self.end(self.start(*words), timeout=7200)
        took = time.monotonic() - began
        self.assertEqual(done.code, 0, done)

        def count(what):
            return self.query(f"SELECT count(DISTINCT {what}) AS n FROM attempts", database)[0]["n"]

        rows = self.query("SELECT host, worker_pid, started_at, ended_at FROM attempts ORDER BY host, worker_pid, started_at", database)
        between = [(after["started_at"] - before["ended_at"]) * 1000 for before, after in zip(rows, rows[1:])
                   if (before["host"], before["worker_pid"]) == (after["host"], after["worker_pid"])]
        self.report(arm, count("job"), count("host || ' ' || worker_pid"), took, {"median_ms_between_trials": round(
            statistics.median(between), 1), "longest": round(max(between), 1)} if between else {})

    def time_hyperqueue(self):
        words = [given.hyperqueue, pathlib.Path(__file__).with_name("slurm_hyperqueue.py"), SLOTS, given.trials, given.seconds, given.load]
        done = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True)
        self.report("HyperQueue, without Slurm", 0, given.trials, float(done.stdout.split()[-1]), {})

    def report(self, arm, jobs, workers, took, more):
        ideal = (given.trials * given.seconds + workers * given.load) / SLOTS
        print(json.dumps({"arm": arm, "jobs": jobs, "workers": workers, "seconds": round(took, 1),
                          "trials_a_minute": round(given.trials * 60 / took, 1),
                          "overhead_ms_a_trial": round((took - ideal) * SLOTS * 1000 / given.trials, 1)} | more), flush=True)


if __name__ == "__main__":
    unittest.TextTestRunner(verbosity=0).run(unittest.TestSuite([Timed()]))
