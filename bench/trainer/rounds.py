#!/usr/bin/env python3
"""Runs the peers and trainer_bench in turn and prints ratios; bench/trainer.sh starts it."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys


def json_lines(command):
    """The JSON objects that a command prints. Its messages go to standard error."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} failed with exit code {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def spread(values, digits=2):
    middle = statistics.median(values)
    return f"{middle:.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def table(titles, rows):
    print("\n| " + " | ".join(titles) + " |\n|" + " --- |" * len(titles))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def rates(row):
    """Tokens per second of wall time and of processor time."""
    tokens = row["tokens_per_second"]
    return tokens, tokens / row["examples_per_second"] * row["examples_per_cpu_second"]


def train(args):
    arms = args.arms.split(",")
    found = {}  # (task, arm) -> [(wall, cpu) a round]
    for number in range(args.rounds):
        for task in args.tasks.split(","):
            for row in json_lines([
                    sys.executable, args.peers / "train_step_peers.py", "--tasks", task, "--batch",
                    32, "--steps", args.steps, "--padded-steps", 1, "--rounds", 1, "--threads",
                    args.threads, "--arms", ",".join(arms), "--scratch", args.scratch, "--also",
                    f"petlab={args.bench} step --lengths {{lengths}} --threads {{threads}}"
                    + (" --bf16" if args.compute == "bf16" else "")]):
                found.setdefault((task, row["arm"]), []).append(rates(row))
        print(f"training: round {number + 1} of {args.rounds} done", file=sys.stderr, flush=True)
    rows = []
    for task in args.tasks.split(","):
        ours = found[task, "petlab"]
        for arm in arms:
            theirs = found.get((task, arm))
            if not theirs or len(theirs) != len(ours):
                print(f"{task}: {arm} did not run in each round", file=sys.stderr)
                continue
            rows.append([task, arm] + [spread([o[i] / t[i] for o, t in zip(ours, theirs)])
                                       for i in (0, 1)]
                        + [spread([o[1] for o in ours], 0), spread([t[1] for t in theirs], 0)])
    table(["task", "arm", "petlab / arm, tokens per second", "per processor second",
           "petlab, tokens per processor second", "arm"], rows)


def drawn_lengths(args, task, count):
    """The lengths in tokens of the examples of a task that eval_peers.py draws."""
    sys.path.insert(0, str(args.peers))
    import glue_lengths
    import numpy
    every = glue_lengths.load(glue_lengths.encode(str(args.peers / "../data"), [task],
                                                  str(args.scratch))[task])
    drawn = numpy.random.default_rng(7).permutation(len(every))[:count]
    return [len(every[i]) for i in drawn]


def lengths_file(args, name, *batches):
    """Writes a file with one line per batch."""
    file = args.scratch / f"{name}.lengths"
    file.write_text("".join(" ".join(map(str, batch)) + "\n" for batch in batches))
    return file


def evaluate(args):
    lengths = lengths_file(args, "evaluation", drawn_lengths(args, "cola", 1000))
    wall, cpu = [], []
    for _ in range(args.rounds):
        theirs, = json_lines([sys.executable, args.peers / "eval_peers.py", "--tasks", "cola",
                              "--arms", "dynamic", "--threads", args.threads, "--scratch",
                              args.scratch])
        ours, = json_lines([args.bench, "evaluate", "--lengths", lengths, "--threads",
                            args.threads])
        wall.append(ours["examples_per_second"] / theirs["examples_per_second"])
        cpu.append(ours["examples_per_cpu_second"] / theirs["examples_per_cpu_second"])
    table(["evaluation of 1,000 CoLA examples", "wall clock", "processor"],
          [["petlab / dynamic, examples per second", spread(wall), spread(cpu)]])


def product_gflop(lengths):
    """Operations in a step of an adapter of size 64 on RoBERTa-base: all products with matrices of
    the backbone or of a module. Nothing is trained below the first layer. In the last one all
    tokens need key and value, but only one needs the rest."""
    square, inner, adapter = 768 * 768, 2 * 768 * 3072, 2 * 768 * 64
    layer = 4 * square + inner
    of_token = (11 + 10) * layer + 2 * 2 * square + 11 * 3 * adapter
    of_sentence = 2 * (2 * square + inner) + 3 * adapter
    return 2e-9 * (sum(lengths) * of_token + len(lengths) * of_sentence)


def products(args):
    """The share of the rate of its products alone that a step reaches, measured in pairs."""
    flag = ["--bf16"] if args.compute == "bf16" else []
    threads = ["--threads", args.threads]
    rows = []
    for task in args.tasks.split(","):
        lengths = drawn_lengths(args, task, 32 * args.steps)
        file = lengths_file(args, task, *(lengths[i:i + 32] for i in range(0, len(lengths), 32)))
        for library in args.libraries.split(","):
            named = [] if library == "chosen" else ["--products", library]
            alone, shares = [], []
            for _ in range(args.rounds):
                step, = json_lines([args.bench] + named + ["step", "--lengths", file]
                                   + threads + flag)
                rate, = json_lines([args.bench, "--products", step["products"], "products",
                                    "--rows", sum(lengths) // args.steps] + threads + flag)
                seconds = sum(lengths) / step["tokens_per_second"]
                alone.append(rate["gflops_of_a_layer"])
                shares.append(product_gflop(lengths) / seconds / alone[-1])
            rows.append([task, library, spread(alone, 0), spread(shares)])
    table(["task", "library", "a layer's products alone, GFLOP/s", "share that a step reaches"],
          rows)


def start(args):
    rows = json_lines([sys.executable, args.peers / "startup_peers.py", "--rounds", args.rounds,
                       "--scratch", args.scratch, "--also", f"petlab, ready for the first step="
                       f"{args.bench} ready {{checkpoint}}"])
    table(["start-up", "wall s", "processor s", "peak MiB"],
          [[row["what"], f"{row['seconds_median']:.2f} ({row['seconds_range'][0]:.2f}-"
            f"{row['seconds_range'][1]:.2f})", f"{row['cpu_seconds_median']:.2f}",
            str(row["rss_mib_peak"])] for row in rows])


def memory(args):
    checkpoint = args.scratch / "roberta-base-random"
    rows = []
    if (checkpoint / "model.safetensors").exists():
        size = (checkpoint / "model.safetensors").stat().st_size / 2**20
        found = [json_lines([args.bench, "load", checkpoint])[0] for _ in range(args.rounds)]
        rows.append([f"checkpoint of {size:.0f} MiB: views of it ready, ms",
                     spread([row["ready_ms"] for row in found], 0)])
        rows.append(["anonymous MiB before and after every weight was read",
                     f"{found[0]['anonymous_mib_before']}, {found[0]['anonymous_mib_after']}"])
    for length in (64, 128):
        file = lengths_file(args, f"32x{length}", [length] * 32)
        row, = json_lines([args.bench, "step", "--lengths", file, "--threads", args.threads,
                           "--warm", 1])
        rows.append([f"a training step of 32 × {length} tokens adds, MiB",
                     str(row["added_mib_peak"])])
    table(["memory", ""], rows)


def main():
    parts = {"start": start, "memory": memory, "evaluate": evaluate, "train": train,
             "products": products}
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--peers", type=pathlib.Path, required=True)
    p.add_argument("--scratch", type=pathlib.Path, required=True)
    p.add_argument("--bench", type=pathlib.Path, required=True)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--tasks", default="cola,sst2,mrpc")
    p.add_argument("--compute", choices=("float32", "bf16"), default="float32")
    p.add_argument("--libraries", default="chosen,onednn,blas")
    p.add_argument("--arms", default="pytorch-best,reference-recipe")
    p.add_argument("--parts", default=",".join(parts))
    args = p.parse_args()
    args.peers, args.bench = args.peers.resolve(), args.bench.resolve()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    print(f"{args.threads} threads, {args.rounds} rounds, load {os.getloadavg()[0]:.1f} on "
          f"{os.cpu_count()} cores")
    for part in args.parts.split(","):
        if part not in parts:
            p.error(f"--parts has {part}, must be of {', '.join(parts)}")
        parts[part](args)


if __name__ == "__main__":
    main()
