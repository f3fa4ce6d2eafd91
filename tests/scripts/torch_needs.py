#!/usr/bin/env python3
"""Tests scripts/torch_needs.py on wheels with metadata only, of a CPU build and of CUDA builds.

Runs the Python in PETLAB_HOME, which needs pip. The exit code is 77 (skipped) without it.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HOME = pathlib.Path(
    os.environ.get("PETLAB_HOME")
    or pathlib.Path(os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local/share")
    / "petlab")
PYTHON = HOME / "venv/bin/python3"

CUDA_13 = [
    "filelock",
    'cuda-toolkit[cublas,cudart,cupti]==13.0.3; platform_system == "Linux"',
    'nvidia-cudnn-cu13==9.20.0.48; platform_system == "Linux"',
    'nvidia-only-elsewhere==1; platform_system == "Plan9"',
    'triton==3.7.1; platform_system == "Linux"',
    'optree>=0.13.0; extra == "optree"',
]
TOOLKIT = [
    'nvidia-cublas==13.1; extra == "cublas"',
    'nvidia-cuda-runtime==13.0.*; extra == "cudart"',
    'nvidia-cuda-cupti==13.0.*; extra == "cupti"',
]
CUDA_12 = [
    'nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux"',
    'nvidia-cuda-cupti-cu12==12.8.90; platform_system == "Linux"',
    'nvidia-cublas-cu12==12.8.4.1; platform_system == "Linux"',
]


class TorchNeeds(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        pip = subprocess.run([PYTHON, "-c", "import pip; print(pip.__path__[0])"],
                             capture_output=True, text=True, check=True).stdout.strip()
        (pathlib.Path(self.folder.name) / "pip").symlink_to(pip)

    def has(self, name, version, requires=()):
        info = pathlib.Path(self.folder.name) / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("".join(
            [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
            + [f"Requires-Dist: {line}\n" for line in requires]))

    def run_it(self, what):
        # -S: finds only the test's wheels, and not those of this machine's LibTorch.
        return subprocess.run([PYTHON, "-S", SOURCE / "scripts/torch_needs.py", what],
                              env={**os.environ, "PYTHONPATH": self.folder.name},
                              capture_output=True, text=True, check=False)

    def needs(self, what):
        result = self.run_it(what)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.splitlines()

    def test_a_cpu_build_needs_nothing(self):
        self.has("torch", "2.13.0+cpu", ["filelock", "sympy>=1.13.3"])
        self.assertEqual(self.needs("cpu"), [])
        self.assertEqual(self.needs("gpu"), [])
        self.assertEqual(self.run_it("python").returncode, 0)

    def test_a_cuda_build_needs_two_libraries_on_a_cpu_and_all_on_a_gpu(self):
        self.has("torch", "2.13.0", CUDA_13)
        self.assertEqual(self.needs("cpu"), ["cuda-toolkit[cudart,cupti]==13.0.3"])
        self.assertEqual(self.needs("gpu"), ["cuda-toolkit[cublas,cudart,cupti]==13.0.3",
                                             "nvidia-cudnn-cu13==9.20.0.48"])
        self.assertEqual(self.run_it("python").returncode, 1)

    def test_installed_libraries_are_not_needed(self):
        self.has("torch", "2.13.0", CUDA_13)
        self.has("cuda-toolkit", "13.0.3.0", TOOLKIT)
        self.has("nvidia-cuda-runtime", "13.0.96")
        self.assertEqual(self.needs("cpu"), ["cuda-toolkit[cudart,cupti]==13.0.3"])
        self.has("nvidia-cuda-cupti", "13.0.85")
        self.assertEqual(self.needs("cpu"), [])
        self.has("nvidia-cublas", "13.1")
        self.has("nvidia-cudnn-cu13", "9.20.0.48")
        self.assertEqual(self.needs("gpu"), [])
        self.assertEqual(self.run_it("python").returncode, 0)

    def test_another_version_does_not_satisfy_a_need(self):
        self.has("torch", "2.13.0", CUDA_13)
        self.has("cuda-toolkit", "12.9.1")
        self.assertEqual(self.needs("cpu"), ["cuda-toolkit[cudart,cupti]==13.0.3"])

    def test_wheels_that_list_each_library_are_understood(self):
        self.has("torch", "2.8.0", CUDA_12)
        self.assertEqual(self.needs("cpu"), ["nvidia-cuda-runtime-cu12==12.8.90",
                                             "nvidia-cuda-cupti-cu12==12.8.90"])
        self.assertEqual(len(self.needs("gpu")), 3)

    def test_other_words_are_refused(self):
        result = self.run_it("tpu")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "torch_needs.py: expected cpu, gpu or python\n")


if __name__ == "__main__":
    if not PYTHON.exists():
        print(f"skipped: {PYTHON} is not there (scripts/setup.sh makes it)")
        sys.exit(77)
    unittest.main()
