"""A worker made with petlab.Worker for the kill campaign (docs/internals/fault-points.md).

It behaves like the scripted worker with the same `user`. Its numbers depend on the seed and on all
earlier steps, so that a wrong resume shows.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import petlab


def mixed(*words: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:6], "big")


def train(trial: petlab.Trial) -> None:
    user = trial.user
    time.sleep(user["load_ms"] / 1000)
    step, state = trial.restore() or (0, mixed(trial.config.seed))

    def save(file: Path) -> None:
        file.write_text(f"[{step}, {state}]")
        time.sleep(user["step_ms"] / 1000)

    while step < user["steps"]:
        time.sleep(user["step_ms"] / 1000)
        step += 1
        state = mixed(state, step)
        trial.progress(step, user["steps"], state / 2**48)
        for metric in range(user["metrics"]):
            trial.metric(f"loss_{metric}", mixed(state, metric) / 2**48, split="train")
        if step < user["steps"] and (trial.stopping or step % user["checkpoint_every"] == 0):
            trial.checkpoint(step, save)
    trial.metric("score", state / 2**48, split="test")
    trial.finish()


if __name__ == "__main__":
    petlab.Worker("campaign-worker", version="1", numerics="1").run(train)
