#!/usr/bin/env python3
"""Tests unusable backbones and data: `petlab run` reports them and trains the other trials.

usage: bad_inputs.py FOLDER_OF_PROGRAMS; trains with petlab-trainer.
"""
import tiny_world
from tiny_world import CONFIG, SWEEP, TASK, TinyWorld, bert_shapes, write_safetensors


class BadInputs(TinyWorld):
    def setUp(self):
        super().setUp()
        # One trial is always good, the other uses the file that the case damages.
        self.write("good/config.json", (self.root / "tiny/config.json").read_bytes())
        self.write("good/vocab.txt", (self.root / "tiny/vocab.txt").read_bytes())
        self.write("good/model.safetensors", (self.root / "tiny/model.safetensors").read_bytes())
        for part in ("train", "dev", "test"):
            self.write(f"good-{part}.tsv", (self.root / f"films-{part}.tsv").read_bytes())
        self.write("good.yaml", TASK.replace("films", "good"))
        self.use_task("films.yaml")

    def use_task(self, task):
        self.write("sweep.yaml", SWEEP.replace("mask_learning_rate: 5e-2", "warmup_ratio: 0.1") +
                   "variants:\n  good: {backbone: ./good, task: good.yaml}\n"
                   f"  spoilt: {{task: {task}}}\n")

    def check(self, reason, fix):
        """Checks that the damaged trial fails with `reason` and is trained after `fix`, and that the
        good one is trained only once."""
        refused = self.run_sweep(slots=1)
        self.assertEqual((refused.code, refused.out), (1, ""))
        self.assertTrue(refused.err.startswith("petlab: "), refused)
        self.assertIn("\nnothing was started; fix this, or pass --keep-going to run the "
                      "trials that can run (and, once it is fixed, the rest with --rerun "
                      "failed)\n",
                      refused.err)
        self.assertFalse((self.root / "sweep.db").exists())
        self.assertIn("note: input problem: ", self.petlab("plan", "sweep.yaml").out)
        done = self.run_sweep("--keep-going", slots=1)
        spoilt, = self.query("SELECT trial_id, reason FROM attempts JOIN trials ON "
                             "trials.key = attempts.trial WHERE outcome = 'failed'")
        self.assertEqual(spoilt["reason"].replace(str(self.root), "ROOT"), reason)
        self.assertEqual(done.code, 1, done)
        self.assertEqual(done.out, "")
        self.assertIn(f"\n{spoilt['trial_id']} failed: attempt 1 failed: {reason}\n", done.err)
        self.assertTrue(done.err.endswith("1 failed\n") or "1 failed, " in done.err, done)
        states = "SELECT outcome, count(*) AS n FROM attempts GROUP BY 1 ORDER BY 1"
        self.assertEqual(self.query(states), [{"outcome": "failed", "n": 1},
                                              {"outcome": "finished", "n": 1}])
        # Without --rerun it stays failed, and the exit code is not 0.
        self.assertEqual(self.run_sweep(slots=1).code, 1)
        self.assertEqual(sum(row["n"] for row in self.query(states)), 2)
        fix()
        done = self.run_sweep("--rerun", "failed", slots=1)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query(states)[-1], {"outcome": "finished", "n": 2})

    def fix_file(self, name):
        content = (self.root / name).read_bytes()
        return lambda: self.write(name, content)

    def test_an_empty_data_file(self):
        fix = self.fix_file("films-train.tsv")
        self.write("films-train.tsv", "")
        self.check("ROOT/films-train.tsv: is empty, expected examples", fix)

    def test_an_unknown_label(self):
        fix = self.fix_file("films-dev.tsv")
        self.write("films-dev.tsv", "label\tsentence\nfine\tthe film\nsuper\tthe film\n")
        self.check("ROOT/films-dev.tsv:3: label 'super' is not known, expected one of 'poor', 'fine'",
                   fix)

    def test_an_invalid_score(self):
        self.write_grades()
        fix = self.fix_file("grades-test.tsv")
        self.write("grades-test.tsv", "grade\tsentence\n1.5\tthe film\n1,5\tthe film\n")
        self.use_task("grades.yaml")
        self.check("ROOT/grades-test.tsv:3: score '1,5' is not a finite number", fix)

    def test_text_that_is_not_utf8(self):
        fix = self.fix_file("films-train.tsv")
        self.write("films-train.tsv", b"label\tsentence\nfine\tthe film\npoor\tthe \xff film\n")
        self.check("ROOT/films-train.tsv:3: byte 10 of the line is not UTF-8 (0xFF)", fix)

    def test_a_missing_glue_file_is_reported_with_its_source(self):
        rows = "".join(f"{i}\tis it good\tthe film is {'good' if i % 3 else 'bad'}\t"
                       f"{'entailment' if i % 3 else 'not_entailment'}\n" for i in range(12))
        header = "index\tquestion\tsentence\tlabel\n"
        self.write("data/glue/QNLI/dev.tsv", header + rows)
        self.use_task("qnli")
        self.check("task qnli: glue/QNLI/train.tsv is in none of the folders ROOT/data, "
                   "ROOT/home/data; it comes from the official GLUE files, "
                   "gluebenchmark.com/tasks, unpacked to a data folder as glue/QNLI; petlab "
                   "fetch data qnli does that (set PETLAB_DATA to add a folder)",
                   lambda: self.write("data/glue/QNLI/train.tsv", header + rows))

    # With other weights or another vocabulary the trial has a new id, so nothing is rerun.
    def check_backbone(self, reason, fix=None):
        refused = self.run_sweep(slots=1)
        self.assertEqual(refused.code, 1, refused)
        self.assertTrue(refused.err.startswith(f"petlab: {reason}\nnothing was started; "), refused)
        done = self.run_sweep("--keep-going", slots=1)
        self.assertEqual(done.code, 1, done)
        self.assertIn(f" failed: attempt 1 failed: {reason}\n", done.err)
        write_safetensors(self.root / "tiny/model.safetensors", bert_shapes(CONFIG))
        if fix is not None:
            fix()
        done = self.run_sweep(slots=1)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.query("SELECT outcome, count(*) AS n FROM attempts GROUP BY 1"),
                         [{"outcome": "failed", "n": 1}, {"outcome": "finished", "n": 2}])

    def test_truncated_weights(self):
        file = self.root / "tiny/model.safetensors"
        file.write_bytes(file.read_bytes()[:-100])
        self.check_backbone("ROOT/tiny/model.safetensors: tensor "
                            "encoder.layer.1.output.LayerNorm.bias: its data end at byte 17856, "
                            "beyond the file, which holds 17756 bytes of data")

    def test_a_weight_with_a_wrong_shape(self):
        shapes = bert_shapes(CONFIG) | {"encoder.layer.1.output.dense.weight": (16, 20)}
        write_safetensors(self.root / "tiny/model.safetensors", shapes)
        self.check_backbone("ROOT/tiny/model.safetensors: tensor "
                            "encoder.layer.1.output.dense.weight: found [16, 20], expected [16, 24]")

    def test_a_vocabulary_larger_than_the_embedding(self):
        fix = self.fix_file("tiny/vocab.txt")
        with open(self.root / "tiny/vocab.txt", "a") as file:
            file.write("more\n")
        self.check_backbone("ROOT/tiny: token 'more' has id 14, must be below 14, the number of the "
                            "embedding's rows (vocab_size in config.json)", fix)


if __name__ == "__main__":
    tiny_world.main()
