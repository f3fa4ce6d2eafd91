#!/usr/bin/env python3
"""Tests combining results of several machines: `petlab db merge`, `import`, `export archive`, `check`.

usage: exchange.py FOLDER_OF_PROGRAMS
"""
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import sqlite3
import tarfile

import tiny_world
from exchange_world import CHANGING, VALUES, ExchangeWorld


class Merge(ExchangeWorld):
    def test_two_machines_merge_to_the_results_of_one(self):
        self.machine("one")
        self.machine("a", "--only", "seed=1..3")
        self.machine("b", "--only", "seed=3..4")
        before = self.files("b")
        merged = self.as_json("a", "db", "merge", "b.db")
        self.assertEqual({key: merged[key] for key in ("trials", "attempts", "same", "conflicts", "left")},
                         {"trials": 2, "attempts": 2, "same": 2, "conflicts": [], "left": []})
        self.assertEqual(self.files("b"), before)
        self.assertEqual(self.tables("a"), self.tables("one"))
        self.assertEqual(self.artifacts("a"), self.artifacts("one"))
        self.on("a", "db", "check")
        # Repeating the command, with the database or the folder, changes nothing.
        state = self.files("a")
        for words in (["db", "merge", "b.db"], ["db", "import", "b.runs"]):
            again = self.as_json("a", *words)
            self.assertEqual((again["trials"], again["files"], again["same"]), (0, 0, 4), again)
            self.assertEqual(self.files("a"), state)
        plan = json.loads(self.petlab("plan", "sweep.yaml", "--db", "a.db", "--worker", "./worker.py",
                                      "--json").out)
        self.assertEqual({trial["state"] for trial in plan["trials"]}, {"done"})
        # The runs folder has everything for a rebuild.
        self.assertEqual(self.petlab("db", "rebuild", "--db", "r.db", "--runs", "a.runs").code, 0)
        self.assertEqual(self.query("SELECT trial_id, attempt, value FROM results ORDER BY 1, 2, seq", "r.db"),
                         self.query("SELECT trial_id, attempt, value FROM results ORDER BY 1, 2, seq", "a.db"))
        # After a merge in the other direction both are equal.
        self.on("b", "db", "merge", "a.db")
        self.assertEqual(self.tables("b"), self.tables("one"))

    def test_a_new_database_imports_everything(self):
        self.machine("a")
        self.on("new", "db", "import", "a.runs")
        self.assertEqual(self.tables("new"), self.tables("a"))
        self.on("new", "db", "check")

    def test_different_numbers_digests_and_builds_are_conflicts_and_results_here_stay(self):
        self.machine("a", "--only", "seed=1")
        for extra, text in (({"shift": 0.25}, r"accuracy of films on test at step 3 is [\d.]+ here, [\d.]+ there"),
                            ({"data": "sha256:2"}, r"the digest of films's data is sha256:\w+ here, sha256:2 there"),
                            ({"build": "def"}, "the worker's commit is abc here, def there")):
            with self.subTest(text):
                for file in self.root.glob("b.*"):
                    shutil.rmtree(file) if file.is_dir() else file.unlink()
                self.machine("b", "--only", "seed=1..2", **extra)
                self.copy_machine("a", "c")
                tables = self.tables("c")[0]
                merged = self.as_json("c", "db", "merge", "b.db", code=1)
                self.assertEqual((merged["trials"], merged["same"], len(merged["conflicts"])), (2, 0, 2))
                for conflict in merged["conflicts"]:
                    self.assertRegex(conflict["text"], text)
                    self.assertIn("the one here is kept", conflict["text"])
                rows = [row for row in self.tables("c")[0]
                        if row["trial_id"] in [conflict["trial"] for conflict in merged["conflicts"]]]
                self.assertEqual(rows, tables)
                # To take the other result, discard this one.
                trial = merged["conflicts"][0]["trial"]
                self.on("c", "discard", trial, "--why", "the other is right")
                merged = self.as_json("c", "db", "merge", "b.db", code=1)
                self.assertEqual((merged["attempts"], len(merged["conflicts"])), (1, 1))
                theirs = f"SELECT seq, value FROM results WHERE trial_id = '{trial}' ORDER BY 1"
                self.assertEqual(self.query(theirs, "c.db"), self.query(theirs, "b.db"))
                attempt = json.loads((self.root / f"c.runs/{trial}/2/trial.json").read_text())["attempt"]
                self.assertEqual(attempt, 2)
                self.on("c", "db", "check")
                self.assertEqual(self.as_json("c", "db", "merge", "b.db", code=1)["attempts"], 0)

    def test_a_trial_that_failed_here_and_finished_there_is_merged(self):
        self.machine("a", "--only", "seed=1", fail=1, code=1)
        self.machine("b", "--only", "seed=1")
        merged = self.as_json("a", "db", "merge", "b.db")
        self.assertEqual((merged["trials"], merged["attempts"]), (2, 2))
        self.assertEqual(self.query("SELECT number, outcome, count(*) AS n FROM attempts GROUP BY 1, 2", "a.db"),
                         [{"number": 1, "outcome": "failed", "n": 2}, {"number": 2, "outcome": "finished", "n": 2}])
        self.on("a", "db", "check")
        # In the other direction there is nothing to merge.
        self.assertEqual(self.as_json("b", "db", "merge", "a.db")["attempts"], 0)

    def test_a_different_artifact_there_is_reported_with_both_digests(self):
        self.write_exchange_sweep(1)
        self.machine("a")
        self.copy_machine("a", "b")
        trial = self.trials("a")[0]
        merge = ["db", "merge", "b.db", "--other-runs", "b.runs"]
        self.assertEqual(self.as_json("a", *merge)["conflicts"], [])
        there = self.root / f"b.runs/{trial}/1/artifact.petl"
        data = there.read_bytes()
        there.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        before = self.artifacts("a")
        merged = self.as_json("a", *merge, code=1)
        self.assertEqual([(one["trial"], one["text"]) for one in merged["conflicts"]], [
            (trial, f"artifact.petl of attempt 1 is sha256:{before[trial]} here, "
                    f"sha256:{self.artifacts('b')[trial]} there (attempt 1): the one here is "
                    f"kept; petlab db check shows which is damaged")])
        self.assertEqual(self.artifacts("a"), before)

    def test_a_trial_running_there_is_skipped_until_it_is_over(self):
        self.machine("a", "--only", "seed=1")
        self.extra = {"GATE": str(self.root / "gate")}
        process = self.start("run", "sweep.yaml", "--slots", 2, "--worker", "./worker.py", "--db", "b.db",
                             "--runs", "b.runs", "--only", "seed=2")
        self.extra = {}
        self.until(lambda: (self.root / "b.db").exists() and len(self.query(
            "SELECT 1 FROM progress WHERE step = 3", "b.db")) == 2)
        for words in (["db", "merge", "b.db"], ["db", "import", "b.runs"]):
            merged = self.as_json("a", *words, code=1)
            self.assertEqual((merged["trials"], len(merged["left"])), (0, 2))
            self.assertIn("attempt 1 runs there", merged["left"][0]["text"])
        # The merging database may have running trials.
        merged = self.as_json("b", "db", "merge", "a.db")
        self.assertEqual((merged["trials"], merged["left"]), (2, []))
        self.write("gate", "")
        self.assertEqual(self.end(process).code, 0)
        self.assertEqual(self.as_json("a", "db", "merge", "b.db")["trials"], 2)

    def test_decisions_are_merged_with_their_trials(self):
        self.machine("b", "--only", "seed=1")
        first, second = self.trials("b", "seed = 1")
        self.on("b", "hide", first, "--why", "an outlier")
        self.on("b", "discard", second, "--why", "wrong data")
        self.machine("b", "--only", "seed=1")
        self.machine("a", "--only", "seed=2")
        merged = self.as_json("a", "db", "merge", "b.db")
        self.assertEqual((merged["attempts"], merged["decisions"]), (3, 2))
        self.assertEqual(self.query("SELECT DISTINCT trial_id, attempt FROM results WHERE seed = 1", "a.db"),
                         [{"trial_id": second, "attempt": 2}])
        self.assertIn("an outlier", self.on("a", "show", first).out)
        self.on("a", "db", "check")
        self.assertEqual(self.as_json("a", "db", "merge", "b.db")["decisions"], 0)
        # After undoing it here, the other side's decision is not merged again.
        self.on("a", "hide", "--undo", first)
        self.assertEqual(self.as_json("a", "db", "merge", "b.db")["decisions"], 0)

    def test_impossible_merges_are_reported(self):
        self.machine("a", "--only", "seed=1")
        self.machine("b", "--only", "seed=2")
        (self.root / "b.runs").rename(self.root / "away")
        done = self.on("a", "db", "merge", "b.db", code=2)
        self.assertIn("the runs folder of b.db does not exist", done.err)
        self.assertEqual(self.petlab("db", "merge", "b.db", "--other-runs", "away", "--db", "a.db").code, 0)
        self.assertIn("this is the same database", self.on("a", "db", "merge", "a.db", code=2).err)
        self.assertIn("itself", self.on("a", "db", "import", "a.runs", code=1).err)
        self.assertIn("the database does not exist", self.on("a", "db", "merge", "none.db", code=2).err)
        (self.root / "empty").mkdir()
        self.assertIn("found no sweep and no attempt", self.on("a", "db", "import", "empty", code=1).err)
        # A missing attempt folder is reported, and one with a link is skipped.
        trial = self.trials("b", "seed = 2")[0]
        self.machine("c", "--only", "seed=3")
        one, two = self.trials("c", "seed = 3")
        shutil.rmtree(self.root / f"c.runs/{one}")
        os.symlink("/etc/passwd", self.root / f"c.runs/{two}/1/secret")
        merged = self.as_json("a", "db", "merge", "c.db", code=1)
        texts = {left["trial"]: left["text"] for left in merged["left"]}
        self.assertIn("not in the runs folder", texts[one])
        self.assertIn("found a link, expected a regular file", texts[two])
        self.assertNotIn(trial, texts)

    def test_a_sweep_with_another_definition_there_is_not_changed_here(self):
        self.machine("a", "--only", "seed=1")
        self.write_exchange_sweep(6)
        self.machine("b", "--only", "seed=6")
        merged = self.as_json("a", "db", "merge", "b.db", code=1)
        self.assertEqual(merged["trials"], 2)
        self.assertIn("sweep shared: 4 of its trials there are not in it here", merged["conflicts"][0]["text"])
        self.assertEqual(self.petlab("run", "sweep.yaml", "--only", "seed=6", "--db", "a.db", "--worker",
                                     "./worker.py").code, 0)
        self.assertEqual(self.query("SELECT count(*) AS n FROM attempts", "a.db"), [{"n": 4}])
        self.assertEqual(self.as_json("a", "db", "merge", "b.db")["conflicts"], [])


class Killed(ExchangeWorld):
    """Commands that are killed at calls that change something, and then repeated."""

    def comes_together(self, *words):
        self.survives(*words, look=lambda: (self.query(VALUES, "k.db"), self.artifacts("k")), fewest=50,
                      when_repeated=lambda: self.assertFalse((self.root / "k.runs/.incoming").exists()))

    def test_merge(self):
        self.write_exchange_sweep(2)
        self.machine("a", "--only", "seed=1,variant=small")
        self.machine("b", "--only", "seed=2,variant=small")
        self.on("b", "hide", self.trials("b", "seed = 2 AND module_bottleneck = 4")[0], "--why", "x")
        self.on("b", "hide", "--undo", self.trials("b", "seed = 2 AND module_bottleneck = 4")[0])
        self.comes_together("db", "merge", "b.db")

    def test_import_of_an_archive(self):
        self.write_exchange_sweep(2)
        self.machine("a", "--only", "seed=1,variant=small")
        self.machine("b", "--only", "seed=2,variant=small")
        self.on("b", "db", "export", "archive", "b.tar.gz")
        self.comes_together("db", "import", "b.tar.gz")

    def test_export(self):
        self.write_exchange_sweep(1)
        self.machine("a")
        self.on("a", "db", "export", "archive", "expected.tar.gz")
        wanted = (self.root / "expected.tar.gz").read_bytes()
        for at in range(1, 200):
            self.faults = f"kill program=petlab calls={CHANGING} path=*k.tar.gz* at={at} torn"
            done = self.petlab("db", "export", "archive", "k.tar.gz", "--db", "a.db")
            self.faults = ""
            if done.code == 0:
                break
            if (self.root / "k.tar.gz").exists():  # killed after the rename
                self.assertEqual((self.root / "k.tar.gz").read_bytes(), wanted)
                (self.root / "k.tar.gz").unlink()
        self.assertGreater(at, 3)
        self.assertEqual((self.root / "k.tar.gz").read_bytes(), wanted)
        self.assertEqual([path.name for path in self.root.glob("k.tar.gz*")], ["k.tar.gz"])


class Archive(ExchangeWorld):
    def test_an_archive_gives_the_same_tables_on_a_clean_machine(self):
        self.machine("a")
        trial = self.trials("a")[0]
        self.on("a", "discard", trial, "--why", "again")
        self.machine("a")
        self.on("a", "hide", self.trials("a")[1], "--why", "an outlier")
        done = self.as_json("a", "db", "export", "archive", "a.tar.gz")
        archive = (self.root / "a.tar.gz").read_bytes()
        self.assertEqual((done["trials"], done["attempts"], done["digest"]),
                         (8, 9, "sha256:" + hashlib.sha256(archive).hexdigest()))
        self.on("clean", "db", "import", "a.tar.gz")
        self.assertEqual(self.tables("clean"), self.tables("a"))
        self.on("clean", "db", "check")
        self.assertEqual(self.as_json("clean", "db", "import", "a.tar.gz")["trials"], 0)
        # The same contents give the same bytes on the other machine.
        self.on("clean", "db", "export", "archive", "b.tar.gz")
        self.assertEqual((self.root / "b.tar.gz").read_bytes(), archive)
        done = self.on("a", "db", "export", "archive", "a.tar.gz", code=2)
        self.assertEqual(done.err, "petlab: a.tar.gz: already exists; move it, or name "
                                   "another file\n")

    def test_artifacts_by_choice(self):
        self.machine("a", "--only", "seed=1")
        first = self.trials("a", "seed = 1")[0]
        self.on("a", "discard", first, "--why", "again")
        self.machine("a", "--only", "seed=1")
        count = {}
        for choice in ("none", "result", "all"):
            self.on("a", "db", "export", "archive", f"{choice}.tar.gz", "--artifacts", choice)
            with tarfile.open(self.root / f"{choice}.tar.gz") as archive:
                count[choice] = sum(name.endswith("artifact.petl") for name in archive.getnames())
        self.assertEqual(count, {"none": 0, "result": 2, "all": 3})
        self.on("c", "db", "import", "none.tar.gz")
        self.assertEqual(self.tables("c"), self.tables("a"))
        checked = self.as_json("c", "db", "check")
        self.assertEqual((checked["artifacts"], len(checked["notes"])), (0, 2))
        # An archive with artifacts adds the missing ones.
        self.assertEqual(self.as_json("c", "db", "import", "all.tar.gz")["files"], 3)
        self.assertEqual(self.as_json("c", "db", "check")["artifacts"], 3)

    def test_only_some_sweeps(self):
        self.machine("a", "--only", "seed=1")
        text = (self.root / "sweep.yaml").read_text()
        self.write("other.yaml", text.replace("sweep: shared", "sweep: other").replace("[1, 2, 3, 4]", "[9]"))
        self.assertEqual(self.petlab("run", "other.yaml", "--db", "a.db", "--worker", "./worker.py").code, 0)
        done = self.as_json("a", "db", "export", "archive", "a.tar.gz", "--sweep", "other")
        self.assertEqual((done["sweeps"], done["trials"]), (1, 2))
        self.on("c", "db", "import", "a.tar.gz")
        self.assertEqual(self.query("SELECT name FROM sweeps", "c.db"), [{"name": "other"}])
        done = self.on("a", "db", "export", "archive", "b.tar.gz", "--sweep", "othr", code=2)
        self.assertIn("sweep othr does not exist", done.err)

    def entries(self):
        with tarfile.open(self.root / "a.tar.gz") as archive:
            return [(member, archive.extractfile(member).read()) for member in archive.getmembers()]

    def rewritten(self, change, listed=None):
        """Writes an archive with entries changed by `change` and a list changed by `listed`."""
        entries = self.entries()
        entries = change(entries) or entries
        if listed:
            member, text = entries[0]
            document = json.loads(text)
            listed(document)
            entries[0] = (member, json.dumps(document).encode())
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
            for member, data in entries:
                member.pax_headers = {}
                if member.isreg():
                    member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        self.write("bad.tar.gz", out.getvalue())

    def refused(self, text):
        done = self.on("bad", "db", "import", "bad.tar.gz", code=1)
        self.assertIn(text, done.err)
        self.assertTrue(done.err.startswith("petlab: bad.tar.gz: "), done.err)
        self.assertEqual(done.err.count("\n"), 1)
        self.assertFalse((self.root / "bad.db").exists())
        self.assertEqual([path for path in (self.root / "bad.runs").rglob("*")
                          if ".locks" not in path.parts], [])

    def test_inconsistent_archives_are_refused_with_the_entry(self):
        self.machine("a", "--only", "seed=1,variant=small")
        self.on("a", "db", "export", "archive", "a.tar.gz")
        events = next(member.name for member, _ in self.entries() if member.name.endswith("events.jsonl"))

        def added(name, **fields):
            member = tarfile.TarInfo(name)
            for key, value in fields.items():
                setattr(member, key, value)
            return lambda entries: entries.append((member, b""))

        def other(document, **fields):
            for entry in document["files"]:
                if entry["name"] == events:
                    entry.update(fields)

        for change, listed, text in (
                (added("runs/../../evil"), None, "entry 'runs/../../evil': its name leads out of the archive"),
                (added("/etc/evil"), None, "entry '/etc/evil': its name leads out of the "
                                           "archive: it is an absolute path"),
                (added("runs/sweeps/link", type=tarfile.SYMTYPE, linkname="/etc/passwd"), None,
                 "entry 'runs/sweeps/link': it is a link, expected a file"),
                (added("runs/sweeps/link", type=tarfile.LNKTYPE, linkname=events), None,
                 "entry 'runs/sweeps/link': it is a link, expected a file"),
                (added("runs/sweeps/pipe", type=tarfile.FIFOTYPE), None,
                 "entry 'runs/sweeps/pipe': it is a folder or a device, expected a file"),
                (added("runs/sweeps/more.yaml"), None, "entry 'runs/sweeps/more.yaml': the archive's list does not contain it"),
                (added("runs/\x1b[31mred"), None, r"entry 'runs/\x1b[31mred': its name has a character"),
                (added("petlab.db"), None, "entry 'petlab.db': it is not a file of a runs folder"),
                (lambda all: all.append(all[1]), None, "it occurs twice"),
                (lambda all: all[:-1], None, "it is missing: the archive is truncated"),
                (lambda all: all[1:], None, "its first entry must be petlab-archive.json"),
                (lambda all: [(m, d.replace(b"test", b"tset")) for m, d in all[:1]] +
                             [(m, d.replace(b'"test"', b'"tset"')) for m, d in all[1:]], None,
                 f"entry '{events}': its content has digest sha256:"),
                (lambda all: None, lambda d: other(d, size=5), f"entry '{events}': it has "),
                (lambda all: None, lambda d: other(d, digest="sha256:" + "0" * 64),
                 f"entry '{events}': its content has digest"),
                (lambda all: None, lambda d: other(d, size=2**62), f"entry '{events}': it has {2**62} bytes of "),
                (lambda all: None, lambda d: other(d, size=-1), f"'{events}': its size or "
                                                                f"digest is invalid"),
                (lambda all: None, lambda d: other(d, name="runs/../x"), "'runs/../x': its name leads out"),
                (lambda all: None, lambda d: d.update(v=2), "v is 2, must be 1: made by a newer petlab"),
                (lambda all: None, lambda d: d.pop("files"), "petlab-archive.json: cannot be understood")):
            with self.subTest(text):
                self.rewritten(change, listed)
                self.refused(text)
        whole = (self.root / "a.tar.gz").read_bytes()
        for size in (0, 5, 100, len(whole) // 2, len(whole) * 3 // 4):
            with self.subTest(size=size):
                self.write("bad.tar.gz", whole[:size])
                self.refused("")
        self.write("bad.tar.gz", gzip.compress(gzip.decompress(whole)[:9000]))
        self.refused("is truncated or damaged")
        self.write("bad.tar.gz", gzip.compress(b"\0" * 1_000_000))
        self.refused("")
        # Unchanged, it is valid.
        self.rewritten(lambda all: None)
        self.on("bad", "db", "import", "bad.tar.gz")
        self.assertEqual(self.tables("bad"), self.tables("a"))


class Check(ExchangeWorld):
    def found(self, name="c", code=1):
        return {(one["kind"], one.get("trial")) for one in self.as_json(name, "db", "check", code=code)["findings"]}

    def changed(self, sql):
        with sqlite3.connect(self.root / "c.db") as database:
            database.execute(sql)
        database.close()

    def test_each_fault_is_reported_with_a_command_that_repairs_it(self):
        self.machine("a", "--only", "seed=1..2")
        first = self.trials("a", "seed = 1")[0]
        attempt = pathlib.Path(f"c.runs/{first}/1")
        self.assertEqual(self.found("a", code=0), set())
        mend_by_ingest = lambda: self.on("c", "db", "import")

        def anew():
            for file in self.root.glob("c.db*"):
                file.unlink()
            self.on("c", "db", "rebuild")

        def from_a_copy():
            self.on("c", "db", "import", "a.runs")

        def put(name):
            return lambda: shutil.copy(self.root / f"a.runs/{first}/1/{name}", self.root / attempt / name)

        def edited(name, old, new):
            file = self.root / attempt / name
            file.write_bytes(file.read_bytes().replace(old, new))

        for break_it, kind, mend in (
                (lambda: shutil.rmtree(self.root / attempt.parent), "no_folder", from_a_copy),
                (lambda: (self.root / attempt / "artifact.petl").unlink(), "no_artifact", from_a_copy),
                (lambda: edited("artifact.petl", b"PETL", b"PETL"[::1]) or
                 (self.root / attempt / "artifact.petl").write_bytes(
                     (self.root / attempt / "artifact.petl").read_bytes()[:-1] + b"\x01"),
                 "damaged_artifact", put("artifact.petl")),
                (lambda: edited("events.jsonl", b'"value": 0.1', b'"value": 0.2') or
                 edited("events.jsonl", b'"test"', b'"tset"'), "other_content", put("events.jsonl")),
                (lambda: self.changed("UPDATE metric_values SET value = value + 1"), "other_content", anew),
                (lambda: self.changed("DELETE FROM metric_values"), "other_content", anew),
                (lambda: self.changed("UPDATE example_texts SET text = replace(text, '20', '21')"), "other_content",
                 anew),
                (lambda: edited("events.jsonl", b'"test": 20', b'"test": 21'), "other_content",
                 put("events.jsonl")),
                (lambda: self.changed("UPDATE trials SET cancelled = 1"), "decisions", anew),
                (lambda: self.write(attempt / "trial.json", "{"), "unreadable_file", put("trial.json")),
                (lambda: (self.root / "c.runs/sweeps/shared.jsonl").unlink(), "sweep_without_file",
                 lambda: self.petlab("run", "sweep.yaml", "--only", "seed=1", "--db", "c.db", "--runs",
                                     "c.runs", "--worker", "./worker.py")),
                (lambda: self.write("c.runs/.incoming/x", ""), "left_behind", from_a_copy)):
            with self.subTest(kind):
                self.copy_machine("a", "c")
                break_it()
                found = self.found()
                self.assertIn(kind, {one for one, _ in found})
                if kind in ("no_folder", "no_artifact", "damaged_artifact", "unreadable_file"):
                    self.assertEqual({trial for _, trial in found} - {None}, {first} if kind != "unreadable_file"
                                     else set())
                mend()
                self.assertEqual(self.found(code=0), set())
        # An earlier petlab did not read them, and no result depends on them: no finding.
        self.copy_machine("a", "c")
        self.changed("DELETE FROM examples")
        checked = self.as_json("c", "db", "check")
        self.assertEqual(len(checked["notes"]), 1)
        self.assertRegex(checked["notes"][0], "^attempts without example counts .*: 4; .* petlab db rebuild ")
        anew()
        self.assertEqual(self.as_json("c", "db", "check")["notes"], [])
        # Events that the database has not read yet.
        self.copy_machine("a", "c")
        shutil.copytree(self.root / f"a.runs/{first}/1", self.root / f"c.runs/{first}/2")
        self.assertEqual(self.found(), {("not_in_database", first)})
        mend_by_ingest()
        self.assertEqual(self.found(code=0), set())
        shutil.rmtree(self.root / "c.runs")
        done = self.on("c", "db", "check", code=1)
        self.assertIn("no_runs_folder: the runs folder is missing", done.out)
        self.assertIn("fix: restore it", done.out)

    def test_files_from_elsewhere_are_verified_by_their_digests(self):
        self.machine("a", "--only", "seed=1,variant=small")
        self.on("c", "db", "import", "a.runs")
        trial = self.trials("c", "seed = 1 AND module_bottleneck = 4")[0]
        file = self.root / f"c.runs/{trial}/1/predictions/films.predicted.txt"
        file.write_text("other\n")
        self.assertEqual(self.found(), {("other_file", trial)})
        done = self.on("c", "db", "check", code=1)
        self.assertRegex(done.out, r"other_file: \w+ attempt 1: its content has digest sha256:\w+, its source had ")
        self.assertTrue(re.search(r"^  fix: restore it from its source \(a\.runs\)", done.out, re.M), done.out)

    def test_a_file_that_is_not_a_database(self):
        self.assertIn("the database does not exist", self.on("none", "db", "check", code=2).err)
        self.write("text.db", "no database at all, but long enough to be read as a header\n" * 9)
        done = self.petlab("db", "check", "--db", "text.db", "--runs", "x")
        self.assertEqual((done.code, done.err.count("\n")), (1, 1))


if __name__ == "__main__":
    tiny_world.main()
