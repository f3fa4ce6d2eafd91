#!/usr/bin/env python3
"""Tests that the database, runs folder, sweep files and artifacts of each release give what they gave then.

usage: open.py FOLDER_OF_PROGRAMS
"""
import gzip
import json
import pathlib
import shutil
import sqlite3
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

import tiny_world  # noqa: E402
from tiny_world import TRAINER, TinyWorld  # noqa: E402

RELEASES = sorted(path.parent for path in HERE.glob("*/database.sql"))
# Other processors, or another library for products, add numbers in another order. In float32, that changes a result
# of these small models by up to 1e-6. Another mask or module changes it by more than 1e-4.
TOLERANCE = 1e-5


class World(TinyWorld):
    database = "petlab.db"

    def setUp(self):
        super().setUp()
        self.assertTrue(RELEASES)
        self.top = self.root

    def open(self, release):
        """Copies a release to a new folder, creates its database there, and returns its answers."""
        self.root = self.top / release.name
        shutil.copytree(release, self.root)
        for name in ("home", "data", "slots"):
            (self.root / name).mkdir()
        database = sqlite3.connect(self.root / self.database)
        database.executescript((self.root / "database.sql").read_text())
        database.close()
        return json.loads(gzip.decompress((self.root / "answers.json.gz").read_bytes()))

    def ran(self, *words, **options):
        done = self.petlab(*words, **options)
        self.assertEqual(done.code, 0, (words, done))
        return done.out


class Databases(World):
    def rows(self, rows, without=None):
        return sorted(json.dumps({name: value for name, value in row.items() if name != without}) for row in rows)

    def compare(self, answers, database, without=None):
        for sql, rows in answers["queries"].items():
            view = sql.split(" FROM ")[1]
            self.assertTrue(rows, view)
            column = (without or {}).get(view)
            self.assertEqual(self.rows(self.query(sql, database), column), self.rows(rows, column), view)

    def test_views_show_the_recorded_rows_before_and_after_an_update(self):
        for release in RELEASES:
            with self.subTest(release.name):
                answers = self.open(release)
                self.compare(answers, self.database)
                self.ran("db", "update")
                self.compare(answers, self.database)
                self.ran("db", "check")

    def test_a_database_rebuilt_from_the_runs_folder_has_the_recorded_rows(self):
        for release in RELEASES:
            with self.subTest(release.name):
                answers = self.open(release)
                self.ran("db", "rebuild", "--db", "new.db", "--runs", "petlab.runs")
                # The variants of trials that left a sweep are in no file.
                self.compare(answers, "new.db", {"former_sweep_results": "variant"})


class Programs(World):
    def setUp(self):
        super().setUp()
        if not TRAINER.is_file():
            self.skipTest("petlab-trainer is missing")

    def test_sweep_files_have_the_recorded_trials(self):
        for release in RELEASES:
            for name, trials in self.open(release)["trials"].items():
                with self.subTest(release.name, sweep=name):
                    plan = json.loads(self.ran("plan", f"{name}.yaml", "--json"))
                    self.assertEqual([[trial["id"], trial["variant"]] for trial in plan["trials"]], trials)
                    self.assertNotIn("new", {trial["state"] for trial in plan["trials"]})

    def near(self, found, recorded):
        """Compares numbers up to TOLERANCE and everything else exactly. Keys may be added."""
        if isinstance(recorded, dict):
            for key, value in recorded.items():
                self.near(found[key], value)
        elif isinstance(recorded, list):
            self.assertEqual(len(found), len(recorded))
            for one, other in zip(found, recorded):
                self.near(one, other)
        elif isinstance(recorded, float):
            self.assertLessEqual(abs(found - recorded), TOLERANCE * max(1, abs(recorded)))
        else:
            self.assertEqual(found, recorded)

    def test_artifacts_predict_what_they_predicted(self):
        for release in RELEASES:
            predictions = self.open(release)["predictions"]
            self.assertTrue(predictions)
            for prediction in predictions:
                with self.subTest(release.name, words=prediction["words"]):
                    lines = self.ran(*prediction["words"], program=TRAINER).splitlines()
                    self.near([json.loads(line) for line in lines], prediction["lines"])


if __name__ == "__main__":
    tiny_world.main()
