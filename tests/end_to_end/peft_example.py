#!/usr/bin/env python3
"""Tests that examples/peft_worker.py trains a sweep, stops and resumes.

usage: peft_example.py FOLDER_OF_PROGRAMS

The exit code is 77 (skipped) without the libraries of scripts/library_venv.sh.
"""
import pathlib
import signal

import tiny_world
from scripted_world import METRICS, ScriptedWorld
from tiny_world import SWEEP

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LORA = SWEEP.replace("module.kind: adapter", "module.kind: lora").replace(
    "module.bottleneck: 4", "module.rank: 4")


class PeftExample(ScriptedWorld):
    def environment(self):
        return super().environment() | {
            "PYTHONPATH": str(SOURCE / "python/src"), "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

    def run_words(self, *words, slots=1):
        return ["run", "sweep.yaml", "--slots", slots, "--grace", "60s", "--worker",
                f"'{PYTHON}' '{SOURCE / 'examples/peft_worker.py'}'", *words]

    def test_it_stops_at_a_checkpoint_and_resumes_to_the_same_result(self):
        self.write("sweep.yaml", LORA.replace("epochs: 3", "epochs: 100"))
        process = self.start_scripted()
        self.until(lambda: any(event["type"] == "progress" for folder in self.attempt_folders()
                               for event in self.events(folder)), 120)
        process.send_signal(signal.SIGTERM)  # like two Ctrl-C
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
        self.assertEqual({(row["split"], row["name"]) for row in metrics},
                         {(split, name) for split in ("validation", "test")
                          for name in ("accuracy", "f1")})
        found, = self.query("SELECT DISTINCT artifact, stored_bits FROM results")
        self.assertTrue((self.root / found["artifact"]).is_file())
        # layers · (query, value) · (A, B) · 16 · 4 values of 32 bits
        self.assertEqual(found["stored_bits"], 2 * 2 * 2 * 16 * 4 * 32)

    def test_trials_of_unsupported_modules_or_fields_fail(self):
        self.write("sweep.yaml", LORA.replace("epochs: 3", "epochs: 1") + """variants:
  adapter: {module: {kind: adapter, bottleneck: 4}}
  smoothed: {training.label_smoothing: 0.1}
""")
        self.assertEqual(self.end(self.start_scripted(), 300).code, 1)
        self.assertEqual(self.query("SELECT outcome, reason FROM attempts ORDER BY reason"), [
            {"outcome": "failed", "reason": "this worker trains LoRA, unshared, unmasked, on one task"},
            {"outcome": "failed",
             "reason": "training.label_smoothing is 0.1, which this worker lacks: it is always 0.0"}])


if __name__ == "__main__":
    PYTHON = tiny_world.python_with_libraries()
    tiny_world.main()
