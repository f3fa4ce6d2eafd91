#!/usr/bin/env python3
"""Runs every command of README.md's ```sh blocks that begins with `petlab`, on what the quickstart made.

usage: readme_commands.py SOURCE_DIR BIN_DIR
The two scripts themselves run in CI. Exit code 77 (skipped) where no quickstart has run.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

source, programs = map(pathlib.Path, sys.argv[1:3])
made = source / "build/quickstart/petlab.db"
if not made.exists():
    print(f"skipped: {made} is not there (scripts/quickstart.sh makes it)")
    sys.exit(77)

text = (source / "README.md").read_text()
commands = []  # each with its folder
folder = source
for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
    for line in block.replace("\\\n", " ").splitlines():
        line = line.removeprefix("$ ").split("   #")[0].strip()
        if line.startswith("petlab"):
            commands.append((line, folder))
        elif line.startswith("cd "):
            folder = source / line.removeprefix("cd ")
        elif line and not line.startswith(("scripts/", "export ", "#")):
            sys.exit(f"README.md: '{line}' is neither a script, an export, a cd nor a petlab command")
if not commands:
    sys.exit("README.md: no petlab command in a ```sh block")

environment = {name: value for name, value in os.environ.items() if name != "PETLAB_DB"}
environment["PATH"] = f"{programs.resolve()}:{os.environ['PATH']}"
failures = 0
for command, folder in commands:
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)
    print(f"$ {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    printed = (done.stdout + done.stderr).strip()
    if done.returncode != 0 or not printed:
        print(f"FAILED with exit code {done.returncode}"
              f"{'' if printed else ', and printed nothing'}: {shlex.quote(command)}")
        failures += 1
sys.exit(1 if failures else 0)
