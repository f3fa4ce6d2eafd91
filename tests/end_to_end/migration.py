#!/usr/bin/env python3
"""A database that an earlier petlab made, opened for writing by this one and killed meanwhile.

usage: migration.py FOLDER_OF_PROGRAMS
"""
import pathlib
import shutil
import sqlite3

import tiny_world
from exchange_world import CHANGING, EVERY
from scripted_world import ScriptedWorld

SCHEMAS = pathlib.Path(__file__).resolve().parents[1] / "results/schemas"
# What these tables held must be there at any moment; all else of a database is compared at the end.
HELD = ("sweeps", "trials", "sweep_trials", "attempts", "progress", "artifacts", "series", "metric_values")
# Of trials, what is told nowhere else in their row: columns of fields are filled from `config`.
HELD_OF_TRIALS = {"key", "trial_id", "config", "backbone_digest", "bls_bits", "stored_bits", "cancelled",
                  "retried_after", "result_attempt", "user"}


class Migration(ScriptedWorld):
    def old_database(self, schema):
        for file in self.root.glob("k.db*"):
            file.unlink()
        database = sqlite3.connect(self.root / "k.db")
        database.executescript(schema.read_text())
        database.close()

    def opened(self, look):
        """Of a copy, as whoever opens it clears up after what was killed."""
        for file in self.root.glob("look.db*"):
            file.unlink()
        for file in self.root.glob("k.db*"):
            shutil.copy(file, self.root / file.name.replace("k.db", "look.db"))
        database = sqlite3.connect(self.root / "look.db")
        try:
            return look(database)
        finally:
            database.close()

    def whole(self):
        """Schema and rows."""
        return self.opened(lambda database: sorted(database.iterdump()))

    def held(self, columns):
        def look(database):
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            return {table: database.execute(
                f"SELECT {', '.join(names)} FROM {table} ORDER BY 1, 2").fetchall()
                for table, names in columns.items()}
        return self.opened(look)

    def kept(self, columns, before):
        """Whether what the database was is kept: all of it, wherever the rest was killed."""
        copy = self.root / "k.db.before-update"
        if not copy.exists():
            return False
        database = sqlite3.connect(copy)
        self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        self.assertEqual({table: database.execute(
            f"SELECT {', '.join(names)} FROM {table} ORDER BY 1, 2").fetchall()
            for table, names in columns.items()}, before)
        self.assertNotIn("attempt_examples", {row[0] for row in database.execute(
            "SELECT name FROM sqlite_master")})
        database.close()
        return True

    def columns(self):
        def look(database):
            return {table: [f'"{row[1]}"' for row in database.execute(f"PRAGMA table_xinfo({table})")
                            if table != "trials" or row[1] in HELD_OF_TRIALS] for table in HELD}
        return self.opened(look)

    def migrate(self, faults=""):
        self.faults = faults
        done = self.petlab("db", "import", "--db", "k.db", "--runs", "k.runs")
        self.faults = ""
        return done

    def test_without_space_for_a_copy_it_stays_as_it_was(self):
        (self.root / "k.runs").mkdir()
        self.old_database(SCHEMAS / "first.sql")
        before = self.whole()
        for calls, error in (("pwrite64,write", "ENOSPC"), ("pwrite64,write", "EIO"), ("fsync", "EIO"),
                             ("rename", "EACCES")):
            with self.subTest(calls=calls, error=error):
                done = self.migrate(f"fail program=petlab calls={calls} "
                                    f"path=*k.db.before-update* error={error}")
                self.assertEqual(done.code, 1, done)
                self.assertRegex(done.err, r"^petlab: k\.db\.before-update: cannot ")
                self.assertEqual(self.whole(), before)
                self.assertEqual([file.name for file in self.root.glob("*before-update*")] +
                                 [file.name for file in self.root.glob(".k.db*")], [])
        self.assertEqual(self.migrate().code, 0)
        self.assertNotEqual(self.whole(), before)

    def test_killed_at_every_call_that_changes_something_it_loses_nothing_and_goes_on(self):
        (self.root / "k.runs").mkdir()
        schemas = sorted(SCHEMAS.glob("*.sql"))
        self.assertGreater(len(schemas), 7)
        trace = self.root / "trace"
        for schema in schemas:
            self.old_database(schema)
            columns = self.columns()
            before = self.held(columns)
            untouched = self.whole()
            trace.unlink(missing_ok=True)
            self.assertEqual(self.migrate(f"trace program=petlab file={trace}").code, 0)
            wanted = self.whole()
            self.assertEqual(self.held(columns), before)
            self.assertTrue(self.kept(columns, before))
            calls = [line.split(" ", 1)[0] for line in trace.read_text().split("\n")[:-1]]
            count = sum(call in CHANGING.split(",") for call in calls)
            self.assertGreater(count, 20)
            # The oldest has most to be changed: of the others fewer, unless EVERY=1 asks for all.
            calls_to_kill = range(1, count + 1,
                                  1 if EVERY == 1 else 4 * EVERY if schema.stem == "fewer_fields" else 16 * EVERY)
            killed = 0
            for at in calls_to_kill:
                with self.subTest(schema=schema.stem, at=at):
                    self.old_database(schema)
                    killed += self.migrate(f"kill program=petlab calls={CHANGING} path=* at={at} torn").code == -9
                    self.assertEqual(self.held(columns), before)
                    left = self.whole()
                    self.assertTrue(left in (untouched, wanted), "changed in part")
                    unchanged = left == untouched
                    if not self.kept(columns, before):
                        self.assertTrue(unchanged)
                    done = self.migrate()
                    self.assertEqual((done.code, self.whole()), (0, wanted), done)
                    self.assertTrue(self.kept(columns, before))
                    self.assertEqual("before-update" in done.err, unchanged)
                    self.assertEqual(sorted(file.name for file in self.root.glob(".k.db*")), [])
            self.assertGreaterEqual(killed, len(calls_to_kill) * 0.8)


if __name__ == "__main__":
    tiny_world.main()
