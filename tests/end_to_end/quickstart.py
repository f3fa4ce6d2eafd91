#!/usr/bin/env python3
"""Tests `petlab quickstart` with the scripted worker in place of petlab-trainer, and with samples that exist.

usage: quickstart.py FOLDER_OF_PROGRAMS

A script in place of the environment's petlab-python writes the samples; tests/scripts/samples.py tests the
download.
"""
import shutil
import signal
import subprocess
import sys

import learn_pages
import tiny_world
from scripted_world import WORKER, ScriptedWorld

# Records its call. For the samples, it copies them; all else is done by Python itself.
PYTHON = """#!/bin/sh
case "$1" in
*/samples.py)
  echo "$2 $3" >> "{root}/calls"
  test ! -e "{root}/refuse" || {{ echo "petlab: refused" >&2; exit 1; }}
  while test -e "{root}/wait"; do sleep 0.02; done
  cp -R "{root}/samples/." "$2"
  echo "== samples"
  exit ;;
esac
exec {python} "$@"
"""
SLOW = """sweep: quickstart
base: {backbone: minilm, task: movie-polarity, module.kind: adapter, user: {gate: GATE, checkpoint_every: 1}}
variants:
  vanilla: {module.bottleneck: 4}
  propetl: {module.bottleneck: 8}
"""
BUILD = "scripts/setup.sh && scripts/build.sh release build it with LibTorch"


class Quickstart(ScriptedWorld):
    def setUp(self):
        super().setUp()
        (self.root / "bin").mkdir()
        self.program = shutil.copy(tiny_world.PETLAB, self.root / "bin/petlab")
        shutil.copy(WORKER, self.root / "bin/petlab-trainer")
        self.install_python()
        learn_pages.write_backbone(self.root / "samples/models/minilm")
        learn_pages.write_snippets(self.root / "samples/data/snippets")

    def install_python(self):
        text = PYTHON.format(root=self.root, python=sys.executable)
        self.write("bin/petlab-python", text).chmod(0o755)

    def environment(self):
        inherited = super().environment()
        del inherited["PETLAB_DATA"]
        return inherited | {"PATH": "/usr/bin:/bin"}

    def quickstart(self, *words, code=0):
        done = self.petlab("quickstart", *words, program=self.program)
        self.assertEqual(done.code, code, done)
        return done

    def calls(self):
        file = self.root / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def table(self, done):
        return done.out[done.out.index("== The table"):]

    def test_it_trains_and_reports_and_a_second_call_trains_nothing(self):
        # Neither the database of a parent folder nor PETLAB_DB (sweep.db) is used.
        self.write("petlab.db", "")
        done = self.quickstart()
        self.assertEqual(self.calls(), [f"{self.root}/home petlab"])
        self.assertTrue(done.out.startswith(
            "== samples\n== Running petlab-quickstart/quickstart.yaml (a few minutes; Ctrl-C stops it, the "
            "same command resumes it)\n"), done)
        self.assertIn("sweep quickstart: 24 of 24 trials done\n", done.out)
        self.assertIn("wrote petlab-quickstart/quickstart.html\n", done.out)
        self.assertTrue(done.out.endswith(
            "== The page with both: ROOT/petlab-quickstart/quickstart.html\n"), done)
        folder = self.root / "petlab-quickstart"
        self.assertLessEqual({"petlab.db", "petlab.runs", "quickstart.yaml", "quickstart.html"},
                             {path.name for path in folder.iterdir()})
        self.assertEqual((folder / "quickstart.yaml").read_text(),
                         (learn_pages.SOURCE / "sweeps/quickstart.yaml").read_text())
        self.assertEqual((self.root / "petlab.db").read_text(), "")
        self.assertFalse((self.root / "sweep.db").exists())
        attempts = self.attempt_folders("petlab-quickstart/petlab.runs")
        again = self.quickstart()
        self.assertEqual(self.table(again), self.table(done))
        self.assertEqual(self.attempt_folders("petlab-quickstart/petlab.runs"), attempts)

    def test_an_edited_sweep_file_in_another_folder_is_used(self):
        edited = SLOW.replace("user: {gate: GATE, checkpoint_every: 1}", "seed: 7")
        for folder in ("new/place", "-dash"):
            file = self.write(f"{folder}/quickstart.yaml", edited)
            done = self.quickstart(f"--in={folder}")
            self.assertIn("sweep quickstart: 2 of 2 trials done\n", done.out)
            self.assertEqual(file.read_text(), edited)
            self.assertTrue(done.out.endswith(f"== The page with both: ROOT/{folder}/quickstart.html\n"), done)

    def test_without_a_trainer_nothing_is_downloaded(self):
        trainer = self.root / "bin/petlab-trainer"
        trainer.unlink()
        python = self.root / "bin/petlab-python"
        with_pip = "install a torch that petlab's wheel has a trainer for"
        missing = "petlab: petlab-trainer is neither next to petlab nor on PATH; "
        self.assertEqual(self.quickstart(code=1).err, f"{missing}{with_pip}\n")
        self.write("bin/petlab-trainer", "#!/bin/sh\necho no torch here >&2\nexit 1\n").chmod(0o755)
        broken = ("petlab: petlab-trainer cannot run: ROOT/bin/petlab-trainer --describe ended with exit code "
                  "1: no torch here; ")
        self.assertEqual(self.quickstart(code=1).err, f"{broken}{with_pip}\n")
        python.unlink()
        self.assertEqual(self.quickstart(code=1).err, f"{broken}{BUILD}\n")
        trainer.unlink()
        self.assertEqual(self.quickstart(code=1).err, f"{missing}{BUILD}\n")
        self.assertEqual(self.calls(), [])
        self.assertFalse((self.root / "petlab-quickstart").exists())

    def test_missing_requirements_are_named(self):
        self.write("refuse", "")
        self.assertEqual(self.quickstart(code=1).err, "petlab: refused\n")
        (self.root / "bin/petlab-python").unlink()
        self.assertEqual(self.quickstart(code=1).err,
                         "petlab: ROOT/home/venv/bin/python3 is missing; scripts/setup.sh installs it\n")
        self.write("file", "")
        self.assertEqual(self.quickstart("--in", "file", code=1).err,
                         "petlab: file: cannot create the folder: Not a directory; name another with --in\n")
        self.assertFalse((self.root / "petlab-quickstart/petlab.db").exists())

    def test_the_python_of_the_set_up_is_isolated(self):
        (self.root / "bin/petlab-python").unlink()
        # Takes the place of the interpreter, after its option.
        text = PYTHON.format(root=self.root, python=sys.executable).replace(
            "case", 'test "$1" = -I || exit 5\nshift\ncase', 1)
        self.write("home/venv/bin/python3", text).chmod(0o755)
        self.quickstart()
        self.assertEqual(self.calls(), [f"{self.root}/home petlab"])

    def test_a_missing_drawing_tool_is_named_for_this_installation(self):
        if subprocess.run([sys.executable, "-c", "import vl_convert"], capture_output=True).returncode == 0:
            self.skipTest("this Python has vl-convert")
        done = self.quickstart()
        fix = "vl-convert-python is missing; install vl-convert-python in the environment of ROOT/bin/petlab-python"
        self.assertIn(f"petlab: SVG, PDF and PNG are not drawn: {fix} (--format vega", done.err)
        page = (self.root / "petlab-quickstart/quickstart.html").read_text()
        self.assertIn(fix.replace("ROOT", str(self.root)), page)

    def test_ctrl_c_ends_the_download(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            gate = self.write("wait", "")
            before = len(self.calls())
            process = self.start("quickstart", program=self.program)
            self.until(lambda: len(self.calls()) > before)
            process.send_signal(number)
            done = self.end(process)
            self.assertEqual((done.code, done.err), (3, "interrupted; run the same command to resume\n"))
            gate.unlink()
        self.assertFalse((self.root / "home/models").exists())
        self.quickstart()

    def test_ctrl_c_ends_the_run_and_the_same_command_resumes(self):
        gate = self.root / "gate"
        self.write("petlab-quickstart/quickstart.yaml", SLOW.replace("GATE", str(gate)))
        messages = self.root / "messages"
        with open(messages, "wb") as stderr:
            process = self.start("quickstart", program=self.program, stderr=stderr)
        process.messages = messages
        self.until(lambda: self.attempt_folders("petlab-quickstart/petlab.runs"))
        self.interrupt(process, times=2)
        done = self.end(process)
        self.assertEqual(done.code, 3, done)
        self.assertIn("interrupted; run the same command to resume\n", done.err)
        self.assertNotIn("== The table", done.out)
        gate.touch()
        self.assertIn("sweep quickstart: 2 of 2 trials done\n", self.quickstart().out)


if __name__ == "__main__":
    tiny_world.main()
