#!/usr/bin/env python3
"""Compares the speed and memory of two builds, to check that a change costs neither.

usage: beside.py OLD NEW [--rounds N] [--trials N] [--checkpoint FOLDER [--data FOLDER]] [--folder DIR]

OLD and NEW are folders with petlab, bench-worker and trainer_bench, from two builds. In each round the two builds take
turns at each of these tasks: training steps of RoBERTa-base's size with one thread (tokens per processor second); short
trials with reused workers; rebuilding the database from their runs folder; with --checkpoint, a folder with config.json
and model.safetensors, the start of a trial up to its first step; and with --data, a folder with RTE, CoLA and MRPC,
whole small trials of four kinds. The memory of a single kind proves little, because the allocator varies by some per
cent. Prints one JSON line per task: medians of both (processor seconds, seconds, MiB) and NEW / OLD with its range over
the rounds. Only the ratios are meaningful.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

from measured import measured

BACKBONE = {"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 64, "vocab_size": 100, "max_position_embeddings": 64, "type_vocab_size": 2}


TRIALS = [("cola", "adapter", 32), ("cola", "lora", 32), ("mrpc", "prefix", 16), ("rte", "adapter", 8)]


def steps_of(program, lengths):
    done = subprocess.run([program, "step", "--lengths", lengths, "--threads", "1"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def written_sweep(work, trials):
    backbone = work / "backbone"
    backbone.mkdir()
    (backbone / "config.json").write_text(json.dumps(BACKBONE))
    (backbone / "model.safetensors").write_text("weights\n")
    (backbone / "vocab.txt").write_text("[PAD]\n")
    seeds = ", ".join(str(seed + 1) for seed in range(trials))
    (work / "trials.yaml").write_text("sweep: trivial\nbase:\n  backbone: ./backbone\n  task: cola\n"
                                      f"  module.kind: adapter\ngrid:\n  seed: [{seeds}]\n")


def written_trial(work, checkpoint, task, kind, batch):
    name = f"{task}-{kind}.yaml"
    (work / name).write_text(f"sweep: one\nbase:\n  backbone: {checkpoint}\n  task: {task}\n  module.kind: {kind}\n"
                             f"  training.epochs: 1\n  training.batch_size: {batch}\n"
                             f"  data.max_train_examples: {4 * batch}\n  data.max_validation_examples: 64\n"
                             "  data.max_test_examples: 8\n")
    return name


def written_lengths(file):
    drawn = random.Random(7)
    file.write_text("".join(" ".join(str(drawn.randint(6, 24)) for _ in range(32)) + "\n" for _ in range(10)))


def one_round(build, name, number, work, options):
    petlab = build / "petlab"
    found = {}
    step = steps_of(build / "trainer_bench", work / "lengths")
    found["training step, one thread"] = {"tokens_per_processor_second": step["tokens_per_cpu_second"]}
    database, runs = work / f"{name}-{number}.db", work / f"{name}-{number}.runs"
    jobs = {
        f"{options.trials} short trials": [petlab, "run", "trials.yaml", "--quiet", "--slots", "2", "--worker",
                                           build / "bench-worker", "--runs", runs, "--db", database],
        f"ingest of {options.trials} trials": [petlab, "db", "rebuild", "--runs", runs, "--db",
                                               database.with_suffix(".again.db")]}
    if options.checkpoint:
        jobs["ready for the first step"] = [build / "trainer_bench", "ready", options.checkpoint]
    jobs["start of petlab"] = [petlab, "query", "--help"]
    for task, kind, batch in TRIALS if options.data else ():
        sweep = written_trial(work, options.checkpoint, task, kind, batch)
        jobs[f"trial, {kind} on {task}"] = [
            petlab, "run", sweep, "--quiet", "--worker", build / "petlab-trainer",
            "--runs", work / f"{name}-{number}-{sweep}.runs", "--db", work / f"{name}-{number}-{sweep}.db"]
    for what, words in jobs.items():
        seconds, processor, memory = measured([str(word) for word in words], work)
        found[what] = {"seconds": seconds, "processor_seconds": processor, "memory_mib": memory}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=3000)
    parser.add_argument("--checkpoint", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path.cwd())
    options = parser.parse_args()
    if options.data:
        if not options.checkpoint:
            parser.error("--data needs --checkpoint")
        os.environ["PETLAB_DATA"] = str(options.data.resolve())
    os.environ["OMP_NUM_THREADS"] = "1"
    builds = {"old": options.old.resolve(), "new": options.new.resolve()}
    if options.checkpoint:
        options.checkpoint = options.checkpoint.resolve()
    found = {name: [] for name in builds}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="petlab-beside.") as folder:
        work = pathlib.Path(folder)
        written_sweep(work, options.trials)
        written_lengths(work / "lengths")
        for number in range(options.rounds):
            for name in ("old", "new") if number % 2 == 0 else ("new", "old"):
                found[name].append(one_round(builds[name], name, number, work, options))
    for what, values in found["new"][0].items():
        said = {"what": what}
        for unit in values:
            old, new = ([one[what][unit] for one in found[name]] for name in ("old", "new"))
            ratios = [b / a for a, b in zip(old, new)]
            said[unit] = {"old": round(statistics.median(old), 3), "new": round(statistics.median(new), 3),
                          "ratio": round(statistics.median(ratios), 3),
                          "range": [round(min(ratios), 3), round(max(ratios), 3)]}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
