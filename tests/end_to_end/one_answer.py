#!/usr/bin/env python3
"""Tests that all interfaces give the same answers: random questions about random databases, compared with a slow
evaluation.

usage: one_answer.py FOLDER_OF_PROGRAMS; PETLAB_TEST_QUESTIONS (30) sets the number of questions, PETLAB_TEST_SEED (1)
the first database. A failure names the seed of its database.
"""
import collections
import csv
import html
import io
import json
import math
import os
import pathlib
import random
import re
import sys
import tempfile
import urllib.parse
import urllib.request
import warnings

import tiny_world
from random_questions import FREE, NUMBERS, SWITCHES, TEXTS, WHOLE, Question, quoted
from random_runs import RandomRuns
from slow_answers import SlowAnswers, compared, holds, over_tasks

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python/src"))
import petlab  # noqa: E402

QUESTIONS = int(os.environ.get("PETLAB_TEST_QUESTIONS", "30"))
SEED = int(os.environ.get("PETLAB_TEST_SEED", "1"))
OF_ONE_DATABASE = 15
# Fields without a column in the views, where `attempt` is the value's and not the result's.
NOT_IN_VIEWS = ("tag", "attempt", "device", "worker_version")


def number(text):
    return float(text) if text not in (None, "", "undefined") else None


def values_of(rows, *columns):
    return [tuple(row[column] for column in columns) for row in rows]


def key_text(value):
    """A value as in the key of a report's row."""
    return "—" if value is None else f"{value:.14g}" if isinstance(value, float) else str(value)


def printed_scale(metric):
    return 100 if metric in ("accuracy", "f1") else 1


class OneAnswer(tiny_world.TinyWorld):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="petlab-e2e-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for name in ("home", "data", "slots"):
            (self.root / name).mkdir()
        warnings.simplefilter("ignore", petlab.NoteWarning)
        self.answers = collections.Counter()

    def test_random_questions(self):
        for at in range(-(-QUESTIONS // OF_ONE_DATABASE)):
            seed = SEED + at
            self.make_database(seed)
            with self.subTest(database=seed):
                self.check_whole_database()
            draw = random.Random(seed)
            for index in range(OF_ONE_DATABASE):
                question = Question(draw, self.slow)
                with self.subTest(database=seed, number=index, question=question):
                    for check in (self.check_values, self.check_tables, self.check_best, self.check_sides,
                                  self.check_steps, self.check_trial):
                        check(question)
        print(", ".join(f"{name}: {n}" for name, n in sorted(self.answers.items())))
        self.assertGreater(min(self.answers[name] for name in ("SQL", "report", "compare", "Python's mapping", "diff")), 0)

    def make_database(self, seed):
        self.database, self.runs = f"{seed}.db", f"{seed}.runs"
        RandomRuns(self.root / self.runs, seed)
        self.answer("db", "rebuild", "--runs", self.runs)
        self.slow = SlowAnswers(self.root / self.runs)
        self.trials = {trial.id: trial for trial in self.slow.trials}
        self.python = petlab.open(self.root / self.database, program=tiny_world.PETLAB)
        # A worker with the last attempt's numerics version: reports compare with it to find stale trials.
        latest = max((attempt["events"][0] for trial in self.slow.trials if trial.members and not trial.hidden
                      for attempt in trial.attempts.values()), key=lambda event: event["time"], default=None)
        about = {"name": "drawn", "version": "1", "protocol": 1, "numerics": latest["numerics"]["version"] if latest else "1"}
        self.write("worker.py", f"#!/usr/bin/env python3\nprint('{json.dumps(about)}')\n").chmod(0o755)

    def answer(self, *words, or_nothing=False):
        """A command's output. With `or_nothing`, None if it selects nothing."""
        done = self.petlab(*words, "--db", self.database)
        if or_nothing and done.code == 2:
            return None
        self.assertEqual(done.code, 0, (words, done))
        return done.out

    def rows(self, *words, format="json"):
        out = self.answer(*words, "--format", format, or_nothing=True)
        if out is None:
            return []
        return json.loads(out) if format == "json" else list(csv.DictReader(io.StringIO(out, newline="")))

    def check(self, interface, found, wanted):
        self.answers[interface] += bool(wanted)
        self.assertEqual(found, wanted, interface)

    def check_numbers(self, interface, found, wanted):
        """Compares computed numbers, whose last digit depends on the order of sums."""
        self.answers[interface] += bool(wanted)
        self.assertEqual(sorted(found, key=repr), sorted(wanted, key=repr), interface)
        for key, values in wanted.items():
            for one, other in zip(found[key], values):
                same = one == other or None not in (one, other) and math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
                self.assertTrue(same, (interface, key, found[key], values))

    def where(self, question):
        return ["--where", question.text] if question.text else []

    # Values of trials: (trial, task, split, metric) to (step, value).

    def check_values(self, question):
        splits = question.draw.choice([[question.split], ["validation", "test"]])
        wanted = {(trial.id, value["task"], value["split"], value["name"]): (value["step"], value["value"])
                  for trial, _, value in self.slow.scores(question.where, splits, question.metrics)}
        columns = ("trial_id", "task", "split", "metric", "step", "value")
        questions = [("Python", question.text)]
        if question.all_equal():
            questions.append(("Python's mapping", {field: values for field, _, values in question.where}))
        for interface, where in questions:
            rows = self.python_rows(where, by="trial_id", split=splits, metric=question.metrics)
            self.check(interface, {row[:4]: row[4:] for row in values_of(rows, *columns)}, wanted)
        self.check("export", self.exported_values(question, splits), wanted)
        if not question.has(*NOT_IN_VIEWS):
            of_sweeps = question.has("sweep", "variant")
            # A trial removed from its sweeps is in no view of sweeps.
            self.check("SQL", self.sql_values(question, splits, "sweep_scores" if of_sweeps else "scores"),
                       {key: one for key, one in wanted.items() if not of_sweeps or self.trials[key[0]].members})
        if len(splits) == 1:
            for format in ("json", "csv"):
                rows = self.rows("results", *self.where(question), "--by", "trial_id,task,name", "--split", *splits,
                                 "--metric", ",".join(question.metrics), format=format)
                self.check(f"results --format {format}", {
                    (row["trial_id"], row["task"], *splits, row["name"]): number(row["value_mean"])
                    for row in rows if int(row["value_n"])}, {key: value for key, (_, value) in wanted.items()})

    def python_rows(self, where, **words):
        try:
            return self.python.rows(where, **words)
        except petlab.QuestionError as error:
            self.assertIn("no trial has", str(error))
            return []

    def sql_values(self, question, splits, view):
        texts, bound = [], []
        for field, comparison, values in question.where:
            column = f"json_extract(user, '$.{field[5:]}')" if field in FREE else field
            given = [value for value in values if value is not None]
            bound += given
            if comparison in ("=", "!="):
                ways = [f"{column} IN ({','.join('?' * len(given))})"] * bool(given)
                ways += [f"{column} IS NULL"] * (None in values)
                texts.append(f"{'NOT ' * (comparison == '!=')}coalesce({' OR '.join(ways)}, 0)")
            else:
                kind = "=" if isinstance(values[0], str) else "<>"
                texts.append(f"{column} {comparison} ? AND typeof({column}) {kind} 'text'")
        for column, given in (("name", question.metrics), ("split", splits)):
            texts.append(f"{column} IN ({','.join('?' * len(given))})")
        connection = self.python.connect()
        rows = connection.execute(f"SELECT DISTINCT trial_id, task, split, name, step, value FROM {view} WHERE "
                                  f"{' AND '.join(texts)}", bound + question.metrics + splits).fetchall()
        connection.close()
        found = {row[:4]: row[4:] for row in rows}
        self.assertEqual(len(found), len(rows))
        return found

    def exported_values(self, question, splits):
        kinds = {**dict.fromkeys(TEXTS, str), **dict.fromkeys(WHOLE + SWITCHES, int), **dict.fromkeys(NUMBERS, float)}
        found = {}
        for row in self.exported["results"]:
            fields = {field: kind(row[field]) if row[field] else None for field, kind in kinds.items()}
            user, tags = json.loads(row["user"]), set(filter(None, row["tag"].split(",")))
            fields |= {field: user.get(field[5:]) for field in FREE}
            if row["split"] in splits and row["metric"] in question.metrics and all(
                    bool(tags & set(values) or None in values and not tags) == (comparison == "=") if field == "tag"
                    else holds(fields[field], comparison, values) for field, comparison, values in question.where):
                found[row["trial_id"], row["task"], row["split"], row["metric"]] = (int(row["step"]), number(row["value"]))
        return found

    # Means over trials: (by …, task, metric) to (mean, deviation, n).

    def check_tables(self, question):
        by, words = question.by, ["results", *self.where(question), "--split", question.split, "--metric",
                                  ",".join(question.metrics)]
        found, without = self.table(words, by)
        self.check_numbers("results --by", found, self.slow.table(question.where, by, question.split, question.metrics))
        self.check("trials without a result", without, self.slow_without_result(question))
        pivoted = {}
        for row in self.rows(*words, "--by", ",".join(by), "--pivot", "task"):
            for title in [column[:-2] for column in row if column.endswith("_n") and row[column]]:
                pivoted[(*values_of([row], *by)[0], *title.split(" ", 1))] = values_of([row], *(title + part for part in (
                    "_mean", "_sd", "_n")))[0]
        self.check("results --pivot", pivoted, found)
        rows = self.python.table_rows([*by, "task"], None, question.text, question.metrics, question.split) if found else []
        self.check("Python's table", sum(row[f"{name}_n"] for row in rows for name in question.metrics if f"{name}_n" in row),
                   sum(n for _, _, n in found.values()))
        # A trial removed from its sweeps is in no report.
        of_sweeps = ["results", "--where", " and ".join([*question.texts, "sweep!=null"]), *words[-4:]]
        wanted = sorted(((".".join(map(key_text, key[:-2])), f"{key[-2]}.{key[-1]}", *values)
                         for key, values in self.table(of_sweeps, by)[0].items()), key=repr)
        table = {"rows": [{"each": by}], "columns": [{"each": ["task", "name"]}]}
        cells = [(row["key"], cell["column"], cell["mean"], cell["deviation"], cell["n"])
                 for row in json.loads(self.report(question, table))["rows"] for cell in row["cells"]
                 if cell["kind"] in ("number", "undefined")]
        self.check("report", sorted(cells, key=repr), wanted)
        rows = self.rows("report", "drawn.yaml", format="csv-long")
        self.check("report --format csv-long", sorted((
            (row["row"], row["column"], number(row["value"]), number(row["deviation"]), int(row["n"]))
            for row in rows if row["kind"] in ("number", "undefined")), key=repr), wanted)

    def table(self, words, by):
        """The output of `petlab results`, and the numbers of pending and stopped trials of each row."""
        found, without = {}, {}
        for row in self.rows(*words, "--by", ",".join([*by, "task"])):
            key = values_of([row], *by, "task")[0]
            for name in [column[:-2] for column in row if column.endswith("_n") and row[column]]:
                found[*key, name] = values_of([row], f"{name}_mean", f"{name}_sd", f"{name}_n")[0]
            if row["pending"] or row["stopped_early"]:
                without[key] = row["pending"], row["stopped_early"]
        return found, without

    def slow_without_result(self, question):
        found = collections.defaultdict(set)
        for trial, fields in self.slow.members_of(question.where):
            for task in trial.tasks if not trial.result else []:
                if all(holds(task, comparison, values) for field, comparison, values in question.where if field == "task"):
                    found[*map(fields.get, question.by), task].add(trial)
        return {key: (sum(not trial.stopped_early for trial in trials), sum(trial.stopped_early for trial in trials))
                for key, trials in found.items()}

    def report(self, question, table):
        """A report with the question's conditions, as a map if possible. YAML writes values as in --where."""
        texts = [*question.texts, f"split={question.split}", "name=" + ",".join(question.metrics)]
        where = json.dumps(" and ".join(texts))
        if question.all_equal():
            where = "{" + ", ".join("{}: [{}]".format(*text.split("=", 1)) for text in texts) + "}"
        rest = {"about": "drawn", "sweep": self.slow.sweeps, "table": {"cells": {"scale": 1}, **table}}
        self.write("drawn.yaml", f"report: drawn\nwhere: {where}\n" +
                   "".join(f"{name}: {json.dumps(value)}\n" for name, value in rest.items()))
        return self.answer("report", "drawn.yaml", "--format", "json")

    # The best trials of each task.

    def check_best(self, question):
        metric, split, draw = question.metrics[0], question.split, question.draw
        highest, top = draw.random() < 0.5, draw.choice([1, 2, 100])
        wanted = self.slow.best(question.where, metric, split, highest, top)
        rows = self.rows("best", *self.where(question), "--metric", metric, "--split", split, "--top", top,
                         "--highest" if highest else "--lowest")
        self.check("best", values_of(rows, "task", "trial_id", split, "test"), wanted)
        for row in rows:
            trial = self.trials[row["trial_id"]]
            self.assertEqual((row["selected_step"], row["train_seconds"], row["artifact"] is None),
                             (trial.selected_step, trial.fields["train_seconds"], trial.fields["artifact"] is None))
        if rows:
            rows = self.python.best_rows(question.text, metric, split, top, highest)
            self.check("Python's best", values_of(rows, "task", "trial_id", split, "test"), wanted)

    # Comparisons of two variants by pairs of trials.

    def check_sides(self, question):
        names = sorted({fields["variant"] for fields in question.fields} - {None})
        if len(names) < 2:
            return
        sides = question.draw.sample(names, 2)
        wheres = [[*question.where, ("variant", "=", [name])] for name in sides]
        varied = [self.slow.varied(where) for where in wheres]
        shared = [field for field in varied[0] if varied[0][field] == varied[1].get(field)]
        scores = [self.slow.side(where, question.split, question.metrics, shared) for where in wheres]
        words = ["compare", *(name if re.fullmatch(r"\w+", name) else f"variant={quoted(name)}" for name in sides),
                 *self.where(question), "--split", question.split, "--metric", ",".join(question.metrics)]
        if None in scores:
            done = self.petlab(*words, "--db", self.database)
            self.assertEqual(done.code, 2, done)
            self.assertRegex(done.err, "several trials have seed|no trial|none has a score")
            return
        wanted = {}
        for name in question.metrics:
            tasks = sorted(task for task, metric in scores[0] if metric == name and (task, metric) in scores[1])
            wanted |= {(task, name): compared(*(side[task, name] for side in scores)) for task in tasks}
            if len(tasks) > 1:
                wanted[None, name] = compared(*(over_tasks([side[task, name] for task in tasks]) for side in scores))
        rows = self.rows(*words)
        self.check_numbers("compare", dict(zip(values_of(rows, "task", "metric"),
                                               values_of(rows, "pairs", "unpaired", "effect", "p"))), wanted)
        if shared or not wanted:
            return
        report = json.loads(self.report(question, {
            "against": sides[0], "rows": [{"key": name, "where": {"variant": name}} for name in sides],
            "columns": [{"each": ["task", "name"], "name": "{task} {name}"}]}))
        titles = {column["key"]: tuple(column["name"].split(" ")) for column in report["columns"]}
        cells = {titles[cell["column"]]: (cell["comparison"]["n"], cell["comparison"]["p"])
                 for cell in report["rows"][1]["cells"] if "comparison" in cell}
        self.check("report's against", cells, {
            (row["task"], row["metric"]): (row["pairs"], row["p"]) for row in rows
            if row["task"] and row["p"]})

    # Values of every step.

    def check_steps(self, question):
        metric, every, last = question.metrics[0], set(), {}
        for trial, _, value in self.slow.scores(question.where, [question.split], [metric], every=True):
            every.add((trial.id, value["task"], value["step"], value["value"], value["attempt"], value["seq"]))
            if trial.members and value["step"] is not None:
                last[trial.id, value["task"], value["step"]] = value["value"]
        rows = self.python_rows(question.text, by="trial_id", split=question.split, metric=metric, steps="all")
        self.check("Python's steps", sorted(values_of(rows, "trial_id", "task", "step", "value"), key=repr),
                   sorted((one[:4] for one in every), key=repr))
        out = self.answer("report", "curve", "--x", "step", "--y", metric, "--series", "trial_id,task", "--split",
                          question.split, *self.where(question), "--sweep", ",".join(self.slow.sweeps), "--format", "json",
                          or_nothing=True)
        found = {}
        for row in json.loads(out)["sections"][0]["rows"] if out else []:
            (cell,) = row["cells"]
            (sample,) = cell["samples"]
            found[*row["group"].split(" "), int(row["key"].rpartition(" ")[2])] = sample["value"]
        # Undefined values have no point.
        self.check("report curve", found, {key: printed_scale(metric) * value for key, value in last.items()
                                           if value is not None})

    # One trial.

    def check_trial(self, question):
        draw, trial = question.draw, question.draw.choice(self.slow.trials)
        values = trial.values
        if not trial.result and trial.attempts:  # show has the values of the last attempt
            number = max(trial.attempts)
            values = [event | {"attempt": number} for event in trial.attempts[number]["events"] if event["type"] == "metric"]
        curves = collections.defaultdict(list)
        for value in sorted(values, key=lambda one: (one["step"], one["attempt"], one["seq"])):
            curves[value["split"], value["task"], value["name"]].append(value)
        shown = self.shown(trial)
        self.check("show", {(one["split"], one["task"], one["name"]): one["points"] for one in shown["metrics"]},
                   {key: [[one["step"], one["value"]] for one in curve] for key, curve in curves.items()})
        self.assertEqual((shown["selected_step"], shown["train_seconds"], shown["hidden"] is not None),
                         (trial.selected_step, trial.fields.get("train_seconds"), trial.hidden))
        self.assertEqual(set(shown["tags"]).union(*shown["sweep_tags"].values()), trial.tags)
        self.assertEqual(sorted(shown["sweeps"]), sorted(f"{sweep} as {variant}" if variant else sweep
                                                         for sweep, variant in trial.members))
        ends = [one["events"][-1]["type"] for one in trial.attempts.values()]
        self.assertEqual([one["outcome"] for one in shown["attempts"]],
                         [end if end in ("finished", "failed") else one["ended"][0]["outcome"] if one["ended"] else "open"
                          for end, one in zip(ends, trial.attempts.values())])
        if curves:
            split, task, metric = draw.choice(sorted(curves))
            wanted = values_of(curves[split, task, metric], "attempt", "seq", "step", "value")
            rows = self.rows("history", trial.id, "--split", split, "--task", task, "--metric", metric)
            self.check("history", values_of(rows, "attempt", "seq", "step", "value"), wanted)
            rows = self.python.history_rows(trial.id, metric, split, task)
            self.check("Python's history", values_of(rows, "attempt", "seq", "step", "value"), wanted)
        record = self.python.trial(trial.id)
        self.assertEqual(record.result and record.result.number, trial.result)
        self.check("Python's trial", set(values_of(record.scores, "split", "task", "metric", "step", "value")),
                   set() if trial.hidden else set(values_of(filter(
                       lambda one: self.slow.counts(trial, one), trial.selected()), "split", "task", "name", "step", "value")))
        self.check_difference(trial, draw.choice(self.slow.trials))

    def shown(self, trial):
        return json.loads(self.answer("show", trial.id, "--json", "--worker", "./worker.py", "--runs", self.runs))

    def check_difference(self, *trials):
        if not all(trial.result for trial in trials) or trials[0] is trials[1]:
            return
        sides = [{f"{value['split']} {value['task']} {value['name']}": value["value"] for value in trial.selected()
                  if value["split"] != "train" and self.slow.counts(trial, value)} for trial in trials]
        found = {row["field"]: [text if text == "undefined" else number(text) for text in (row[trial.id] for trial in trials)]
                 for row in self.rows("diff", "--all", *(trial.id for trial in trials))
                 if row["field"].split(" ")[0] in ("test", "validation")}
        self.check("diff", found, {name: ["undefined" if side.get(name, 0) is None else side.get(name) for side in sides]
                                   for name in sides[0] | sides[1]})

    # Checks that run once for each database.

    def check_whole_database(self):
        folder = f"{self.database}-tables"
        self.answer("db", "export", folder)
        self.exported = {}
        for file in (self.root / folder).iterdir():
            with open(file, newline="") as opened:
                # Texts that a spreadsheet would compute start with an apostrophe; numbers do not.
                self.exported[file.stem] = list(csv.DictReader(opened))
        every = {(trial.id, *one) for trial in self.slow.trials if not trial.hidden for one in values_of(
            trial.values, "attempt", "seq", "step", "split", "task", "name", "value")}
        self.check("export's history", {
            (row["trial_id"], *map(int, values_of([row], "attempt", "seq", "step")[0]), row["split"], row["task"],
             row["metric"], number(row["value"])) for row in self.exported["history"]}, every)
        rows = self.rows("query", "SELECT trial_id, attempt, seq, step, split, task, name, value FROM results")
        self.check("SQL's results", sorted(map(repr, map(tuple, map(dict.values, rows)))), sorted(map(repr, every)))
        self.check("export's sweeps", sorted(values_of(self.exported["sweeps"], "trial_id", "sweep", "variant")), sorted(
            (trial.id, sweep, variant or "") for trial in self.slow.trials for sweep, variant in trial.members))
        self.check_pages()
        self.check_states()

    def check_pages(self):
        """Checks that the tables of a page equal the reports of its sweeps, with the values that count."""
        cells = {}
        for sweep in self.slow.sweeps:
            report = json.loads(self.answer("report", "sweep", "--sweep", sweep, "--format", "json"))
            cells |= {(sweep, row["key"], cell["column"]): cell.get("mean") for row in report["rows"] for cell in row["cells"]}
            self.check("report sweep", {
                (trial, cell["column"], row["key"].split(" (")[0]): sample["value"]
                for row in report["rows"] for cell in row["cells"] if cell["column"] != "bits"
                for sample in cell["samples"] for trial in sample["trials"]}, {
                (trial.id, f"{value['task']}.{value['name']}", key_text(fields["variant"])):
                value["value"] and value["value"] * printed_scale(value["name"])
                for trial, fields, value in self.slow.scores([("sweep", "=", [sweep])], ["test"], ["accuracy", "f1", "1e3"])})
        found = {}
        for cell in re.findall("<td id=[^>]*>", self.page()):
            words = {name: html.unescape(value) for name, value in re.findall('([a-z-]+)="([^"]*)"', cell)}
            found[tuple(map(urllib.parse.unquote, words["id"].split("/")))] = number(words.get("data-value"))
        self.check("page", found, cells)

    def page(self):
        server = self.start("serve", "--port", 0, "--db", self.database)
        address = re.search("http://[^ ]*", server.stdout.readline().decode()).group()
        with urllib.request.urlopen(address) as answer:
            text = answer.read().decode()
        server.terminate()
        self.end(server)
        return text

    def check_states(self):
        """Checks each trial's state in show, and their counts in status and reports."""
        words = ["--json", "--worker", "./worker.py", "--runs", self.runs]
        shown = {trial.id: self.shown(trial)["state"] for trial in self.slow.trials}
        self.check("stopped early", {trial for trial, state in shown.items() if state == "stopped early"},
                   {trial.id for trial in self.slow.trials if trial.stopped_early and not trial.result})
        status = {one["sweep"]: one["states"] for one in json.loads(self.answer("status", *words))["sweeps"]}
        self.write("states.yaml", json.dumps({
            "report": "states", "about": "drawn", "sweep": self.slow.sweeps,
            "table": {"rows": [{"each": "trial_id"}], "columns": [{"key": "state", "value": "state"}]}}))
        report = json.loads(self.answer("report", "states.yaml", "--format", "json"))
        reported = {one["sweep"]: one["states"] for one in report["sweeps"]}
        for sweep in self.slow.sweeps:
            states = {trial: shown[trial.id] for trial in self.slow.trials if sweep in [name for name, _ in trial.members]}
            for trial, state in states.items():
                if state in ("done", "cached"):  # finished in this sweep, or in another
                    states[trial] = "done" if trial.attempts[trial.result]["sweep"] == sweep else "cached"
            self.check("status", status[sweep], collections.Counter(states.values()))
            self.check("states of a report", reported[sweep],
                       collections.Counter(state for trial, state in states.items() if not trial.hidden))


if __name__ == "__main__":
    tiny_world.main()
