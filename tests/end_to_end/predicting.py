#!/usr/bin/env python3
"""Tests petlab-trainer predict and forward, and trials of several tasks from sweep to prediction.

usage: predicting.py FOLDER_OF_PROGRAMS
"""
import json
import os
import pathlib
import resource
import shutil
import struct
import zlib

import tiny_world
from tiny_world import CONFIG, TASK, TRAINER, TinyWorld

GOLDEN = pathlib.Path(os.environ.get(
    "PETLAB_GOLDEN_DIR", pathlib.Path(__file__).resolve().parents[3] / "shared/golden"))
FORMATS = {"F32": "f", "I64": "q"}
SWEEP = """sweep: tiny
base:
  backbone: ./tiny
  tasks: [films.yaml, grades.yaml]
  module: {kind: adapter, share: true, mask: learned, bottleneck: 4, sparsity_ratio: 0.3}
  training: {epochs: 3, batch_size: 12, learning_rate: 5e-3, mask_learning_rate: 5e-2}
grid:
  seed: [1, 2]
"""


def read_safetensors(file):
    """Returns (shape, flat values) by name."""
    data = file.read_bytes()
    size, = struct.unpack_from("<Q", data)
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            kind = FORMATS[entry["dtype"]]
            count = (end - begin) // struct.calcsize(kind)
            found[name] = (entry["shape"],
                           struct.unpack_from(f"<{count}{kind}", data, 8 + size + begin))
    return found


def write_safetensors(file, tensors):
    """Writes tensors, given as (dtype, shape, flat values) by name."""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Predicting(TinyWorld):
    def setUp(self):
        super().setUp()
        self.write_grades()

    def train(self, text):
        """Runs the sweep and returns the folder of each attempt."""
        self.write("sweep.yaml", text)
        done = self.run_sweep()
        self.assertEqual(done.code, 0, done)
        return self.attempt_folders()

    def trainer(self, *words, code=0):
        done = self.petlab(*words, program=TRAINER)
        self.assertEqual(done.code, code, done)
        return done

    def lines(self, *words):
        return [json.loads(line) for line in self.trainer(*words).out.splitlines()]

    def test_a_trial_of_two_tasks_predicts_the_values_in_the_database(self):
        d, bottleneck, layers, tasks = CONFIG["hidden_size"], 4, CONFIG["num_hidden_layers"], 2
        folders = self.train(SWEEP)
        self.assertEqual(len(folders), 2)
        for folder in folders:
            artifact = folder / "artifact.petl"
            # Storage has L + T masks: one for each layer and each task.
            weights = 2 * d * bottleneck
            storage = json.loads(self.petlab("storage", artifact, "--json").out)
            self.assertEqual(storage["bls_bits"], 32 * (weights + d + bottleneck)
                             + weights * (layers + tasks))
            self.assertEqual(storage["stored_bits"], storage["bls_bits"])
            # The metrics of both tasks select the step, so both have the same one.
            for split in ("validation", "test"):
                results = self.lines("predict", "--artifact", artifact, "--task", "grades.yaml",
                                     "--task", "films.yaml", "--split", split)
                self.assertEqual([row["task"] for row in results], ["films", "grades"])
                self.assertEqual(len({row["step"] for row in results}), 1)
                for row in results:
                    recorded = {r["name"]: r["value"] for r in self.query(
                        f"SELECT name, value FROM results WHERE trial_id = "
                        f"'{folder.parent.name}' AND split = '{split}' AND task = "
                        f"'{row['task']}' AND step = {row['step']} AND name != 'loss'")}
                    self.assertEqual(len(recorded), 2)
                    self.assertEqual(row["metrics"], recorded)
        # Each step has a loss: both tasks were trained.
        losses = {event["loss"] for event in self.events(folders[0])
                  if event["type"] == "progress"}
        self.assertEqual(len(losses), 3 * (80 // 12 + 1))
        refused = self.trainer("predict", "--artifact", artifact, "--input", "texts.txt", code=2)
        self.assertEqual(refused.err, "petlab-trainer: --input needs one task, named with --task: "
                                      "found films, grades\n")
        # One task can be selected by name, for its data and for the user's texts.
        self.write("texts.txt", "the film is good\nthe plot is bad\n")
        words = ["predict", "--artifact", artifact, "--task", "grades.yaml", "--task", "grades"]
        row, = self.lines(*words, "--task", "films.yaml")
        self.assertEqual(row["task"], "grades")
        for line in self.lines(*words, "--input", "texts.txt"):
            self.assertEqual(list(line), ["score"])

    def test_a_trial_in_bfloat16_predicts_in_bfloat16(self):
        self.variables = {"PETLAB_EMULATE_BF16": "1"}
        folder, = self.train(SWEEP.replace("tasks: [films.yaml, grades.yaml]", "task: grades.yaml")
                             .replace("epochs: 3", "epochs: 3, compute: bf16")
                             .replace("[1, 2]", "[1]"))
        row, = self.lines("predict", "--artifact", folder / "artifact.petl", "--task", "grades.yaml")
        recorded = {r["name"]: r["value"] for r in self.query(
            "SELECT name, value FROM results WHERE split = 'test' AND training_compute = 'bf16'")}
        self.assertEqual(row["metrics"], recorded)
        numerics, = self.query("SELECT numerics FROM attempts")
        self.assertEqual(json.loads(numerics["numerics"])["compute"], "bf16")

    def test_predictions_for_a_file_equal_those_for_the_tasks_texts(self):
        folder, = self.train(SWEEP.replace("tasks: [films.yaml, grades.yaml]", "task: films.yaml")
                             .replace("[1, 2]", "[1]"))
        artifact = folder / "artifact.petl"
        rows = [line.split("\t") for line in
                (self.root / "films-test.tsv").read_text().splitlines()[1:]]
        self.write("texts.txt", "".join(text + "\r\n" for _, text in rows))
        # The artifact has the labels, so no declaration is needed.
        for words in ((), ("--task", "films.yaml")):
            found = self.lines("predict", "--artifact", artifact, "--input", "texts.txt", *words)
            self.assertEqual(len(found), len(rows))
            for row in found:
                best = max((0, 1), key=row["logits"].__getitem__)
                self.assertEqual(row["label"], ["poor", "fine"][best])
        right = sum(row["label"] == label for row, (label, _) in zip(found, rows))
        own, = self.lines("predict", "--artifact", artifact, "--task", "films.yaml")
        self.assertAlmostEqual(own["metrics"]["accuracy"], right / len(rows), places=12)
        # A tab separates the texts of a pair.
        self.write("pairs.txt", "the film\tis good\nthe film is good\n")
        pair, whole = self.lines("predict", "--artifact", artifact, "--input", "pairs.txt")
        self.assertNotEqual(pair["logits"], whole["logits"])

    def test_a_score_is_predicted_for_each_line(self):
        folder, = self.train(SWEEP.replace("tasks: [films.yaml, grades.yaml]", "task: grades.yaml")
                             .replace("[1, 2]", "[1]"))
        self.write("texts.txt", "the film is good good\nthe film is bad\n")
        found = self.lines("predict", "--artifact", folder / "artifact.petl", "--input",
                           "texts.txt")
        self.assertEqual([set(row) for row in found], [{"score"}, {"score"}])
        self.assertNotEqual(found[0], found[1])

    def test_texts_that_cannot_be_read_are_refused_by_file_and_line(self):
        folder, = self.train(SWEEP.replace("tasks: [films.yaml, grades.yaml]", "task: films.yaml")
                             .replace("[1, 2]", "[1]"))
        (self.root / "texts").mkdir()
        self.write("texts.txt", b"the film is good\nthe film is g\xf6d\n")
        for name, wanted in (("texts", "texts: is a folder, must be a text file"),
                             ("texts.txt", "texts.txt:2: byte 14 of the line is not UTF-8"),
                             ("none.txt", "none.txt: cannot be opened")):
            refused = self.trainer("predict", "--artifact", folder / "artifact.petl", "--input",
                                   name, code=1)
            self.assertEqual((refused.out, refused.err), ("", f"petlab-trainer: {wanted}\n"))
        with open(self.root / "texts.txt", "rb") as texts:
            refused = self.end(self.start("tokenize", "--backbone", "./tiny", program=TRAINER,
                                          stdin=texts))
        self.assertEqual(refused.code, 2)
        self.assertEqual(refused.err, "petlab-trainer: line 2: byte 14 of the text is not UTF-8 "
                                      "(0xF6)\n")
        directory = os.open(self.root / "texts", os.O_RDONLY)
        self.addCleanup(os.close, directory)
        refused = self.end(self.start("tokenize", "--backbone", "./tiny", program=TRAINER,
                                      stdin=directory))
        self.assertEqual((refused.code, refused.err),
                         (1, "petlab-trainer: standard input: cannot be read completely\n"))

    def test_another_task_than_the_artifacts_is_refused(self):
        folder, = self.train(SWEEP.replace("tasks: [films.yaml, grades.yaml]", "task: films.yaml")
                             .replace("[1, 2]", "[1]"))
        words = ("predict", "--artifact", folder / "artifact.petl")
        self.assertEqual(self.trainer(*words, code=2).err,
                         "petlab-trainer: task films is not built in: name its declaration with "
                         "--task\n")
        self.assertEqual(self.trainer(*words, "--task", "grades.yaml", code=2).err,
                         "petlab-trainer: --task grades.yaml declares grades, must be a task of "
                         "the artifact: films\n")
        # With labels in another order, outputs would get the wrong labels.
        for labels, shown in (("labels: [fine, poor]\n", "fine, poor"),
                              ("labels: [poor, fair, fine]\n", "poor, fair, fine")):
            self.write("turned.yaml", TASK.replace("labels: [poor, fine]\n", labels)
                       .replace("accuracy, f1", "accuracy"))
            for more in ((), ("--input", "films.yaml")):
                self.assertEqual(self.trainer(*words, "--task", "turned.yaml", *more, code=2).err,
                                 f"petlab-trainer: --task turned.yaml has the labels {shown}, "
                                 "must have those of the artifact: poor, fine\n")

    def test_ambiguous_adapterhub_files_are_refused(self):
        folder, = self.train(SWEEP.replace("tasks: [films.yaml, grades.yaml]", "task: films.yaml")
                             .replace("[1, 2]", "[1]"))
        exported = ("export", "--artifact", folder / "artifact.petl", "--format", "adapterhub",
                    "--out", "out")
        imported = ("import", "--format", "adapterhub", "--from", "out", "--backbone", "./tiny",
                    "--out", "in.petl")
        self.trainer(*exported)
        self.trainer(*exported)
        self.trainer(*imported)
        # Readers would prefer these to the .bin files.
        for older, newer in (("adapter.safetensors", "pytorch_adapter.bin"),
                             ("model_head.safetensors", "pytorch_model_head.bin")):
            file = self.write(f"out/{older}", "")
            before = (self.root / "out" / newer).stat().st_mtime_ns
            self.assertEqual(self.trainer(*exported, code=1).err,
                             f"petlab-trainer: out/{older}: exists, and would be read instead "
                             f"of the exported {newer}: remove it, or export to another "
                             f"folder\n")
            self.assertEqual((self.root / "out" / newer).stat().st_mtime_ns, before)
            file.unlink()
        head = self.root / "out/head_config.json"
        fields = json.loads(head.read_text())
        self.assertEqual(fields["config"]["label2id"], {"poor": 0, "fine": 1})
        for labels, shown in (({"poor": 0}, '{"poor":0}'),
                              ({"a": 0, "b": 1, "c": 2}, '{"a":0,"b":1,"c":2}'),
                              ({"a": 1, "b": 1}, '{"a":1,"b":1}')):
            head.write_text(json.dumps(
                fields | {"config": fields["config"] | {"label2id": labels}}))
            self.assertEqual(self.trainer(*imported, code=1).err,
                             f"petlab-trainer: out/head_config.json: config: label2id is {shown}, "
                             "must be a label for each of the head's outputs, 0 to 1\n")
        head.unlink()
        for name in ("pytorch_model_head.bin", "model_head.safetensors"):
            (self.root / "out/pytorch_model_head.bin").rename(self.root / "out" / name)
            self.assertEqual(self.trainer(*imported, code=1).err,
                             f"petlab-trainer: out/head_config.json: is missing, must describe "
                             f"the contents of {name} next to it\n")

    def test_other_labels_than_the_built_in_tasks_are_refused(self):
        folder, = self.train(SWEEP.replace("tasks: [films.yaml, grades.yaml]", "task: films.yaml")
                             .replace("[1, 2]", "[1]"))
        self.trainer("export", "--artifact", folder / "artifact.petl", "--format", "adapterhub",
                     "--out", "out")
        head = self.root / "out/head_config.json"
        head.write_text(head.read_text().replace("poor", "LABEL_0").replace("fine", "LABEL_1"))
        self.trainer("import", "--format", "adapterhub", "--from", "out", "--backbone", "./tiny",
                     "--out", "in.petl", "--task", "cola")
        self.write("texts.txt", "the film is good\n")
        words = ("predict", "--artifact", "in.petl", "--input", "texts.txt")
        row, = self.lines(*words)
        self.assertIn(row["label"], ("0", "1"))
        # The same artifact with its labels reversed.
        data = bytearray((self.root / "in.petl").read_bytes())
        at = data.index(b'["0","1"]')
        data[at:at + 9] = b'["1","0"]'
        sections, header = struct.unpack_from("<IQ", data, 12)
        struct.pack_into("<I", data, 24, zlib.crc32(data[32:32 + 24 * sections + header]))
        self.write("in.petl", bytes(data))
        self.assertEqual(self.trainer(*words, code=2).err,
                         "petlab-trainer: the built-in task cola has the labels 0, 1, must have "
                         "those of the artifact: 1, 0\n")

    def test_another_backbone_than_the_artifacts_is_refused(self):
        folder, = self.train(SWEEP.replace("tasks: [films.yaml, grades.yaml]", "task: films.yaml")
                             .replace("[1, 2]", "[1]"))
        artifact = folder / "artifact.petl"
        self.write("texts.txt", "the film is good\n")
        commands = (("predict", "--artifact", artifact, "--input", "texts.txt"),
                    ("export", "--artifact", artifact, "--format", "adapterhub", "--out", "out"))
        for words in commands:
            self.trainer(*words)
        shutil.rmtree(self.root / "out")
        weights = self.root / "tiny/model.safetensors"
        shutil.copytree(self.root / "tiny", self.root / "own")
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        weights.write_bytes(data)
        for words in commands:
            refused = self.trainer(*words, code=1)
            self.assertRegex(refused.err, "^petlab-trainer: .*tiny: the backbone's digest is "
                                          "sha256:[0-9a-f]{64}, must be sha256:[0-9a-f]{64}, which "
                                          "the artifact was trained on\n$")
            self.trainer(*words, "--backbone", "./own")

    def test_forward_writes_every_hidden_state_of_a_golden_model(self):
        models = [folder for folder in sorted((GOLDEN / "models").glob("*"))
                  if (folder / "expected.safetensors").exists()
                  and json.loads((folder / "config.json").read_text())["model_type"]
                  in ("bert", "roberta")]
        if not models:
            self.skipTest(f"no golden models in {GOLDEN}")
        for model in models:
            self.trainer("forward", "--backbone", model, "--inputs",
                         model / "expected.safetensors", "--out", "out.safetensors")
            found = read_safetensors(self.root / "out.safetensors")
            wanted = read_safetensors(model / "expected.safetensors")
            described = json.loads((model / "expected.json").read_text())["tensors"]
            layers = json.loads((model / "config.json").read_text())["num_hidden_layers"]
            self.assertEqual(sorted(found), [f"hidden_states.{i}" for i in range(layers + 1)])
            mask = wanted["attention_mask"][1]
            for name, (shape, values) in found.items():
                self.assertEqual(shape, wanted[name][0])
                width = shape[-1]
                for i, (ours, theirs) in enumerate(zip(values, wanted[name][1])):
                    if mask[i // width] == 0:
                        self.assertEqual(ours, 0)
                    elif abs(ours - theirs) > described[name]["atol"] + described[name]["rtol"] * abs(theirs):
                        self.fail(f"{model.name} {name} at {i}: {ours}, expected {theirs}")
        print(f"{len(models)} golden models", flush=True)

    def test_padding_changes_no_other_token_and_bad_inputs_are_refused(self):
        def inputs(ids, mask, **more):
            rows = len(ids)
            tensors = {"input_ids": ("I64", [rows, len(ids[0])], sum(ids, [])),
                       "attention_mask": ("I64", [rows, len(mask[0])], sum(mask, []))}
            write_safetensors(self.root / "in.safetensors", tensors | more)
            return ("forward", "--backbone", "./tiny", "--inputs", "in.safetensors", "--out",
                    "out.safetensors")

        self.trainer(*inputs([[2, 5, 6, 3], [2, 7, 3, 0]], [[1, 1, 1, 1], [1, 1, 1, 0]]))
        first = read_safetensors(self.root / "out.safetensors")
        self.trainer(*inputs([[2, 5, 6, 3], [2, 7, 3, 9]], [[1, 1, 1, 1], [1, 1, 1, 0]]))
        self.assertEqual(read_safetensors(self.root / "out.safetensors"), first)
        self.trainer(*inputs([[2, 7, 3]], [[1, 1, 1]]))
        alone = read_safetensors(self.root / "out.safetensors")
        d = CONFIG["hidden_size"]
        for name, (_, values) in alone.items():
            for ours, theirs in zip(values, first[name][1][4 * d:]):
                self.assertAlmostEqual(ours, theirs, places=5)
        alike = "input_ids, attention_mask and token_type_ids must be (sequences, length), all alike"
        for ids, mask, types, wanted in (
                ([[2, 99, 3]], [[1, 1, 1]], None, "input_ids holds 99, must be from 0 to 13"),
                ([[2, 5, 3]], [[0, 0, 0]], None, "row 0 of attention_mask has no 1"),
                ([[2, 5, 3]], [[1, 1]], None, alike),
                ([[2, 5, 3]], [[1, 1, 1]], [0, 2, 0],
                 "token_type_ids holds 2, must be from 0 to 1")):
            more = {} if types is None else {"token_type_ids": ("I64", [1, 3], types)}
            refused = self.trainer(*inputs(ids, mask, **more), code=2)
            self.assertEqual(refused.err, f"petlab-trainer: {wanted}\n")
        write_safetensors(self.root / "in.safetensors", {"input_ids": ("I64", [1, 1], [2])})
        refused = self.trainer("forward", "--backbone", "./tiny", "--inputs", "in.safetensors",
                               "--out", "out.safetensors", code=1)
        self.assertIn("in.safetensors: ", refused.err)
        self.assertIn("attention_mask", refused.err)

    def test_too_little_memory_is_one_line(self):
        count, length = 150_000, CONFIG["max_position_embeddings"]
        size = 8 * count * length
        header = {name: {"dtype": "I64", "shape": [count, length], "data_offsets": [at, at + size]}
                  for name, at in (("input_ids", 0), ("attention_mask", size))}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(self.root / "in.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for value in (2, 1):
                file.write(struct.pack("<q", value) * (count * length))
        of_libtorch = 0
        for mebibytes in range(800, 4000, 200):
            limit = (mebibytes << 20, mebibytes << 20)
            done = self.petlab("forward", "--backbone", "./tiny", "--inputs", "in.safetensors",
                               "--out", "out.safetensors", program=TRAINER,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
            if done.code == 0:
                break
            if "error while loading shared libraries" in done.err:
                continue
            self.assertEqual(done.code, 1, done)
            self.assertRegex(done.err, r"\Apetlab-trainer: [^\n]*memory[^\n]*\n\Z")
            of_libtorch += "can't allocate memory" in done.err
        self.assertGreater(of_libtorch, 0)


if __name__ == "__main__":
    tiny_world.main()
