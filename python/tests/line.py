"""A worker that fits a line, following docs/reference/worker-protocol.md. `user` can break it."""

from __future__ import annotations

import random
import sys
import time

import petlab

LOADED: list[str] = []


def train(trial: petlab.Trial) -> None:
    user = trial.user
    LOADED.append(trial.trial_id)
    trial.log(f"trial {len(LOADED)} of this process")
    if user.get("raise") == "error":
        raise RuntimeError("the script says so\nin two lines")
    if user.get("raise") == "memory":
        raise MemoryError
    if user.get("raise") == "device memory":
        raise RuntimeError("CUDA error: out of memory\nCompile with …")
    if user.get("raise") == "device":
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with …")
    if user.get("raise") == "named device":
        raise petlab.TrialFailed("the card is gone", "device")
    if user.get("raise") == "late device":
        trial.finish(1)
        raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
    if user.get("raise") == "long":
        raise RuntimeError("a" * 1000 + "ü" * 2_000_000 + "z" * 1000)
    if user.get("raise") == "not_finite":
        raise petlab.TrialFailed("the loss is not finite", "not_finite")
    if user.get("raise") == "return":
        return
    if user.get("raise") == "late":
        trial.finish(1)
        raise RuntimeError("after the end")
    step, slope = trial.restore() or (0, 0.0)
    steps = user.get("steps", 100)
    time.sleep(user.get("load_ms", 0) / 1000)
    while step < steps:
        time.sleep(user.get("step_ms", 0) / 1000)
        step += 1
        x = random.Random(f"{trial.config.seed} {step}").gauss(0, 1)
        error = slope * x - 2 * x
        slope -= user.get("rate", 0.1) * error * x
        trial.progress(step, steps, error * error)
        if user.get("metrics"):
            trial.metric("loss", error * error, split="train")
            trial.metric("slope", slope, split="validation")
        if step < steps and (trial.stopping or step % user.get("checkpoint_every", 10) == 0):
            trial.checkpoint(step, [step, slope])
    trial.metric("slope", slope, split="test")
    (trial.folder / "line.txt").write_text(str(slope))
    trial.finish(artifact="line.txt", stored_bits=64)


if __name__ == "__main__":
    sys.stdout.write("")
    petlab.Worker("line.py", version="2", numerics={"version": "3", "kind": "test"}).run(train)
