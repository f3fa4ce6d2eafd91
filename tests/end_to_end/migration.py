#!/usr/bin/env python3
"""Tests databases of earlier versions: reading, updating, and updates killed at every call.

usage: migration.py FOLDER_OF_PROGRAMS
"""
import pathlib
import shutil
import signal
import sqlite3
import subprocess

import tiny_world
from exchange_world import CHANGING, EVERY
from scripted_world import ScriptedWorld

TESTS = pathlib.Path(__file__).resolve().parents[1]
SCHEMAS = TESTS / "results/schemas"
# The contents of these tables must exist at any time. Everything else is compared at the end.
HELD = ("sweeps", "trials", "sweep_trials", "attempts", "progress", "artifacts", "series", "metric_values")
# The columns of trials that are not derived: those of fields are filled from `config`.
HELD_OF_TRIALS = {"key", "trial_id", "config", "backbone_digest", "bls_bits", "stored_bits", "cancelled",
                  "retried_after", "result_attempt", "user"}


def whole(database):
    return sorted(database.iterdump()), database.execute("PRAGMA user_version").fetchone()


class Migration(ScriptedWorld):
    def old_database(self, schema):
        for file in self.root.glob("k.db*"):
            file.unlink()
        database = sqlite3.connect(self.root / "k.db")
        database.executescript(schema.read_text())
        database.close()

    def opened(self, look):
        """Calls `look` with a copy of the database: opening it cleans up after a killed update."""
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
        """The schema and rows."""
        return self.opened(whole)

    def held(self, columns):
        def look(database):
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            return {table: database.execute(
                f"SELECT {', '.join(names)} FROM {table} ORDER BY 1, 2").fetchall()
                for table, names in columns.items()}
        return self.opened(look)

    def kept(self, before):
        """True if there is a backup, which must equal the database before the update."""
        copy = self.root / f"k.db.v{before[1][0]}.bak"
        if not copy.exists():
            return False
        database = sqlite3.connect(copy)
        self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        self.assertEqual(whole(database), before)
        database.close()
        return True

    def columns(self):
        def look(database):
            return {table: [f'"{row[1]}"' for row in database.execute(f"PRAGMA table_xinfo({table})")
                            if table != "trials" or row[1] in HELD_OF_TRIALS] for table in HELD}
        return self.opened(look)

    def update(self, faults=""):
        self.faults = faults
        done = self.petlab("db", "update", "--db", "k.db")
        self.faults = ""
        return done

    def test_without_space_for_a_copy_it_is_unchanged(self):
        self.old_database(SCHEMAS / "first.sql")
        before = self.whole()
        for calls, error in (("pwrite64,write", "ENOSPC"), ("pwrite64,write", "EIO"), ("fsync", "EIO"),
                             ("rename", "EACCES")):
            with self.subTest(calls=calls, error=error):
                done = self.update(f"fail program=petlab calls={calls} "
                                   f"path=*k.db.v1.bak* error={error}")
                self.assertEqual(done.code, 1, done)
                self.assertRegex(done.err, r"^petlab: k\.db\.v1\.bak: cannot ")
                self.assertEqual(self.whole(), before)
                self.assertEqual([file.name for file in self.root.glob("*v1.bak*")] +
                                 [file.name for file in self.root.glob(".k.db*")], [])
        self.assertEqual(self.update().code, 0)
        self.assertNotEqual(self.whole(), before)

    def test_a_writing_command_updates_it_once_with_a_note(self):
        self.old_database(SCHEMAS / "last_of_version_1.sql")
        (self.root / "k.runs").mkdir()
        before = self.whole()
        for words in (["tag", "t1", "+good"], ["tag", "t2", "+good"]):
            done = self.petlab(*words, "--db", "k.db")
            message = "petlab: k.db: updated from version 1 to 3; a copy of the old one is k.db.v1.bak\n"
            self.assertEqual((done.code, done.err), (0, message if words[1] == "t1" else ""))
        self.assertTrue(self.kept(before))
        done = self.petlab("db", "update", "--db", "k.db")
        self.assertEqual((done.code, done.out, done.err), (0, "k.db: version 3\n", ""))

    def test_a_reading_command_leaves_it_unchanged_with_a_note(self):
        self.old_database(SCHEMAS / "last_of_version_1.sql")
        bytes_of = {file.name: file.read_bytes() for file in self.root.glob("k.db*")}
        query = ["query", "SELECT trial_id, value, tags FROM results", "--format", "csv", "--db", "k.db"]
        note = ("petlab: note: k.db: the database has version 1, this petlab writes 3; it was read "
                "through an updated copy (petlab db update --db k.db updates it)\n")
        read = [self.petlab(*words, "--db", "k.db") for words in (
            query[:-2], ["status"], ["show", "t1"], ["report", "sweep", "--sweep", "old"],
            ["results", "--format", "csv"])]
        for done in read:
            self.assertEqual(done.code, 0, done)
            self.assertEqual([line for line in done.err.splitlines(True) if "k.db" in line], [note])
        self.assertEqual(read[0].out, "trial_id,value,tags\nt1,0.5,\nt1,0.125,\nt1,,\n")
        self.assertEqual({file.name: file.read_bytes() for file in self.root.glob("k.db*")}, bytes_of)
        # Reading needs space for a copy.
        self.faults = "fail program=petlab calls=open,open64,openat path=*etilqs* error=EACCES"
        self.assertEqual(self.petlab(*query).code, 0)  # a small copy fits in memory
        self.faults = ""
        # A backup keeps the database's version.
        self.assertEqual(self.petlab("db", "backup", "copy.db", "--db", "k.db").err, "")
        database = sqlite3.connect(self.root / "copy.db")
        self.assertEqual(whole(database), self.whole())
        database.close()
        self.assertEqual(self.update().code, 0)
        self.assertEqual(self.petlab(*query).out, read[0].out)

    def test_on_a_read_only_disk_it_is_read_and_a_writing_command_says_what_to_do(self):
        disk = self.small_disk("4m")
        self.old_database(SCHEMAS / "first.sql")
        shutil.copy(self.root / "k.db", disk / "k.db")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        done = self.petlab("query", "SELECT count(*) AS n FROM scores", "--format", "csv", "--db", "disk/k.db")
        self.assertEqual((done.code, done.out), (0, "n\n2\n"), done)
        self.assertIn("the database has version 1, this petlab writes 3; it was read through an updated copy",
                      done.err)
        done = self.petlab("db", "update", "--db", "disk/k.db")
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.err, r"^petlab: disk/k\.db: .*read-only.*\n$")
        self.assertEqual([file.name for file in disk.iterdir()], ["k.db"])

    def test_two_programs_open_it_at_the_same_time(self):
        self.old_database(SCHEMAS / "last_of_version_1.sql")
        self.faults = "stop program=petlab calls=rename path=*k.db.v1.bak* at=1"
        first = self.start("db", "update", "--db", "k.db")
        self.faults = ""
        self.until(lambda: pathlib.Path(f"/proc/{first.pid}/stat").read_text().split()[2] == "T")
        # Readers are not blocked, even those of an older program.
        self.assertEqual(self.petlab("results", "--db", "k.db").code, 0)
        older = sqlite3.connect(self.root / "k.db")
        self.assertEqual(older.execute("SELECT count(*) FROM results").fetchone(), (3,))
        others = [self.start("db", "update", "--db", "k.db") for _ in range(3)]
        first.send_signal(signal.SIGCONT)
        done = [self.end(process) for process in (first, *others)]
        self.assertEqual([one.code for one in done], [0] * 4, done)
        self.assertIn("updated from version 1 to 3", done[0].err)
        self.assertEqual([one.err for one in done[1:]], [""] * 3)
        self.assertEqual(older.execute("SELECT count(*) FROM scores").fetchone(), (2,))
        older.execute("UPDATE trials SET cancelled = 1 WHERE trial_id = 't2'")
        older.commit()
        older.close()

    def test_an_update_killed_at_every_changing_call_loses_nothing_and_can_be_repeated(self):
        schemas = sorted(SCHEMAS.glob("*.sql"))
        self.assertGreater(len(schemas), 8)
        # Releases whose database has an earlier version than this petlab's.
        current = int(self.petlab("--version").out.rsplit("database version ", 1)[1])
        for schema in sorted(TESTS.glob("releases/*/database.sql")):
            self.old_database(schema)
            if self.whole()[1][0] < current:
                schemas.append(schema)
        trace = self.root / "trace"
        for schema in schemas:
            self.old_database(schema)
            columns = self.columns()
            before = self.held(columns)
            untouched = self.whole()
            trace.unlink(missing_ok=True)
            self.assertEqual(self.update(f"trace program=petlab file={trace}").code, 0)
            wanted = self.whole()
            self.assertEqual(self.held(columns), before)
            self.assertTrue(self.kept(untouched))
            calls = [line.split(" ", 1)[0] for line in trace.read_text().split("\n")[:-1]]
            count = sum(call in CHANGING.split(",") for call in calls)
            self.assertGreater(count, 20)
            # The oldest schema needs most changes. For the others fewer calls are tried, unless EVERY=1.
            calls_to_kill = range(1, count + 1,
                                  1 if EVERY == 1 else 4 * EVERY if schema.stem == "fewer_fields" else 16 * EVERY)
            killed = 0
            for at in calls_to_kill:
                with self.subTest(schema=schema.relative_to(TESTS), at=at):
                    self.old_database(schema)
                    killed += self.update(f"kill program=petlab calls={CHANGING} path=* at={at} torn").code == -9
                    self.assertEqual(self.held(columns), before)
                    left = self.whole()
                    self.assertTrue(left in (untouched, wanted), "changed in part")
                    unchanged = left == untouched
                    if not self.kept(untouched):
                        self.assertTrue(unchanged)
                    done = self.update()
                    self.assertEqual((done.code, self.whole()), (0, wanted), done)
                    self.assertTrue(self.kept(untouched))
                    self.assertEqual(f"k.db.v{untouched[1][0]}.bak" in done.err, unchanged)
                    self.assertEqual(sorted(file.name for file in self.root.glob(".k.db*")), [])
            self.assertGreaterEqual(killed, len(calls_to_kill) * 0.8)


if __name__ == "__main__":
    tiny_world.main()
