#!/usr/bin/env python3
"""Tests the effect of every option of every command, and every format, with a value other than its default.

usage: every_option.py FOLDER_OF_PROGRAMS

The program lists its commands, options and formats. One without a case fails.
"""
import csv
import io
import json
import pathlib
import re
import shutil
import subprocess

import tiny_world
from awkward_world import AwkwardWorld, checkpoint, finished, metric, progress

TESTS = pathlib.Path(__file__).resolve().parents[1]
SWEEP = """sweep: first
base: {backbone: ./tiny, task: films.yaml, module.kind: adapter, training.epochs: 7}
variants:
  small: {module.bottleneck: 8}
  large: {module.bottleneck: 16}
grid: {seed: [1, 2, 3]}
"""
SECOND = """sweep: second
base: {backbone: ./tiny, task: films.yaml, module.kind: adapter}
variants:
  bad: {module.bottleneck: 32, seed: 1}
"""

# Options with a case in another file. `petlab fetch` passes its arguments to another program, which needs a
# server: tests/end_to_end/fetching.py.
ELSEWHERE = {
    "run": {"--device": "orchestrator/gpu_run_test.cpp", "--pack": "orchestrator/gpu_run_test.cpp",
            "--gang": "end_to_end/gangs.py", "--trial-memory": "orchestrator/gpu_run_test.cpp", "--retry-delay": "end_to_end/fetching.py",
            "--time-limit": "orchestrator/run_test.cpp", "--no-progress-limit": "orchestrator/run_test.cpp",
            "--grace": "orchestrator/death_test.cpp", "--keep-going": "end_to_end/bad_inputs.py",
            "--nice": "orchestrator/fair_turns_test.cpp", "--slurm-poll": "end_to_end/slurm.py",
            "--slurm-idle": "end_to_end/slurm.py", "--slurm-setup": "end_to_end/slurm.py",
            "--slurm-exclusive": "end_to_end/slurm.py", "--detach": "end_to_end/slurm.py",
            "--on-event": "end_to_end/events.py",
            "--lease": "end_to_end/network_file_systems.py", "--resume-stopped": "end_to_end/early_stops.py"},
    "status": {"--watch": "end_to_end/live_view.py"},
    "retry": {"--declare-dead": "orchestrator/control_test.cpp", "--dead-host": "orchestrator/control_test.cpp"},
    "stop": {"--now": "orchestrator/control_test.cpp", "--db": "end_to_end/runs_folders.py",
             "--runs": "orchestrator/control_test.cpp"},
    "serve": {"--db": "end_to_end/serving.py", "--port": "end_to_end/serving.py", "--host": "end_to_end/serving.py",
              "--token": "end_to_end/serving.py"},
    "db merge": {"--other-runs": "end_to_end/exchange.py"},
    "fetch backbone": {option: "end_to_end/fetching.py"
                       for option in ("--revision", "--into", "--retries", "--retry-delay")},
    "fetch data": {option: "end_to_end/fetching.py" for option in ("--from", "--into", "--retries", "--retry-delay")},
    "quickstart": {"--in": "end_to_end/quickstart.py"},
    "help": {"--man": "end_to_end/questions.py", "--db": "end_to_end/own_catalog.py",
             "--worker": "end_to_end/own_catalog.py"},
    "completion": {"--words": "end_to_end/questions.py"},
    "schema": {"--output": "end_to_end/schema.py", "--worker": "end_to_end/own_catalog.py"},
    "score": {"--spm-model": "cli/score_sacrebleu_test.cpp"},
}
FIGURE_FORMATS = {"svg", "pdf", "png"}  # a separate program draws them: tests/reports/draw_test.cpp

COVERED = {}  # options with a case, by command


def covers(command, *options):
    COVERED.setdefault(command, set()).update(options)
    return lambda case: case


def lines(value, test=True, **more):
    events = [progress(1, 4, 0.5), metric("train", "loss", 1, 0.5),
              metric("validation", "accuracy", 1, 0.3), metric("validation", "accuracy", 4, value),
              metric("validation", "f1", 4, 1 - value), metric("validation", "accuracy", 4, 0.5, task="other")]
    return events + [metric("test", "accuracy", 4, value + 0.0625), finished(4, artifact="artifact.petl", **more)]


class EveryOption(AwkwardWorld):
    def make_world(self):
        self.write("sweep.yaml", SWEEP)
        self.write("second.yaml", SECOND)
        crash = [progress(1, 4, 0.5), metric("validation", "accuracy", 1, 0.25), checkpoint(1), {"exit": 1}]
        rules = [[{"module.bottleneck": bottleneck, "seed": seed}, [lines((bottleneck + seed * seed) / 100)]]
                 for bottleneck in (8, 16) for seed in (1, 2, 3)]
        rules[0][1].insert(0, crash)
        rules.append([{"module.bottleneck": 32}, [crash]])
        self.prescribe(*rules)
        self.run_prescribed()
        self.run_prescribed("--retries", 0, sweep="second.yaml", code=1)

    def setUp(self):
        super().setUp()
        rows = self.query("SELECT trial_id, seed, module_bottleneck AS size FROM trials")
        self.trials = {(row["size"], row["seed"]): row["trial_id"] for row in rows}
        self.first = self.trials[8, 1]
        self.bad = self.trials[32, 1]

    def differs(self, words, *options, code=0, db="sweep.db"):
        """Runs the command without and with the options and checks that the results differ."""
        with_db = ["--db", db] if db else []
        plain = self.petlab(*words, *with_db)
        done = self.petlab(*words, *options, *with_db)
        self.assertEqual(done.code, code, done)
        self.assertNotEqual((plain.code, plain.out, plain.err), (done.code, done.out, done.err), options)
        return plain, done

    def rows(self, *words, **options):
        return self.answer(*words, **options)

    def formats(self, command):
        """The formats listed in the command's help."""
        listed = re.search(r"--format \{([\w,]+)\}", self.petlab("help", *command.split()).out)
        self.assertTrue(listed, command)
        return listed[1].split(",")

    def copy_runs(self, name="other.runs"):
        shutil.copytree(self.root / "sweep.runs", self.root / name)
        return name

    def copy_database(self, name):
        self.ask("db", "backup", name)
        return name

    def test_each_command_option_and_format_has_a_case(self):
        def completed(*words):
            return self.petlab("completion", "--words", "--", *words).out.split()

        commands = [[command] for command in completed("")]
        self.assertGreater(len(commands), 25)
        for words in commands:  # adds subcommands of all levels
            commands += [[*words, inner] for inner in completed(*words, "") if inner in
                         re.findall(r"^  (\w+) ", self.petlab("help", *words).out.partition("Subcommands:")[2], re.M)]
        self.assertIn(["db", "export", "archive"], commands)
        missing = []
        for words in commands:
            command = " ".join(words)
            self.assertLessEqual(len(self.petlab("help", *words).out.splitlines()), 40, command)
            elsewhere = ELSEWHERE.get(command, {})
            listed = set(completed(*words, "--")) - {"--help"}
            for option in sorted(listed):
                if option in COVERED.get(command, ()):
                    self.assertNotIn(option, elsewhere, command)
                elif option not in elsewhere:
                    missing.append(f"{command} {option}")
                else:
                    self.assertRegex((TESTS / elsewhere[option]).read_text(), rf"{option}\b", command)
            # Cases of options that no longer exist must be removed.
            self.assertLessEqual(COVERED.get(command, set()) | set(elsewhere), listed, command)
        self.assertEqual(missing, [], "write a case in every_option.py, or name the file that has one")

    # Questions.

    @covers("results", "--where", "--by", "--pivot", "--metric", "--split", "--db", "--format", "--values", "--steps",
            "--show-question")
    def test_results(self):
        row = self.rows("results", "--where", "seed=1..2 and variant=small", "--split", "validation", "--metric", "f1")
        self.assertEqual([(one["variant"], one["f1_n"], one["f1_mean"]) for one in row],
                         [("small", 2, (1 - 0.09 + 1 - 0.12) / 2)])
        rows = self.rows("results", "--by", "seed")
        self.assertEqual([(row["seed"], row["accuracy_n"]) for row in rows], [(1, 2), (2, 2), (3, 2)])
        rows = self.rows("results", "--by", "variant", "--pivot", "seed")
        self.assertEqual(sorted(name for name in rows[0] if name.endswith("_n")),
                         [f"{seed} accuracy_n" for seed in (1, 2, 3)])
        self.assertEqual([set(row) & {"f1_mean", "accuracy_mean"} for row in self.rows("results")],
                         [{"accuracy_mean"}] * len(self.rows("results")))
        self.write("asked.yaml", self.ask("results", "--by", "seed", "--pivot", "variant", "--show-question").out)
        answered = json.loads(self.ask("report", "asked.yaml", "--format", "json").out)
        pivoted = self.rows("results", "--by", "seed", "--pivot", "variant")
        self.assertEqual([[cell["mean"] for cell in row["cells"]] for row in answered["rows"]],
                         [[row["small accuracy_mean"], row["large accuracy_mean"]] for row in pivoted])
        values = ["results", "--values", "--by", "seed", "--metric", "accuracy", "--where", "variant=small and seed=1"]
        self.assertEqual([(row["seed"], row["split"], row["metric"]) for row in self.rows(*values)],
                         [(1, "test", "accuracy")])
        every = self.rows(*values, "--split", "validation", "--steps", "all")
        self.assertEqual({row["split"] for row in every}, {"validation"})
        self.assertGreater(len(every), len(self.rows(*values, "--split", "validation")))
        self.check_formats("results", ["results", "--by", "seed"], "seed", ["1", "2", "3"])
        self.assertIn("missing.db", self.ask("results", db="missing.db", code=1).err)

    def check_formats(self, command, words, column, values):
        """Checks that every format has the same column."""
        formats = self.formats(command)
        self.assertGreaterEqual(len(formats), 4)
        for form in formats:
            text = self.ask(*words, "--format", form).out
            if form == "json":
                found = [row[column] for row in json.loads(text)]
            elif form == "jsonl":
                found = [json.loads(line)[column] for line in text.splitlines()]
            elif form == "csv":
                found = [row[column] for row in csv.DictReader(io.StringIO(text))]
            elif form == "markdown":
                table = [[cell.strip().replace("\\", "") for cell in line.strip("|").split("|")]
                         for line in text.splitlines() if line.startswith("|")]
                found = [row[table[0].index(column)] for row in table[2:]]
            else:
                self.assertEqual(form, "table", "a format without a case")
                table = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
                found = [row[table[0].index(column)] for row in table[2:2 + len(values)]]
            self.assertEqual([str(one) for one in found], values, form)

    @covers("best", "--where", "--metric", "--split", "--highest", "--lowest", "--top", "--db", "--runs", "--format", "--all-fields")
    def test_best(self):
        def trials(*words):
            return [row["trial_id"] for row in self.rows("best", *words) if row["task"] == "films"]

        best = ["--metric", "accuracy"]
        self.assertNotIn("selected_step", self.ask("best", *best).out)
        self.assertIn("selected_step", self.ask("best", *best, "--all-fields").out)
        self.assertEqual(trials(*best), [self.trials[16, 3]])
        self.assertEqual(trials(*best, "--top", 2), [self.trials[16, 3], self.trials[16, 2]])
        self.assertEqual(trials(*best, "--lowest"), [self.first])
        self.assertEqual(trials("--metric", "f1"), [self.first])
        self.assertEqual(trials("--metric", "loss", "--split", "train", "--highest", "--where", "seed=2"),
                         trials("--metric", "loss", "--split", "train", "--lowest", "--where", "seed=2"))
        self.assertEqual(trials("--metric", "f1", "--highest", "--where", "variant=large"), [self.trials[16, 1]])
        self.assertEqual(trials("--metric", "f1", "--lowest", "--where", "variant=large"), [self.trials[16, 3]])
        row = self.rows("best", *best, "--split", "test")[0]
        self.assertEqual((row["test"], "validation" in row), (0.25 + 0.0625, False))
        self.assertIn("/other.runs/", self.rows("best", *best, "--runs", self.copy_runs())[0]["artifact"])
        self.check_formats("best", ["best", *best, "--split", "test"], "seed", ["3"])

    @covers("compare", "--where", "--metric", "--split", "--confidence", "--db", "--format", "--rank", "--runs",
            "--show-question")
    def test_compare(self):
        words = ["compare", "small", "large"]
        row, = self.rows(*words)
        self.assertEqual((row["metric"], row["pairs"], row["baseline_mean"] > 0.1), ("accuracy", 3, True))
        self.assertEqual([row["pairs"] for row in self.rows(*words, "--where", "seed=2..3")], [2])
        self.write("asked.yaml", self.ask(*words, "--show-question").out)
        small, large = json.loads(self.ask("report", "asked.yaml", "--format", "json").out)["rows"]
        self.assertEqual([small["cells"][0]["mean"], large["cells"][0].get("comparison", {}).get("p")],
                         [row["baseline_mean"], row["p"]])
        rows = self.rows(*words, "--split", "validation", "--metric", "f1")
        self.assertEqual([(row["metric"], round(row["effect"], 12)) for row in rows], [("f1", -0.08)])
        self.vary_differences()
        intervals = [self.rows(*words, "--confidence", level, db="apart.db")[0] for level in (0.5, 0.95, 0.999)]
        widths = [row["interval_high"] - row["interval_low"] for row in intervals]
        self.assertLess(widths[0], widths[1])
        self.assertLess(widths[1], widths[2])
        self.assertEqual([row["verdict"] for row in intervals][::2], ["large is better", "no difference shown; needs about 7 more seeds"])
        self.assertEqual(self.rows(*words, "--runs", "elsewhere"), self.rows(*words))
        self.assertIn("expected at least 3", self.ask(*words, "--rank", code=2).err)
        self.check_formats("compare", words, "task", ["films"])

    def vary_differences(self):
        """Runs the sweep again with differences between variants that depend on the seed."""
        self.prescribe(*[[{"module.bottleneck": size, "seed": seed}, [lines(0.125 + (size - 8) * seed / 100)]]
                         for size in (8, 16) for seed in (1, 2, 3)])
        done = self.petlab("run", "sweep.yaml", "--worker", "./awkward.py", "--db", "apart.db", "--runs", "apart.runs")
        self.assertEqual(done.code, 0, done)

    @covers("show", "--json", "--code", "--diff", "--db", "--runs")
    def test_show(self):
        plain, done = self.differs(["show", self.first], "--json")
        self.assertIn("trial " + self.first, plain.out)
        shown = json.loads(done.out)
        self.assertEqual((shown["trial_id"], shown["folder"]), (self.first, f"ROOT/sweep.runs/{self.first}"))
        code = json.loads(self.ask("show", self.first, "--code", "--json").out)
        self.assertEqual([pathlib.Path(file["path"]).name for file in code["record"]["files"]], ["awkward.py"])
        self.assertIn("/awkward.py  sha256:", self.ask("show", self.first, "--code").out)
        done = self.ask("show", self.first, "--diff")
        self.assertEqual(done.out, "")
        self.assertIn("has no diff: git ended with exit code 128: fatal: not a git repository", done.err)
        shown = json.loads(self.ask("show", self.first, "--json", "--runs", self.copy_runs()).out)
        self.assertEqual(shown["artifact"]["file"], f"ROOT/other.runs/{self.first}/2/artifact.petl")

    @covers("diff", "--all", "--db", "--format")
    def test_diff(self):
        words = ["diff", self.trials[8, 2], self.trials[16, 2]]
        fields = [row["field"] for row in self.rows(*words)]
        everything = [row["field"] for row in self.rows(*words, "--all")]
        self.assertIn("module.bottleneck", fields)
        self.assertNotIn("seed", fields)
        self.assertLess({"seed", "training.epochs", *fields}, {*everything, "another"})
        self.check_formats("diff", words, "field", fields)

    @covers("history", "--metric", "--split", "--task", "--db", "--format")
    def test_history(self):
        def found(*words):
            return [(row["split"], row["task"], row["name"], row["step"])
                    for row in self.rows("history", self.trials[8, 2], *words)]

        self.assertEqual(found("--metric", "loss"), [("train", "films", "loss", 1)])
        self.assertEqual(found("--split", "test"), [("test", "films", "accuracy", 4)])
        self.assertEqual(found("--task", "other"), [("validation", "other", "accuracy", 4)])
        self.assertEqual(found("--metric", "accuracy", "--split", "validation", "--task", "films"),
                         [("validation", "films", "accuracy", step) for step in (1, 4)])
        self.check_formats("history", ["history", self.first, "--metric", "accuracy", "--split", "validation", "--task",
                                       "films"], "attempt", ["1", "2", "2"])

    @covers("query", "--db", "--format", "--limit", "--timeout")
    def test_query(self):
        self.check_formats("query", ["query", "SELECT DISTINCT seed, NULL AS n FROM trials ORDER BY 1"], "seed",
                           ["1", "2", "3"])
        self.assertEqual(len(self.rows("query", "SELECT 1 FROM trials", "--limit", 2)), 2)
        done = self.ask("query", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
                        "--timeout", "10ms", code=1)
        self.assertIn("--timeout", done.err)

    @covers("report", "--db", "--sweep", "--format", "--out", "--show", "--list", "--check", "--x", "--y", "--series",
            "--split", "--where", "--log-x", "--log-y", "--show-question")
    def test_report(self):
        self.assertIn("table5", self.petlab("report", "--list").out)
        self.write("own.yaml", "report: own\ntabel: {rows: [{each: variant}], columns: [{each: name}]}\n")
        self.assertIn("did you mean table?", self.petlab("report", "--check", "own.yaml").err)
        for sweep, variant, other in (("first", "small", "bad"), ("second", "bad", "small")):
            text = self.ask("report", "sweep", "--sweep", sweep).out
            self.assertIn(variant, text)
            self.assertNotIn(other, text)
        for shown in ("measured", "published", "difference"):
            self.differs(["report", "table5"], "--show", shown)

        curve = ["report", "curve", "--x", "module_bottleneck", "--y", "accuracy", "--sweep", "first"]
        self.write("asked.yaml", self.ask(*curve, "--show-question", "--where", "seed<3").out)
        self.assertEqual(self.ask("report", "asked.yaml", "--format", "csv").out,
                         self.ask(*curve, "--where", "seed<3", "--format", "csv").out)
        cells = list(csv.DictReader(io.StringIO(self.ask(*curve, "--format", "csv").out)))
        self.assertEqual({(row["group"], row["row"]) for row in cells},
                         {("small", "module_bottleneck 8"), ("large", "module_bottleneck 16")})
        self.assertNotIn("large", self.ask(*curve, "--where", "variant=small").out)
        self.assertIn("accuracy (validation)", self.ask(*curve, "--split", "validation", "--format", "csv").out)
        cells = list(csv.DictReader(io.StringIO(self.ask(*curve, "--series", "seed", "--format", "csv").out)))
        self.assertEqual({row["group"].removeprefix("seed ") for row in cells}, {"1", "2", "3"})
        scales = {}
        for options in ((), ("--log-x",), ("--log-y",)):
            specification = json.loads(self.ask(*curve, *options, "--format", "vega").out)
            scales[options] = re.findall(r'"(x|y)": \{[^{}]*"scale": \{[^{}]*"type": "log"', json.dumps(specification))
        self.assertEqual([set(found) for found in scales.values()], [set(), {"x"}, {"y"}])

    @covers("report", "--format", "--out")
    def test_report_formats(self):
        """A new format needs a line here."""
        refused = self.ask("report", "sweep", "--format", "nothing", code=2).err
        formats = re.search(r"one of ([\w, -]+)\n", refused)[1].split(", ")
        wanted = {
            "terminal": r" films accuracy\n─+", "markdown": r"\| ---", "csv": r"^(group,)?row,", "csv-long": r"^report,row,.*,ci_low,",
            "html": r"<!doctype html>", "json": r'"columns": \[', "latex": r"\\toprule", "vega": r"\$schema"}
        self.assertEqual(set(formats) - FIGURE_FORMATS, set(wanted))
        texts = {}
        for form, pattern in wanted.items():
            words = ["report", "sweep", "--sweep", "first"] if form != "vega" else \
                ["report", "curve", "--x", "seed", "--y", "accuracy", "--sweep", "first"]
            texts[form] = self.ask(*words, "--format", form).out
            self.assertRegex(texts[form], pattern, form)
            if form not in ("html", "vega"):
                for name in ("small", "large"):
                    self.assertIn(name, texts[form], form)
                # 100 times the mean test score of the large variant.
                self.assertRegex(texts[form], r"26\.9\d?|26\.916|0\.2691", form)
        self.assertEqual(len(set(texts.values())), len(texts))
        self.ask("report", "sweep", "--sweep", "first", "--out", "out", "--format", "csv", "--format", "json")
        self.assertEqual(sorted(path.name for path in (self.root / "out").iterdir()), ["sweep.csv", "sweep.json"])

    # Runs and plans.

    @covers("plan", "--db", "--runs", "--worker", "--set", "--json", "--retries", "--only", "--memory", "--device")
    def test_plan(self):
        def plan(*words, sweep="sweep.yaml", worker="./awkward.py", db="sweep.db", runs="sweep.runs"):
            done = self.petlab("plan", sweep, "--json", "--worker", worker, "--db", db, "--runs", runs, *words)
            self.assertEqual(done.code, 0, done)
            return json.loads(done.out)

        def states(found):
            return [one["state"] for one in found["trials"]]

        self.assertEqual(set(states(plan())), {"done"})
        self.assertEqual(set(states(plan(db="none.db", runs="none.runs"))), {"new"})
        self.assertIn("none.runs", self.petlab("plan", "sweep.yaml", "--worker", "./awkward.py", "--db", "none.db", "--runs",
                                               "none.runs").out)
        self.write("newer.py", (self.root / "awkward.py").read_text().replace('"numerics": "1"', '"numerics": "2"')).chmod(0o755)
        self.assertEqual(set(states(plan(worker="./newer.py"))), {"stale"})
        self.assertEqual(set(states(plan("--set", "training.epochs=9"))), {"new"})
        self.assertEqual(len(states(plan("--only", "seed=1"))), 2)
        self.assertEqual(states(plan(sweep="second.yaml")), ["failed"])
        self.assertEqual(states(plan("--retries", 3, sweep="second.yaml")), ["interrupted"])
        memory = ["plan", "sweep.yaml", "--worker", "./awkward.py"]
        plain, done = self.differs(memory, "--memory")
        self.assertIn("MiB", done.out)
        self.assertNotEqual(done.out, self.ask(*memory, "--memory", "--device", "gpu").out)

    @covers("run", "--db", "--runs", "--worker", "--set", "--only", "--slots", "--threads", "--retries", "--rerun",
            "--fresh-workers", "--strict-code", "--quiet", "--json")
    def test_run(self):
        def run(*words, code=0, sweep="sweep.yaml"):
            done = self.petlab("run", sweep, "--retry-delay", "10ms", "--worker", "./awkward.py", "--db", "new.db", "--runs",
                               "new.runs", *words)
            self.assertEqual(done.code, code, done)
            return done

        def trial_files():
            return [json.loads(path.read_text()) for path in sorted(self.root.glob("new.runs/*/*/trial.json"))]

        run("--only", "seed=1", "--threads", 3, "--slots", 1, "--set", "training.epochs=9")
        files = trial_files()
        self.assertEqual({one["threads"] for one in files}, {3})
        self.assertEqual({one["config"]["training"]["epochs"] for one in files}, {9})
        self.assertEqual({(one["config"]["seed"], one["config"]["module"]["bottleneck"]) for one in files}, {(1, 8), (1, 16)})
        # With one slot all trials have one device. With --fresh-workers each has another worker.
        pids = "SELECT count(DISTINCT worker_pid) AS pids, count(DISTINCT device) AS devices FROM attempts"
        self.assertEqual(self.query(pids, "new.db")[0]["devices"], 1)
        run("--only", "seed=2..3", "--fresh-workers", "--slots", 1)
        rows = self.query("SELECT count(DISTINCT pid) AS pids FROM attempts JOIN trials ON trials.key = trial WHERE "
                          "seed > 1", "new.db")
        self.assertEqual(rows, [{"pids": 4}])
        self.assertEqual({one["threads"] for one in trial_files() if one["config"]["seed"] > 1}, {1})
        lines = [json.loads(line) for line in run("--only", "seed=2", "--rerun", "all", "--json").out.splitlines()]
        self.assertLessEqual({"status", "trial_over", "end"}, {one["event"] for one in lines})
        self.assertEqual((lines[-1]["event"], lines[-1]["trained"]), ("end", 2))
        counted = self.query("SELECT seed, count(*) AS n FROM attempts JOIN trials ON trials.key = trial WHERE seed > 1 "
                             "GROUP BY 1", "new.db")
        self.assertEqual(counted, [{"seed": 2, "n": 4}, {"seed": 3, "n": 2}])
        for quiet in ([], ["--quiet"]):
            self.assertEqual("6 of 6" in run(*quiet).err, not quiet)
        run("--retries", 0, sweep="second.yaml", code=1)
        run("--retries", 2, sweep="second.yaml", code=1)
        outcomes = self.query("SELECT count(*) AS n FROM attempts WHERE sweep = 'second'", "new.db")
        self.assertEqual(outcomes, [{"n": 3}])
        script = (self.root / "awkward.py").read_text()
        run("--strict-code")
        self.write("awkward.py", script + "\n")
        self.assertIn("--strict-code: 6 of 6 trials ran other code than now: awkward.py\n",
                      run("--strict-code", code=2).err)
        self.assertIn("6 of 6 trials ran other code than now: awkward.py;", run().err)

    @covers("run", "--launcher", "--slurm-partition", "--slurm-account", "--slurm-gpus", "--slurm-time", "--slurm-arg")
    def test_run_in_slurm(self):
        """Replaces Slurm's programs by scripts. sbatch records its arguments and fails."""
        for name in ("squeue", "scancel", "sacct", "scontrol"):
            self.write(f"bin/{name}", "#!/bin/sh\n").chmod(0o755)
        self.write("bin/sbatch", f"#!/bin/sh\necho \"$*\" >> {self.root}/words\necho no such partition >&2\nexit 1\n"
                   ).chmod(0o755)
        self.variables = {"PATH": f"{self.root}/bin:/usr/bin:/bin"}

        def words(*options):
            done = self.petlab("run", "sweep.yaml", "--launcher", "slurm", "--slurm-poll", "100ms", "--worker", "./awkward.py",
                               "--db", "slurm.db", *options)
            self.assertEqual(done.code, 1, done)
            self.assertIn("no such partition", done.err)
            return (self.root / "words").read_text().splitlines()[-1].split()

        options = {("--slurm-partition", "long"): "--partition=long", ("--slurm-account", "lab"): "--account=lab",
                   ("--slurm-gpus", "a100:2"): "--gres=gpu:a100:2", ("--slurm-time", "2-00:00:00"): "--time=2-00:00:00",
                   ("--slurm-arg=--mem=8G",): "--mem=8G", ("--threads", 5): "--cpus-per-task=5"}
        plain = words()
        passed = words(*(word for option in options for word in option))
        for word in options.values():
            self.assertNotIn(word, plain)
            self.assertIn(word, passed)

    @covers("status", "--db", "--runs", "--worker", "--retries", "--json")
    @covers("show", "--worker", "--retries")
    def test_status_and_states(self):
        self.write("newer.py", (self.root / "awkward.py").read_text().replace('"numerics": "1"', '"numerics": "2"')).chmod(0o755)

        def status(*words):
            found = json.loads(self.ask("status", "--json", *words).out)
            return {one["sweep"]: one["states"] for one in found["sweeps"]}, found

        self.assertEqual(status()[0], {"first": {"done": 6}, "second": {"failed": 1}})
        self.assertEqual(status("--retries", 4)[0]["second"], {"interrupted": 1})
        self.assertEqual(status("--worker", "./newer.py")[0]["first"], {"stale": 6})
        self.assertEqual(status("--runs", self.copy_runs())[1]["runs"], "ROOT/other.runs")
        self.assertIn("failed", self.ask("status").out)
        self.assertRegex(self.ask("show", self.bad).out, "state +failed: ")
        self.assertRegex(self.ask("show", self.bad, "--retries", 4).out, "state +interrupted: ")
        shown = json.loads(self.ask("show", self.first, "--json", "--worker", "./newer.py").out)
        self.assertEqual(shown["state"], "stale")
        self.assertIn("  ROOT/other.runs/", self.ask("show", self.first, "--runs", "other.runs").out)

    @covers("logs", "--follow", "--tail", "--attempt", "--db", "--runs")
    def test_logs(self):
        for number, text in ((1, "one\ntwo\n"), (2, "three\nfour\n")):
            self.write(f"sweep.runs/{self.first}/{number}/log.txt", text)
        self.assertEqual(self.ask("logs", self.first).out, "three\nfour\n")
        self.assertEqual(self.ask("logs", self.first, "--tail", 1).out, "four\n")
        self.assertEqual(self.ask("logs", self.first, "--attempt", 1).out, "one\ntwo\n")
        self.assertEqual(self.ask("logs", self.first, "--runs", self.copy_runs(), "--tail", 1).out, "four\n")
        self.write(f"other.runs/{self.first}/2/log.txt", "elsewhere\n")
        self.assertEqual(self.ask("logs", self.first, "--runs", "other.runs").out, "elsewhere\n")

        # --follow prints new lines until the attempt is over.
        gate = self.root / "gate"
        self.write("slow.yaml", SWEEP.replace("sweep: first", "sweep: slow").replace("[1, 2, 3]", "[1]").replace(
            "  large: {module.bottleneck: 16}\n", "").replace("training.epochs: 7", f"user.gate: {gate}"))
        run = self.start("run", "slow.yaml", "--worker", str(tiny_world.PROGRAMS / "scripted-worker"), "--db", "slow.db",
                         "--runs", "slow.runs")
        attempt = self.until(lambda: next(iter(self.root.glob("slow.runs/*/1/events.jsonl")), None)).parent
        log = attempt / "log.txt"
        log.write_text("before\n")
        follow = self.start("logs", log.parts[-3], "--follow", "--db", "slow.db")
        self.assertEqual(follow.stdout.readline(), b"before\n")
        with open(log, "a") as file:
            file.write("after\n")
        self.assertEqual(follow.stdout.readline(), b"after\n")
        self.assertIsNone(follow.poll())
        gate.touch()
        self.assertEqual(self.end(run).code, 0)
        self.assertEqual(self.end(follow).code, 0)

    # Decisions.

    @covers("cancel", "--db", "--runs")
    @covers("retry", "--db", "--runs")
    @covers("discard", "--db", "--runs", "--why")
    @covers("hide", "--db", "--runs", "--why", "--undo")
    def test_decisions(self):
        self.copy_runs()
        self.copy_database("other.db")
        words = {"cancel": self.bad, "retry": self.bad, "discard": self.first, "hide": self.first, "unhide": self.first}
        for command, trial in words.items():
            why = ["--why", f"{command} it"] if command in ("discard", "hide") else []
            typed = ["hide", "--undo"] if command == "unhide" else [command]
            done = self.petlab(*typed, trial, *why, "--db", "other.db", "--runs", "other.runs")
            self.assertEqual(done.code, 0, done)
            record = (self.root / "other.runs" / trial / "decisions.jsonl").read_text().splitlines()[-1]
            self.assertIn(command, record)
            self.assertEqual(f"{command} it" in record, bool(why), record)
            if command == "hide":
                self.assertEqual(json.loads(self.ask("show", trial, "--json", db="other.db").out)["hidden"]["why"],
                                 "hide it")
        shown = json.loads(self.ask("show", self.first, "--json", db="other.db").out)
        self.assertIsNone(shown["hidden"])
        self.assertEqual([(one["discarded"], one["why"]) for one in shown["renewals"]], [(True, "discard it")])
        self.assertEqual(list(self.root.glob("sweep.runs/*/decisions.jsonl")), [])
        self.assertEqual(json.loads(self.ask("show", self.first, "--json").out)["renewals"], [])

    @covers("tag", "--add", "--remove", "--sweep", "--db", "--runs", "--json")
    @covers("note", "--sweep", "--db", "--runs", "--json")
    def test_tags_and_notes(self):
        other = ["--runs", self.copy_runs()]
        self.copy_database("other.db")
        self.ask("tag", self.first, "--add", "good", "--add", "odd", *other, db="other.db")
        self.ask("tag", self.first, "--remove", "odd", *other, db="other.db")
        self.ask("tag", "--sweep", "first", "--add", "paper", *other, db="other.db")
        shown = json.loads(self.ask("show", self.first, "--json", db="other.db").out)
        self.assertEqual((shown["tags"], shown["sweep_tags"]), (["good"], {"first": ["paper"]}))
        self.assertTrue((self.root / "other.runs" / self.first / "remarks.jsonl").exists())
        self.assertFalse((self.root / "sweep.runs" / self.first / "remarks.jsonl").exists())
        plain, done = self.differs(["tag"], "--json", db="other.db")
        self.assertIn("paper", json.dumps(json.loads(done.out)))
        self.assertIn("paper", plain.out)
        self.ask("note", self.first, "a note", *other, db="other.db")
        self.ask("note", "--sweep", "first", "of the sweep", *other, db="other.db")
        plain, done = self.differs(["note", self.first], "--json", db="other.db")
        self.assertIn("a note", json.dumps(json.loads(done.out)))
        self.assertNotIn("of the sweep", plain.out)
        self.assertIn("of the sweep", self.ask("note", "--sweep", "first", db="other.db").out)
        self.assertNotIn("a note", self.ask("note", self.first).out)

    # Exchange.

    @covers("db rebuild", "--db", "--runs")
    @covers("db backup", "--db")
    @covers("db update", "--db")
    @covers("db check", "--json", "--db", "--runs")
    def test_rebuild_backup_and_check(self):
        values = "SELECT trial_id, seq, value FROM results ORDER BY 1, 2"
        self.ask("db", "rebuild", "--runs", "sweep.runs", db="rebuilt.db")
        self.assertEqual(self.query(values, "rebuilt.db"), self.query(values))
        self.copy_database("copy.db")
        self.assertEqual(self.query(values, "copy.db"), self.query(values))
        # --runs selects the folder from which a later attempt is read.
        self.copy_runs()
        self.run_prescribed("--rerun", "all")
        (self.root / "late.runs").mkdir()
        self.ask("db", "import", "--runs", "sweep.runs", db="copy.db")
        counted = "SELECT count(*) AS n FROM attempts"
        self.assertEqual(self.query(counted, "copy.db"), self.query(counted))
        self.assertRegex(self.ask("db", "update", db="copy.db").out, r"^copy\.db: version \d+\n$")

        plain, done = self.differs(["db", "check", "--runs", "sweep.runs"], "--json")
        self.assertEqual(plain.code, 0, plain)
        json.loads(done.out)
        (self.root / "other.runs" / self.first / "2" / "events.jsonl").unlink()
        done = self.petlab("db", "check", "--db", "sweep.db", "--runs", "other.runs", "--json")
        self.assertEqual(done.code, 1, done)
        self.assertIn(self.first, done.out)

    @covers("db gc", "--dry-run", "--what", "--json", "--db", "--runs")
    def test_gc(self):
        self.copy_runs()
        self.copy_database("other.db")
        other = ["--db", "other.db", "--runs", "other.runs"]
        found = self.petlab("db", "gc", "--dry-run", *other)
        self.assertEqual(found.code, 0, found)
        with_json = json.loads(self.petlab("db", "gc", "--dry-run", "--json", *other).out)
        self.assertEqual((with_json["dry_run"], {row["kind"] for row in with_json["garbage"]}), (True, {"checkpoint"}))
        self.assertEqual(json.loads(self.petlab("db", "gc", "--json", "--what", "leftovers", *other).out)["garbage"], [])
        kept = len(list(self.root.glob("other.runs/*/*/checkpoint/*")))
        done = json.loads(self.petlab("db", "gc", "--json", "--what", "checkpoints", *other).out)
        self.assertEqual(len(done["garbage"]), len(with_json["garbage"]))
        self.assertLess(len(list(self.root.glob("other.runs/*/*/checkpoint/*"))), kept)
        self.assertEqual(len(list(self.root.glob("sweep.runs/*/*/checkpoint/*"))), kept)

    @covers("db export", "--format", "--tensorboard", "--mlflow", "--trackio", "--wandb-offline", "--sweep", "--json", "--db", "--runs")
    @covers("db export archive", "--sweep", "--artifacts", "--checkpoints", "--json", "--db", "--runs")
    @covers("db import", "--json", "--db", "--runs")
    @covers("db merge", "--json", "--db", "--runs")
    def test_export_import_and_merge(self):
        for form in self.formats("db export"):
            self.ask("db", "export", f"out-{form}", "--format", form)
            names = {path.suffix for path in (self.root / f"out-{form}").iterdir()}
            self.assertEqual(names, {"." + form})
        rows = json.loads((self.root / "out-json/results.json").read_text())
        self.ask("db", "export", "second", "--sweep", "second", "--format", "json")
        self.assertEqual(json.loads((self.root / "second/results.json").read_text()), [])
        self.assertEqual({row["sweep"] for row in rows}, {"first"})
        exported = json.loads(self.ask("db", "export", "as-json", "--json").out)
        self.assertEqual({one["rows"] for one in exported["tables"][:1]}, {len(rows)})
        self.ask("db", "export", "--tensorboard", "tb", "--sweep", "first")
        self.assertEqual([path.name for path in (self.root / "tb").iterdir()], ["first"])
        self.ask("db", "export", "--mlflow", "mlruns", "--trackio", "trackio", "--wandb-offline", "wandb",
                 "--sweep", "first")
        trials = {path.read_text() for path in self.root.glob("mlruns/*/*/tags/petlab.trial")}
        self.assertIn(self.first, trials)
        self.assertEqual([path.name for path in (self.root / "trackio").iterdir()], ["first.db"])
        self.assertEqual(len(list(self.root.glob("wandb/offline-run-*/run-*.wandb"))), len(trials))
        self.copy_runs()
        shutil.rmtree(self.root / "other.runs" / self.first)
        done = self.ask("db", "export", "--tensorboard", "tb2", "--runs", "other.runs")
        self.assertRegex(done.err, r"\b1 run\b.*events\.jsonl")

        def archive(name, *words):
            done = self.ask("db", "export", "archive", name, *words)
            listed = subprocess.run(["tar", "tf", self.root / name], capture_output=True, text=True, check=True)
            return done, listed.stdout.split()

        plain, files = archive("a.tar.gz")
        self.assertIn(f"runs/{self.first}/2/artifact.petl", " ".join(files))
        self.assertFalse([file for file in files if "/checkpoint/" in file])
        self.assertFalse([file for file in archive("b.tar.gz", "--artifacts", "none")[1] if "artifact.petl" in file])
        self.assertTrue([file for file in archive("c.tar.gz", "--checkpoints")[1] if "/checkpoint/" in file])
        self.assertFalse([file for file in archive("d.tar.gz", "--sweep", "second")[1] if self.first in file])
        done, files = archive("e.tar.gz", "--json", "--runs", "sweep.runs")
        self.assertTrue(json.loads(done.out))
        self.assertNotEqual(done.out, plain.out)
        done = self.petlab("db", "import", "a.tar.gz", "--json", "--db", "new.db", "--runs", "new.runs")
        self.assertEqual(done.code, 0, done)
        json.loads(done.out)
        self.assertTrue((self.root / "new.runs" / self.first / "2" / "artifact.petl").exists())
        values = "SELECT trial_id, seq, value FROM results ORDER BY 1, 2"
        self.assertEqual(self.query(values, "new.db"), self.query(values))
        self.vary_differences()
        done = self.petlab("db", "merge", "new.db", "--json", "--db", "apart.db", "--runs", "apart.runs")
        json.loads(done.out)
        self.assertTrue((self.root / "apart.runs" / self.bad).exists())

    @covers("results", "--json")
    @covers("best", "--json")
    @covers("compare", "--json")
    @covers("diff", "--json")
    @covers("history", "--json")
    @covers("query", "--json")
    @covers("report", "--json")
    def test_json_is_short_for_format_json_among_many(self):
        for words in (["results"], ["best", "--metric", "f1"], ["compare", "small", "large"], ["diff", self.first, self.trials[8, 2]],
                      ["history", self.first], ["query", "SELECT seed FROM trials ORDER BY seed"],
                      ["report", "sweep", "--sweep", "first"]):
            with self.subTest(words):
                long = self.ask(*words, "--format", "json")
                json.loads(long.out)
                self.assertEqual(self.ask(*words, "--json").out, long.out)
                self.assertEqual(self.petlab(*words, "--json", "--format", "csv").code, 2)

    @covers("plan", "--format")
    @covers("run", "--format")
    @covers("show", "--format")
    @covers("status", "--format")
    @covers("tag", "--format")
    @covers("note", "--format")
    @covers("storage", "--format")
    @covers("doctor", "--format")
    @covers("db check", "--format")
    @covers("db gc", "--format")
    @covers("db merge", "--format")
    @covers("db import", "--format")
    @covers("db export archive", "--format")
    def test_json_is_short_for_format_json(self):
        self.copy_database("other.db")
        for words in (["plan", "sweep.yaml"], ["run", "sweep.yaml", "--worker", "./awkward.py"], ["status", "sweep.yaml"], ["show", self.first], ["tag", self.first],
                      ["note", self.first], ["storage", "--kind", "adapter", "--bottleneck", "8", "--backbone", "./tiny"],
                      ["doctor"], ["db", "check"], ["db", "gc", "--dry-run"],
                      ["db", "merge", "other.db", "--other-runs", self.copy_runs()], ["db", "import"],
                      ["db", "export", "archive", "{}.tar.gz"]):
            with self.subTest(words):
                command = " ".join(words[:1 if words[0] != "db" else 3 if words[1] == "export" else 2])
                table, short = ("table", "jsonl" if command == "run" else "json")
                if command != "run":  # whose help has no line to spare for --format
                    self.assertEqual(self.formats(command), [table, short])
                self.assertEqual(self.petlab("completion", "--words", "--", *command.split(), "--format", "").out.split(),
                                 sorted([table, short]))

                def answer(name, *options):
                    done = self.petlab(*[word.format(name) for word in words], *options)
                    return re.sub(rf"\b{name}\b", "NAME", re.sub(r'"time":[\d.]+|\d+\.\d+', "", done.out))

                plain, long, flag, people = (answer("one"), answer("two", "--format", short), answer("three", "--json"),
                                             answer("four", "--format", table))
                self.assertEqual(long, flag)
                self.assertEqual(plain, people)
                self.assertNotEqual(long, plain)
                both = self.petlab(*words, "--json", "--format", table)
                self.assertEqual(both.code, 2, both)

    # Without a database.

    @covers("init", "--backbone", "--task", "--worker")
    @covers("doctor", "--db", "--runs", "--worker", "--json")
    def test_init_and_doctor(self):
        done = self.petlab("init", "a.yaml", "--backbone", "./tiny", "--task", "films.yaml")
        self.assertEqual(done.code, 0, done)
        text = (self.root / "a.yaml").read_text()
        self.assertRegex(text, r"backbone: .*tiny")
        self.assertRegex(text, r"task: .*films.yaml")
        done = self.petlab("init", "b.yaml", "--backbone", "./tiny", "--task", "films.yaml", "--worker")
        self.assertEqual(done.code, 0, done)
        self.assertIn("petlab.Worker", (self.root / "worker.py").read_text())
        found = json.loads(self.petlab("doctor", "--json", "--worker", "./awkward.py", "--db", "place/new.db", "--runs",
                                       "elsewhere").out)
        text = json.dumps(found)
        self.assertIn("elsewhere", text)
        self.assertIn("place", text)
        self.assertIn("told", text)
        self.assertNotIn("told", self.petlab("doctor", "--json").out)

    @covers("storage", "--json", "--kind", "--bottleneck", "--rank", "--prefix-length", "--hyper-embedding",
            "--hyper-hidden", "--hyper-projected", "--share", "--no-share", "--mask", "--sparsity-ratio", "--tasks",
            "--backbone", "--d-model", "--layers", "--parameters")
    def test_storage(self):
        size = ["--d-model", 32, "--layers", 2, "--parameters", 100000]
        adapter = ["storage", "--kind", "adapter", "--bottleneck", 16, *size]

        def changes(words, *options, base=()):
            plain, done = self.petlab(*words, *base), self.petlab(*words, *options)
            self.assertEqual((plain.code, done.code), (0, 0), (plain, done))
            self.assertNotEqual(plain.out, done.out, options)

        def at(words, option, one, other):
            changes(words, option, other, base=(option, one))

        json.loads(self.petlab(*adapter, "--json").out)
        kind = ["storage", *size]
        at(kind + ["--kind", "adapter"], "--bottleneck", 8, 16)
        at(kind + ["--kind", "lora"], "--rank", 4, 8)
        at(kind + ["--kind", "prefix"], "--prefix-length", 4, 8)
        hyper = ["storage", "--kind", "hyperformer++", "--backbone", "t5-base", "--bottleneck", 8]
        values = {"--hyper-embedding": (8, 16), "--hyper-hidden": (8, 16), "--hyper-projected": (8, 16)}
        for option, (one, other) in values.items():
            rest = [word for name, pair in values.items() if name != option for word in (name, pair[0])]
            at(hyper + rest, option, one, other)
        at(hyper + [word for name, pair in values.items() for word in (name, pair[0])], "--tasks", 2, 4)
        changes(adapter, "--share")
        changes([*adapter, "--share"], "--no-share")
        changes(adapter, "--mask", "random", "--share", "--sparsity-ratio", 0.5)
        changes([*adapter, "--share", "--mask", "learned"], "--sparsity-ratio", 0.25, base=("--sparsity-ratio", 0.5))
        changes(["storage", "--kind", "adapter", "--bottleneck", 16], "--backbone", "./tiny", base=size)
        for option, value in (("--d-model", 64), ("--layers", 3), ("--parameters", 200000)):
            others = list(size)
            others[others.index(option) + 1] = value
            changes(["storage", "--kind", "adapter", "--bottleneck", 16], *others, base=size)

    @covers("score", "--hyp", "--ref", "--input", "--metrics", "--format", "--score-only", "--num-refs", "--json",
            "--threads", "--width", "--list", "--sentence-level", "--empty-is-missing", "--short", "--confidence",
            "--confidence-n", "--baseline", "--paired-bs", "--paired-bs-n", "--paired-ar", "--paired-ar-n", "--seed",
            "--tokenize", "--lowercase", "--chrf-lowercase", "--smooth-method", "--smooth-value", "--max-ngram-order",
            "--effective-order", "--char-order", "--chrf-char-order", "--word-order", "--chrf-word-order", "--beta",
            "--chrf-beta", "--whitespace", "--chrf-whitespace", "--eps-smoothing", "--chrf-eps-smoothing",
            "--normalized", "--ter-normalized", "--no-punct", "--ter-no-punct", "--asian-support",
            "--ter-asian-support", "--case-sensitive", "--ter-case-sensitive", "--stem", "--json-lines", "--num-labels")
    def test_score(self):
        self.write("hyp.txt", "The cats sat on the mat , here\na\tdog runs home . today\nthe 三十 Birds flying\n")
        self.write("other.txt", "the cat lies\na dog ran home\nno birds\n")
        self.write("ref.txt", "the cat sat on a mat, there\nthe dog is running home. Today\nThe 三四 bird flies\n")
        self.write("second.txt", "A cat sat\n\nsome birds fly\n")
        self.write("two.txt", "the cat sat on a mat\tA cat sat\nthe dog\ta dog\nbirds\tbird\n")
        self.write("lines.json", '"The cats\\nsat"\n"b"\n"c"\n')
        self.write("sentences.json", '"The cats sat"\n"b"\n"c d"\n')
        self.write("labels.txt", "0\n1\n1\n")
        self.write("gold.txt", "0\n1\n0\n")
        base = ["--hyp", "hyp.txt", "--ref", "ref.txt"]

        def score(*words, code=0):
            done = self.petlab("score", *words)
            self.assertEqual(done.code, code, (words, done))
            return done.out

        def changes(words, *options):
            self.assertNotEqual(score(*words), score(*words, *options), options)

        bleu, chrf, ter = (["bleu", *base], ["chrf", *base], ["ter", *base])
        self.assertIn("token-error-rate", score("--list"))
        self.assertIn("chrf: average over all orders", score("--list"))
        self.assertNotEqual(score(*bleu), score("bleu", "--ref", "ref.txt", "--hyp", "other.txt"))
        for options in (["--json"], ["--width", 2], ["--sentence-level"], ["--short"], ["--ref", "second.txt"],
                        ["--confidence"], ["--tokenize", "char"], ["--lowercase"], ["--smooth-method", "none"],
                        ["--max-ngram-order", 2], ["--smooth-method", "floor"]):
            changes(bleu, *options)
        changes([*bleu, "--smooth-method", "floor"], "--smooth-value", 0.7)
        self.write("short.txt", "the cat\ndog\nthe\n")
        changes(["bleu", "--hyp", "short.txt", "--ref", "ref.txt"], "--effective-order")
        changes([*bleu, "--ref", "second.txt"], "--empty-is-missing")
        changes(["bleu", "--hyp", "hyp.txt", "--ref", "two.txt"], "--num-refs", 2)
        self.assertEqual(score(*bleu), score(*bleu, "--threads", 2))
        self.refused("--threads", 0, *bleu)
        interval = [*bleu, "--confidence"]
        changes(interval, "--confidence-n", 50)
        changes(interval, "--seed", 7)
        paired = [*bleu, "--baseline", "other.txt"]
        self.assertNotEqual(score(*bleu), score(*paired, "--paired-bs"))
        changes([*paired, "--paired-bs"], "--paired-bs-n", 37)
        changes([*paired, "--paired-ar"], "--paired-ar-n", 37)
        self.assertNotEqual(score(*paired, "--paired-bs"), score(*paired, "--paired-ar"))
        changes(chrf, "--lowercase")
        changes(chrf, "--chrf-lowercase")
        for plain, value in (("--char-order", 3), ("--word-order", 2), ("--beta", 3), ("--whitespace", None),
                             ("--eps-smoothing", None)):
            options = [] if value is None else [value]
            changes(chrf, plain, *options)
            self.assertEqual(score(*chrf, plain, *options), score(*chrf, f"--chrf-{plain[2:]}", *options))
        for plain in ("--normalized", "--no-punct", "--case-sensitive"):
            changes(ter, plain)
            self.assertEqual(score(*ter, plain), score(*ter, f"--ter-{plain[2:]}"))
        changes([*ter, "--normalized"], "--asian-support")
        self.assertEqual(score(*ter, "--normalized", "--asian-support"),
                         score(*ter, "--ter-normalized", "--ter-asian-support"))
        changes(["rouge1", *base], "--stem")
        changes(["rougeLsum", "--hyp", "lines.json", "--ref", "sentences.json"], "--json-lines")
        self.refused("--json-lines", "bleu", *base, code=1)
        labels = ["accuracy", "--hyp", "labels.txt", "--ref", "three.txt"]
        self.write("three.txt", "0\n1\n2\n")
        self.assertEqual(json.loads(score(*labels, "--num-labels", 3, "--json"))["num_labels"], 3)
        self.assertIn("three.txt:3", self.refused(*labels, "--num-labels", 2, code=1).err)
        # The arguments of sacrebleu's command.
        like = ["ref.txt", "--input", "hyp.txt"]
        whole = json.loads(score(*like))
        self.assertEqual(whole["name"], "BLEU")
        self.assertEqual({one["name"] for one in json.loads(score(*like, "--metrics", "bleu", "chrf"))},
                         {"BLEU", "chrF2"})
        self.assertEqual(float(score(*like, "--score-only")), whole["score"])
        self.assertRegex(score(*like, "--score-only", "--width", 4), r"^\d+\.\d{4}\n")
        systems = ["ref.txt", "--input", "hyp.txt", "other.txt"]
        texts = {form: score(*systems, "--format", form) for form in ("text", "json", "latex")}
        json.loads(texts["json"])
        self.assertIn("\\begin{tabular}", texts["latex"])
        self.assertNotIn("tabular", texts["text"])

    def refused(self, *words, code=2):
        done = self.petlab("score", *words)
        self.assertEqual((done.code, done.out), (code, ""), done)
        return done


if __name__ == "__main__":
    tiny_world.main()
