#!/usr/bin/env python3
"""Times the reports described in bench/reports.sh."""
import argparse
import json
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import grow  # noqa: E402  (next to this file)
from measured import measured  # noqa: E402

RUNS = 3


def main():
    options = argparse.ArgumentParser()
    for name in ("work", "bin", "rehearsal"):
        options.add_argument(f"--{name}", required=True)
    options.add_argument("--copies", type=int, required=True)
    options.add_argument("--metrics", type=int, required=True)
    options = options.parse_args()
    work, petlab = pathlib.Path(options.work), f"{options.bin}/petlab"
    paper, large = work / "paper.db", work / "large.db"
    shutil.copy(options.rehearsal, paper)
    trials, rows = grow.grown(paper, options.copies, options.metrics)
    runs = work / "published.runs"  # the rehearsal's database looks for its logs here
    with sqlite3.connect(paper) as database:
        for (trial,) in database.execute("SELECT trial_id FROM trials"):
            folder = runs / trial / "1"
            folder.mkdir(parents=True)
            (folder / "log.txt").write_text("".join(f"epoch {epoch}: loss {1 / epoch:.4f}\n"
                                                    for epoch in range(1, 41)))
    subprocess.run([f"{options.bin}/make_database", large, "--trials", str(trials), "--metrics",
                    str(options.metrics)], check=True)
    for database, words in [(paper, ["table1"]), (paper, ["all"]),
                            (paper, ["all", "--format", "html", "--out", "page"]),
                            (large, ["sweep"]),
                            (large, ["sweep", "--format", "html", "--out", "page"])]:
        shutil.rmtree(work / "page", ignore_errors=True)
        runs_of = [measured([petlab, "report", *words, "--db", database], work)
                   for _ in range(RUNS + 1)][1:]
        _, seconds, memory = (statistics.median(part) for part in zip(*runs_of))
        said = {"report": f"{words[0]}, a page" if "--out" in words else words[0],
                "trials": trials, "metric_rows": rows, "processor_seconds": round(seconds, 3),
                "memory_mib": round(memory)}
        for page in work.glob("page/*.html"):
            said["page_mb"] = round(page.stat().st_size / 1e6, 1)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
