#!/usr/bin/env python3
"""Times the steps described in bench/scale.sh."""
import argparse
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

CONFIG = {"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
          "intermediate_size": 64, "vocab_size": 100, "max_position_embeddings": 64,
          "type_vocab_size": 2}
SWEEP = """sweep: scale
base:
  backbone: ./backbone
  task: cola
  module.kind: adapter
variants:
  small: {{module.bottleneck: 8}}
  large: {{module.bottleneck: 64}}
grid:
  training.batch_size: [{sizes}]
  seed: [{seeds}]
"""
# A row for each trial, like the table of a sweep whose variants share no seeds.
TRIALS = """report: trials
about: A row for each trial
table:
  rows: [{each: trial_id}]
  columns:
    - {key: variant, value: variant}
    - {key: size, value: module_bottleneck}
"""
# A row for each step: the data of a learning curve.
STEPS = """report: steps
about: A row for each step
table:
  rows: [{each: step}]
  columns: [{key: loss, where: {name: loss}, scale: 1}]
"""


def sweep_of(trials):
    """A sweep of two variants, ten sizes and enough seeds for this number of trials."""
    sizes = ", ".join(str(2 ** power) for power in range(10))
    return SWEEP.format(sizes=sizes, seeds=", ".join(map(str, range(trials // 20))))


def measured(words, folder, limit):
    """Runs petlab; returns wall seconds, processor seconds and its own peak memory."""
    began = time.monotonic()
    with open(folder / "said", "wb") as said:
        process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=said)
    signal.signal(signal.SIGALRM, lambda *_: process.kill())
    signal.alarm(limit)
    _, status, used = os.wait4(process.pid, 0)
    signal.alarm(0)
    result = {"seconds": round(time.monotonic() - began, 2),
              "processor_seconds": round(used.ru_utime + used.ru_stime, 2),
              "memory_mib": round(used.ru_maxrss / 1024)}
    if os.WIFSIGNALED(status):
        result["ended"] = f"after {limit} s" if result["seconds"] >= limit else "out of memory"
    elif os.WEXITSTATUS(status) != 0:
        sys.exit(f"{words} failed: {(folder / 'said').read_text(errors='replace')}")
    return result


def tell(step, trials, program, result):
    print(json.dumps({"step": step, "trials": trials, "programs": program, **result}), flush=True)
    return "ended" not in result


def main():
    options = argparse.ArgumentParser()
    for name in ("work", "bin", "beside", "trials", "planned"):
        options.add_argument(f"--{name}", default="")
    options.add_argument("--limit", type=int, default=1800)
    options = options.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    programs = {"these": pathlib.Path(options.bin)}
    if options.beside:
        programs["beside"] = pathlib.Path(options.beside)
    work = pathlib.Path(options.work)
    slow = set()  # steps stopped at a smaller size are skipped at larger ones

    for trials in map(int, options.trials.split()):
        for name, folder in programs.items():
            here = make_world(work / f"{name}-{trials}", trials)
            petlab = str(folder / "petlab")
            # Always passed: earlier builds have other defaults and command names.
            worker = ["--worker", str(folder / "bench-worker"), "--db", "sweep.db", "--runs", "sweep.runs"]
            (here / "trials.yaml").write_text(TRIALS)
            steps = {
                "plan, nothing done": ["plan", "sweep.yaml", *worker],
                "run": ["run", "sweep.yaml", "--quiet", *worker],
                "run again, all done": ["run", "sweep.yaml", "--quiet", *worker],
                "plan, all done": ["plan", "sweep.yaml", *worker],
                "status": ["status", "sweep.yaml", *worker],
                "report sweep": ["report", "sweep", "--db", "sweep.db", "--format", "csv"],
                "report, a row for each trial": ["report", "./trials.yaml", "--db", "sweep.db",
                                                 "--format", "csv"],
                "query": ["query", "SELECT count(*) FROM attempts", "--db", "sweep.db"],
                "ingest --rebuild": ["ingest", "--rebuild", "--db", "again.db", "--runs",
                                     "sweep.runs"],
            }
            for step, words in steps.items():
                if (step, name) in slow:
                    continue
                if not tell(step, trials, name, measured([petlab, *words], here, options.limit)):
                    slow.add((step, name))
                    if step == "run":
                        break
        for name, folder in programs.items():
            here = make_world(work / f"{name}-steps-{trials}", 20)
            petlab = str(folder / "petlab")
            write_steps(here, [petlab, "run", "sweep.yaml", "--quiet", "--worker", str(folder / "bench-worker"),
                               "--db", "sweep.db", "--runs", "sweep.runs"], trials)
            (here / "steps.yaml").write_text(STEPS)
            steps = {
                "ingest --rebuild of one trial's steps": ["ingest", "--rebuild", "--db", "again.db",
                                                          "--runs", "sweep.runs"],
                "report, a row for each step": ["report", "./steps.yaml", "--db", "again.db",
                                                "--format", "csv"],
            }
            for step, words in steps.items():
                if (step, name) in slow:
                    continue
                if not tell(step, trials, name, measured([petlab, *words], here, options.limit)):
                    slow.add((step, name))
    for trials in map(int, options.planned.split()):
        for name, folder in programs.items():
            if ("plan", name) in slow:
                continue
            here = make_world(work / f"{name}-planned-{trials}", trials)
            words = [str(folder / "petlab"), "plan", "sweep.yaml"]
            if not tell("plan", trials, name, measured(words, here, options.limit)):
                slow.add(("plan", name))


def write_steps(folder, run, steps):
    """Runs a small sweep and adds that many steps to the events of its first trial."""
    subprocess.run(run, cwd=folder, check=True)
    events = next((folder / "sweep.runs").glob("*/1/events.jsonl"))
    started, *_ = events.read_text().splitlines()
    with open(events, "w") as out:
        print(started, file=out)
        for step in range(1, steps + 1):
            print(json.dumps({"v": 1, "seq": step, "time": 1e9 + step, "type": "metric",
                              "step": step, "split": "train", "task": "cola", "name": "loss",
                              "value": 1 / step}), file=out)
        print(json.dumps({"v": 1, "seq": steps + 1, "time": 2e9, "type": "finished",
                          "step": steps}), file=out)


def make_world(folder, trials):
    (folder / "backbone").mkdir(parents=True)
    (folder / "backbone/config.json").write_text(json.dumps(CONFIG))
    (folder / "backbone/model.safetensors").write_text("weights\n")
    (folder / "backbone/vocab.txt").write_text("[PAD]\n")
    (folder / "sweep.yaml").write_text(sweep_of(trials))
    return folder


if __name__ == "__main__":
    main()
