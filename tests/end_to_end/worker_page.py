#!/usr/bin/env python3
"""Runs the workers of docs/guides/another-model.md, with the package petlab and without it.

usage: worker_page.py FOLDER_OF_PROGRAMS
"""
import pathlib
import re
import signal

import tiny_world
from scripted_world import METRICS, ScriptedWorld

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/guides/another-model.md"
WITH_PACKAGE, *_, BARE = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


class WorkerPage(ScriptedWorld):
    code = BARE
    worker = "./line.py"

    def setUp(self):
        super().setUp()
        self.write("line.py", self.code).chmod(0o755)

    def environment(self):
        return super().environment() | {"PYTHONPATH": str(ROOT / "python/src")}

    def run_line(self, *words):
        return self.petlab("run", "sweep.yaml", "--slots", 2, "--worker", self.worker, *words)

    def test_the_worker_of_the_page_trains_a_sweep(self):
        self.write_sweep({"steps": 40}, {"steps": 40, "rate": 0.2}, {})
        done = self.run_line()
        self.assertEqual(done.code, 0, done)
        rows = self.query("SELECT seed, step, value FROM results WHERE name = 'slope' ORDER BY seed")
        self.assertEqual([row["step"] for row in rows], [40, 40, 100])
        for row in rows:
            self.assertAlmostEqual(row["value"], 2, delta=0.2)
        self.assertEqual(self.query("SELECT DISTINCT note FROM attempts"), [{"note": None}])
        done = self.run_line("--json")
        self.assertIn('"trained":0', done.out)

    def test_it_stops_at_a_checkpoint_and_resumes_from_it(self):
        self.write_sweep({"steps": 2500})
        process = self.start("run", "sweep.yaml", "--slots", 1, "--worker", self.worker)
        self.until(lambda: any(event["type"] == "checkpoint" for folder in self.attempt_folders()
                               for event in self.events(folder)))
        process.send_signal(signal.SIGTERM)  # like two Ctrl-C
        done = self.end(process)
        self.assertEqual(done.code, 3, done)
        self.assertEqual(self.outcomes(), {"stopped": 1})
        self.assertEqual(self.run_line().code, 0)
        again, = self.query("SELECT outcome, resume_step FROM attempts WHERE number = 2")
        self.assertEqual(again["outcome"], "finished")
        self.assertGreater(again["resume_step"], 0)
        self.assertEqual(self.run_line("--db", "whole.db", "--runs", "whole").code, 0)
        self.assertEqual(self.query(METRICS), self.query(METRICS, "whole.db"))


class WithThePackage(WorkerPage):
    code = WITH_PACKAGE
    worker = "python3 line.py"

    def test_both_workers_give_the_same_results(self):
        self.write_sweep({"steps": 40}, {})
        self.assertEqual(self.run_line().code, 0)
        self.write("bare.py", BARE).chmod(0o755)
        done = self.petlab("run", "sweep.yaml", "--worker", "./bare.py", "--db", "bare.db",
                           "--runs", "bare")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query(METRICS), self.query(METRICS, "bare.db"))


if __name__ == "__main__":
    tiny_world.main()
