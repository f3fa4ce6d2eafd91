#!/usr/bin/env python3
"""Trains a sweep twice, once left alone and once killed at random, and holds one against the other.

usage: disturb_sweep.py SWEEP.yaml [--kills N] [--every SECONDS] [--seed S] [--programs FOLDER]
                        [--out FOLDER] [--slots N]

Kills, all with SIGKILL: `petlab run`, or one of its workers, whichever the dice say, about every so
many seconds; a run that was killed is started again. Afterwards every result of the two databases,
to the last digit, and every artifact, to the last byte, must be equal, and `petlab-trainer predict`
must give the recorded scores of each artifact again, on the test and the validation split. It says
what was killed, and ends with 0 where all of it is so.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

ROWS = "SELECT trial_id, task, split, name, step, value FROM results ORDER BY 1, 2, 3, 4, 5"
SELECTED = """SELECT trial_id, task, split, name, value, artifact FROM results
              WHERE artifact IS NOT NULL AND step = selected_step AND split IN ('test', 'validation')"""


def options():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("sweep", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--every", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/disturbed"))
    parser.add_argument("--slots", type=int, default=os.cpu_count())
    return parser.parse_args()


class Sweep:
    """One of the two, in a folder of its own; its artifacts are found through its database."""

    def __init__(self, given, name):
        self.given = given
        self.folder = given.out.resolve() / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.database = self.folder / "petlab.db"

    def command(self):
        return [self.given.programs / "petlab", "run", self.given.sweep, "--db", self.database,
                "--runs", self.folder / "runs", "--slots", str(self.given.slots), "--quiet",
                "--retries", "1000000", "--retry-delay", "10ms"]

    def start(self):
        return subprocess.Popen(self.command(), stdout=subprocess.DEVNULL)

    def ask(self, sql):
        done = subprocess.run([self.given.programs / "petlab", "query", sql, "--db", self.database,
                               "--format", "json"], check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def artifacts(self):
        return {row["trial_id"]: self.folder / row["artifact"]
                for row in self.ask("SELECT DISTINCT trial_id, artifact FROM results "
                                    "WHERE artifact IS NOT NULL")}


def workers_of(run, name):
    """The processes of petlab-trainer below a run that lives, guardians left out."""
    found, below = [], {run.pid}
    for pid in sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
            parent = int(stat.rpartition(")")[2].split()[1])
            program = pathlib.Path(os.readlink(f"/proc/{pid}/exe")).name
        except OSError:
            continue
        if parent in below:
            below.add(pid)
            if program == name:
                found.append(pid)
    return found


def disturb(sweep, given):
    """Runs it until it is done; how often what was killed."""
    dice, killed, run = random.Random(given.seed), collections.Counter(), sweep.start()
    while True:
        patience = dice.uniform(0.2, 1.8) * given.every
        try:
            code = run.wait(patience if sum(killed.values()) < given.kills else None)
        except subprocess.TimeoutExpired:
            workers = workers_of(run, "petlab-trainer")
            if workers and dice.random() < 0.5:
                try:
                    os.kill(dice.choice(workers), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed["petlab-trainer"] += 1
                continue
            run.kill()
            run.wait()
            killed["petlab run"] += 1
            run = sweep.start()
            continue
        if code != 0:
            sys.exit(f"petlab run ended with {code}")
        return killed


def predict_all(sweep, given):
    """How many recorded scores predict gives again; the differences."""
    recorded = collections.defaultdict(dict)
    for row in sweep.ask(SELECTED):
        recorded[row["trial_id"], row["split"]][row["task"], row["name"]] = row["value"]
    equal, wrong, artifacts = 0, [], sweep.artifacts()
    for (trial, split), scores in sorted(recorded.items()):
        done = subprocess.run([given.programs / "petlab-trainer", "predict", "--artifact",
                               artifacts[trial], "--split", split], cwd=given.sweep.parent,
                              check=True, stdout=subprocess.PIPE, text=True)
        predicted = {}
        for line in done.stdout.splitlines():
            told = json.loads(line)
            predicted |= {(told["task"], name): value for name, value in told["metrics"].items()}
        for score, value in scores.items():
            if predicted.get(score) == value:
                equal += 1
            else:
                wrong.append(f"{trial} {split} {' '.join(score)}: recorded {value!r}, predicted "
                             f"{predicted.get(score)!r}")
    return equal, wrong


def main():
    given = options()
    given.sweep, given.programs = given.sweep.resolve(), given.programs.resolve()
    alone, disturbed = Sweep(given, "alone"), Sweep(given, "disturbed")
    begun = time.monotonic()
    code = alone.start().wait()
    if code != 0:
        sys.exit(f"petlab run, left alone, ended with {code}")
    print(f"left alone: {time.monotonic() - begun:.0f} s")
    begun = time.monotonic()
    killed = disturb(disturbed, given)
    attempts = disturbed.ask("SELECT outcome, count(*) AS n FROM attempts GROUP BY 1 ORDER BY 1")
    print(f"disturbed: {time.monotonic() - begun:.0f} s, killed: "
          + ", ".join(f"{n} × {name}" for name, n in sorted(killed.items())) + "; attempts: "
          + ", ".join(f"{row['n']} {row['outcome']}" for row in attempts))
    problems = []
    if sum(killed.values()) < given.kills:
        problems.append(f"it was done after {sum(killed.values())} of {given.kills} kills")
    wanted, found = alone.ask(ROWS), disturbed.ask(ROWS)
    if wanted != found:
        different = sum(one != other for one, other in zip(wanted, found))
        problems.append(f"{len(found)} rows of results for {len(wanted)}, {different} differ")
    print(f"{len(wanted)} rows of results compared")
    one, other = alone.artifacts(), disturbed.artifacts()
    for trial in sorted(one.keys() | other.keys()):
        if trial not in one or trial not in other:
            problems.append(f"{trial}: an artifact is there once")
        elif one[trial].read_bytes() != other[trial].read_bytes():
            problems.append(f"{trial}: its artifacts differ")
    print(f"{len(one)} artifacts compared")
    equal, wrong = predict_all(disturbed, given)
    print(f"{equal} recorded scores predicted again, to the last digit")
    problems += wrong
    for problem in problems:
        print(f"PROBLEM: {problem}")
    sys.exit(1 if problems else 0)


main()
