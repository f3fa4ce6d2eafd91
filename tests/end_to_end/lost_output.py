#!/usr/bin/env python3
"""Tests programs whose output cannot be written, which is an error, and queries that would never end.

usage: lost_output.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator.
"""
import os
import resource
import signal
import subprocess
import unittest

import tiny_world
from tiny_world import PETLAB, PROGRAMS, SWEEP, TRAINER, VARIANTS, TinyWorld

LOST = "petlab: standard output cannot be written: {}; the output is incomplete\n"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


class LostOutput(TinyWorld):
    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", SWEEP + VARIANTS)
        self.worker = ["--worker", str(PROGRAMS / "scripted-worker")]
        self.assertEqual(self.run_sweep(*self.worker).code, 0)
        self.trial = self.attempt_folders()[0].parent.name
        self.write("hyp.txt", "a b c\n")
        (self.attempt_folders()[0] / "log.txt").write_text("said by the worker\n")
        self.commands = [
            ["--help"], ["--version"], ["plan", "--help"], ["plan", "sweep.yaml"],
            ["plan", "sweep.yaml", "--json"],
            ["run", "sweep.yaml", "--json", *self.worker],
            ["status", "sweep.yaml"], ["status", "--db", "sweep.db", "--json"],
            ["show", self.trial, "--db", "sweep.db", "--runs", "sweep.runs"],
            ["logs", self.trial, "--db", "sweep.db", "--runs", "sweep.runs"],
            ["report", "sweep", "--sweep", "tiny", "--db", "sweep.db"],
            ["query", "SELECT * FROM results", "--db", "sweep.db"],
            ["query", "SELECT * FROM results", "--db", "sweep.db", "--format", "csv"],
            ["query", "SELECT * FROM results", "--db", "sweep.db", "--format", "json"],
            ["db", "import", "--db", "sweep.db", "--runs", "sweep.runs"],
            ["score", "--list"], ["score", "bleu", "--hyp", "hyp.txt", "--ref", "hyp.txt"],
            ["storage", "--kind", "adapter", "--backbone", "roberta-base"]]

    def test_every_command_reports_lost_output(self):
        for words in self.commands:
            with self.subTest(words), open("/dev/full", "wb") as full:
                done = self.petlab(*words, stdout=full)
                self.assertEqual(done.code, 1, done)
                self.assertIn(LOST.format("No space left on device"), done.err)

    def test_a_closed_output_is_lost_and_no_file_takes_its_place(self):
        before = (self.root / "sweep.db").read_bytes()
        for words in self.commands:
            with self.subTest(words):
                done = self.petlab(*words, stdout=None, preexec_fn=lambda: os.close(1))
                self.assertEqual(done.code, 1, done)
                self.assertIn(LOST.format("Bad file descriptor"), done.err)
        with self.subTest("all three"):
            done = self.petlab("plan", "sweep.yaml", stdin=None, stdout=None, stderr=None,
                               preexec_fn=lambda: [os.close(fd) for fd in (0, 1, 2)])
            self.assertEqual(done.code, 1)
        self.assertEqual((self.root / "sweep.db").read_bytes()[:100], before[:100])
        self.assertEqual(self.query("SELECT count(*) AS n FROM trials"), [{"n": 4}])

    def test_a_file_size_limit_is_an_error_instead_of_a_signal(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        with open(self.root / "out", "wb") as out:
            done = self.petlab("query", ENDLESS + " LIMIT 100000", "--db", "sweep.db", "--format",
                               "csv", stdout=out, preexec_fn=limit)
        self.assertEqual((done.code, done.err), (1, LOST.format("File too large")))
        self.assertEqual((self.root / "out").stat().st_size, 65536)

    def test_a_failing_command_keeps_its_exit_code(self):
        with open("/dev/full", "wb") as full:
            done = self.petlab("query", "SELECT * FROM result", "--db", "sweep.db", stdout=full)
        self.assertEqual(done.code, 2, done)

    def test_a_closed_reader_ends_a_query(self):
        done = subprocess.run(
            f"{PETLAB} query '{ENDLESS}' --db sweep.db --format csv | head -n 3; "
            "echo ${PIPESTATUS[0]}", shell=True, executable="/bin/bash", cwd=self.root,
            env=self.environment(), capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr), ("x\n1\n2\n141\n", ""))

    @unittest.skipUnless(TRAINER.is_file(), "petlab-trainer is not built")
    def test_the_trainers_commands_report_it_too(self):
        for words in (["--help"], ["--describe"], ["tokenize", "--backbone", "./tiny"]):
            with self.subTest(words), open("/dev/full", "wb") as full, \
                    open(self.root / "hyp.txt") as text:
                done = self.petlab(*words, program=TRAINER, stdin=text, stdout=full)
                self.assertEqual(done.code, 1, done)
                self.assertIn(LOST.format("No space left on device").replace(
                    "petlab:", "petlab-trainer:"), done.err)


class EndlessQueries(TinyWorld):
    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", SWEEP)
        worker = ["--worker", str(PROGRAMS / "scripted-worker")]
        self.assertEqual(self.run_sweep(*worker).code, 0)

    def within(self, bytes_of_memory, *words):
        if b"__asan_init" in (PROGRAMS / "petlab").read_bytes():
            self.skipTest("AddressSanitizer reserves more address space than any limit leaves")

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (bytes_of_memory, bytes_of_memory))
        return self.petlab(*words, preexec_fn=limit)

    def test_a_table_has_a_limit_with_a_note(self):
        done = self.petlab("query", ENDLESS, "--db", "sweep.db")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(done.out.count("\n"), 10_002)
        self.assertEqual(done.err, "petlab: only the first 10000 rows are printed; --format csv "
                                   "prints all, --limit N others\n")
        for form, wanted in (("table", "x\n─\n1\n2\n"), ("csv", "x\n1\n2\n"),
                             ("json", '[{"x":1},\n {"x":2}]\n'), ("jsonl", '{"x":1}\n{"x":2}\n')):
            with self.subTest(form):
                done = self.petlab("query", ENDLESS, "--db", "sweep.db", "--limit", 2,
                                   "--format", form)
                self.assertEqual(done.out, wanted)
                self.assertIn("only the first 2 rows", done.err)
                done = self.petlab("query", ENDLESS + " LIMIT 2", "--db", "sweep.db", "--limit", 2,
                                   "--format", form)
                self.assertEqual((done.out, done.err), (wanted, ""))

    def test_rows_are_streamed_with_little_memory(self):
        for form in ("csv", "json", "jsonl"):
            with self.subTest(form):
                done = self.within(100 << 20, "query", ENDLESS + " LIMIT 1000000", "--db",
                                   "sweep.db", "--format", form)
                self.assertEqual((done.code, done.err), (0, ""))
                self.assertIn("1000000", done.out[-40:])

    def test_a_time_limit_and_ctrl_c_end_it(self):
        nothing = ENDLESS + " WHERE x < 0"
        for sql in (nothing, ENDLESS):
            with self.subTest(sql), open("/dev/null", "wb") as null:
                done = self.petlab("query", sql, "--db", "sweep.db", "--format", "csv",
                                   "--timeout", "300ms", stdout=null)
                self.assertEqual((done.code, done.err),
                                 (1, "petlab: the query took longer than --timeout 0.3 s\n"))
                process = self.start("query", sql, "--db", "sweep.db", "--format", "csv",
                                     "--timeout", "1m", stdout=null)
                process.send_signal(0)
                self.wait_for_handler(process)
                process.send_signal(signal.SIGINT)
                done = self.end(process, 20)
                self.assertEqual((done.code, done.err), (3, "petlab: the query was interrupted\n"))

    def wait_for_handler(self, process):
        """Waits until the process catches SIGINT."""
        while True:
            with open(f"/proc/{process.pid}/status") as status:
                caught = next(line for line in status if line.startswith("SigCgt"))
            if int(caught.split()[1], 16) & 1 << (signal.SIGINT - 1):
                return

    def test_running_out_of_memory_is_reported(self):
        done = self.petlab("query", "SELECT group_concat(hex(zeroblob(1000000))) FROM "
                           f"({ENDLESS} LIMIT 100)", "--db", "sweep.db")
        self.assertEqual((done.code, done.err), (2, "petlab: SQL: string or blob too big\n"))
        done = self.petlab("query", "SELECT length(zeroblob(100000000))", "--db", "sweep.db")
        self.assertEqual((done.code, done.err), (2, "petlab: SQL: string or blob too big\n"))
        self.write("hyp.txt", "1\n" * 10_000_000)
        done = self.within(150 << 20, "score", "spearman", "--hyp", "hyp.txt", "--ref", "hyp.txt")
        self.assertEqual((done.code, done.out), (1, ""))
        self.assertEqual(done.err, "petlab: hyp.txt and hyp.txt: not enough memory for the "
                                   "data that spearman keeps of all lines; score parts of "
                                   "them, or allow the process more memory\n")

    def test_a_query_cannot_write_attach_or_load(self):
        before = (self.root / "sweep.db").read_bytes()
        files = sorted(self.root.iterdir())
        for sql in ("DELETE FROM trials", "CREATE TABLE a (b)", "CREATE TEMP TABLE a (b)",
                    "ATTACH 'other.db' AS o", "VACUUM INTO 'other.db'", "PRAGMA user_version = 5",
                    "PRAGMA journal_mode = DELETE", "PRAGMA temp_store_directory = '/'",
                    "PRAGMA writable_schema = ON", "BEGIN", "SELECT load_extension('./x.so')",
                    "SELECT writefile('other.db', 'x')", "SELECT readfile('sweep.yaml')",
                    "DETACH main", "REINDEX", "ANALYZE"):
            with self.subTest(sql):
                done = self.petlab("query", sql, "--db", "sweep.db")
                self.assertEqual(done.code, 2, done)
        for file in files:
            self.assertTrue(file.exists())
        self.assertFalse((self.root / "other.db").exists())
        self.assertEqual((self.root / "sweep.db").read_bytes(), before)


if __name__ == "__main__":
    tiny_world.main()
