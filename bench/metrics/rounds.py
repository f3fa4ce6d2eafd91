#!/usr/bin/env python3
"""Runs metrics_peers.py and `petlab score` in turn and prints ratios; bench/metrics.sh starts it."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

# peer's name, petlab's arguments, files, required ratio (0: none)
ROWS = [
    ("bleu_13a", ["bleu"], "text", 20),
    ("chrf", ["chrf"], "text", 20),
    ("rouge2_stem", ["rouge2", "--stem"], "text", 50),
    ("rougeLsum_stem", ["rougeLsum", "--stem", "--json-lines"], "summaries", 0),
    ("matthews", ["matthews"], "labels", 2),
    ("pearson", ["pearson"], "scores", 0),
    ("spearman", ["spearman"], "scores", 2),
]


def run(command):
    """Standard output, wall seconds, processor seconds and peak resident MiB."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return out, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


# Runs in its own process: a child's peak memory includes its parent's at the time of the fork.
WRITE_LABELS = """
import pathlib, sys
peers, work, pairs = sys.argv[1:]
sys.path.insert(0, peers)
import metrics_peers
names = ("labels.ref", "labels.hyp", "scores.ref", "scores.hyp")
for name, values in zip(names, metrics_peers.labels(int(pairs))):
    (pathlib.Path(work) / name).write_text("".join(f"{v!r}\\n" for v in values.tolist()))
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--petlab", required=True)
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=1000000)
    parser.add_argument("--only", default="", help="rows to run, with commas between; all without it")
    a = parser.parse_args()
    only = [name for name in a.only.split(",") if name]
    if unknown := set(only) - {row[0] for row in ROWS}:
        sys.exit(f"--only: unknown {', '.join(sorted(unknown))}; there are {', '.join(row[0] for row in ROWS)}")
    run([sys.executable, "-c", WRITE_LABELS, str(a.peers), str(a.work), str(a.pairs)])
    summaries = [sys.executable, str(pathlib.Path(__file__).with_name("summaries.py"))]
    run([*summaries, "write", str(a.work / "corpus"), str(a.work / "summaries")])
    files = {
        "text": (a.work / "corpus.hyp", a.work / "corpus.ref"),
        "summaries": (a.work / "summaries.hyp", a.work / "summaries.ref"),
        "labels": (a.work / "labels.hyp", a.work / "labels.ref"),
        "scores": (a.work / "scores.hyp", a.work / "scores.ref"),
    }
    hyp, ref = files["text"]
    missed = []
    print(f"load average at the start: {os.getloadavg()[0]:.1f}, processors: {os.cpu_count()}")
    print(f"{'metric':15} {'peer s':>9} {'petlab s':>9} {'ratio':>8} {'range':>15} {'cpu ratio':>9} "
          f"{'peer MiB':>9} {'petlab MiB':>10}  wanted")
    for name, arguments, kind, wanted in ROWS:
        if only and name not in only:
            continue
        walls, cpus, theirs, ours, their_memory, our_memory = [], [], [], [], [], []
        timed = [*summaries, "time", str(a.work / "summaries")] if kind == "summaries" else [
            sys.executable, str(a.peers / "metrics_peers.py"), "--hyp", str(hyp), "--ref", str(ref),
            "--repeat", "1", "--labels", str(a.pairs), "--only", name]
        for _ in range(a.rounds):
            out, _, _, memory = run(timed)
            peer = json.loads(out)
            out, wall, cpu, our = run([a.petlab, "score", *arguments, "--hyp", str(files[kind][0]), "--ref", str(files[kind][1]),
                                       "--threads", "1", "--json"])
            score = json.loads(out)["score"]
            if abs(score - peer["value"]) > 1e-9 * max(1, abs(peer["value"])):
                sys.exit(f"{name}: petlab says {score!r}, the peer {peer['value']!r}")
            theirs.append(peer["seconds_median"])
            ours.append(wall)
            walls.append(peer["seconds_median"] / wall)
            cpus.append(peer["cpu_seconds_min"] / cpu)
            their_memory.append(memory)
            our_memory.append(our)
        ratio = statistics.median(walls)
        print(f"{name:15} {statistics.median(theirs):9.3f} {statistics.median(ours):9.3f} {ratio:8.1f} "
              f"{f'{min(walls):.1f}-{max(walls):.1f}':>15} {statistics.median(cpus):9.1f} {max(their_memory):9.0f} "
              f"{max(our_memory):10.0f}  {'>= ' + str(wanted) if wanted else '-'}", flush=True)
        if ratio < wanted or max(our_memory) >= min(their_memory):
            missed.append(name)
    print(f"load average at the end: {os.getloadavg()[0]:.1f}")
    if missed:
        sys.exit("below what is wanted: " + ", ".join(missed))


if __name__ == "__main__":
    main()
