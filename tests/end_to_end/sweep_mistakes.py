#!/usr/bin/env python3
"""Tests the messages about mistakes in sweep files. usage: sweep_mistakes.py FOLDER_OF_PROGRAMS"""
import tiny_world
from tiny_world import SWEEP, VARIANTS, TinyWorld


class SweepMistakes(TinyWorld):
    def test_five_mistakes_are_five_lines_and_exit_code_2(self):
        self.write("sweep.yaml", """sweep: mistakes
base:
  backbone: ./tiny
  task: movie-polarty
  module.kind: adaptor
  training: {epochs: three, lerning_rate: 1e-4}
gird:
  seed: [1, 2]
""")
        wanted = """\
petlab: sweep.yaml:4: task: found 'movie-polarty', expected the name of a task, or of a .yaml file \
that declares one (nearest: movie-polarity)
sweep.yaml:5: module.kind: found 'adaptor', expected adapter, lora, prefix, full_finetuning, \
head_only or hyperformer++ (nearest: adapter)
sweep.yaml:6: base: found 'training.lerning_rate', expected a field of a trial (nearest: \
training.learning_rate)
sweep.yaml:6: training.epochs: found 'three', expected a whole number from 1 to 1000000000
sweep.yaml:7: sweep file: found 'gird', expected a section: sweep, about, base, variants, zip, search, \
grid, when, exclude, stop_early (nearest: grid)
"""
        for command in ("plan", "run"):
            with self.subTest(command):
                done = self.petlab(command, "sweep.yaml")
                self.assertEqual(done.err, wanted)
                self.assertEqual(done.out, "")
                self.assertEqual(done.code, 2)
                self.assertFalse((self.root / "sweep.db").exists())
                self.assertFalse((self.root / "sweep.runs").exists())

    def test_errors_about_invalid_yaml_have_a_line(self):
        self.write("sweep.yaml", "sweep: [\n")
        done = self.petlab("run", "sweep.yaml")
        self.assertEqual(done.err, "petlab: sweep.yaml:2: YAML: found a syntax error (end of "
                                   "sequence flow not found), expected YAML\n")
        self.assertEqual(done.code, 2)

    def test_a_plan_touches_nothing(self):
        self.write("sweep.yaml", SWEEP + VARIANTS)
        before = sorted(self.root.rglob("*"))
        done = self.petlab("plan", "sweep.yaml")
        self.assertEqual(done.code, 0, done)
        self.assertIn("sweep tiny: 4 trials\n", done.out)
        self.assertRegex(done.out, r"\n[0-9a-f]{16}  \S+ +\S+, seed \d+  new +never tried\n")
        made = [path for path in sorted(self.root.rglob("*")) if path not in before]
        # Only the cache of file digests is written.
        self.assertTrue(all(self.root / "home/cache" in (path, *path.parents) for path in made),
                        made)

    def test_a_missing_backbone_is_reported_before_anything_starts(self):
        self.write("sweep.yaml", SWEEP.replace("./tiny", "./tinny"))
        for command in ("plan", "run"):
            with self.subTest(command):
                done = self.petlab(command, "sweep.yaml")
                self.assertEqual(done.err, "petlab: sweep.yaml:3: backbone ROOT/tinny: the "
                                           "folder ROOT/tinny with config.json and weights "
                                           "does not exist\n")
                self.assertEqual(done.code, 2)
        self.write("sweep.yaml", SWEEP)
        (self.root / "tiny/model.safetensors").unlink()
        done = self.petlab("run", "sweep.yaml")
        self.assertEqual(done.err, "petlab: sweep.yaml:3: ROOT/tiny: found no weights, expected "
                                   "model.safetensors, pytorch_model.bin or the index of one in "
                                   "shards\n")
        self.assertEqual(done.code, 2)


if __name__ == "__main__":
    tiny_world.main()
