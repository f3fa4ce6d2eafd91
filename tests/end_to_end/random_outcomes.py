#!/usr/bin/env python3
"""Tests that the exit code is 0 exactly if all trials are done, with random trials and interrupts.

usage: random_outcomes.py FOLDER_OF_PROGRAMS; PETLAB_TEST_ROUNDS (5) sets the number of sweeps,
PETLAB_TEST_SEED (1) the first of them.
"""
import json
import os
import random
import signal
import subprocess
import time

import tiny_world
from scripted_world import WORKER, ScriptedWorld

ROUNDS = int(os.environ.get("PETLAB_TEST_ROUNDS", "5"))
SEED = int(os.environ.get("PETLAB_TEST_SEED", "1"))
BEHAVIOURS = ["finish", "finish", "crash", "kill", "exit", "error", "rubbish", "lie", "hang",
              "ignore_sigterm", "fork", "fork_and_crash"]
PHASES = ["begin", "loading", "training", "training", "checkpointing", "end"]


class RandomOutcomes(ScriptedWorld):
    def test_the_exit_code_is_0_exactly_if_all_is_done(self):
        for seed in range(SEED, SEED + ROUNDS):
            with self.subTest(seed=seed):
                self.round(random.Random(seed))

    def round(self, draw):
        subprocess.run("rm -rf sweep.db* sweep.runs", shell=True, cwd=self.root, check=True)
        trials = draw.randint(2, 7)
        self.write_sweep(*[
            {"steps": draw.randint(1, 6), "step_ms": draw.choice([0, 0, 20]),
             "checkpoint_every": draw.randint(0, 2), "behaviour": draw.choice(BEHAVIOURS),
             "phase": draw.choice(PHASES), "attempts": draw.randint(0, 3)} for _ in range(trials)])
        words = ["--retries", draw.randint(0, 2), "--no-progress-limit", "300ms"]
        if draw.random() < 0.3:
            words.append("--fresh-workers")
        seen = []
        for _ in range(draw.randint(1, 4)):
            process = self.start_scripted(*words, slots=draw.randint(1, 3))
            asked, killed = self.disturb(draw, process)
            done = self.end(process)
            seen.append((done.code, asked, done.err[-600:]))
            self.check_code(done, asked, killed, self.states(words))
        # Trials misbehave in their first three attempts at most.
        for _ in range(8):
            done = self.run_scripted(*words, "--rerun", "failed", slots=2)
            self.check_code(done, False, False, self.states(words))
            if done.code == 0:
                break
        self.assertEqual(done.code, 0, (seen, done))
        self.assertEqual(self.outcomes()["finished"], trials, seen)

    def states(self, words):
        plan = self.petlab("plan", "sweep.yaml", "--worker", WORKER, "--json", *words[:2])
        self.assertEqual(plan.code, 0, plan)
        return [trial["state"] for trial in json.loads(plan.out)["trials"]]

    def check_code(self, done, asked, killed, states):
        context = (done, states)
        self.assertEqual(done.code == 0, set(states) == {"done"}, context)
        self.assertIn(done.code, {0, 1, 3} | ({-signal.SIGKILL} if killed else set())
                      # Before petlab installs its handlers, a signal ends it.
                      | ({-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGUSR1}
                         if asked else set()), context)
        if done.code == 3:
            self.assertTrue(asked, context)
        if done.code == 1:
            self.assertTrue("failed" in states or "is stopped" in done.err, context)

    def disturb(self, draw, process):
        """May interrupt or kill the run. Returns whether it was asked to stop, and whether killed."""
        asked = killed = False
        for _ in range(draw.choice([0, 1, 1, 2])):
            time.sleep(draw.random() * 0.4)
            if process.poll() is not None:
                break
            what = draw.choice(["int", "int", "int", "term", "hup", "stop", "now", "kill"])
            if what == "kill":
                killed = True
                process.kill()
            elif what in ("stop", "now"):
                asked = True
                self.petlab("stop", "sweep.yaml", *(["--now"] if what == "now" else []))
            else:
                asked = True
                process.send_signal({"int": signal.SIGINT, "term": signal.SIGTERM,
                                     "hup": signal.SIGHUP}[what])
        return asked, killed


if __name__ == "__main__":
    tiny_world.main()
