#!/usr/bin/env python3
"""Runs sacrebleu's own tests on `petlab score`: its repository's test/, with shim/ instead of the package.

usage: own_tests.py CHECKOUT FOLDER_OF_PROGRAMS   (a checkout of github.com/mjpost/sacrebleu; Python with pytest)

test_api.py and test_dataset.py test its downloads of test sets, which petlab does not have, and are left out.
Exit code 77 (skipped) without a checkout or pytest.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys

LEFT_OUT = ("test_api.py", "test_dataset.py")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    checkout, programs = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    if not (checkout / "test/test_bleu.py").is_file() or importlib.util.find_spec("pytest") is None:
        print(f"skipped: {checkout} is no checkout of sacrebleu, or this Python has no pytest")
        sys.exit(77)
    tests = sorted(path for path in (checkout / "test").glob("test_*.py") if path.name not in LEFT_OUT)
    shim = pathlib.Path(__file__).resolve().parent / "shim"
    environment = os.environ | {"PETLAB": str(programs / "petlab")}
    # The tests run in the checkout to find a file, but must not import its package.
    run = f"import sys; sys.path[0] = {str(shim)!r}; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", run, "-q", "-rfsE", "-p", "no:cacheprovider", "--rootdir", str(checkout),
               "--import-mode=importlib", *map(str, tests)]
    sys.exit(subprocess.run(command, cwd=checkout, env=environment).returncode)


if __name__ == "__main__":
    main()
