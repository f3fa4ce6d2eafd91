#!/usr/bin/env python3
"""Tests questions without SQL about a scripted sweep, including invalid ones."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from scripted_world import WORKER, ScriptedWorld
from tiny_world import PROGRAMS, main


class Questions(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", """sweep: asked
base: {backbone: ./tiny, task: films.yaml, module.kind: adapter, user: {validate_every: 2}}
variants:
  small: {module.bottleneck: 8}
  large: {module.bottleneck: 64}
grid: {seed: [1, 2, 3]}
""")
        self.assertEqual(self.run_scripted().code, 0)

    def ask(self, *words, code=0):
        done = self.petlab(*words, "--db", "sweep.db")
        self.assertEqual(done.code, code, done)
        return done

    def test_means_equal_those_computed_by_sql(self):
        rows = json.loads(self.ask("results", "--format", "json").out)
        self.assertEqual([row["variant"] for row in rows], ["small", "large"])
        wanted = self.query("SELECT variant, avg(value) AS mean, count(*) AS n FROM sweep_results "
                            "WHERE split = 'test' GROUP BY 1 ORDER BY 1 DESC")
        for row, sql in zip(rows, wanted):
            self.assertAlmostEqual(row["score_mean"], sql["mean"], places=12)
            self.assertEqual(row["score_n"], sql["n"])
        for form in ("table", "markdown", "csv", "jsonl"):
            self.assertIn("small", self.ask("results", "--format", form).out)

    def test_show_prints_everything_about_a_trial(self):
        trial = self.query("SELECT trial_id FROM trials ORDER BY key LIMIT 1")[0]["trial_id"]
        shown = self.ask("show", trial).out
        for part in ("state", "done: finished in attempt 1", "asked as small", "module.bottleneck", "attempts",
                     "train films loss", "scripted"):
            self.assertIn(part, shown)
        whole = json.loads(self.ask("show", trial, "--json").out)
        self.assertEqual(whole["trial_id"], trial)
        self.assertEqual(whole["configuration"]["module"]["bottleneck"], 8)
        losses = [json.loads(line) for line in
                  self.ask("history", trial, "--metric", "loss", "--format", "jsonl").out.splitlines()]
        self.assertEqual([row["step"] for row in losses], [1, 2, 3, 4])
        self.assertEqual(self.ask("history", trial, code=2).err,
                         f"petlab: --metric is not given: trial {trial} has accuracy, loss, score\n")
        self.assertIn('did you mean "loss"',
                      self.ask("history", trial, "--metric", "lost", code=2).err)

    def test_diff_shows_the_fields_that_were_set(self):
        first, second = [row["trial_id"] for row in self.query(
            "SELECT trial_id FROM trials WHERE seed = 1 ORDER BY key")]
        rows = json.loads(self.ask("diff", first, second, "--format", "json").out)
        self.assertEqual([row for row in rows if row["field"] == "module.bottleneck"],
                         [{"field": "module.bottleneck", first: "8", second: "64"}])

    def test_the_best_and_a_comparison(self):
        rows = json.loads(self.ask("best", "--metric", "accuracy", "--format", "json").out)
        self.assertEqual(len(rows), 1)
        rows = json.loads(self.ask("compare", "small", "large", "--format", "json").out)
        self.assertEqual([(row["task"], row["pairs"], row["verdict"]) for row in rows],
                         [("films", 3, "equal in every pair")])

    def test_problems_are_reported_in_one_line(self):
        for words, wanted in [
                (["results", "--where", "variant=smal"],
                 "no trial has variant smal; did you mean small?"),
                (["results", "--by", "sed"], 'unknown field "sed"; did you mean "seed"?'),
                (["results", "--split", "tset"], 'unknown split "tset"; did you mean "test"?'),
                (["compare", "small", "larg"], "no trial has variant larg; did you mean large?"),
                (["best"], "it is not known whether more of score is better: say --highest or --lowest"),
                (["results", "--where", "variant='\xff\n"],
                 "--where: found a quote without a closing one, expected ' after it")]:
            if words == ["best"]:
                words = ["best", "--metric", "score", "--split", "test"]
            self.assertEqual(self.ask(*words, code=2).err, f"petlab: {wanted}\n")
        self.assertIn("trial zzzz is not in", self.ask("show", "zzzz", code=2).err)

    def test_the_page_lists_exactly_the_tables_and_views(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        page = (root / "docs/reference/database.md").read_text()
        there = {row["name"] for row in self.query(
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")}
        self.assertEqual({name for name in there if f"`{name}`" not in page}, set())
        tables = page.split("## The tables")[1].split("`attempts`: ")[0]
        named = [name for row in re.findall(r"^\| (`.*?) \|", tables, re.M)
                 for name in re.findall(r"`(\w+)`", row)]
        self.assertGreater(len(named), 20)
        self.assertEqual(set(named) - there, set())

    def test_an_empty_database_an_invalid_file_and_a_closed_pipe(self):
        self.write("nothing.yaml", "sweep: none\nbase: {backbone: ./tiny, task: films.yaml}\n")
        self.petlab("db", "import", "--db", "empty.db", "--runs", "none.runs")
        (self.root / "none.runs").mkdir(exist_ok=True)
        self.petlab("db", "import", "--db", "empty.db", "--runs", "none.runs")
        done = self.petlab("results", "--db", "empty.db")
        self.assertEqual((done.code, done.err), (0, ""), done)
        self.assertEqual(self.petlab("best", "--db", "empty.db").code, 2)
        self.write("text.db", "no database at all, but long enough to be read as a header\n" * 9)
        for word in ("results", "best"):
            done = self.petlab(word, "--db", "text.db")
            self.assertEqual(done.code, 1, done)
            self.assertEqual(done.err.count("\n"), 1)
        # Like any program, petlab ends by SIGPIPE without a reader. The reader is closed before petlab
        # starts because the pipe could hold all output.
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([PROGRAMS / "petlab", "results", "--db", self.root / "sweep.db"],
                              stdout=writer, stderr=subprocess.PIPE, env=self.environment())
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))

    def test_the_last_lines_of_a_log(self):
        trial = self.query("SELECT trial_id FROM trials LIMIT 1")[0]["trial_id"]
        log = self.root / f"sweep.runs/{trial}/1/log.txt"
        log.write_text("".join(f"line {number}\n" for number in range(100_000)) + "torn")
        for lines, wanted in [(1, "torn"), (3, "line 99998\nline 99999\ntorn"), (0, "")]:
            self.assertEqual(self.ask("logs", trial, "--tail", lines).out, wanted)
        self.assertEqual(self.ask("logs", trial, "--tail", 1_000_000).out, log.read_text())
        log.write_text("a\n\n")
        self.assertEqual(self.ask("logs", trial, "--tail", 1).out, "\n")

    def test_help_and_completion_list_every_command_and_word(self):
        self.assertIn("--where", self.petlab("help", "results").out)
        self.assertIn("training.learning_rate", self.petlab("help", "fields").out)
        for option in re.findall(r"--slurm-\w+|--detach", self.petlab("help", "run").out):
            self.assertIn(f"  {option} ", self.petlab("help", "slurm").out)
            self.assertIn(f"  {option} ".replace("-", "\\-"), self.petlab("help", "--man").out)
        self.assertIn("results", self.petlab("help").out)
        self.assertIn('did you mean "results"', self.petlab("help", "reslts").err)
        page = self.petlab("help", "--man").out
        self.assertTrue(page.startswith(".TH PETLAB 1"), page[:80])
        self.assertIn(".SH PETLAB results", page)

        def completed(*words):
            return self.petlab("completion", "--words", "--", *words).out.split()

        self.assertEqual(completed("resu"), ["results"])
        self.assertIn("--pivot", completed("results", "--pi"))
        self.assertEqual(completed("results", "--by", "variant,module_bo"),
                         ["variant,module_bottleneck"])
        self.assertEqual(completed("results", "--where", "task=cola and see"), ["task=cola", "and", "seed="])
        self.assertEqual(completed("results", "--db", "sweep.db", "--metric", "lo"), ["loss"])
        self.assertEqual(sorted(completed("compare", "--db", "sweep.db", "")), ["large", "small"])
        self.assertEqual(len(completed("show", "--db", "sweep.db", "")), 6)
        self.assertEqual(completed("zzz", "x"), [])
        for shell in ("bash", "zsh", "fish"):
            self.assertIn("petlab completion --words", self.petlab("completion", shell).out)
        self.write("completion.bash", self.petlab("completion", "bash").out)
        done = subprocess.run(
            ["bash", "-c", "source completion.bash; COMP_WORDS=(petlab hist); COMP_CWORD=1; _petlab; "
             'echo "${COMPREPLY[@]}"'], cwd=self.root, capture_output=True, text=True,
            env=self.environment() | {"PATH": f"{PROGRAMS}:/usr/bin:/bin"}, check=True)
        self.assertEqual(done.stdout, "history\n")

    def test_init_writes_a_sweep_for_this_machine(self):
        done = self.petlab("init", "first.yaml")
        self.assertEqual(done.code, 1, done)
        self.assertIn("petlab fetch backbone", done.err)
        home = self.root / "home/models/tiny"
        home.parent.mkdir(parents=True)
        shutil.copytree(self.root / "tiny", home)
        for part in ("train", "dev"):
            self.write(f"data/glue/CoLA/{part}.tsv", "gj04\t1\t\tA sentence.\n" * 8)
        done = self.petlab("init", "first.yaml")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(done.out, "first.yaml: 9 trials of tiny on cola; next: petlab plan first.yaml\n")
        plan = self.petlab("plan", "first.yaml", "--worker", WORKER)
        self.assertEqual(plan.code, 0, plan)
        text = (self.root / "first.yaml").read_text()
        # Every commented field is valid when uncommented.
        opened = re.sub(r"^  # ([a-z_.]+: )", r"  \1", text, flags=re.M)
        self.write("all.yaml", opened)
        plan = self.petlab("plan", "all.yaml", "--worker", WORKER)
        self.assertEqual(plan.code, 0, plan)
        again = self.petlab("init", "first.yaml")
        self.assertEqual((again.code, again.err),
                         (2, "petlab: first.yaml: already exists; name another file\n"))
        wrong = self.petlab("init", "other.yaml", "--task", "colla")
        self.assertEqual((wrong.code, wrong.err),
                         (2, 'petlab: unknown task "colla"; did you mean "cola"?\n'))
        wrong = self.petlab("init", "other.yaml", "--backbone", "./nowhere")
        self.assertEqual(wrong.code, 2, wrong)
        self.assertFalse((self.root / "other.yaml").exists())


if __name__ == "__main__":
    main()
