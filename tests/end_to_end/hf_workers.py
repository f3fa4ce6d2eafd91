#!/usr/bin/env python3
"""Tests workers that use petlab.hf with transformers' trainers, and petlab.loop with a bare loop.

usage: hf_workers.py FOLDER_OF_PROGRAMS

They train a small random Llama or T5. The exit code is 77 (skipped) without the libraries of
scripts/library_venv.sh.
"""
import math
import pathlib
import signal

import tiny_world
from scripted_world import METRICS, ScriptedWorld
from tiny_world import SWEEP

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LLAMA = '''import json, math, os, pathlib, time, torch, transformers, petlab, petlab.hf, petlab.loop

class Texts(torch.utils.data.Dataset):
    def __init__(self, seed, size):
        generator = torch.Generator().manual_seed(seed)
        self.rows = [dict.fromkeys(("input_ids", "labels"), torch.randint(20, (8,), generator=generator))
                     for _ in range(size)]
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return self.rows[i]

def llama(trial):
    transformers.set_seed(trial.config.seed)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=20, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        attention_dropout=0.1))

class Slow(transformers.TrainerCallback):
    def on_step_begin(self, *_, **__): time.sleep(float(os.environ.get("SLOW", 0)))
'''
TRAINER = LLAMA + '''
def train(trial):
    args = transformers.TrainingArguments(**petlab.hf.arguments(
        trial, eval_strategy="epoch", logging_steps=1, load_best_model_at_end=True))
    trainer = transformers.Trainer(llama(trial), args, train_dataset=Texts(1, 40), eval_dataset=Texts(2, 8),
                                   callbacks=[petlab.hf.TrialCallback(trial, perplexity=True), Slow()])
    trainer.train(resume_from_checkpoint=petlab.hf.resume_from(trial))
    trainer.evaluate(Texts(3, 8), metric_key_prefix="test")
    trial.finish()

petlab.Worker("trainer", numerics="1").run(train)
'''
SEQ2SEQ = LLAMA + '''
def train(trial):
    transformers.set_seed(trial.config.seed)
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=20, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=0))
    args = transformers.Seq2SeqTrainingArguments(**petlab.hf.arguments(
        trial, predict_with_generate=True, generation_max_length=4))
    trainer = transformers.Seq2SeqTrainer(
        model, args, train_dataset=Texts(1, 40), callbacks=[petlab.hf.TrialCallback(trial)],
        compute_metrics=lambda found: {"length": float(found.predictions.shape[1])})
    trainer.train(resume_from_checkpoint=petlab.hf.resume_from(trial))
    trainer.predict(Texts(3, 8))
    trial.finish()

petlab.Worker("seq2seq", numerics="1").run(train)
'''
LOOP = LLAMA + '''
def train(trial):
    model, steps = llama(trial), 30
    model.model.embed_tokens.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=trial.config.training.learning_rate)
    for step in petlab.loop.Loop(trial, steps, every=7, model=model, optimizer=optimizer):
        time.sleep(float(os.environ.get("SLOW", 0)))
        rows = torch.randint(20, (4, 8))
        loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        trial.progress(step, steps, loss)
    trial.checkpoint(torch.tensor(steps), {"step": torch.tensor(30), "losses": [loss, loss.bfloat16()]})
    saved = json.loads((trial.folder / "checkpoint/step-30.ckpt").read_text())
    assert saved["step"] == 30 and saved["losses"][0] == loss.item(), saved
    trial.metric("perplexity", loss.exp(), split="test")
    trial.finish()

petlab.Worker("loop", numerics="1").run(train)
'''


class HfWorkers(ScriptedWorld):
    slow = "0"

    def environment(self):
        return super().environment() | {
            "PYTHONPATH": str(SOURCE / "python/src"), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
            "SLOW": self.slow}

    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", SWEEP)

    def run_words(self, *words, slots=1):
        return ["run", "sweep.yaml", "--slots", slots, "--grace", "60s", "--worker",
                f"'{PYTHON}' '{self.root / 'worker.py'}'", *words]

    def stopped_and_resumed(self, worker):
        """The metrics of a trial that was stopped after some steps, which equal an undisturbed one's."""
        self.write("worker.py", worker)
        self.slow = "0.3"
        process = self.start_scripted()
        self.until(lambda: any(event["type"] == "progress" and event["step"] >= 6
                               for folder in self.attempt_folders() for event in self.events(folder)), 120)
        process.send_signal(signal.SIGTERM)
        self.slow = "0"
        done = self.end(process, 300)
        self.assertEqual(done.code, 3, done)
        self.assertEqual(self.outcomes(), {"stopped": 1})
        self.assertEqual(self.end(self.start_scripted(), 300).code, 0)
        again, = self.query("SELECT outcome, resume_step FROM attempts WHERE number = 2")
        self.assertEqual(again["outcome"], "finished")
        self.assertGreater(again["resume_step"], 0)
        done = self.end(self.start_scripted("--db", "whole.db", "--runs", "whole"), 300)
        self.assertEqual(done.code, 0, done)
        metrics = self.query(METRICS)
        self.assertEqual(metrics, self.query(METRICS, "whole.db"))
        return metrics

    def test_a_trainer_stops_and_resumes_to_the_same_result(self):
        metrics = self.stopped_and_resumed(TRAINER)
        # 40 examples in batches of 12, three epochs.
        self.assertEqual({(row["split"], row["step"], row["name"]) for row in metrics},
                         {(split, step, name) for split, step in (("validation", 4), ("validation", 8),
                                                                  ("validation", 12), ("test", 4))
                          for name in ("loss", "perplexity")})
        values = {(row["split"], row["step"], row["name"]): row["value"] for row in metrics}
        self.assertAlmostEqual(values["test", 4, "perplexity"], math.exp(values["test", 4, "loss"]))
        # The loss on random texts rises, so the best model is in the earlier attempt's files.
        self.assertLess(values["validation", 4, "loss"], values["validation", 8, "loss"])
        folder, = (self.root / "whole").glob("*/1")
        self.assertEqual(list(self.root.glob("*/*/*/trainer/checkpoint-*")), [])
        losses = [event["loss"] for event in self.events(folder) if event["type"] == "progress"]
        self.assertTrue(losses and None not in losses)
        # Each state of a progress bar is not a line.
        log = (folder / "log.txt").read_text()
        self.assertNotIn("\r", log)
        self.assertIn("100%|", log)
        self.assertLess(len(log.splitlines()), 40, log)

    def test_a_bare_loop_stops_and_resumes_to_the_same_result(self):
        metrics = self.stopped_and_resumed(LOOP)
        self.assertEqual([(row["split"], row["step"], row["name"]) for row in metrics], [("test", 30, "perplexity")])

    def test_a_seq2seq_trainer_reports_predictions(self):
        self.write("worker.py", SEQ2SEQ)
        done = self.end(self.start_scripted(), 300)
        self.assertEqual(done.code, 0, done)
        self.assertEqual({(row["split"], row["step"], row["name"]) for row in self.query(METRICS)},
                         {("test", 12, "loss"), ("test", 12, "length")})


if __name__ == "__main__":
    PYTHON = tiny_world.python_with_libraries()
    tiny_world.main()
