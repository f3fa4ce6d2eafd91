#!/usr/bin/env python3
"""Tests `petlab doctor` on machines where various things are missing.

usage: doctor.py FOLDER_OF_PROGRAMS
"""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess

import tiny_world
from tiny_world import PETLAB, PROGRAMS, TinyWorld

FAKE = pathlib.Path(__file__).resolve().parent.parent / "orchestrator/fake_nvidia_smi.py"
WORKER = PROGRAMS / "scripted-worker"


class Doctor(TinyWorld):
    database = ""  # unset PETLAB_DB: the default database

    def setUp(self):
        super().setUp()
        self.more = {}
        (self.root / "bin").mkdir()

    def environment(self):
        inherited = {name: value for name, value in super().environment().items()
                     if not name.startswith(("HF_", "CUDA_"))}
        return inherited | {"HF_HOME": str(self.root / "hf"),
                            "PATH": f"{self.root}/bin:/usr/bin:/bin"} | self.more

    def script(self, name, text):
        file = self.write(name, "#!/bin/sh\n" + text)
        file.chmod(0o755)
        return file

    def doctor(self, *words, worker=WORKER, program=PETLAB, code=0):
        given = ["--worker", worker] if worker else []
        done = self.petlab("doctor", *words, *given, program=program)
        self.assertEqual((done.code, done.err), (code, ""), done)
        return done.out

    def checks(self, *words, code=0, **options):
        """The checks by name. For repeated names, the last one."""
        answer = json.loads(self.doctor("--json", *words, code=code, **options))
        self.assertEqual(answer["ok"], code == 0)
        self.uses = answer["uses"]
        return {check["name"]: check for check in answer["checks"]}

    def problem(self, name, found, mend, *words, **options):
        checks = self.checks(*words, code=1, **options)
        problems = [check["name"] for check in checks.values() if check["state"] == "problem"]
        self.assertEqual(problems, [name], checks)
        self.assertRegex(checks[name]["found"], found)
        self.assertEqual(checks[name]["mend"], mend)

    def fake_gpus(self, count):
        (self.root / "bin/nvidia-smi").symlink_to(FAKE)
        (self.root / "gpus").mkdir()
        self.write("gpus/gpus", "".join(f"{i} GPU-{i}f00 81559\n" for i in range(count)))
        # The fake nvidia-smi is a Python script, and Python may be outside /usr/bin.
        self.more |= {"FAKE_GPUS": str(self.root / "gpus"),
                      "PATH": f"{self.root}/bin:{os.environ['PATH']}"}

    def test_a_complete_machine(self):
        shutil.copytree(self.root / "tiny", self.root / "home/models/tiny")
        snapshot = self.root / "hf/hub/models--o--m/snapshots/1"
        snapshot.mkdir(parents=True)
        self.write(snapshot / "config.json", "{}")
        self.write(snapshot / "model.safetensors", "")
        for name in ("train.tsv", "dev.tsv"):
            self.write(f"data/glue/CoLA/{name}", "a\t1\t\tb\n")
        text = self.doctor()
        cores = len(os.sched_getaffinity(0))
        for line in ("machine",
                     f"  ok       cores      {cores} that petlab may use",
                     "worker",
                     f"  ok       program    scripted-worker 1 at {WORKER}, computes on cpu",
                     "places",
                     "  ok       slots      ROOT/slots",
                     "  ok       backbones  tiny in ROOT/home/models; o/m in ROOT/hf/hub",
                     "  ok       data       cola in ROOT/data and ROOT/home/data",
                     "clusters",
                     f"petlab run would use {cores} slot{'s' if cores > 1 else ''} on CPU cores with "
                     f"{WORKER}"):
            self.assertIn(f"\n{line}\n", "\n" + text)
        self.assertRegex(text, r"\n  ok       memory     \d+\.\d GiB, \d+\.\d GiB free")
        self.assertRegex(text, r"\n  ok       gpus       none: nvidia-smi is not on PATH\n")
        self.assertRegex(text, r"\n  ok       database   petlab\.db on \w+, not created yet: SQLite "
                               r"can write there and locks out a second writer\n")
        self.assertRegex(text, r"\n  (ok|note)     *runs       petlab\.runs: \d+\.\d GiB free\n")
        self.assertNotIn("problem", text)
        # doctor leaves no files.
        self.assertEqual([path.name for path in self.root.iterdir() if "petlab" in path.name], [])

    def test_existing_files_are_checked_and_not_changed(self):
        self.write("sweep.yaml", tiny_world.SWEEP)
        self.assertEqual(self.run_sweep("--worker", WORKER, "--db", "sweep.db").code, 0)
        before = (self.root / "sweep.db").read_bytes()
        checks = self.checks("sweep.db")
        self.assertRegex(checks["database"]["found"], r"^sweep\.db on \w+, 1 sweep: SQLite can write")
        self.assertEqual(checks["runs"]["facts"]["runs"], "ROOT/sweep.runs")
        self.assertEqual((self.root / "sweep.db").read_bytes(), before)
        with sqlite3.connect(self.root / "sweep.db") as database:
            database.execute("PRAGMA user_version = 99")
        database.close()
        self.problem("database", "the database has version 99, this petlab knows up to",
                     "name another database with --db", "--db", "sweep.db")

    def test_a_machine_without_a_trainer(self):
        alone = shutil.copy(PETLAB, self.root / "bin/petlab")
        mend = ("scripts/setup.sh && scripts/build.sh release build it with LibTorch; or name "
                "another worker with --worker")
        self.problem("program", "^petlab-trainer is neither next to petlab nor on PATH", mend,
                     worker=None, program=alone)
        self.assertEqual(self.uses["worker"], None)
        self.script("bin/petlab-trainer", "echo \"$0: error while loading shared libraries: "
                    "libtorch_cpu.so: cannot open shared object file\" >&2; exit 127\n")
        self.problem("program", r"petlab-trainer --describe ended with exit code 127: .*error while loading "
                     r"shared libraries: libtorch_cpu\.so", mend, worker=None, program=alone)
        self.assertEqual(self.uses["worker"], None)
        self.script("bin/petlab-trainer", "echo '{\"name\": \"petlab-trainer\", \"protocol\": 2}'\n")
        self.problem("program", "the worker speaks protocol 2, this petlab speaks 1",
                     "build petlab and its worker together", worker=None, program=alone)
        self.problem("program", "--worker is './none', must be a program's path",
                     "name a program with --worker", worker="./none")

    def test_a_users_worker_need_not_describe_itself(self):
        own = self.script("own.sh", "exit 1\n")
        check = self.checks(worker=own)["program"]
        self.assertEqual(check["state"], "note")

    def test_gpus_are_used_if_the_worker_can(self):
        self.fake_gpus(2)
        checks = self.checks()
        self.assertEqual(checks["gpus"]["found"],
                         "gpu-0 with 81559 MiB, 0 MiB used, gpu-1 with 81559 MiB, 0 MiB used; driver "
                         "550.54.15")
        self.assertEqual(checks["gpus"]["facts"]["driver"], "550.54.15")
        self.assertEqual({key: self.uses[key] for key in ("device", "slots")},
                         {"device": "gpu", "slots": 2})
        self.more["CUDA_VISIBLE_DEVICES"] = "1"
        self.checks()
        self.assertEqual(self.uses["slots"], 1)
        self.more["CUDA_VISIBLE_DEVICES"] = "7"
        self.problem("gpus", "CUDA_VISIBLE_DEVICES names '7', must be the number or UUID",
                     "set CUDA_VISIBLE_DEVICES to GPUs that nvidia-smi lists, or unset it")

    def test_gpus_that_the_worker_cannot_use(self):
        self.fake_gpus(1)
        worker = self.script("own", "echo '{\"name\": \"own\", \"devices\": [\"cpu\"]}'\n")
        check = self.checks(worker=worker)["gpus"]
        self.assertEqual((check["state"], check["found"]),
                         ("note", "not used: own reports that it does not compute on GPUs"))
        self.assertEqual(self.uses["device"], "cpu")

    def test_a_failing_driver(self):
        self.fake_gpus(1)
        self.write("gpus/broken", "NVIDIA-SMI has failed\n")
        self.problem("gpus", "^nvidia-smi ended with exit code 9: NVIDIA-SMI has failed$",
                     "fix that, or train on CPU cores with --device cpu")

    def test_a_folder_that_cannot_be_written(self):
        disk = self.small_disk("8m")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        runs = ["--runs", "runs"]
        self.problem("database", r"^disk/new\.db: cannot make it: folder \S+/disk cannot be written "
                     r"\(Read-only file system\); make it writable or name another database with "
                     r"--db$", "a writable folder with free space, named with --db",
                     "disk/new.db", *runs)
        self.problem("runs", "disk: the runs folder cannot be written: Read-only file system",
                     "name another folder with --runs", "--runs", "disk/runs")
        self.more["PETLAB_SLOTS"] = str(disk / "slots")
        self.problem("slots", r"disk/slots: the folder of slot locks cannot be created: Read-only file "
                     "system", "name another folder with PETLAB_SLOTS")

    def test_a_disk_that_is_full(self):
        disk = self.small_disk("8m")
        self.fill(disk, 2)
        checks = self.checks("disk/new.db", "--runs", "disk/runs", code=1)
        self.assertRegex(checks["database"]["found"], r"^disk/new\.db: cannot make it: the disk is full")
        self.assertEqual((checks["runs"]["state"], checks["runs"]["found"]),
                         ("problem", "disk/runs: 0.0 GiB free"))
        self.assertEqual([path.name for path in disk.iterdir()], ["ballast"])

    def test_a_missing_folder(self):
        self.problem("database", "^none/new.db: the folder ROOT/none does not exist$", "mkdir -p ROOT/none",
                     "none/new.db", "--runs", "runs")

    def test_locks_without_effect(self):
        self.more = {"LD_PRELOAD": str(PROGRAMS / "petlab-faults.so"),
                     "PETLAB_TEST_FAULTS": "unlocked program=petlab",
                     "ASAN_OPTIONS": "verify_asan_link_order=0"}
        self.problem("database", r" on \w+: a second process could write while the first did$",
                     "a folder on a disk of this machine, named with --db")

    def test_slurm_and_its_absence(self):
        # This machine may have a Slurm, so PATH has only the test's programs.
        for name in ("sh", "env"):
            (self.root / "bin" / name).symlink_to(shutil.which(name))
        self.more = {"PATH": str(self.root / "bin")}
        self.assertEqual(self.checks()["slurm"]["found"], "none: sbatch is not on PATH")
        self.script("bin/sbatch", "exit 1\n")
        check = self.checks()["slurm"]
        self.assertEqual((check["state"], check["found"]),
                         ("note", "--launcher slurm cannot be used: squeue, scancel, scontrol is not "
                                  "on PATH"))
        self.script("bin/squeue", "exit 1\n")
        self.script("bin/scancel", "exit 1\n")
        self.script("bin/scontrol", "echo 'slurm_ping: connection refused' >&2; exit 1\n")
        check = self.checks()["slurm"]
        self.assertEqual((check["state"], check["found"]),
                         ("note", "it does not answer (scontrol ping ended with exit code 1: "
                                  "slurm_ping: connection refused)"))
        self.script("bin/scontrol", "echo 'Slurmctld(primary) at head is UP'\n")
        check = self.checks()["slurm"]
        self.assertEqual((check["state"], check["found"]),
                         ("ok", "Slurmctld(primary) at head is UP; --launcher slurm uses it"))

    def test_a_missing_backbone_is_a_note_with_a_command(self):
        checks = self.checks()
        self.assertEqual((checks["backbones"]["state"], checks["backbones"]["mend"]),
                         ("note", "petlab fetch backbone FacebookAI/roberta-base"))
        self.assertEqual((checks["data"]["state"], checks["data"]["mend"]),
                         ("note", "petlab fetch data glue"))

    def test_meaningless_arguments(self):
        done = self.petlab("doctor", "a.db", "--db", "b.db")
        self.assertEqual((done.code, done.err),
                         (2, "petlab: found DATABASE and --db, expected one of them\n"))


if __name__ == "__main__":
    tiny_world.main()
