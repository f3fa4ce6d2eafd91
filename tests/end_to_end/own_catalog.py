#!/usr/bin/env python3
"""Tests sweeps of workers that declare kinds, fields, metrics and tasks of their own.

usage: own_catalog.py FOLDER_OF_PROGRAMS
"""
import csv
import json
import pathlib

from scripted_world import ScriptedWorld
from tiny_world import main

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python/src"
PYTHON_WORKER = '''import petlab

CATALOG = petlab.Catalog(
    backbones=(),
    uses=("training.learning_rate",),
    kinds=[petlab.Kind("ia3"), petlab.Kind("lora", uses=["module.rank"])],
    fields=[petlab.Field("module.targets", str, "qv", values=("q", "qv")),
            petlab.Field("lm.block", int, 64, "tokens in a block", min=8, max=512),
            petlab.Field("lm.heat", float, 1.0, kinds=["ia3"])],
    metrics=[petlab.Metric("nats", "lower")],
    tasks=[petlab.DeclaredTask("letters", ["nats", "accuracy"])],
)


def train(trial: petlab.Trial) -> None:
    config = trial.config
    assert config.backbone is None and trial.backbone_folder is None
    worse = config.module.kind == "lora"
    trial.progress(1, 1)
    trial.metric("nats", config["lm.block"] / 64 + config.seed % 3 * (1.1 if worse else 1) + worse, split="test")
    trial.metric("accuracy", 0.5, split="test")
    trial.finish(bls_bits=1000 + config.seed)


petlab.Worker("decoder", version="1", numerics="1", catalog=CATALOG).run(train)
'''
SWEEP = """sweep: letters
base: {task: letters, training.learning_rate: 1e-3}
variants:
  ia3: {module.kind: ia3}
  narrow: {module: {kind: ia3, targets: q}, lm.block: 128}
  prompt: {module: {kind: lora, rank: 4}}
grid: {seed: 42..46}
"""
# The JSON has no spaces in values, so sed can read it.
BASH_WORKER = r'''#!/bin/bash
if [ "$1" = --describe ]; then
  echo '{"name": "slots", "version": "1", "protocol": 1, "numerics": "1", "catalog": {
    "backbones": [], "uses": [], "kinds": {"bandit": {}},
    "fields": {"arms.number": {"type": "integer", "default": 2, "min": 2}},
    "metrics": {"regret": {"better": "lower"}}, "tasks": {"pull": {"metrics": ["regret"]}}}}'
  exit
fi
event() {
  printf '{"v": 1, "seq": %d, "time": %s, "type": %s}\n' "$seq" "$(date +%s.%N)" "$1" >> "$folder/events.jsonl"
  seq=$((seq + 1))
}
train() {
  folder=$1 seq=0
  arms=$(sed -n 's/.*"number": *\([0-9]*\).*/\1/p' "$folder/trial.json")
  event "\"started\", \"pid\": $$, \"worker\": \"slots\", \"version\": \"1\", \"numerics\": {\"version\": \"1\"}"
  event "\"metric\", \"step\": 1, \"split\": \"test\", \"task\": \"pull\", \"name\": \"regret\", \"value\": $arms"
  event '"finished", "step": 1'
  sync -d "$folder/events.jsonl"
}
if [ "$1" = - ]; then
  while IFS= read -r line; do train "$line"; done
else
  for one; do train "$one"; done
fi
'''
BANDIT = "sweep: arms\nbase: {task: pull}\ngrid: {arms.number: 2..4}\n"


class OwnCatalog(ScriptedWorld):
    variables = {"PYTHONPATH": str(PACKAGE)}

    def setUp(self):
        super().setUp()
        self.write("decoder.py", PYTHON_WORKER)
        self.write("sweep.yaml", SWEEP)

    def ask(self, *words, code=0):
        done = self.petlab(*words)
        self.assertEqual(done.code, code, (words, done))
        return done

    def train(self, *words, code=0):
        return self.ask("run", "sweep.yaml", "--worker", "python3 decoder.py", "--quiet", *words, code=code)

    def test_every_interface_knows_the_declared_words(self):
        self.train()
        self.check_answers()
        # A database that is rebuilt from the runs folder knows them, too.
        for file in self.root.glob("sweep.db*"):
            file.unlink()
        self.ask("db", "rebuild", "--runs", "sweep.runs", "--db", "sweep.db")
        self.check_answers()

    def test_help_and_completion_know_the_declared_words(self):
        def words_of(*options):
            return self.ask("help", "fields", *options).out
        self.assertNotIn("lm.block", words_of())
        self.assertIn("lm.block", words_of("--worker", "python3 decoder.py"))
        self.assertEqual(self.ask("completion", "--words", "--", "results", "--by", "lm_b").out, "")
        self.train()
        self.assertIn("lm.block", words_of("--db", "sweep.db"))
        self.assertEqual(self.ask("completion", "--words", "--", "results", "--db", "sweep.db", "--by", "lm_b").out,
                         "lm_block\n")
        self.assertIn("lm.block=", self.ask("completion", "--words", "--", "plan", "--db", "sweep.db", "--set", "lm.").out)
        self.assertIn("only apply to petlab help fields", self.ask("help", "run", "--worker", "x", code=2).err)

    def check_answers(self):
        rows = json.loads(self.ask("results", "--where", "module.kind=ia3 and lm.block>100", "--by",
                                   "lm.block,module.targets", "--metric", "nats", "--json").out)
        self.assertEqual([(row["lm_block"], row["module_targets"], row["nats_n"]) for row in rows], [(128, "q", 5)])
        best = json.loads(self.ask("best", "--metric", "nats", "--split", "test", "--json").out)
        self.assertEqual((best[0]["variant"], best[0]["test"]), ("ia3", 1.0))
        compared = json.loads(self.ask("compare", "ia3", "prompt", "--metric", "nats", "--json").out)
        self.assertGreater(compared[0]["effect"], 1)
        self.write("table.yaml", "report: letters\ntable:\n  rows: [{each: [module_kind, lm_block]}]\n"
                                 "  columns: [{key: nats, where: {name: nats}}]\n")
        table = json.loads(self.ask("report", "table.yaml", "--format", "json").out)
        self.assertEqual(len(table["rows"]), 3)
        found = self.query("SELECT DISTINCT module_targets, lm_block, lm_heat FROM results ORDER BY 1, 2, 3")
        self.assertEqual([tuple(row.values()) for row in found], [("q", 128, 1.0), ("qv", 64, None), ("qv", 64, 1.0)])
        self.assertEqual(self.query("SELECT DISTINCT module_cross_attention AS c FROM results"), [{"c": None}])
        folder = self.root / f"tables-{len(list(self.root.glob('tables-*')))}"
        self.ask("db", "export", folder.name)
        for table in ("configuration", "results"):
            with open(folder / f"{table}.csv", encoding="utf-8", newline="") as file:
                exported = {(row["module_targets"], row["lm_block"], row["lm_heat"]) for row in csv.DictReader(file)}
            self.assertEqual(exported, {("q", "128", "1"), ("qv", "64", ""), ("qv", "64", "1")})
        trial = self.query("SELECT trial_id FROM results WHERE lm_block = 128 LIMIT 1")[0]["trial_id"]
        shown = self.ask("show", trial).out
        self.assertRegex(shown, r"lm\.heat +1\.0 +\(default\)")
        self.assertRegex(shown, r"lm\.block +128\n")
        self.assertEqual(self.query("SELECT min(bls_bits) AS bits FROM results"), [{"bits": 1042}])
        mistaken = self.ask("results", "--where", "lm.blok=3", code=2).err
        self.assertIn('did you mean "lm_block"?', mistaken)

    def test_a_run_without_the_worker_refuses_its_words(self):
        refused = self.ask("plan", "sweep.yaml", code=2).err
        self.assertIn("sweep.yaml:4: module.kind: found 'ia3'", refused)
        self.assertIn("--worker", refused)
        self.write("faulty.py", PYTHON_WORKER.replace("min=8", "min=80"))
        refused = self.ask("plan", "sweep.yaml", "--worker", "python3 faulty.py", code=1).err
        self.assertIn("catalog.fields.lm.block.default: found 64, expected a whole number from 80 to 512", refused)

    def test_a_changed_default_needs_a_new_version(self):
        self.train()
        self.write("decoder.py", PYTHON_WORKER.replace('"lm.block", int, 64', '"lm.block", int, 32'))
        refused = self.train(code=1).err
        self.assertIn("the default of lm.block is 32, but trials of this version were planned with 64", refused)
        self.write("decoder.py", PYTHON_WORKER.replace('"lm.block", int, 64', '"lm.block", int, 32').replace(
            "Catalog(", "Catalog(\n    version=2,"))
        self.train()
        self.assertEqual(self.query("SELECT count(DISTINCT trial_id) AS n FROM results"), [{"n": 30}])

    def test_two_workers_share_a_database_and_databases_merge(self):
        self.write("slots.sh", BASH_WORKER)
        self.write("arms.yaml", BANDIT)
        self.ask("run", "arms.yaml", "--worker", "bash slots.sh", "--quiet")
        best = json.loads(self.ask("best", "--split", "test", "--json").out)
        self.assertEqual((best[0]["metric"], best[0]["test"]), ("regret", 2.0))
        refused = self.ask("plan", "arms.yaml", "--worker", "bash slots.sh", "--set", "arms.number=1", code=2).err
        self.assertIn("arms.number: found 1, expected a whole number >= 2", refused)
        self.train("--db", "other.db", "--runs", "other.runs")
        self.ask("db", "merge", "other.db")
        found = self.query("SELECT module_kind, arms_number, lm_block FROM results GROUP BY 1, 2, 3 ORDER BY 1, 2, 3")
        self.assertEqual([tuple(row.values()) for row in found], [
            ("bandit", 2, None), ("bandit", 3, None), ("bandit", 4, None), ("ia3", None, 64), ("ia3", None, 128),
            ("lora", None, 64)])
        rows = json.loads(self.ask("results", "--where", "arms.number>=3", "--json").out)
        self.assertEqual(sum(row["regret_n"] for row in rows), 2)

    def test_the_schema_has_the_declared_words(self):
        schema = json.loads(self.ask("schema", "sweep", "--worker", "python3 decoder.py").out)
        self.assertEqual(schema["$defs"]["module.kind"]["enum"], ["ia3", "lora"])
        self.assertEqual(schema["$defs"]["lm.block"]["maximum"], 512)
        self.assertIn("found task", self.ask("schema", "task", "--worker", "python3 decoder.py", code=2).err)


if __name__ == "__main__":
    main()
