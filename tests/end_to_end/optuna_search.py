#!/usr/bin/env python3
"""Searches a known curve by TPE with Optuna, compares the number of trials with random search, and prints a table.

usage: optuna_search.py FOLDER_OF_PROGRAMS

The exit code is 77 (skipped) without Optuna (scripts/optuna_venv.sh installs it).
"""
import hashlib
import json
import math
import pathlib
import signal
import subprocess
import sys

from scripted_world import METRICS, ScriptedWorld
from tiny_world import SWEEP, main

LOW, HIGH = 1e-5, 1e-2
BEST = 3e-4
SEEDS = 10
STARTUP = 10
found = subprocess.run([pathlib.Path(__file__).resolve().parents[2] / "scripts/optuna_venv.sh", "--there"],
                       stdout=subprocess.PIPE, text=True)
if found.returncode != 0:
    print("skipped: Optuna is not installed; scripts/optuna_venv.sh installs it")
    sys.exit(77)
PYTHON = found.stdout.strip()


def drawn(seed, index):
    """The learning rate of a point of random search (sweeps/search.h)."""
    digest = hashlib.sha256(f"{seed}\ntraining.learning_rate\n{index}".encode()).digest()
    draw = (int.from_bytes(digest[:8], "big") >> 11) * 2.0 ** -53
    return float(f"{math.exp(math.log(LOW) + draw * math.log(HIGH / LOW)):.4g}")


def trials_until(rates, share):
    """The number of trials up to the first whose rate is within this share of the best one."""
    return next((at for at, rate in enumerate(rates, 1) if abs(rate / BEST - 1) <= share), None)


class OptunaSearch(ScriptedWorld):
    def setUp(self):
        super().setUp()
        # Not a link: a virtual environment is found by the path of its interpreter.
        self.write("home/venv/bin/python3", f'#!/bin/sh\nexec {PYTHON} "$@"\n').chmod(0o755)

    def write_search(self, seed, trials, **user):
        user = {"steps": 1, "validate_every": 1, "best_rate": BEST} | user
        text = SWEEP.replace("sweep: tiny", f"sweep: seed {seed}").replace(
            ", learning_rate: 5e-3, mask_learning_rate: 5e-2", "")
        self.write("sweep.yaml", f"{text}  user: {json.dumps(user)}\nsearch: {{training.learning_rate: "
                   f"'log({LOW}, {HIGH})', trials: {trials}, by: tpe, search_seed: {seed}}}\n")

    def points(self, seed, runs="sweep.runs"):
        """The file of points of the search with that seed."""
        return next((text for text in (file.read_text() for file in (self.root / runs / "sweeps").glob("*.points"))
                     if json.loads(text.splitlines()[0])["sweep"] == f"seed {seed}"), "")

    def rates(self, seed):
        lines = [json.loads(line) for line in self.points(seed).splitlines()]
        return [drawn(seed, index) for index in range(STARTUP)] + [
            float(line["values"]["training.learning_rate"]) for line in lines if "point" in line]

    def test_tpe_needs_fewer_trials_than_random(self):
        print(f"\ntrials until the learning rate is within 1 % and 0.5 % of the best one, {BEST}", flush=True)
        better = 0
        for seed in range(SEEDS):
            by_random = [[drawn(seed, index) for index in range(10_000)]]
            limit = trials_until(by_random[0], 0.005)
            by_tpe = []
            while trials_until(by_tpe, 0.005) is None and len(by_tpe) < limit:
                self.write_search(seed, min(limit, len(by_tpe) + 40))
                done = self.run_scripted("--quiet")
                self.assertEqual(done.code, 0, done)
                by_tpe = self.rates(seed)
            wide, narrow = ((trials_until(by_tpe, share), trials_until(by_random[0], share)) for share in (0.01, 0.005))
            print(f"seed {seed}: by tpe {wide[0]} and {narrow[0]}, at random {wide[1]} and {narrow[1]}", flush=True)
            better += narrow[0] is not None and narrow[0] < narrow[1]
        self.assertGreaterEqual(better, 9)

    def test_kills_change_no_suggestion(self):
        self.write_search(0, 18)
        done = self.run_scripted("--db", "whole.db", "--runs", "whole")
        self.assertEqual(done.code, 0, done)
        for count in range(1, 28, 4):
            self.variables = {"PETLAB_FAULT_POINT": f"committed:{count}"}
            code = self.run_scripted().code
            self.variables = {}
            self.assertIn(code, (0, -signal.SIGKILL))
        # A kill at any other moment, also while Optuna suggests.
        for wait in (0.2, 0.4, 0.6, 0.8):
            run = self.start_scripted()
            try:
                run.wait(wait)
            except subprocess.TimeoutExpired:
                run.kill()
            self.end(run)
        done = self.run_scripted()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.points(0), self.points(0, "whole"))
        self.assertEqual(self.query(METRICS), self.query(METRICS, "whole.db"))


if __name__ == "__main__":
    main()
