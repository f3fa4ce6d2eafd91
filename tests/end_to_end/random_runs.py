"""Random runs folders, with any files that sweeps, workers and users of petlab may leave.

Several sweeps share trials. Names and ids look like numbers. Attempts crash and are resumed, rerun and
discarded. Values are undefined, reported twice at a step, or belong to a task that the trial does not have.
"""
import json
import os
import pathlib
import random
import socket

TASKS = ("films", "grades", "007")
METRICS = ("accuracy", "f1", "1e3")
SPLITS = ("validation", "test", "train")
VARIANTS = ("vanilla", "007", "7", "1e5", "null", "true", "a, b", "it's")
SWEEPS = ("one", "02", "1e2")
TAGS = ("good", "007", "true", "paper")
IDS = ("0766141335751065", "1902488289551e33", "1234567890123456", "00000000000000e1", "0000000000000010")
USERS = ({}, {"k": 1}, {"k": "1"}, {"k": 1.5}, {"k": None}, {"k": True}, {"k": "x, y"}, {"k": "007"},
         {"k": 1, "note": "a'b"}, {"k": -2, "note": None}, {"k": 9007199254740993})
# The numerics version of most attempts. The others are stale.
NUMERICS = "2"


def living_owner():
    """An orchestrator's name with the pid and start time of this process."""
    start = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    return f"{os.getpid()}-{start}-abc"


class RandomRuns:
    """Writes one runs folder from a seed. Only its files contain what was drawn."""

    def __init__(self, folder, seed):
        self.folder, self.draw = folder, random.Random(seed)
        self.ids = list(IDS)
        self.configs, self.trials = {}, {}
        self.time = 1_700_000_000.0
        (folder / "sweeps").mkdir(parents=True)
        self.metrics = METRICS[:self.draw.randint(1, 3)]
        for name in SWEEPS[:self.draw.randint(1, 3)]:
            self.sweep(name)
        for trial, config in self.trials.items():
            self.attempts(trial, config)

    def chance(self, probability):
        return self.draw.random() < probability

    def now(self):
        self.time += 1
        return self.time

    def write(self, name, lines):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "a") as opened:
            opened.writelines(json.dumps(line) + "\n" for line in lines)

    def config(self, tasks, seed, module, rate, user):
        module = {"kind": module[0], "share": module[1], "mask": "none"} | (
            {"bottleneck": module[2]} if module[0] == "adapter" else {"rank": module[2], "alpha": 32.0})
        return {"backbone": "/b/tiny", **({"task": tasks[0]} if len(tasks) == 1 else {"tasks": list(tasks)}),
                "seed": seed, "module": module,
                "training": {"epochs": 3, "batch_size": 8, "gradient_accumulation": 1, "learning_rate": rate,
                             "weight_decay": 0.1, "warmup_ratio": 0.1, "max_grad_norm": 1.0, "dropout": -1.0,
                             "checkpoint_every": 0},
                "data": {"max_tokens": 128, "max_train_examples": 0, "max_validation_examples": 0,
                         "max_test_examples": 0}, "user": user}

    def sweep(self, name):
        draw = self.draw
        tasks = draw.sample([("films",), ("grades",), ("films", "grades"), ("007",)], draw.randint(1, 3))
        seeds = draw.sample([1, 2, 3, 4, 42, -7], draw.randint(1, 5))
        members, own, former = [], {}, set()
        # A sweep without variants has one with an empty name.
        for variant in draw.sample(VARIANTS, draw.randint(1, 4)) if self.chance(0.9) else [""]:
            # Few values, so that sweeps and variants share trials.
            module = draw.choice([("adapter", False, 8), ("adapter", True, 8), ("adapter", False, 16), ("lora", False, 8)])
            user, rates = draw.choice(USERS), draw.choice([[1e-3], [1e-3], [1e-3, 1e-4]])
            for those in tasks:
                for rate in rates:
                    for seed in seeds:
                        if self.chance(0.05):
                            continue
                        config = self.config(those, seed, module, rate, user)
                        text = json.dumps(config)
                        if text not in self.configs:
                            fresh = "".join(draw.choices("0123456789abcdef", k=16))
                            self.configs[text] = self.ids.pop() if self.ids and self.chance(0.2) else fresh
                        trial = self.configs[text]
                        own[trial] = self.trials[trial] = config
                        if self.chance(0.03):
                            former.add(trial)
                        if (trial, variant) not in members:
                            members.append((trial, variant))
        self.write(f"sweeps/{name}.jsonl",
                   [{"v": 1, "time": self.now(), "sweep": name, "about": "", "file": f"{name}.yaml",
                     "digest": "sha256:0"}] +
                   [{"trial": trial, "backbone_digest": "sha256:b", "bls_bits": 1000.5, "stored_bits": 1001,
                     "config": config} for trial, config in own.items()] +
                   # Trials without a member line were removed from the sweep by an edit.
                   [{"member": trial, "variant": variant} for trial, variant in members if trial not in former])
        if self.chance(0.4):
            self.remarks(f"sweeps/{name}.remarks")

    def remarks(self, file):
        for tag in self.draw.sample(TAGS, self.draw.randint(1, 2)):
            self.write(file, [{"v": 1, "time": self.now(), "tag": tag}])
            if self.chance(0.2):
                self.write(file, [{"v": 1, "time": self.now(), "untag": tag}])

    def decide(self, trial, what, after=None, step=None):
        line = {"v": 1, "time": self.now(), "decision": what} | ({} if after is None else {"after_attempt": after})
        line |= {} if step is None else {"after_step": step}
        self.write(f"{trial}/decisions.jsonl", [line | {"why": "drawn"}])

    def attempts(self, trial, config):
        draw = self.draw
        fate = draw.choices(["new", "finished", "resumed", "resumed twice", "failed", "crashed", "running", "renewed",
                             "retried", "renewing", "discarded", "discarded, again", "cancelled",
                             "stopped"], [2, 14, 6, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2])[0]
        number, resume = 0, None
        if fate.startswith("resumed"):
            for _ in range(2 if fate == "resumed twice" else 1):
                number += 1
                resume = self.attempt(trial, config, number, "crashed", resume)
            fate = "finished"
        if fate == "cancelled":
            self.decide(trial, "cancel")
        if fate == "stopped":
            number += 1
            resume = self.attempt(trial, config, number, "crashed", None)
            step = resume["step"] if resume else 0
            self.decide(trial, "stop_early", number, step)
            later = draw.choice(["stays", "stays", "cancelled", "may continue", "finished",
                                 "stopped again"])
            if later == "cancelled":
                self.decide(trial, "cancel")
            if later in ("may continue", "finished", "stopped again"):
                self.decide(trial, "retry", number)
            if later == "stopped again":
                self.decide(trial, "stop_early", number, step)
            fate = later
        if fate in ("failed", "crashed", "running"):
            self.attempt(trial, config, 1, fate, None)
        if fate in ("finished", "renewed", "retried", "renewing", "discarded", "discarded, again"):
            number += 1
            self.attempt(trial, config, number, "finished", resume)
        if fate in ("renewed", "retried", "renewing"):
            self.decide(trial, "retry" if fate == "retried" else "rerun", number)
            self.attempt(trial, config, number + 1, "failed" if fate == "renewing" else "finished", None)
        if fate.startswith("discarded"):
            self.decide(trial, "discard", number)
            if fate.endswith("again"):
                self.attempt(trial, config, number + 1, "finished", None)
        if self.chance(0.06):
            self.decide(trial, "hide")
            if self.chance(0.2):
                self.decide(trial, "unhide")
        if self.chance(0.25):
            self.remarks(f"{trial}/remarks.jsonl")

    def attempt(self, trial, config, number, fate, resume):
        """Writes an attempt. Returns the checkpoint from which a later attempt may resume."""
        draw, tasks = self.draw, config.get("tasks") or [config["task"]]
        folder = f"{trial}/{number}"
        self.write(f"{folder}/trial.json", [{"v": 1, "trial": trial, "attempt": number, "config": config}])
        begun = {"v": 1, "type": "begun", "time": self.now(), "sweep": "one", "owner": "1-1-dead",
                 "host": socket.gethostname(), "boot_id": "another", "pid_namespace": "another",
                 "device": draw.choice(["cpu-0", "7"]), "launcher": "local", "commit": "abc", "retries": 0}
        if fate == "running":
            begun |= {"owner": living_owner(), "boot_id": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
                      "pid_namespace": os.readlink("/proc/self/ns/pid")}
        self.write(f"{folder}/attempt.jsonl", [begun | ({"resume": resume} if resume else {})])
        numerics = "1" if self.chance(0.1) else NUMERICS
        events, step, end = [{"type": "started", "pid": 1, "worker": "drawn", "version": draw.choice(["1", "007"]),
                              "numerics": {"version": numerics}, "digests": {"backbone": "sha256:b", "data": {}}}], 0, None
        if resume:
            step = resume["step"]
        checkpoint = None
        for _ in range(draw.randint(0, 4)):
            step = max(0, step + draw.choice([0, 1, 1, 5, 5, -1]))
            events.append({"type": "progress", "step": step, "of": 40, "loss": draw.randint(1, 64) / 64})
            for split in SPLITS:
                if not self.chance(0.6):
                    continue
                for task in tasks + (["grades"] if self.chance(0.03) else []) + (["extra"] if self.chance(0.03) else []):
                    for metric in self.metrics:
                        if self.chance(0.15):
                            continue
                        value = None if self.chance(0.06) else draw.randint(0, 64) / 64
                        if value and self.chance(0.2):
                            value = draw.choice([draw.random(), -draw.random(), 1e-300, 123456789.123456789,
                                                 draw.randint(1, 9) / 204])
                        events.append({"type": "metric", "step": step, "split": split, "task": task, "name": metric,
                                       "value": value})
            if self.chance(0.5) or (fate == "crashed" and checkpoint is None):
                checkpoint = {"attempt": number, "step": step, "seq": len(events), "checkpoint": f"resume/step-{step}"}
                events.append({"type": "checkpoint", "step": step, "path": f"checkpoint/step-{step}"})
        if fate == "finished":
            end = {"type": "finished", "step": step}
            if self.chance(0.8):
                end |= {"artifact": "artifact.petl", "bls_bits": draw.choice([640, 640.5]), "stored_bits": 648}
            if self.chance(0.8):
                end |= {"train_seconds": draw.randint(1, 640) / 64, "peak_memory_mib": 500}
        if fate == "failed":
            end = {"type": "failed", "reason": "drawn", "kind": "error"}
        self.write(f"{folder}/events.jsonl", [{"v": 1, "seq": seq, "time": self.now(), **event}
                                              for seq, event in enumerate(events + ([end] if end else []))])
        if fate == "crashed":
            self.write(f"{folder}/attempt.jsonl", [{"v": 1, "type": "ended", "time": self.now(), "outcome": "crashed",
                                                    "reason": "drawn", "exit_code": 1}])
        return checkpoint
