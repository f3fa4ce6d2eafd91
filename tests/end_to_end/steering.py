#!/usr/bin/env python3
"""Choosing, changing, repeating and discarding the trials of a sweep.

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
    def test_a_part_of_a_sweep_is_the_same_trials_and_the_rest_waits(self):
        whole = self.plan()["trials"]
        part = self.plan("--only", "variant=large,seed=1..2")
        self.assertEqual([trial["id"] for trial in part["trials"]],
                         [trial["id"] for trial in whole[3:5]])
        self.assertEqual((part["only"], part["of"]), (["variant=large,seed=1..2"], 6))
        text = self.petlab("plan", "sweep.yaml", "--worker", WORKER, "--only", "seed>1", "--only",
                           "module.bottleneck=8").out
        self.assertIn("sweep steered: 2 of 6 trials, those with seed>1 and module.bottleneck=8\n",
                      text)
        done = self.run_scripted("--only", "variant=large,seed=1..2")
        self.assertEqual(done.code, 0, done)
        self.assertIn("2 of the 6 trials of sweep steered are asked for; the others wait for a run "
                      "without --only\n", done.err)
        self.assertEqual(self.query("SELECT count(*) AS n FROM sweep_trials"), [{"n": 6}])
        self.assertEqual([trial["state"] for trial in self.plan()["trials"]],
                         ["new"] * 3 + ["done"] * 2 + ["new"])
        status = self.petlab("status", "sweep.yaml").out
        self.assertIn("sweep steered: 6 trials: 4 new, 2 done\n", status)
        self.assertEqual(self.run_scripted().code, 0)
        self.assertEqual(self.outcomes(), {"finished": 6})

    def test_the_words_of_conditions_are_those_of_questions(self):
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

    def test_conditions_that_mean_nothing_are_refused(self):
        for words, message in (
                ("variant=larg", "--only: no trial of sweep steered has variant larg; did you mean "
                                 "large?"),
                ("variant=small,larg,seed=1", "--only: no trial of sweep steered has variant larg; "
                                              "did you mean large?"),
                ("seed=7", "--only: no trial of sweep steered meets the condition on seed"),
                ("sed=1", 'unknown field "sed"; did you mean "seed"?'),
                ("seed=one", "seed: found 'one', wanted a whole number, or several as 1..5"),
                ("host=a", "--only: found host, wanted what a trial has before it is tried: a field, "
                           "task, variant, trial_id or a size"),
                ("split=test", "--only: found split, wanted a field"),
                ("seed", "--only: found nothing behind 'seed', wanted one of = != < <= > >=")):
            with self.subTest(words):
                self.assertEqual(self.plan("--only", words, code=2), f"petlab: {message}\n")
                done = self.run_scripted("--only", words)
                self.assertEqual((done.code, done.err), (2, f"petlab: {message}\n"))
        self.assertEqual(self.plan("--only", "seed=1", "--only", "seed=2", code=2),
                         "petlab: --only: no trial of sweep steered meets all of seed=1, seed=2: each "
                         "condition is met by some\n")
        self.assertFalse((self.root / "sweep.db").exists())

    def test_the_shell_completes_the_words(self):
        done = self.petlab("completion", "--words", "--", "run", "sweep.yaml", "--only", "seed=1,var")
        self.assertEqual(done.out, "seed=1,variant=\n")


class Set(Steering):
    def test_a_field_is_set_for_every_trial_as_if_the_file_said_so(self):
        self.write("edited.yaml", SWEEP.replace("training.epochs: 3", "training.epochs: 1"))
        wanted = self.plan(file="edited.yaml")["trials"]
        found = self.plan("--set", "training.epochs=1")
        self.assertEqual([trial["id"] for trial in found["trials"]],
                         [trial["id"] for trial in wanted])
        self.assertEqual(found["set"], ["training.epochs=1"])
        self.assertEqual(found["notes"][0],
                         "--set training.epochs=1 replaces what sweep.yaml says in line 6")
        text = self.petlab("plan", "sweep.yaml", "--worker", WORKER, "--set",
                           "user.note=a=b", "--set", "data.max_tokens=16").out
        self.assertIn("\nset: user.note=a=b\nset: data.max_tokens=16\n", text)
        self.assertNotIn("replaces", text)
        configs = [trial["config"] for trial in self.plan("--set", "user.note=a=b")["trials"]]
        self.assertEqual({config["user"]["note"] for config in configs}, {"a=b"})
        # Also what variants say of it, and conditions see it.
        found = self.plan("--set", "module.mask=none", "--set", "module.share=false")
        self.assertEqual({trial["config"]["module"]["mask"] for trial in found["trials"]}, {"none"})
        self.assertEqual([note for note in found["notes"] if "--set" in note],
                         ["--set module.mask=none replaces what sweep.yaml says in line 10",
                          "--set module.share=false replaces what sweep.yaml says in line 10"])
        self.assertIn("--set module.rank: no trial uses it with its module and switches",
                      self.plan("--set", "module.rank=3")["notes"])

    def test_it_is_recorded_and_a_run_without_it_is_the_file_again(self):
        done = self.run_scripted("--set", "training.epochs=1", "--only", "seed=1")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query("SELECT overrides FROM sweeps"),
                         [{"overrides": '["training.epochs=1"]'}])
        done = self.petlab("ingest", "--rebuild", "--db", "new.db", "--runs", "sweep.runs")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query("SELECT overrides FROM sweeps", "new.db"),
                         [{"overrides": '["training.epochs=1"]'}])
        plan = self.plan()
        self.assertEqual({trial["state"] for trial in plan["trials"]}, {"new"})
        self.assertTrue(any("2 finished trials of earlier definitions" in note
                            for note in plan["notes"]), plan["notes"])
        self.assertEqual(self.run_scripted("--only", "seed=2").code, 0)
        self.assertEqual(self.query("SELECT overrides FROM sweeps"), [{"overrides": None}])

    def test_what_cannot_be_set_is_refused(self):
        for word, message in (
                ("training.epochs", "--set: found 'training.epochs', wanted FIELD=VALUE such as "
                                    "training.epochs=1"),
                ("epochs=1", "--set: found 'epochs', wanted a field of a trial (nearest: "
                             "training.epochs)"),
                ("training.epochs=three", "--set training.epochs: found 'three', wanted a whole "
                                          "number from 1 to 1000000000"),
                ("variant=small", "--set: found 'variant', wanted a field of a trial"),
                ("module.kind=adaptor", "--set module.kind: found 'adaptor', wanted "),
                ("seed=[4, 5]", "--set seed: found "),
                ("seed=7", "--set seed=7: 4 trials of sweep.yaml would become the same as others, "
                           "from which nothing else tells them; to choose some of a sweep's trials "
                           "there is --only")):
            with self.subTest(word):
                self.assertIn(f"petlab: {message}", self.plan("--set", word, code=2))
                self.assertEqual(self.run_scripted("--set", word).code, 2)
        twice = ["--set", "task=films.yaml", "--set", "tasks=[films.yaml]"]
        self.assertIn("a second time, wanted it once", self.plan(*twice, code=2))
        self.assertFalse((self.root / "sweep.db").exists())


if __name__ == "__main__":
    main()
