"""Sweeps run in parts on two machines, for tests of merge, import, export and check.

The worker in this file computes its numbers from the seed, and writes an artifact.
"""
import hashlib
import json
import os
import shutil

from scripted_world import ScriptedWorld
from tiny_world import SWEEP

PYTHON_WORKER = '''#!/usr/bin/env python3
import json, os, pathlib, random, struct, sys, time, zlib

def artifact(trial, data):
    header = json.dumps({"trial": trial["trial"], "config": trial["config"]}).encode()
    begin = -(-(32 + 24 + len(header)) // 8) * 8
    table = struct.pack("<IIQQ", 1, zlib.crc32(data), begin, 8 * len(data))
    head = b"\\x89PETL\\r\\n\\x1a" + struct.pack("<IIQII", 1, 1, len(header), zlib.crc32(table + header), 0)
    return (head + table + header).ljust(begin, b"\\0") + data

def train(folder):
    trial = json.loads((folder / "trial.json").read_text())
    user, seed = trial["config"].get("user", {}), trial["config"]["seed"]
    events, seq = open(folder / "events.jsonl", "a"), 0
    def say(event, **fields):
        nonlocal seq
        events.write(json.dumps({"v": 1, "seq": seq, "time": time.time(), "type": event, **fields}) + "\\n")
        events.flush()
        os.fsync(events.fileno())
        seq += 1
    shift = float(os.environ.get("SHIFT", 0))
    draw, task = random.Random(seed), trial["tasks"][0]["name"]
    say("started", pid=os.getpid(), worker="python", version="1", numerics={"version": "1"},
        digests={**trial["digests"], "data": {task: os.environ.get("DATA") or trial["digests"]["data"][task]}},
        provenance={"commit": os.environ.get("BUILD", "abc"), "clean": True})
    if os.environ.get("FAIL"):
        say("failed", reason="as it was told", kind="error")
        return
    for step in range(1, 4):
        say("metric", step=step, split="validation", task=task, name="accuracy", value=draw.random())
        say("progress", step=step, of=3, loss=draw.random())
    while os.environ.get("GATE") and not os.path.exists(os.environ["GATE"]):
        time.sleep(0.01)
    say("metric", step=3, split="test", task=task, name="accuracy", value=draw.random() + shift)
    (folder / "predictions").mkdir()
    (folder / "predictions" / "films.predicted.txt").write_text(f"{seed}\\n")
    data = random.Random(seed).randbytes(3000)
    (folder / "artifact.petl").write_bytes(artifact(trial, data))
    say("finished", step=3, artifact="artifact.petl", stored_bits=8 * len(data), train_seconds=1.5,
        examples={trial["tasks"][0]["name"]: {"train": 100 + seed % 2, "test": 20}})

if sys.argv[1] == "--describe":
    print(json.dumps({"name": "python", "version": "1", "protocol": 1, "numerics": "1"}))
else:
    for line in sys.stdin if sys.argv[1] == "-" else sys.argv[1:]:
        train(pathlib.Path(line.rstrip("\\n")))
'''
# Calls that change something. Instead of a file's creation, the next call is killed.
CHANGING = ("write,pwrite,pwrite64,writev,ftruncate,ftruncate64,fsync,fdatasync,flock,rename,renameat2,"
            "link,unlink,unlinkat,rmdir,remove,mkdir,mkostemp")
# Every fourth of these calls kills a command. EVERY=1 tries all, which takes minutes.
EVERY = int(os.environ.get("EVERY", 4))
TABLES = [
    ["results", "--format", "csv"],
    ["results", "--by", "variant,seed", "--split", "validation", "--format", "json"],
    ["best", "--metric", "accuracy", "--format", "csv"],
    ["report", "sweep", "--format", "markdown"],
    ["report", "sweep", "--format", "csv"],
]
VALUES = ("SELECT trial_id, seq, step, split, task, name, value, stored_bits, selected_step, train_seconds, "
          "numerics, data_digests, (SELECT group_concat(split || ' ' || examples) FROM attempt_examples e WHERE "
          "e.trial_id = results.trial_id AND is_result) AS examples FROM results ORDER BY 1, 2")


class ExchangeWorld(ScriptedWorld):
    extra = {}

    def setUp(self):
        super().setUp()
        self.write("worker.py", PYTHON_WORKER)
        os.chmod(self.root / "worker.py", 0o755)
        self.write_exchange_sweep(4)

    def write_exchange_sweep(self, seeds):
        self.write("sweep.yaml", SWEEP.replace("sweep: tiny", "sweep: shared") +
                   "variants:\n  small: {module.bottleneck: 4}\n  large: {module.bottleneck: 8}\n"
                   f"grid:\n  seed: {list(range(1, seeds + 1))}\n")

    def environment(self):
        return super().environment() | self.extra

    def machine(self, name, *words, code=0, **extra):
        """Runs a part of the sweep with a separate database and runs folder, like another machine."""
        self.extra = {key.upper(): str(value) for key, value in extra.items()}
        done = self.petlab("run", "sweep.yaml", "--slots", 2, "--worker", "./worker.py", "--retries", 0,
                           "--db", f"{name}.db", "--runs", f"{name}.runs", *words)
        self.extra = {}
        self.assertEqual(done.code, code, done)

    def copy_machine(self, name, to):
        for file in self.root.glob(f"{to}.*"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        for file in self.root.glob(f"{name}.db*"):
            shutil.copy(file, self.root / file.name.replace(f"{name}.db", f"{to}.db"))
        shutil.copytree(self.root / f"{name}.runs", self.root / f"{to}.runs")

    def on(self, name, *words, code=0):
        done = self.petlab(*words, "--db", f"{name}.db", "--runs", f"{name}.runs")
        self.assertEqual(done.code, code, done)
        return done

    def tables(self, name):
        """Answers and reports of a database, with its name replaced."""
        found = [self.query(VALUES, f"{name}.db")]
        for words in TABLES:
            done = self.petlab(*words, "--db", f"{name}.db")
            self.assertEqual(done.code, 0, done)
            found.append(done.out.replace(f"{name}.", "NAME."))
        return found

    def files(self, name):
        """Digests of all files of a runs folder, except locks."""
        runs = self.root / f"{name}.runs"
        return {str(path.relative_to(runs)): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in runs.rglob("*") if path.is_file() and ".locks" not in path.parts}

    def artifacts(self, name):
        return {path.split("/")[0]: digest for path, digest in self.files(name).items()
                if path.endswith("artifact.petl")}

    def trials(self, name, where="1"):
        return [row["trial_id"] for row in self.query(
            f"SELECT trial_id FROM trials WHERE {where} ORDER BY seed, module_bottleneck", f"{name}.db")]

    def as_json(self, name, *words, code=0):
        return json.loads(self.on(name, *words, "--json", code=code).out)

    def survives(self, *words, look, fewest, killed_share=0.9, when_killed=lambda wanted: None,
                 when_repeated=lambda: None):
        """Runs a command on k, a copy of machine a, and kills it at the calls traced in an undisturbed
        run, once each. Then repeats it and checks that `look` gives the undisturbed result. `when_killed`
        is called with that result before the repetition. There must be more than `fewest` calls."""
        self.copy_machine("a", "k")
        trace = self.root / "trace"
        self.faults = f"trace program=petlab file={trace}"
        self.on("k", *words)
        self.faults = ""
        wanted = look()
        calls = [line.split(" ", 1)[0] for line in trace.read_text().split("\n")[:-1]]
        count = sum(call in CHANGING.split(",") for call in calls)
        self.assertGreater(count, fewest)
        calls_to_kill = range(1, count + 1, EVERY)
        killed = 0
        for at in calls_to_kill:
            with self.subTest(at=at):
                self.copy_machine("a", "k")
                self.faults = f"kill program=petlab calls={CHANGING} path=* at={at} torn"
                done = self.petlab(*words, "--db", "k.db", "--runs", "k.runs")
                self.faults = ""
                killed += done.code == -9
                when_killed(wanted)
                self.on("k", *words)
                self.assertEqual(look(), wanted)
                self.on("k", "db", "check")
                when_repeated()
        self.assertGreater(killed, len(calls_to_kill) * killed_share)
