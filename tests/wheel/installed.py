#!/usr/bin/env python3
"""Tests an installed wheel: its launcher with several torches, and whether a trial gets the same
numbers as with the source build.

usage: installed.py WHEEL FOLDER_OF_PROGRAMS    after scripts/wheels.sh, which also sets up torch
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import venv

WHEEL, BUILT = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
del sys.argv[1:3]
SOURCES = pathlib.Path(__file__).resolve().parent.parent.parent
HOME = pathlib.Path(os.environ.get("PETLAB_HOME") or pathlib.Path(
    os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local/share", "petlab"))
(TORCH,) = HOME.glob("venv/lib/python3*/site-packages/torch")
MINOR = ".".join(re.search(r"'(\d+)\.(\d+)", (TORCH / "version.py").read_text()).groups())


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        venv.create(cls.folder / "env", with_pip=True)
        cls.bin = cls.folder / "env/bin"
        # The figures' package is left out: it is large, and no program of the wheel links it.
        subprocess.run([cls.bin / "pip", "install", "--quiet", "--disable-pip-version-check",
                        "--no-index", "--no-deps", WHEEL], check=True)
        (cls.site,) = cls.folder.glob("env/lib/python3*/site-packages")

    def tearDown(self):
        for name in ("torch", "elsewhere.pth"):
            (self.site / name).unlink(missing_ok=True)

    def link_torch(self):
        """Puts the torch of the set-up into the environment."""
        (self.site / "torch").symlink_to(TORCH)

    def ask(self, program, *words):
        environment = {name: value for name, value in os.environ.items()
                       if name != "LD_LIBRARY_PATH" and not name.startswith("PYTHON")}
        # Another run of this user must not keep the test waiting.
        environment["PETLAB_SLOTS"] = str(self.folder / "slots")
        return subprocess.run([self.bin / program, *words], cwd=self.folder, env=environment,
                              capture_output=True, text=True, check=False)

    def refuses(self, words):
        done = self.ask("petlab-trainer", "--describe")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, rf"\Apetlab-trainer: [^\n]*{words}[^\n]*install it with: "
                         rf"{self.bin}/python3? -m pip install 'torch==\d+\.\d+\.\*'\n\Z")

    def test_without_a_torch_the_trainer_says_what_to_install_and_petlab_works(self):
        self.refuses("this environment has no torch")
        self.assertRegex(self.ask("petlab", "--version").stdout, r"^petlab \d")
        sweep = SOURCES / "sweeps/quickstart.yaml"
        self.assertEqual(self.ask("petlab", "plan", sweep, "--db", "none.db").returncode, 0)
        doctor = self.ask("petlab", "doctor")
        self.assertEqual(doctor.returncode, 1)
        self.assertIn("-> install a torch that petlab's wheel has a trainer for", doctor.stdout)

    def test_a_torch_of_another_version_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder, "torch")
            other.mkdir()
            (other / "__init__.py").touch()
            (other / "version.py").write_text("__version__ = '2.4.1+cu121'\n")
            (self.site / "torch").symlink_to(other)
            self.refuses(r"found torch 2\.4\.1\+cu121 in .*, expected one of torch .*" + re.escape(MINOR))
            (other / "version.py").write_text("")
            self.refuses("found torch of an unknown version")

    def test_a_torch_in_the_environment_is_found_by_the_program_itself(self):
        self.link_torch()
        described = self.ask("petlab-trainer", "--describe")
        self.assertEqual(described.stderr, "")
        self.assertIn(f'"{self.site}/petlab/torch-{MINOR}/../../torch/lib/libtorch_cpu.so"',
                      described.stdout)

    def test_a_torch_elsewhere_on_pythons_path_is_found(self):
        (self.site / "elsewhere.pth").write_text(f"{TORCH.parent}\n")
        described = self.ask("petlab-trainer", "--describe")
        self.assertEqual(described.stderr, "")
        self.assertIn(f'"{TORCH}/lib/libtorch_cpu.so"', described.stdout)

    def test_programs_name_no_folder_of_the_machine_that_built_them(self):
        programs = [self.bin / name for name in ("petlab", "petlab-fetch", "petlab-trainer-check")]
        trainers = list(self.site.glob("petlab/torch-*/petlab-trainer"))
        self.assertTrue(trainers)
        for program in programs + trainers:
            content = program.read_bytes()
            for folder in (SOURCES, HOME):
                found = re.findall(re.escape(os.fsencode(folder)) + rb"/[!-~]*", content)
                self.assertEqual(found, [], program)
            dynamic = subprocess.run(["readelf", "--dynamic", program], check=True,
                                     capture_output=True, text=True).stdout
            self.assertEqual(re.findall(r"\((?:RUN|R)PATH\).*\[(.*)\]", dynamic),
                             ["$ORIGIN/../../torch/lib"] if program in trainers else [])

    def test_a_trial_has_the_numbers_of_the_source_build_to_the_last_digit(self):
        self.link_torch()
        mapped = set()
        answers = {}
        for name, programs in (("wheel", self.bin), ("source", BUILT)):
            database = self.folder / f"{name}.db"
            run = subprocess.Popen(
                [programs / "petlab", "run", SOURCES / "sweeps/quickstart.yaml", "--db", database,
                 "--quiet", "--only", "variant=propetl", "--only", "seed=42",
                 "--set", "training.epochs=1", "--set", "data.max_train_examples=64",
                 "--set", "data.max_validation_examples=64"])
            while run.poll() is None:
                if name == "wheel":
                    mapped |= self.libraries_of_workers()
                time.sleep(0.05)
            self.assertEqual(run.returncode, 0)
            answers[name] = subprocess.run(
                [programs / "petlab", "query", "--db", database, "--format", "csv",
                 "SELECT trial_id, step, split, task, name, value FROM metrics ORDER BY 1, 2, 3, 4, 5"],
                check=True, capture_output=True, text=True).stdout
        self.assertGreaterEqual(answers["wheel"].count("\n"), 5)
        self.assertEqual(answers["wheel"], answers["source"])
        self.assertEqual(sorted(path.name for path in mapped if "gomp" in path.name
                                or path.name.startswith(("libtorch_cpu", "libc10"))),
                         ["libc10.so", "libgomp.so.1", "libtorch_cpu.so"], mapped)
        self.assertEqual({path.parent for path in mapped if "torch" in path.name}, {TORCH / "lib"})

    def libraries_of_workers(self):
        found = set()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if process.joinpath("exe").readlink().is_relative_to(self.site):
                    maps = process.joinpath("maps").read_text()
                    found |= {pathlib.Path(path) for path in re.findall(r" (/\S+\.so[.0-9]*)$", maps, re.M)}
            except OSError:  # it has ended, or is another user's
                continue
        return found


if __name__ == "__main__":
    unittest.main(verbosity=2)
