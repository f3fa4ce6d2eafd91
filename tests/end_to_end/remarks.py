#!/usr/bin/env python3
"""Tests tags and notes on trials and sweeps, and their place in files, merges and answers.

usage: remarks.py FOLDER_OF_PROGRAMS
"""
import json
import os
import sqlite3
import tarfile

import tiny_world
from exchange_world import ExchangeWorld

EVERY = int(os.environ.get("EVERY", 4))


class Remarks(ExchangeWorld):
    def setUp(self):
        super().setUp()
        self.machine("a", "--only", "seed=1..2")
        self.ids = self.trials("a", "seed < 3")

    def tags(self, *words, name="a", code=0):
        done = self.on(name, "tag", *words, code=code)
        return done.out if code == 0 else done.err

    def rows(self, where, name="a"):
        """Ids of trials with results that a condition selects."""
        done = self.petlab("results", "--db", f"{name}.db", "--by", "trial_id", "--where", where, "--format", "json")
        self.assertEqual(done.code, 0, done)
        return [row["trial_id"] for row in json.loads(done.out) if row["trial_id"] in self.ids]

    def test_tags_are_set_and_removed_and_conditions_select_by_them(self):
        first, second, third, fourth = self.ids
        self.assertEqual(self.tags(first, second[:12], "+good", "+lr-sweep"),
                         f"{first}  good, lr-sweep\n{second}  good, lr-sweep\n")
        self.assertEqual(self.tags(first, "-good", "+bad"), f"{first}  bad, lr-sweep\n")
        self.assertEqual(self.tags("--sweep", "shared", "+paper"), "sweep shared  paper\n")
        self.assertEqual(self.tags(first, fourth), f"{first}  bad, lr-sweep\n{fourth}  no tags\n")
        self.assertEqual(self.rows("tag=good"), [second])
        self.assertCountEqual(self.rows("tag=good,bad"), [first, second])
        self.assertCountEqual(self.rows("tag!=good,bad and tag=paper"), [third, fourth])
        self.assertEqual(self.rows("seed=1 and tag=lr-sweep and tag=bad"), [first])
        done = self.petlab("results", "--db", "a.db", "--where", "tag=null")
        self.assertNotIn("small", done.out)
        rows = json.loads(self.petlab("results", "--db", "a.db", "--by", "tag,trial_id", "--format", "json").out)
        self.assertEqual({row["trial_id"]: row["tag"] for row in rows if row["trial_id"] in self.ids},
                         {first: "bad,lr-sweep,paper", second: "good,lr-sweep,paper", third: "paper", fourth: "paper"})
        self.assertEqual(self.query("SELECT DISTINCT tags FROM results WHERE trial_id = '%s'" % first, "a.db"),
                         [{"tags": "bad,lr-sweep,paper"}])
        self.assertEqual(json.loads(self.on("a", "tag", "--json").out),
                         [{"tag": "bad", "trials": 1}, {"tag": "good", "trials": 1},
                          {"tag": "lr-sweep", "trials": 2}, {"tag": "paper", "trials": 8}])
        done = self.petlab("results", "--db", "a.db", "--where", "tag=god")
        self.assertEqual((done.code, done.err), (2, "petlab: no trial has tag god; did you mean good?\n"))
        # Remarks that change nothing are not written.
        before = self.files("a")
        self.tags(second, "+good", "-none")
        self.assertEqual(self.files("a"), before)

    def test_a_tag_set_with_a_fast_clock_can_be_removed(self):
        trial = self.ids[0]
        self.tags(trial, "+good")
        with sqlite3.connect(self.root / "a.db") as database:
            database.execute("UPDATE trial_remarks SET time = time + 86400")
        database.close()
        for change, tags in (("-good", "no tags"), ("+good", "good"), ("-good", "no tags")):
            self.assertEqual(self.tags(trial, change), f"{trial}  {tags}\n")
        self.assertEqual(self.tags(trial), f"{trial}  no tags\n")

    def test_notes_are_kept_and_shown(self):
        first = self.ids[0]
        self.on("a", "note", first, "looks\nodd: \x1b[31m\"quoted\", ünïcode")
        self.on("a", "note", first, "no, it is fine")
        self.on("a", "note", "--sweep", "shared", "for the paper")
        self.tags(first, "+good")
        self.tags(first, "-good", "+fine")
        found = json.loads(self.on("a", "note", first, "--json").out)
        self.assertEqual([one["note"] for one in found],
                         ["looks\nodd: \x1b[31m\"quoted\", ünïcode", "no, it is fine"])
        shown = self.on("a", "show", first).out
        self.assertIn("tags and notes\n", shown)
        self.assertIn("looks�odd: �[31m", shown)
        self.assertRegex(shown, r"\n  tags +fine\n")
        self.assertRegex(shown, r"\+good\n(.*\n)?.*-good\n")
        document = json.loads(self.on("a", "show", first, "--json").out)
        self.assertEqual(document["tags"], ["fine"])
        self.assertEqual([next(iter(set(one) - {"time"})) for one in document["remarks"]],
                         ["note", "note", "tag", "tag", "untag"])
        self.assertIn("for the paper", self.on("a", "note", "--sweep", "shared").out)

    def test_invalid_tags_and_notes_are_refused_and_nothing_is_written(self):
        first = self.ids[0]
        before = self.files("a")
        for words, message in (
                ([first, "+"], "found an empty tag, expected a text"),
                ([first, "+a b"], "found the tag 'a b', expected a word without spaces"),
                ([first, "+a,b"], "found the tag 'a,b', expected"),
                ([first, "+" + "x" * 101], "found a tag of 101 bytes, expected at most 100"),
                ([first, "+a", "-a"], "found +a and -a, expected one of them"),
                (["+a"], "found neither a trial nor --sweep, expected at least one"),
                (["zzz", "+a"], "trial zzz is not in a.db"),
                (["--sweep", "shard", "+a"], "shared"),
                ([first, "--ad", "x"], "tag has no option --ad; did you mean --add?")):
            with self.subTest(words):
                self.assertIn(message, self.tags(*words, code=2))
        for words, message in (
                ([first, "x" * 70000], "found a note of 70000 bytes, expected at most 65536"),
                (["--sweep", "shared", "--sweep", "other", "x"], "found several trials or sweeps, expected one"),
                ([], "found neither a trial nor --sweep")):
            self.assertIn(message, self.on("a", "note", *words, code=2).err)
        self.assertEqual(self.files("a"), before)
        self.assertIn("--only: found tag, expected a property that a trial has before it runs",
                      self.petlab("plan", "sweep.yaml", "--only", "tag=good", "--worker", "./worker.py").err)

    def test_the_shell_completes_them(self):
        first = self.ids[0]
        self.tags(first, "+good", "+great")
        complete = lambda *words: self.petlab("completion", "--words", "--", *words).out.split()
        self.assertEqual(complete("tag", "--db", "a.db", first, "+g"), ["+good", "+great"])
        self.assertEqual(complete("tag", "--db", "a.db", first, "-go"), ["-good"])
        self.assertEqual(complete("tag", "--db", "a.db", first[:6]), [first])
        self.assertEqual(complete("note", "--db", "a.db", first[:6]), [first])
        self.assertIn("tag=", complete("results", "--db", "a.db", "--where", "ta"))

    def test_archives_and_merges_transfer_them_once(self):
        first, second = self.ids[:2]
        self.tags(first, "+good", "+bad")
        self.tags(first, "-bad")
        self.on("a", "note", first, "kept")
        self.tags("--sweep", "shared", "+paper")
        wanted = self.remarks("a")
        self.on("a", "db", "export", "archive", "a.tar.gz")
        with tarfile.open(self.root / "a.tar.gz") as archive:
            self.assertIn(f"runs/{first}/remarks.jsonl", archive.getnames())
            self.assertIn("runs/sweeps/shared.remarks", archive.getnames())
        done = self.as_json("b", "db", "import", "a.tar.gz")
        self.assertEqual(done["remarks"], 5)
        self.assertEqual(self.remarks("b"), wanted)
        self.on("b", "db", "check")
        self.assertEqual(self.as_json("b", "db", "import", "a.tar.gz")["remarks"], 0)
        # Remarks of both sides are merged. For each tag the latest remark counts.
        self.tags(first, "-good", name="b")
        self.tags(second, "+b", name="b")
        self.tags(second, "+a")
        for one, other in (("a", "b"), ("b", "a"), ("a", "b")):
            self.on(one, "db", "merge", f"{other}.db")
        self.assertEqual(self.remarks("a"), self.remarks("b"))
        self.assertEqual(self.tags(first, second), f"{first}  no tags\n{second}  a, b\n")
        self.on("a", "db", "check")
        # The runs folder has everything for a rebuild.
        self.assertEqual(self.petlab("db", "rebuild", "--db", "r.db", "--runs", "a.runs").code, 0)
        self.assertEqual(self.remarks("r"), self.remarks("a"))
        # check reports remarks that the database lacks, and import reads them.
        with open(self.root / f"a.runs/{first}/remarks.jsonl", "a") as file:
            file.write('{"v":1,"time":9,"tag":"late"}\n{"v":1,"time":10,"tag":"a b"}\n{"v":1,"tim')
        found = json.loads(self.on("a", "db", "check", "--json", code=1).out)["findings"]
        self.assertEqual(sorted(one["kind"] for one in found), ["decisions", "unreadable_file"])
        self.on("a", "db", "import", code=1)
        self.assertEqual(self.tags(first), f"{first}  late\n")

    def remarks(self, name):
        return self.query("SELECT t.trial_id AS of, what, text, time FROM trial_remarks JOIN trials t ON t.key = trial "
                          "UNION ALL SELECT s.name, what, text, time FROM sweep_remarks JOIN sweeps s ON s.key = sweep "
                          "ORDER BY 1, 4, 2, 3", f"{name}.db")

    def test_a_tag_command_killed_at_any_call_can_be_repeated(self):
        first = self.ids[0]
        calls = "write,pwrite64,fdatasync,ftruncate,unlink,rename,mkdir"
        for at in range(1, 60, EVERY):
            self.copy_machine("a", "k")
            self.faults = f"kill program=petlab calls={calls} path=* at={at} torn"
            done = self.petlab("tag", first, "+good", "--db", "k.db", "--runs", "k.runs")
            self.faults = ""
            self.assertIn(self.petlab("db", "import", "--db", "k.db", "--runs", "k.runs").code, (0, 1))
            self.assertEqual(self.tags(first, "+good", name="k"), f"{first}  good\n")
            # The only finding is the incomplete line of the killed command.
            found = self.petlab("db", "check", "--json", "--db", "k.db", "--runs", "k.runs").out
            self.assertLessEqual({one["kind"] for one in json.loads(found)["findings"]}, {"unreadable_file"})
            if done.code == 0:
                break
        self.assertGreater(at, 3)


if __name__ == "__main__":
    tiny_world.main()
