#!/usr/bin/env python3
"""Tests sweeps whose trials petlab-trainer trains together (`petlab run --gang`).

usage: gangs.py FOLDER_OF_PROGRAMS
"""
import json
import os
import signal

import tiny_world
from tiny_world import TRAINER, TinyWorld

METRICS = "SELECT trial_id, step, split, task, name, value FROM results ORDER BY 1, 2, 3, 4, 5"
# Trials that differ in all that may differ.
SWEEP = """sweep: tiny
base:
  backbone: ./tiny
  training: {epochs: 3, batch_size: 12, learning_rate: 5e-3}
variants:
  adapter: {task: films.yaml, module: {kind: adapter, bottleneck: 4}}
  large: {task: grades.yaml, module: {kind: adapter, bottleneck: 12}, training.learning_rate: 1e-3}
  propetl: {task: films.yaml, module: {kind: adapter, bottleneck: 4, share: true, mask: learned, sparsity_ratio: 0.5}}
  lora: {task: grades.yaml, module: {kind: lora, rank: 2}, training.batch_size: 5}
  head: {task: films.yaml, module.kind: head_only, training.epochs: 2}
  all: {task: films.yaml, module.kind: full_finetuning, training.learning_rate: 1e-4}
grid:
  seed: [1, 2]
"""


class Gangs(TinyWorld):
    def setUp(self):
        super().setUp()
        self.write_grades()
        self.write("sweep.yaml", SWEEP)

    def worker_that_trains(self, runs, attempts):
        """Waits until there are more attempts than `attempts` and one has trained, and returns its worker's pid."""
        def found():
            folders = self.attempt_folders(runs)
            for events in map(self.events, folders if len(folders) > attempts else []):
                if events and events[-1]["type"] == "progress":
                    return events[0]["pid"]
        return self.until(found)

    def gang_sizes(self, runs):
        """The kinds of modules, with the size of the gang that a trial began in."""
        return {(json.loads((folder / "trial.json").read_text())["config"]["module"]["kind"],
                 self.events(folder)[0]["numerics"]["gang"]) for folder in self.attempt_folders(runs)}

    def assert_close(self, database, other):
        found, expected = self.query(METRICS, database), self.query(METRICS, other)
        self.assertEqual(len(found), len(expected))
        for one, two in zip(found, expected):
            self.assertEqual({**one, "value": 0}, {**two, "value": 0})
            self.assertAlmostEqual(one["value"], two["value"], delta=2e-3, msg=str(one))

    def test_trials_of_a_gang_have_the_numbers_of_each_alone(self):
        done = self.run_sweep("--db", "alone.db", "--runs", "alone", slots=1)
        self.assertEqual(done.code, 0, done)
        done = self.run_sweep("--db", "gang.db", "--runs", "gang", "--gang", "10", slots=1)
        self.assertEqual(done.code, 0, done)
        self.assertEqual({gang for _, gang in self.gang_sizes("alone")}, {1})
        # The ten trials that share the backbone are one gang.
        self.assertEqual(self.gang_sizes("gang"), {
            ("adapter", 10), ("lora", 10), ("head_only", 10), ("full_finetuning", 1)})
        self.assert_close("gang.db", "alone.db")

    def test_killed_workers_of_gangs_lose_nothing(self):
        self.write("sweep.yaml", SWEEP.replace("epochs: 3", "epochs: 30, checkpoint_every: 9").replace("[1, 2]", "[1]"))
        done = self.run_sweep("--db", "alone.db", "--runs", "alone", slots=1)
        self.assertEqual(done.code, 0, done)
        words = ["run", "sweep.yaml", "--slots", "1", "--gang", "4", "--retry-delay", "10ms",
                 "--db", "killed.db", "--runs", "killed"]
        for victim in ("worker", "orchestrator"):
            process = self.start(*words)
            attempts = len(self.attempt_folders("killed"))
            worker = self.worker_that_trains("killed", attempts)
            if victim == "worker":
                os.kill(worker, signal.SIGKILL)
                self.worker_that_trains("killed", attempts + 4)
            process.kill()
            self.end(process)
        done = self.petlab(*words)
        self.assertEqual(done.code, 0, done)
        outcomes = {row["outcome"]: row["n"] for row in self.query(
            "SELECT outcome, count(*) AS n FROM attempts GROUP BY 1", "killed.db")}
        self.assertEqual(outcomes["finished"], 6)
        self.assertNotIn("failed", outcomes)
        self.assert_close("killed.db", "alone.db")

    def test_a_trial_that_diverges_leaves_the_others(self):
        self.write("sweep.yaml", SWEEP.replace("training.learning_rate: 1e-3",
                                               "training.learning_rate: 1e30, training.max_grad_norm: 0"))
        done = self.run_sweep("--db", "gang.db", "--runs", "gang", "--gang", "10", slots=1)
        self.assertEqual(done.code, 1, done)
        self.assertEqual(self.query("SELECT outcome, event_kind AS kind, number, count(*) AS n FROM attempts "
                                    "GROUP BY 1, 2, 3", "gang.db"),
                         [{"outcome": "failed", "kind": "not_finite", "number": 1, "n": 2},
                          {"outcome": "finished", "kind": None, "number": 1, "n": 10}])

    def test_gangs_are_refused_where_they_cannot_be(self):
        for words, problem in ((["--gang", "3", "--fresh-workers"], "each worker takes one trial"),
                               (["--gang", "3", "--launcher", "slurm", "--detach"],
                                "each job takes an equal part of the trials"),
                               (["--gang", "many"], "--gang")):
            done = self.run_sweep(*words)
            self.assertEqual(done.code, 2, done)
            self.assertIn(problem, done.err)
        described = json.loads(self.petlab("--describe", program=TRAINER).out)
        self.assertEqual(described["gangs"]["alone"], {"module.kind": ["full_finetuning"]})


if __name__ == "__main__":
    tiny_world.main()
