#!/usr/bin/env python3
"""Tests a T5 from scratch to a table: init, sweeps of text tasks, kept predictions, an exported backbone.

usage: texts.py FOLDER_OF_PROGRAMS
"""
import contextlib
import json
import os
import random
import signal
import time

import tiny_world
from tiny_world import TRAINER, TinyWorld

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
SIZES = {"model_type": "t5", "vocab_size": 1, "d_model": 32, "d_kv": 8, "num_heads": 4, "d_ff": 64,
         "num_layers": 1, "num_decoder_layers": 1, "dropout_rate": 0.0}
DIGIT_TASK = """task: digits
files: {train: digits-train.jsonl, validation: digits-dev.jsonl, test: digits-test.jsonl}
columns: {text: pair.words, target: pair.digits}
metrics: [token-error-rate, exact-match, bleu]
select_by: [token-error-rate]
text_to_text: {source: "digits: {text1}"}
"""
FROM_NOTHING = """sweep: from-nothing
base:
  backbone: ./own
  task: digits.yaml
  module.kind: full_finetuning
  training: {steps: 150, evaluate_every: 50, warmup_steps: 10, batch_size: 32, learning_rate: 5e-3,
             label_smoothing: 0.1}
  decoding: {beams: 3, max_tokens: 12, length_penalty: 0.8}
  evaluation.keep_predictions: true
"""
ON_IT = """sweep: on-it
base:
  backbone: ./tuned
  tasks: [digits.yaml, films.yaml]
  module: {kind: adapter, share: true, mask: learned, bottleneck: 4, sparsity_ratio: 0.3}
  training: {steps: 24, evaluate_every: 8, checkpoint_every: 3, batch_size: 8, learning_rate: 5e-3,
             mask_learning_rate: 5e-2}
  decoding.max_tokens: 8
grid:
  module.combine: [or, and, add]
"""
GENERATED = """sweep: generated
base:
  backbone: ./own
  tasks: [digits.yaml, films.yaml]
  module: {kind: hyperformer++, bottleneck: 4, hyper_embedding: 8, hyper_hidden: 12,
           hyper_projected: 6}
  training: {steps: 120, evaluate_every: 40, checkpoint_every: 7, batch_size: 8,
             learning_rate: 2e-2, warmup_steps: 5, dropout: 0.1}
  decoding.max_tokens: 8
  evaluation.keep_predictions: true
"""
# The parameters of both stacks' generators and of the task embeddings, counted by hand.
GENERATED_NUMBERS = 2 * 8 + 2 * ((1 + 2) * 8 + (24 * 12 + 12) + (12 * 6 + 6) + 2 * 6 +
                                 (6 + 1) * (2 * 4 * 32 + 4 + 3 * 32))


class Texts(TinyWorld):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        self.write("digits.yaml", DIGIT_TASK)
        for part, rows in (("train", 300), ("dev", 20), ("test", 25)):
            lines = []
            for _ in range(rows):
                digits = [draw.randrange(10) for _ in range(draw.randint(1, 3))]
                lines.append(json.dumps({"pair": {
                    "words": " ".join(DIGITS[d] for d in digits),
                    "digits": " ".join(map(str, digits))}}))
            self.write(f"digits-{part}.jsonl", "\n".join(lines) + "\n")
        texts = [f"digits: {word} {i}" for i, word in enumerate(DIGITS)] * 30
        texts += ["films sentence: the film is very good not bad a plot 0 1"] * 30
        self.write("texts.txt", "\n".join(texts) + "\n")
        self.write("sizes.json", json.dumps(SIZES))
        self.trainer("init", "--config", "sizes.json", "--texts", "texts.txt", "--vocabulary", "90",
                     "--out", "own")

    def trainer(self, *words):
        done = self.petlab(*words, program=TRAINER)
        self.assertEqual(done.code, 0, done)
        return done

    def recorded(self, trial):
        """The test values in the database, by task and metric."""
        rows = self.query("SELECT task, name, value FROM results WHERE split = 'test' AND "
                          f"trial_id = '{trial}'")
        return {(row["task"], row["name"]): row["value"] for row in rows}

    def trials(self):
        return {row["trial_id"] for row in self.query("SELECT DISTINCT trial_id FROM results")}

    def test_a_new_model_learns_and_is_the_next_sweeps_backbone(self):
        self.write("sweep.yaml", FROM_NOTHING)
        done = self.run_sweep()
        self.assertEqual(done.code, 0, done)
        folder, = self.attempt_folders()
        trial = folder.parent.name
        recorded = self.recorded(trial)
        # It learned to write words as digits.
        self.assertLess(recorded["digits", "token-error-rate"], 0.5, recorded)
        kept = folder / "predictions"
        for metric in ("token-error-rate", "exact-match", "bleu"):
            scored = self.petlab("score", metric, "--hyp", str(kept / "digits.predicted.jsonl"),
                                 "--ref", str(kept / "digits.gold.jsonl"), "--json-lines", "--json")
            self.assertEqual(scored.code, 0, scored)
            self.assertEqual(json.loads(scored.out)["score"], recorded["digits", metric])
        predicted = json.loads(self.trainer("predict", "--artifact", str(folder / "artifact.petl"),
                                            "--task", "digits.yaml", "--backbone", "./own").out)
        self.assertEqual(predicted["metrics"],
                         {metric: value for (_, metric), value in recorded.items()})
        self.write("input.txt", "one two\nnine\n")
        lines = self.trainer("predict", "--artifact", str(folder / "artifact.petl"), "--task",
                             "digits.yaml", "--backbone", "./own", "--input", "input.txt").out
        for line in map(json.loads, lines.splitlines()):
            self.assertEqual(sorted(line), ["text", "text_score"])
            self.assertLess(line["text_score"], 0)

        self.trainer("export", "--artifact", str(folder / "artifact.petl"), "--format",
                     "huggingface", "--backbone", "./own", "--out", "tuned")
        before = self.trials()
        self.write("sweep.yaml", ON_IT)
        done = self.run_sweep()
        self.assertEqual(done.code, 0, done)
        new = sorted(self.trials() - before)
        self.assertEqual(len(new), 3)
        undisturbed = {trial: self.recorded(trial) for trial in new}
        for trial in new:
            self.assertEqual(len(undisturbed[trial]), 5, undisturbed[trial])

        # The same sweep, killed at random and resumed.
        (self.root / "sweep.db").rename(self.root / "whole.db")
        for file in self.root.glob("sweep.db-*"):
            file.unlink()
        (self.root / "sweep.runs").rename(self.root / "whole.runs")
        draw = random.Random(9)
        for _ in range(4):
            run = self.start("run", "sweep.yaml", "--slots", 2, "--retry-delay", "10ms")
            time.sleep(0.2 + draw.random())
            run.kill()
            run.wait()
        done = self.run_sweep()
        self.assertEqual(done.code, 0, done)
        self.assertEqual({trial: self.recorded(trial) for trial in new}, undisturbed)

    def losses(self):
        """Losses by (trial, step) of all attempts. Repeated steps must have the same loss."""
        found = {}
        for folder in self.attempt_folders():
            for event in self.events(folder):
                if event["type"] == "progress":
                    key = folder.parent.name, event["step"]
                    self.assertEqual(found.setdefault(key, event["loss"]), event["loss"], key)
        return found

    def kill_at_a_checkpoint(self, known):
        """Runs the sweep until an attempt not in `known` has written a checkpoint, then kills its
        worker and the run. Returns False if the run was over first."""
        run = self.start("run", "sweep.yaml", "--slots", 2, "--retry-delay", "10ms")
        limit = time.monotonic() + 60
        while run.poll() is None and time.monotonic() < limit:
            for folder in set(self.attempt_folders()) - known:
                events = self.events(folder)
                types = {event["type"] for event in events}
                if "checkpoint" not in types or types & {"finished", "failed"}:
                    continue
                with contextlib.suppress(ProcessLookupError):
                    os.kill(events[0]["pid"], signal.SIGKILL)
                run.kill()
                run.wait()
                return True
            time.sleep(0.005)
        self.assertEqual(self.end(run).code, 0)
        return False

    def test_generated_adapters_of_two_tasks_resume_after_kills_and_predict(self):
        self.write("sweep.yaml", GENERATED)
        done = self.run_sweep()
        self.assertEqual(done.code, 0, done)
        folder, = self.attempt_folders()
        trial = folder.parent.name
        recorded = self.recorded(trial)
        self.assertEqual(len(recorded), 5, recorded)
        self.assertEqual({task for task, _ in recorded}, {"digits", "films"})
        row, = self.query("SELECT DISTINCT bls_bits, stored_bits, module_hyper_hidden FROM results")
        self.assertEqual(row, {"bls_bits": 32 * GENERATED_NUMBERS,
                               "stored_bits": 32 * GENERATED_NUMBERS, "module_hyper_hidden": 12})
        stored = self.petlab("storage", str(folder / "artifact.petl"), "--json")
        self.assertEqual(json.loads(stored.out)["stored_bits"], 32 * GENERATED_NUMBERS, stored)

        # The artifact predicts each of its tasks with the recorded numbers.
        for task in ("digits", "films"):
            predicted = json.loads(self.trainer(
                "predict", "--artifact", str(folder / "artifact.petl"), "--task", "digits.yaml",
                "--task", "films.yaml", "--task", task, "--backbone", "./own").out)
            self.assertEqual(predicted["metrics"], {metric: value for (of, metric), value
                                                    in recorded.items() if of == task})
        # Other libraries store weights of layers, which a hypernetwork does not have.
        refused = self.petlab("export", "--artifact", str(folder / "artifact.petl"), "--format",
                              "adapterhub", "--backbone", "./own", "--out", "exported",
                              program=TRAINER)
        self.assertEqual(refused.code, 1, refused)
        self.assertIn("whose hypernetwork generates the layers' weights", refused.err)

        # The same sweep, killed at checkpoints and resumed.
        losses = self.losses()
        self.assertEqual(len(losses), 120)
        whole = (folder / "artifact.petl").read_bytes()
        (self.root / "sweep.db").rename(self.root / "whole.db")
        for file in self.root.glob("sweep.db-*"):
            file.unlink()
        (self.root / "sweep.runs").rename(self.root / "whole.runs")
        kills = 0
        while kills < 3 and self.kill_at_a_checkpoint(set(self.attempt_folders())):
            kills += 1
        self.assertGreaterEqual(kills, 1)
        done = self.run_sweep()
        self.assertEqual(done.code, 0, done)
        self.assertGreaterEqual(len(self.query(
            "SELECT 1 AS one FROM attempts WHERE resume_step > 0")), 1)
        self.assertEqual(self.recorded(trial), recorded)
        self.assertEqual(self.losses(), losses)
        again = [folder / "artifact.petl" for folder in self.attempt_folders()]
        self.assertEqual([file.read_bytes() for file in again if file.exists()], [whole])

    def test_generated_adapters_for_an_encoder_are_refused_before_anything_runs(self):
        self.write("sweep.yaml", "sweep: tiny\nbase: {backbone: ./tiny, tasks: [films.yaml], "
                                 "module.kind: hyperformer++}\n")
        done = self.run_sweep()
        self.assertEqual(done.code, 2, done)
        self.assertIn("sweep.yaml:2: module.kind: found hyperformer++, expected another kind with an "
                      "encoder (bert), which has no decoder", done.err)

    def test_an_encoder_for_a_text_task_is_refused_before_anything_runs(self):
        self.write("sweep.yaml", "sweep: tiny\nbase: {backbone: ./tiny, task: digits.yaml}\n")
        done = self.run_sweep()
        self.assertEqual(done.code, 2, done)
        self.assertIn("which generates texts", done.err)


if __name__ == "__main__":
    tiny_world.main()
