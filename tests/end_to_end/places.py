#!/usr/bin/env python3
"""Tests finding databases: commands without --db, sweep files instead of names, and former names.

usage: places.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator.
"""
import json
import os
import shutil
import subprocess

import tiny_world
from scripted_world import WORKER, ScriptedWorld
from tiny_world import PROGRAMS


class Places(ScriptedWorld):
    database = ""  # unset PETLAB_DB

    def setUp(self):
        super().setUp()
        self.write_sweep({}, {}, name="sweep.yaml")

    def type(self, line, code=0, folder="."):
        """Runs a command line as typed, with petlab on PATH."""
        environment = self.environment() | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", line], cwd=self.root / folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        done.stdout = done.stdout.replace(str(self.root), "ROOT")
        done.stderr = done.stderr.replace(str(self.root), "ROOT")
        self.assertEqual(done.returncode, code, (line, done.stdout, done.stderr))
        return done

    def second_sweep(self):
        text = (self.root / "sweep.yaml").read_text().replace("sweep: scripted", "sweep: second")
        self.write("second.yaml", text.replace("seed: 1", "seed: 7").replace("seed: 2", "seed: 8"))

    def test_a_path_from_a_sweep_file_to_a_report_needs_no_database_option(self):
        run = f"petlab run sweep.yaml --slots 2 --worker {WORKER} --quiet"
        self.assertIn("database: petlab.db\nruns: ROOT/petlab.runs\n", self.type("petlab plan sweep.yaml").stdout)
        self.assertFalse((self.root / "petlab.db").exists())
        self.type(run)
        self.assertEqual({path.name for path in self.root.glob("petlab.*")} - {"petlab.db-wal", "petlab.db-shm"},
                         {"petlab.db", "petlab.runs"})
        trial = self.type("petlab query 'SELECT trial_id FROM trials' --format csv").stdout.split()[1]
        (self.root / "deep/er").mkdir(parents=True)
        for folder in (".", "deep/er"):
            sweep = "sweep.yaml" if folder == "." else "../../sweep.yaml"
            for line in (f"petlab status {sweep}", f"petlab results {sweep}", "petlab results",
                         f"petlab best {sweep} --metric score --split test --highest", f"petlab show {trial}",
                         f"petlab logs {trial}", f"petlab history {trial} --metric score",
                         "petlab compare v1 v2", f"petlab note {trial} 'as expected'",
                         f"petlab tag --sweep {sweep} +paper", f"petlab hide {trial} --why odd",
                         f"petlab hide --undo {trial}", "petlab report sweep",
                         f"petlab report sweep --sweep {sweep} --out out", "petlab db check",
                         f"petlab db export tables --sweep {sweep}", "petlab db gc --dry-run",
                         "petlab db backup copy.db", f"petlab stop {sweep}"):
                with self.subTest(line, folder=folder):
                    done = self.type(line, folder=folder)
                    self.assertTrue(done.stdout + done.stderr)
                    self.assertNotIn("is now petlab", done.stderr)
            # From a folder below, everything is done, and no file is created.
            self.assertIn("2 done", self.type(f"petlab plan {sweep} --worker {WORKER}", folder=folder).stdout)
            self.type(run.replace("sweep.yaml", sweep), folder=folder)
        self.assertEqual(list((self.root / "deep").rglob("petlab.*")), [])
        self.assertTrue((self.root / "deep/er/out/sweep.html").is_file())

    def test_options_before_the_command_and_the_variable(self):
        self.type(f"petlab --db x.db run sweep.yaml --worker {WORKER} --quiet")
        self.assertTrue((self.root / "x.runs").is_dir())
        self.assertIn("v1", self.type("petlab --db x.db results").stdout)
        self.assertIn("v1", self.type("PETLAB_DB=x.db petlab results").stdout)
        self.assertIn("this folder has x.db", self.type("petlab results", code=2).stderr)
        self.assertIn("PETLAB_DB is y.db, which does not exist",
                      self.type("PETLAB_DB=y.db petlab results", code=2).stderr)

    def test_a_database_next_to_its_sweep_file_is_still_found(self):
        (self.root / "other").mkdir()
        self.type(f"petlab run sweep.yaml --db sweep.db --worker {WORKER} --quiet")
        note = "petlab: using {}, which is next to the sweep file\n"
        for line in ("plan", "status", "results", "stop"):
            self.assertIn(note.format("../sweep.db"), self.type(f"petlab {line} ../sweep.yaml", folder="other").stderr)
        for line in ("report sweep --sweep ../sweep.yaml", "note --sweep ../sweep.yaml 'from elsewhere'",
                     "db export tables --sweep ../sweep.yaml"):
            self.assertEqual(self.type(f"petlab {line}", folder="other").stderr, note.format("../sweep.db"))
        again = self.type(f"petlab run sweep.yaml --worker {WORKER} --quiet")
        self.assertEqual(again.stderr.count("using sweep.db, which is next to the sweep file"), 1)
        self.assertFalse((self.root / "petlab.db").exists())
        # Of two databases the one named after the sweep file is used, and both are mentioned.
        self.second_sweep()
        self.type(f"petlab run second.yaml --worker {WORKER} --quiet")
        done = self.type("petlab results sweep.yaml")
        self.assertEqual(done.stderr, "petlab: using sweep.db, which is next to the sweep file, instead of petlab.db; "
                                      "--db selects another\n")

    def test_a_sweep_file_limits_commands_to_its_sweep(self):
        self.second_sweep()
        for name in ("sweep", "second"):
            self.type(f"petlab run {name}.yaml --worker {WORKER} --quiet")

        def rows(line):
            return json.loads(self.type(f"petlab {line} --format json").stdout)

        self.assertEqual({row["seed"] for row in rows("results --by seed")}, {1, 2, 7, 8})
        self.assertEqual({row["seed"] for row in rows("results second.yaml --by seed")}, {7, 8})
        self.assertEqual({row["seed"] for row in rows("results second.yaml --where seed=7,1 --by seed")}, {7})
        for name, seeds in (("sweep", {1, 2}), ("second", {7, 8})):
            found = {row["seed"] for row in rows(f"best {name}.yaml --metric score --top 9 --split test --highest")}
            self.assertTrue(found <= seeds and found, found)
        status = json.loads(self.type("petlab status second.yaml --json").stdout)
        self.assertEqual([one["sweep"] for one in status["sweeps"]], ["second"])
        self.type("petlab note --sweep second.yaml 'only here'")
        self.assertIn("only here", self.type("petlab note --sweep second").stdout)
        self.assertNotIn("only here", self.type("petlab note --sweep scripted").stdout)

    def test_stop_with_a_sweep_file_leaves_other_sweeps_alone(self):
        self.write_sweep({"steps": 2000, "step_ms": 20, "checkpoint_every": 1})
        self.second_sweep()
        running = [self.start("run", f"{name}.yaml", "--slots", 1, "--worker", WORKER, "--quiet")
                   for name in ("sweep", "second")]
        count = "petlab query 'SELECT count(*) AS n FROM progress' --format json 2>/dev/null || echo '[{\"n\": 0}]'"
        self.until(lambda: json.loads(self.type(count).stdout)[0]["n"] == 2)
        self.assertEqual(self.type("petlab stop --now sweep.yaml").stdout.count("asked to"), 1)
        self.assertEqual(self.end(running[0]).code, 3)
        self.assertIsNone(running[1].poll())
        self.type("petlab stop --now")
        self.assertEqual(self.end(running[1]).code, 3)

    def test_former_names_work_and_mention_the_current_ones(self):
        self.type(f"petlab run sweep.yaml --worker {WORKER} --quiet")
        trial = self.type("petlab query 'SELECT trial_id FROM trials' --format csv").stdout.split()[1]
        shutil.copytree(self.root / "petlab.runs", self.root / "away.runs")
        for former, present in (("check", "db check"), ("gc --dry-run", "db gc --dry-run"),
                                ("ingest", "db import"), ("import away.runs", "db import away.runs"),
                                (f"explain {trial}", f"show {trial}")):
            with self.subTest(former):
                old, new = self.type(f"petlab {former}"), self.type(f"petlab {present}")
                self.assertEqual(old.stdout, new.stdout)
                name = former.split()[0]
                now = "show" if name == "explain" else " ".join(present.split()[:2])
                self.assertEqual(old.stderr, f"petlab: petlab {name} is now petlab {now}\n" + new.stderr)
        self.type(f"petlab hide {trial} --why odd")
        self.assertIn("petlab unhide is now petlab hide --undo\n", self.type(f"petlab unhide {trial}").stderr)
        for former, made in (("backup b.db", "b.db"), ("export tables", "tables/results.csv"),
                             ("export archive a.tar.gz", "a.tar.gz"),
                             ("ingest --rebuild --db r.db --runs petlab.runs", "r.db")):
            self.assertIn(" is now petlab db ", self.type(f"petlab {former}").stderr)
            self.assertTrue((self.root / made).exists(), former)
        self.assertIn("is now petlab db merge\n", self.type("petlab merge r.db --other-runs petlab.runs --db m.db",
                                                            ).stderr)
        # No list of commands has the former names.
        words = self.type("petlab completion --words -- ''").stdout.split()
        page = self.type("petlab help --man").stdout
        self.assertIn('.SS "Compare and report"\n.TP\n.B compare\n', page.replace(".SS Compare and report", '.SS "Compare and report"'))
        for former in ("explain", "unhide", "ingest", "check", "backup", "gc", "merge", "import", "export"):
            self.assertNotIn(former, words)
            self.assertNotIn(f".B {former}\n", page)
            self.assertNotRegex(self.type("petlab").stdout, rf"(?m)^  {former} ")
        self.assertIn(".SH PETLAB db check\n", page)
        self.assertEqual(self.type("petlab completion --words -- db che").stdout, "check\n")
        self.assertIn("--what", self.type("petlab completion --words -- db gc --").stdout.split())


if __name__ == "__main__":
    tiny_world.main()
