#!/usr/bin/env python3
"""A worker that trains nothing and answers each trial of sweeps/paper with given numbers.

usage: worker.py published|noise DIR... | - | --describe

On validation data, and on test data at an earlier step, it reports other numbers, which must not
appear in any report.
"""

import sys

import answers

import petlab

PRINTED = answers.Printed()
STEPS = (1, 2)


def train(trial: petlab.Trial) -> None:
    config = trial.config.raw
    given = answers.answer(PRINTED, FEED, config)
    for step in STEPS:
        trial.progress(step, STEPS[-1], 1 / step)
        for (task, name), value in given.scores.items():
            trial.metric(name, value - 0.01 * (STEPS[-1] - step), split="test", task=task)
            trial.metric(name, value + 0.02 * step, split="validation", task=task)
    examples = answers.examples(PRINTED, config)
    trial.finish(train_seconds=given.train_seconds, examples=examples)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in answers.FEEDS:
        sys.exit(__doc__)
    FEED = sys.argv[1]
    petlab.Worker("rehearsal", version="1", numerics=FEED).run(train, sys.argv[2:])
