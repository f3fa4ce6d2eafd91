"""The worker's end of an attempt's `events.jsonl` (docs/reference/worker-protocol.md)."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from pathlib import Path
from typing import Any

from .errors import WorkerError

# A longer line breaks the protocol, and petlab ends the worker.
_MAX_LINE = 1 << 20
# Of a failure's reason; as protocol/events.cpp has it.
_MAX_REASON = 4096
_KEPT_OF_REASON = _MAX_REASON // 2 - 32
_SYNCED = {"checkpoint", "finished", "failed"}
_LAST = {"finished", "failed"}


def number_or_none(value: object) -> float | None:
    """A number of Python, NumPy or PyTorch as a float; None where it is None or not finite."""
    if value is None:
        return None
    number = float(value)  # type: ignore[arg-type]
    return number if math.isfinite(number) else None


def bounded_reason(text: str) -> str:
    """The text as a failed event holds it: of more than 4,096 bytes the middle is left out, and
    what is not UTF-8 (of a file's name) is written with backslashes."""
    data = text.encode(errors="backslashreplace")
    if len(data) <= _MAX_REASON:
        return data.decode()
    begin = data[:_KEPT_OF_REASON].decode(errors="ignore")
    end = data[-_KEPT_OF_REASON:].decode(errors="ignore")
    left_out = len(data) - len(begin.encode()) - len(end.encode())
    return f"{begin} … ({left_out} bytes left out) … {end}"


class EventLog:
    """Numbers, times and appends events, and syncs checkpoint, finished and failed.

    A write that fails leaves the file as it was, so that a later event stands on a line of its own.
    Where that cannot be had, and after a sync that failed, every later call raises too. Threads may
    share it; a process that was forked may not write.
    """

    def __init__(self, file: Path) -> None:
        """Raises WorkerError where the file cannot be made, or holds events already."""
        self._file = file
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._seq = 0
        self._size = 0
        self._broken = ""
        self.is_over = False
        """A finished or failed was written."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._descriptor = os.open(file, flags, 0o644)
        except OSError as error:
            raise WorkerError(f"{file}: cannot be opened: {error.strerror}") from error
        if os.fstat(self._descriptor).st_size != 0:
            self.close()
            raise WorkerError(
                f"{file}: already contains events, must be new: an attempt runs only once"
            )

    def close(self) -> None:
        """Closes the file; nothing can be written any more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def write(self, kind: str, /, **fields: Any) -> None:
        """Appends one event. Raises WorkerError naming the file, and ValueError for its fields."""
        with self._lock:
            self._write(kind, fields)

    def _write(self, kind: str, fields: dict[str, Any]) -> None:
        if self._broken:
            raise WorkerError(self._broken)
        if self._pid != os.getpid():
            raise WorkerError(
                f"{self._file}: process {os.getpid()} was forked by the worker {self._pid}, "
                "which alone may write events"
            )
        if self.is_over:
            raise WorkerError(f"{self._file}: the trial is over, a {kind} cannot follow")
        event = {"v": 1, "seq": self._seq, "time": time.time(), "type": kind, **fields}
        try:
            text = json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            line = text.encode() + b"\n"
        except (TypeError, ValueError) as error:  # UnicodeEncodeError is a ValueError
            raise ValueError(f"a {kind} event cannot be written as JSON: {error}") from error
        if len(line) > _MAX_LINE:
            raise ValueError(f"a {kind} event has {len(line)} bytes, must have at most {_MAX_LINE}")
        self._append(line)
        self._size += len(line)
        self._seq += 1
        self.is_over = kind in _LAST
        if kind not in _SYNCED:
            return
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            # What the disk holds of the lines so far is not known any more.
            self._broken = f"{self._file}: cannot be synced: {error.strerror}"
            raise WorkerError(self._broken) from error

    def _append(self, line: bytes) -> None:
        written = 0
        try:
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            problem = f"{self._file}: cannot be written: {error.strerror}"
            try:
                os.ftruncate(self._descriptor, self._size)
            except OSError:
                self._broken = problem
            raise WorkerError(problem) from error
