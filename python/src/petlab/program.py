"""Queries through the program petlab, which alone decides what a query means."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import ProgramError, QuestionError

_USAGE = 2


class NoteWarning(UserWarning):
    """A note from the program about an answer, such as a caveat on a number."""


def find_program(named: str | os.PathLike[str] | None) -> str:
    """Finds the program `named`, else PETLAB_PROGRAM, else petlab.

    Searches PATH and the folder of the interpreter. Raises ProgramError.
    """
    wanted = os.fspath(named) if named is not None else os.environ.get("PETLAB_PROGRAM", "petlab")
    # A notebook's environment is often missing from PATH.
    found = shutil.which(wanted) or shutil.which(wanted, path=os.path.dirname(sys.executable))
    if found is None:
        raise ProgramError(
            f"the program petlab is not found as {wanted!r}, and this call needs it: "
            "petlab.open(…, program=…) or PETLAB_PROGRAM names it"
        )
    return found


def _callers_level() -> int:
    """The number of stack levels from note() to the first caller outside this package."""
    level = 1
    frame = sys._getframe(1)
    here = os.path.dirname(__file__)
    while frame.f_back is not None and (
        os.path.dirname(frame.f_code.co_filename) == here
        or frame.f_code.co_filename == contextlib.__file__
    ):
        frame = frame.f_back
        level += 1
    return level


def note(text: str) -> None:
    """Issues a NoteWarning for the line that called this package."""
    warnings.warn(text, NoteWarning, stacklevel=_callers_level())


def ask(program: str, words: Sequence[str], database: Path) -> list[dict[str, Any]]:
    """Returns the rows of `petlab WORDS --db DATABASE --format jsonl`.

    Raises QuestionError for a wrong query, else ProgramError. Notes become NoteWarnings.
    """
    command = [program, *words, "--db", str(database), "--format", "jsonl"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise ProgramError(f"{program}: cannot be started: {error.strerror}") from error
    notes = []
    problems = []
    for line in done.stderr.decode(errors="replace").splitlines():
        text = line.removeprefix("petlab: ")
        if text.startswith("note: "):
            notes.append(text.removeprefix("note: "))
        else:
            problems.append(text)
    if done.returncode != 0:
        message = "\n".join(problems) or f"{program} ended with exit code {done.returncode}"
        raise (QuestionError if done.returncode == _USAGE else ProgramError)(message)
    for text in notes:
        note(text)
    return [json.loads(line) for line in done.stdout.splitlines() if line]
