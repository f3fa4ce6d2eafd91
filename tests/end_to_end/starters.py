#!/usr/bin/env python3
"""Tests that files written by `petlab init` for a data file and for a worker can be planned and run.

usage: starters.py FOLDER_OF_PROGRAMS
"""
import json
import os
import pathlib
import re

from scripted_world import WORKER, ScriptedWorld
from tiny_world import PROGRAMS, main

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python/src"
TEXTS = [f"the film number {n} is {'good' if n % 2 else 'bad'}" for n in range(60)]


class Starters(ScriptedWorld):
    variables = {"PYTHONPATH": str(PACKAGE)}

    def setUp(self):
        super().setUp()
        # The worker's -check program reads weights and data like petlab-trainer.
        (self.root / "bin").mkdir()
        os.symlink(WORKER, self.root / "bin/worker")
        os.symlink(PROGRAMS / "petlab-trainer-check", self.root / "bin/worker-check")

    def init(self, *words, code=0):
        done = self.petlab("init", "--backbone", "./tiny", *words)
        self.assertEqual(done.code, code, done)
        return done

    def task(self, data, text, *words):
        """Creates the declaration for a file and checks that plan accepts it and the data."""
        self.write(data, text)
        self.init("--task", data, *words)
        plan = self.petlab("plan", "sweep.yaml", "--worker", "bin/worker")
        self.assertEqual((plan.code, plan.err), (0, ""), plan)
        self.assertIn("9 new", plan.out)
        self.assertNotIn("note: ", plan.out)
        return (self.root / data).with_suffix(".yaml").read_text()

    def test_a_task_with_separate_files_is_planned_and_run(self):
        exists = self.init("--task", "films-train.tsv", code=2)
        self.assertEqual(exists.err, "petlab: films.yaml: already exists; use it as it is, or move it away\n")
        self.assertFalse((self.root / "sweep.yaml").exists())
        (self.root / "films.yaml").unlink()
        done = self.init("--task", "films-train.tsv")
        self.assertEqual(done.out, "films.yaml: the task of films-train.tsv; check its columns and labels\n"
                                   "sweep.yaml: 9 trials of ./tiny on films.yaml; next: petlab plan sweep.yaml\n")
        text = (self.root / "films.yaml").read_text()
        for line in ("task: 'films'\n", "split: given\n", "header: true\n", "labels: ['fine', 'poor']  # ",
                     "columns: {text: ['sentence'], label: 'label'}\n",
                     "files: {train: 'films-train.tsv', validation: 'films-dev.tsv', test: 'films-test.tsv'}\n"):
            self.assertIn(line, text)
        plan = self.petlab("plan", "sweep.yaml", "--worker", "bin/worker")
        self.assertEqual((plan.code, plan.err), (0, ""), plan)
        self.assertNotIn("note: ", plan.out)
        sections = re.sub("^# (search|stop_early)", r"\1", (self.root / "sweep.yaml").read_text(), flags=re.M)
        self.write("searched.yaml", sections)
        plan = self.petlab("plan", "searched.yaml", "--worker", "bin/worker")
        self.assertEqual((plan.code, plan.err), (0, ""), plan)
        self.assertIn("sweep first: 180 trials\n", plan.out)
        self.assertIn("note: stop_early (halving) saves at most 42 % of the steps\n", plan.out)
        done = self.run_scripted()
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.outcomes(), {"finished": 9})

    def test_scores_of_pairs_in_one_csv_file(self):
        rows = [f'{n},"{text}, or not",{text} again,{n % 7 / 2}\n' for n, text in enumerate(TEXTS)]
        text = self.task("pairs.csv", "id,first,second,similarity\n" + "".join(rows))
        for line in ("split: one_file ", "score: {min: 0, max: 3} ", "metrics: [pearson, spearman]\n",
                     "columns: {text: ['first', 'second'], score: 'similarity'}\n"):
            self.assertIn(line, text)

    def test_number_labels_of_json_lines_below_objects(self):
        rows = [json.dumps({"meta": {"stars": n % 3}, "name": f"n{n}", "review": text})
                for n, text in enumerate(TEXTS)]
        text = self.task("stars.jsonl", "\n".join(rows) + "\n")
        for line in ("labels: ['0', '1', '2']  # 20, 20, 20 examples\n", "metrics: [accuracy, f1-macro]\n",
                     "select_by: [f1-macro] ", "columns: {text: ['review'], label: 'meta.stars'}\n"):
            self.assertIn(line, text)

    def test_a_file_without_a_header_and_with_odd_labels(self):
        rows = [f"{text}\tit's: #{n % 2}\n" for n, text in enumerate(TEXTS)]
        text = self.task("plain.tsv", "".join(rows))
        for line in ("header: false\n", "labels: ['it''s: #0', 'it''s: #1']", "metrics: [accuracy, f1] ",
                     "columns: {text: ['0'], label: '1'}\n"):
            self.assertIn(line, text)

    def test_the_name_of_a_built_in_task_is_refused(self):
        self.write("cola.tsv", "".join(f"{n % 2}\t{text}\n" for n, text in enumerate(TEXTS)))
        self.init("--task", "cola.tsv")
        self.assertIn("task: 'my-cola'\n", (self.root / "my-cola.yaml").read_text())

    def test_a_sweep_has_the_name_of_its_file(self):
        for file, name in (("sweep.yaml", "first"), ("small_films.yaml", "small_films"), ("a film.yaml", "a-film")):
            self.init("--task", "films.yaml", file)
            self.assertIn(f"\nsweep: '{name}'\n", (self.root / file).read_text())
        self.init("--task", "films.yaml", "--worker", "by_worker.yaml")
        self.assertIn("\nsweep: 'by_worker'\n", (self.root / "by_worker.yaml").read_text())

    def test_invalid_task_files_are_refused_and_nothing_is_written(self):
        self.write("numbers.tsv", "a\tb\n" + "".join(f"{n}\t{n % 2}\n" for n in range(60)))
        self.write("texts.tsv", "a\n" + "".join(f"{text}\n" for text in TEXTS))
        self.write("ragged.tsv", "a\tb\nx\n")
        self.write("broken.jsonl", '{"a": 1}\n{"a"\n')
        self.write("nothing.csv", "")
        before = sorted(os.listdir(self.root))
        for data, message, code in (
                ("numbers.tsv", "found no column with texts among 'a', 'b', expected texts and labels", 2),
                ("texts.tsv", "found no column with labels or scores among 'a', expected texts and labels", 2),
                ("ragged.tsv", "ragged.tsv:2: found 1 columns, expected 2", 1),
                ("broken.jsonl", "broken.jsonl:2: found no JSON, expected a JSON object", 1),
                ("nothing.csv", "nothing.csv: is empty, expected examples", 1),
                ("missing.tsv", "missing.tsv: cannot be read", 1)):
            with self.subTest(data):
                self.assertIn(message, self.init("--task", data, code=code).err)
        self.assertEqual(sorted(os.listdir(self.root)), before)

    def test_a_worker_is_run_by_its_sweep(self):
        (self.root / "a folder").mkdir()
        done = self.init("--worker", "--task", "films.yaml", "a folder/first.yaml", code=1)
        self.assertIn("films.yaml", done.err)
        self.assertEqual(list(self.root.glob("a folder/*")), [])
        done = self.init("--worker", "--task", "films.yaml")
        self.assertEqual(done.out, "worker.py: the worker; it needs the Python package petlab (docs/python.md)\n"
                                   "sweep.yaml: 6 trials of the worker on films.yaml; next: petlab run sweep.yaml "
                                   "--worker 'python3 worker.py'\n")
        done = self.petlab("run", "sweep.yaml", "--slots", 2, "--worker", "python3 worker.py")
        self.assertEqual(done.code, 0, done)
        rows = self.query("SELECT variant, seed, name, value FROM sweep_results ORDER BY 1, 2")
        self.assertEqual([(row["variant"], row["seed"], row["name"]) for row in rows],
                         [(variant, seed, "distance") for variant in ("fast", "slow") for seed in (42, 43, 44)])
        # The higher rate gives a smaller error.
        self.assertLess(max(row["value"] for row in rows[:3]), min(row["value"] for row in rows[3:]))
        self.assertIn("distance", self.petlab("results", "sweep.yaml").out)
        again = self.init("--worker", "--task", "films.yaml", "other.yaml", code=2)
        self.assertEqual(again.err, "petlab: worker.py: already exists; use it as it is, or move it away\n")
        self.assertFalse((self.root / "other.yaml").exists())

    def test_a_worker_needs_neither_backbone_nor_data(self):
        done = self.petlab("init", "--worker", "line.yaml")
        self.assertEqual((done.code, done.err), (0, ""), done)
        self.assertNotIn("backbone", (self.root / "line.yaml").read_text())
        done = self.petlab("run", "line.yaml", "--slots", 2, "--db", "line.db", "--worker", "python3 worker.py")
        self.assertEqual(done.code, 0, done)
        found = self.query("SELECT tasks, fit_learning_rate AS rate, count(*) AS n FROM results GROUP BY 1, 2", "line.db")
        self.assertEqual(found, [{"tasks": "line", "rate": 0.01, "n": 3}, {"tasks": "line", "rate": 0.1, "n": 3}])


if __name__ == "__main__":
    main()
