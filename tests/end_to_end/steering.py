#!/usr/bin/env python3
"""Tests selecting, changing, rerunning and discarding trials of a sweep.

usage: steering.py FOLDER_OF_PROGRAMS; trains with the scripted worker of tests/orchestrator.
"""
import json

from scripted_world import WORKER, ScriptedWorld
from tiny_world import main

SWEEP = """sweep: steered
base:
  backbone: ./tiny
  task: films.yaml
  module.kind: adapter
  training.epochs: 3
  user: {steps: 2, width: 7}
variants:
  small: {module.bottleneck: 8}
  large: {module.bottleneck: 64, module.mask: learned, module.share: true}
grid: {seed: [1, 2, 3]}
"""


class Steering(ScriptedWorld):
    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", SWEEP)

    def plan(self, *words, code=0, file="sweep.yaml"):
        done = self.petlab("plan", file, "--json", "--worker", WORKER, *words)
        self.assertEqual(done.code, code, done)
        return json.loads(done.out) if code == 0 else done.err

    def ids(self, *words):
        return [trial["id"] for trial in self.plan(*words)["trials"]]


class Only(Steering):
    def test_a_part_of_a_sweep_has_the_same_trials_and_the_rest_stays_pending(self):
        whole = self.plan()["trials"]
        part = self.plan("--only", "variant=large,seed=1..2")
        self.assertEqual([trial["id"] for trial in part["trials"]],
                         [trial["id"] for trial in whole[3:5]])
        self.assertEqual((part["only"], part["of"]), (["variant=large,seed=1..2"], 6))
        text = self.petlab("plan", "sweep.yaml", "--worker", WORKER, "--only", "seed>1", "--only",
                           "module.bottleneck=8").out
        self.assertIn("sweep steered: 2 of 6 trials: those with seed>1 and "
                      "module.bottleneck=8\n",
                      text)
        done = self.run_scripted("--only", "variant=large,seed=1..2")
        self.assertEqual(done.code, 0, done)
        self.assertIn("running 2 of 6 trials of sweep steered (--only); the rest stay pending\n", done.err)
        self.assertEqual(self.query("SELECT count(*) AS n FROM sweep_trials"), [{"n": 6}])
        self.assertEqual([trial["state"] for trial in self.plan()["trials"]],
                         ["new"] * 3 + ["done"] * 2 + ["new"])
        status = self.petlab("status", "sweep.yaml").out
        self.assertIn("sweep steered: 6 trials: 4 new, 2 done\n", status)
        self.assertEqual(self.run_scripted().code, 0)
        self.assertEqual(self.outcomes(), {"finished": 6})

    def test_conditions_have_the_words_of_questions(self):
        whole = self.ids()
        for words, places in (
                ("task=films", range(6)), ("task!=films", None), ("module_mask=learned", range(3, 6)),
                ("module_mask!=learned", range(3)), ("module_share=true and seed<=1", [3]),
                ("user.width=7 and user.steps<3", range(6)), (f"trial_id={whole[4]}", [4]),
                ("module_rank=null", range(6)), ("module_rank!=null", None),
                ("variant!=small,seed!=1,2", [5]), ("training_epochs>=3", range(6)),
                ("training_learning_rate<1", range(6)), ("bls_bits>100000", None),
                ("tasks=films,seed=3", [2, 5]), ("sweep=steered,seed=3", [2, 5]),
                ("module_sparsity_ratio=0.5", range(3, 6)), ("user.width='7'", None)):
            with self.subTest(words):
                if places is None:
                    self.assertIn("--only: no trial of sweep steered",
                                  self.plan("--only", words, code=2))
                else:
                    self.assertEqual(self.ids("--only", words), [whole[at] for at in places])

    def test_meaningless_conditions_are_refused(self):
        for words, message in (
                ("variant=larg", "--only: no trial of sweep steered has variant larg; did you mean "
                                 "large?"),
                ("variant=small,larg,seed=1", "--only: no trial of sweep steered has variant larg; "
                                              "did you mean large?"),
                ("seed=7", "--only: no trial of sweep steered meets the condition on seed"),
                ("sed=1", 'unknown field "sed"; did you mean "seed"?'),
                ("seed=one", "seed: found 'one', expected a whole number, or several as 1..5"),
                ("host=a", "--only: found host, expected a property that a trial has before it "
                           "runs: a field, task, variant, trial_id or a size"),
                ("split=test", "--only: found split, expected a field"),
                ("seed", "--only: found nothing after 'seed', expected one of = != < <= > >=")):
            with self.subTest(words):
                self.assertEqual(self.plan("--only", words, code=2), f"petlab: {message}\n")
                done = self.run_scripted("--only", words)
                self.assertEqual((done.code, done.err), (2, f"petlab: {message}\n"))
        self.assertEqual(self.plan("--only", "seed=1", "--only", "seed=2", code=2),
                         "petlab: --only: no trial of sweep steered meets all of seed=1, "
                         "seed=2, although some trials meet each one\n")
        self.assertFalse((self.root / "sweep.db").exists())

    def test_the_shell_completes_the_words(self):
        done = self.petlab("completion", "--words", "--", "run", "sweep.yaml", "--only", "seed=1,var")
        self.assertEqual(done.out, "seed=1,variant=\n")


class Set(Steering):
    def test_set_changes_a_field_of_every_trial_as_in_the_file(self):
        self.write("edited.yaml", SWEEP.replace("training.epochs: 3", "training.epochs: 1"))
        wanted = self.plan(file="edited.yaml")["trials"]
        found = self.plan("--set", "training.epochs=1")
        self.assertEqual([trial["id"] for trial in found["trials"]],
                         [trial["id"] for trial in wanted])
        self.assertEqual(found["set"], ["training.epochs=1"])
        self.assertEqual(found["notes"][0],
                         "--set training.epochs=1 replaces the value in sweep.yaml, line 6")
        text = self.petlab("plan", "sweep.yaml", "--worker", WORKER, "--set",
                           "user.note=a=b", "--set", "data.max_tokens=16").out
        self.assertIn("\nset: user.note=a=b\nset: data.max_tokens=16\n", text)
        self.assertNotIn("replaces", text)
        configs = [trial["config"] for trial in self.plan("--set", "user.note=a=b")["trials"]]
        self.assertEqual({config["user"]["note"] for config in configs}, {"a=b"})
        # --set also overrides variants, and conditions use its values.
        found = self.plan("--set", "module.mask=none", "--set", "module.share=false")
        self.assertEqual({trial["config"]["module"]["mask"] for trial in found["trials"]}, {"none"})
        self.assertEqual([note for note in found["notes"] if "--set" in note],
                         ["--set module.mask=none replaces the value in sweep.yaml, line 10",
                          "--set module.share=false replaces the value in sweep.yaml, line 10"])
        self.assertIn("--set module.rank: no trial uses it with its module and switches",
                      self.plan("--set", "module.rank=3")["notes"])

    def test_set_is_recorded_and_a_run_without_it_follows_the_file(self):
        done = self.run_scripted("--set", "training.epochs=1", "--only", "seed=1")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query("SELECT overrides FROM sweeps"),
                         [{"overrides": '["training.epochs=1"]'}])
        done = self.petlab("db", "rebuild", "--db", "new.db", "--runs", "sweep.runs")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query("SELECT overrides FROM sweeps", "new.db"),
                         [{"overrides": '["training.epochs=1"]'}])
        plan = self.plan()
        self.assertEqual({trial["state"] for trial in plan["trials"]}, {"new"})
        self.assertTrue(any("2 finished trials of earlier definitions" in note
                            for note in plan["notes"]), plan["notes"])
        self.assertEqual(self.run_scripted("--only", "seed=2").code, 0)
        self.assertEqual(self.query("SELECT overrides FROM sweeps"), [{"overrides": None}])

    def test_invalid_settings_are_refused(self):
        for word, message in (
                ("training.epochs", "--set: found 'training.epochs', expected FIELD=VALUE such as "
                                    "training.epochs=1"),
                ("epochs=1", "--set: found 'epochs', expected a field of a trial (nearest: "
                             "training.epochs)"),
                ("training.epochs=three", "--set training.epochs: found 'three', expected a whole "
                                          "number from 1 to 1000000000"),
                ("variant=small", "--set: found 'variant', expected a field of a trial"),
                ("module.kind=adaptor", "--set module.kind: found 'adaptor', expected "),
                ("seed=[4, 5]", "--set seed: found "),
                ("seed=7", "--set seed=7: 4 trials of sweep.yaml would become equal to "
                           "others, because nothing else distinguishes them; to choose some "
                           "of a sweep's trials, use --only")):
            with self.subTest(word):
                self.assertIn(f"petlab: {message}", self.plan("--set", word, code=2))
                self.assertEqual(self.run_scripted("--set", word).code, 2)
        twice = ["--set", "task=films.yaml", "--set", "tasks=[films.yaml]"]
        self.assertIn("twice, expected it once", self.plan(*twice, code=2))
        self.assertFalse((self.root / "sweep.db").exists())


class Again(Steering):
    METRICS = ("SELECT trial_id, attempt, name, value FROM results WHERE split = 'test' "
               "ORDER BY 1, 2, 3")

    def setUp(self):
        super().setUp()
        self.assertEqual(self.run_scripted().code, 0)
        self.trials = self.ids()

    def attempts(self, database="sweep.db"):
        return {row["trial_id"]: row["n"] for row in self.query(
            "SELECT trial_id, attempt AS n FROM results GROUP BY 1, 2", database)}

    def decide(self, *words, code=0):
        done = self.petlab(*words, "--db", "sweep.db")
        self.assertEqual(done.code, code, done)
        return done

    def rebuilt(self):
        (self.root / "rebuilt.db").unlink(missing_ok=True)
        done = self.petlab("db", "rebuild", "--db", "rebuilt.db", "--runs", "sweep.runs")
        self.assertEqual(done.code, 0, done)
        return "rebuilt.db"

    def test_named_trials_are_rerun_and_the_newest_result_counts(self):
        first, second = self.trials[0], self.trials[4]
        done = self.run_scripted("--rerun", f"{first},{second[:12]}")
        self.assertEqual(done.code, 0, done)
        wanted = {trial: 2 if trial in (first, second) else 1 for trial in self.trials}
        self.assertEqual(self.attempts(), wanted)
        self.assertEqual(self.outcomes(), {"finished": 8})
        # Earlier attempts stay.
        self.assertEqual(self.query(f"SELECT DISTINCT attempt FROM metrics WHERE trial_id = '{first}'"),
                         [{"attempt": 1}, {"attempt": 2}])
        self.assertEqual(self.run_scripted().code, 0)
        self.assertEqual(self.outcomes(), {"finished": 8})
        self.assertEqual(self.attempts(self.rebuilt()), wanted)
        shown = self.decide("show", first).out
        self.assertIn("done: finished in attempt 2", shown)
        self.assertIn("to be made again  up to attempt 1", shown)

    def test_a_rerun_of_all_trials_keeps_old_results_until_new_ones_are_finished(self):
        self.write("sweep.yaml", SWEEP.replace("steps: 2", "steps: 10, step_ms: 40"))
        self.assertEqual(self.run_scripted().code, 0)
        self.assertEqual(self.outcomes(), {"finished": 12})  # including six of setUp
        self.trials = self.ids()
        process = self.start_scripted("--rerun", "all", "--only", "variant=small", slots=1)
        self.until(lambda: self.outcomes()["finished"] > 12)
        self.interrupt(process, 2)
        self.assertEqual(self.end(process).code, 3)
        number = {trial: n for trial, n in self.attempts().items() if trial in self.trials}
        self.assertEqual(len(number), 6)
        waiting = [trial for trial in self.trials[:3] if number[trial] == 1]
        self.assertTrue(waiting)
        states = {trial["id"]: trial["state"] for trial in self.plan()["trials"]}
        self.assertEqual({states[trial] for trial in waiting}, {"interrupted"})
        self.assertIn("attempt 1 counts until a later one finishes", self.decide("show", waiting[0]).out)
        self.assertEqual(self.run_scripted().code, 0)  # continues the rerun
        self.assertEqual(self.outcomes()["finished"], 15)
        number = self.attempts()
        self.assertEqual([number[trial] > 1 for trial in self.trials], [True] * 3 + [False] * 3)

    def test_only_trials_can_be_rerun(self):
        for words, message in (
                (["--rerun", "every"], "--rerun: found every, expected stale, failed, all or "
                                       "the id of a requested trial (petlab plan lists them)"),
                (["--rerun", self.trials[0], "--only", "variant=large"],
                 f"--rerun: found {self.trials[0]}, expected stale, failed, all or the id of a "
                 f"requested trial (petlab plan lists them)")):
            done = self.run_scripted(*words)
            self.assertEqual((done.code, done.err), (2, f"petlab: {message}\n"))
        self.assertEqual(self.outcomes(), {"finished": 6})

    def test_a_discarded_result_does_not_count_and_is_recomputed(self):
        trial = self.trials[1]
        done = self.decide("discard", trial[:10], "--why", "the data was\nwrong")
        self.assertEqual(done.out, f"{trial} the result of attempt 1 no longer counts; the "
                                   f"next run recomputes it\n")
        self.assertNotIn(trial, self.attempts())
        self.assertNotIn(trial, self.attempts(self.rebuilt()))
        self.assertEqual(self.decide("discard", trial, "--why", "x", code=1).err,
                         f"{trial} has no result to discard\n")
        self.assertIn("1 discarded: not rerun yet",
                      self.petlab("status", "sweep.yaml").out)
        self.assertIn("the result of attempt 1 was discarded; restarts",
                      self.petlab("plan", "sweep.yaml", "--worker", WORKER).out)
        self.assertIn("up to attempt 1: the data was", self.decide("show", trial).out)
        self.assertRegex(self.decide("show", trial).out, "discarded +up to attempt 1: the data was")
        rows = json.loads(self.decide("results", "--by", "trial_id", "--format", "json").out)
        self.assertEqual([row["pending"] for row in rows if row["trial_id"] == trial], [1])
        self.assertEqual(self.run_scripted().code, 0)
        self.assertEqual(self.attempts(), {each: 2 if each == trial else 1 for each in self.trials})
        self.assertEqual(self.attempts(self.rebuilt())[trial], 2)
        self.assertNotIn("discarded", self.petlab("status", "sweep.yaml").out)

    def test_a_result_can_be_discarded_during_a_run(self):
        self.write("sweep.yaml", SWEEP.replace("seed: [1, 2, 3]", "seed: [1, 2, 3, 9]").replace(
            "steps: 2, width: 7", "steps: 2, width: 7").replace(
            "  small: {", "  long: {seed: 77, user.steps: 200, user.step_ms: 20}\n  small: {"))
        process = self.start_scripted("--only", "seed=1,77", slots=2)
        self.until(lambda: self.query("SELECT count(*) AS n FROM progress")[0]["n"] > 6)
        trial = self.trials[0]
        self.decide("discard", trial, "--why", "again")
        self.until(lambda: self.attempts().get(trial) == 2)
        self.assertEqual(self.end(process).code, 0)

    def test_hidden_trials_are_in_no_answer_until_shown_again(self):
        trial, rest = self.trials[2], [each for each in self.trials if each != self.trials[2]]
        everything = self.query(self.METRICS)
        self.decide("hide", trial, "--why", "an outlier of the cluster")
        self.assertEqual(sorted(self.attempts()), sorted(rest))
        self.assertEqual(sorted(self.attempts(self.rebuilt())), sorted(rest))
        rows = json.loads(self.decide("results", "--by", "trial_id", "--format", "json").out)
        self.assertEqual(sorted(row["trial_id"] for row in rows), sorted(rest))
        rows = json.loads(self.decide("results", "--by", "variant", "--format", "json").out)
        self.assertEqual([row["score_n"] for row in rows], [2, 3])
        self.assertIn("1 hidden: excluded from reports and answers", self.petlab("status", "sweep.yaml").out)
        self.assertIn("an outlier of the cluster", self.decide("show", trial).out)
        self.assertEqual(self.decide("hide", trial, "--why", "an outlier of the cluster", code=1).err,
                         f"{trial} is already hidden\n")
        # A hidden trial is run like any other, but not rerun.
        self.assertEqual(self.run_scripted().code, 0)
        self.assertEqual(self.outcomes(), {"finished": 6})
        self.decide("hide", "--undo", trial)
        self.assertEqual(self.query(self.METRICS), everything)
        self.assertEqual(self.query(self.METRICS, self.rebuilt()), everything)
        self.assertEqual(self.decide("hide", "--undo", trial, code=1).err, f"{trial} is not hidden\n")
        self.assertIn("--why is required", self.decide("hide", trial, code=2).err)


class WhereNumbersComeFrom(Steering):
    SAID = {"libtorch": "9.9", "commit": "abc", "clean": False, "gpu": "none\u00e9"}

    def environment(self):
        return super().environment() | {"SCRIPTED_PROVENANCE": json.dumps(self.SAID)}

    def test_each_attempt_records_builds_machine_and_sweep(self):
        self.assertEqual(self.run_scripted("--only", "seed=1", "--set", "user.x=1").code, 0)
        rows = self.query("SELECT * FROM attempt_provenance")
        self.assertEqual(len(rows), 2)
        row = rows[0]
        machine = json.loads(row["petlab_said"])
        self.assertEqual(set(machine) - {"gpu_driver"}, {
            "version", "commit", "clean", "compiler", "flags", "sweep_digest", "overrides",
            "processor", "kernel", "code", "script"})
        self.assertEqual((row["commit"], row["compiler"], row["processor"]),
                         (machine["commit"], machine["compiler"], machine["processor"]))
        self.assertEqual(row["commit"] == "unknown", row["clean"] is None)
        commit = row["commit"] + ("+changes" if row["clean"] == 0 else "")
        self.assertEqual(self.query('SELECT DISTINCT "commit" AS c FROM attempts'), [{"c": commit}])
        self.assertEqual(json.loads(row["overrides"]), ["user.x=1"])
        self.assertEqual((row["libtorch"], row["worker_commit"], row["worker_clean"], row["gpu"]),
                         ("9.9", "abc", 0, "none\u00e9"))
        self.assertEqual(self.query("SELECT digest, text FROM sweep_texts"),
                         [{"digest": row["sweep_digest"], "text": SWEEP}])
        shown = json.loads(self.petlab("show", row["trial_id"], "--db", "sweep.db", "--json").out)
        self.assertEqual(shown["attempts"][0]["provenance"]["worker_said"], self.SAID)
        self.assertEqual(shown["attempts"][0]["provenance"]["petlab_said"], machine)
        task = self.query("SELECT tasks FROM trials LIMIT 1")[0]["tasks"]
        self.assertEqual(shown["attempts"][0]["provenance"]["examples"], {task: {"train": 90, "validation": 12}})
        self.assertEqual(json.loads(row["examples"]), {task: {"train": 90, "validation": 12}})
        text = self.petlab("show", row["trial_id"], "--db", "sweep.db").out
        self.assertRegex(text, rf"\n  examples of {task} +90 train, 12 validation\n")
        for part in ("worker libtorch", "petlab compiler", "petlab sweep_digest", machine["processor"]):
            self.assertIn(part, text)
        page = self.petlab("report", "sweep", "--db", "sweep.db", "--format", "html")
        self.assertEqual(page.code, 0, page)
        self.assertIn("<summary>Where these numbers come from</summary>", page.out)
        self.assertIn(f"petlab {row['commit']} ", page.out.replace("</li>", " "))
        self.assertIn("scripted-worker abc (with changes), LibTorch 9.9, ", page.out)
        self.assertIn(": 2 trials</li>", page.out)
        # A rebuild from the runs folder gives the same, including earlier definitions of sweeps.
        self.write("sweep.yaml", SWEEP + "about: edited\n")
        self.assertEqual(self.run_scripted("--only", "seed=1").code, 0)
        done = self.petlab("db", "rebuild", "--db", "new.db", "--runs", "sweep.runs")
        self.assertEqual(done.code, 0, done)
        for sql in ("SELECT * FROM attempt_provenance ORDER BY trial_id, attempt",
                    "SELECT * FROM attempt_examples ORDER BY trial_id, attempt, task, split",
                    "SELECT * FROM sweep_texts ORDER BY 1"):
            self.assertEqual(self.query(sql, "new.db"), self.query(sql))
        self.assertEqual(len(self.query("SELECT * FROM sweep_texts")), 2)
        # Of each sweep petlab's, and the worker's.
        self.assertEqual(self.query("SELECT count(*) AS n FROM (SELECT petlab FROM provenance UNION SELECT worker FROM "
                                    "provenance)"), [{"n": 3}])

    def test_a_text_that_does_not_belong_to_its_name_is_skipped(self):
        self.assertEqual(self.run_scripted("--only", "seed=1").code, 0)
        file, = (self.root / "sweep.runs/sweeps").glob("*.yaml")
        file.write_text("sweep: other\n")
        done = self.petlab("db", "rebuild", "--db", "new.db", "--runs", "sweep.runs")
        self.assertEqual(done.code, 1, done)
        self.assertIn("must be the one in its name", done.out + done.err)
        self.assertEqual(self.query("SELECT * FROM sweep_texts", "new.db"), [])


if __name__ == "__main__":
    main()
