#!/usr/bin/env python3
"""Tests `petlab db export` to tables and to other tools by reading them back.

usage: tables.py FOLDER_OF_PROGRAMS; tensorboard.py and trackers.py read them with these tools.
"""
import csv
import json
import sqlite3
import struct

import tiny_world
from exchange_world import ExchangeWorld

NAMES = ["results", "history", "configuration", "attempts", "sweeps", "remarks"]


class Tables(ExchangeWorld):
    def setUp(self):
        super().setUp()
        self.machine("a", "--only", "seed=1..2")
        self.ids = self.trials("a", "seed < 3")

    def read(self, folder, format):
        found = {}
        for name in NAMES:
            file = self.root / folder / f"{name}.{format}"
            if format == "json":
                found[name] = json.loads(file.read_text())
            else:
                with open(file, newline="") as opened:
                    found[name] = list(csv.DictReader(opened))
        return found

    def test_every_number_reads_back_exactly(self):
        first = self.ids[0]
        self.on("a", "tag", first, "+good")
        self.on("a", "note", first, "=1+1, or \"so\"\nsays he")
        done = self.on("a", "db", "export", "csv")
        self.assertEqual(done.out, "csv: results.csv (8 rows), history.csv (16 rows), configuration.csv (8 rows), "
                                   "attempts.csv (4 rows), sweeps.csv (8 rows), remarks.csv (2 rows)\n")
        done = json.loads(self.on("a", "db", "export", "json", "--format", "json", "--json").out)
        self.assertEqual([one["rows"] for one in done["tables"]], [8, 16, 8, 4, 8, 2])
        tables = {format: self.read(format, format) for format in ("csv", "json")}
        wanted = self.query("SELECT trial_id, attempt, seq, step, split, task, name, value FROM results ORDER BY 1, 2, 3",
                            "a.db")
        for format, found in tables.items():
            history = sorted((row["trial_id"], int(row["attempt"]), int(row["seq"]), int(row["step"]), row["split"],
                              row["task"], row["metric"], struct.pack("d", float(row["value"])))
                             for row in found["history"])
            self.assertEqual(history, [(*(row[key] for key in ("trial_id", "attempt", "seq", "step", "split", "task",
                                                              "name")), struct.pack("d", row["value"]))
                                       for row in wanted], format)
            scores = {(row["trial_id"], row["split"]): float(row["value"]) for row in found["results"]}
            self.assertEqual(scores, {(row["trial_id"], row["split"]): row["value"] for row in wanted
                                      if row["step"] == 3}, format)
            row = next(row for row in found["configuration"] if row["trial_id"] == first)
            self.assertEqual((float(row["training_learning_rate"]), int(row["seed"])),
                             (json.loads(row["config"])["training"]["learning_rate"], 1))
            self.assertEqual({row["outcome"] for row in found["attempts"]}, {"finished"})
            self.assertEqual({row["variant"] for row in found["sweeps"]}, {"small", "large"})
            self.assertEqual(json.loads(found["attempts"][0]["worker_said"])["commit"], "abc")
        tags = {row["trial_id"]: row["tag"] for row in tables["json"]["results"]}
        self.assertEqual(tags[first], "good")
        # CSV marks texts that a spreadsheet would compute.
        note = [row["text"] for row in tables["csv"]["remarks"] if row["what"] == "note"]
        self.assertEqual(note, ["'=1+1, or \"so\"\nsays he"])
        note = [row["text"] for row in tables["json"]["remarks"] if row["what"] == "note"]
        self.assertEqual(note, ["=1+1, or \"so\"\nsays he"])
        # NULL and empty texts differ, and the same contents give the same bytes.
        self.assertIsNone(tables["json"]["attempts"][0]["resumed_from"])
        self.on("a", "db", "export", "again")
        self.assertEqual([(self.root / "again" / f"{name}.csv").read_bytes() for name in NAMES],
                         [(self.root / "csv" / f"{name}.csv").read_bytes() for name in NAMES])

    def test_some_sweeps_and_hidden_trials(self):
        first = self.ids[0]
        self.on("a", "hide", first, "--why", "an outlier")
        self.on("a", "db", "export", "out", "--sweep", "shared")
        found = self.read("out", "csv")
        self.assertNotIn(first, {row["trial_id"] for row in found["results"] + found["history"]})
        row = next(row for row in found["configuration"] if row["trial_id"] == first)
        self.assertEqual((row["hidden"], row["hidden_why"]), ("1", "an outlier"))
        done = self.on("a", "db", "export", "other", "--sweep", "shard", code=2)
        self.assertIn("shared", done.err)
        self.assertFalse((self.root / "other").exists())

    def test_existing_folders_stay_and_failures_leave_nothing(self):
        (self.root / "there").mkdir()
        done = self.on("a", "db", "export", "there", code=2)
        self.assertEqual(done.err, "petlab: there: already exists; move it, or name another "
                                   "folder\n")
        done = self.on("a", "db", "export", code=2)
        self.assertIn("found neither a folder, --tensorboard, --mlflow, --trackio, --wandb-offline, nor archive FILE",
                      done.err)
        self.assertIn("not in", self.on("a", "db", "export", "x", "--format", "xml", code=2).err)
        self.faults = "fail program=petlab calls=write,writev path=*history.csv error=ENOSPC"
        done = self.petlab("db", "export", "full", "--db", "a.db")
        self.faults = ""
        self.assertEqual(done.code, 1, done)
        self.assertIn("history.csv: cannot be written", done.err)
        self.assertEqual([path.name for path in self.root.glob("full*")], [])

    def test_a_killed_or_failed_export_of_runs_leaves_no_folder_of_that_name(self):
        places = {"tensorboard": "*tfevents*", "mlflow": "*/meta.yaml", "trackio": "*/shared.db",
                  "wandb-offline": "*.wandb"}
        for option, file in places.items():
            words = ("db", "export", f"--{option}", option)
            self.faults = f"fail program=petlab calls=write,writev,pwrite,pwrite64 path={file} error=ENOSPC"
            done = self.petlab(*words, "--db", "a.db", "--runs", "a.runs")
            self.assertEqual(done.code, 1, done)
            self.assertRegex(done.err, rf"{option}\..*: cannot be written")
            self.assertEqual([path.name for path in self.root.glob(f"{option}*")], [])
            self.faults = f"kill program=petlab calls=write,writev,pwrite,pwrite64 path={file} at=2 torn"
            done = self.petlab(*words, "--db", "a.db", "--runs", "a.runs")
            self.faults = ""
            self.assertEqual(done.code, -9, done)
            self.assertFalse((self.root / option).exists())
            self.assertRegex(self.on("a", *words).out, rf"^{option}: 4 runs, 28 values; ")

    def test_an_export_while_the_sweep_runs_is_one_state(self):
        self.extra = {"GATE": str(self.root / "gate")}
        process = self.start("run", "sweep.yaml", "--slots", 2, "--worker", "./worker.py", "--db", "a.db",
                             "--runs", "a.runs", "--only", "seed=3")
        self.extra = {}
        self.until(lambda: len(self.query("SELECT 1 FROM progress WHERE step = 3", "a.db")) == 6)
        self.on("a", "db", "export", "out")
        self.assertEqual(sorted(row["outcome"] for row in self.read("out", "csv")["attempts"]),
                         ["finished"] * 4 + ["open"] * 2)
        self.write("gate", "")
        self.assertEqual(self.end(process).code, 0)

    def test_event_files_by_sweep_variant_and_trial(self):
        done = self.on("a", "db", "export", "--tensorboard", "tb")
        # Four trials, each with three validation values, one test value and three losses.
        self.assertEqual(done.out, "tb: 4 runs, 28 values; tensorboard --logdir tb\n")
        folders = sorted(str(path.parent.relative_to(self.root / "tb")) for path in self.root.glob("tb/**/*tfevents*"))
        variants = {row["trial_id"]: row["variant"] for row in self.query(
            "SELECT DISTINCT trial_id, variant FROM sweep_results", "a.db")}
        self.assertEqual(folders, sorted(f"shared/{variants[trial]}/{trial}" for trial in self.ids))
        # Without the runs folder, metrics are exported without losses.
        (self.root / "a.runs").rename(self.root / "away")
        done = self.petlab("db", "export", "--tensorboard", "tb2", "--db", "a.db")
        self.assertEqual(done.out, "tb2: 4 runs, 16 values; tensorboard --logdir tb2\n")
        self.assertIn("4 runs have no events.jsonl", done.err)

    def test_one_command_exports_for_several_tools(self):
        words = ["--tensorboard", "tb", "--mlflow", "mlruns", "--trackio", "it's", "--wandb-offline", "w"]
        done = self.on("a", "db", "export", "tables", *words)
        self.assertEqual(done.out.splitlines()[1:], [
            "tb: 4 runs, 28 values; tensorboard --logdir tb",
            "mlruns: 4 runs, 28 values; MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri mlruns",
            "it's: 4 runs, 28 values; TRACKIO_DIR='it'\\''s' trackio show",
            "w: 4 runs, 28 values; wandb sync w"])
        with sqlite3.connect(self.root / "it's/shared.db") as database:
            rows = database.execute("SELECT run_name, step, metrics FROM metrics").fetchall()
        self.assertEqual(len(rows), 4 * 3)
        found = [[title.split()[-1], step, tag, value] for title, step, metrics in rows
                 for tag, value in json.loads(metrics).items() if tag != "train/loss"]
        values = self.query("SELECT trial_id, step, split || '/' || task || '/' || name AS tag, value FROM results",
                            "a.db")
        self.assertEqual(sorted(found), sorted(list(row.values()) for row in values))

    def test_names_too_long_for_file_systems_are_shortened_and_stay_distinct(self):
        long = "é" * 49
        text = (self.root / "sweep.yaml").read_text()
        self.write("sweep.yaml", text.replace("small:", f"{long}a:").replace("large:", f"{long}b:"))
        self.machine("b", "--only", "seed=1")
        done = self.on("b", "db", "export", "--tensorboard", "tb")
        self.assertEqual(done.out, "tb: 2 runs, 14 values; tensorboard --logdir tb\n")
        folders = sorted(path.parent.parent.name for path in self.root.glob("tb/**/*tfevents*"))
        for folder in folders:
            self.assertRegex(folder, "^(%C3%A9){30}%C3%~[0-9a-f]{12}$")
        self.assertNotEqual(folders[0], folders[1])


if __name__ == "__main__":
    tiny_world.main()
