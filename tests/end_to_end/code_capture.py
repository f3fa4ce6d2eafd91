#!/usr/bin/env python3
"""Tests what petlab records of the code of a worker: a script with packages in a git repository.

usage: code_capture.py FOLDER_OF_PROGRAMS
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import tiny_world
from tiny_world import SWEEP, TinyWorld

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python/src"
WORKER = """import petlab
import layers
import shapes


def train(trial):
    import lazy
    trial.progress(1, 1, loss=0.5)
    trial.metric("accuracy", layers.VALUE * lazy.ONE, split="test")
    trial.finish()


if __name__ == "__main__":
    petlab.Worker("coded", version="1", numerics="1").run(train)
"""
# Joined here, so that no scanner takes this file for one with keys.
KEY = "hf" + "_AbCdEfGhIjKlMnOpQrStUvWx12"
SECRET = "TOKEN_OF_ENV=" + "abcdef0123456789"


class CodeCapture(TinyWorld):
    variables = {"PYTHONPATH": f"{PACKAGE}:lib", "PYTHONDONTWRITEBYTECODE": "1",
                 "GIT_CONFIG_GLOBAL": os.devnull}

    def setUp(self):
        super().setUp()
        if not shutil.which("git"):
            self.skipTest("git is not installed")
        self.write("repo/worker.py", WORKER)
        self.write("repo/layers.py", "VALUE = 0.5\n")
        self.write("repo/notes.md", "first\n")
        self.write("repo/keys.py", "USER = 'me'\n")
        self.write("repo/.env", "NAME=x\n")
        self.install("shapes", "1.0")
        self.install("lazy", "3.1", "ONE = 1\n")
        self.git("init", "-q", "-b", "main")
        self.commit("first")
        self.write_trials(1)

    def install(self, name, version, text="SHAPES = ()\n"):
        """Installs a package with metadata into lib/, which is on sys.path."""
        for folder in (self.root / "lib").glob(f"{name}-*.dist-info"):
            shutil.rmtree(folder)
        self.write(f"lib/{name}/__init__.py", text)
        folder = f"lib/{name}-{version}.dist-info"
        self.write(f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        self.write(f"{folder}/top_level.txt", f"{name}\n")

    def git(self, *words):
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
            cwd=self.root / "repo", env=self.environment(), check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def write_trials(self, count):
        seeds = ", ".join(map(str, range(1, count + 1)))
        self.write("sweep.yaml", SWEEP + f"grid:\n  seed: [{seeds}]\n")

    def worker(self):
        return ["--worker", f"{sys.executable} repo/worker.py"]

    def run_trials(self, count, *words, code=0):
        self.write_trials(count)
        done = self.run_sweep(*self.worker(), *words, slots=1)
        self.assertEqual(done.code, code, done)
        return done

    def plan(self):
        done = self.petlab("plan", "sweep.yaml", "--json", *self.worker())
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)

    def changes(self):
        """How the code of each trial differs from now, by seed."""
        return {trial["config"]["seed"]: trial.get("code_changes") for trial in self.plan()["trials"]}

    def trial(self, seed):
        return self.query(f"SELECT trial_id FROM scores WHERE seed = {seed}")[0]["trial_id"]

    def code(self, seed, *words):
        done = self.petlab("show", self.trial(seed), "--code", "--json", *words)
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)

    def diff(self, seed):
        return self.petlab("show", self.trial(seed), "--diff")

    def records(self, runs="sweep.runs"):
        return sorted((self.root / runs / "sweeps").glob("*.code"))

    def test_a_record_has_the_command_the_repository_and_the_versions(self):
        self.run_trials(2)
        code = self.code(1)
        record = code["record"]
        self.assertEqual(record["command"], [sys.executable, "ROOT/repo/worker.py"])
        self.assertEqual([pathlib.Path(file["path"]).name for file in record["files"]], ["worker.py"])
        repository = record["repository"]
        self.assertEqual(repository["commit"], self.git("rev-parse", "HEAD"))
        self.assertEqual((repository["branch"], repository["clean"]), ("main", True))
        self.assertEqual(code["python"], sys.version.split()[0])
        self.assertEqual(code["packages"]["shapes"], "1.0")
        # Imported only by the training function.
        self.assertEqual(code["packages"]["lazy"], "3.1")
        self.assertIn("layers", code["modules"])
        self.assertEqual(record["environment"]["PYTHONPATH"], self.variables["PYTHONPATH"])
        self.assertNotIn("HOME", record["environment"])
        self.assertEqual(len(self.records()), 1)
        self.assertEqual(self.diff(1).err,
                         f"petlab: attempt 1 has no diff: commit {repository['commit']} was clean\n")
        shown = self.petlab("show", self.trial(1), "--code")
        for text in ("\n  commit", " on main, clean\n", "\nversions\n", "  shapes  ", "\nmodules\n"):
            self.assertIn(text, shown.out)
        self.assertEqual(self.changes(), {1: [], 2: []})
        self.assertEqual([note for note in self.plan()["notes"] if "other code" in note], [])

    def test_a_changed_script_package_and_file_are_each_reported(self):
        self.run_trials(1)
        self.write("repo/worker.py", WORKER.replace("loss=0.5", "loss=0.25"))
        done = self.run_trials(2)
        self.assertIn("1 of 1 trial ran other code than now: worker.py; reports mark", done.err)
        self.assertIn("-    trial.progress(1, 1, loss=0.5)\n+    trial.progress(1, 1, loss=0.25)\n",
                      self.diff(2).out)
        self.assertEqual(self.changes(), {1: ["worker.py"], 2: []})

        self.install("shapes", "2.0")
        self.run_trials(3)
        self.assertEqual(self.changes(), {1: ["worker.py", "shapes 2.0, was 1.0"],
                                          2: ["shapes 2.0, was 1.0"], 3: []})

        self.write("repo/layers.py", "VALUE = 0.75\n")
        self.run_trials(4)
        self.assertEqual(self.changes()[3], ["layers.py", "module layers"])
        self.assertIn("+VALUE = 0.75\n", self.diff(4).out)

        # A package that only the training function imports is known once a trial used it.
        self.install("lazy", "3.2", "ONE = 1\n")
        self.run_trials(5)
        done = self.petlab("diff", self.trial(4), self.trial(5), "--format", "csv")
        self.assertIn("\ncode.package.lazy,3.1,3.2\n", done.out)
        self.assertNotIn("code.package.shapes", done.out)
        done = self.petlab("diff", self.trial(1), self.trial(4), "--format", "csv")
        for name in ("code.file.worker.py", "code.clean", "code.changed.layers.py",
                     "code.module.layers", "code.package.shapes"):
            self.assertIn(f"\n{name},", done.out)

        note = [note for note in self.plan()["notes"] if "other code" in note]
        self.assertEqual(len(note), 1)
        begin, _, rest = note[0].partition(" than now: ")
        self.assertEqual(begin, "3 of 5 trials ran other code")
        listed, _, end = rest.partition(" (")
        self.assertEqual(end, "petlab show TRIAL --code); reports mark cells that mix them")
        self.assertEqual(sorted(listed.split("; ")),
                         ["layers.py", "module layers", "shapes 2.0, was 1.0", "worker.py"])
        plan = self.petlab("plan", "sweep.yaml", *self.worker()).out
        self.assertIn("finished in attempt 1; ran other code: layers.py; module layers\n", plan)
        report = json.loads(self.petlab("report", "sweep", "--format", "json").out)
        cell = report["sections"][0]["rows"][0]["cells"][0] if "sections" in report else report
        self.assertIn("mixed_code", json.dumps(cell))
        self.assertIn("shapes 1.0 | 2.0", json.dumps(report))
        table = self.petlab("report", "sweep")
        self.assertIn("¶ mixed code", table.out)

    def test_committing_what_ran_changes_nothing(self):
        self.write("repo/layers.py", "VALUE = 0.75\n")
        self.run_trials(1)
        self.commit("second")
        self.assertEqual(self.changes(), {1: []})
        # Neither does editing a sweep or report file in the repository.
        self.write("repo/other.yaml", "sweep: other\n")
        self.commit("third")
        self.write("repo/other.yaml", "sweep: other\nabout: x\n")
        self.assertEqual(self.changes(), {1: []})
        self.write("repo/notes.md", "second\n")
        before = self.code(1)["record"]["repository"]["commit"][:12]
        now = self.git("rev-parse", "HEAD")[:12]
        self.assertEqual(self.changes(), {1: ["layers.py", "notes.md", "other.yaml",
                                              f"commit {now}, was {before}"]})

    def test_secrets_are_not_captured(self):
        self.write("repo/.env", SECRET + "\n")
        self.write("repo/keys.py", f"USER = 'me'\nlogin('{KEY}')\n")
        self.write("repo/notes.md", "second\n")
        self.write("repo/untracked.py", "UNTRACKED = 1\n")
        self.write_trials(1)
        done = self.run_sweep("--worker", f"{sys.executable} repo/worker.py", slots=1)
        self.assertEqual(done.code, 0, done)
        diff = self.diff(1).out
        self.assertTrue(diff.startswith(
            "# .env: left out: files of this name may hold secrets\n"
            "# keys.py: left out: it has a line that looks like a secret\n"
            "diff --git a/notes.md b/notes.md\n"), diff)
        for file in (self.root / "sweep.runs").rglob("*"):
            if file.is_file():
                for secret in (KEY, SECRET, "UNTRACKED"):
                    self.assertNotIn(secret, file.read_text(errors="replace"), file)
        self.assertNotIn(KEY.encode(), (self.root / "sweep.db").read_bytes())
        # The rest can be applied.
        self.git("stash", "-q")
        subprocess.run(["git", "apply"], cwd=self.root / "repo", input=diff.encode(), check=True)
        self.assertEqual((self.root / "repo/notes.md").read_text(), "second\n")

    def test_a_secret_in_the_command_is_not_captured(self):
        self.write("repo/worker.py", WORKER.replace(".run(train)", ".run(train, sys.argv[3:])").replace(
            "import petlab\n", "import sys\nimport petlab\n"))
        self.write_trials(1)
        done = self.run_sweep("--worker", f"{sys.executable} repo/worker.py --api-key {KEY}", slots=1)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.code(1)["record"]["command"][2:],
                         ["--api-key", "(left out: looks like a secret)"])

    def test_strict_code_refuses_changes(self):
        self.run_trials(1, "--strict-code")
        self.run_trials(2, "--strict-code")
        self.write("repo/layers.py", "VALUE = 0.75\n")
        self.install("shapes", "2.0")
        done = self.run_trials(3, "--strict-code", code=2)
        self.assertEqual(done.err, (
            "petlab: --strict-code: 2 of 2 trials ran other code than now: layers.py; module layers; "
            "shapes 2.0, was 1.0\n"
            "nothing was started; restore the code, rerun these trials (petlab plan marks them; "
            "--rerun), or run without --strict-code\n"))
        self.assertEqual(self.query("SELECT count(*) AS n FROM attempts")[0]["n"], 2)
        self.run_trials(3, "--strict-code", "--rerun", "all")
        self.assertEqual(self.changes(), {1: [], 2: [], 3: []})

    def edit_while_training(self, *edit):
        """Makes the first trial change what the next worker process runs."""
        self.write("repo/edit.py", "import pathlib\n\ndef edit(seed):\n    if seed == 1:\n        "
                   + "\n        ".join(edit) + "\n")
        self.write("repo/worker.py", WORKER.replace("    import lazy\n", (
            "    import lazy, edit\n    edit.edit(trial.config.seed)\n")))
        self.commit("edits")

    def test_a_change_during_a_run_is_noticed(self):
        layers = self.root / "repo/layers.py"
        self.edit_while_training(f"pathlib.Path({str(layers)!r}).write_text('VALUE = 0.75\\n')")
        done = self.run_trials(3, "--fresh-workers")
        self.assertIn("the code changed: layers.py; results from here on are marked", done.err)
        self.assertEqual(self.changes(), {1: ["layers.py", "module layers"], 2: [], 3: []})
        self.git("checkout", "-q", ".")
        shutil.rmtree(self.root / "sweep.runs")
        (self.root / "sweep.db").unlink()
        done = self.run_trials(3, "--fresh-workers", "--strict-code", code=1)
        self.assertIn("--strict-code: the code changed: layers.py; restore it and run the same command",
                      done.err)
        states = [trial["state"] for trial in self.plan()["trials"]]
        self.assertEqual(states, ["done", "interrupted", "new"])

    def test_a_package_that_changes_during_a_strict_run_ends_it(self):
        lib = self.root / "lib"
        self.edit_while_training(
            f"old = pathlib.Path({str(lib)!r}) / 'lazy-3.1.dist-info'",
            "text = (old / 'METADATA').read_text().replace('3.1', '3.2')",
            "(old / 'METADATA').write_text(text)")
        # Imported at the start, too, so that the second worker reports it before it trains.
        self.write("repo/layers.py", "import lazy\nVALUE = 0.5\n")
        self.commit("imports lazy")
        done = self.run_trials(3, "--fresh-workers", "--strict-code", code=1)
        self.assertIn("--strict-code: the code changed: lazy 3.2, was 3.1; restore", done.err)
        self.assertLess(len(self.query("SELECT trial_id FROM scores")), 3)

    def test_a_rebuilt_database_gives_the_same_answers(self):
        self.run_trials(1)
        self.write("repo/notes.md", "second\n")
        self.run_trials(2)
        def answers(*words):
            return [self.petlab("show", self.trial(seed), what, *words).out
                    for seed in (1, 2) for what in ("--code", "--diff", "--json")]
        before = answers()
        changes = self.changes()
        (self.root / "sweep.db").unlink()
        done = self.petlab("db", "rebuild", "--db", "sweep.db", "--runs", "sweep.runs")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(answers(), before)
        self.assertEqual(self.changes(), changes)
        # An archive and a merge bring the records along.
        done = self.petlab("db", "export", "archive", "all.tgz")
        self.assertEqual(done.code, 0, done)
        done = self.petlab("db", "import", "all.tgz", "--db", "other.db")
        self.assertEqual(done.code, 0, done)
        self.assertEqual([file.name for file in self.records("other.runs")],
                         [file.name for file in self.records()])
        done = self.petlab("show", self.trial(2), "--diff", "--db", "other.db")
        self.assertIn("+second\n", done.out)

    def test_a_missing_or_damaged_record_is_named(self):
        self.run_trials(1)
        record = self.records()[0]
        record.write_text(record.read_text() + " ")
        done = self.petlab("show", self.trial(1), "--code")
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.err, r"ROOT/sweep.runs/sweeps/sha256-\w+\.code: its content has digest")
        record.unlink()
        done = self.petlab("show", self.trial(1), "--diff")
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.err, r"ROOT/sweep.runs/sweeps/sha256-\w+\.code: ")
        self.write("repo/notes.md", "second\n")
        self.assertEqual(self.changes(), {1: ["tracked files of the script's repository"]})

    def why_no_repository(self):
        record = self.code(1)["record"]
        self.assertNotIn("repository", record)
        return record["why_no_repository"].replace(str(self.root), "ROOT")

    def fake_git(self, script):
        file = self.write("bin/git", "#!/bin/sh\n" + script)
        file.chmod(0o755)
        self.variables = self.variables | {"PATH": f"{self.root}/bin:{os.environ['PATH']}"}

    def test_git_that_fails_or_hangs_stops_nothing(self):
        self.fake_git("echo \"fatal: detected dubious ownership in repository at '/x'\" >&2\nexit 128\n")
        self.run_trials(1)
        self.assertEqual(self.why_no_repository(), "git ended with exit code 128: fatal: detected "
                         "dubious ownership in repository at '/x'")

    def test_a_slow_git_is_given_up(self):
        self.fake_git("exec sleep 100\n")
        self.run_trials(1)
        self.assertEqual(self.why_no_repository(), "git did not answer within 10 s")

    def test_a_script_outside_of_a_repository_has_its_digest(self):
        shutil.rmtree(self.root / "repo/.git")
        self.run_trials(1)
        self.assertRegex(self.why_no_repository(), "^git ended with exit code 128: fatal: not a git")
        self.write("repo/worker.py", WORKER + "\n")
        self.assertEqual(self.changes(), {1: ["worker.py"]})

    def test_a_repository_without_a_commit_is_not_captured(self):
        shutil.rmtree(self.root / "repo/.git")
        self.git("init", "-q")
        self.run_trials(1)
        self.assertEqual(self.why_no_repository(), "ROOT/repo: the repository has no commit yet")

    def test_long_and_strange_diffs_are_cut_at_files(self):
        (self.root / "repo/a name with 'quotes' b").mkdir()
        strange = "repo/a name with 'quotes' b/é \".txt"
        self.write(strange, "old\n")
        self.write("repo/big.txt", "old\n")
        self.write("repo/latin.txt", b"caf\xe9\n")
        self.write("repo/gone.txt", "gone\n")
        os.symlink("big.txt", self.root / "repo/link")
        self.commit("files")
        self.write(strange, "new\n")
        self.write("repo/big.txt", "x" * 100 + "\n" + "many words here\n" * 100_000)
        self.write("repo/latin.txt", b"th\xe9 \x1b[31m\n")
        (self.root / "repo/gone.txt").unlink()
        (self.root / "repo/link").unlink()
        os.symlink("gone.txt", self.root / "repo/link")
        self.run_trials(1)
        repository = self.code(1)["record"]["repository"]
        self.assertEqual(repository["left_out"],
                         {"big.txt": "the whole diff has more than 1048576 bytes"})
        self.assertEqual(set(repository["changed"]), {"a name with 'quotes' b/é \".txt", "big.txt",
                                                      "latin.txt", "gone.txt", "link"})
        self.assertIn("-caf\\xe9\n+th\\xe9 \\x1b[31m\n", repository["diff"])
        self.assertIn("+gone.txt\n", repository["diff"])
        self.assertIn("\n-gone\n", repository["diff"])
        self.assertEqual(self.changes(), {1: []})

    def test_a_submodule_is_known_by_its_commit(self):
        subprocess.run(["git", "init", "-q", "sub"], cwd=self.root, check=True, capture_output=True)
        self.write("sub/a.txt", "a\n")
        words = ["git", "-C", str(self.root / "sub"), "-c", "user.name=t", "-c", "user.email=t@e.org"]
        subprocess.run([*words, "add", "a.txt"], check=True)
        subprocess.run([*words, "commit", "-q", "-m", "a"], check=True)
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(self.root / "sub"),
                 "part")
        self.commit("submodule")
        self.run_trials(1)
        self.write("repo/part/a.txt", "b\n")
        self.assertEqual(self.changes(), {1: ["part"]})
        self.run_trials(2)
        self.assertRegex(self.diff(2).out, r"\n\+Subproject commit \w+-dirty\n")

    def test_a_compiled_worker_is_known_by_its_digest(self):
        self.write_trials(1)
        worker = self.root / "worker"
        shutil.copy(tiny_world.PROGRAMS / "scripted-worker", worker)
        done = self.run_sweep("--worker", worker, slots=1)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.why_no_repository(), "the worker is a compiled program")
        with worker.open("ab") as file:
            file.write(b"rebuilt")
        plan = json.loads(self.petlab("plan", "sweep.yaml", "--json", "--worker", worker).out)
        self.assertEqual(plan["trials"][0]["code_changes"], ["worker"])


if __name__ == "__main__":
    tiny_world.main()
