#!/usr/bin/env python3
"""Reads an awkward database through every interface. All of them must give the same numbers.

usage: awkward_results.py FOLDER_OF_PROGRAMS
"""
import csv
import io
import json
import os
import pathlib
import re
import struct
import sys

import tiny_world
from awkward_world import AwkwardWorld, checkpoint, finished, metric, progress

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python/src"))
import petlab  # noqa: E402

os.environ["PETLAB_PROGRAM"] = str(tiny_world.PETLAB)

# More test scores than a reader searches from the end of an attempt.
PARTS = 70
OF = 40
CHECKPOINT = 20
# Values of the first attempt after its checkpoint. No answer may contain them.
LOST_SCORE = 0.987654321
LOST_LOSS = 13579.2468
LOST = r"(?<!\d)(0\.987[67]|98\.7[67]|13,?579\.2)"  # rounded, in percent and with a comma, too

SWEEP = """sweep: one
base: {backbone: ./tiny, task: films.yaml, module.kind: adapter}
variants:
  same: {module.bottleneck: 8}
  twin: {module.bottleneck: 8}
  wide: {module.bottleneck: 16}
grid: {seed: [1, 2, 3, 4]}
"""
OTHER_SWEEP = """sweep: two
base: {backbone: ./tiny, task: films.yaml, module.kind: adapter}
variants:
  other: {module.bottleneck: 8}
  deep: {module.bottleneck: 16, training.epochs: 5}
grid: {seed: [1, 2, 3, 4]}
"""
# Every metric of the validation split, a row for each variant.
VALIDATION = """report: validation
about: Validation scores
sweep: [one]
where: {split: validation, seed: 1}
table:
  rows: [{each: variant, separate: true}]
  columns: [{each: [name], name: "{name}"}]
"""


def score(bottleneck, seed):
    """Returns a different score for each trial, so that no answer is right by chance."""
    return 0.5 + bottleneck / 100 + seed / 1000


def after_checkpoint(value):
    """The events of an attempt after the checkpoint, whether it was resumed or started there."""
    events = [progress(CHECKPOINT + 5, OF, 0.5, device_memory_mib=800),
              progress(CHECKPOINT + 10, OF, 0.25, device_memory_mib=700),
              metric("train", "loss", CHECKPOINT + 10, 0.25),
              metric("validation", "accuracy", CHECKPOINT + 10, value - 0.25),
              metric("test", "accuracy", CHECKPOINT + 10, value)]
    events += [metric("test", f"part_{part}", CHECKPOINT + 10, part / 100) for part in range(PARTS)]
    return events + [finished(CHECKPOINT + 10, artifact="artifact.petl", device_memory_mib=600,
                              peak_memory_mib=500, train_seconds=12.5, bls_bits=640, stored_bits=648,
                              examples={"films": {"train": 90, "test": 8}})]


# The first attempt has more events, and thus higher seqs, than the second. After its checkpoint it reports
# higher steps, better scores and more memory, which must not count.
CRASHES = ([progress(step, OF, 2 / step, device_memory_mib=900) for step in range(1, CHECKPOINT + 1)] +
           [metric("train", "loss", step, 2 / step) for step in range(1, CHECKPOINT + 1)] +
           [metric("train", "warm", 7, 0.5)] * PARTS +
           [metric("validation", "accuracy", 10, 0.125), checkpoint(CHECKPOINT)] +
           [progress(CHECKPOINT + step, OF, LOST_LOSS, device_memory_mib=950) for step in range(1, 16)] +
           [metric("train", "loss", CHECKPOINT + 15, LOST_LOSS),
            metric("validation", "accuracy", CHECKPOINT + 15, LOST_SCORE),
            metric("test", "accuracy", CHECKPOINT + 15, LOST_SCORE), {"exit": 1}])


def scalars_in(file):
    """The tag, step and value of each scalar in a TensorBoard event file, in order."""
    def fields(data):
        at = 0
        while at < len(data):
            key, at = varint(data, at)
            if key & 7 == 1:
                value, at = data[at:at + 8], at + 8
            elif key & 7 == 5:
                value, at = data[at:at + 4], at + 4
            elif key & 7 == 2:
                size, at = varint(data, at)
                value, at = data[at:at + size], at + size
            else:
                value, at = varint(data, at)
            yield key >> 3, value

    def varint(data, at):
        value, shift = 0, 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value, at

    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        size = struct.unpack_from("<Q", data, at)[0]
        event = dict(fields(data[at + 12:at + 12 + size]))
        at += 16 + size
        for value in [value for number, value in fields(event.get(5, b"")) if number == 1]:
            parts = dict(fields(value))
            numbers = [struct.unpack("<d", double)[0] for number, double in fields(parts.get(8, b"")) if number == 6]
            found += [(parts[1].decode(), event.get(2, 0), number) for number in numbers]
    return found


class AwkwardDatabase(AwkwardWorld):
    def make_world(self):
        self.write("sweep.yaml", SWEEP)
        self.write("two.yaml", OTHER_SWEEP)
        rules = [[{"module.bottleneck": bottleneck, "seed": seed}, [after_checkpoint(score(bottleneck, seed))]]
                 for bottleneck in (8, 16) for seed in (1, 2, 3)]
        rules[0][1].insert(0, CRASHES)
        self.prescribe(*rules)
        # The trials of seed 4 stay pending.
        self.run_prescribed("--only", "seed=1..3")
        self.run_prescribed("--only", "seed=1..3", sweep="two.yaml")

    def setUp(self):
        super().setUp()
        self.trials = {(row["variant"], row["seed"]): row["trial_id"] for row in self.query(
            "SELECT DISTINCT sweep || ' ' || variant AS variant, seed, trial_id FROM sweep_results")}
        self.resumed = self.trials["one same", 1]

    def python(self, db="sweep.db"):
        return petlab.open(self.root / db, program=tiny_world.PETLAB)

    def rows_of(self, *words, db="sweep.db"):
        return {row["variant"]: row for row in self.answer(*words, db=db)}

    def exported(self, name, *words, db="sweep.db"):
        """A table of `petlab db export`, read from CSV."""
        folder = f"exported-{len(list(self.root.glob('exported-*')))}"
        self.ask("db", "export", folder, *words, db=db)
        with open(self.root / folder / f"{name}.csv", newline="") as file:
            return list(csv.DictReader(file))

    def report(self, *words, db="sweep.db"):
        """The cells of a report by row and column."""
        whole = json.loads(self.ask("report", *words, "--format", "json", db=db).out)
        return {(row["key"], cell["column"]): cell for row in whole["rows"] for cell in row["cells"]}

    def test_every_interface_gives_the_same_resumed_result(self):
        """Validation is 0.125 at step 10 of the first attempt, and value - 0.25 at step 30 of the second."""
        value = score(8, 1)
        validation = [(1, 10, 0.125), (2, CHECKPOINT + 10, value - 0.25)]
        losses = [(1, step, 2 / step) for step in range(1, CHECKPOINT + 1)] + [(2, CHECKPOINT + 10, 0.25)]
        self.check_resumed("sweep.db", value, validation, losses)
        # The same for databases that were rebuilt, imported from an archive, or merged.
        self.ask("db", "rebuild", "--runs", "sweep.runs", db="rebuilt.db")
        self.check_resumed("rebuilt.db", value, validation, losses)
        self.ask("db", "export", "archive", "sweep.petlab", "--runs", "sweep.runs")
        done = self.petlab("db", "import", "sweep.petlab", "--db", "imported.db", "--runs", "imported.runs")
        self.assertEqual(done.code, 0, done)
        self.check_resumed("imported.db", value, validation, losses)
        self.write("third.yaml", SWEEP.replace("sweep: one", "sweep: third").replace("[1, 2, 3, 4]", "[3]"))
        done = self.petlab("run", "third.yaml", "--worker", "./awkward.py", "--db", "merged.db", "--runs", "merged.runs")
        self.assertEqual(done.code, 0, done)
        done = self.petlab("db", "merge", "sweep.db", "--db", "merged.db", "--runs", "merged.runs")
        self.assertEqual(done.code, 0, done)
        self.check_resumed("merged.db", value, validation, losses)

    def check_resumed(self, db, value, validation, losses):
        trial = self.resumed
        where = ["--where", "variant=same and seed=1"]

        def points(rows, **wanted):
            return [(int(row["attempt"]), int(row["step"]), float(row["value"])) for row in rows
                    if all(row[name] == text for name, text in wanted.items())]

        views = self.query(f"SELECT DISTINCT attempt, seq, step, split, name, value FROM results WHERE trial_id = "
                           f"'{trial}' ORDER BY attempt, seq", db)
        self.assertEqual(points(views, split="validation"), validation)
        self.assertEqual(points(views, split="train", name="loss"), losses)
        self.assertEqual(points(views, split="test", name="accuracy"), [(2, CHECKPOINT + 10, value)])
        self.assertGreater(max(row["seq"] for row in views if row["attempt"] == 1),
                           max(row["seq"] for row in views if row["attempt"] == 2))

        for split, mean in (("validation", value - 0.25), ("test", value)):
            for metrics in ([], ["--metric", "accuracy"]):
                rows = self.answer("results", "--split", split, *metrics, *where, db=db)
                self.assertEqual([(row["accuracy_mean"], row["accuracy_n"]) for row in rows], [(mean, 1)], db)
        self.assertEqual(len(rows), 1)
        row = self.answer("best", "--metric", "accuracy", *where, db=db)[0]
        self.assertEqual((row["validation"], row["test"], row["selected_step"], row["train_seconds"]),
                         (value - 0.25, value, CHECKPOINT + 10, 12.5))
        self.assertTrue(row["artifact"].endswith(f"{trial}/2/artifact.petl"), row)
        rows = self.answer("compare", "same", "wide", "--metric", "accuracy", "--where", "seed=1", db=db)
        self.assertEqual([(row["baseline_mean"], row["mean"], row["pairs"]) for row in rows],
                         [(value, score(16, 1), 1)])

        shown = json.loads(self.ask("show", trial, "--json", db=db).out)
        curves = {(one["split"], one["name"]): one["points"] for one in shown["metrics"]}
        self.assertEqual(curves["validation", "accuracy"], [list(one[1:]) for one in validation])
        self.assertEqual(curves["train", "loss"], [list(one[1:]) for one in losses])
        self.assertEqual([one["outcome"] for one in shown["attempts"]], ["crashed", "finished"])
        self.assertEqual((shown["selected_step"], shown["train_seconds"], shown["artifact"]["attempt"]),
                         (CHECKPOINT + 10, 12.5, 2))
        output = self.ask("show", trial, db=db).out
        self.assertIn("finished in attempt 2", output)
        self.assertEqual(re.findall(r"^  (\d+)  (\w+), begun .*, took \d+ s", output, re.M),
                         [("1", "crashed"), ("2", "finished")])

        rows = self.answer("history", trial, "--metric", "accuracy", "--split", "validation", db=db)
        self.assertEqual(points(rows), validation)
        # The first attempt's progress counts up to its checkpoint.
        progress_points = points(self.answer("history", trial, "--split", "progress", db=db))
        self.assertEqual(progress_points, losses[:-1] + [(2, CHECKPOINT + 5, 0.5), (2, CHECKPOINT + 10, 0.25)])

        python = self.python(db)
        rows = python.rows("variant=same and seed=1", metric="accuracy", split=["validation", "test"])
        self.assertEqual(sorted((row["split"], row["step"], row["value"]) for row in rows),
                         [("test", CHECKPOINT + 10, value), ("validation", CHECKPOINT + 10, value - 0.25)])
        self.assertEqual(points(python.history_rows(trial, "accuracy", "validation")), validation)
        self.assertEqual(points(python.history_rows(trial, split="progress")), progress_points)
        record = python.trial(trial)
        self.assertEqual([(one.number, one.outcome, one.device_memory_mib) for one in record.attempts],
                         [(1, "crashed", 950), (2, "finished", 800)])
        self.assertEqual((record.result.number, record.result.train_seconds, record.result.peak_memory_mib),
                         (2, 12.5, 500))

        self.assertEqual(self.report("sweep", "--sweep", "one", db=db)["same", "films.accuracy"]["samples"][0],
                         {"seed": 1, "value": 100 * value, "trials": [trial]})
        self.write("validation.yaml", VALIDATION)
        cells = self.report("validation.yaml", db=db)
        self.assertEqual({key: cell["mean"] for key, cell in cells.items() if key[0] == "same"},
                         {("same", "accuracy"): 100 * (value - 0.25)})
        curve = list(csv.DictReader(io.StringIO(self.ask(
            "report", "curve", "--x", "step", "--y", "accuracy", "--where", "variant=same and seed=1",
            "--sweep", "one", "--format", "csv", db=db).out)))
        self.assertEqual([(row["row"], float(row["accuracy (validation)"])) for row in curve],
                         [(f"step {step}", 100 * one) for _, step, one in validation])

        rows = [row for row in self.exported("history", db=db) if row["trial_id"] == trial]
        self.assertEqual(points(rows, split="validation"), validation)
        self.assertEqual(points(rows, split="train", metric="loss"), losses)
        folder = f"tensorboard-{db}"
        self.ask("db", "export", "--tensorboard", folder, db=db)
        scalars = scalars_in(next((self.root / folder / "one" / "twin" / trial).glob("*tfevents*")))
        self.assertEqual([one[1:] for one in scalars if one[0] == "validation/films/accuracy"],
                         [one[1:] for one in validation])
        self.assertEqual([one[1:] for one in scalars if one[0] == "train/films/loss"], [one[1:] for one in losses])
        self.assertEqual([one[1:] for one in scalars if one[0] == "train/loss"], [one[1:] for one in progress_points])
        self.assertNotIn(LOST_LOSS, [value for _, _, value in scalars])

        rows = [row for row in self.exported("results", db=db) if row["trial_id"] == trial]
        self.assertEqual({(row["split"], float(row["value"])) for row in rows if row["metric"] == "accuracy"},
                         {("validation", value - 0.25), ("test", value)})
        self.assertEqual({(row["attempt"], row["device_memory_mib"]) for row in rows}, {("2", "800")})
        rows = [row for row in self.exported("attempts", db=db) if row["trial_id"] == trial]
        self.assertEqual([(row["attempt"], row["is_result"], row["resumed_from"], row["resume_step"],
                           row["device_memory_mib"], row["peak_memory_mib"], row["checkpoint_step"],
                           row["finished_step"]) for row in rows],
                         [("1", "0", "", "", "950", "", str(CHECKPOINT), ""),
                          ("2", "1", "1", str(CHECKPOINT), "800", "500", "", str(CHECKPOINT + 10))])

    def test_a_trial_of_two_variants_and_two_sweeps_counts_once_in_each(self):
        self.check_members("sweep.db")
        self.ask("db", "rebuild", "--runs", "sweep.runs", db="rebuilt.db")
        self.check_members("rebuilt.db")

    def test_values_after_the_checkpoint_are_in_no_answer(self):
        trial = self.resumed
        self.ask("db", "export", "tables")
        texts = {file.name: file.read_text() for file in (self.root / "tables").iterdir()}
        for words in (["show", trial], ["show", trial, "--json"], ["best", "--metric", "accuracy"],
                      *(["history", trial, "--metric", "accuracy", "--split", split] for split in ("validation", "test")),
                      ["history", trial, "--split", "progress"], ["results"], ["results", "--split", "validation"],
                      ["report", "sweep", "--sweep", "one", "--format", "html"],
                      ["report", "sweep", "--sweep", "one", "--format", "csv-long"],
                      ["report", "curve", "--x", "step", "--y", "accuracy", "--sweep", "one", "--format", "html"],
                      ["report", "curve", "--x", "step", "--y", "loss", "--split", "train", "--sweep", "one",
                       "--format", "csv"],
                      ["report", "curve", "--x", "step", "--y", "loss", "--split", "progress", "--sweep", "one",
                       "--format", "csv"],
                      ["query", "SELECT * FROM sweep_results", "--format", "csv"]):
            texts[" ".join(words)] = self.ask(*words).out
        for name, text in texts.items():
            self.assertTrue(text, name)
            self.assertNotRegex(text, LOST, name)
        # The view of all reported values contains them.
        self.assertEqual(set(re.findall(LOST, self.ask("query", "SELECT value FROM metrics", "--format", "csv").out)),
                         {"0.9876", "13579.2"})

    def check_members(self, db):
        narrow = [self.trials["one same", seed] for seed in (1, 2, 3)]
        wide = [self.trials["one wide", seed] for seed in (1, 2, 3)]
        deep = [self.trials["two deep", seed] for seed in (1, 2, 3)]
        self.assertEqual(narrow, [self.trials["one twin", seed] for seed in (1, 2, 3)])
        self.assertEqual(narrow, [self.trials["two other", seed] for seed in (1, 2, 3)])
        self.assertEqual(len({*narrow, *wide, *deep}), 9)

        rows = self.rows_of("results", "--metric", "accuracy", db=db)
        self.assertEqual(list(rows), ["same", "twin", "other", "wide", "deep"])
        for variant, row in rows.items():
            bottleneck = 16 if variant in ("wide", "deep") else 8
            self.assertAlmostEqual(row["accuracy_mean"], score(bottleneck, 2), places=12)
            self.assertEqual((row["accuracy_n"], row["pending"]), (3, 1), variant)
        rows = self.answer("results", "--metric", "accuracy", "--by", "module_bottleneck", db=db)
        self.assertEqual([(row["module_bottleneck"], row["accuracy_n"], row["pending"]) for row in rows],
                         [(8, 3, 1), (16, 6, 2)])
        self.assertIn("3 of 12 trials have no result yet", self.ask("results", db=db).err)
        rows = self.answer("results", "--metric", "accuracy", "--by", "sweep", db=db)
        self.assertEqual([(row["sweep"], row["accuracy_n"], row["pending"]) for row in rows],
                         [("one", 6, 2), ("two", 6, 2)])
        rows = self.answer("results", "--metric", "accuracy", "--by", "seed", "--pivot", "variant", db=db)
        self.assertEqual([(row["seed"], *(row[f"{name} accuracy_n"] for name in ("same", "twin", "other", "wide")))
                          for row in rows if row["seed"] < 4], [(seed, 1, 1, 1, 1) for seed in (1, 2, 3)])

        rows = self.answer("best", "--metric", "accuracy", "--top", 20, db=db)
        self.assertEqual(len(rows), 9)
        # Equal values are in the order of recording.
        self.assertEqual([row["trial_id"] for row in rows[:6]], [side[at] for at in (2, 1, 0) for side in (wide, deep)])
        self.assertEqual([row["trial_id"] for row in rows[6:]], narrow[::-1])
        rows = self.answer("best", "--metric", "accuracy", "--top", 2, "--lowest", "--where", "variant=twin,same", db=db)
        self.assertEqual([row["trial_id"] for row in rows], narrow[:2])

        rows = self.answer("compare", "same", "twin", "other", "wide", "--metric", "accuracy", db=db)
        self.assertEqual([(row["side"], row["pairs"], row["unpaired"]) for row in rows],
                         [("twin", 3, 0), ("other", 3, 0), ("wide", 3, 0)])
        # Only one side varies training.epochs, so pairs of trials are ambiguous.
        done = self.ask("compare", "module_bottleneck=8", "module_bottleneck=16", code=2, db=db)
        self.assertRegex(done.err, "module_bottleneck=16: several trials have seed 1.*training.epochs")

        shown = json.loads(self.ask("show", narrow[1], "--json", db=db).out)
        self.assertEqual(shown["sweeps"], ["one as same", "one as twin", "two as other"])
        self.assertEqual(self.sweeps_of(narrow[1], db), ["one as same", "one as twin", "two as other"])
        self.assertEqual(self.python(db).trial(narrow[1]).sweeps, (("one", "same"), ("one", "twin"), ("two", "other")))
        rows = self.python(db).rows(metric="accuracy", by="variant,seed")
        self.assertEqual(sorted((row["trial_id"], row["variant"]) for row in rows),
                         sorted([(trial, "same, twin, other") for trial in narrow] +
                                [(trial, "wide") for trial in wide] + [(trial, "deep") for trial in deep]))

        sweeps = json.loads(self.ask("status", "--json", db=db).out)["sweeps"]
        self.assertEqual([(one["sweep"], one["trials"], sum(one["states"].values())) for one in sweeps],
                         [("one", 8, 8), ("two", 8, 8)])
        self.assertEqual([one["states"]["new"] for one in sweeps], [2, 2])
        for words, rows in ((["--sweep", "one"], ("same", "twin", "wide")), (["--sweep", "two"], ("other", "deep"))):
            cells = self.report("sweep", *words, db=db)
            self.assertEqual(list(dict.fromkeys(row for row, _ in cells)), list(rows))
            for row in rows:
                self.assertEqual([one["seed"] for one in cells[row, "films.accuracy"]["samples"]], [1, 2, 3], row)
                cell = cells[row, "films.accuracy"]
                self.assertEqual((cell["n"], cell["planned"], cell["partial"]), (3, 4, True))
        for sweeps, names in ([], [("one", "same"), ("one", "twin"), ("two", "other")]), (["one"], [
                ("one", "same"), ("one", "twin")]):
            chosen = [word for name in sweeps for word in ("--sweep", name)]
            for table in ("results", "sweeps"):
                rows = [row for row in self.exported(table, *chosen, db=db) if row["trial_id"] == narrow[0]]
                found = [(row["sweep"], row["variant"]) for row in rows
                         if row.get("metric", "accuracy") == "accuracy" and row.get("split", "test") == "test"]
                self.assertEqual(sorted(found), names, table)
        folder = f"runs-{db}"
        self.ask("db", "export", "--tensorboard", folder, db=db)
        found = sorted(str(path.parent.parent.relative_to(self.root / folder))
                       for path in self.root.glob(f"{folder}/**/{narrow[0]}/*tfevents*"))
        self.assertEqual(found, ["one/same", "one/twin", "two/other"])

        rows = self.answer("diff", wide[0], deep[0], db=db)
        self.assertEqual([row["field"] for row in rows if row["field"].startswith(("module", "training", "seed"))],
                         ["training.epochs"])

    def test_a_dropped_variant_becomes_a_former_one_even_if_its_trials_stay(self):
        former = "SELECT DISTINCT sweep, variant, seed FROM former_sweep_results ORDER BY 1, 2, 3"
        self.assertEqual(self.query(former), [])
        self.write("sweep.yaml", SWEEP.replace("  twin: {module.bottleneck: 8}\n", ""))
        self.run_prescribed("--only", "seed=1..3")
        self.assertEqual(self.query(former),
                         [{"sweep": "one", "variant": "twin", "seed": seed} for seed in (1, 2, 3)])
        self.assertEqual(list(self.rows_of("results", "--metric", "accuracy", "--where", "sweep=one")), ["same", "wide"])
        self.assertEqual(self.sweeps_of(self.resumed), ["one as same", "two as other"])
        # The same for a trial that loses its last variant.
        self.write("sweep.yaml", SWEEP.replace("  wide: {module.bottleneck: 16}\n", ""))
        self.run_prescribed("--only", "seed=1..3")
        self.assertEqual({row["variant"] for row in self.query(former)}, {"wide"})
        self.write("sweep.yaml", SWEEP)
        self.run_prescribed("--only", "seed=1..3")
        self.assertEqual(self.query(former), [])


class FailedRerun(AwkwardWorld):
    """A trial whose result is not from its last attempt."""

    def make_world(self):
        self.write("sweep.yaml", "sweep: one\nbase: {backbone: ./tiny, task: films.yaml, module.kind: adapter}\n")
        self.prescribe([{}, [after_checkpoint(0.75),
                             [progress(1, OF, LOST_LOSS), metric("validation", "accuracy", 1, LOST_SCORE),
                              metric("test", "accuracy", 1, LOST_SCORE), {"type": "failed", "reason": "told to"}]]])
        self.run_prescribed()
        self.run_prescribed("--rerun", "all", "--retries", "0", code=1)

    def test_every_interface_keeps_the_earlier_result(self):
        trial = self.query("SELECT trial_id FROM trials")[0]["trial_id"]
        self.assertEqual([(row["number"], row["outcome"]) for row in
                          self.query("SELECT number, outcome FROM attempts ORDER BY number")],
                         [(1, "finished"), (2, "failed")])
        self.ask("db", "export", "tables")
        self.ask("db", "export", "--tensorboard", "runs")
        texts = {" ".join(words): self.ask(*words).out for words in (
            ["results"], ["results", "--split", "validation"], ["best", "--metric", "accuracy"], ["show", trial, "--json"],
            ["history", trial, "--metric", "accuracy", "--split", "validation"], ["history", trial, "--split", "progress"],
            ["report", "sweep", "--sweep", "one", "--format", "html"],
            ["report", "curve", "--x", "step", "--y", "accuracy", "--sweep", "one", "--format", "html"])}
        texts |= {name: (self.root / "tables" / f"{name}.csv").read_text() for name in ("results", "history")}
        for name, text in texts.items():
            self.assertRegex(text, r"0\.75|0\.50*\b|\b(75|50)\b", name)
            self.assertNotRegex(text, LOST, name)
        scalars = scalars_in(next((self.root / "runs").glob("**/*tfevents*")))
        self.assertEqual([one[1:] for one in scalars if one[0] == "validation/films/accuracy"],
                         [(CHECKPOINT + 10, 0.5)])
        self.assertEqual([one[1:] for one in scalars if one[0] == "train/loss"],
                         [(CHECKPOINT + 5, 0.5), (CHECKPOINT + 10, 0.25)])


class WithoutVariants(AwkwardWorld):
    """A trial in one sweep without variants and in one with variants."""

    def make_world(self):
        base = "base: {backbone: ./tiny, task: films.yaml, module.kind: adapter}\n"
        self.write("sweep.yaml", f"sweep: plain\n{base}grid: {{seed: [1, 2]}}\n")
        self.write("named.yaml", f"sweep: named\n{base}variants: {{a: {{seed: 1}}}}\n")
        self.prescribe([{}, [[metric("validation", "accuracy", 1, 0.5), metric("test", "accuracy", 1, 0.75), finished(1)]]])
        self.run_prescribed()
        self.run_prescribed(sweep="named.yaml")

    def test_every_interface_shows_a_sweep_without_variants(self):
        for db in ("sweep.db", "rebuilt.db"):
            if db == "rebuilt.db":
                self.ask("db", "rebuild", "--runs", "sweep.runs", db=db)
            trial = self.query("SELECT trial_id FROM trials WHERE seed = 1", db)[0]["trial_id"]
            self.assertEqual(self.query(f"SELECT sweep, variant FROM sweep_results WHERE trial_id = '{trial}' AND split = "
                                        "'test' ORDER BY sweep", db),
                             [{"sweep": "named", "variant": "a"}, {"sweep": "plain", "variant": None}])
            self.assertEqual(sorted(json.loads(self.ask("show", trial, "--json", db=db).out)["sweeps"]),
                             ["named as a", "plain"])
            self.assertRegex(self.ask("show", trial, db=db).out, r"sweep +plain\n")
            self.assertEqual(sorted(self.sweeps_of(trial, db)), ["named as a", "plain"])
            record = petlab.open(self.root / db).trial(trial)
            self.assertEqual(record.sweeps, (("named", "a"), ("plain", None)))
            rows = self.answer("results", "--by", "sweep,variant", db=db)
            self.assertEqual(sorted((row["sweep"], row["variant"], row["accuracy_n"]) for row in rows),
                             [("named", "a", 1), ("plain", None, 2)])
            rows = self.answer("results", "--where", "variant=a", db=db)
            self.assertEqual([(row["variant"], row["accuracy_n"]) for row in rows], [("a", 1)])
            for form, missing in (("csv", ""), ("json", None)):
                folder = f"{form}-{db}"
                self.ask("db", "export", folder, "--format", form, db=db)
                text = (self.root / folder / f"sweeps.{form}").read_text()
                rows = json.loads(text) if form == "json" else list(csv.DictReader(io.StringIO(text)))
                self.assertEqual(sorted((row["sweep"], row["variant"] or "", row["variant"] == missing) for row in rows
                                        if row["trial_id"] == trial), [("named", "a", False), ("plain", "", True)])
            self.ask("db", "export", "--tensorboard", f"runs-{db}", db=db)
            self.assertEqual(sorted(str(path.parent.relative_to(self.root / f"runs-{db}"))
                                    for path in self.root.glob(f"runs-{db}/**/{trial}/*tfevents*")),
                             [f"named/a/{trial}", f"plain/{trial}"])


class RunningTrial(AwkwardWorld):
    """A trial with two variants, while its second attempt is training."""

    def test_every_interface_shows_the_same_running_trial(self):
        gate = self.root / "gate"
        self.write("sweep.yaml", SWEEP.replace("[1, 2, 3, 4]", "[1]").replace("  wide: {module.bottleneck: 16}\n", ""))
        waits = [{"type": "started", "ago": 100_000},
                 progress(CHECKPOINT + 5, OF, 0.5, device_memory_mib=800),
                 metric("validation", "accuracy", CHECKPOINT + 5, 0.75),
                 progress(CHECKPOINT + 10, OF, 0.25, device_memory_mib=700),
                 metric("validation", "accuracy", CHECKPOINT + 10, 0.625), {"wait": str(gate)}]
        self.prescribe([{}, [CRASHES, waits + after_checkpoint(0.75)[2:]]])
        run = self.start("run", "sweep.yaml", "--slots", 1, "--retry-delay", "10ms", "--worker", "./awkward.py")
        self.until(lambda: (self.root / "sweep.db").exists() and self.query(
            f"SELECT 1 FROM metrics WHERE attempt = 2 AND step = {CHECKPOINT + 10}"))
        trial = self.query("SELECT DISTINCT trial_id FROM metrics")[0]["trial_id"]

        status = json.loads(self.ask("status", "--json").out)
        self.assertEqual(status["sweeps"][0]["states"], {"running": 1})
        running, = status["running"]
        self.assertEqual({name: running.get(name) for name in ("trial", "attempt", "sweep", "variant", "slot", "doing",
                                                              "step", "of", "loss", "device_memory_mib")},
                         {"trial": trial, "attempt": 2, "sweep": "one", "variant": "same, twin", "slot": "cpu-0",
                          "doing": "training", "step": CHECKPOINT + 10, "of": OF, "loss": 0.25,
                          "device_memory_mib": 800})
        self.assertEqual(running["best"], 0.75)
        # Ten steps since the checkpoint took 100,000 s, and ten remain.
        self.assertGreater(running["seconds_left"], 90_000)
        self.assertLessEqual(running["seconds_left"], 100_000)
        output = self.ask("show", trial).out
        self.assertRegex(output, "state +running: ")
        self.assertIn(f"resumed from step {CHECKPOINT} of attempt 1", output)
        shown = json.loads(self.ask("show", trial, "--json").out)
        self.assertEqual((shown["state"], shown["artifact"], shown["selected_step"]), ("running", None, None))

        # The values reported so far are shown as they will count.
        wanted = [(CHECKPOINT + 5, 0.75), (CHECKPOINT + 10, 0.625)]
        words = ["history", trial, "--metric", "accuracy", "--split", "validation"]
        for rows in (self.answer(*words), petlab.open(self.root / "sweep.db").history_rows(trial, *words[3::2])):
            self.assertEqual([(row["step"], row["value"]) for row in rows if row["attempt"] == 2], wanted)
            self.assertNotIn(LOST_SCORE, [row["value"] for row in rows])
        losses = [(row["attempt"], row["step"], row["value"])
                  for row in self.answer("history", trial, "--split", "progress")]
        self.assertEqual(losses, [(1, step, 2 / step) for step in range(1, CHECKPOINT + 1)] +
                         [(2, CHECKPOINT + 5, 0.5), (2, CHECKPOINT + 10, 0.25)])

        # None of them is a result yet.
        self.assertEqual(self.query("SELECT * FROM results"), [])
        self.assertIn("1 of 1 trials have no result yet", self.ask("results").err)
        report = json.loads(self.ask("report", "sweep", "--format", "json").out)
        self.assertEqual(report["sweeps"][0]["states"], {"running": 1})
        self.ask("db", "export", "tables")
        with open(self.root / "tables" / "attempts.csv", newline="") as file:
            attempts = [(row["attempt"], row["outcome"], row["is_result"]) for row in csv.DictReader(file)]
        self.assertEqual(attempts, [("1", "crashed", "0"), ("2", "open", "0")])

        gate.touch()
        self.assertEqual(self.end(run).code, 0)
        self.assertEqual([(row["step"], row["value"]) for row in self.answer(*words)],
                         [(10, 0.125), *wanted, (CHECKPOINT + 10, 0.5)])


class DisagreeingSources(AwkwardWorld):
    """Two sources that disagree, although they agree in an ordinary run."""

    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", "sweep: one\nbase: {backbone: ./tiny, task: films.yaml, module.kind: adapter}\n")
        reported = {"processor": "a processor of the worker", "kernel": "its kernel", "gpu": "its GPU", "gpu_driver": "12",
                "commit": "its commit", "compiler": "its compiler", "flags": "-O9", "clean": False, "libtorch": "9.9"}
        started = {"type": "started", "provenance": reported, "version": "77", "numerics": {"version": "5", "device": "told"},
                   "digests": {"backbone": "sha256:told", "data": {"films": "sha256:data"}}}
        lines = after_checkpoint(0.75)
        self.reported = reported
        self.prescribe([{}, [[started, checkpoint(1), {"exit": 1}], [started] + lines]])

    def test_provenance_prefers_the_workers_machine_over_petlabs(self):
        self.run_prescribed()
        for db in ("sweep.db", "rebuilt.db"):
            row = self.query("SELECT * FROM attempt_provenance WHERE attempt = 2", db)[0]
            for name in ("processor", "kernel", "gpu", "gpu_driver", "libtorch"):
                self.assertEqual(row[name], self.reported[name], name)
            for name in ("commit", "compiler", "flags"):
                self.assertEqual(row[f"worker_{name}"], self.reported[name], name)
                self.assertNotEqual(row[name], self.reported[name], name)
            self.assertEqual(row["worker_version"], "77")
            self.assertEqual((row["backbone_digest"], row["data_digests"]), ("sha256:told", '{"films":"sha256:data"}'))
            trial = row["trial_id"]
            provenance = json.loads(self.ask("show", trial, "--json", db=db).out)["attempts"][1]["provenance"]
            self.assertEqual(provenance["worker_said"], self.reported)
            self.assertNotEqual(provenance["petlab_said"]["processor"], self.reported["processor"])
            self.assertEqual(provenance["data_digests"], {"films": "sha256:data"})
            self.assertEqual(provenance["numerics"], {"version": "5", "device": "told"})
            row = self.query("SELECT numerics FROM results WHERE split = 'test'", db)[0]
            self.assertEqual(json.loads(row["numerics"]), {"version": "5", "device": "told"})
            # The numerics recorded in training count, not those of --describe.
            status = json.loads(self.ask("status", "--json", db=db).out)
            self.assertEqual(status["sweeps"][0]["states"], {"stale": 1})
            if db == "sweep.db":
                self.ask("db", "rebuild", "--runs", "sweep.runs", db="rebuilt.db")

    def test_the_first_of_two_ends_in_an_attempt_log_counts(self):
        self.run_prescribed()
        trial = self.query("SELECT trial_id FROM trials")[0]["trial_id"]
        log = self.root / "sweep.runs" / trial / "1" / "attempt.jsonl"
        lines = log.read_text().splitlines()
        ended = json.loads(lines[-1])
        self.assertEqual((ended["type"], ended["outcome"], ended["exit_code"]), ("ended", "crashed", 1))
        with open(log, "a") as file:
            for outcome in ("stalled", "timed_out"):
                file.write(json.dumps(ended | {"outcome": outcome, "reason": "another saw it end", "exit_code": 9,
                                               "time": ended["time"] + 9}) + "\n")
        self.ask("db", "rebuild", "--runs", "sweep.runs", db="rebuilt.db")
        rows = "SELECT outcome, reason, exit_code, ended_at FROM attempts ORDER BY number"
        self.assertEqual(self.query(rows, "rebuilt.db"), self.query(rows))
        self.ask("db", "check", "--runs", "sweep.runs")


if __name__ == "__main__":
    tiny_world.main()
