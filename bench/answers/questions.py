#!/usr/bin/env python3
"""Times the questions described in bench/answers.sh."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from measured import measured  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
RUNS = 5
RUNS_OF_MLFLOW = 1


def report(program, question, size, runs, **more):
    seconds, processor, memory = (statistics.median(part) for part in zip(*runs))
    trials, metrics = map(int, size.split("x"))
    print(json.dumps({"program": program, "question": question, "trials": trials, "metric_rows": trials * metrics,
                      "seconds": round(seconds, 3), "processor_seconds": round(processor, 3),
                      "memory_mib": round(memory)} | more), flush=True)


def put_out_of_the_cache(file):
    with open(file, "rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def output_of(words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def ask_petlab(petlab, file, size):
    found = output_of([petlab, "query", "SELECT trial_id FROM trials ORDER BY key LIMIT 2", "--db", file,
                       "--format", "csv"])
    first, second = found.split()[1:]
    questions = {
        "results, a pivot over seeds": ["results", "--by", "variant", "--pivot", "task"],
        "results, all rows": ["results"],
        "results, some trials": ["results", "--where", "task=cola and module_bottleneck=8", "--by", "variant"],
        "best of each task": ["best", "--metric", "accuracy"],
        "compare": ["compare", "vanilla", "propetl", "--metric", "accuracy"],
        "show": ["show", first],
        "diff": ["diff", first, second],
        "history": ["history", first, "--metric", "loss"],
    }
    for name, words in questions.items():
        put_out_of_the_cache(file)
        cold, *runs = [measured([petlab, *words, "--db", file], file.parent) for _ in range(RUNS + 1)]
        report("petlab", name, size, runs, cold_seconds=round(cold[0], 3))


def ask_mlflow(python, petlab, file, size):
    program, store = [python, HERE / "mlflow_store.py"], file.with_suffix(".mlflow")
    report("MLflow", "fill", size, [measured([*program, "fill", file, store], file.parent)])
    best = json.loads(output_of([petlab, "best", "--metric", "accuracy", "--format", "json", "--db", file]))
    found = json.loads(output_of([*program, "best of each task", store]))
    # Compare only the values: of trials with equal values each tool picks a different one.
    if [row["validation"] for row in best] != [row["metrics.validation/accuracy"] for row in found]:
        sys.exit(f"the answers differ: {best} {found}")
    for name in ("start", "results, a pivot over seeds", "results, all rows", "results, some trials",
                 "best of each task", "show", "history"):
        report("MLflow", name, size, [measured([*program, name, store], file.parent) for _ in range(RUNS_OF_MLFLOW)])
    store.unlink()


def main():
    options = argparse.ArgumentParser()
    for name in ("work", "bin", "sizes", "mlflow", "python"):
        options.add_argument(f"--{name}", required=True)
    options = options.parse_args()
    work, petlab = pathlib.Path(options.work), f"{options.bin}/petlab"
    with_mlflow = options.mlflow.split()
    for size in dict.fromkeys([*options.sizes.split(), *with_mlflow]):
        trials, metrics = size.split("x")
        file = work / f"{size}.db"
        subprocess.run([f"{options.bin}/make_database", file, "--trials", trials, "--metrics", metrics], check=True)
        ask_petlab(petlab, file, size)
        if size in with_mlflow:
            ask_mlflow(options.python, petlab, file, size)
        file.unlink()


if __name__ == "__main__":
    main()
