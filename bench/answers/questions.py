#!/usr/bin/env python3
"""The questions of bench/answers.sh, which says what they measure."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from measured import measured  # noqa: E402

RUNS = 5


def main():
    options = argparse.ArgumentParser()
    for name in ("work", "bin", "sizes"):
        options.add_argument(f"--{name}", required=True)
    options = options.parse_args()
    work, petlab = pathlib.Path(options.work), f"{options.bin}/petlab"
    for size in options.sizes.split():
        trials, metrics = size.split("x")
        file = work / f"{size}.db"
        subprocess.run([f"{options.bin}/make_database", file, "--trials", trials, "--metrics",
                        metrics], check=True)
        found = subprocess.run([petlab, "query", "SELECT trial_id FROM trials ORDER BY key LIMIT 2",
                                "--db", file, "--format", "csv"], check=True, capture_output=True,
                               text=True)
        first, second = found.stdout.split()[1:]
        questions = {
            "results, a pivot over seeds": ["results", "--by", "variant", "--pivot", "task"],
            "results, all rows": ["results"],
            "results, some trials": ["results", "--where", "task=cola and module_bottleneck=8",
                                     "--by", "variant"],
            "best of each task": ["best", "--metric", "accuracy"],
            "compare": ["compare", "vanilla", "propetl", "--metric", "accuracy"],
            "show": ["show", first],
            "diff": ["diff", first, second],
            "history": ["history", first, "--metric", "loss"],
        }
        for name, words in questions.items():
            runs = [measured([petlab, *words, "--db", file], work) for _ in range(RUNS + 1)][1:]
            seconds, processor, memory = (statistics.median(part) for part in zip(*runs))
            print(json.dumps({"question": name, "trials": int(trials),
                              "metric_rows": int(trials) * int(metrics),
                              "seconds": round(seconds, 3), "processor_seconds": round(processor, 3),
                              "memory_mib": round(memory)}), flush=True)
        file.unlink()


if __name__ == "__main__":
    main()
