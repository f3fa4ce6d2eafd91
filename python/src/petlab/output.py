"""A worker's printed output, which petlab collects in log.txt."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from typing import Any

# Unfinished lines of progress bars. tqdm draws nested bars below each other.
_MOST_ROWS = 8


class _PatientFile(io.FileIO):
    """Standard output or error. Discards output once its reader is gone."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return memoryview(data).nbytes


class LogText(io.TextIOWrapper):
    """Text for a log instead of a terminal.

    Of a line that is drawn again after a carriage return, as tqdm's bars are, the log gets only the
    last state, when the bar is closed or other text follows. Cursor movements to the line above
    (nested bars) are followed and not written.
    """

    def __init__(self, buffer: Any, **options: Any) -> None:
        super().__init__(buffer, **options)
        self._rows: list[str] = []  # not written yet; the last ones may change
        self._at = 0  # the cursor's row
        self._redraws = False  # the next text replaces the row

    def write(self, text: str) -> int:
        if not self._rows and "\r" not in text:
            return super().write(text)
        for part in filter(None, re.split(r"(\r\n|\r|\n|\x1b\[A)", text)):
            self._put(part)
        return len(text)

    def settle(self) -> None:
        """Writes the rows that were held back, such as those of an unfinished bar."""
        rows, self._rows, self._at = self._rows, [], 0
        for row in rows:
            if row.strip():
                super().write(row.rstrip() + "\n")

    def _put(self, part: str) -> None:
        if not self._rows and part != "\r":
            super().write("\n" if part == "\r\n" else part)
        elif part == "\r":
            self._rows = self._rows or [""]
            self._redraws = True
        elif part in ("\n", "\r\n"):
            self._at += 1
            if self._at == len(self._rows):
                self._rows.append("")
            self._redraws = False
            if len(self._rows) > _MOST_ROWS:
                self._at -= 1
                super().write(self._rows.pop(0).rstrip() + "\n")
        elif part == "\x1b[A":
            self._at = max(0, self._at - 1)
        elif self._redraws:
            self._rows[self._at] = part
            self._redraws = False
        else:
            # Other text: of a bar on the same line, which is drawn again later, nothing remains.
            self._rows[self._at] = ""
            self.settle()
            super().write(part)


def keep_output() -> None:
    """Makes standard output and error fit for a log, and independent of their readers."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        with contextlib.suppress(OSError, ValueError):
            getattr(sys, name).flush()
        with contextlib.suppress(OSError):
            file = _PatientFile(descriptor, "w", closefd=False)
            # Line buffering: the log then has the last lines of a killed worker.
            text = LogText(
                io.BufferedWriter(file),
                encoding="utf-8",
                errors="backslashreplace",
                line_buffering=True,
            )
            setattr(sys, name, text)


def settle_output() -> None:
    """Writes what standard output and error hold back."""
    for file in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if isinstance(file, LogText):
                file.settle()
            file.flush()


def announce(folder: str) -> None:
    """Separates the output of two attempts (docs/reference/worker-protocol.md)."""
    settle_output()
    # A single write keeps output of child processes out of the line. The reader may be gone.
    with contextlib.suppress(OSError):
        os.write(1, b"\x1e" + os.fsencode(folder) + b"\n")
