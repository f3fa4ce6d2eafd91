#!/usr/bin/env python3
"""Tests that examples/llama trains kinds of module that petlab does not know, is killed and resumes.

usage: llama_example.py FOLDER_OF_PROGRAMS

The exit code is 77 (skipped) without the libraries of scripts/library_venv.sh.
"""
import json
import pathlib
import subprocess

import tiny_world
from scripted_world import METRICS, ScriptedWorld

SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = SOURCE / "examples/llama"


class LlamaExample(ScriptedWorld):
    def environment(self):
        return super().environment() | {
            "PYTHONPATH": str(SOURCE / "python/src"), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false"}

    def setUp(self):
        super().setUp()
        subprocess.run([PYTHON, EXAMPLE / "make_llama.py", self.root / "llama"], check=True, cwd=self.root,
                       env=self.environment())
        self.write("sweep.yaml", (EXAMPLE / "sweep.yaml").read_text().replace("42..44", "[42]").replace(
            "task: license", "task: license, training.steps: 40, training.checkpoint_every: 5"))

    def run_words(self, *words, slots=1):
        return ["run", "sweep.yaml", "--slots", slots, "--worker", f"'{PYTHON}' '{EXAMPLE / 'worker.py'}'", *words]

    def ask(self, *words, code=0):
        done = self.petlab(*words)
        self.assertEqual(done.code, code, (words, done))
        return done

    def test_kinds_that_petlab_does_not_know(self):
        worker = self.run_words()[-1]
        self.assertIn("4 new", self.ask("plan", "sweep.yaml", "--worker", worker).out)
        self.write("mistake.yaml", (self.root / "sweep.yaml").read_text().replace("targets", "target"))
        refused = self.ask("plan", "mistake.yaml", "--worker", worker, code=2).err
        self.assertIn("mistake.yaml:6: variants.lora-all: found 'module.target', expected a field of worker llama 1 "
                      "(nearest: module.targets)", refused)
        process = self.start_scripted()
        self.until(lambda: any(event["type"] == "checkpoint" for folder in self.attempt_folders()
                               for event in self.events(folder)), 120)
        process.kill()  # the worker stops at its next checkpoint
        self.end(process, 60)
        self.assertEqual(self.end(self.start_scripted(), 300).code, 0)
        self.assertEqual(self.end(self.start_scripted("--db", "whole.db", "--runs", "whole"), 300).code, 0)
        self.assertEqual(self.query(METRICS), self.query(METRICS, "whole.db"))
        rows = json.loads(self.ask("results", "--by", "module_kind,module_targets", "--json").out)
        self.assertEqual({(row["module_kind"], row["module_targets"], row["perplexity_n"]) for row in rows},
                         {("lora", "qv", 1), ("lora", "all", 1), ("ia3", None, 1), ("prompt", None, 1)})
        best = json.loads(self.ask("best", "--metric", "perplexity", "--json").out)[0]
        self.assertEqual(best["test"], min(row["perplexity_mean"] for row in rows))
        planned = self.query("SELECT config ->> '$.module.kind' AS kind, max(bls_bits) AS bits FROM trials GROUP BY 1")
        self.assertEqual({row["kind"]: row["bits"] for row in planned},
                         {"ia3": 2 * 256 * 32, "lora": None, "prompt": 8 * 64 * 32})
        sizes = self.query("SELECT module_kind, max(bls_bits) AS bits FROM results GROUP BY 1 ORDER BY 1")
        # per layer keys and values of 64, feed-forward of 128; A and B of 7 products; 8 vectors of 64
        self.assertEqual({row["module_kind"]: row["bits"] for row in sizes},
                         {"ia3": 2 * 256 * 32, "lora": 2 * 4 * (4 * 128 + 3 * 192) * 32, "prompt": 8 * 64 * 32})


if __name__ == "__main__":
    PYTHON = tiny_world.python_with_libraries()
    tiny_world.main()
