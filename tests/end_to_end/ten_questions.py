#!/usr/bin/env python3
"""Asks every question of docs/questions.md again about the quickstart's results.

usage: ten_questions.py SOURCE_DIR BIN_DIR [--write]
--write puts the new answers into the page. The exit code is 77 (skipped) if no quickstart has run.

Words and whole numbers must equal the page's. Decimal numbers may differ by as much as rounding on another
processor changes a score. After `<!-- rows may differ -->` only the first column's name and the number of
lines are compared: the best trial may differ, and seconds always do.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

SCORE_TOLERANCE = 0.06  # a tenth of the possible improvement; percentages are divided by 100 first
QUESTIONS = 10
BLOCK = re.compile(r"(<!-- rows may differ -->\n)?```console\n\$ (.*?)^```$", re.M | re.S)


def command_and_answer(text):
    """Splits a block. A command ends with its line, unless a quotation is open or the line ends in a backslash."""
    lines = text.split("\n")
    for end in range(1, len(lines) + 1):
        command = "\n".join(lines[:end])
        try:
            shlex.split(command)
        except ValueError:
            continue
        if not command.endswith("\\"):
            return command, "\n".join(lines[end:])
    sys.exit(f"docs/questions.md: the quotation of `{lines[0]}` does not end")


def equal_words(wanted, found):
    if wanted == found or (set(wanted) | set(found)) <= {"─"}:
        return True
    decimal = r"[+-]?\d+\.\d+(e-\d+)?"
    if not re.fullmatch(decimal, wanted) or not re.fullmatch(decimal, found):
        return False
    size = 100 if abs(float(wanted)) > 1.5 else 1
    return abs(float(wanted) - float(found)) <= SCORE_TOLERANCE * size


def differences(wanted, found, rows_may_differ):
    wanted, found = wanted.splitlines(), found.splitlines()
    if len(wanted) != len(found):
        return [f"{len(found)} lines, expected {len(wanted)}"]
    if rows_may_differ:
        wanted, found = wanted[0].split()[:1], found[0].split()[:1]
    wrong = []
    for line, (one, other) in enumerate(zip(wanted, found), 1):
        one, other = one.split(), other.split()
        if len(one) != len(other) or not all(map(equal_words, one, other)):
            wrong.append(f"line {line}: found {' '.join(other)!r}, expected {' '.join(one)!r}")
    return wrong


def main():
    source, programs = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    folder = source / "build/quickstart"
    if not (folder / "petlab.db").exists():
        print(f"skipped: {folder} has no petlab.db (scripts/quickstart.sh makes it)")
        sys.exit(77)
    inherited = {name: value for name, value in os.environ.items() if name != "PETLAB_DB"}
    environment = inherited | {"PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    page = source / "docs/questions.md"
    text = page.read_text()
    failures = 0

    def answer(match):
        nonlocal failures
        command, wanted = command_and_answer(match[2])
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        found = done.stdout.replace(str(folder), "/…")
        found = "".join(f"{line.rstrip()}\n" for line in found.splitlines())
        print(f"$ {command}\n{found}")
        wrong = [] if "--write" in sys.argv else differences(wanted, found, bool(match[1]))
        if done.returncode != 0:
            wrong.append(f"exit code {done.returncode}")
        for what in wrong:
            print(f"FAILED: {what}")
        failures += bool(wrong)
        return f"{match[1] or ''}```console\n$ {command}\n{found}```"

    written, blocks = BLOCK.subn(answer, text)
    questions = len(re.findall(r"^## \d+\. ", text, re.M))
    if (questions, blocks) != (QUESTIONS, 2 * QUESTIONS) or blocks != text.count("```console"):
        sys.exit(f"{page}: found {questions} questions and {blocks} blocks, expected {QUESTIONS}, each "
                 "with a command and its SQL")
    if failures:
        sys.exit(f"{failures} of {blocks} answers are not those of the page")
    if "--write" in sys.argv:
        page.write_text(written)


main()
