#!/usr/bin/env python3
"""Writes the files of a release that every later version must open: see README.md in this folder.

usage: make.py FOLDER_OF_PROGRAMS [FOLDER]; FOLDER is by default this folder's VERSION and must not exist.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

import tiny_world  # noqa: E402
from tiny_world import TASK, TRAINER, WORDS, TinyWorld, bert_shapes, write_safetensors  # noqa: E402

BASE = """sweep: {name}
base:
  backbone: ./{backbone}
  tasks: [{tasks}]
  module: {{bottleneck: 2, rank: 2, prefix_length: 2, prefix_hidden: 4}}
  training: {{epochs: 2, batch_size: 12, learning_rate: 0.1, mask_learning_rate: 0.1}}
"""
MODULES = BASE.format(name="modules", backbone="tiny", tasks="films.yaml") + """variants:
  adapter: {}
  adapter-propetl: {module: {share: true, mask: learned}}
  adapter-only-mask: {module.mask: learned}
  lora: {module.kind: lora}
  lora-propetl: {module: {kind: lora, share: true, mask: learned}}
  prefix: {module.kind: prefix}
  prefix-propetl: {module: {kind: prefix, share: true, mask: random}}
  head: {module.kind: head_only}
  full: {module.kind: full_finetuning}
  explodes: {module.kind: full_finetuning, training: {learning_rate: 1e30, max_grad_norm: 0}}
  later: {module.kind: head_only, seed: 43}
"""
TWO_TASKS = BASE.format(name="two-tasks", backbone="tiny", tasks="films.yaml, grades.yaml") + """variants:
  or: {module: {share: true, mask: learned}}
  add: {module: {share: true, mask: learned, combine: add}}
"""
TEXTS = BASE.format(name="texts", backbone="t5", tasks="films.yaml") + """  decoding.max_tokens: 4
variants:
  adapter: {module: {share: true, mask: learned}}
  hyperformer: {module: {kind: hyperformer++, hyper_embedding: 2, hyper_hidden: 3, hyper_projected: 2}}
"""
# Both are stopped after their first checkpoint. The second is not resumed.
STOPPED = BASE.format(name="stopped", backbone="tiny", tasks="films.yaml").replace("epochs: 2, ", "") + """variants:
  resumed: {training: {steps: 6000, evaluate_every: 3000, checkpoint_every: 1000}}
  interrupted: {training: {steps: 900000, evaluate_every: 900000, checkpoint_every: 1000}}
"""
SWEEPS = {"modules": MODULES, "two-tasks": TWO_TASKS, "texts": TEXTS, "stopped": STOPPED}
T5 = {"model_type": "t5", "vocab_size": 1, "d_model": 8, "d_kv": 4, "num_heads": 2, "d_ff": 8, "num_layers": 1,
      "num_decoder_layers": 1, "dropout_rate": 0.0}
PIECES = ["<pad>", "</s>", "<unk>", "\u2581", *("\u2581" + word for word in [*WORDS, "films:"])]
# The model of SentencePiece that petlab-trainer init writes has 200 KB of normalization.
TOKENIZER = {
    "added_tokens": [{"id": id, "content": PIECES[id], "special": True, "normalized": False} for id in range(3)],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
    "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Strip", "strip_left": False, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}]},
    "post_processor": {"type": "TemplateProcessing", **{name: [
        each for text in texts for each in ({"Sequence": {"id": text, "type_id": 0}},
                                            {"SpecialToken": {"id": "</s>", "type_id": 0}})]
        for name, texts in (("single", "A"), ("pair", "AB"))}},
    "model": {"type": "Unigram", "unk_id": 2, "vocab": [[piece, -1.0] for piece in PIECES], "byte_fallback": False}}
INPUTS = "the film is very good\nbad plot\n"
# Artifacts contain the backbone's path under a checksum, so it must not name this machine.
PLACE = pathlib.Path("/tmp/petlab-release")
# Rows of this view refer to keys of one database.
INTERNAL_VIEWS = {"counted_values"}


class Release(TinyWorld):
    database = "petlab.db"

    def setUp(self):
        super().setUp()
        self.root = self.root.rename(PLACE)
        self.addCleanup(shutil.rmtree, PLACE)

    def ran(self, *words, program=tiny_world.PETLAB, code=0):
        done = self.petlab(*words, program=program)
        self.assertEqual(done.code, code, (words, done))
        return done.out

    def write_inputs(self):
        self.write_grades()
        for part in ("train", "dev", "test"):
            for task in ("films", "grades"):
                lines = (self.root / f"{task}-{part}.tsv").read_text().splitlines(True)
                self.write(f"{task}-{part}.tsv", "".join(lines[:25 if part == "train" else 7]))
        text_task = 'text_to_text: {source: "films: {text1}", targets: [bad, good]}\n'
        self.write("films.yaml", TASK + text_task)
        self.write("texts.txt", INPUTS)
        words = self.write("words.txt", "".join(f"films: the {word} is very bad\n" for word in WORDS) * 9)
        small = tiny_world.CONFIG | {"hidden_size": 8, "intermediate_size": 8}
        self.write("tiny/config.json", json.dumps(small))
        write_safetensors(self.root / "tiny/model.safetensors", bert_shapes(small))
        sizes = self.write("sizes.json", json.dumps(T5))
        self.ran("init", "--config", sizes, "--texts", words, "--vocabulary", 48, "--out", "t5", program=TRAINER)
        (self.root / "t5/spiece.model").unlink()
        self.write("t5/tokenizer.json", json.dumps(TOKENIZER))
        for name, text in SWEEPS.items():
            self.write(f"{name}.yaml", text)

    def stop_at_a_checkpoint(self, variant):
        run = self.start("run", "stopped.yaml", "--slots", 1, "--only", f"variant={variant}")
        self.until(lambda: self.query("SELECT 1 AS one FROM attempts WHERE outcome = 'open' AND checkpoint_step > 0",
                                      self.database) if (self.root / self.database).exists() else None)
        run.send_signal(signal.SIGTERM)
        done = self.end(run)
        self.assertEqual(done.code, 3, done)

    def run_everything(self):
        self.stop_at_a_checkpoint("resumed")
        self.ran("run", "stopped.yaml", "--only", "variant=resumed")
        self.stop_at_a_checkpoint("interrupted")
        self.ran("run", "modules.yaml", "--only", "seed=42", code=1)  # one trial explodes
        for name in ("two-tasks", "texts"):
            self.ran("run", f"{name}.yaml", "--on-event", "true")
        trial = {row["variant"]: row["trial_id"] for row in self.query(
            "SELECT variant, trial_id FROM sweep_trials JOIN trials ON trials.key = trial JOIN sweeps ON "
            "sweeps.key = sweep WHERE name = 'modules'", self.database)}
        self.ran("cancel", trial["later"])
        self.ran("discard", trial["lora"], "--why", "an example")
        self.ran("hide", trial["head"], "--why", "an example")
        self.ran("tag", trial["adapter"], "+good", "-check")
        self.ran("note", trial["adapter"], "an example")
        self.ran("tag", "--sweep", "modules", "+paper")
        # A variant that the sweep no longer has.
        self.write("modules.yaml", MODULES.replace("  full: {module.kind: full_finetuning}\n", ""))
        self.ran("run", "modules.yaml", "--only", "variant=adapter")

    def recorded_queries(self):
        """The rows of each view, by the SQL that selects them."""
        views = self.query("SELECT m.name AS view, group_concat('\"' || c.name || '\"', ', ') AS columns FROM "
                           "sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'view' GROUP BY 1",
                           self.database)
        queries = [f"SELECT {view['columns']} FROM {view['view']}" for view in views
                   if view["view"] not in INTERNAL_VIEWS]
        return {sql: self.query(sql, self.database) for sql in queries}

    def predictions(self):
        """What each artifact predicts, with the words of the command."""
        found = []
        for file in sorted(self.root.glob("petlab.runs/*/*/artifact.petl")):
            config = json.loads((file.parent / "trial.json").read_text())
            backbone = pathlib.Path(config["backbone_folder"]).name
            for task in (task["name"] for task in config["tasks"]):
                declared = [f"--task={each['name']}.yaml" for each in config["tasks"]]
                words = ["predict", "--artifact", str(file.relative_to(self.root)), "--backbone", f"./{backbone}",
                         *declared, "--task", task, "--input", "texts.txt"]
                lines = self.ran(*words, program=TRAINER).splitlines()
                found.append({"words": words, "lines": [json.loads(line) for line in lines]})
        return found

    def planned(self):
        """The trials of each sweep file."""
        return {name: [[trial["id"], trial["variant"]] for trial in
                       json.loads(self.ran("plan", f"{name}.yaml", "--json"))["trials"]] for name in SWEEPS}

    def sql(self):
        database = sqlite3.connect(self.root / self.database)
        pragmas = [f"PRAGMA {name} = {database.execute(f'PRAGMA {name}').fetchone()[0]};"
                   for name in ("application_id", "user_version")]
        return "\n".join([*pragmas, *database.iterdump()]) + "\n"

    def without_this_machine(self, data):
        """Replaces the names of this machine in a text. A database records positions in events.jsonl, so its
        length stays."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return data
        boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        text = text.replace(boot_id, re.sub(r"\w", "0", boot_id))
        text = text.replace(os.uname().release, "6.1.".ljust(len(os.uname().release), "0"))
        return re.sub(f"""(["']){re.escape(socket.gethostname())}(["'])""", r"\1host\2", text).encode()

    def save(self, folder):
        keep = [path for path in self.root.rglob("*") if path.is_file() and ".locks" not in path.parts]
        keep = [path for path in keep if path.relative_to(self.root).parts[0] not in
                ("home", "data", "slots", "sizes.json", "words.txt") and not path.name.startswith("petlab.db")]
        for path in keep:
            to = folder / path.relative_to(self.root)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(self.without_this_machine(path.read_bytes()))
        (folder / "database.sql").write_bytes(self.without_this_machine(self.sql().encode()))
        answers = {"queries": self.recorded_queries(), "predictions": self.predictions(), "trials": self.planned()}
        text = json.dumps(answers, indent=1).replace("ROOT/", f"{PLACE}/")  # TinyWorld.end shortened it
        (folder / "answers.json.gz").write_bytes(gzip.compress(self.without_this_machine(text.encode()), mtime=0))


def make(folder):
    release = Release()
    release.setUp()
    try:
        version = re.match(r"petlab (\S+) ", release.ran("--version"))[1]
        folder = folder or HERE / version
        if folder.exists():
            sys.exit(f"{folder}: exists; the files of a release do not change")
        release.write_inputs()
        release.run_everything()
        release.save(folder)
    finally:
        release.doCleanups()
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    print(f"{folder}: {len(sizes)} files, {sum(sizes) // 1024} KiB, the largest {max(sizes) // 1024} KiB")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None)
